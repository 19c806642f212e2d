"""The copy of a command: the methods of 0-9-1 by which it is judged, and what answers them.

===========================================  ============================================================
command                                      judged, limited and recorded as
===========================================  ============================================================
message.transfer                             basic.publish; from a broker basic.deliver (``content``)
message.subscribe                            basic.consume; without acks if accept-mode is none, or it browses
message.cancel                               basic.cancel
message.accept, release, reject              basic.ack, basic.nack with requeue, without (``settling``)
exchange.declare, exchange.delete            the same
exchange.query                               exchange.declare, passive
exchange.bind, exchange.unbind               queue.bind, queue.unbind
exchange.bound                               exchange.declare and queue.declare, passive, of what it names
queue.declare, queue.delete, queue.purge     the same
queue.query                                  queue.declare, passive
tx.select, tx.commit, tx.rollback            the same
dtx.select, dtx.commit, dtx.rollback         those of tx
commands of file and stream                  not relayed, 540: nobody could say what they do
all others                                   passed without: they concern what has been judged, or nothing
===========================================  ============================================================

Arguments are judged under the names that they have. Beside Qpid's names for what RabbitMQ has, too, stand
RabbitMQ's (``bridge.v0_10.arguments``), so one rule is enough for both; and alternate exchanges are among
them.

A queue without a name is no shorthand in 0-10, as it is in 0-9-1: it is judged as `NAMELESS`, and so is the
destination of a subscription.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import frozen

from amqpgate.bridge.v0_10.arguments import queue_arguments
from amqpgate.bridge.v0_10.tables import to_table
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import AcceptMode, AcquireMode
from amqpgate.wire.method import Method
from amqpgate.wire.tables import EMPTY_TABLE, Field, Table
from amqpgate.wire.v0_10.structs import Command
from amqpgate.wire.v0_10.types import Map

#: What stands for an empty name where 0-9-1 takes that for another one. No queue of RabbitMQ's is called so.
NAMELESS: Final = "\0"

_FILE: Final = amqp10.FileQos.CLASS_CODE
_STREAM: Final = amqp10.StreamQos.CLASS_CODE


@frozen
class Copy:
    """What is judged in the place of a command."""

    methods: tuple[Method, ...]
    #: What the broker would say to them, once the command is complete.
    answers: tuple[Method, ...] = ()


def copy_of(command: Command) -> Copy | None:
    """The copy of a client's command, None if it has none. Violation 540 if it is not relayed."""
    make = _COPIES.get(type(command))
    if make is not None:
        return make(command)
    if command.CLASS_CODE in (_FILE, _STREAM):
        raise ProtocolViolation(540, f"{command.NAME} is not relayed")
    return None


def text(name: bytes | None) -> str:
    """A name as it is judged; absent is empty."""
    return "" if name is None else name.decode("utf-8", "surrogateescape")


def is_silent(accept_mode: int | None, acquire_mode: int | None) -> bool:
    """Whether its deliveries want no accept, or take nothing from the queue before they get one."""
    return accept_mode == AcceptMode.NONE or acquire_mode == AcquireMode.NOT_ACQUIRED


def _queue(name: bytes | None) -> str:
    return text(name) or NAMELESS


def _arguments(given: Map | None, **named: bytes | None) -> Table:
    """Arguments, and names of exchanges that are fields of their own in 0-10."""
    table = to_table(given, lenient=True)
    more = tuple(
        [(name.replace("_", "-"), Field("S", text(exchange))) for name, exchange in named.items() if exchange]
    )
    return Table((*table.entries, *more)) if more else table


def _queue_arguments(command: amqp10.QueueDeclare) -> Table:
    said = _arguments(command.arguments, x_dead_letter_exchange=command.alternate_exchange)
    if not said.entries:
        return EMPTY_TABLE
    try:
        translated = queue_arguments(command, ignore_qpid=True)
    except ProtocolViolation:
        # What RabbitMQ has no word for.
        return said
    known = {name for name, _ in said.entries}
    return Table((*said.entries, *(entry for entry in translated.entries if entry[0] not in known)))


def _exchange_declare(command: Command) -> Copy:
    assert isinstance(command, amqp10.ExchangeDeclare)
    method = amqp.ExchangeDeclare(
        exchange=text(command.exchange),
        type=text(command.type),
        passive=command.passive,
        durable=command.durable,
        auto_delete=command.auto_delete,
        arguments=_arguments(command.arguments, alternate_exchange=command.alternate_exchange),
    )
    return Copy((method,), (amqp.ExchangeDeclareOk(),))


def _exchange_delete(command: Command) -> Copy:
    assert isinstance(command, amqp10.ExchangeDelete)
    method = amqp.ExchangeDelete(exchange=text(command.exchange), if_unused=command.if_unused)
    return Copy((method,), (amqp.ExchangeDeleteOk(),))


def _exchange_query(command: Command) -> Copy:
    assert isinstance(command, amqp10.ExchangeQuery)
    return _asks(command.name, None)


def _exchange_bound(command: Command) -> Copy:
    assert isinstance(command, amqp10.ExchangeBound)
    return _asks(command.exchange, command.queue)


def _queue_query(command: Command) -> Copy:
    assert isinstance(command, amqp10.QueueQuery)
    return _asks(None, command.queue or b"\0")


def _asks(exchange: bytes | None, queue: bytes | None) -> Copy:
    """Whether these are there. The default exchange always is."""
    methods: list[Method] = []
    answers: list[Method] = []
    if exchange:
        methods.append(amqp.ExchangeDeclare(exchange=text(exchange), type="direct", passive=True))
        answers.append(amqp.ExchangeDeclareOk())
    if queue:
        methods.append(amqp.QueueDeclare(queue=text(queue), passive=True))
        answers.append(amqp.QueueDeclareOk(text(queue), 0, 0))
    return Copy(tuple(methods), tuple(answers))


def _exchange_bind(command: Command) -> Copy:
    assert isinstance(command, amqp10.ExchangeBind)
    method = amqp.QueueBind(
        queue=_queue(command.queue),
        exchange=text(command.exchange),
        routing_key=text(command.binding_key),
        arguments=_arguments(command.arguments),
    )
    return Copy((method,), (amqp.QueueBindOk(),))


def _exchange_unbind(command: Command) -> Copy:
    assert isinstance(command, amqp10.ExchangeUnbind)
    method = amqp.QueueUnbind(
        queue=_queue(command.queue),
        exchange=text(command.exchange),
        routing_key=text(command.binding_key),
    )
    return Copy((method,), (amqp.QueueUnbindOk(),))


def _queue_declare(command: Command) -> Copy:
    assert isinstance(command, amqp10.QueueDeclare)
    method = amqp.QueueDeclare(
        queue=_queue(command.queue),
        passive=command.passive,
        durable=command.durable,
        exclusive=command.exclusive,
        auto_delete=command.auto_delete,
        arguments=_queue_arguments(command),
    )
    return Copy((method,), (amqp.QueueDeclareOk(method.queue, 0, 0),))


def _queue_delete(command: Command) -> Copy:
    assert isinstance(command, amqp10.QueueDelete)
    method = amqp.QueueDelete(
        queue=_queue(command.queue), if_unused=command.if_unused, if_empty=command.if_empty
    )
    return Copy((method,), (amqp.QueueDeleteOk(0),))


def _queue_purge(command: Command) -> Copy:
    assert isinstance(command, amqp10.QueuePurge)
    return Copy((amqp.QueuePurge(queue=_queue(command.queue)),), (amqp.QueuePurgeOk(0),))


def _subscribe(command: Command) -> Copy:
    assert isinstance(command, amqp10.MessageSubscribe)
    method = amqp.BasicConsume(
        queue=_queue(command.queue),
        consumer_tag=text(command.destination) or NAMELESS,
        no_ack=is_silent(command.accept_mode, command.acquire_mode),
        exclusive=command.exclusive,
        arguments=_arguments(command.arguments),
    )
    return Copy((method,), (amqp.BasicConsumeOk(method.consumer_tag),))


def _cancel(command: Command) -> Copy:
    assert isinstance(command, amqp10.MessageCancel)
    tag = text(command.destination) or NAMELESS
    return Copy((amqp.BasicCancel(consumer_tag=tag),), (amqp.BasicCancelOk(tag),))


def _transaction(method: Method, answer: Method) -> Callable[[Command], Copy]:
    copy = Copy((method,), (answer,))
    return lambda _command: copy


_SELECT: Final = _transaction(amqp.TxSelect(), amqp.TxSelectOk())
_COMMIT: Final = _transaction(amqp.TxCommit(), amqp.TxCommitOk())
_ROLLBACK: Final = _transaction(amqp.TxRollback(), amqp.TxRollbackOk())

_COPIES: Final[dict[type[Command], Callable[[Command], Copy]]] = {
    amqp10.ExchangeDeclare: _exchange_declare,
    amqp10.ExchangeDelete: _exchange_delete,
    amqp10.ExchangeQuery: _exchange_query,
    amqp10.ExchangeBound: _exchange_bound,
    amqp10.ExchangeBind: _exchange_bind,
    amqp10.ExchangeUnbind: _exchange_unbind,
    amqp10.QueueDeclare: _queue_declare,
    amqp10.QueueDelete: _queue_delete,
    amqp10.QueuePurge: _queue_purge,
    amqp10.QueueQuery: _queue_query,
    amqp10.MessageSubscribe: _subscribe,
    amqp10.MessageCancel: _cancel,
    amqp10.TxSelect: _SELECT,
    amqp10.TxCommit: _COMMIT,
    amqp10.TxRollback: _ROLLBACK,
    amqp10.DtxSelect: _SELECT,
    amqp10.DtxCommit: _COMMIT,
    amqp10.DtxRollback: _ROLLBACK,
}
