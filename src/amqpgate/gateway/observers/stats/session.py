"""What statistics learn from one session: decisions, bindings, the time of confirms, and sums."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

import attrs

from amqpgate.datapath.scanner import Flow
from amqpgate.gateway.observers.stats.bindings import CHANGES, SessionBindings
from amqpgate.gateway.observers.stats.confirm_latency import ConfirmLatency
from amqpgate.gateway.observers.stats.reports import Reports, log
from amqpgate.gateway.observers.stats.rule_messages import (
    SeveralFlows,
    SharedRules,
    pass_over,
    tell_flow,
    tell_lanes,
)
from amqpgate.gateway.observers.stats.totals import SessionTotals
from amqpgate.gateway.session.compatibility import Adapted
from amqpgate.gateway.session.observer import Denial, RuleKey, SessionObserver
from amqpgate.gateway.session.operation_limits import Happened
from amqpgate.gateway.session.session import Session
from amqpgate.policy import Operation, PolicySet, SharedLimit, Verdict
from amqpgate.policy.engine.naming import NotTransformedError
from amqpgate.policy.kinds.route import ROUTE
from amqpgate.telemetry.faults import contained
from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

PART: Final = "decisions"

#: Bits of the client's port, and one more, in what says when a session began.
_PORT_BITS: Final = 17
#: Milliseconds.
_SECOND: Final = 1000


def _now() -> int:
    return int(time.monotonic() * _SECOND) << _PORT_BITS


@define(eq=False, weakref_slot=False)
class InForce:
    """What the statistics of sessions have in common while the same policies are in force."""

    factory: StatsFactory
    #: Since when they are.
    since: float
    rules: SharedRules = attrs.field(factory=SharedRules, init=False)


@define(eq=False, weakref_slot=False)
class StatsObserver(SessionObserver):
    """The statistics of one session."""

    part = PART

    under: InForce
    session: Session
    #: None: the client has asked for no confirms.
    confirms: ConfirmLatency | None = attrs.field(default=None, init=False)
    #: None: it has changed none.
    _bindings: SessionBindings | None = attrs.field(default=None, init=False)
    #: Those that rules decide about whole: the only one, or several. None: none.
    _flows: Flow | SeveralFlows | None = attrs.field(default=None, init=False)
    #: When the session began, and the client's port, in one number: in two they are 64 bytes of each session.
    #: Milliseconds (monotonic), and below them the port and one, or 0 where nobody has told it.
    _began: int = attrs.field(factory=_now, init=False)

    def opened_from(self, address: str, upstream: str) -> None:
        """The session is established; ``address`` is the client's, ``upstream`` the cluster's name."""
        port = address.rpartition(":")[2]
        if port.isdecimal() and len(port) <= len("65535"):
            self._began |= int(port) + 1
        reports, choice = self.under.factory.reports, self.session.facts.choice
        if choice is not None:
            reports.decisions.used((ROUTE.name, choice.policy, choice.route.id))
        if reports.decisions.events.listeners or log.isEnabledFor(logging.DEBUG):
            reports.opened(self.session, address, upstream)

    def allowed(self, operation: Operation, verdict: Verdict) -> None:
        if verdict.policy is not None:
            self.under.factory.reports.decisions.allowed(verdict)

    def denied(self, denial: Denial) -> None:
        reports, session = self.under.factory.reports, self.session
        reports.denied(
            denial.verdict,
            denial.operation,
            session.id,
            denial.text,
            closes=denial.closes,
            upstream=session.facts.cluster or None,
        )
        if reports.labelled is not None:
            reports.labelled.denied(session.principal)

    def used(self, rule: RuleKey) -> None:
        self.under.factory.reports.decisions.used(rule)

    def carries(self, rule: RuleKey, flow: Flow) -> None:
        is_known, flows = bool(flow.rules), self._flows
        self.under.rules.join(flow, rule)
        if is_known:
            return
        if flows is None:
            self._flows = flow
        elif not isinstance(flows, SeveralFlows):
            self._flows = SeveralFlows([flows, flow])
        else:
            if flows.is_full:
                self._tell_flows()
                relay = self.session.relay
                flows.keep({one for lane in (relay.up, relay.down) for _, one in lane.known_flows()})
            flows.kept.append(flow)

    @contained(PART, None)
    def tell_messages(self) -> None:
        """Tell which rules messages have passed by since it was told last."""
        self._tell_flows()
        tell_lanes(self.session, self.under.factory.reports.decisions.passed)

    def _tell_flows(self) -> None:
        tell, flows = self.under.factory.reports.decisions.passed, self._flows
        for flow in flows.kept if isinstance(flows, SeveralFlows) else () if flows is None else (flows,):
            tell_flow(flow, tell)

    @contained(PART, None)
    def follow(self, under: InForce) -> None:
        """These policies are in force now. Where they were before, it has another principal: all is told."""
        if self.under is under:
            self.tell_messages()
        pass_over(self.session)
        self.under, self._flows = under, None

    def would_differ(self, operation: Operation, verdict: Verdict) -> None:
        self.under.factory.reports.would_differ(verdict, operation, self.session.id)

    def not_transformed(self, channel: int, method: Method, why: NotTransformedError) -> None:
        self.under.factory.reports.not_transformed(method, why, self.session.principal)

    def adapted(self, channel: int, method: Method, policy: str, result: Adapted) -> None:
        self.under.factory.reports.adapted(policy, result.items)

    def limited(self, limit: SharedLimit, happened: Happened) -> None:
        reports = self.under.factory.reports
        reports.limited(limit, happened)
        if happened is Happened.WAITED and reports.labelled is not None:
            reports.labelled.waited(self.session.principal)

    def passed(self, channel: int, method: Method) -> None:
        if method.INDEX in CHANGES:
            self._bindings = self._bindings or SessionBindings(self.under.factory.reports.bindings)
            last_queue = self.session.channels.states[channel].last_queue
            self._bindings.passed(channel, method, self.session.principal, last_queue)
        elif self._bindings is not None and isinstance(method, amqp.ChannelOpen):
            self._bindings.opens(channel)

    def asked(self, channel: int, method: Method, last_queue: str, is_answered: bool) -> None:
        if isinstance(method, amqp.ConfirmSelect) and self.confirms is None:
            self.confirms = ConfirmLatency(self.session.relay.channels, self.session.channels.states)
            self.confirms.turn()

    def answered(self, channel: int, method: Method) -> None:
        if self._bindings is not None:
            self._bindings.answered(channel, method)

    def moved(self) -> None:
        self.confirms = None

    def look(self, confirmed: Callable[[float], None]) -> None:
        """Tell how many seconds the broker has taken for a confirm, if one was timed."""
        if self.confirms is not None:
            self.confirms.look(confirmed)

    def closed(self, outcome: str) -> None:
        self._count()
        self.tell_messages()
        self._flows = None
        reports, principal = self.under.factory.reports, self.session.principal
        self.look(reports.metrics.confirmed)
        # Those that it had named by the broker are exclusive, as a rule, and end with the connection.
        reports.bindings.forget(principal.vhost, self.session.channels.owned or ())
        port, address = self._began & ((1 << _PORT_BITS) - 1), principal.source
        if port:
            address = f"{address}:{port - 1}"
        seconds = time.monotonic() - (self._began >> _PORT_BITS) / _SECOND
        reports.over(self.session, outcome, address, seconds)

    @contained("metrics", None)
    def _count(self) -> None:
        factory = self.under.factory
        factory.ended.add(self.session)
        if factory.reports.past.sum is not None:
            factory.reports.past.over(self.session)
        if factory.reports.labelled is not None:
            factory.reports.labelled.over(self.session)


@define(eq=False)
class StatsFactory:
    """Makes those of one gateway."""

    part = PART

    reports: Reports
    #: What the sessions that are over have passed.
    ended: SessionTotals
    _under: InForce | None = attrs.field(default=None, init=False)

    @property
    def under(self) -> InForce:
        """Of the policies that are in force now."""
        since = self.reports.decisions.since
        if self._under is None or self._under.since != since:
            self._under = InForce(self, since)
        return self._under

    def looks_on(self, policies: PolicySet) -> bool:
        return True

    def observer_for(
        self, session: Session, policies: PolicySet, before: SessionObserver | None
    ) -> SessionObserver:
        if not isinstance(before, StatsObserver):
            return StatsObserver(self.under, session)
        before.follow(self.under)
        return before
