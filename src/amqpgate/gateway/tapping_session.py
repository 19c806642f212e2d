"""What is tapped of one session: which of its flows are watched, and what is told of their messages.

::

    publish, deliver ── miss ──▶ does it match? then its flow is watched: the data path counts, and shows some
                     ── shown ─▶ its header ──▶ (its body, where the audit policy allows that) ──▶ a line
    other methods, denials ────▶ a line each

What may be told is what audit records may say of the same operation (`AuditDecision.record`). Without an
audit policy that is metadata: nobody has allowed more. What a rule leaves out of all records is not seen here
either. Of deliveries there is metadata only, since audit policies judge what clients ask for, and these may
be another's messages.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs

from amqpgate.datapath.scanner import Flow
from amqpgate.datapath.tables import METHOD_NEXT, Show, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.auditing_channel import Reading
from amqpgate.gateway.auditing_columns import kind_of
from amqpgate.gateway.auditing_session import READ_ALONG
from amqpgate.gateway.operations import content_of, operation_of
from amqpgate.gateway.sampling import Sampler, stands_for
from amqpgate.gateway.tapping import Tap, Tapping
from amqpgate.gateway.tapping_lines import Told, line_of
from amqpgate.policy import Operation, PolicySet, Principal, Verdict
from amqpgate.policy.audits import BEYOND, NOT_AUDITED, AuditDecision, SessionAudit
from amqpgate.policy.engine import UNRESTRICTED
from amqpgate.policy.taps import DELIVER
from amqpgate.wire.codec import ContentHeader, decode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.datapath.relay import Relay
    from amqpgate.gateway.closes import Closes
    from amqpgate.gateway.judging import Judging
    from amqpgate.gateway.publishing import Held

#: Flows that are watched of one session. With more all are forgotten, and those that go on are watched anew.
MOST_WATCHED: Final = 4096


@attrs.define(eq=False, weakref_slot=False)
class Watched:
    """A flow among whose messages some are shown to taps."""

    flow: Flow
    operation: Operation
    taps: tuple[Tap, ...]
    decision: AuditDecision
    #: A policy is shown every one of them anyway.
    is_always: bool
    #: It shows nothing to taps, and waits for room.
    is_muted: bool = False
    #: Messages that the taps know of.
    _counted: int = 0

    def count(self) -> None:
        """Tell the taps how many have passed."""
        passed = self.flow.messages - self._counted
        if passed:
            self._counted += passed
            for tap in self.taps:
                tap.matched += passed

    def uncount(self) -> None:
        """One that the data path has counted did not pass."""
        self._counted += 1

    @property
    def is_open(self) -> bool:
        """Whether some tap may be shown a message now."""
        return any(tap.is_open for tap in self.taps)

    def show(self) -> bool:
        """Show messages again, if some tap may be shown one."""
        least = min((tap.sampler.every for tap in self.taps if tap.is_open), default=0)
        if least and not (0 < self.flow.sample_every <= least):
            self.flow.sample_every = least
        return least > 0

    def hide(self, samplers: Sequence[Sampler]) -> None:
        """Show no more than others want, who choose among the same messages."""
        if not self.is_always:
            self.flow.sample_every = min((sampler.every for sampler in samplers), default=0)


@attrs.define(weakref_slot=False)
class _Arriving:
    """A delivery whose header comes next."""

    method: amqp.BasicDeliver
    watched: Watched
    weight: int


@attrs.define(weakref_slot=False)
class _Reading:
    """A publish whose body is being read along."""

    reading: Reading
    taps: list[Tap]
    told: Told


@attrs.define(eq=False, weakref_slot=False)
class Tapper:
    """Of one session, while somebody taps it."""

    tapping: Tapping
    session: str
    judging: Judging
    #: Those that it may concern.
    taps: tuple[Tap, ...] = attrs.field(default=(), init=False)
    #: None: there are no audit policies.
    audits: SessionAudit | None = attrs.field(default=None, init=False)
    _relay: Relay | None = attrs.field(default=None, init=False)
    _closes: Closes | None = attrs.field(default=None, init=False)
    _watched: dict[Flow, Watched] = attrs.field(factory=dict, init=False)
    #: Flows that messages under way may still be counted in.
    _before: dict[Flow, Watched] = attrs.field(factory=dict, init=False)
    #: By channel.
    _arriving: dict[int, _Arriving] = attrs.field(factory=dict, init=False)
    _readings: dict[int, _Reading] = attrs.field(factory=dict, init=False)

    @classmethod
    def of(cls, tapping: Tapping, session: str, judging: Judging, policies: PolicySet) -> Tapper | None:
        """That of a session; None: nobody taps what its client may do."""
        known = _known(judging.principal)
        taps = tuple(tap for tap in tapping.taps if tap.order.match.holds(known) is not False)
        if not taps:
            return None
        tapper = judging.tapper or cls(tapping, session, judging)
        tapper.follow(taps, policies)
        return tapper

    def follow(self, taps: tuple[Tap, ...], policies: PolicySet) -> None:
        """These taps and these policies hold from now on, for messages that are not under way."""
        self._forget()
        self.taps = taps
        self.audits = policies.audit_of(self.principal) if policies.audits else None

    @property
    def principal(self) -> Principal:
        return self.judging.principal

    def enter(self, relay: Relay, closes: Closes) -> None:
        """The session goes on the data path, or is there."""
        self._relay, self._closes = relay, closes

    def is_about(self, operation: str) -> bool:
        """Whether such an operation may match."""
        known = {**_known(self.principal), "operation": operation}
        return any(tap.order.match.holds(known) is not False for tap in self.taps)

    # -- flows ---------------------------------------------------------------------------------

    def publishes(self, flow: Flow, operation: Operation, verdict: Verdict) -> None:
        """A flow of publishes is about to be installed; policies have said how much of it they are shown."""
        decision = self._decide(operation)
        if not decision.is_silent:
            self._watch(flow, operation, verdict, decision)

    def delivers(self, flow: Flow, channel: int, method: amqp.BasicDeliver) -> None:
        """As ``publishes``, of deliveries."""
        asked = self._consumed(channel, method.consumer_tag)
        # An audit policy may leave the consumer out of all records, if it is not known.
        is_silent = self.audits is not None if asked is None else self._decide(asked).is_silent
        if is_silent:
            return
        exchange, key = method.exchange, method.routing_key
        rewriter = self.judging.rewriter
        if rewriter is not None and rewriter.transform.naming is not None:
            naming = rewriter.transform.naming
            exchange = naming.exchange_down(exchange)
            key = naming.key_down(exchange, key)
        queue = None if asked is None else asked.queue
        operation = Operation(self.principal, DELIVER, exchange=exchange, routing_key=key, queue=queue)
        self._watch(flow, operation, UNRESTRICTED, NOT_AUDITED)

    def _watch(self, flow: Flow, operation: Operation, verdict: Verdict, decision: AuditDecision) -> None:
        taps = self._matching(operation, verdict)
        if not taps:
            return
        if len(self._watched) >= MOST_WATCHED:
            self._forget()
        watched = Watched(flow, operation, taps, decision, flow.sample_every == 1)
        self._watched[flow] = watched
        flow.show = max(flow.show, Show.HEADER)
        if not watched.is_open:
            self.tapping.muted(watched)

    def _forget(self) -> None:
        """Watch no flow any more. What goes on is a miss, and so is watched again."""
        self.count()
        self._before, self._watched = self._watched, {}
        if self._relay is not None:
            for lane in (self._relay.up, self._relay.down):
                if lane.flows is not None:
                    lane.flows.flush()

    def count(self) -> None:
        """Tell the taps what has passed."""
        for watched in (*self._before.values(), *self._watched.values()):
            watched.count()

    def samplers(self, flow: Flow) -> list[Sampler]:
        """Who chooses among the messages of a flow."""
        watched = self._watched.get(flow)
        return [] if watched is None else [tap.sampler for tap in watched.taps]

    def shows(self, flow: Flow, samplers: Sequence[Sampler]) -> bool:
        """Whether a message that is shown may be for a tap; ``samplers`` are all who choose now."""
        watched = self._watched.get(flow)
        if watched is None:
            return False
        if not watched.is_open:
            watched.hide(samplers)
            self.tapping.muted(watched)
        return watched.is_open

    # -- messages --------------------------------------------------------------------------------

    def published(self, channel: int, held: Held, verdict: Verdict, frame: memoryview) -> None:
        """A publish that was shown has passed, with this header frame."""
        watched = self._watched.get(held.flow)
        if watched is None or not held.weight:
            return
        header = _header_in(frame) if held.weight > 1 or watched.decision.reads_messages else None
        taps = self._choose(watched, held.weight, header, frame)
        if not taps:
            return
        told = self._told(channel, held.operation, verdict, held.method, _size_of(frame))
        decision = watched.decision
        if header is None or not decision.reads_messages:
            self._tell(taps, told)
            return
        operation = attrs.evolve(held.operation, content=content_of(header))
        if decision.level != "body" or not header.body_size:
            self._tell(taps, attrs.evolve(told, header=header, said=decision.record(operation)))
            return
        assert self._relay is not None, "it is on the data path"
        channels = self._relay.channels
        for other in list(self._readings):
            if other == channel or channels.due(Side.CLIENT, other) == METHOD_NEXT:
                # Its channel was closed meanwhile, and perhaps opened again.
                del self._readings[other]
        taken = sum(one.reading.wanted for one in self._readings.values())
        wanted = min(header.body_size, decision.max_body + BEYOND, READ_ALONG - taken)
        reading = Reading(decision, operation, kind_of(operation, verdict), wanted, header.body_size)
        self._readings[channel] = _Reading(reading, taps, attrs.evolve(told, header=header))
        channels.show_rest(Side.CLIENT, channel)

    def body(self, channel: int, frame: memoryview) -> None:
        """A body frame of the client's has passed."""
        one = self._readings.get(channel)
        if one is None or not one.reading.take(frame[7:-1]):
            return
        del self._readings[channel]
        body, reading = bytes(one.reading.octets), one.reading
        said = reading.decision.record(reading.operation, body)
        assert said is not None, "there is a level"
        is_cut = said.is_cut or len(body) < min(said.body_size or 0, reading.decision.max_body)
        self._tell(one.taps, attrs.evolve(one.told, said=attrs.evolve(said, is_cut=is_cut)))

    def arriving(
        self, channel: int, method: amqp.BasicDeliver, flow: Flow, weight: int, samplers: Sequence[Sampler]
    ) -> None:
        """A delivery that is shown; its header comes next."""
        self._arriving.pop(channel, None)
        if self.shows(flow, samplers) and weight:
            self._arriving[channel] = _Arriving(method, self._watched[flow], weight)

    def arrived(self, channel: int, frame: memoryview) -> None:
        """The header of a message to the client."""
        coming = self._arriving.pop(channel, None)
        if coming is None:
            return
        watched, header = coming.watched, _header_in(frame) if coming.weight > 1 else None
        taps = self._choose(watched, coming.weight, header, frame)
        if taps:
            operation = watched.operation
            assert operation.exchange is not None
            assert operation.routing_key is not None
            method = attrs.evolve(
                coming.method, exchange=operation.exchange, routing_key=operation.routing_key
            )
            self._tell(taps, self._told(channel, operation, UNRESTRICTED, method, _size_of(frame)))

    def _choose(
        self, watched: Watched, weight: int, header: ContentHeader | None, frame: memoryview
    ) -> list[Tap]:
        messages = weight
        if header is not None:
            messages = stands_for(weight, watched.flow, header, len(frame) - 8)
        return [tap for tap in watched.taps if tap.sampler.count(messages) and self.tapping.spend(tap)]

    # -- whatever else ---------------------------------------------------------------------------

    def opened(self) -> None:
        """The session has begun."""
        operation = Operation(self.principal, "connection.open")
        self._happened(0, operation, self._verdict(operation), None)

    def passed(self, channel: int, method: Method) -> None:
        """A method of the client's passes, which is no publish."""
        assert self._closes is not None, "it is on the data path"
        if isinstance(method, amqp.ChannelOpen):
            # Nothing of its last use.
            self._arriving.pop(channel, None)
            self._readings.pop(channel, None)
        state = self._closes.channels.get(channel)
        operation = operation_of(method, self.principal, "" if state is None else state.last_queue)
        operation = self._closes.told_apart(operation)
        self._happened(channel, operation, self._verdict(operation), method)

    def denied(
        self,
        channel: int,
        method: Method | None,
        operation: Operation,
        verdict: Verdict,
        frame: memoryview | None = None,
    ) -> None:
        """An operation is refused; of a publish whose header had to be seen, with that."""
        self._happened(channel, operation, verdict, method, None if frame is None else _size_of(frame))

    def unpassed(self, flow: Flow) -> None:
        """A publish that the data path has counted did not pass."""
        watched = self._watched.get(flow) or self._before.get(flow)
        if watched is not None:
            watched.uncount()

    def _happened(
        self,
        channel: int,
        operation: Operation,
        verdict: Verdict,
        method: Method | None,
        size: int | None = None,
    ) -> None:
        taps = () if self._decide(operation).is_silent else self._matching(operation, verdict)
        for tap in taps:
            tap.matched += 1
        taps = tuple(tap for tap in taps if self.tapping.spend(tap))
        if taps:
            self._tell(taps, self._told(channel, operation, verdict, method, size))

    # -- what is told ----------------------------------------------------------------------------

    def _told(
        self, channel: int, operation: Operation, verdict: Verdict, method: Method | None, size: int | None
    ) -> Told:
        return Told(time.time(), self.session, channel, operation, verdict, method, size)

    @staticmethod
    def _tell(taps: Sequence[Tap], told: Told) -> None:
        for tap in taps:
            tap.put(line_of(told, frames=tap.order.frames))

    def _verdict(self, operation: Operation) -> Verdict:
        """What has been said of an operation that passes."""
        return UNRESTRICTED if self.judging.is_free else self.judging.judges.enforced.decide(operation)

    def _decide(self, operation: Operation) -> AuditDecision:
        """How much of an operation may be told."""
        return NOT_AUDITED if self.audits is None else self.audits.decide(operation)

    def _matching(self, operation: Operation, verdict: Verdict) -> tuple[Tap, ...]:
        values = _known(self.principal) | {
            "operation": operation.name,
            "exchange": operation.exchange,
            "routing_key": operation.routing_key,
            "queue": operation.queue,
            "destination": operation.destination,
            "verdict": verdict.effect,
        }
        return tuple(tap for tap in self.taps if tap.order.match.holds(values))

    def _consumed(self, channel: int, tag: str) -> Operation | None:
        """What a consumer was asked for with, if that is known."""
        assert self._closes is not None, "it is on the data path"
        state = self._closes.channels.get(channel)
        consumer = None if state is None or state.consuming is None else state.consuming.tags.get(tag)
        return consumer.operations[0] if consumer is not None and len(consumer.operations) == 1 else None


def _known(principal: Principal) -> dict[str, str | None]:
    """What a match is told of a session."""
    return {"vhost": principal.vhost, "user": principal.user, "client": principal.source}


def _header_in(frame: memoryview) -> ContentHeader | None:
    """None where it cannot be read: the broker will say what is wrong with it."""
    try:
        return decode_header(frame[7:-1])
    except ProtocolViolation:
        return None


def _size_of(header: memoryview) -> int:
    """Octets of body, by the frame of its content header (AMQP 0-9-1, section 4.2.6.1)."""
    return int.from_bytes(header[11:19], "big")
