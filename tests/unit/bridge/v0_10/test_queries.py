"""Queries: what passive declares tell, what RabbitMQ lets slip, and what is known."""

from __future__ import annotations

import pytest

from amqpgate.bridge.v0_10.topology import (
    MOST_ARGUMENTS,
    MOST_KNOWN,
    Binding,
    KnownExchange,
    KnownQueue,
    KnownTopology,
)
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.tables import EMPTY_TABLE, Table
from amqpgate.wire.v0_10.types import Map, Value
from tests.unit.bridge.v0_10.lab import Lab, broker_state
from tests.unit.broker.client import Client

ARGUMENTS = Map(((b"a", Value(0x95, b"1")),))


@pytest.fixture
def lab() -> Lab:
    return Lab().open().attach()


def test_exchange_that_is_not_there(lab: Lab) -> None:
    assert lab.query(amqp10.ExchangeQuery(name=b"nope")).not_found
    # The session lives, and so do later questions.
    assert lab.query(amqp10.ExchangeQuery(name=b"nope")).not_found


@pytest.mark.parametrize(
    ("name", "kind"), [(b"", b"direct"), (b"amq.topic", b"topic"), (b"amq.match", b"headers")]
)
def test_exchanges_that_every_broker_has(lab: Lab, name: bytes, kind: bytes) -> None:
    result = lab.query(amqp10.ExchangeQuery(name=name))
    assert (result.type, result.durable, result.not_found) == (kind, True, False)
    assert all(method.passive for _, method in lab.asked if isinstance(method, amqp.ExchangeDeclare))


def test_exchange_that_was_declared_here(lab: Lab) -> None:
    lab.do(amqp10.ExchangeDeclare(exchange=b"x", type=b"fanout", arguments=ARGUMENTS))
    result = lab.query(amqp10.ExchangeQuery(name=b"x"))
    assert (result.type, result.durable, result.arguments) == (b"fanout", False, ARGUMENTS)


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
@pytest.mark.parametrize("is_durable", [True, False])
@pytest.mark.parametrize("has_alternate", [True, False])
def test_exchange_that_somebody_else_declared(kind: str, is_durable: bool, has_alternate: bool) -> None:
    state = broker_state()
    arguments = {"alternate-exchange": "amq.fanout"} if has_alternate else {}
    other = Client(state)
    other.tell(
        amqp.ExchangeDeclare(exchange="x", type=kind, durable=is_durable, arguments=EMPTY_TABLE.of(arguments))
    )
    lab = Lab(state).open().attach()
    result = lab.query(amqp10.ExchangeQuery(name=b"x"))
    assert (result.type, result.durable) == (kind.encode(), is_durable)
    # It is known from now on, and as it was.
    asked = len(lab.asked)
    assert lab.query(amqp10.ExchangeQuery(name=b"x")) == result
    assert lab.names()[asked:] == ["channel.open", "exchange.declare"]
    assert lab.query(amqp10.ExchangeQuery(name=b"amqpgate.asks.for.the.type")).not_found


def test_exchange_that_goes_between_two_questions_is_not_left_behind(lab: Lab) -> None:
    lab.is_live = False
    lab.do(amqp10.ExchangeQuery(name=b"x"))
    channel = 1
    lab.tell(amqp.ChannelOpenOk(), channel)
    lab.tell(amqp.ExchangeDeclareOk(), channel)
    lab.tell(amqp.ExchangeDeclareOk(), channel)
    assert lab.asked[-1] == (channel, amqp.ExchangeDelete(exchange="x"))
    lab.tell(amqp.ExchangeDeleteOk(), channel)
    [result] = [one for one in lab.commands() if isinstance(one, amqp10.ExecutionResult)]
    assert result.value == amqp10.ExchangeQueryResult().encode()


def test_queue_that_is_not_there_has_no_fields(lab: Lab) -> None:
    assert lab.query(amqp10.QueueQuery(queue=b"nope")) == amqp10.QueueQueryResult()
    assert lab.query(amqp10.QueueQuery()) == amqp10.QueueQueryResult()


def test_queue_that_was_declared_here(lab: Lab) -> None:
    lab.do(
        amqp10.QueueDeclare(queue=b"q", alternate_exchange=b"amq.fanout", exclusive=True, auto_delete=True)
    )
    lab.transfer(b"m", b"q")
    assert lab.query(amqp10.QueueQuery(queue=b"q")) == amqp10.QueueQueryResult(
        queue=b"q",
        alternate_exchange=b"amq.fanout",
        exclusive=True,
        auto_delete=True,
        message_count=1,
        subscriber_count=0,
    )


def test_a_subscription_without_credit_is_counted(lab: Lab) -> None:
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    for destination in (b"with", b"without"):
        lab.do(amqp10.MessageSubscribe(queue=b"q", destination=destination, accept_mode=0))
    for unit in (1, 0):
        lab.do(amqp10.MessageFlow(destination=b"with", unit=unit, value=5))
    result = lab.query(amqp10.QueueQuery(queue=b"q"))
    assert isinstance(result, amqp10.QueueQueryResult)
    assert "basic.consume" in lab.names()
    assert result.subscriber_count == 2


def test_queue_that_is_another_connections_is_there() -> None:
    state = broker_state()
    Client(state).tell(amqp.QueueDeclare(queue="q", exclusive=True))
    lab = Lab(state).open().attach()
    result = lab.query(amqp10.QueueQuery(queue=b"q"))
    assert (result.queue, result.exclusive, result.message_count) == (b"q", True, 0)
    assert not lab.query(amqp10.ExchangeBound(queue=b"q")).queue_not_found


def bound(lab: Lab, **fields: bytes | Map) -> set[str]:
    """What is not so, by name."""
    result = lab.query(amqp10.ExchangeBound(**fields))
    return {name for name in result.__match_args__ if getattr(result, name)}


def test_bound_says_what_is_there(lab: Lab) -> None:
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    assert bound(lab, exchange=b"q", queue=b"q", binding_key=b"", arguments=Map()) == {"exchange_not_found"}
    assert bound(lab, exchange=b"amq.topic", queue=b"amq.topic") == {"queue_not_found"}
    assert bound(lab, exchange=b"nope", queue=b"nope") == {"exchange_not_found", "queue_not_found"}
    assert bound(lab, exchange=b"amq.topic") == set()


def test_bound_on_the_default_exchange_is_exact(lab: Lab) -> None:
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    assert bound(lab, exchange=b"", queue=b"q", binding_key=b"q") == set()
    assert bound(lab, exchange=b"", queue=b"q", binding_key=b"k") == {"key_not_matched"}


def test_bound_counts_what_nobody_knows_as_bound(lab: Lab) -> None:
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    assert bound(lab, exchange=b"amq.direct", queue=b"q", binding_key=b"k") == set()
    lab.do(amqp10.ExchangeBind(queue=b"q", exchange=b"amq.direct", binding_key=b"k"))
    lab.do(amqp10.ExchangeUnbind(queue=b"q", exchange=b"amq.direct", binding_key=b"k"))
    assert bound(lab, exchange=b"amq.direct", queue=b"q", binding_key=b"k") == {"key_not_matched"}
    lab.do(amqp10.ExchangeBind(queue=b"q", exchange=b"amq.direct", binding_key=b"k"))
    assert bound(lab, exchange=b"amq.direct", queue=b"q", binding_key=b"k") == set()


def test_bound_of_an_exclusive_queue_is_exact(lab: Lab) -> None:
    lab.do(amqp10.QueueDeclare(queue=b"q", exclusive=True, auto_delete=True))
    assert bound(lab, exchange=b"amq.direct", queue=b"q") == {"queue_not_matched"}
    lab.do(amqp10.ExchangeBind(queue=b"q", exchange=b"amq.direct", binding_key=b"k", arguments=ARGUMENTS))
    assert bound(lab, exchange=b"amq.direct", queue=b"q") == set()
    assert bound(lab, exchange=b"amq.direct", queue=b"q", binding_key=b"k", arguments=ARGUMENTS) == set()
    assert bound(lab, exchange=b"amq.direct", queue=b"q", binding_key=b"l") == {"key_not_matched"}
    other = Map(((b"a", Value(0x95, b"2")),))
    assert bound(lab, exchange=b"amq.direct", queue=b"q", binding_key=b"k", arguments=other) == {
        "args_not_matched"
    }


def test_what_is_known_is_bounded() -> None:
    topology = KnownTopology()
    queue = KnownQueue(
        durable=False, exclusive=True, auto_delete=False, alternate_exchange=None, arguments=None
    )
    for number in range(MOST_KNOWN + 10):
        topology.put_queue(str(number), queue)
        topology.bind(Binding("q", "x", str(number)), EMPTY_TABLE)
    assert topology.queue("9") is None
    assert topology.queue("10") is queue
    assert len(topology.bindings_of("q", "x")) == MOST_KNOWN


@pytest.mark.parametrize("size", [1000, 40_000])
def test_arguments_that_are_known_are_bounded_in_bytes(size: int) -> None:
    """However few there are, and though the same one is declared again and again."""
    topology = KnownTopology()
    arguments = Map(((b"a", Value(0x95, bytes(size))),))
    table = Table.of({"a": "x" * size})
    queue = KnownQueue(False, True, False, None, arguments)
    exchange = KnownExchange(b"topic", arguments=arguments)
    count = 2 * MOST_ARGUMENTS // size
    for number in (*range(count), *[count - 1] * count):
        topology.put_queue(str(number), queue)
        topology.put_exchange(str(number), exchange)
        topology.bind(Binding("q", "x", str(number)), table)
    most = MOST_ARGUMENTS // size
    names = [str(number) for number in range(count)]
    for known in (
        [name for name in names if topology.queue(name) is not None],
        [name for name in names if topology.exchange(name) is not None],
        list(topology.bindings_of("q", "x")),
    ):
        assert most - 12 <= len(known) <= most
        assert known == names[-len(known) :]


def test_one_whose_arguments_are_larger_than_that_is_known() -> None:
    topology = KnownTopology()
    arguments = Map(((b"a", Value(0xA0, bytes(MOST_ARGUMENTS))),))
    for name in ("one", "two"):
        topology.put_queue(name, KnownQueue(False, True, False, None, arguments))
    assert topology.queue("one") is None
    assert topology.queue("two") is not None
    topology.drop_queue("two")
    assert topology.queue("two") is None
