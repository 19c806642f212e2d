"""What would be lost in a move, and what to do about it."""

from __future__ import annotations

import attrs
import pytest

from amqpgate.move.differences import Differences
from amqpgate.move.objects import BrokerObject
from amqpgate.move.refusals import (
    MoveFacts,
    MovingSession,
    QueueFacts,
    Refusal,
    RouteFacts,
    accepted,
    drain_estimate,
    refusals,
)
from amqpgate.move.rewriting import ObjectNote

ROUTE = RouteFacts(gateway="g", route="prod", upstreams=("blue",), timeout=60, most=100)
FACTS = MoveFacts(
    source="blue",
    target="green",
    wanted_routes=("prod",),
    gateways=("g",),
    routes=(ROUTE,),
    sessions=(),
    source_queues=(),
    target_queues=(),
    delayed={},
    strangers=(),
    knows_strangers=True,
    alarms=(),
    exchange_types=frozenset({"direct"}),
    unknown_vhosts=(),
    notes=(),
    differences=Differences((), (), (), 0),
    wanted=(),
)
THING = BrokerObject("queue", "v", "q", {"durable": True})


def queue(**more: object) -> QueueFacts:
    return QueueFacts(**{"vhost": "v", "name": "q", **more})  # type: ignore[arg-type]


def client(**more: object) -> MovingSession:
    said = {"route": "prod", "user": "u", "client": "c", "consumers": 0, "published": 0, **more}
    return MovingSession(**said)  # type: ignore[arg-type]


def found(**more: object) -> list[Refusal]:
    return list(refusals(attrs.evolve(FACTS, **more)))  # type: ignore[arg-type]


def test_nothing_is_in_the_way_of_nothing() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"routes": ()}, "no-route"),
        ({"gateways": ("g", "h")}, "no-route"),
        ({"routes": (attrs.evolve(ROUTE, upstreams=("blue", "green")),)}, "elsewhere"),
        ({"routes": (attrs.evolve(ROUTE, upstreams=("red",)),)}, "elsewhere"),
        ({"sessions": (client(route=None),)}, "other-route"),
        ({"source_queues": (queue(messages=1000, consumers=1, acked_rate=10.0),)}, "pause-timeout"),
        ({"unknown_vhosts": ("v",)}, "vhost"),
        ({"strangers": ("x",)}, "past-the-gateway"),
        ({"knows_strangers": False}, "connections-unknown"),
        ({"wanted": (BrokerObject("parameter", "v", "shovel s", {"component": "shovel"}),)}, "federation"),
        ({"source_queues": (queue(type="stream"),)}, "stream"),
        ({"source_queues": (queue(messages=1),)}, "no-consumer"),
        ({"source_queues": (queue(name="amq.gen-1", messages=1),)}, "server-named"),
        ({"delayed": {"v x": 1}}, "delayed-messages"),
        ({"alarms": ("x",)}, "alarm"),
        ({"target_queues": (queue(messages=1),)}, "not-empty"),
        ({"wanted": (BrokerObject("exchange", "v", "x", {"type": "x-delayed-message"}),)}, "exchange-type"),
        ({"differences": Differences((), ((THING, THING.with_body(durable=False)),), (), 0)}, "differs"),
        ({"notes": (ObjectNote(THING, "no", is_refused=True),)}, "definition"),
    ],
)
def test_what_is_in_the_way_says_what_to_do(more: dict[str, object], name: str) -> None:
    made = found(**more)
    (stopping,) = accepted(made, ())
    assert stopping.name == name
    assert stopping.remedy
    assert stopping.says
    assert bool(accepted(made, (name,))) is stopping.is_final


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"routes": (attrs.evolve(ROUTE, mirror="green 5 %"),)}, "mirror"),
        ({"sessions": (client(consumers=1, published=1),)}, "publishing-consumers"),
        ({"sessions": (client(),) * 101}, "pause-most"),
        ({"source_queues": (queue(messages=1),), "leftovers": "move"}, "no-consumer"),
        ({"source_queues": (queue(messages=1),), "leftovers": "leave"}, "no-consumer"),
        ({"source_queues": (queue(messages=1, arguments={"x-message-ttl": 5}),)}, "no-consumer"),
        ({"source_queues": (queue(messages=1, policy={"message-ttl": 5}),)}, "no-consumer"),
        ({"source_queues": (queue(exclusive=True, messages=1),)}, "exclusive"),
        ({"source_queues": (queue(auto_delete=True, consumers=1),), "leftovers": "move"}, "auto-delete"),
        ({"differences": Differences((), (), (BrokerObject("user", "", "u", {}),), 0)}, "kept"),
        ({"notes": (ObjectNote(THING, "so"),)}, "definition"),
    ],
)
def test_what_is_to_be_known_stops_nothing(more: dict[str, object], name: str) -> None:
    made = found(**more)
    assert [one.name for one in made] == [name]
    assert accepted(made, ()) == []


def test_a_move_that_has_begun_may_have_messages_on_the_target() -> None:
    for route in (attrs.evolve(ROUTE, paused=True), attrs.evolve(ROUTE, upstreams=("green",))):
        assert found(routes=(route,), target_queues=(queue(messages=1),)) == []


def test_the_slowest_queue_says_how_long_it_takes() -> None:
    assert drain_estimate([]) is None
    assert drain_estimate([queue(messages=5)]) is None
    slow, fast = queue(messages=100, acked_rate=2.0), queue(messages=100, acked_rate=50.0)
    assert drain_estimate([slow, fast]) == 50
