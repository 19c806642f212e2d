"""What taps are told of the messages that one session publishes.

::

    miss ──▶ does it match? then its flow is watched
    shown ─▶ its header ──▶ (its body, where the audit policy allows that) ──▶ a line
"""

from __future__ import annotations

import attrs

from amqpgate.datapath.scanner import Flow
from amqpgate.datapath.tables import METHOD_NEXT, Side
from amqpgate.gateway.observers.audit.channel import Reading
from amqpgate.gateway.observers.audit.columns import kind_of
from amqpgate.gateway.observers.audit.session import room_for
from amqpgate.gateway.observers.tap.flows import Watched, Watches
from amqpgate.gateway.observers.tap.lines import Told
from amqpgate.gateway.observers.tap.scope import Scope, header_in, tell
from amqpgate.gateway.observers.tap.taps import Tap
from amqpgate.gateway.session.publish import size_of
from amqpgate.gateway.session.publish_denial import HeldPublish
from amqpgate.policy import Operation, Verdict
from amqpgate.policy.engine.from_method import content_of
from amqpgate.policy.kinds.audit import BEYOND
from amqpgate.telemetry.answers import JSON
from amqpgate.wire.generated import v0_9_1 as amqp


@attrs.define(weakref_slot=False)
class _Reading:
    """A message whose body is being read along."""

    reading: Reading
    taps: list[Tap]
    told: Told


@attrs.define(eq=False, weakref_slot=False)
class TappedPublishes:
    """Of one session."""

    scope: Scope
    watches: Watches
    #: By channel.
    _readings: dict[int, _Reading] = attrs.field(factory=dict, init=False)

    def begins(
        self, flow: Flow, method: amqp.BasicPublish, operation: Operation, verdict: Verdict, *, captures: bool
    ) -> None:
        """A flow is about to be installed; policies have said how much of it they are shown."""
        decision = self.scope.decide(operation)
        taps = () if decision.is_silent else self.scope.matching(operation, verdict)
        if taps:
            watched = Watched(flow, operation, taps, decision, verdict, method, flow.sample_every == 1)
            self.watches.watch(watched, captures=captures)

    def passed(
        self,
        channel: int,
        held: HeldPublish,
        verdict: Verdict,
        frame: memoryview,
        broker: JSON = None,
    ) -> None:
        """A message that was shown has passed, with this header frame; ``broker``: as in `Told`."""
        watched = self.watches.get(held.flow)
        if watched is None or not held.weight:
            return
        decision = watched.decision
        header = header_in(frame) if held.weight > 1 or decision.reads_messages else None
        taps = self.watches.choose(watched, held.weight, header, len(frame))
        if not taps:
            return
        told = self.scope.told(channel, held.operation, verdict, held.method, size_of(frame))
        told = told if broker is None else attrs.evolve(told, broker=broker)
        if header is None or not decision.reads_messages:
            tell(taps, told)
            return
        operation = attrs.evolve(held.operation, content=content_of(header))
        if decision.level != "body" or not header.body_size:
            tell(taps, attrs.evolve(told, header=header, said=decision.record(operation)))
            return
        channels = self.watches.relay.channels
        for other in list(self._readings):
            if other == channel or channels.due(Side.CLIENT, other) == METHOD_NEXT:
                # Its channel was closed meanwhile, and perhaps opened again.
                del self._readings[other]
        wanted = min(header.body_size, decision.max_body + BEYOND)
        reading = Reading(decision, operation, kind_of(operation, verdict), wanted, header.body_size)
        self._readings[channel] = _Reading(reading, taps, attrs.evolve(told, header=header))
        channels.show_rest(Side.CLIENT, channel)

    def body(self, channel: int, frame: memoryview) -> None:
        """A body frame has passed."""
        one = self._readings.get(channel)
        if one is None:
            return
        room = room_for(other.reading for other in self._readings.values())
        if not one.reading.take(frame[7:-1], room):
            return
        del self._readings[channel]
        body, reading = bytes(one.reading.data), one.reading
        said = reading.decision.record(reading.operation, body)
        assert said is not None, "there is a level"
        is_cut = said.is_cut or len(body) < min(said.body_size or 0, reading.decision.max_body)
        tell(one.taps, attrs.evolve(one.told, said=attrs.evolve(said, is_cut=is_cut)))

    def opens(self, channel: int) -> None:
        """A channel opens: there is nothing of its last use."""
        self._readings.pop(channel, None)
