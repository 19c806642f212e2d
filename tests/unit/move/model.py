"""Two brokers, gateways in front of both, clients and a command that moves them: as a model.

Everything happens in small turns, and whoever plays chooses which is next: a client's, a gateway's end, an
order of the command, or that the command is killed. Messages are numbers. Each is published once and
confirmed; a consumer acknowledges what it has in a turn of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

import attrs

from amqpgate.move.objects import BrokerObject
from amqpgate.move.steps import next_step
from amqpgate.move.view import (
    CloseSession,
    Course,
    CreateObject,
    MarkMessages,
    MoveMessages,
    Order,
    PauseRoute,
    ResumeRoute,
    SeenQueue,
    SeenRoute,
    SeenSession,
    SwitchRoutes,
    View,
)

Role = Literal["publisher", "consumer", "both"]
QUEUE = "work"
VHOST = "/"


@attrs.define(eq=False)
class Message:
    number: int
    redelivered: bool = False


@attrs.define(eq=False)
class ModelSession:
    id: str
    gateway: str
    broker: str
    role: Role
    unacked: list[Message] = attrs.field(factory=list)
    delivered: int = 0
    closing: bool = False


@attrs.define(eq=False)
class ModelGateway:
    leads_to: str
    paused: bool = False


@attrs.define(eq=False)
class Model:
    """All of it. The names of the methods are what may happen."""

    gateways: dict[str, ModelGateway]
    #: By broker; the green one's queue is not there at first.
    queues: dict[str, list[Message] | None]
    clients: dict[str, tuple[str, Role]]
    #: By client.
    sessions: dict[str, ModelSession] = attrs.field(factory=dict)
    confirmed: set[int] = attrs.field(factory=set)
    lost: set[int] = attrs.field(factory=set)
    acknowledged: set[int] = attrs.field(factory=set)
    unmarked: Counter[int] = attrs.field(factory=Counter)
    numbers: int = 0

    @classmethod
    def make(cls, gateways: int, roles: tuple[Role, ...]) -> Model:
        return cls(
            {f"g{number}": ModelGateway("blue") for number in range(gateways)},
            {"blue": [], "green": None},
            {f"c{number}": (f"g{number % gateways}", role) for number, role in enumerate(roles)},
        )

    # -- clients ---------------------------------------------------------------------------------------------

    def act(self, name: str) -> None:
        """A client's turn: connect; or publish, take and acknowledge one."""
        session = self.sessions.get(name)
        if session is None:
            gateway, role = self.clients[name]
            way = self.gateways[gateway]
            if not way.paused:
                self.numbers += 1
                self.sessions[name] = ModelSession(f"s{self.numbers}", gateway, way.leads_to, role)
            return
        if session.closing:
            self.end(name)
            return
        queue = self.queues[session.broker]
        if session.role != "consumer":
            self.numbers += 1
            self.confirmed.add(self.numbers)
            if queue is None:
                self.lost.add(self.numbers)
            else:
                queue.append(Message(self.numbers))
        if session.role != "publisher" and queue is not None:
            if session.unacked and len(session.unacked) % 2:
                self.acknowledged.add(session.unacked.pop(0).number)
            elif queue:
                message = queue.pop(0)
                session.unacked.append(message)
                session.delivered += 1
                if not message.redelivered:
                    self.unmarked[message.number] += 1

    def acknowledge(self, name: str) -> None:
        session = self.sessions.get(name)
        if session is not None and not session.closing:
            self.acknowledged |= {message.number for message in session.unacked}
            session.unacked.clear()

    def end(self, name: str) -> None:
        """A session ends, by its own or by a close; what it has not acknowledged goes back."""
        session = self.sessions.pop(name, None)
        if session is not None:
            queue = self.queues[session.broker]
            if queue is not None:
                queue[:0] = [Message(message.number, redelivered=True) for message in session.unacked]

    @property
    def has_moved(self) -> bool:
        """Whether messages lie on green while clients are to go to blue."""
        return bool(self.queues["green"]) and all(one.leads_to == "blue" for one in self.gateways.values())

    def restart(self, gateway: str) -> None:
        """It loses its sessions, and what operators have said of its routes. Not while messages are moved
        back: who comes then takes them from the queue before they are marked."""
        if self.has_moved:
            return
        for name, session in list(self.sessions.items()):
            if session.gateway == gateway:
                self.end(name)
        self.gateways[gateway].paused = False

    # -- the command -----------------------------------------------------------------------------------------

    def view(self, course: Course, *, is_sure: bool = False) -> View:
        missing: tuple[BrokerObject, ...] = ()
        if self.queues["green"] is None and course.target == "green":
            missing = (BrokerObject("queue", VHOST, QUEUE, {}),)
        queue = self.queues[course.source]
        mine = [one for one in self.sessions.values() if one.broker == course.source]
        there = self.queues[course.target]
        may_mark = all(one.paused and one.leads_to == course.source for one in self.gateways.values())
        consumers = sum(one.role != "publisher" for one in mine)
        return View(
            routes=tuple(
                SeenRoute(gateway=name, route="prod", upstreams=(one.leads_to,), paused=one.paused)
                for name, one in self.gateways.items()
            ),
            sessions=tuple(
                SeenSession(
                    gateway=one.gateway,
                    id=one.id,
                    consumers=int(one.role != "publisher"),
                    unacked=len(one.unacked),
                    delivered=one.delivered,
                    is_closing=one.closing,
                )
                for one in mine
            ),
            queues=()
            if queue is None
            else (SeenQueue(vhost=VHOST, name=QUEUE, ready=len(queue), consumers=consumers),),
            missing=missing,
            unsure=((VHOST, QUEUE),) if there and not mine and may_mark and not is_sure else (),
        )

    def command(self, course: Course) -> Iterator[str]:
        """One run of the command; it may be left anywhere. Yields the step before each thing that it does."""
        waited, is_sure = 0, False
        while True:
            view = attrs.evolve(self.view(course, is_sure=is_sure), drained_for=waited)
            step = next_step(course, view)
            if step is None:
                return
            waited += step.name == "drain"
            yield step.name
            for order in step.orders(course, view):
                for _ in self._carry_out(course, order):
                    yield step.name
                is_sure = is_sure or isinstance(order, MoveMessages | MarkMessages)

    def _carry_out(self, course: Course, order: Order) -> Iterator[None]:
        """In pieces, between which it may be killed."""
        match order:
            case CreateObject():
                self.queues["green"] = self.queues["green"] or []
            case PauseRoute(gateway, _):
                self.gateways[gateway].paused = True
            case ResumeRoute(gateway, _):
                self.gateways[gateway].paused = False
            case CloseSession(_, session):
                for one in self.sessions.values():
                    if one.id == session:
                        one.closing = True
            case SwitchRoutes(_, gateways):
                for gateway in gateways:
                    self.gateways[gateway].leads_to = course.target
                    yield
            case MoveMessages():
                yield from self._carry(course)
            case MarkMessages():
                for message in self.queues[course.target] or ():
                    message.redelivered = True
        yield

    def _carry(self, course: Course) -> Iterator[None]:
        """As `amqpgate.cli.move_carry` does it: the last one is acknowledged when all are marked."""
        source, target = self.queues[course.source], self.queues[course.target]
        assert source is not None
        assert target is not None
        is_known = bool(target)
        while source:
            is_known = is_known or source[0].redelivered
            source[0].redelivered = True
            target.append(Message(source[0].number))
            yield
            if len(source) == 1 and is_known:
                for one in target:
                    one.redelivered = True
                yield
            source.pop(0)
            yield
