"""Messages by the rules that decide about them: each once, and no more kept than can be hit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest

from amqpgate.datapath import reference, scanner
from amqpgate.datapath.scanner import Bucket
from amqpgate.datapath.tables import Side
from amqpgate.gateway.limits.token_buckets import SharedBucket
from amqpgate.gateway.observers.stats.rule_messages import MOST_LEFT, MOST_SHARED, SeveralFlows, SharedRules
from amqpgate.gateway.observers.stats.session import InForce, StatsFactory, StatsObserver
from amqpgate.gateway.session.observer import RuleKey
from amqpgate.gateway.session.session import Session
from amqpgate.policy import SharedLimit

RULE: RuleKey = ("AccessPolicy", "orders", "publish")
OTHER: RuleKey = ("AuditPolicy", "all", "bodies")
LIMIT: RuleKey = ("RatePolicy", "rates", "up")


@pytest.fixture(params=[reference, scanner], ids=["plain", "serving"])
def engine(request: pytest.FixtureRequest) -> ModuleType:
    return cast("ModuleType", request.param)


@pytest.fixture
def told() -> Counter[RuleKey]:
    return Counter()


Policies = Callable[[], InForce]


@pytest.fixture
def policies(told: Counter[RuleKey]) -> Policies:
    """Others come into force each time."""
    decisions = SimpleNamespace(passed=lambda rule, more: told.update({rule: more}))
    factory = cast("StatsFactory", SimpleNamespace(reports=SimpleNamespace(decisions=decisions)))
    return lambda: InForce(factory, 0.0)


def session_of(engine: ModuleType, *, limits: tuple[SharedLimit, ...] = ()) -> Session:
    shares = [SharedBucket(one, {name: Bucket(rate, rate) for name, rate in one.rates}) for one in limits]
    up, down = (engine.Lane(side, 4096, 4096, engine.Channels()) for side in Side)
    up.use_flows(True)
    found = SimpleNamespace(
        facts=SimpleNamespace(choice=None),
        limits=SimpleNamespace(all=limits, shares=shares),
        relay=SimpleNamespace(up=up, down=down),
    )
    return cast("Session", found)


def test_a_client_with_ever_new_keys_is_counted_whole_and_kept_small(
    engine: ModuleType, told: Counter[RuleKey], policies: Policies
) -> None:
    session = session_of(engine)
    table = session.relay.up.flows
    assert table is not None
    watching = StatsObserver(policies(), session)
    most = 0
    for number in range(30_000):
        flow = engine.Flow()
        watching.carries(RULE, flow)
        table.install(number.to_bytes(4, "big"), flow)
        flow.messages += 2
        if number > 1:
            (several,) = [one for one in _flows_of(watching) if isinstance(one, SeveralFlows)]
            most = max(most, len(several.kept))
    watching.tell_messages()
    assert told[RULE] == 60_000
    assert most <= len(table) + MOST_LEFT
    watching.tell_messages()
    assert told == {RULE: 60_000}


def test_a_flow_that_several_rules_decide_about_counts_for_each(
    engine: ModuleType, told: Counter[RuleKey], policies: Policies
) -> None:
    watching = StatsObserver(policies(), session_of(engine))
    flow, other = engine.Flow(), engine.Flow()
    for one in (flow, other):
        watching.carries(RULE, one)
        watching.carries(OTHER, one)
        one.messages += 3
    # What they are decided by stands once.
    assert flow.rules is other.rules
    watching.tell_messages()
    assert told == {RULE: 6, OTHER: 6}
    flow.messages += 1
    watching.tell_messages()
    assert told == {RULE: 7, OTHER: 7}


def test_limits_count_what_passes_their_way_since_these_policies_hold(
    engine: ModuleType, told: Counter[RuleKey], policies: Policies
) -> None:
    limit = SharedLimit("rates", "up", (), (("messages", 5.0),), 1.0)
    session = session_of(engine, limits=(limit,))
    up, down = session.relay.up, session.relay.down
    under = policies()
    watching = StatsObserver(under, session)
    flow = engine.Flow()
    watching.carries(RULE, flow)
    up.messages, down.messages, flow.messages = 7, 9, 6
    watching.tell_messages()
    assert told == {LIMIT: 7, RULE: 6}
    # Another principal, under the same policies: nothing is lost.
    up.messages, flow.messages = 10, 9
    watching.follow(under)
    assert told == {LIMIT: 10, RULE: 9}
    # Other policies: what has passed before is not theirs.
    other = engine.Flow()
    watching.carries(RULE, other)
    up.messages, other.messages = 20, 10
    watching.follow(policies())
    watching.tell_messages()
    assert told == {LIMIT: 10, RULE: 9}
    up.messages = 21
    watching.tell_messages()
    assert told == {LIMIT: 11, RULE: 9}


def test_rules_that_are_shared_are_bounded(engine: ModuleType) -> None:
    shared = SharedRules()
    for number in range(2 * MOST_SHARED):
        flow = engine.Flow()
        rule = ("AccessPolicy", "orders", str(number))
        shared.join(flow, rule)
        assert flow.rules == (rule,)
    assert shared.size == MOST_SHARED


def _flows_of(watching: StatsObserver) -> list[object]:
    return [getattr(watching, "_flows")]  # noqa: B009
