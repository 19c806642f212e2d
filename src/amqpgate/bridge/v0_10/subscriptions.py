"""Stand-in: subscriptions of one session, the simple way: subscribe, credit, transfer, accept, flush."""

from __future__ import annotations

from collections import deque
from typing import Final

from attrs import define, field

from amqpgate.bridge.v0_10.channels import BrokerChannel, Use
from amqpgate.bridge.v0_10.frames import FromBroker
from amqpgate.bridge.v0_10.properties import from_canonical
from amqpgate.bridge.v0_10.steps import Answer, Call, Steps, insist, name_of
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10.session import AttachedSession
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import AcceptMode, AcquireMode, CreditUnit, FlowMode
from amqpgate.wire.v0_10.sequences import SequenceSet

_INFINITE: Final = 0xFFFF_FFFF


@define(eq=False)
class _Subscription:
    command: amqp10.MessageSubscribe
    tag: str
    queue: str
    is_window: bool = True
    credit: list[int] = field(factory=lambda: [0, 0])
    is_consuming: bool = False
    held: deque[FromBroker] = field(factory=deque)

    def has_credit(self, size: int) -> bool:
        return self.credit[0] > 0 and self.credit[1] >= max(size, 1)

    def spend(self, count: int, size: int) -> None:
        for unit, spent in enumerate((count, size)):
            if self.credit[unit] != _INFINITE:
                self.credit[unit] -= spent


class Subscriptions:
    """See the module."""

    __slots__ = ("_by_name", "_by_tag", "_given", "_main", "_next", "_session")

    def __init__(self, session: AttachedSession, main: BrokerChannel) -> None:
        self._session: AttachedSession | None = session
        self._main = main
        self._by_name: dict[bytes, _Subscription] = {}
        self._by_tag: dict[str, _Subscription] = {}
        #: Delivery tags by ids of transfers.
        self._given: dict[int, tuple[int, _Subscription, int]] = {}
        self._next = 0

    def detached(self) -> None:
        """The client's side is gone."""
        self._session = None

    def completed(self, ids: SequenceSet) -> None:
        """The client has completed transfers."""
        for lower, upper in ids.ranges:
            for one in [one for one in self._given if lower <= one <= upper]:
                _, subscription, size = self._given[one]
                if subscription.is_window:
                    subscription.spend(-1, -size)
                    self._give(subscription)

    def hear(self, told: FromBroker) -> None:
        """A delivery, or the end of a subscription."""
        match told.method:
            case amqp.BasicDeliver(consumer_tag=tag):
                subscription = self._by_tag.get(tag)
                if subscription is not None:
                    subscription.held.append(told)
                    self._give(subscription)
            case amqp.BasicCancel(consumer_tag=tag):
                self._by_tag[tag].is_consuming = False

    def steps(self, command: object) -> Steps | None:
        """A command of class message."""
        match command:
            case amqp10.MessageSubscribe():
                return self._subscribe(command)
            case amqp10.MessageCancel(destination=name):
                return self._cancel(self._at(name))
            case amqp10.MessageSetFlowMode(destination=name, flow_mode=mode):
                self._at(name).is_window = mode == FlowMode.WINDOW
                return None
            case amqp10.MessageFlow(destination=name, unit=unit, value=value):
                return self._flow(self._at(name), unit or 0, _INFINITE if value is None else value)
            case amqp10.MessageStop(destination=name):
                self._at(name).credit = [0, 0]
                return None
            case amqp10.MessageFlush(destination=name):
                return self._flush(self._at(name))
            case amqp10.MessageAccept(transfers=ids):
                for tag in self._take(ids):
                    self._main.send(amqp.BasicAck(tag))
                return None
            case amqp10.MessageRelease(transfers=ids):
                for tag in self._take(ids):
                    self._main.send(amqp.BasicReject(tag, requeue=True))
                return None
            case amqp10.MessageReject(transfers=ids):
                for tag in self._take(ids):
                    self._main.send(amqp.BasicReject(tag, requeue=False))
                return None
            case amqp10.MessageAcquire(transfers=ids):
                return self._acquire(ids or SequenceSet())
        raise ProtocolViolation(540, "this command of class message")

    def _at(self, name: bytes | None) -> _Subscription:
        subscription = self._by_name.get(name or b"")
        if subscription is None:
            raise ProtocolViolation(404, f"no subscription {(name or b'').decode('utf-8', 'replace')!r}")
        return subscription

    def _take(self, ids: SequenceSet | None) -> list[int]:
        taken = []
        for lower, upper in (ids or SequenceSet()).ranges:
            for one in [one for one in self._given if lower <= one <= upper]:
                taken.append(self._given.pop(one)[0])
        return sorted(taken)

    def _subscribe(self, command: amqp10.MessageSubscribe) -> Steps:
        name = command.destination or b""
        queue = name_of(command.queue, "the queue")
        if name in self._by_name:
            raise ProtocolViolation(530, "the destination is in use")
        if command.acquire_mode == AcquireMode.NOT_ACQUIRED:
            raise ProtocolViolation(540, "browsing")
        yield from insist(amqp.QueueDeclare(queue=queue, passive=True))
        self._next += 1
        subscription = _Subscription(command, str(self._next), queue)
        self._by_name[name] = self._by_tag[subscription.tag] = subscription
        return None

    def _cancel(self, subscription: _Subscription) -> Steps:
        if subscription.is_consuming:
            yield Call(Use.MAIN, amqp.BasicCancel(subscription.tag))
        del self._by_name[subscription.command.destination or b""], self._by_tag[subscription.tag]
        while subscription.held:
            told = subscription.held.popleft()
            self._main.send(amqp.BasicReject(_tag(told), requeue=True))
        return None

    def _flow(self, subscription: _Subscription, unit: int, value: int) -> Steps:
        at = 0 if unit == CreditUnit.MESSAGE else 1
        now = subscription.credit[at]
        subscription.credit[at] = _INFINITE if _INFINITE in (now, value) else min(now + value, _INFINITE - 1)
        if all(subscription.credit) and not subscription.is_consuming:
            subscription.is_consuming = True
            prefetch = max(1, min(subscription.credit[0], 256))
            yield Call(Use.MAIN, amqp.BasicQos(prefetch_count=prefetch))
            yield Call(
                Use.MAIN,
                amqp.BasicConsume(
                    queue=subscription.queue,
                    consumer_tag=subscription.tag,
                    exclusive=subscription.command.exclusive,
                ),
            )
        self._give(subscription)
        return None

    def _flush(self, subscription: _Subscription) -> Steps:
        while subscription.has_credit(0):
            answer: Answer = yield Call(Use.MAIN, amqp.BasicGet(queue=subscription.queue))
            if not isinstance(answer.method, amqp.BasicGetOk):
                break
            assert isinstance(answer.properties, amqp.BasicProperties)
            subscription.held.append(FromBroker(0, answer.method, answer.properties, answer.body))
            self._give(subscription)
        yield Call(Use.MAIN, amqp.BasicQos(prefetch_count=1))
        subscription.credit = [0, 0]
        return None

    def _acquire(self, ids: SequenceSet) -> Steps:
        yield from ()
        return amqp10.Acquired(transfers=SequenceSet())

    def _give(self, subscription: _Subscription) -> None:
        while subscription.held and self._session is not None:
            told = subscription.held[0]
            size = len(told.body)
            if not subscription.has_credit(size):
                return
            subscription.held.popleft()
            subscription.spend(1, size)
            method = told.method
            assert isinstance(method, amqp.BasicDeliver | amqp.BasicGetOk)
            assert told.properties is not None
            structs = from_canonical(
                told.properties,
                exchange=method.exchange,
                routing_key=method.routing_key,
                redelivered=method.redelivered,
                body_size=size,
            )
            command = subscription.command
            sent = self._session.send(
                amqp10.MessageTransfer(
                    destination=command.destination,
                    accept_mode=command.accept_mode or AcceptMode.EXPLICIT,
                    acquire_mode=AcquireMode.PRE_ACQUIRED,
                ),
                structs,
                told.body,
            )
            if command.accept_mode == AcceptMode.NONE:
                self._main.send(amqp.BasicAck(method.delivery_tag))
            else:
                self._given[sent] = (method.delivery_tag, subscription, size)


def _tag(told: FromBroker) -> int:
    assert isinstance(told.method, amqp.BasicDeliver | amqp.BasicGetOk)
    return told.method.delivery_tag
