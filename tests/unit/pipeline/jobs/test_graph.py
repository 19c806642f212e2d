"""What is read off the graph, and how it is drawn."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import networkx
import pytest

from amqpgate.pipeline.jobs import picture
from amqpgate.pipeline.jobs.graph import (
    Declared,
    Drift,
    Edge,
    EdgeKind,
    Node,
    ReplayedBinding,
    Topology,
    blast_radius,
    drift,
    graphml,
    merged,
    unused,
)
from amqpgate.pipeline.jobs.picture import mermaid

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def node(text: str) -> Node:
    """``u shop`` is a principal, ``x orders`` an exchange, ``q in`` a queue of the vhost ``/``."""
    kinds = {"u": "principal", "x": "exchange", "q": "queue"}
    return Node(kinds[text[0]], "/", text[2:])  # type: ignore[arg-type]


def edge(kind: EdgeKind, source: str, target: str, messages: int = 0, *keys: str) -> Edge:
    return Edge(kind=kind, source=node(source), target=node(target), messages=messages, last=NOW, keys=keys)


#: A shop orders; billing gets the orders, and sends invoices to the mailer by way of the default exchange.
SHOP = Topology(
    (
        edge("publishes", "u shop", "x orders", 10),
        edge("routes", "x orders", "q billing", 10, "order.*.created"),
        edge("delivers", "q billing", "u billing", 10),
        edge("publishes", "u billing", "q mails", 5),
        edge("delivers", "q mails", "u mailer", 5),
        edge("publishes", "u other", "x other", 1),
    )
)


def touched(failing: str) -> set[tuple[int, str, str]]:
    return {(one.hops, one.touch, one.node.name) for one in blast_radius(SHOP, node(failing))}


def test_who_notices_when_a_queue_fails() -> None:
    assert touched("q mails") == {
        (0, "feeds", "billing"),
        (0, "feels", "mailer"),
        (1, "feeds", "shop"),
        (1, "through", "billing"),
        (1, "through", "orders"),
    }
    assert touched("q billing") == {
        (0, "feeds", "shop"),
        (0, "through", "orders"),
        (0, "feels", "billing"),
        (1, "through", "mails"),
        (1, "feels", "mailer"),
    }


def test_who_notices_when_a_principal_fails() -> None:
    assert touched("u shop") == {
        (0, "through", "orders"),
        (0, "through", "billing"),
        (0, "feels", "billing"),
        (1, "through", "mails"),
        (1, "feels", "mailer"),
    }
    assert touched("u nobody") == set()


def test_circles_end() -> None:
    circle = Topology((edge("publishes", "u a", "q b", 1), edge("delivers", "q b", "u a", 1)))
    assert {one.node.name for one in blast_radius(circle, node("q b"))} == {"a"}


def declared(text: str, **said: object) -> Declared:
    return Declared(node=node(text), last=NOW, **said)  # type: ignore[arg-type]


def bound(source: str, target: str, key: str) -> ReplayedBinding:
    return ReplayedBinding(source=node(source), target=node(target), key=key, last=NOW)


def test_unused_exchanges_and_queues() -> None:
    told = Topology(
        SHOP.edges,
        (
            declared("x orders"),
            declared("x nobody"),
            declared("q mails"),
            declared("q unread"),
            declared("q fleeting", is_fleeting=True),
        ),
    )
    assert [(one.kind, one.name, one.why) for one in unused(told)] == [
        ("exchange", "nobody", "nobody published to it"),
        ("queue", "unread", "nobody read from it"),
    ]


@pytest.mark.parametrize(
    ("exchange_type", "key", "is_unused"),
    [
        ("topic", "order.#", False),
        ("topic", "order.eu.created", False),
        ("topic", "order.eu.paid", True),
        ("direct", "order.#", True),
        ("fanout", "whatever", False),
        (None, "whatever", False),
    ],
)
def test_a_binding_is_used_if_a_key_came_by_it(exchange_type: str, key: str, is_unused: bool) -> None:
    told = Topology(
        SHOP.edges, (declared("x orders", type=exchange_type),), (bound("x orders", "q billing", key),)
    )
    assert bool(unused(told)) is is_unused


def test_a_binding_that_nothing_came_by_is_unused_if_its_queue_is_read() -> None:
    told = Topology(SHOP.edges, (), (bound("x other", "q billing", "k"), bound("x other", "q unread", "k")))
    assert [(one.name, one.target, one.why) for one in unused(told)] == [
        ("other", "billing", "no message came by it")
    ]


def test_drift_says_what_came_and_went() -> None:
    after = Topology((*SHOP.edges[:-1], edge("publishes", "u shop", "q mails", 7)))
    assert drift(SHOP, after) == [
        Drift("gone", "exchange", "exchange other in /", None, 0),
        Drift("gone", "principal", "principal other in /", None, 0),
        Drift("new", "publishes", "principal shop in /", "queue mails in /", 7),
        Drift("gone", "publishes", "principal other in /", "exchange other in /", 1),
    ]
    assert drift(SHOP, SHOP) == []


def test_edges_of_one_kind_are_one() -> None:
    (one,) = merged([edge("routes", "x a", "q b", 1, "k"), edge("routes", "x a", "q b", 2, "k", "l")])
    assert (one.messages, one.keys) == (3, ("k", "l"))


# -- pictures --------------------------------------------------------------------------------

HOSTILE = Topology((edge("publishes", 'u "]--><script>', "x \x1b[31m&#x;", 3, "%%<b>"),))


@pytest.mark.parametrize("told", [SHOP, HOSTILE])
def test_graphml_is_read_back(told: Topology) -> None:
    graph = networkx.parse_graphml(graphml(told))
    assert (len(graph.nodes), len(graph.edges)) == (len(told.nodes), len(told.edges))
    assert sum(data["messages"] for _, _, data in graph.edges(data=True)) == sum(
        one.messages for one in told.edges
    )


def test_mermaid() -> None:
    lines = mermaid(SHOP).splitlines()
    assert lines[0] == "flowchart LR"
    assert '  n0{{"orders @ #47;"}}' in lines
    assert len([line for line in lines if "-->" in line]) == len(SHOP.edges)


def test_names_cannot_break_out_of_mermaid() -> None:
    for line in mermaid(HOSTILE).splitlines()[1:]:
        shape = r'n\d+(\(\["[^"\[\]<>]*"\]\)|\{\{"[^"{}<>]*"\}\})'
        assert re.fullmatch(rf'  ({shape}|n\d+ -->\|"[^"|<>]*"\| n\d+)', line), line


def test_a_large_graph_is_drawn_in_part_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "MAX_EDGES", 2)
    assert "4 edges with fewer messages are left out" in mermaid(SHOP)
    assert "other" not in mermaid(SHOP)
