"""Where messages go. Each queue is named after what it is bound with, and then counted."""

from __future__ import annotations

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Field, Table

from ..steps import Step, a, scenario

_KEYS = ("", "a", "a.b", "a.b.c", "a.c", "b", "b.a.c", ".", "a.", ".a", "a..c", "*", "#", "a.#")
_PATTERNS = (
    "",
    "#",
    "*",
    "a",
    "a.*",
    "a.#",
    "#.c",
    "a.#.c",
    "*.*",
    "#.a.#",
    "*.#",
    "a..c",
    "*.b.*",
    "#.#",
    ".",
)


def _topics() -> list[Step]:
    steps: list[Step] = [a.exchange("x", "topic")]
    for pattern in _PATTERNS:
        steps += [a.queue(f"q {pattern}"), a.bind(f"q {pattern}", "x", pattern)]
    steps += [a.publish(key, key.encode(), exchange="x") for key in _KEYS]
    for pattern in _PATTERNS:
        steps.append(a.quiet(f"q {pattern}"))
        steps += [a.get(f"q {pattern}")] * (len(_KEYS) + 1)
    return steps


_RULES: dict[str, dict[str, object]] = {
    "nothing": {},
    "all nothing": {"x-match": "all"},
    "any nothing": {"x-match": "any"},
    "a": {"a": 1},
    "all a b": {"x-match": "all", "a": 1, "b": "two"},
    "any a b": {"x-match": "any", "a": 1, "b": "two"},
    "present": {"a": None},
    "float": {"a": 1.0},
    "boolean": {"a": True},
    "octets": {"b": b"two"},
    "x- names": {"a": 1, "x-c": 3},
    "x- names only": {"x-c": 3},
    "any x- names": {"x-match": "any", "x-c": 3},
    "all-with-x": {"x-match": "all-with-x", "a": 1, "x-c": 3},
    "any-with-x": {"x-match": "any-with-x", "a": 5, "x-c": 3},
    "list": {"l": [1, "x", {"y": 2}]},
    "table": {"t": {"y": 2}},
}

_HEADERS: tuple[dict[str, object] | None, ...] = (
    None,
    {},
    {"a": 1},
    {"a": Field("l", 1)},
    {"a": 2},
    {"a": "1"},
    {"a": None},
    {"b": "two"},
    {"a": 1, "b": "two"},
    {"a": 1, "b": "three", "c": 0},
    {"x-c": 3},
    {"a": 1, "x-c": 3},
    {"a": True},
    {"l": [1, "x", {"y": 2}]},
    {"l": [1.0, "x", {"y": 2}]},
    {"t": {"y": 2}},
    {"t": {"y": Field("b", 2)}},
)


def _headers() -> list[Step]:
    steps: list[Step] = [a.exchange("x", "headers")]
    for name, rule in _RULES.items():
        steps += [a.queue(name), a.bind(name, "x", "", arguments=Table.of(rule))]
    for number, headers in enumerate(_HEADERS):
        table = None if headers is None else Table.of(headers)
        steps.append(a.publish("", b"%d" % number, "x", amqp.BasicProperties(headers=table)))
    for name in _RULES:
        steps.append(a.quiet(name))
        steps += [a.get(name)] * (len(_HEADERS) + 1)
    return steps


_TWO = (a.queue("one"), a.queue("two"))
_COUNT_TWO = (a.quiet("one"), a.count("one"), a.quiet("two"), a.count("two"))


def _cc(**headers: object) -> amqp.BasicProperties:
    return amqp.BasicProperties(headers=Table.of(headers))


SCENARIOS = (
    scenario(
        "default exchange",
        *_TWO,
        a.publish("one", b"1"),
        a.publish("nope", b"2"),
        a.publish("two", b"3", mandatory=True),
        *_COUNT_TWO,
    ),
    scenario(
        "direct exchange",
        *_TWO,
        a.exchange("x", "direct"),
        a.bind("one", "x", "k"),
        a.bind("one", "x", "k"),
        a.bind("one", "x", "l"),
        a.bind("two", "x", "k"),
        a.publish("k", b"1", "x"),
        a.publish("l", b"2", "x"),
        a.publish("K", b"3", "x"),
        *_COUNT_TWO,
        a.send(amqp.QueueUnbind(0, "one", "x", "k")),
        a.publish("k", b"4", "x"),
        *_COUNT_TWO,
    ),
    scenario(
        "fanout exchange",
        *_TWO,
        a.exchange("x", "fanout"),
        a.bind("one", "x", "k"),
        a.bind("one", "x", "l"),
        a.bind("two", "x"),
        a.publish("k", b"1", "x"),
        a.publish("", b"2", "x"),
        *_COUNT_TWO,
        a.send(amqp.QueueDelete(queue="one")),
        a.publish("", b"3", "x"),
        a.quiet("two"),
        a.count("two"),
    ),
    scenario("topic exchange", *_topics()),
    scenario(
        "topic exchange, bindings removed",
        *_TWO,
        a.exchange("x", "topic"),
        a.bind("one", "x", "a.#"),
        a.bind("one", "x", "a.*"),
        a.bind("two", "x", "a.#.b"),
        a.send(amqp.QueueUnbind(0, "one", "x", "a.#")),
        a.publish("a", b"1", "x"),
        a.publish("a.b", b"2", "x"),
        *_COUNT_TWO,
        a.send(amqp.QueueUnbind(0, "two", "x", "a.#.b")),
        a.publish("a.b", b"3", "x"),
        *_COUNT_TWO,
    ),
    scenario("headers exchange", *_headers()),
    scenario(
        "headers exchange, bindings that differ by their arguments",
        *_TWO,
        a.exchange("x", "headers"),
        a.bind("one", "x", "", arguments=Table.of({"a": 1, "b": 2})),
        a.bind("one", "x", "", arguments=Table.of({"a": 1})),
        a.send(amqp.QueueUnbind(0, "one", "x", "", Table.of({"b": 2, "a": 1}))),
        a.publish("", b"1", "x", _cc(a=1, b=2)),
        a.send(amqp.QueueUnbind(0, "one", "x", "", Table.of({"a": 1}))),
        a.publish("", b"2", "x", _cc(a=1, b=2)),
        *_COUNT_TWO,
    ),
    scenario(
        "headers exchange, x-match that is none",
        *_TWO,
        a.exchange("x", "headers"),
        a.bind("one", "x", "", arguments=Table.of({"x-match": "some"})),
        a.agreed(),
        a.send(amqp.ChannelOpen()),
        a.bind("one", "x", "", arguments=Table.of({"x-match": 1})),
    ),
    scenario(
        "alternate exchange",
        *_TWO,
        a.exchange("lost", "fanout"),
        a.bind("two", "lost"),
        a.exchange("x", "direct", arguments=Table.of({"alternate-exchange": "lost"})),
        a.bind("one", "x", "k"),
        a.publish("k", b"1", "x"),
        a.publish("other", b"2", "x", mandatory=True),
        *_COUNT_TWO,
        a.send(amqp.ExchangeDelete(exchange="lost")),
        a.publish("other", b"3", "x", mandatory=True),
        a.receive(1),
    ),
    scenario(
        "CC and BCC",
        *_TWO,
        a.publish("one", b"1", "", _cc(CC=["two"])),
        a.publish("nope", b"2", "", _cc(CC=["one"], BCC=["two", 5])),
        a.publish("one", b"3", "", _cc(CC=["one", "one"])),
        *_COUNT_TWO,
        *[a.get("one")] * 4,
        *[a.get("two")] * 3,
        a.publish("one", b"4", "", _cc(CC="two"), answers=1),
    ),
)
