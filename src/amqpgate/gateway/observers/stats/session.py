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
from amqpgate.gateway.observers.stats.rule_messages import MessagesByRule
from amqpgate.gateway.observers.stats.totals import SessionTotals
from amqpgate.gateway.session.compatibility import Adapted
from amqpgate.gateway.session.observer import Denial, RuleKey, SessionObserver
from amqpgate.gateway.session.operation_limits import Happened
from amqpgate.gateway.session.session import Session
from amqpgate.policy import Operation, PolicySet, SharedLimit, Verdict
from amqpgate.policy.engine.naming import NotTransformedError
from amqpgate.policy.kinds.route import ROUTE
from amqpgate.telemetry.faults import contained
from amqpgate.values import define, frozen
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

PART: Final = "decisions"


@define(eq=False, weakref_slot=False)
class StatsObserver(SessionObserver):
    """The statistics of one session."""

    part = PART

    #: Who made it.
    factory: StatsFactory
    session: Session
    #: None: the client has asked for no confirms.
    confirms: ConfirmLatency | None = attrs.field(default=None, init=False)
    #: None: it has changed none.
    _bindings: SessionBindings | None = attrs.field(default=None, init=False)
    #: The client's, with its port; None: nobody has told it.
    _address: str | None = attrs.field(default=None, init=False)
    #: When the session began, in seconds (monotonic).
    _since: float = attrs.field(factory=time.monotonic, init=False)

    def opened_from(self, address: str, upstream: str) -> None:
        """The session is established; ``address`` is the client's, ``upstream`` the cluster's name."""
        self._address = address
        reports, choice = self.factory.reports, self.session.facts.choice
        if choice is not None:
            reports.decisions.used((ROUTE.name, choice.policy, choice.route.id))
        if reports.decisions.events.listeners or log.isEnabledFor(logging.DEBUG):
            reports.opened(self.session, address, upstream)

    def allowed(self, operation: Operation, verdict: Verdict) -> None:
        if verdict.policy is not None:
            self.factory.reports.decisions.allowed(verdict)

    def denied(self, denial: Denial) -> None:
        self.factory.reports.denied(denial.verdict, denial.operation, self.session.id, denial.text)

    def used(self, rule: RuleKey) -> None:
        self.factory.reports.decisions.used(rule)

    def carries(self, rule: RuleKey, flow: Flow) -> None:
        self.factory.messages.carry(rule, flow, self.session)

    @contained(PART, None)
    def tell_messages(self) -> None:
        """Tell which rules messages have passed by since it was told last."""
        self.factory.messages.take(self.session)

    @contained(PART, None)
    def follow(self) -> None:
        """Other policies hold from now on."""
        self.factory.messages.begin_anew(self.session)

    def would_differ(self, operation: Operation, verdict: Verdict) -> None:
        self.factory.reports.would_differ(verdict, operation, self.session.id)

    def not_transformed(self, channel: int, method: Method, why: NotTransformedError) -> None:
        self.factory.reports.not_transformed(method, why, self.session.principal)

    def adapted(self, channel: int, method: Method, policy: str, result: Adapted) -> None:
        self.factory.reports.adapted(policy, result.items)

    def limited(self, limit: SharedLimit, happened: Happened) -> None:
        self.factory.reports.limited(limit, happened)

    def passed(self, channel: int, method: Method) -> None:
        if method.INDEX in CHANGES:
            self._bindings = self._bindings or SessionBindings(self.factory.reports.bindings)
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
        self.factory.messages.forget(self.session)
        self.look(self.factory.reports.metrics.confirmed)
        # Those that it had named by the broker are exclusive, as a rule, and end with the connection.
        self.factory.reports.bindings.forget(self.session.principal.vhost, self.session.channels.owned or ())
        address = self._address or self.session.principal.source
        self.factory.reports.over(self.session, outcome, address, time.monotonic() - self._since)

    @contained("metrics", None)
    def _count(self) -> None:
        self.factory.ended.add(self.session)


@frozen
class StatsFactory:
    """Makes those of one gateway."""

    part = PART

    reports: Reports
    #: What the sessions that are over have passed.
    ended: SessionTotals
    messages: MessagesByRule

    def looks_on(self, policies: PolicySet) -> bool:
        return True

    def observer_for(
        self, session: Session, policies: PolicySet, before: SessionObserver | None
    ) -> SessionObserver:
        if not isinstance(before, StatsObserver):
            return StatsObserver(self, session)
        before.follow()
        return before
