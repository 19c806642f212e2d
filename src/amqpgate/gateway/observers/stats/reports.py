"""What operators hear of sessions: in the log, and in the metrics."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Final

import attrs

from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.observers.stats.bindings import Bindings
from amqpgate.gateway.observers.stats.decisions import Decisions
from amqpgate.gateway.observers.stats.denial_log import DenialLog
from amqpgate.gateway.observers.stats.edges import PastEdges
from amqpgate.gateway.observers.stats.labelled import LabelledTotals
from amqpgate.gateway.session.operation_limits import Happened
from amqpgate.gateway.session.session import Session
from amqpgate.logs import about, without_passwords
from amqpgate.policy import DENIED, DENIED_CONNECTIONS, Operation, Principal, SharedLimit, Verdict
from amqpgate.policy.engine.naming import NotTransformedError
from amqpgate.policy.kinds.compatibility import COMPATIBILITY
from amqpgate.telemetry.answers import JSON
from amqpgate.telemetry.faults import contained
from amqpgate.telemetry.metrics import Metrics
from amqpgate.values import define
from amqpgate.wire.method import Method

log = logging.getLogger(__name__)

#: W3C Trace Context, version 00.
_TRACEPARENT: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}", re.ASCII)


@define(eq=False)
class Reports:
    """Of one gateway."""

    metrics: Metrics
    decisions: Decisions
    bindings: Bindings
    #: None: the settings ask for no labels.
    labelled: LabelledTotals | None = None
    lines: DenialLog = attrs.field(factory=DenialLog, init=False)
    #: From whom to whom sessions had passed what that are over, while somebody looks.
    past: PastEdges = attrs.field(factory=PastEdges, init=False)

    @contained("decisions", None)
    def allowed(self, verdict: Verdict) -> None:
        """A policy allows an operation."""
        if verdict.policy is not None:
            self.decisions.allowed(verdict)

    @contained("decisions", None)
    def denied(
        self,
        verdict: Verdict,
        operation: Operation,
        session: str,
        text: str,
        *,
        closes: bool = True,
        upstream: str | None = None,
    ) -> None:
        """A policy denies one; ``text`` is what the client reads, ``upstream`` the cluster's name, and
        ``closes`` whether its channel, or its connection, is closed for it."""
        self.metrics.denied(verdict.policy or "", verdict.rule)
        self.decisions.denied(verdict, operation, session, text)
        if not self.lines.has_line(time.monotonic(), verdict.name, operation.principal.user):
            return
        code = None
        if closes or verdict.on_denied == "return":
            code = DENIED_CONNECTIONS.get(operation.name, DENIED)
        named = zip(_OBJECTS, _objects(operation), strict=True)
        log.info(
            "denied: %s by %s/%s: user %r, vhost %r%s%s",
            operation.name,
            verdict.policy or "-",
            verdict.rule,
            operation.principal.user,
            operation.principal.vhost,
            "".join([f", {what} {name!r}" for what, name in named if name is not None]),
            "" if verdict.about is None else _leading(verdict.about),
            extra=_about(operation, verdict, session, code, upstream),
        )

    @contained("decisions", None)
    def would_differ(self, verdict: Verdict, operation: Operation, session: str) -> None:
        """A policy that is not enforced would have decided so."""
        self.metrics.would_differ(verdict.policy or "", verdict.rule, verdict.effect)
        self.decisions.would_differ(verdict, operation, session)
        if log.isEnabledFor(logging.DEBUG):
            how = _about(operation, verdict, session)
            log.debug("shadow: %s of %s by %s", verdict.effect, operation.name, verdict.name, extra=how)

    @contained("decisions", None)
    def adapted(self, policy: str, items: Iterable[str]) -> None:
        """A compatibility policy changes a request so."""
        for item in items:
            self.metrics.adapted(policy, item)
            self.decisions.used((COMPATIBILITY.name, policy, item))

    def not_transformed(self, method: Method, why: NotTransformedError, principal: Principal) -> None:
        """A transform policy refuses what it cannot, or may not, change."""
        self.metrics.not_transformed(method.NAME)
        self.decisions.not_transformed(method.NAME, principal, str(why))
        if self.lines.has_line(time.monotonic(), "transform", principal.user):
            log.info(
                "not transformed: %s: %s: user %r, vhost %r",
                method.NAME,
                why,
                principal.user,
                principal.vhost,
                extra=about(
                    operation=method.NAME, user=principal.user, vhost=principal.vhost, reply_code=why.code
                ),
            )

    @contained("decisions", None)
    def opened(self, session: Session, address: str, upstream: str) -> None:
        """A session is established; ``address`` is the client's, ``upstream`` the cluster's name."""
        principal = session.session_policies.principal
        if log.isEnabledFor(logging.DEBUG):
            log.debug(
                "session %s open: %s, user %r%s, vhost %r, %s to %s",
                session.id,
                address,
                principal.user,
                "" if principal.upstream_user == principal.user else f" as {principal.upstream_user!r}",
                principal.vhost,
                *(interpreter.version for interpreter in session.facts.interpreters),
                extra=_of(session, address, upstream=upstream),
            )
        where: dict[str, JSON] = {"client": address, "listener": principal.listener, "upstream": upstream}
        self._news("session.opened", session, **where, upstream_user=principal.upstream_user)

    @contained("decisions", None)
    def over(self, session: Session, why: str, address: str | None, seconds: float) -> None:
        """A session and its sockets are gone. It was of the client at ``address``, and took ``seconds``."""
        error = session.outcome.error
        if log.isEnabledFor(logging.INFO):
            # The one line that a session has in the log, unless that tells everything.
            principal, relay = session.principal, session.relay
            log.info(
                "session %s over: %s%s: %s, user %r, vhost %r, %.1f s, "
                "published %d messages (%d bytes), delivered %d (%d bytes)",
                session.id,
                why,
                detail(session),
                address,
                principal.user,
                principal.vhost,
                seconds,
                relay.up.messages,
                relay.up.body_bytes,
                relay.down.messages,
                relay.down.body_bytes,
                extra=_of(
                    session,
                    address,
                    upstream=session.facts.cluster or None,
                    reply_code=error.code if isinstance(error, ProtocolViolation) else None,
                ),
            )
        if self.decisions.events.listeners:
            client, text = session.principal.source, None if error is None else without_passwords(str(error))
            self._news("session.closed", session, client=client, why=why, error=text)

    def _news(self, event: str, session: Session, **what: JSON) -> None:
        principal, events = session.principal, self.decisions.events
        events.tell(event, session=session.id, user=principal.user, vhost=principal.vhost, **what)

    def limited(self, limit: SharedLimit, happened: Happened) -> None:
        """A limit did something, or would have; or a session has waited a second for it."""
        if happened is Happened.WAITED:
            self.metrics.waited(limit.policy, limit.limit)
        else:
            self.metrics.limited(limit.policy, limit.limit, happened.value, enforced=limit.enforced)
        self.decisions.limited(limit)


#: What an operation is about, of what it has.
_OBJECTS: Final = ("exchange", "destination", "routing key", "queue")
_objects: Final = attrgetter("exchange", "destination", "routing_key", "queue")


def _about(
    operation: Operation,
    verdict: Verdict,
    session: str,
    reply_code: int | None = None,
    upstream: str | None = None,
) -> Mapping[str, object]:
    """What a decision is about, for the log."""
    principal, content = operation.principal, operation.content
    parent = None if content is None else _TRACEPARENT.fullmatch(str(content.headers.get("traceparent")))
    return about(
        trace_id=None if parent is None else parent[1],
        span_id=None if parent is None else parent[2],
        session=session,
        client=principal.source,
        user=principal.user,
        vhost=principal.vhost,
        listener=principal.listener,
        upstream=upstream,
        operation=operation.name,
        exchange=operation.exchange,
        routing_key=operation.routing_key,
        queue=operation.queue,
        policy=verdict.policy,
        rule=verdict.rule,
        reply_code=reply_code,
    )


def _of(
    session: Session, address: str | None, *, upstream: str | None = None, reply_code: int | None = None
) -> Mapping[str, object]:
    """What a session is, for the log."""
    principal = session.principal
    return about(
        session=session.id,
        client=address,
        user=principal.user,
        vhost=principal.vhost,
        listener=principal.listener,
        upstream=upstream,
        reply_code=reply_code,
    )


def _leading(operation: Operation) -> str:
    """What an operation would have led to, where that is what is denied."""
    key = "any routing key" if operation.any_key else f"routing key {operation.routing_key!r}"
    where = "several exchanges" if operation.exchange is None else f"exchange {operation.exchange!r}"
    return f"; it leads to {operation.name}: {where}, {key}"


def detail(session: Session) -> str:
    """Why, for the log."""
    return f" ({session.outcome.error})" if session.outcome.error is not None else ""
