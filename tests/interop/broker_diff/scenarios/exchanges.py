"""Declaring, deleting and binding exchanges."""

from __future__ import annotations

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

from ..steps import Send, Step, a, b, c, scenario

_AGAIN = (a.agreed(), a.send(amqp.ChannelOpen()))


def _passive(name: str) -> Send:
    return a.send(amqp.ExchangeDeclare(exchange=name, passive=True))


def _delete(name: str, if_unused: bool = False) -> Send:
    return a.send(amqp.ExchangeDelete(exchange=name, if_unused=if_unused))


def _link(destination: str, source: str, key: str = "") -> Send:
    return a.send(amqp.ExchangeBind(0, destination, source, key))


def _unlink(destination: str, source: str, key: str = "") -> Send:
    return a.send(amqp.ExchangeUnbind(0, destination, source, key))


def _each_with_error(*steps: Step) -> tuple[Step, ...]:
    return tuple(part for step in steps for part in (step, *_AGAIN))


_ALTERNATE = Table.of({"alternate-exchange": "other"})

SCENARIOS = (
    scenario(
        "exchanges that are there",
        *(_passive(f"amq.{name}") for name in ("direct", "fanout", "topic", "headers", "match")),
        a.exchange("amq.direct", "direct", durable=True),
    ),
    scenario(
        "exchange declare",
        *(a.exchange(f"x-{type_}", type_) for type_ in ("direct", "fanout", "topic", "headers")),
        *(a.exchange(f"x-{type_}", type_) for type_ in ("direct", "fanout", "topic", "headers")),
        a.exchange("y", "direct", durable=True, internal=True, arguments=_ALTERNATE),
        a.exchange("y", "direct", durable=True, internal=True, arguments=_ALTERNATE),
        a.exchange("z", "direct", no_wait=True),
        _passive("z"),
        a.send(amqp.ExchangeDeclare(exchange="z", passive=True, no_wait=True)),
        _passive("z"),
    ),
    scenario("exchange declare, unknown type", a.exchange("x", "no such type at all")),
    scenario("exchange declare, no type", a.exchange("x", "")),
    scenario(
        "exchange declare, refused",
        *_each_with_error(
            _passive("nope"),
            _passive(""),
            a.exchange("", "direct"),
            a.exchange("amq.mine", "direct"),
            a.exchange("amq.direct", "fanout", durable=True),
            a.exchange("amq.topic", "topic"),
            a.exchange("x", "direct", arguments=Table.of({"alternate-exchange": 1})),
        ),
    ),
    scenario(
        "exchange declare, not as before",
        a.exchange("x", "direct", arguments=_ALTERNATE),
        *_each_with_error(
            a.exchange("x", "fanout", arguments=_ALTERNATE),
            a.exchange("x", "direct", durable=True, arguments=_ALTERNATE),
            a.exchange("x", "direct", auto_delete=True, arguments=_ALTERNATE),
            a.exchange("x", "direct", internal=True, arguments=_ALTERNATE),
            a.exchange("x", "direct"),
            a.exchange("x", "direct", arguments=Table.of({"alternate-exchange": "x"})),
            a.exchange("x", "direct", arguments=Table.of({"alternate-exchange": 5})),
        ),
        a.exchange("x", "direct", arguments=_ALTERNATE.with_("more", 1)),
        a.exchange("w", "topic"),
        a.exchange("w", "topic", arguments=_ALTERNATE),
    ),
    scenario(
        "exchange delete",
        _delete("nope"),
        a.exchange("x", "fanout"),
        a.queue("q"),
        a.bind("q", "x"),
        _delete("x", if_unused=True),
        *_AGAIN,
        _delete("x"),
        a.publish("", b"lost", exchange="x", answers=1),
        *_AGAIN,
        *_each_with_error(_delete(""), _delete("amq.direct"), _delete("amq.nope")),
        a.exchange("y", "fanout"),
        _delete("y", if_unused=True),
        a.exchange("y", "fanout"),
        a.send(amqp.ExchangeDelete(exchange="y", no_wait=True)),
        _passive("y"),
    ),
    scenario(
        "exchange bind, and the way through",
        a.exchange("from", "topic"),
        a.exchange("to", "fanout"),
        a.queue("q"),
        a.bind("q", "to"),
        _link("to", "from", "a.*"),
        _link("to", "from", "a.*"),
        a.publish("a.b", b"1", exchange="from"),
        a.publish("b.b", b"2", exchange="from"),
        a.quiet("q"),
        a.count("q"),
        _unlink("to", "from", "a.*"),
        _unlink("to", "from", "a.*"),
        a.publish("a.b", b"3", exchange="from", mandatory=True),
        a.receive(1),
        a.send(amqp.ExchangeBind(0, "to", "from", "z", no_wait=True)),
        a.publish("z", b"4", exchange="from"),
        a.send(amqp.ExchangeUnbind(0, "to", "from", "z", no_wait=True)),
        a.publish("z", b"5", exchange="from", mandatory=True),
        a.receive(1),
        a.quiet("q"),
        a.count("q"),
    ),
    scenario(
        "exchange bind, refused",
        a.exchange("x", "fanout"),
        *_each_with_error(
            _link("x", "nope"),
            _link("nope", "x"),
            _link("nope", "nope too"),
            _link("", "x"),
            _link("x", ""),
            _unlink("x", ""),
        ),
        _unlink("x", "nope"),
        _unlink("nope", "x"),
        _unlink("x", "x", "nope"),
    ),
    scenario(
        "exchanges bound in a circle",
        a.exchange("x", "fanout"),
        a.exchange("y", "fanout"),
        a.queue("q"),
        _link("x", "y"),
        _link("y", "x"),
        _link("x", "x"),
        a.bind("q", "y"),
        a.publish("", b"once", exchange="x"),
        a.quiet("q"),
        a.count("q"),
    ),
    scenario(
        "auto-delete exchange goes with its last binding",
        a.exchange("x", "direct", auto_delete=True),
        a.queue("q"),
        a.bind("q", "x", "1"),
        a.bind("q", "x", "2"),
        a.send(amqp.QueueUnbind(0, "q", "x", "1")),
        _passive("x"),
        a.send(amqp.QueueUnbind(0, "q", "x", "2")),
        _passive("x"),
    ),
    scenario(
        "auto-delete exchanges go in a chain",
        a.exchange("x", "fanout", auto_delete=True),
        a.exchange("y", "fanout", auto_delete=True),
        a.queue("q"),
        _link("y", "x"),
        a.bind("q", "y"),
        a.send(amqp.QueueDelete(queue="q")),
        _passive("y"),
        *_AGAIN,
        _passive("x"),
    ),
    scenario(
        "auto-delete exchange that was never bound stays",
        a.exchange("x", "fanout", auto_delete=True),
        a.publish("", b"", exchange="x"),
        _passive("x"),
    ),
    scenario(
        "internal exchange",
        a.exchange("outer", "fanout"),
        a.exchange("inner", "fanout", internal=True),
        a.queue("q"),
        a.bind("q", "inner"),
        _link("inner", "outer"),
        a.publish("", b"1", exchange="outer"),
        a.quiet("q"),
        a.count("q"),
        a.publish("", b"2", exchange="inner", answers=1),
    ),
    scenario(
        "line ends in names are dropped",
        a.exchange("x\r\n", "fanout"),
        a.queue("q\n"),
        b.bind("q\n", "x\r"),
        c.publish("", b"1", exchange="x"),
        c.quiet("q"),
        b.get("q"),
        b.send(amqp.QueueUnbind(0, "q\n", "x\n", "")),
        b.send(amqp.QueueDelete(queue="q\n")),
        b.send(amqp.ExchangeDelete(exchange="x\n")),
        _passive("x"),
    ),
)
