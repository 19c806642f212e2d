"""What operators hear of sessions: in the log, and in the metrics."""

from __future__ import annotations

import logging

import attrs

from amqpgate.datapath.relay import End
from amqpgate.datapath.tables import Side
from amqpgate.errors import OverLimit, UpstreamLost
from amqpgate.gateway.rations import Happened
from amqpgate.gateway.session import Session
from amqpgate.policy import Operation, Principal, SharedLimit, Verdict
from amqpgate.policy.naming import NotTransformedError
from amqpgate.telemetry.metrics import Metrics
from amqpgate.wire.method import Method

log = logging.getLogger(__name__)


@attrs.define(eq=False)
class Reports:
    """Of one gateway."""

    metrics: Metrics

    def denied(self, verdict: Verdict, operation: Operation) -> None:
        """A policy refuses an operation."""
        self.metrics.denied(verdict.policy or "", verdict.rule)
        log.info(
            "denied: %s by %s/%s: user %r, vhost %r, exchange %r, routing key %r, queue %r",
            operation.name,
            verdict.policy or "-",
            verdict.rule,
            operation.principal.user,
            operation.principal.vhost,
            operation.exchange,
            operation.routing_key,
            operation.queue,
        )

    def would_differ(self, verdict: Verdict, operation: Operation) -> None:
        """A policy that is not enforced would have decided so."""
        self.metrics.would_differ(verdict.policy or "", verdict.rule, verdict.effect)
        log.debug("shadow: %s of %s by %s", verdict.effect, operation.name, verdict.name)

    def not_transformed(self, method: Method, why: NotTransformedError, principal: Principal) -> None:
        """A transform policy refuses what it cannot, or may not, change."""
        self.metrics.not_transformed(method.NAME)
        log.info(
            "not transformed: %s: %s: user %r, vhost %r", method.NAME, why, principal.user, principal.vhost
        )

    def limited(self, limit: SharedLimit, happened: Happened) -> None:
        """A limit did something, or would have."""
        self.metrics.limited(limit.policy, limit.limit, happened.value, enforced=limit.enforced)

    def waited(self, limit: SharedLimit) -> None:
        """A session has waited a second for a limit."""
        self.metrics.waited(limit.policy, limit.limit)


def outcome_of(session: Session) -> str:
    """How a session ended: the metric's label."""
    outcome = session.outcome
    if isinstance(outcome.error, OverLimit):
        return "over_limit"
    if isinstance(outcome.error, UpstreamLost):
        return "upstream_gone"
    if session.violated:
        return "violation"
    if outcome.end in (End.GONE, End.SILENT) and outcome.side is not None:
        return f"{'client' if outcome.side is Side.CLIENT else 'upstream'}_{outcome.end.value}"
    if outcome.end is End.FAILED:
        return "failed"
    return "closed" if session.agreed else "drained"


def detail(session: Session) -> str:
    """Why, for the log."""
    return f" ({session.outcome.error})" if session.outcome.error is not None else ""
