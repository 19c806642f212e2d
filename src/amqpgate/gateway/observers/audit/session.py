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

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Unpack

import attrs

from amqpgate.datapath.scanner import Channels, Flow, Meter
from amqpgate.datapath.tables import METHOD_NEXT, Show, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.observers.audit.channel import CHANGES, Change, ChannelAudit, Reading
from amqpgate.gateway.observers.audit.columns import TOO_LARGE, OperationKind, json_of, kind_of
from amqpgate.gateway.observers.audit.rows import Rows
from amqpgate.gateway.session.operation_limits import Happened, Report
from amqpgate.policy import (
    Choice,
    Operation,
    PolicySet,
    Principal,
    SessionAccess,
    SharedLimit,
    Verdict,
    denial_text,
)
from amqpgate.policy.engine.from_method import content_of, operation_of
from amqpgate.policy.engine.naming import Naming, NotTransformedError
from amqpgate.policy.kinds.audit import BEYOND, NOT_AUDITED, AuditDecision, SessionAudit
from amqpgate.records import EventKind, Origin
from amqpgate.telemetry.audit.rows import LARGEST, AuditRow, Columns
from amqpgate.telemetry.faults import contained
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.gateway.observers.audit.audit import AuditTrail
    from amqpgate.gateway.session.channel_close import SessionChannel
    from amqpgate.gateway.session.publish_refusal import HeldPublish

#: Octets of bodies that one session reads along at once; of what is more, less is recorded.
READ_ALONG: Final = 4 << 20

#: What is refused closes the connection, or would: 530 (AMQP 0-9-1, section 1.2).
_OF_CONNECTIONS: Final = frozenset({"connection.open", "connection.update-secret", "channel.open"})


@attrs.define(eq=False, weakref_slot=False)
class AuditObserver:
    """Of one session."""

    auditing: AuditTrail
    origin: Origin
    principal: Principal
    rows: Rows = attrs.field(init=False)
    #: None: no audit policy selects the session.
    audits: SessionAudit | None = attrs.field(default=None, init=False)
    #: What the policies have said of the method that is being dealt with.
    _judged: tuple[Verdict, Operation] | None = attrs.field(default=None, init=False)
    #: By channel.
    _readings: dict[int, Reading] = attrs.field(factory=dict, init=False)
    #: Told of limits, as this is.
    _report: Report = attrs.field(init=False)

    def follow(self, policies: PolicySet) -> None:
        """These policies hold from now on. What has been counted under others stays theirs."""
        self.rows = Rows(self.origin, policies.digest, self.auditing.book)
        self.audits = policies.audit_of(self.principal) if policies.audits else None

    @contained("audit", NOT_AUDITED)
    def decide(self, operation: Operation) -> AuditDecision:
        """How much of an operation is written down."""
        return NOT_AUDITED if self.audits is None else self.audits.decide(operation)

    # -- methods -----------------------------------------------------------------------------

    @contained("audit", None)
    def judged(
        self, verdict: Verdict, operation: Operation, method: Method, state: SessionChannel | None
    ) -> None:
        """The method may pass. It still may not, if something else is wrong with it."""
        if isinstance(method, amqp.BasicCancel) and state is not None:
            operation = attrs.evolve(operation, queue=_queue_of(state, method.consumer_tag))
        self._judged = verdict, operation

    @contained("audit", None)
    def passed(self, method: Method, state: SessionChannel | None) -> None:
        """The method that was judged last has passed."""
        assert self._judged is not None, "what passes has been judged"
        verdict, operation = self._judged
        self._judged = None
        kind = None
        if not self.decide(operation).is_silent:
            kind = kind_of(operation, verdict)
            self._count(kind)
        if state is None:
            return
        if method.INDEX in CHANGES:
            self._changed(_audit_of(state).asked(method, None if operation.passive else kind))

    @contained("audit", None)
    def answered(self, method: Method, state: SessionChannel | None) -> None:
        """The broker has said something; its names are the client's."""
        if state is None:
            return
        if isinstance(method, amqp.BasicCancel):
            kind = OperationKind(operation=method.NAME, queue=_queue_of(state, method.consumer_tag))
            self._changed(Change(0, kind, {"consumer_tag": method.consumer_tag, "by": "broker"}))
        elif state.audited is not None:
            self._changed(state.audited.answered(method))

    def _changed(self, change: Change | None) -> None:
        if change is not None and change.kind is not None:
            self._event("topology", change.kind, detail=json_of(change.detail))

    # -- messages ----------------------------------------------------------------------------

    @contained("audit", None)
    def meter(self, flow: Flow, verdict: Verdict, operation: Operation) -> None:
        """Count what passes by the flow."""
        decision = self.decide(operation)
        if not decision.is_silent:
            flow.meter = self.rows.meter(kind_of(operation, verdict))
        if decision.level == "body":
            flow.show = Show.BODY

    @contained("audit", None)
    def delivers(
        self,
        method: amqp.BasicDeliver | amqp.BasicGetOk | amqp.BasicReturn,
        state: SessionChannel | None,
        naming: Naming | None,
        queue: str | None = None,
    ) -> Meter | None:
        """Where messages to the client like this one are counted; ``queue`` is that of one that was got."""
        if isinstance(method, amqp.BasicDeliver):
            queue = None if state is None else _queue_of(state, method.consumer_tag)
        exchange, key = method.exchange, method.routing_key
        if naming is not None:
            exchange = naming.exchange_down(exchange)
            key = naming.key_down(exchange, key)
        return self.rows.meter(
            OperationKind(operation=method.NAME, exchange=exchange, routing_key=key, queue=queue)
        )

    @contained("audit", None)
    def released(
        self,
        held: HeldPublish,
        verdict: Verdict,
        header: ContentHeader | None,
        channels: Channels,
        number: int,
    ) -> None:
        """A publish that was held passes on channel ``number``; ``verdict`` is on its header."""
        meter, decision = held.flow.meter, held.audited
        if meter is not None and header is not None and not self._is_of(meter, verdict):
            # Not by the rule that allows those like it, or not any more.
            channels.count_as(Side.CLIENT, number, self.rows.meter(kind_of(held.operation, verdict)))
        if header is None or decision is None or not decision.reads_messages:
            return
        kind = kind_of(held.operation, verdict)
        operation = attrs.evolve(held.operation, content=content_of(header))
        if decision.level != "body" or not header.body_size:
            self._message(decision, operation, kind)
            return
        for other in list(self._readings):
            if other == number or channels.due(Side.CLIENT, other) == METHOD_NEXT:
                # Its channel was closed meanwhile, and perhaps opened again.
                del self._readings[other]
        wanted = min(header.body_size, decision.max_body + BEYOND)
        self._readings[number] = Reading(decision, operation, kind, wanted, header.body_size)

    @contained("audit", None)
    def body(self, number: int, frame: memoryview) -> None:
        """A body frame of the client's has passed on channel ``number``."""
        reading = self._readings.get(number)
        if reading is not None and reading.take(frame[7:-1], room_for(self._readings.values())):
            del self._readings[number]
            self._message(reading.decision, reading.operation, reading.kind, bytes(reading.octets))

    def _message(
        self, decision: AuditDecision, operation: Operation, kind: OperationKind, body: bytes | None = None
    ) -> None:
        said = decision.record(operation, body or b"")
        assert said is not None, "there is a level"
        is_cut = body is not None and len(body) < min(said.body_size or 0, decision.max_body)
        self._event(
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

    @contained("audit", None)
    def denied(self, verdict: Verdict, operation: Operation) -> None:
        """A policy refuses an operation."""
        if self.decide(operation).is_silent:
            return
        kind = kind_of(operation, verdict)
        self._count(kind)
        closes = operation.name != "basic.publish" or verdict.on_denied == "channel-close"
        code = 530 if operation.name in _OF_CONNECTIONS else 403
        self._event(
            "denied",
            kind,
            reply_code=code if closes else None,
            reason=denial_text(operation, verdict),
            body_size=None if operation.content is None else operation.content.body_size,
            detail=None if closes else json_of({"on_denied": verdict.on_denied}),
        )

    @contained("audit", None)
    def differs(self, verdict: Verdict, operation: Operation) -> None:
        """A policy that is not enforced would have decided so."""
        if not self.decide(operation).is_silent:
            self._event("shadow", kind_of(operation, verdict))

    @contained("audit", None)
    def not_transformed(self, method: Method, why: NotTransformedError) -> None:
        """A transform policy refuses what it cannot, or may not, change."""
        operation = self._judged[1] if self._judged is not None else None
        if operation is None or operation.name != method.NAME:
            operation = operation_of(method, self.principal, "")
        if self.decide(operation).is_silent:
            return
        kind = attrs.evolve(kind_of(operation, None), verdict="deny", rule="transform")
        self._count(kind)
        self._event("denied", kind, reply_code=why.code, reason=why.text)

    @contained("audit", None)
    def over_limit(self, operation: Operation, verdict: Verdict) -> None:
        """A limit refuses a message: that it did is told with all else that limits do."""
        if not self.decide(operation).is_silent:
            self._count(kind_of(operation, verdict))

    @contained("audit", None)
    def too_large(self, operation: Operation, size: int, why: str) -> None:
        """A message declares more bytes than ``limits.maxMessageBytes``."""
        if self.decide(operation).is_silent:
            return
        kind = kind_of(operation, TOO_LARGE)
        self._count(kind)
        self._event("denied", kind, reply_code=406, reason=why, body_size=min(size, LARGEST))

    @contained("audit", None)
    def limited(self, limit: SharedLimit, what: str) -> None:
        """A limit did something, or would have."""
        self.auditing.limits.note(self.origin, limit, what)

    # -- the session -------------------------------------------------------------------------

    @contained("audit", None)
    def opened(self, judges: SessionAccess, choice: Choice | None) -> None:
        """It has begun."""
        operation = Operation(self.principal, "connection.open")
        kind = kind_of(operation, judges.enforced.decide(operation))
        if not self.decide(operation).is_silent:
            self._count(kind)
        detail = None
        if choice is not None:
            detail = json_of({"route": f"{choice.policy}/{choice.route.id}", "upstream": choice.cluster})
        self._event("session.open", kind, detail=detail)

    @contained("audit", None)
    def closed(self, outcome: str, error: Exception | None) -> None:
        """It is over. Never waits: there is one for each session that has begun."""
        self.auditing.log.event(
            self.origin,
            "session.close",
            outcome=outcome,
            reply_code=error.code if isinstance(error, ProtocolViolation) else None,
            reason=None if error is None else str(error),
            policy_digest=self.rows.digest,
        )
        self.rows.clear()

    # -- told elsewhere as well --------------------------------------------------------------

    def reporting(self, report: Report) -> Report:
        """``report`` that is told of limits, and this."""
        # Every session has one, and no closure.
        self._report = report
        return self._reported

    def _reported(self, limit: SharedLimit, happened: Happened) -> None:
        self._report(limit, happened)
        self.limited(limit, happened.value)

    def refusing(
        self, report: Callable[[Method, NotTransformedError, Principal], None]
    ) -> Callable[[Method, NotTransformedError, Principal], None]:
        """``report`` that is told what a transform policy refuses, and this."""

        def told(method: Method, why: NotTransformedError, principal: Principal) -> None:
            report(method, why, principal)
            self.not_transformed(method, why)

        return told

    def _event(self, what: EventKind, kind: OperationKind, **columns: Unpack[Columns]) -> None:
        said: Columns = {**attrs.asdict(kind, recurse=False), **columns, "policy_digest": self.rows.digest}  # type: ignore[typeddict-item]
        self.auditing.log.event(self.origin, what, **said)

    def _count(self, kind: OperationKind) -> None:
        self.rows.meter(kind).count(1, 0, time.monotonic())

    def _is_of(self, meter: Meter, verdict: Verdict) -> bool:
        row = meter.row
        assert isinstance(row, AuditRow)
        return (row.policy, row.rule, row.policy_digest) == (verdict.policy, verdict.rule, self.rows.digest)


def room_for(readings: Iterable[Reading]) -> int:
    """Octets that a session may still keep of the bodies that it reads along."""
    return READ_ALONG - sum(len(reading.octets) for reading in readings)


def _audit_of(state: SessionChannel) -> ChannelAudit:
    if state.audited is None:
        state.audited = ChannelAudit()
    return state.audited


def _queue_of(state: SessionChannel, tag: str) -> str | None:
    """The queue of a consumer; None where it is not known."""
    consumer = None if state.consuming is None else state.consuming.tags.get(tag)
    queues = set() if consumer is None else {operation.queue for operation in consumer.operations}
    return queues.pop() if len(queues) == 1 else None
