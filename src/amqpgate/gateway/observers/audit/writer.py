"""What is written of one session, or of a connection that did not become one: events, and usage by row."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, Protocol, Unpack

import attrs

from amqpgate.datapath.captures import Captured
from amqpgate.datapath.scanner import CaptureGate, Meter
from amqpgate.gateway.observers.audit.columns import OperationKind, json_of, kind_of, token_of
from amqpgate.gateway.observers.audit.limits import LimitCounts
from amqpgate.gateway.observers.audit.messages import CapturedKind
from amqpgate.gateway.observers.audit.rows import Rows
from amqpgate.policy import (
    DENIED,
    DENIED_CONNECTIONS,
    Operation,
    PolicySet,
    Principal,
    Verdict,
    denial_text,
)
from amqpgate.policy.kinds.audit import NOT_AUDITED, AuditDecision, SessionAudit
from amqpgate.records import EventKind, Origin
from amqpgate.telemetry.audit.log import AuditLog
from amqpgate.telemetry.audit.messages import WaitingMessages
from amqpgate.telemetry.audit.rows import Columns
from amqpgate.wire.method import Method

PART: Final = "audit"


class Trail(Protocol):
    """Where it is written."""

    @property
    def log(self) -> AuditLog:
        """Takes events."""

    @property
    def book(self) -> list[Meter]:
        """Where meters put themselves that have counted."""

    @property
    def limits(self) -> LimitCounts:
        """What limits have done."""

    @property
    def gate(self) -> CaptureGate:
        """Open while there is room for messages that the data path captures."""

    def has_room(self, method: Method) -> bool:
        """Whether a client's method may be dealt with now."""

    def messages(self, waiting: WaitingMessages) -> None:
        """Record messages that were captured, and shut the gate where that was all there was room for."""


@attrs.define(eq=False, weakref_slot=False)
class AuditWriter:
    """Of one session or connection. Where an audit policy says so, it writes nothing of an operation."""

    trail: Trail
    origin: Origin
    principal: Principal
    rows: Rows = attrs.field(init=False)
    #: None: no audit policy selects the session.
    audits: SessionAudit | None = attrs.field(default=None, init=False)

    def follow(self, policies: PolicySet, principal: Principal | None = None) -> None:
        """These policies hold from now on, and for this principal. What has been counted under others stays
        theirs."""
        if principal is not None and principal is not self.principal:
            self.principal = principal
            self.origin = attrs.evolve(self.origin, token=token_of(principal))
        self.rows = Rows(self.origin, policies.digest, self.trail.book)
        self.audits = policies.audit_of(self.principal) if policies.audits else None

    def decide(self, operation: Operation) -> AuditDecision:
        """How much of an operation is written down."""
        return NOT_AUDITED if self.audits is None else self.audits.decide(operation)

    def denied(self, verdict: Verdict, operation: Operation, *, closes: bool = True) -> None:
        """A policy denies an operation; ``closes``: the client's channel, or its connection."""
        if self.decide(operation).is_silent:
            return
        kind = kind_of(operation, verdict)
        self.count(kind)
        self.event(
            "denied",
            kind,
            reply_code=DENIED_CONNECTIONS.get(operation.name, DENIED) if closes else None,
            reason=denial_text(operation, verdict),
            body_size=None if operation.content is None else operation.content.body_size,
            detail=None if closes else json_of({"on_denied": verdict.on_denied}),
        )

    def event(self, what: EventKind, kind: OperationKind, **columns: Unpack[Columns]) -> None:
        """Write an event of an operation."""
        said: Columns = {**attrs.asdict(kind, recurse=False), **columns, "policy_digest": self.rows.digest}  # type: ignore[typeddict-item]
        self.trail.log.event(self.origin, what, **said)

    def messages(self, messages: Sequence[Captured]) -> None:
        """Write an event of each message that is recorded."""
        recorded: list[tuple[CapturedKind, bytes, bytes]] = []
        byte_count = 0
        for flow, _, header, body, _ in messages:
            kind = None if flow.notes is None else flow.notes.get(PART)
            if isinstance(kind, CapturedKind):
                recorded.append((kind, header, body))
                byte_count += kind.byte_count + 2 * len(header) + len(body)
        self.trail.messages(WaitingMessages(self.origin, time.time(), recorded, byte_count))

    def count(self, kind: OperationKind) -> None:
        """Count one request."""
        self.rows.meter(kind).count(1, 0, time.monotonic())
