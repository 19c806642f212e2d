"""Which methods stand for which command, and what answers them."""

from __future__ import annotations

import pytest

from amqpgate.bridge.v0_10.native.copies import NAMELESS, Copy, copy_of
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import COMMANDS
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Field, Table
from amqpgate.wire.v0_10.structs import Command
from amqpgate.wire.v0_10.types import Map, Value

MAP = Map(((b"a", Value(TypeCode.STR16, b"1")),))
TABLE = Table.of({"a": "1"})
PASSIVE_X = amqp.ExchangeDeclare(exchange="x", type="direct", passive=True)
PASSIVE_Q = amqp.QueueDeclare(queue="q", passive=True)

JUDGED: list[tuple[Command, tuple[Method, ...]]] = [
    (
        amqp10.ExchangeDeclare(exchange=b"x", type=b"topic", durable=True, auto_delete=True, arguments=MAP),
        (amqp.ExchangeDeclare(exchange="x", type="topic", durable=True, auto_delete=True, arguments=TABLE),),
    ),
    (
        amqp10.ExchangeDeclare(exchange=b"x", type=b"direct", passive=True),
        (amqp.ExchangeDeclare(exchange="x", type="direct", passive=True),),
    ),
    (
        amqp10.ExchangeDeclare(exchange=b"x", type=b"direct", alternate_exchange=b"other"),
        (
            amqp.ExchangeDeclare(
                exchange="x", type="direct", arguments=Table.of({"alternate-exchange": "other"})
            ),
        ),
    ),
    (
        amqp10.ExchangeDelete(exchange=b"x", if_unused=True),
        (amqp.ExchangeDelete(exchange="x", if_unused=True),),
    ),
    (amqp10.ExchangeQuery(name=b"x"), (PASSIVE_X,)),
    (amqp10.ExchangeQuery(name=b""), ()),
    (
        amqp10.ExchangeBind(queue=b"q", exchange=b"x", binding_key=b"a.#", arguments=MAP),
        (amqp.QueueBind(queue="q", exchange="x", routing_key="a.#", arguments=TABLE),),
    ),
    (
        amqp10.ExchangeUnbind(queue=b"q", exchange=b"x", binding_key=b"a.#"),
        (amqp.QueueUnbind(queue="q", exchange="x", routing_key="a.#"),),
    ),
    (amqp10.ExchangeBound(exchange=b"x", queue=b"q", binding_key=b"k"), (PASSIVE_X, PASSIVE_Q)),
    (amqp10.ExchangeBound(queue=b"q"), (PASSIVE_Q,)),
    (amqp10.ExchangeBound(), ()),
    (
        amqp10.QueueDeclare(queue=b"q", durable=True, exclusive=True, auto_delete=True, arguments=MAP),
        (amqp.QueueDeclare(queue="q", durable=True, exclusive=True, auto_delete=True, arguments=TABLE),),
    ),
    (amqp10.QueueDeclare(queue=b"q", passive=True), (PASSIVE_Q,)),
    (amqp10.QueueDeclare(), (amqp.QueueDeclare(queue=NAMELESS),)),
    (
        amqp10.QueueDelete(queue=b"q", if_unused=True, if_empty=True),
        (amqp.QueueDelete(queue="q", if_unused=True, if_empty=True),),
    ),
    (amqp10.QueuePurge(queue=b"q"), (amqp.QueuePurge(queue="q"),)),
    (amqp10.QueuePurge(), (amqp.QueuePurge(queue=NAMELESS),)),
    (amqp10.QueueQuery(queue=b"q"), (PASSIVE_Q,)),
    (
        amqp10.MessageSubscribe(queue=b"q", destination=b"d", exclusive=True, arguments=MAP),
        (amqp.BasicConsume(queue="q", consumer_tag="d", exclusive=True, arguments=TABLE),),
    ),
    (
        amqp10.MessageSubscribe(queue=b"q", destination=b"", accept_mode=1),
        (amqp.BasicConsume(queue="q", consumer_tag=NAMELESS, no_ack=True),),
    ),
    (
        amqp10.MessageSubscribe(queue=b"q", destination=b"d", acquire_mode=1),
        (amqp.BasicConsume(queue="q", consumer_tag="d", no_ack=True),),
    ),
    (amqp10.MessageCancel(destination=b"d"), (amqp.BasicCancel("d"),)),
    (amqp10.TxSelect(), (amqp.TxSelect(),)),
    (amqp10.TxCommit(), (amqp.TxCommit(),)),
    (amqp10.TxRollback(), (amqp.TxRollback(),)),
    (amqp10.DtxSelect(), (amqp.TxSelect(),)),
    (amqp10.DtxCommit(), (amqp.TxCommit(),)),
    (amqp10.DtxRollback(), (amqp.TxRollback(),)),
]
#: Those that are judged where what they carry, or what they are about, is known.
ELSEWHERE = {"message.transfer", "message.accept", "message.release", "message.reject"}


@pytest.mark.parametrize(("command", "methods"), JUDGED)
def test_table(command: Command, methods: tuple[Method, ...]) -> None:
    copy = copy_of(command)
    assert copy is not None
    assert copy.methods == methods
    assert tuple(answer.INDEX for answer in copy.answers) == tuple(method.REPLIES[0] for method in methods)


def test_every_command_is_judged_or_concerns_what_has_been() -> None:
    judged = {command.NAME for command, _ in JUDGED}
    free = set()
    for kind in COMMANDS.values():
        if kind.NAME.startswith(("file.", "stream.")):
            with pytest.raises(ProtocolViolation) as caught:
                copy_of(kind())
            assert caught.value.code == 540
        elif kind.NAME not in judged:
            assert copy_of(kind()) is None
            free.add(kind.NAME)
    assert free - ELSEWHERE == {
        "dtx.end",
        "dtx.forget",
        "dtx.get-timeout",
        "dtx.prepare",
        "dtx.recover",
        "dtx.set-timeout",
        "dtx.start",
        "execution.exception",
        "execution.result",
        "execution.sync",
        "message.acquire",
        "message.flow",
        "message.flush",
        "message.resume",
        "message.set-flow-mode",
        "message.stop",
    }


def test_arguments_have_both_names() -> None:
    command = amqp10.QueueDeclare(
        queue=b"q",
        alternate_exchange=b"x",
        arguments=Map(((b"qpid.max_count", Value(TypeCode.INT32, 5)),)),
    )
    copy = copy_of(command)
    assert isinstance(copy, Copy)
    (method,) = copy.methods
    assert isinstance(method, amqp.QueueDeclare)
    assert dict(method.arguments.entries) == {
        "qpid.max_count": Field("I", 5),
        "x-dead-letter-exchange": Field("S", "x"),
        "x-max-length": Field.of(5),
        "x-overflow": Field("S", "reject-publish"),
    }


def test_what_has_no_other_name_is_judged_as_it_is() -> None:
    command = amqp10.QueueDeclare(
        queue=b"q", arguments=Map(((b"qpid.max_count", Value(TypeCode.STR16, b"x")),))
    )
    copy = copy_of(command)
    assert copy is not None
    assert copy.methods == (amqp.QueueDeclare(queue="q", arguments=Table.of({"qpid.max_count": "x"})),)


def test_names_are_any_bytes() -> None:
    copy = copy_of(amqp10.QueuePurge(queue=b"\xff"))
    assert copy is not None
    assert copy.methods[0].encode().endswith(b"\x01\xff\x00")
