"""The audit of one session: its usage by row, and its events.

::

    publish, deliver, get-ok, return ── the data path counts them by the meter of their flow
    other methods ───────────────────── counted here, when they pass
    what is refused ─────────────────── counted here, and an event each

Policies decide and the data path counts just as without it. Where an audit policy says `none` of an
operation, there is no record of it at all; what no rule speaks of is counted, so that the sums are those of
all else. Messages to clients are nobody's operation, and are always counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from amqpgate.datapath.captures import Captured
from amqpgate.datapath.scanner import Flow, Meter
from amqpgate.datapath.tables import METHOD_NEXT, Show, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.limits.sampler import Sampler
from amqpgate.gateway.observers.audit.channel import CHANGES, Change, ChannelAudit, Reading
from amqpgate.gateway.observers.audit.columns import OperationKind, json_of, kind_of
from amqpgate.gateway.observers.audit.messages import CapturedKind
from amqpgate.gateway.observers.audit.writer import PART, AuditWriter
from amqpgate.gateway.session.channel_close import SessionChannel
from amqpgate.gateway.session.compatibility import Adapted
from amqpgate.gateway.session.observer import Denial, Message, Release, Sees, Sent, SessionObserver
from amqpgate.gateway.session.operation_limits import Happened
from amqpgate.gateway.session.publish import size_of
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.session.session_policies import tell_used
from amqpgate.gateway.upstream.broker_side import BROKER_FRAME_MIN
from amqpgate.policy import Operation, Peek, PolicySet, SharedLimit, Verdict
from amqpgate.policy.engine.conditions import ALWAYS_PEEKED
from amqpgate.policy.engine.from_method import content_of, entries_of, operation_of
from amqpgate.policy.engine.naming import NotTransformedError
from amqpgate.policy.kinds.audit import AUDIT, BEYOND, AuditDecision
from amqpgate.telemetry.audit.rows import LARGEST, AuditRow
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Bytes of bodies that one session reads along at once; of what is more, less is recorded.
READ_ALONG: Final = 4 << 20


@attrs.define(eq=False, weakref_slot=False)
class AuditObserver(SessionObserver):
    """The audit of one session."""

    part = PART
    may_hold_up = True

    session: Session
    writer: AuditWriter
    #: What the policies have said last of an operation that they allow.
    _judged: tuple[Verdict, Operation] | None = attrs.field(default=None, init=False)
    #: By channel: what is written of a publish that waits for its header.
    _held: dict[int, AuditDecision] = attrs.field(factory=dict, init=False)
    _readings: dict[int, Reading] = attrs.field(factory=dict, init=False)
    #: Of channels that have asked the broker for a change.
    _channels: dict[int, ChannelAudit] = attrs.field(factory=dict, init=False)

    def follow(self, policies: PolicySet) -> None:
        """These policies hold from now on."""
        self.writer.follow(policies, self.session.principal)
        self._judged = None

    # -- methods -----------------------------------------------------------------------------

    def allowed(self, operation: Operation, verdict: Verdict) -> None:
        self._judged = verdict, operation

    def passed(self, channel: int, method: Method) -> None:
        verdict, operation = self._judgement(channel, method)
        self._judged = None
        state = self.session.channels.states.get(channel)
        if isinstance(method, amqp.BasicCancel) and state is not None:
            operation = attrs.evolve(operation, queue=_queue_of(state, method.consumer_tag))
        elif isinstance(method, amqp.BasicQos) and method.global_:
            # RabbitMQ 4 takes it for each consumer.
            operation = attrs.evolve(operation, arguments={"global": True})
        elif isinstance(method, amqp.QueueDelete) and (method.if_unused or method.if_empty):
            # Which a quorum queue does not know.
            said = {"if_unused": method.if_unused, "if_empty": method.if_empty}
            operation = attrs.evolve(
                operation, arguments={name: True for name, is_so in said.items() if is_so}
            )
        elif isinstance(method, amqp.ChannelOpen):
            self._leave(channel)
        kind = None
        decision = self._decide(operation)
        if not decision.is_silent:
            kind = kind_of(operation, verdict)
            self.writer.count(kind)
        if state is not None and method.INDEX in CHANGES:
            waiting = self._channels.setdefault(channel, ChannelAudit())
            self._changed(waiting.asked(method, None if operation.passive else kind))

    def _decide(self, operation: Operation, flow: Flow | None = None) -> AuditDecision:
        """How much is written down of a request, or of all messages of ``flow``; the rule is used."""
        decision = self.writer.decide(operation)
        if decision.policy is not None and decision.rule is not None:
            tell_used(self.session.session_policies, (AUDIT.name, decision.policy, decision.rule), flow)
        return decision

    def _judgement(self, channel: int, method: Method) -> tuple[Verdict, Operation]:
        """What the policies say of a method that is dealt with. Those that deny nothing were not asked."""
        if self._judged is not None and self._judged[1].name == method.NAME:
            return self._judged
        session = self.session
        state = session.channels.states.get(channel)
        operation = operation_of(method, session.principal, "" if state is None else state.last_queue)
        operation = session.channels.told_apart(operation)
        return session.session_policies.access.enforced.decide(operation), operation

    def answered(self, channel: int, method: Method) -> None:
        if isinstance(method, amqp.BasicCancel):
            state = self.session.channels.states.get(channel)
            if state is None:
                return
            kind = OperationKind(operation=method.NAME, queue=_queue_of(state, method.consumer_tag))
            self._changed(Change(0, kind, {"consumer_tag": method.consumer_tag, "by": "broker"}))
        elif channel in self._channels:
            for change in self._channels[channel].answered(method):
                self._changed(change)

    def _leave(self, channel: int) -> None:
        """The channel is over."""
        waiting = self._channels.pop(channel, None)
        for change in () if waiting is None else waiting.left():
            self._changed(change)

    def _changed(self, change: Change | None) -> None:
        if change is not None and change.kind is not None:
            self.writer.event("topology", change.kind, detail=json_of(change.detail))

    # -- messages ----------------------------------------------------------------------------

    def admits(self, message: Message) -> Peek | None:
        if message.operation is None:
            return None
        decision = self.writer.decide(message.operation)
        if decision.is_silent:
            return None
        # What a client of another version sends is not what is recorded. Of all, further keys are.
        is_shown = self.session.bridge is not None and decision.reads_messages
        return Peek(always=True) if is_shown else ALWAYS_PEEKED

    def meters(self, message: Message, flow: Flow) -> None:
        method, operation = message.method, message.operation
        if isinstance(method, amqp.BasicDeliver):
            state = self.session.channels.states.get(message.channel)
            queue = None if state is None else _queue_of(state, method.consumer_tag)
            flow.meter = self._meter_of(method, queue)
        elif operation is not None:
            decision = self._decide(operation, flow)
            if decision.is_silent:
                return
            kind = kind_of(operation, message.verdict)
            flow.meter = self.writer.rows.meter(kind)
            if decision.level == "body":
                flow.show = Show.BODY
            if decision.reads_messages and self.session.bridge is None:
                captured = CapturedKind.of(decision, kind, self.writer.rows.digest)
                flow.capture(PART, captured, decision.reads_body, self.writer.trail.gate)

    def came(
        self, channel: int, method: amqp.BasicGetOk | amqp.BasicReturn, queue: str | None, flow: Flow | None
    ) -> Flow | None:
        flow = flow or Flow()
        flow.meter = self._meter_of(method, queue)
        return flow

    def _meter_of(self, method: Sent, queue: str | None) -> Meter:
        """Where messages to the client like this one are counted."""
        exchange, key = method.exchange, method.routing_key
        rewriter = self.session.rewriter
        if rewriter is not None and rewriter.transform.naming is not None:
            exchange = rewriter.transform.naming.exchange_down(exchange)
            key = rewriter.transform.naming.key_down(exchange, key)
        return self.writer.rows.meter(
            OperationKind(operation=method.NAME, exchange=exchange, routing_key=key, queue=queue)
        )

    def shows(self, message: Message, flow: Flow, weight: int, samplers: Sequence[Sampler]) -> bool:
        if message.operation is None:
            return False
        decision = self._held[message.channel] = self.writer.decide(message.operation)
        return not decision.is_silent

    def released(self, release: Release, frames: bytes) -> bytes:
        held, verdict, header, number = release.held, release.verdict, release.header, release.channel
        meter, decision = held.flow.meter, self._held.pop(number, None)
        if header is None:
            return frames
        channels = self.session.relay.channels
        operation = attrs.evolve(held.operation, content=content_of(header))
        kind = kind_of(operation, verdict)
        if meter is not None and (kind.more_keys is not None or not self._is_of(meter, verdict)):
            # With further keys, or not by the rule that allows those like it, or not any more.
            channels.count_as(Side.CLIENT, number, self.writer.rows.meter(kind))
        if decision is None or not decision.reads_messages:
            return frames
        if decision.level != "body" or not header.body_size:
            self._message(decision, operation, kind)
            return frames
        for other in list(self._readings):
            if other == number or channels.due(Side.CLIENT, other) == METHOD_NEXT:
                # Its channel was closed meanwhile, and perhaps opened again.
                del self._readings[other]
        wanted = min(header.body_size, decision.max_body + BEYOND)
        self._readings[number] = Reading(decision, operation, kind, wanted, header.body_size)
        return frames

    def captured(self, side: Side, messages: Sequence[Captured]) -> None:
        self.writer.messages(messages)

    def content(self, side: Side, channel: int, frame: memoryview) -> bool:
        reading = self._readings.get(channel) if side is Side.CLIENT else None
        if reading is not None and reading.take(frame[7:-1], room_for(self._readings.values())):
            del self._readings[channel]
            self._message(reading.decision, reading.operation, reading.kind, bytes(reading.data))
        return False

    def _message(
        self, decision: AuditDecision, operation: Operation, kind: OperationKind, body: bytes | None = None
    ) -> None:
        said = decision.record(operation, body or b"")
        assert said is not None, "there is a level"
        is_cut = body is not None and len(body) < min(said.body_size or 0, decision.max_body)
        self.writer.event(
            "message",
            kind,
            body_size=said.body_size,
            properties=json_of(said.properties or {}),
            headers=json_of(said.headers or {}),
            body=said.body,
            body_cut=said.is_cut or is_cut,
            audit_policy=said.policy,
            audit_rule=said.rule,
        )

    # -- what is refused ---------------------------------------------------------------------

    def denied(self, denial: Denial) -> None:
        if self.writer.audits is not None:
            self._decide(denial.operation)
        self.writer.denied(denial.verdict, denial.operation, closes=denial.closes)

    def would_differ(self, operation: Operation, verdict: Verdict) -> None:
        if not self.writer.decide(operation).is_silent:
            self.writer.event("shadow", kind_of(operation, verdict))

    def not_transformed(self, channel: int, method: Method, why: NotTransformedError) -> None:
        _, operation = self._judgement(channel, method)
        if self.writer.decide(operation).is_silent:
            return
        kind = attrs.evolve(kind_of(operation, None), verdict="deny", rule="transform")
        self.writer.count(kind)
        self.writer.event("denied", kind, reply_code=why.code, reason=why.text)

    def adapted(self, channel: int, method: Method, policy: str, result: Adapted) -> None:
        if isinstance(method, amqp.BasicPublish):
            # Messages are counted by the metric; an event for each would be as many as there are.
            return
        verdict, operation = self._judgement(channel, method)
        if not self.writer.decide(operation).is_silent:
            changed = result.method
            said: dict[str, object] = {"policy": policy, "items": list(result.items)}
            if isinstance(changed, amqp.QueueDeclare):
                said |= {"durable": changed.durable, "arguments": entries_of(changed.arguments)}
                said["auto_delete"] = changed.auto_delete
            if result.left:
                said["left"] = result.left
            self.writer.event("adapted", kind_of(operation, verdict), detail=json_of(said))

    def rejected(self, denial: Denial) -> None:
        operation = denial.operation
        if self.writer.decide(operation).is_silent:
            return
        kind = kind_of(operation, denial.verdict)
        self.writer.count(kind)
        if denial.text and denial.header is not None:
            # What other limits do is told with their sums.
            size = min(size_of(denial.header), LARGEST)
            self.writer.event("denied", kind, reply_code=406, reason=denial.text, body_size=size)

    def limited(self, limit: SharedLimit, happened: Happened) -> None:
        self.writer.trail.limits.note(self.writer.origin, limit, happened.value)

    # -- the session -------------------------------------------------------------------------

    def sees(self) -> Sees:
        return Sees.PUBLISHES | Sees.DELIVERIES | Sees.CONTENT

    def holds_up(self, method: Method) -> bool:
        return not self.writer.trail.has_room(method)

    def opened(self) -> None:
        session, choice = self.session, self.session.facts.choice
        operation = Operation(session.principal, "connection.open")
        kind = kind_of(operation, session.session_policies.access.enforced.decide(operation))
        if not self.writer.decide(operation).is_silent:
            self.writer.count(kind)
        detail: dict[str, object] = {}
        if choice is not None:
            detail = {"route": f"{choice.policy}/{choice.route.id}", "upstream": choice.cluster}
        frame_max = session.relay.down.out_frame_max
        if frame_max < BROKER_FRAME_MIN:
            detail["frame_max"] = frame_max
        self.writer.event("session.open", kind, detail=json_of(detail) if detail else None)

    def ended(self) -> None:
        for channel in list(self._channels):
            self._leave(channel)

    def closed(self, outcome: str) -> None:
        # Never waits: there is one for each session that has begun.
        error = self.session.outcome.error
        self.writer.trail.log.event(
            self.writer.origin,
            "session.close",
            outcome=outcome,
            reply_code=error.code if isinstance(error, ProtocolViolation) else None,
            reason=None if error is None else str(error),
            policy_digest=self.writer.rows.digest,
        )
        self.writer.rows.clear()

    def _is_of(self, meter: Meter, verdict: Verdict) -> bool:
        row = meter.row
        assert isinstance(row, AuditRow)
        digest = self.writer.rows.digest
        return (row.policy, row.rule, row.policy_digest) == (verdict.policy, verdict.rule, digest)


def room_for(readings: Iterable[Reading]) -> int:
    """Bytes that a session may still keep of the bodies that it reads along."""
    return READ_ALONG - sum(len(reading.data) for reading in readings)


def _queue_of(state: SessionChannel, tag: str) -> str | None:
    """The queue of a consumer; None where it is not known."""
    consumer = None if state.consuming is None else state.consuming.tags.get(tag)
    queues = set() if consumer is None else {operation.queue for operation in consumer.operations}
    return queues.pop() if len(queues) == 1 else None
