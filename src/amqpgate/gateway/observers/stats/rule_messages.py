"""Messages of sessions, by the rules of policies that decide about them.

The data path counts the messages of each flow and each lane, whoever asks, and those that were told before.
It has the rules that decide about all of a flow as well (`Flow.rules`): flows with the same ones share them,
since there are as many flows as sessions that have published. Of flows whose messages are judged one by one
nothing is kept: each of those is a decision. Limits and routes hold for all messages of a session.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final, TypeAlias, cast

import attrs

from amqpgate.datapath.scanner import Flow
from amqpgate.gateway.session.observer import RuleKey
from amqpgate.gateway.session.session import Session
from amqpgate.policy.kinds.rate import RATE
from amqpgate.policy.kinds.route import ROUTE
from amqpgate.values import define

#: Flows of a session that are kept although its tables have others in their place.
MOST_LEFT: Final = 1024
#: Rules that decide together, of which so many are shared. A flow that is decided by others has its own.
MOST_SHARED: Final = 1024

#: Told of so many messages by a rule.
Tell: TypeAlias = Callable[[RuleKey, int], None]
Rules: TypeAlias = "tuple[RuleKey, ...]"


@define(eq=False)
class SharedRules:
    """Rules that decide together about flows, each once, while the same policies are in force."""

    _joined: dict[tuple[Rules, RuleKey], Rules] = attrs.field(factory=dict, init=False)

    @property
    def size(self) -> int:
        return len(self._joined)

    def join(self, flow: Flow, rule: RuleKey) -> None:
        """The rule decides about all messages of a flow, too."""
        before = cast("Rules", flow.rules)
        joined = self._joined.get((before, rule))
        if joined is None:
            joined = (*before, rule)
            if len(self._joined) < MOST_SHARED:
                self._joined[before, rule] = joined
        flow.decided_by(joined)


@define(eq=False, weakref_slot=False)
class SeveralFlows:
    """Those of one session that rules decide about. Most sessions have one, and so none of this."""

    kept: list[Flow]
    most: int = MOST_LEFT

    @property
    def is_full(self) -> bool:
        return len(self.kept) >= self.most

    def keep(self, live: Container[Flow]) -> None:
        """These alone. All of the others has been told."""
        self.kept = [flow for flow in self.kept if flow in live]
        self.most = len(self.kept) + MOST_LEFT


def tell_flow(flow: Flow, tell: Tell) -> None:
    """Tell what has passed of a flow since it was told last."""
    more = flow.unreported()
    if more:
        for rule in cast("Rules", flow.rules):
            tell(rule, more)


def tell_lanes(session: Session, tell: Tell) -> None:
    """Tell what has passed of a session since it was told last, by the rules that hold for all of it."""
    choice = session.facts.choice
    if choice is None and not session.limits.all:
        return
    up, down = session.relay.up.unreported(), session.relay.down.unreported()
    if not up and not down:
        return
    if choice is not None:
        tell((ROUTE.name, choice.policy, choice.route.id), up + down)
    for share in session.limits.shares:
        more = up * share.counts_published + down * share.counts_delivered
        if more:
            tell((RATE.name, share.limit.policy, share.limit.limit), more)


def pass_over(session: Session) -> None:
    """What has passed of a session so far is told of no rule that holds for all of it."""
    session.relay.up.unreported()
    session.relay.down.unreported()
