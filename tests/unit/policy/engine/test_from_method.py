"""From methods to the operations that a policy judges."""

from __future__ import annotations

import pytest

from amqpgate.gateway.session.dispatch import UP, Do
from amqpgate.policy import OPERATIONS, Entries, Operation, Principal
from amqpgate.policy.engine.from_method import content_of, operation_of
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Field, Table

WHO = Principal(user="u", vhost="v")


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (amqp.BasicPublish(exchange="e", routing_key="k"), {"exchange": "e", "routing_key": "k"}),
        (amqp.BasicPublish(), {"exchange": "", "routing_key": ""}),
        (amqp.QueueDeclare(queue="q"), {"queue": "q"}),
        (amqp.QueueDeclare(), {"queue": ""}),
        (amqp.QueueDeclare(passive=True), {"queue": "last"}),
        (
            amqp.QueueBind(queue="q", exchange="e", routing_key="k"),
            {"queue": "q", "exchange": "e", "routing_key": "k"},
        ),
        (amqp.QueueBind(queue="q", exchange="e"), {"queue": "q", "exchange": "e", "routing_key": ""}),
        # "If the queue name is empty, and the routing key too, both are the last queue's" (queue.bind).
        (amqp.QueueBind(exchange="e"), {"queue": "last", "exchange": "e", "routing_key": "last"}),
        (
            amqp.QueueBind(exchange="e", routing_key="k"),
            {"queue": "last", "exchange": "e", "routing_key": "k"},
        ),
        (amqp.QueueUnbind(exchange="e"), {"queue": "last", "exchange": "e", "routing_key": "last"}),
        (amqp.QueuePurge(), {"queue": "last"}),
        (amqp.QueueDelete(queue="q"), {"queue": "q"}),
        (amqp.BasicConsume(), {"queue": "last"}),
        (amqp.BasicGet(queue="q"), {"queue": "q"}),
        (amqp.ExchangeDeclare(exchange="e"), {"exchange": "e"}),
        (amqp.ExchangeDeclare(exchange="e", passive=True), {"exchange": "e"}),
        (amqp.ExchangeDelete(exchange="e"), {"exchange": "e"}),
        (
            amqp.ExchangeBind(destination="d", source="s", routing_key="k"),
            {"exchange": "s", "destination": "d", "routing_key": "k"},
        ),
        (
            amqp.ExchangeUnbind(destination="d", source="s", routing_key="k"),
            {"exchange": "s", "destination": "d", "routing_key": "k"},
        ),
    ],
    ids=repr,
)
def test_what_a_method_asks_for(method: Method, expected: dict[str, str]) -> None:
    operation = operation_of(method, WHO, "last")
    passive = bool(getattr(method, "passive", False))
    assert operation == Operation(WHO, method.NAME, **expected, passive=passive)
    assert set(expected) == set(OPERATIONS[method.NAME].attributes)


def test_every_method_that_is_judged_is_an_operation() -> None:
    judged = [index for index, do in UP.items() if do is Do.DECIDE]
    names = {amqp.METHODS[index].NAME for index in judged}
    # These have answers of their own; recover-async is an older name of recover.
    assert names | {"channel.open", "connection.open"} == set(OPERATIONS) | {"basic.recover-async"}
    for index in judged:
        operation_of(amqp.METHODS[index](), WHO, "")


def test_other_methods_are_none_of_its_business() -> None:
    with pytest.raises(AssertionError, match=r"basic\.ack is in no policy's table"):
        operation_of(amqp.BasicAck(), WHO, "")


#: A table that says a name twice, and has one with a name twice in it.
TWICE = Table(
    (
        ("n", Field("I", 1)),
        ("CC", Field("A", (Field("S", b"a.\xff"), Field("S", "b"), Field("I", 7)))),
        ("n", Field("A", (Field("F", Table((("m", Field("S", "x")), ("m", Field("x", b"y"))))),))),
    )
)


def told(entries: object) -> object:
    """All that policies see of a table."""
    if isinstance(entries, Entries):
        return [(name, told(value)) for name, value in (*entries.items(), *entries.more)]
    return [told(item) for item in entries] if isinstance(entries, list) else entries


@pytest.mark.parametrize("method", [amqp.QueueDeclare(arguments=TWICE), amqp.ExchangeBind(arguments=TWICE)])
def test_no_argument_is_left_out(method: Method) -> None:
    expected = [("n", 1), ("CC", [b"a.\xff", "b", 7]), ("n", [[("m", "x"), ("m", b"y")]])]
    assert told(operation_of(method, WHO, "last").arguments) == expected


def test_no_header_is_left_out() -> None:
    content = content_of(ContentHeader(60, 3, amqp.BasicProperties(headers=TWICE, reply_to="q")))
    assert told(content.headers) == [
        ("n", 1),
        ("CC", [b"a.\xff", "b", 7]),
        ("n", [[("m", "x"), ("m", b"y")]]),
    ]
    assert content.more_keys == ["a.\udcff", "b"]
    assert content.properties == {"reply_to": "q"}
    assert content.body_size == 3
