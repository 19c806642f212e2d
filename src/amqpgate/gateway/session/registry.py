"""The established sessions of a gateway: put on the data path, judged by other policies, and forgotten."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs
import trio

from amqpgate.config import Settings
from amqpgate.datapath.engine import Pump
from amqpgate.datapath.relay import End
from amqpgate.datapath.scanner import FlowTable
from amqpgate.datapath.tables import Side
from amqpgate.errors import Forced, ProtocolViolation
from amqpgate.gateway.limits.token_buckets import SessionLimits, TokenBuckets
from amqpgate.gateway.observers.audit.audit import AuditTrail
from amqpgate.gateway.observers.audit.session import AuditObserver
from amqpgate.gateway.observers.mirror.registry import MirrorRegistry
from amqpgate.gateway.observers.stats.reports import Reports, outcome_of
from amqpgate.gateway.observers.stats.totals import SessionTotals
from amqpgate.gateway.observers.tap.session import TapObserver
from amqpgate.gateway.observers.tap.taps import TapRegistry
from amqpgate.gateway.session.blocked_notices import BlockedNotice
from amqpgate.gateway.session.close_session import ForcedCloses
from amqpgate.gateway.session.established import Established
from amqpgate.gateway.session.operation_limits import Report
from amqpgate.gateway.session.policy_compiling import PolicyCompiler
from amqpgate.gateway.session.rewriter import Rewriter
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.session.session_policies import SessionPolicies
from amqpgate.gateway.session.teardown import part
from amqpgate.policy import Judges, PolicySet, Principal, SessionRefusedError, Transform
from amqpgate.telemetry.faults import contained

if TYPE_CHECKING:
    from amqpgate.gateway.observers.trace.tracer import Tracer

log = logging.getLogger(__name__)


@attrs.define(eq=False)
class SessionRegistry:
    """Of one gateway."""

    settings: Settings
    pump: Pump
    throttles: TokenBuckets
    reports: Reports
    #: Called with the outcome when a session and its sockets are gone.
    on_gone: Callable[[str], None]
    #: Called with a session whose broker is gone.
    on_lost: Callable[[Session], None]
    #: By session id.
    live: dict[str, Session]
    #: What those passed that are over.
    ended: SessionTotals
    mirrors: MirrorRegistry
    tapping: TapRegistry
    #: None: there are no audit records.
    auditing: AuditTrail | None = None
    #: None: nothing is traced.
    tracing: Tracer | None = None
    #: Where tear-downs run; None while nothing may be started: then sockets close without a word.
    tasks: trio.Nursery | None = attrs.field(default=None, init=False)
    _dismissing: ForcedCloses = attrs.field(init=False)
    # A bound method is an object: these are made once, and not for each session.
    _limited: Report = attrs.field(init=False)
    _on_over: Callable[[Session], None] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._limited, self._on_over = self.reports.limited, self._left
        self._dismissing = ForcedCloses(self.settings.limits)

    def establish(self, session_id: str, established: Established, policies: PolicySet) -> Session:
        """Put a session on the data path. Raises ``SessionRefusedError`` where its policies contradict."""
        principal = established.principal
        transform = policies.transform_for(principal)
        auditor = None
        if self.auditing is not None:
            auditor = self.auditing.auditor(session_id, principal, policies)
        judging = SessionPolicies(
            principal,
            policies.judges_of(principal, session_id),
            self._throttle_for(policies, principal, session_id),
            self._rewriter(transform, principal, auditor) if transform is not None else None,
            self.reports,
            session_id,
            auditor=auditor,
        )
        if self.tapping.taps:
            judging.tapper = TapObserver.of(self.tapping, session_id, judging, policies)
        judging.follow(self.mirrors.feed(established.choice, principal, session_id))
        if self.tracing is not None:
            judging.traces = self.tracing.session(policies, principal, session_id, established.upstream.sock)
        session = Session(
            session_id,
            judging,
            established.interpreters,
            established.channel_max,
            self._on_over,
            self._limited if auditor is None else auditor.reporting(self._limited),
            "consumer_cancel_notify" in established.capabilities,
            established.choice,
            BlockedNotice("connection.blocked" in established.capabilities),
            established.keeps_deliveries,
        )
        largest = self.settings.largest_frame
        flows = FlowTable() if judging.is_restricted else None
        upstream = established.upstream.connect(session, established.client, flows, largest)
        upstream.relay.up.most_body = self.settings.limits.max_message_bytes
        self.live[session.id] = session
        session.enter(upstream, self.pump)
        if auditor is not None:
            auditor.opened(judging.judges, established.choice)
        if judging.tapper is not None:
            judging.tapper.opened()
        return session

    def _rewriter(
        self, transform: Transform, principal: Principal, auditor: AuditObserver | None
    ) -> Rewriter:
        refused = self.reports.not_transformed
        return Rewriter(transform, principal, refused if auditor is None else auditor.refusing(refused))

    def finish(self) -> None:
        """End all of them."""
        for session in list(self.live.values()):
            session.relay.finish()

    def dismiss(self, session: Session, why: Forced, *, now: bool) -> None:
        """An operator ends it: when it is owed nothing, or ``now``."""
        if not session.relay.active:
            return
        if now or self.tasks is None:
            session.fail(why)
        elif self._dismissing.dismiss(session, why):
            self.tasks.start_soon(self._dismissing.run)

    def granted(self) -> None:
        """Who waits for a limit that is shared may look again."""
        for session in list(self.live.values()):
            if any(limit.shared for limit in session.throttle.limits):
                self.pump.retry(session.relay)

    # -- other policies -----------------------------------------------------------------------

    async def prepare(self, policies: PolicySet, compiling: PolicyCompiler) -> dict[str, Judges]:
        """Compile policies for each of them, off the data path's thread: who would judge them, by their ids.

        Of all that there are when it returns.
        """
        judges: dict[str, Judges] = {}
        while missing := {name: one.principal for name, one in self.live.items() if name not in judges}:

            def compile_all(missing: dict[str, Principal] = missing) -> dict[str, Judges]:
                return {name: policies.prepare(principal, name) for name, principal in missing.items()}

            judges |= await compiling.run(compile_all)
        return judges

    def judges_under(self, policies: PolicySet, prepared: Mapping[str, Judges]) -> list[Judges]:
        """Who would judge each of them. What may fail of putting other policies in force fails here."""
        return [
            prepared.get(session.id) or policies.judges_of(session.principal, session.id)
            for session in self.live.values()
        ]

    def use(self, policies: PolicySet, judges: list[Judges]) -> None:
        """Put them in force; ``judges`` is what ``judges_under`` has just given."""
        for session, its_own in zip(list(self.live.values()), judges, strict=True):
            if session.judging.auditor is not None:
                session.judging.auditor.follow(policies)
            self._retransform(session, policies)
            session.judging.follow(self.mirrors.feed(session.choice, session.principal, session.id))
            self._retrace(session, policies)
            if session.judging.tapper is not None:
                # None where that fails: what other policies keep from taps must not be shown.
                session.judging.tapper = TapObserver.of(self.tapping, session.id, session.judging, policies)
            before = session.throttle
            session.judge_by(its_own, self._throttle_for(policies, session.principal, session.id))
            self.throttles.give_back(before, time.monotonic())
        waiting = [session for session in self.live.values() if session.consumers.is_overdue]
        if waiting and self.tasks is not None:
            self.tasks.start_soon(self._insist, waiting)

    def _throttle_for(self, policies: PolicySet, principal: Principal, session: str) -> SessionLimits:
        return self.throttles.take(policies.limits_for(principal, session), time.monotonic())

    def _retransform(self, session: Session, policies: PolicySet) -> None:
        try:
            transform = policies.transform_for(session.principal)
        except SessionRefusedError as error:
            log.warning("session %s keeps its transform: %s", session.id, error)
            return
        if session.rewriter is not None:
            session.rewriter.follow(transform)
        elif transform is not None:
            nameless = attrs.evolve(transform, naming=None)
            rewriter = self._rewriter(nameless, session.principal, session.judging.auditor)
            rewriter.enter(session.relay)
            session.judging.rewriter = rewriter

    @contained("traces", None)
    def _retrace(self, session: Session, policies: PolicySet) -> None:
        judging = session.judging
        if judging.traces is not None:
            judging.traces.rules = policies.traces_of(session.principal)
        elif self.tracing is not None:
            broker = session.relay.endpoints[Side.UPSTREAM].sock
            judging.traces = self.tracing.session(policies, session.principal, session.id, broker)
            if judging.traces is not None:
                judging.traces.enter(session.relay, session.closes)

    def retap(self, policies: PolicySet) -> None:
        """The taps are others; ``policies`` are those in force."""
        for session in list(self.live.values()):
            before = session.judging.tapper
            session.judging.tapper = TapObserver.of(self.tapping, session.id, session.judging, policies)
            if before is not None or session.judging.tapper is not None:
                session.look_again()

    async def _insist(self, sessions: list[Session]) -> None:
        """Who does not end the message that is under way cannot keep a consumer by that."""
        await trio.sleep(self.settings.limits.drain_timeout)
        for session in sessions:
            if session.relay.active and session.consumers.is_overdue:
                session.fail(
                    ProtocolViolation(320, "a consumer is not allowed any more, and a message not ended")
                )

    # -- the end ------------------------------------------------------------------------------

    def _left(self, session: Session) -> None:
        """The session has left the data path; its sockets are still open."""
        if session.outcome.end is End.GONE and session.outcome.side is Side.UPSTREAM:
            self.on_lost(session)
        if self.tasks is None:
            self._forget(session)
        else:
            self.tasks.start_soon(self._part, session)

    async def _part(self, session: Session) -> None:
        try:
            await part(session, session.relay, deadline_in=self.settings.limits.close_timeout)
        except Exception:
            log.exception("session %s did not end well", session.id)
        finally:
            self._forget(session)

    def _forget(self, session: Session) -> None:
        del self.live[session.id]
        self.throttles.give_back(session.throttle, time.monotonic())
        session.upstream.leave()
        for endpoint in session.relay.endpoints:
            if endpoint.sock is not None:
                endpoint.sock.close()
        self._count(session)
        if session.probe is not None:
            session.probe.look(self.reports.metrics.confirmed)
        why = outcome_of(session)
        if session.judging.auditor is not None:
            session.judging.auditor.closed(why, session.outcome.error)
        # Those that it had named by the broker are exclusive, as a rule, and end with the connection.
        self.reports.bindings.forget(session.principal.vhost, session.closes.owned or ())
        self.reports.over(session, why)
        session.release()
        self.on_gone(why)

    @contained("metrics", None)
    def _count(self, session: Session) -> None:
        self.ended.add(session)
