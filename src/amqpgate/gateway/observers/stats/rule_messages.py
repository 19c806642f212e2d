"""Messages of sessions, by the rules of policies that decide about them.

The data path counts the messages of each flow, whoever asks: what is kept here is which rule decides about
all of a flow. Of flows whose messages are judged one by one nothing is kept: each of those is a decision.
Limits and routes hold for all messages of a session.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final, TypeAlias

import attrs

from amqpgate.datapath.scanner import Flow
from amqpgate.datapath.tables import Side
from amqpgate.gateway.session.observer import RuleKey
from amqpgate.gateway.session.session import Session
from amqpgate.policy.kinds.rate import DELIVERED, PUBLISHED, RATE
from amqpgate.policy.kinds.route import ROUTE
from amqpgate.values import define

#: Flows of a session that are kept although its tables have others in their place.
MOST_LEFT: Final = 1024

#: Told of so many messages by a rule.
Tell: TypeAlias = Callable[[RuleKey, int], None]


@define(eq=False, weakref_slot=False)
class _OfRule:
    """Flows of one session that a rule decides about."""

    rule: RuleKey
    flows: list[Flow]
    #: Messages of these flows that were told.
    told: int = 0

    def take(self) -> int:
        """Messages since it was told last."""
        now = sum(flow.messages for flow in self.flows)
        more, self.told = now - self.told, now
        return more

    def keep(self, live: Container[Flow]) -> int:
        """These alone; how many that are. All has been told."""
        self.flows = [flow for flow in self.flows if flow in live]
        self.told = sum(flow.messages for flow in self.flows)
        return len(self.flows)


@define(eq=False, weakref_slot=False)
class _Told:
    """What is kept of one session, under the policies that are in force. Few rules decide about its flows."""

    rules: list[_OfRule] = attrs.field(factory=list)
    held: int = 0
    most: int = MOST_LEFT
    #: Since when the policies are in force.
    since: float = 0.0
    #: Messages of the session that were told, from the client and to it.
    passed: tuple[int, int] = (0, 0)

    def add(self, rule: RuleKey, flow: Flow) -> None:
        """The rule decides about it."""
        self.held += 1
        for one in self.rules:
            if one.rule == rule:
                one.flows.append(flow)
                return
        self.rules.append(_OfRule(rule, [flow]))

    def keep(self, live: Container[Flow]) -> None:
        """These flows alone."""
        self.held = sum([one.keep(live) for one in self.rules])
        self.most = self.held + MOST_LEFT


@define(eq=False)
class MessagesByRule:
    """Of one gateway."""

    tell: Tell
    #: Says since when the policies are in force.
    since: Callable[[], float]
    #: By the session's id: of those that have such flows, or were asked.
    sessions: dict[str, _Told] = attrs.field(factory=dict, init=False)

    def carry(self, rule: RuleKey, flow: Flow, session: Session) -> None:
        """The rule decides about all messages of a flow."""
        told = self.sessions.get(session.id)
        if told is None:
            told = self.sessions[session.id] = _Told(since=self.since())
        elif told.held >= told.most:
            self._take_flows(told)
            tables = (endpoint.lane.flows for endpoint in session.relay.endpoints)
            told.keep({flow for table in tables if table is not None for _, flow in table.flows()})
        told.add(rule, flow)

    def take(self, session: Session) -> None:
        """Tell what has passed of a session since it was told last."""
        told, choice = self.sessions.get(session.id), session.facts.choice
        if told is not None:
            self._take_flows(told)
        if choice is None and not session.limits.all:
            return
        before, now = (0, 0) if told is None else told.passed, _passed(session)
        up, down = max(now[0] - before[0], 0), max(now[1] - before[1], 0)
        if not up and not down:
            return
        self.sessions[session.id] = (
            _Told(since=self.since(), passed=now) if told is None else attrs.evolve(told, passed=now)
        )
        if choice is not None:
            self.tell((ROUTE.name, choice.policy, choice.route.id), up + down)
        for limit in session.limits.all:
            quantities = [quantity for quantity, _ in limit.rates]
            more = up * any(one in PUBLISHED for one in quantities)
            more += down * any(one in DELIVERED for one in quantities)
            if more:
                self.tell((RATE.name, limit.policy, limit.limit), more)

    def begin_anew(self, session: Session) -> None:
        """Others are in force, or these hold for another principal: then what has passed is told first."""
        told, since = self.sessions.get(session.id), self.since()
        if told is not None and told.since == since:
            self.take(session)
        self.sessions[session.id] = _Told(since=since, passed=_passed(session))

    def forget(self, session: Session) -> None:
        """It is over."""
        self.sessions.pop(session.id, None)

    def kept(self, session: Session) -> int:
        """How many flows of it are kept."""
        told = self.sessions.get(session.id)
        return 0 if told is None else told.held

    def _take_flows(self, told: _Told) -> None:
        for one in told.rules:
            more = one.take()
            if more:
                self.tell(one.rule, more)


def _passed(session: Session) -> tuple[int, int]:
    endpoints = session.relay.endpoints
    return endpoints[Side.CLIENT].lane.messages, endpoints[Side.UPSTREAM].lane.messages
