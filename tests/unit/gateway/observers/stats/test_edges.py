"""Who sent what to whom: of sessions that are open, and of those that are over while somebody looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from amqpgate.gateway.observers.stats import edges
from amqpgate.gateway.observers.stats.edges import MOST_KEYS, EdgeSum, PassedEdge, Place
from amqpgate.operator.graph import graph
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.support.talker import Talker, relayed
from tests.unit.gateway.conftest import Stage

MakeStage = Callable[..., Stage]

#: Whoever is limited so has flows: it is known to which exchanges it publishes.
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: shop}
spec:
  subjects: [{user: guest}]
  rules: [{id: all, effect: allow, operations: ["*"]}]
"""


def place(name: str) -> Place:
    return "publishes", "/", ("principal", "guest"), ("exchange", name)


def test_sums_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges, "ROOM", 2)
    told = EdgeSum()
    for number in range(3 * MOST_KEYS):
        told.add(place("one"), PassedEdge(1, 10, {str(number): None}, {str(number): None}))
    told.add(place("two"), PassedEdge(1))
    told.add(place("three"), PassedEdge(1))
    one = told.edges[place("one")]
    assert (one.messages, one.byte_count) == (3 * MOST_KEYS, 30 * MOST_KEYS)
    assert len(one.keys) == len(one.upstream_users) == MOST_KEYS
    assert (len(told.edges), told.left_out) == (2, 1)


def test_another_sum_stays_as_it_is() -> None:
    past, told = EdgeSum(), EdgeSum()
    past.add(place("one"), PassedEdge(1, 10, {"a": None}))
    for _ in told.add_all(past):
        pass
    told.add(place("one"), PassedEdge(1, 10, {"b": None}))
    assert past.edges == {place("one"): PassedEdge(1, 10, {"a": None})}
    assert told.edges == {place("one"): PassedEdge(2, 20, {"a": None, "b": None})}


def looked(stage: Stage) -> dict[str, object]:
    return cast("dict[str, object]", stage.running.ask(lambda: graph(stage.running.gateway, {})))


def publish_and_go(stage: Stage) -> None:
    client, broker = stage.opened()
    client.publish(b"12345", "order.new", exchange="shop")
    broker.expect_content(amqp.BasicPublish)
    _leave(client, broker)
    stage.running.wait_idle()


def _leave(client: Talker, broker: Talker) -> None:
    relayed(client, broker, amqp.ConnectionClose(200, "bye", 0, 0), amqp.ConnectionCloseOk(), 0)


def test_who_is_over_counts_from_the_first_look_on(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = make_stage(policies=POLICY)
    publish_and_go(stage)
    first = looked(stage)
    assert (first["edges"], cast("dict[str, int]", first["over"])["sessions"]) == ([], 0)
    publish_and_go(stage)
    publish_and_go(stage)
    second = looked(stage)
    (edge,) = cast("list[dict[str, object]]", second["edges"])
    assert (edge["kind"], edge["source"]) == ("publishes", {"kind": "principal", "name": "guest"})
    assert (edge["target"], edge["keys"]) == ({"kind": "exchange", "name": "shop"}, ["order.new"])
    assert (edge["messages"], edge["bytes"]) == (2, 10)
    assert second["brokers"] == []
    client, _broker = stage.opened()
    (row,) = cast("list[object]", looked(stage)["brokers"])
    assert row == {"upstream": "broker", "vhost": "/", "sessions": 1, "published": 0, "delivered": 0}
    _leave(client, _broker)
    stage.running.wait_idle()
    assert second["over"] == {**cast("dict[str, object]", first["over"]), "sessions": 2}
    # Nobody has looked for long: the next one that is over has all forgotten.
    past = stage.running.gateway.observers.reports.past
    monkeypatch.setattr(past, "_until", 0.0)
    publish_and_go(stage)
    eventually(lambda: past.sum is None)
    assert looked(stage)["edges"] == []
