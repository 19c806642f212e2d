"""Messages by the rules that decide about them: each once, and no more kept than can be hit."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import cast

from amqpgate.datapath.reference import Flow, FlowTable
from amqpgate.gateway.observers.stats.rule_messages import MOST_LEFT, MessagesByRule
from amqpgate.gateway.session.observer import RuleKey
from amqpgate.gateway.session.session import Session

RULE: RuleKey = ("AccessPolicy", "orders", "publish")
LIMIT: RuleKey = ("RatePolicy", "rates", "up")


def session_of(table: FlowTable, *, limits: tuple[object, ...] = ()) -> Session:
    lanes = [SimpleNamespace(flows=table, messages=0), SimpleNamespace(flows=None, messages=0)]
    found = SimpleNamespace(
        id="s",
        facts=SimpleNamespace(choice=None),
        limits=SimpleNamespace(all=limits),
        relay=SimpleNamespace(endpoints=[SimpleNamespace(lane=lane) for lane in lanes]),
    )
    return cast("Session", found)


def test_a_client_with_ever_new_keys_is_counted_whole_and_kept_small() -> None:
    told: Counter[RuleKey] = Counter()
    since = 1.0
    messages = MessagesByRule(lambda rule, more: told.update({rule: more}), lambda: since)
    table = FlowTable()
    session = session_of(table)
    most = 0
    for number in range(60_000):
        flow = Flow()
        messages.carry(RULE, flow, session)
        table.install(number.to_bytes(4, "big"), flow)
        flow.messages += 2
        most = max(most, messages.kept(session))
    messages.take(session)
    assert told[RULE] == 120_000
    assert most <= len(table) + MOST_LEFT
    messages.take(session)
    assert told[RULE] == 120_000
    messages.forget(session)
    assert messages.kept(session) == 0


def test_limits_count_what_passes_their_way_since_these_policies_hold() -> None:
    told: Counter[RuleKey] = Counter()
    since = 1.0
    messages = MessagesByRule(lambda rule, more: told.update({rule: more}), lambda: since)
    limit = SimpleNamespace(policy="rates", limit="up", rates=(("messages", 5.0),))
    session = session_of(FlowTable(), limits=(limit,))
    up, down = (endpoint.lane for endpoint in session.relay.endpoints)
    up.messages, down.messages = 7, 9
    messages.take(session)
    assert told == {LIMIT: 7}
    # Another principal, under the same policies: nothing is lost.
    up.messages = 10
    messages.begin_anew(session)
    assert told == {LIMIT: 10}
    # Other policies: what has passed before is not theirs.
    up.messages, since = 20, 2.0
    messages.begin_anew(session)
    messages.take(session)
    assert told == {LIMIT: 10}
    up.messages = 21
    messages.take(session)
    assert told == {LIMIT: 11}
