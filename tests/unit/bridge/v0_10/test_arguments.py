"""Arguments of declarations, bindings and subscriptions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.bridge.v0_10.arguments import (
    arguments_of,
    bind_arguments,
    consume_arguments,
    exchange_arguments,
    exchange_bind,
    exchange_declare,
    exchange_unbind,
    is_no_local,
    queue_arguments,
    queue_declare,
    subscribe_arguments,
)
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.methods import Role
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.table_codec import get_table, put_table
from amqpgate.wire.tables import EMPTY_TABLE, Table
from amqpgate.wire.v0_10.codec import decode_command, encode_command
from amqpgate.wire.v0_10.structs import Command
from amqpgate.wire.v0_10.types import Content, Map, Value
from tests.support.said_0_10 import NAMES, conversations, sent_by
from tests.unit.wire.strategies import FIELD, TABLE
from tests.unit.wire.v0_10.strategies import STR8, VALUE


def _one(name: str, value: Value) -> Map:
    return Map(((name.encode(), value),))


def _text(text: str) -> Value:
    return Value(0x95, text.encode())


def _number(value: Content) -> Value:
    return Value(0x31, value)


# -- to 0-9-1 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "made"),
    [
        ("qpid.max_count", _number(10), {"x-max-length": 10, "x-overflow": "reject-publish"}),
        ("qpid.max_count", Value(0x22, 10), {"x-max-length": 10, "x-overflow": "reject-publish"}),
        ("qpid.max_count", _text("10"), {"x-max-length": 10, "x-overflow": "reject-publish"}),
        ("qpid.max_count", _number(0), {}),
        ("qpid.max_size", _number(2**40), {"x-max-length-bytes": 2**40, "x-overflow": "reject-publish"}),
        ("qpid.policy_type", _text("ring"), {"x-overflow": "drop-head"}),
        ("qpid.policy_type", Value(0x90, b"RING"), {"x-overflow": "drop-head"}),
        ("qpid.policy_type", _text("reject"), {"x-overflow": "reject-publish"}),
        ("qpid.auto_delete_timeout", _number(5), {"x-expires": 5000}),
        ("qpid.auto_delete_timeout", _number(0), {}),
        ("qpid.priorities", _number(10), {"x-max-priority": 9}),
        ("x-qpid-priorities", _number(300), {"x-max-priority": 9}),
        ("qpid.priorities", _number(5), {"x-max-priority": 6}),
        ("qpid.priorities", _number(2), {"x-max-priority": 5}),
        ("qpid.priorities", _number(1), {}),
        ("no-local", Value(0x08, False), {}),
        ("no-local", _text("false"), {}),
        ("no-local", _text(""), {}),
        ("x-filter-jms-selector", _text(""), {}),
        ("qpid.file_size", _number(5), {}),
        ("qpid.flow_stop_count", _number(5), {}),
        ("qpid.alert_count", _number(5), {}),
        ("qpid.replicate", _text("none"), {}),
        ("x-message-ttl", _number(5), {"x-message-ttl": 5}),
        ("x-queue-type", Value(0x90, b"quorum"), {"x-queue-type": "quorum"}),
        ("x-any", Value(0x90, b"\xff"), {"x-any": b"\xff"}),
        ("any", Value(0x90, b"octets"), {"any": b"octets"}),
    ],
)
def test_a_queue_of_qpids(name: str, value: Value, made: dict[str, object]) -> None:
    command = amqp10.QueueDeclare(b"q", auto_delete=True, arguments=_one(name, value))
    assert queue_arguments(command).to_python() == made


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("qpid.policy_type", _text("flow_to_disk")),
        ("qpid.policy_type", _text("self-destruct")),
        ("qpid.policy_type", _number(1)),
        ("qpid.last_value_queue_key", _text("key")),
        ("qpid.last_value_queue", _number(1)),
        ("qpid.queue_msg_sequence", _text("key")),
        ("qpid.group_header_key", _text("key")),
        ("qpid.browse-only", Value(0x08, True)),
        ("qpid.filter", _text("a=1")),
        ("qpid.new", _number(1)),
        ("x-qpid-fairshare", _number(1)),
    ],
)
def test_what_rabbitmq_has_none_of_is_refused_or_ignored(name: str, value: Value) -> None:
    command = amqp10.QueueDeclare(b"q", arguments=_one(name, value))
    with pytest.raises(ProtocolViolation) as caught:
        queue_arguments(command)
    assert caught.value.code == 540
    assert name in caught.value.text
    assert queue_arguments(command, ignore_qpid=True) == EMPTY_TABLE


def test_a_ring_with_priorities_would_lose_the_wrong_ones() -> None:
    given = Map(((b"qpid.policy_type", _text("ring")), (b"qpid.priorities", _number(10))))
    command = amqp10.QueueDeclare(b"q", arguments=given)
    with pytest.raises(ProtocolViolation) as caught:
        queue_arguments(command)
    assert caught.value.code == 540
    made = queue_arguments(command, ignore_qpid=True)
    assert made.to_python() == {"x-overflow": "drop-head", "x-max-priority": 9}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("no-local", Value(0x08, True)),
        ("no-local", _text("true")),
        ("x-filter-jms-selector", _text("a=1")),
        ("x-apache-selector", _text("a=1")),
    ],
)
def test_what_would_deliver_other_messages_is_never_ignored(name: str, value: Value) -> None:
    arguments = _one(name, value)
    if name == "no-local":
        # Queues have it: see ``no_local``.
        declare = amqp10.QueueDeclare(arguments=arguments)
        assert queue_arguments(declare) == EMPTY_TABLE
        assert is_no_local(declare)
    else:
        with pytest.raises(ProtocolViolation) as caught:
            queue_arguments(amqp10.QueueDeclare(arguments=arguments), ignore_qpid=True)
        assert caught.value.code == 540
    for made in (
        partial(exchange_arguments, amqp10.ExchangeDeclare(arguments=arguments)),
        partial(bind_arguments, amqp10.ExchangeBind(arguments=arguments)),
        partial(consume_arguments, amqp10.MessageSubscribe(arguments=arguments)),
    ):
        with pytest.raises(ProtocolViolation) as caught:
            made(ignore_qpid=True)
        assert caught.value.code == 540


@pytest.mark.parametrize(
    "name", ["qpid.max_count", "qpid.max_size", "qpid.auto_delete_timeout", "qpid.priorities"]
)
@pytest.mark.parametrize(
    "value",
    [
        _number(-1),
        _text("many"),
        _text(""),
        _text("\u0663"),
        _text("9" * 16),
        Value(0x32, 2**63),
        Value(0xF0, None),
    ]
    + [Value(0x33, 1.5), Value(0xA0, b"\xff"), Value(0xA8, Map()), Value(0x08, True)],
)
def test_a_limit_that_is_no_number_is_refused(name: str, value: Value) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        queue_arguments(amqp10.QueueDeclare(b"q", arguments=_one(name, value)))
    assert caught.value.code == 542


def test_a_queue_that_is_not_auto_delete_does_not_expire() -> None:
    command = amqp10.QueueDeclare(b"q", arguments=_one("qpid.auto_delete_timeout", _number(5)))
    assert queue_arguments(command) == EMPTY_TABLE


def test_limits_and_a_policy() -> None:
    arguments = Map(
        (
            (b"qpid.max_count", _number(1)),
            (b"other", _number(2)),
            (b"qpid.max_size", _number(3)),
            (b"qpid.policy_type", _text("ring")),
        )
    )
    assert queue_arguments(amqp10.QueueDeclare(b"q", arguments=arguments)).to_python() == {
        "x-max-length": 1,
        "x-max-length-bytes": 3,
        "x-overflow": "drop-head",
        "other": 2,
    }


def test_rabbitmqs_own_words_count_and_stand_once() -> None:
    arguments = Map(
        (
            (b"x-max-length", _number(1)),
            (b"qpid.max_count", _number(2)),
            (b"x-max-length", _number(3)),
            (b"x-overflow", _text("drop-head")),
        )
    )
    made = queue_arguments(amqp10.QueueDeclare(b"q", arguments=arguments))
    assert made.to_python() == {"x-max-length": 3, "x-overflow": "drop-head"}
    assert len(made) == 2


@pytest.mark.parametrize("alternate", [None, b""])
def test_no_alternate_exchange(alternate: bytes | None) -> None:
    """An empty name would be the default exchange."""
    assert queue_arguments(amqp10.QueueDeclare(b"q", alternate_exchange=alternate)) == EMPTY_TABLE
    assert exchange_arguments(amqp10.ExchangeDeclare(b"x", alternate_exchange=alternate)) == EMPTY_TABLE


def test_an_alternate_exchange() -> None:
    """It stands where policies look for it, and nowhere else."""
    arguments = Map(((b"x-dead-letter-exchange", _text("x")), (b"alternate-exchange", _text("y"))))
    queue = queue_arguments(amqp10.QueueDeclare(b"q", b"alt", arguments=arguments))
    assert queue.to_python() == {"x-dead-letter-exchange": "alt", "alternate-exchange": "y"}
    exchange = exchange_arguments(
        amqp10.ExchangeDeclare(b"x", b"topic", alternate_exchange=b"alt", arguments=arguments)
    )
    assert exchange.to_python() == {"x-dead-letter-exchange": "x", "alternate-exchange": "alt"}
    assert len(queue) == len(exchange) == 2


def test_an_alternate_exchange_whose_name_is_no_text() -> None:
    for made in (
        partial(queue_arguments, amqp10.QueueDeclare(b"q", b"\xff")),
        partial(exchange_arguments, amqp10.ExchangeDeclare(b"x", alternate_exchange=b"\xff")),
    ):
        with pytest.raises(ProtocolViolation) as caught:
            made()
        assert caught.value.code == 542


def test_an_exchange_of_qpids() -> None:
    with pytest.raises(ProtocolViolation) as caught:
        exchange_arguments(amqp10.ExchangeDeclare(b"x", arguments=_one("qpid.msg_sequence", _number(1))))
    assert caught.value.code == 540
    command = amqp10.ExchangeDeclare(b"x", arguments=_one("qpid.replicate", _text("all")))
    assert exchange_arguments(command) == EMPTY_TABLE


def test_a_binding() -> None:
    arguments = Map(((b"x-match", Value(0x90, b"any")), (b"a", _number(1)), (b"b", Value(0x90, b"b"))))
    made = bind_arguments(amqp10.ExchangeBind(b"q", b"x", b"k", arguments))
    assert made.to_python() == {"x-match": "any", "a": 1, "b": b"b"}
    assert arguments_of(arguments) == made
    for name in ("qpid.exclusive-binding", "qpid.fed.op"):
        with pytest.raises(ProtocolViolation):
            bind_arguments(amqp10.ExchangeBind(b"q", b"x", b"k", _one(name, _number(1))))
    assert bind_arguments(amqp10.ExchangeBind()) == arguments_of(None) == EMPTY_TABLE


def test_a_subscription() -> None:
    """As Qpid's JMS client makes it, and with a priority."""
    arguments = Map(((b"x-filter-jms-selector", _text("")), (b"x-priority", Value(0x21, 5))))
    made = consume_arguments(amqp10.MessageSubscribe(b"q", b"d", arguments=arguments))
    assert made.to_python() == {"x-priority": 5}
    with pytest.raises(ProtocolViolation):
        consume_arguments(amqp10.MessageSubscribe(arguments=_one("x-multiqueue", Value(0xA9, ()))))


# -- to 0-10 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "made", "auto_delete"),
    [
        ("x-max-length", 10, {"qpid.max_count": 10, "qpid.policy_type": b"ring"}, False),
        ("x-max-length-bytes", 2**40, {"qpid.max_size": 2**40, "qpid.policy_type": b"ring"}, False),
        ("x-overflow", "drop-head", {"qpid.policy_type": b"ring"}, False),
        ("x-overflow", "reject-publish", {"qpid.policy_type": b"reject"}, False),
        ("x-expires", 5001, {"qpid.auto_delete_timeout": 6}, True),
        ("x-max-priority", 5, {"qpid.priorities": 10}, False),
        ("x-max-priority", 255, {"qpid.priorities": 10}, False),
        ("x-max-priority", 0, {}, False),
        ("x-queue-type", "classic", {}, False),
        ("x-queue-mode", "lazy", {}, False),
        ("x-queue-version", 2, {}, False),
        ("x-queue-master-locator", "min-masters", {}, False),
        ("x-single-active-consumer", False, {}, False),
        ("qpid.last_value_queue_key", "k", {"qpid.last_value_queue_key": b"k"}, False),
        ("any", True, {"any": True}, False),
    ],
)
def test_a_queue_of_rabbitmqs(name: str, value: object, made: dict[str, object], auto_delete: bool) -> None:
    command = queue_declare(amqp.QueueDeclare(queue="q", arguments=Table.of({name: value})))
    entries = command.arguments.entries if command.arguments else ()
    assert {key.decode(): one.value for key, one in entries} == made
    assert command.auto_delete is auto_delete


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-message-ttl", 1),
        ("x-dead-letter-routing-key", "k"),
        ("x-delivery-limit", 1),
        ("x-queue-type", "quorum"),
        ("x-queue-type", "stream"),
        ("x-single-active-consumer", True),
        ("x-overflow", "reject-publish-dlx"),
        ("x-overflow", 1),
    ],
)
def test_what_0_10_has_none_of_is_refused(name: str, value: object) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        queue_declare(amqp.QueueDeclare(queue="q", arguments=Table.of({name: value})))
    assert caught.value.code == 540


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-max-length", -1),
        ("x-max-length", "10"),
        ("x-max-length", True),
        ("x-max-length-bytes", 1.5),
        ("x-expires", 0),
        ("x-max-priority", None),
        ("x-dead-letter-exchange", 1),
        ("x-dead-letter-exchange", b"x"),
    ],
)
def test_an_invalid_argument_is_refused_as_rabbitmq_does(name: str, value: object) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        queue_declare(amqp.QueueDeclare(queue="q", arguments=Table.of({name: value})))
    assert (caught.value.code, caught.value.text) == (406, f"invalid arg '{name}'")


def test_the_rest_of_a_queue() -> None:
    method = amqp.QueueDeclare(
        queue="q",
        durable=True,
        exclusive=True,
        arguments=Table.of({"x-dead-letter-exchange": "alt"}),
    )
    assert queue_declare(method) == amqp10.QueueDeclare(
        b"q", b"alt", durable=True, exclusive=True, auto_delete=True
    )
    assert queue_declare(amqp.QueueDeclare(queue="q", passive=True)) == amqp10.QueueDeclare(
        b"q", passive=True
    )
    assert queue_declare(amqp.QueueDeclare(queue="q", auto_delete=True)).auto_delete


def test_an_exchange_of_rabbitmqs() -> None:
    method = amqp.ExchangeDeclare(
        exchange="x",
        type="topic",
        durable=True,
        auto_delete=True,
        arguments=Table.of({"alternate-exchange": "alt", "a": 1}),
    )
    assert exchange_declare(method) == amqp10.ExchangeDeclare(
        b"x", b"topic", b"alt", durable=True, auto_delete=True, arguments=Map(((b"a", Value(0x21, 1)),))
    )
    assert exchange_declare(amqp.ExchangeDeclare(exchange="x", internal=True, passive=True)).passive
    with pytest.raises(ProtocolViolation) as caught:
        exchange_declare(amqp.ExchangeDeclare(exchange="x", internal=True))
    assert caught.value.code == 540
    with pytest.raises(ProtocolViolation) as caught:
        exchange_declare(amqp.ExchangeDeclare(exchange="x", arguments=Table.of({"alternate-exchange": 1})))
    assert caught.value.code == 406


def test_a_binding_and_a_consumer_of_rabbitmqs() -> None:
    method = amqp.QueueBind(queue="q", exchange="x", routing_key="k", arguments=Table.of({"x-match": "all"}))
    assert exchange_bind(method).arguments == _one("x-match", _text("all"))
    assert exchange_bind(amqp.QueueBind()) == amqp10.ExchangeBind(b"", b"", b"")
    assert subscribe_arguments(amqp.BasicConsume(arguments=Table.of({"x-priority": 5}))) == _one(
        "x-priority", Value(0x21, 5)
    )
    assert subscribe_arguments(amqp.BasicConsume()) is None
    with pytest.raises(ProtocolViolation):
        subscribe_arguments(amqp.BasicConsume(arguments=Table.of({"x-stream-offset": "first"})))


def _bound(key: str, arguments: dict[str, object]) -> amqp10.ExchangeBind:
    return exchange_bind(amqp.QueueBind(routing_key=key, arguments=Table.of(arguments)))


def test_bindings_of_headers_are_told_apart_by_their_arguments() -> None:
    """qpidd takes one binding for each key, and RabbitMQ's clients name no keys there."""
    one = _bound("", {"x-match": "all", "a": 1, "b": {"c": "d"}})
    assert one.binding_key != _bound("", {"x-match": "all", "a": 2, "b": {"c": "d"}}).binding_key
    assert one.binding_key != _bound("", {"x-match": "any", "a": 1, "b": {"c": "d"}}).binding_key
    assert one.binding_key != _bound("k", {"x-match": "all", "a": 1, "b": {"c": "d"}}).binding_key
    again = Table.of({"b": {"c": "d"}, "a": 1, "x-match": "all"})
    assert exchange_unbind(amqp.QueueUnbind(arguments=again)).binding_key == one.binding_key
    longest = _bound("k" * 255, {"x-match": "all"}).binding_key
    assert longest is not None
    assert len(longest) <= 255


def test_other_bindings_keep_their_key() -> None:
    """With arguments they are compared with all of them, to RabbitMQ; without they are of no headers."""
    bind = _bound("a.#", {"a": 1})
    assert bind.binding_key == b"a.#"
    assert bind.arguments is not None
    assert bind.arguments.get(b"x-match") == _text("all")
    assert _bound("a.#", {}).arguments is None
    arguments = Table.of({"a": 1})
    assert exchange_unbind(amqp.QueueUnbind(routing_key="k", arguments=arguments)).binding_key == b"k"


# -- any arguments ---------------------------------------------------------------------------------------

_NAMES = (
    "qpid.max_count",
    "qpid.max_size",
    "qpid.policy_type",
    "qpid.auto_delete_timeout",
    "qpid.priorities",
    "qpid.filter",
    "x-multiqueue",
    "no-local",
    "x-filter-jms-selector",
    "x-overflow",
    "x-max-length",
    "x-max-priority",
    "x-expires",
    "x-dead-letter-exchange",
    "alternate-exchange",
    "x-match",
    "x-queue-type",
    "x-single-active-consumer",
    "any",
)


T = TypeVar("T")


def _made(make: Callable[[], T], *codes: int) -> T | None:
    """None if it is refused with one of the codes."""
    try:
        return make()
    except ProtocolViolation as violation:
        if violation.code not in codes:
            raise
        return None


@given(st.lists(st.tuples(st.sampled_from(_NAMES).map(str.encode), VALUE), max_size=6), st.none() | STR8)
def test_any_arguments_to_0_9_1(entries: list[tuple[bytes, Value]], alternate: bytes | None) -> None:
    arguments = Map(tuple(entries))
    queue = amqp10.QueueDeclare(b"q", alternate, auto_delete=True, arguments=arguments)
    exchange = amqp10.ExchangeDeclare(b"x", alternate_exchange=alternate, arguments=arguments)
    for make in (
        partial(queue_arguments, queue),
        partial(queue_arguments, queue, ignore_qpid=True),
        partial(exchange_arguments, exchange, ignore_qpid=True),
        partial(bind_arguments, amqp10.ExchangeBind(arguments=arguments), ignore_qpid=True),
        partial(consume_arguments, amqp10.MessageSubscribe(arguments=arguments), ignore_qpid=True),
    ):
        table = _made(make, 540, 542)
        if table is None:
            continue
        encoded = put_table(table)
        assert get_table(encoded, 0, len(encoded)) == (table, len(encoded))
        names = [name for name, _ in table]
        assert len(names) == len(set(names))
        assert not any(name.startswith("qpid.") for name in names)


@given(
    TABLE | st.lists(st.tuples(st.sampled_from(_NAMES), FIELD), max_size=6).map(lambda got: Table(tuple(got)))
)
def test_any_arguments_to_0_10(arguments: Table) -> None:
    makes: list[Callable[[], Command]] = [
        partial(queue_declare, amqp.QueueDeclare(queue="q", arguments=arguments)),
        partial(exchange_declare, amqp.ExchangeDeclare(exchange="x", arguments=arguments)),
        partial(exchange_bind, amqp.QueueBind(arguments=arguments)),
    ]
    for make in makes:
        command = _made(make, 406, 540)
        if command is not None:
            assert decode_command(encode_command(command)) == (command, False)
    _made(partial(subscribe_arguments, amqp.BasicConsume(arguments=arguments)), 540)


@pytest.mark.parametrize("name", NAMES)
def test_recorded_declarations(name: str) -> None:
    """RabbitMQ can have all of what Qpid's clients ask for, but for no-local."""
    for conversation in conversations(name):
        for sent in sent_by(Role.CLIENT, conversation):
            match sent.command:
                case amqp10.QueueDeclare(arguments=arguments) as command:
                    if arguments is not None and arguments.get(b"no-local") == _text("true"):
                        continue
                    assert len(queue_arguments(command)) <= 2
                case amqp10.ExchangeDeclare() as command:
                    exchange_arguments(command)
                case amqp10.ExchangeBind() as command:
                    assert len(bind_arguments(command)) == len((command.arguments or Map()).entries)
                case amqp10.MessageSubscribe() as command:
                    assert consume_arguments(command) == EMPTY_TABLE
