"""What is tapped of one session: its messages both ways, and each other method.

::

    publish, deliver ── miss ──▶ does it match? then its flow is watched (`flows`)
                     ── shown ─▶ `published`, `sent` ──▶ a line
    get-ok, return ────────────▶ `sent` ──▶ a line
    other methods, denials ────▶ a line each

`scope` says what a tap is about, and how much of it may be told.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import attrs

from amqpgate.datapath.captures import Captured
from amqpgate.datapath.scanner import Flow
from amqpgate.datapath.tables import Side
from amqpgate.gateway.limits.sampler import Sampler
from amqpgate.gateway.observers.tap.flows import Watches
from amqpgate.gateway.observers.tap.lines import broker_of
from amqpgate.gateway.observers.tap.published import TappedPublishes
from amqpgate.gateway.observers.tap.scope import Scope
from amqpgate.gateway.observers.tap.sent import TappedDeliveries
from amqpgate.gateway.observers.tap.taps import PART, TapRegistry
from amqpgate.gateway.session.compatibility import Adapted
from amqpgate.gateway.session.observer import Denial, Message, Release, Sees, SessionObserver
from amqpgate.gateway.session.publish import size_of
from amqpgate.gateway.session.session import Session
from amqpgate.policy import Operation
from amqpgate.policy.engine.from_method import operation_of
from amqpgate.policy.engine.taps import DELIVER, GOT, RETURNED
from amqpgate.telemetry.answers import JSON
from amqpgate.telemetry.faults import contained
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method


@attrs.define(eq=False, weakref_slot=False)
class TapObserver(SessionObserver):
    """The taps of one session, while somebody taps it."""

    part = PART

    session: Session
    scope: Scope
    watches: Watches
    published: TappedPublishes
    sent: TappedDeliveries
    #: A method that passes next, and what the broker gets for it.
    _adapted: tuple[Method, JSON] | None = attrs.field(default=None, init=False)

    @classmethod
    def of(cls, tapping: TapRegistry, session: Session) -> TapObserver:
        """That of a session; it follows no taps yet."""
        interpreter = session.facts.interpreters[Side.CLIENT]
        scope = Scope(tapping, session.id, session.session_policies, interpreter)
        watches = Watches(tapping, session.relay)
        return cls(
            session,
            scope,
            watches,
            TappedPublishes(scope, watches),
            TappedDeliveries(scope, watches, session.channels),
        )

    def sees(self) -> Sees:
        kinds = (
            (Sees.PUBLISHES, (amqp.BasicPublish.NAME,)),
            (Sees.DELIVERIES, (DELIVER,)),
            (Sees.CONTENT, (GOT, RETURNED)),
        )
        seen = Sees.NOTHING
        for what, operations in kinds:
            if any(map(self.scope.is_about, operations)):
                seen |= what
        return seen

    def ended(self) -> None:
        self.watches.count()

    @contained(PART, None)
    def count(self) -> None:
        """Tell the taps what has passed."""
        self.watches.count()

    # -- messages --------------------------------------------------------------------------------

    def meters(self, message: Message, flow: Flow) -> None:
        # What another version has on the wire is not what is told.
        captures = self.session.bridge is None
        method, operation = message.method, message.operation
        if isinstance(method, amqp.BasicDeliver):
            self.sent.delivers(flow, message.channel, method, captures=captures)
        elif operation is not None:
            self.published.begins(flow, method, operation, message.verdict, captures=captures)

    def samplers(self, message: Message, flow: Flow) -> Sequence[Sampler]:
        return self.watches.samplers(flow)

    def shows(self, message: Message, flow: Flow, weight: int, samplers: Sequence[Sampler]) -> bool:
        is_open = self.watches.shows(flow, samplers)
        if isinstance(message.method, amqp.BasicDeliver):
            self.sent.arriving(message.channel, message.method, flow, weight if is_open else 0)
        return False

    def released(self, release: Release, frames: bytes) -> bytes:
        held = release.held
        broker = self._broker_of(held.method)
        self.published.passed(release.channel, held, release.verdict, release.frame, broker)
        return frames

    def came(
        self, channel: int, method: amqp.BasicGetOk | amqp.BasicReturn, queue: str | None, flow: Flow | None
    ) -> Flow | None:
        return self.sent.came(channel, method, queue) or flow

    def content(self, side: Side, channel: int, frame: memoryview) -> bool:
        if side is Side.UPSTREAM:
            return self.sent.arrived(channel, frame)
        self.published.body(channel, frame)
        return False

    def captured(self, side: Side, messages: Sequence[Captured]) -> None:
        at = repr(round(time.time(), 6))
        for watched, taps, message in self.watches.captured(messages):
            self.scope.captured(watched, taps, message, at)

    # -- whatever is no message ------------------------------------------------------------------

    def opened(self) -> None:
        operation = Operation(self.scope.principal, "connection.open")
        self.scope.happened(0, operation, self.scope.verdict(operation), None)

    def passed(self, channel: int, method: Method) -> None:
        if isinstance(method, amqp.ChannelOpen):
            self.sent.opens(channel)
            self.published.opens(channel)
        channels = self.session.channels
        state = channels.states.get(channel)
        operation = operation_of(method, self.scope.principal, "" if state is None else state.last_queue)
        operation = channels.told_apart(operation)
        verdict, broker = self.scope.verdict(operation), self._broker_of(method)
        self.scope.happened(channel, operation, verdict, method, broker=broker)

    def adapted(self, channel: int, method: Method, policy: str, result: Adapted) -> None:
        self._adapted = method, broker_of(policy, result)

    def _broker_of(self, method: Method) -> JSON:
        """What the broker gets for a method that passes; None: the same."""
        adapted, self._adapted = self._adapted, None
        return None if adapted is None or adapted[0] is not method else adapted[1]

    def denied(self, denial: Denial) -> None:
        if denial.method is None and denial.header is None:
            return  # Nobody has asked: the policies have changed.
        size = None if denial.header is None else size_of(denial.header)
        self.scope.happened(denial.channel, denial.operation, denial.verdict, denial.method, size)

    def rejected(self, denial: Denial) -> None:
        self.denied(denial)
