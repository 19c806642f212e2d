"""Clients of AMQP 0-10 before RabbitMQ, while clients, gateway and broker are killed: nothing that was
complete is lost, nothing comes twice that is not marked, and what went ahead of credit goes back in order.

What comes twice is what a consumer had and did not accept. So that there is some of it, whatever is killed
and when, each lane leaves what it has got again and again, and all of that has to come marked.

``AMQPGATE_LOSS=10000`` is how many messages each of ten lanes sends and gets in the long run.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
import threading
import time
from collections.abc import Callable

import attrs
import pytest

from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.sequences import SequenceSet, ids_of
from tests.interop.mortal import running_node
from tests.support.client_0_10 import (
    BYTES,
    INFINITE,
    MESSAGES,
    Client010,
    ClientSession,
    Closed,
    Gone,
    Refused,
)
from tests.support.gateway import Gateway
from tests.support.rabbitmq import RabbitMQ

VHOST = "loss-0-10"
#: Transfers that a publisher has not seen complete, and how many go out between two that ask.
WINDOW, SYNC_EVERY = 200, 40
CREDIT = 30
#: How often a lane leaves what it has got, in each of the ways.
LEFT_EACH = 2

_FAILURES = (Gone, Closed, Refused, OSError)


@attrs.define(eq=False)
class Way:
    """From clients to the broker: the gateway that is running now."""

    node: RabbitMQ
    gateway: Gateway
    logs: list[str] = attrs.field(factory=list)

    @classmethod
    def to(cls, node: RabbitMQ) -> Way:
        gateway = Gateway(f"amqp://{node.address}")
        gateway.start()
        return cls(node, gateway)

    def kill(self) -> None:
        """Kill the gateway; another one takes its place."""
        self.logs.append(self.gateway.kill().log)
        gateway = Gateway(f"amqp://{self.node.address}")
        gateway.start()
        self.gateway = gateway

    def dial(self) -> Client010:
        return Client010.opened(self.gateway.port, vhost=VHOST)


@attrs.define(eq=False)
class Lane:
    """A queue with its publisher and its consumer, which begin anew whenever they are cut off."""

    way: Way
    queue: str
    count: int
    dice: random.Random
    #: Numbers whose transfers are complete, and copies in the order in which they came.
    completed: set[int] = attrs.field(factory=set)
    seen: set[tuple[int, int]] = attrs.field(factory=set)
    numbers: set[int] = attrs.field(factory=set)
    #: How often each began.
    epochs: int = 0
    lives: int = 0
    redelivered: int = 0
    #: Copies that were left with the broker, and those of them that have come again.
    left: set[tuple[int, int]] = attrs.field(factory=set)
    twice: set[tuple[int, int]] = attrs.field(factory=set)
    leaves: int = 0
    is_published: bool = False
    clients: dict[str, Client010] = attrs.field(factory=dict)
    failure: BaseException | None = None
    threads: list[threading.Thread] = attrs.field(factory=list)

    def start(self) -> None:
        for work in (self._publish, self._consume):
            thread = threading.Thread(target=self._guarded, args=(work,))
            self.threads.append(thread)
            thread.start()

    def kill(self) -> None:
        """Reset the connections of both."""
        for client in list(self.clients.values()):
            with contextlib.suppress(OSError):
                client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.sock.shutdown(socket.SHUT_RDWR)

    @property
    def progress(self) -> int:
        return len(self.completed) + len(self.numbers)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.failure = self.failure or error

    def _anew(self, role: str, life: Callable[[ClientSession], None], is_over: Callable[[], bool]) -> None:
        """Live again and again, until all is done."""
        while not is_over() and self.failure is None:
            try:
                client = self.way.dial()
                self.clients[role] = client
                with client:
                    life(client.session())
            except _FAILURES:
                time.sleep(0.1)

    # -- the publisher ---------------------------------------------------------------------------

    def _publish(self) -> None:
        self._anew("publisher", self._publish_rest, lambda: len(self.completed) == self.count)
        self.is_published = True

    def _publish_rest(self, session: ClientSession) -> None:
        """All that is not complete, in order."""
        epoch = self.epochs
        self.epochs += 1
        under_way: dict[int, int] = {}
        transfer = amqp.MessageTransfer(destination=b"", accept_mode=1)
        structs = (amqp.DeliveryProperties(delivery_mode=2, routing_key=self.queue.encode()),)

        def note() -> None:
            for command_id in [one for one in under_way if one in session.completed]:
                self.completed.add(under_way.pop(command_id))

        try:
            for number in range(self.count):
                if number in self.completed:
                    continue
                is_sync = number % SYNC_EVERY == 0
                command_id = session.send(transfer, structs, b"%d %d" % (epoch, number), sync=is_sync)
                under_way[command_id] = number
                if len(under_way) >= WINDOW:
                    wait_for(session, min(under_way))
                    note()
            session.ask(amqp.ExecutionSync())
        finally:
            note()

    # -- the consumer ----------------------------------------------------------------------------

    def _has_all(self) -> bool:
        return self.is_published and self.completed <= self.numbers and self.left <= self.twice

    def _consume(self) -> None:
        self._anew("consumer", self._consume_for_a_while, self._has_all)

    def _consume_for_a_while(self, session: ClientSession) -> None:
        """Get some, accept most; then stop in the middle, one way or another."""
        self.lives += 1
        last: dict[int, int] = {}
        name = b"d"
        session.ask(amqp.MessageSubscribe(queue=self.queue.encode(), destination=name, accept_mode=0))
        session.send(amqp.MessageFlow(destination=name, unit=BYTES, value=INFINITE))
        for _ in range(self.dice.randrange(5, 200)):
            if self._has_all():
                break
            credit = self.dice.randrange(1, CREDIT)
            session.send(amqp.MessageFlow(destination=name, unit=MESSAGES, value=credit))
            session.ask(amqp.MessageFlush(destination=name))
            session.send(amqp.MessageFlow(destination=name, unit=BYTES, value=INFINITE))
            got = list(session.messages)
            session.messages.clear()
            copies = [
                self._note(message.body, last, is_marked=message.delivery.redelivered) for message in got
            ]
            if got and self.leaves < LEFT_EACH * len(_LEAVING):
                self.left.update(copies)
                _LEAVING[self.leaves % len(_LEAVING)](session, [message.command_id for message in got])
                self.leaves += 1
                return
            if got:
                ids = SequenceSet(((got[0].command_id, got[-1].command_id),))
                # Its completion gives the window back.
                session.ask(amqp.MessageAccept(transfers=ids))
            else:
                time.sleep(0.02)
        match self.dice.randrange(3):
            case 0:
                # With credit outstanding: some are on their way.
                session.send(amqp.MessageFlow(destination=name, unit=MESSAGES, value=CREDIT), sync=True)
            case 1:
                session.send(amqp.MessageFlow(destination=name, unit=MESSAGES, value=CREDIT))
                session.ask(amqp.MessageStop(destination=name))
                session.ask(amqp.MessageCancel(destination=name))
                session.detach()
            case _:
                session.client.end()

    def _note(self, body: bytes, last: dict[int, int], *, is_marked: bool) -> tuple[int, int]:
        epoch, number = (int(part) for part in body.split())
        copy = epoch, number
        self.redelivered += is_marked
        assert copy not in self.seen or is_marked, f"{self.queue}: {copy} twice"
        if copy in self.seen:
            self.twice.add(copy)
        self.seen.add(copy)
        self.numbers.add(number)
        assert number > last.get(epoch, -1), f"{self.queue}: {number} after {last[epoch]}"
        last[epoch] = number
        return copy


# -- how a consumer leaves what it has not accepted ------------------------------------------------


def _vanish(session: ClientSession, ids: list[int]) -> None:
    session.client.close()


def _detach(session: ClientSession, ids: list[int]) -> None:
    session.detach()


def _close(session: ClientSession, ids: list[int]) -> None:
    session.client.end()


def _release(session: ClientSession, ids: list[int]) -> None:
    session.ask(amqp.MessageRelease(transfers=ids_of(ids)))
    session.client.end()


_LEAVING = (_vanish, _detach, _close, _release)


def wait_for(session: ClientSession, command_id: int) -> None:
    """Until it is complete; something behind it asks for that."""
    session.client.until(lambda: command_id in session.completed or session.is_over, "completion")
    session.check()


def play(node: RabbitMQ, lanes: int, count: int, events: list[str]) -> dict[str, int]:
    """What happened; everything else is asserted."""
    node.fresh_vhost(VHOST)
    way = Way.to(node)
    dice = random.Random(7)
    every = [Lane(way, f"lane{number}", count, random.Random(number)) for number in range(lanes)]
    try:
        with way.dial() as owner:
            session = owner.session()
            for lane in every:
                session.declare(lane.queue, durable=True)
            owner.end()
        # A node that is killed forgets the queues that Mnesia has not written yet.
        node.eval("mnesia:sync_log().")
        for lane in every:
            lane.start()
        for number, kind in enumerate(events):
            part = (number + 1) / (len(events) + 1)
            while sum(lane.progress for lane in every) < part * 2 * lanes * count:
                assert not any(lane.failure for lane in every), [lane.failure for lane in every]
                time.sleep(0.02)
            if kind == "clients":
                for lane in dice.sample(every, max(1, lanes // 3)):
                    lane.kill()
            elif kind == "gateway":
                way.kill()
            else:
                node.restart()
                for lane in every:
                    # What was not confirmed yet may be gone.
                    lane.left &= lane.twice
        for lane in every:
            for thread in lane.threads:
                thread.join(1800)
                assert not thread.is_alive(), (lane.queue, lane.progress)
    finally:
        for lane in every:
            lane.failure = lane.failure or TimeoutError()
            lane.kill()
        ended = way.gateway.stop()
    failures = [lane.failure for lane in every if not isinstance(lane.failure, TimeoutError)]
    assert failures == []
    for lane in every:
        assert len(lane.completed) == count
        assert lane.completed <= lane.numbers
        assert lane.leaves == LEFT_EACH * len(_LEAVING)
        # All of it, and all of it was marked.
        assert lane.left
        assert lane.left <= lane.twice
    assert "Traceback" not in "".join((*way.logs, ended.log))
    return {
        "published": sum(len(lane.completed) for lane in every),
        "copies": sum(len(lane.seen) for lane in every),
        "redelivered": sum(lane.redelivered for lane in every),
        "twice": sum(len(lane.twice) for lane in every),
        "publishers": sum(lane.epochs for lane in every),
        "consumers": sum(lane.lives for lane in every),
    }


@pytest.mark.timeout(3600)
def test_what_is_complete_is_not_lost(record_property: Callable[[str, object], None]) -> None:
    for name, value in play(running_node(), 2, 600, ["clients", "gateway", "clients"]).items():
        record_property(name, value)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_same_with_100_000_messages_each_way(record_property: Callable[[str, object], None]) -> None:
    count = int(os.environ.get("AMQPGATE_LOSS", "10000"))
    events = ["clients", "gateway", "clients", "broker", "clients", "gateway", "clients", "broker"] * 2
    for name, value in play(running_node(), 10, count, events).items():
        record_property(name, value)
        print(name, value)
