"""Which policies hold for one session now, and what they say of its operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import attrs

from amqpgate.datapath.scanner import Flow
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.limits.sampler import Sampler, Sampling
from amqpgate.gateway.limits.token_buckets import SessionLimits
from amqpgate.gateway.observers.audit.session import AuditObserver
from amqpgate.gateway.observers.mirror.copier import Copier, Feed
from amqpgate.gateway.observers.stats.bindings import Bindings
from amqpgate.gateway.session.rewriter import Rewriter
from amqpgate.policy import Operation, Peek, Principal, SessionAccess, TraceDecision, Verdict, denial_text
from amqpgate.policy.engine.taps import DELIVER
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.gateway.observers.tap.session import TapObserver
    from amqpgate.gateway.observers.trace.session import TraceObserver


class Hearing(Protocol):
    """Who is told of decisions, by the session's id."""

    @property
    def bindings(self) -> Bindings:
        """Told of what becomes of bindings."""

    def allowed(self, verdict: Verdict) -> None:
        """A policy allows an operation."""

    def denied(self, verdict: Verdict, operation: Operation, session: str) -> None:
        """A policy refuses one."""

    def would_differ(self, verdict: Verdict, operation: Operation, session: str) -> None:
        """A policy that is not enforced would have decided so."""


@attrs.define(eq=False, weakref_slot=False)
class SessionPolicies:
    """Of one session. What it holds changes in place when the policies do."""

    principal: Principal
    judges: SessionAccess
    throttle: SessionLimits
    #: None: no transform policy selects the session.
    rewriter: Rewriter | None
    #: Told of what is decided.
    reports: Hearing
    #: The session's id.
    session: str
    #: None: no mirror has got anything of the session yet.
    copier: Copier | None = None
    #: None: there are no audit records.
    auditor: AuditObserver | None = None
    #: None: nothing of the session has been traced yet.
    traces: TraceObserver | None = None
    #: None: nobody has chosen among its messages yet.
    sampling: Sampling | None = None
    #: None: nobody taps it.
    tapper: TapObserver | None = None

    @property
    def is_free(self) -> bool:
        """Whether no policy would refuse the session anything, not even for show."""
        return self.judges.enforced.unrestricted and self.judges.shadow is None

    @property
    def is_restricted(self) -> bool:
        """Whether there is any publish that may not pass, or not at once, or not only to the broker."""
        changes = self.rewriter is not None and self.rewriter.transform.changes_messages
        is_sampled = self.is_copied or self.traces_messages("basic.publish") or self.taps("basic.publish")
        return self.throttle.limits_publishes or not self.is_free or changes or is_sampled

    @property
    def is_copied(self) -> bool:
        """Whether a mirror gets some of what is published."""
        return self.copier is not None and self.copier.feed is not None

    def traces_messages(self, operation: str) -> bool:
        """Whether some of the messages are traced that this operation publishes, or asks for."""
        return self.traces is not None and self.traces.is_about(operation)

    def taps(self, operation: str) -> bool:
        """Whether somebody taps such messages."""
        return self.tapper is not None and self.tapper.scope.is_about(operation)

    def enlist(self, flow: Flow, samplers: Sequence[Sampler]) -> None:
        """A flow is about to be installed, among whose messages these choose."""
        if samplers:
            self.sampling = self.sampling or Sampling()
            self.sampling.enlist(flow, samplers)

    def weigh(self, flow: Flow, samplers: Sequence[Sampler]) -> int:
        """How many messages the one that is being shown stands for; 0: nobody chooses among them."""
        return 0 if self.sampling is None else self.sampling.weigh(flow, samplers)

    def samplers(self, exchange: str | None, decision: TraceDecision | None, flow: Flow) -> list[Sampler]:
        """Who chooses among a flow's messages to an exchange (of deliveries: None), or with this decision."""
        found: list[Sampler | None] = [] if self.tapper is None else [*self.tapper.watches.samplers(flow)]
        if self.copier is not None and exchange is not None:
            found.append(self.copier.sampler(exchange))
        if self.traces is not None and decision is not None:
            found.append(self.traces.tracing.sampler(decision))
        return [sampler for sampler in found if sampler is not None and sampler.every]

    def follow(self, feed: Feed | None) -> None:
        """Copies go there from now on; those under way end where they began."""
        if self.copier is not None:
            self.copier.feed = feed
        elif feed is not None:
            self.copier = Copier(feed)

    @property
    def judges_deliveries(self) -> bool:
        """Whether there is any delivery that may have to wait, or to be changed."""
        renames = self.rewriter is not None and self.rewriter.transform.naming is not None
        is_sampled = self.traces_messages("basic.consume") or self.taps(DELIVER)
        return self.throttle.limits_deliveries or renames or is_sampled

    def judge(self, operation: Operation) -> Verdict:
        """What is decided of it; who is to hear of that is told."""
        verdict = self.judges.enforced.decide(operation)
        if verdict.allowed:
            self.reports.allowed(verdict)
        else:
            self.denied(verdict, operation)
        if self.judges.shadow is not None:
            shadow = self.judges.shadow.decide(operation)
            if shadow.effect != verdict.effect:
                self.reports.would_differ(shadow, operation, self.session)
                if self.auditor is not None:
                    self.auditor.differs(shadow, operation)
        return verdict

    def denied(self, verdict: Verdict, operation: Operation) -> None:
        """An operation is refused."""
        self.reports.denied(verdict, operation, self.session)
        if self.auditor is not None:
            self.auditor.denied(verdict, operation)

    def admit(self, operation: Operation) -> tuple[Verdict, Peek | None]:
        """Whether publishes with these arguments may pass, and which of them must be judged one by one."""
        admission = self.judges.enforced.admit(operation)
        peek = admission.peek
        if admission.verdict.allowed:
            self.reports.allowed(admission.verdict)
        if admission.verdict.allowed and self.judges.shadow is not None:
            # What would be refused, or only might be, is judged message by message, and so counted.
            shadow = self.judges.shadow.admit(operation)
            peek = (peek or Peek()) | (shadow.peek or Peek(always=not shadow.verdict.allowed))
        return admission.verdict, peek


def denial(channel: int, method: Method, verdict: Verdict, operation: Operation) -> ProtocolViolation:
    """What a client hears whose operation is refused."""
    return ProtocolViolation(
        403,
        denial_text(operation, verdict),
        class_id=method.CLASS_ID,
        method_id=method.METHOD_ID,
        channel=channel,
    )
