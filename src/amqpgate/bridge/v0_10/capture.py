"""Operations of a 0-10 client's, for captures: in its own frames, as it may have said them.

What the gateway sees is canonical, and so is what is judged; a capture is read beside the client's own
words. What has no command of 0-10 has no frames here: channels, confirms, basic.qos.
"""

from __future__ import annotations

from typing import Final

import attrs

from amqpgate.bridge.v0_10.arguments import exchange_bind, exchange_declare, queue_declare
from amqpgate.bridge.v0_10.properties import from_canonical
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10.frames import MOST_FRAME_SIZE
from amqpgate.protocol.v0_10.writer import FrameWriter
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import AcceptMode, AcquireMode
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from amqpgate.wire.v0_10.structs import Command, Struct

_NO_ARGUMENTS: Final = Table()


def frames_of(channel: int, method: Method, header: ContentHeader | None) -> bytes:
    """A method, and a content header, as a command and its header; what follows is a body of the size that
    ``header`` has, if that is not 0.

    ``channel`` stays: it is not the one that the client's session has.
    """
    command = _command_of(method)
    if command is None:
        return b""
    writer = FrameWriter()
    writer.allow(MOST_FRAME_SIZE)
    structs = None if header is None else _structs_of(method, header)
    try:
        if header is not None and header.body_size:
            writer.begin(channel, command, structs, sync=False)
        else:
            writer.command(channel, command, structs, b"", sync=False)
    except ProtocolViolation:
        # It is larger than a frame of 0-10's.
        return b""
    return writer.take()


def _structs_of(method: Method, header: ContentHeader) -> tuple[Struct, ...]:
    properties = header.properties
    assert isinstance(properties, amqp.BasicProperties)
    match method:
        case amqp.BasicDeliver() | amqp.BasicGetOk():
            return from_canonical(
                properties,
                routing_key=method.routing_key,
                exchange=method.exchange,
                redelivered=method.redelivered,
                body_size=header.body_size,
            )
        case amqp.BasicPublish():
            return from_canonical(properties, routing_key=method.routing_key, body_size=header.body_size)
    return ()


def _command_of(method: Method) -> Command | None:
    try:
        return _said(method)
    except ProtocolViolation:
        # Of these there are arguments that 0-10 has no word for.
        assert isinstance(method, amqp.QueueDeclare | amqp.ExchangeDeclare | amqp.QueueBind)
        return _said(attrs.evolve(method, arguments=_NO_ARGUMENTS))


def _said(method: Method) -> Command | None:
    match method:
        case amqp.BasicPublish(exchange=exchange):
            return amqp10.MessageTransfer(exchange.encode(), AcceptMode.NONE, AcquireMode.PRE_ACQUIRED)
        case amqp.BasicDeliver(consumer_tag=tag):
            return amqp10.MessageTransfer(tag.encode(), AcceptMode.EXPLICIT, AcquireMode.PRE_ACQUIRED)
        case amqp.BasicGetOk():
            return amqp10.MessageTransfer(b"", AcceptMode.EXPLICIT, AcquireMode.PRE_ACQUIRED)
        case amqp.BasicConsume(queue=queue, consumer_tag=tag, exclusive=exclusive):
            return amqp10.MessageSubscribe(
                queue.encode(), tag.encode(), AcceptMode.EXPLICIT, AcquireMode.PRE_ACQUIRED, exclusive
            )
        case amqp.BasicCancel(consumer_tag=tag):
            return amqp10.MessageCancel(tag.encode())
        case amqp.QueueDeclare(passive=True, queue=queue):
            return amqp10.QueueQuery(queue.encode())
        case amqp.QueueDeclare():
            return queue_declare(method)
        case amqp.QueueDelete(queue=queue, if_unused=if_unused, if_empty=if_empty):
            return amqp10.QueueDelete(queue.encode(), if_unused, if_empty)
        case amqp.QueuePurge(queue=queue):
            return amqp10.QueuePurge(queue.encode())
        case amqp.QueueBind():
            return exchange_bind(method)
        case amqp.QueueUnbind(queue=queue, exchange=exchange, routing_key=key):
            return amqp10.ExchangeUnbind(queue.encode(), exchange.encode(), key.encode())
        case amqp.ExchangeDeclare(passive=True, exchange=exchange):
            return amqp10.ExchangeQuery(exchange.encode())
        case amqp.ExchangeDeclare():
            return exchange_declare(method)
        case amqp.ExchangeDelete(exchange=exchange, if_unused=if_unused):
            return amqp10.ExchangeDelete(exchange.encode(), if_unused)
        case amqp.TxSelect():
            return amqp10.TxSelect()
        case amqp.TxCommit():
            return amqp10.TxCommit()
        case amqp.TxRollback():
            return amqp10.TxRollback()
    return None
