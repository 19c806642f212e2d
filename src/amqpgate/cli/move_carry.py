"""Messages from one broker's queue to another's queue of the same name, while nobody uses either.

A message is acknowledged where it was once the other broker has confirmed it. Stopped in between it is in
both queues: then it is taken again, and marked as redelivered there, as one is that a client had before. So
nobody gets a message twice that is not marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final

from amqpgate.broker.amqp.events import ContentReceived, MethodReceived
from amqpgate.cli.failures import Failure
from amqpgate.cli.move_amqp import BrokerLink
from amqpgate.move.objects import OWN
from amqpgate.wire.generated import v0_9_1 as amqp

#: The channel for it.
_CHANNEL: Final = 3
#: Messages that are under way at once, and about as many bytes.
_BATCH: Final = 200
_BATCH_BYTES: Final = 8 << 20


def carry(queue: str, source: BrokerLink, target: BrokerLink) -> Iterator[int]:
    """Take all messages of the queue; yields how many, batch by batch. Raises ``Failure``."""
    source.ask(_CHANNEL, amqp.ChannelOpen(), amqp.ChannelOpenOk)
    exchange = _way_to(queue, target)
    published, ahead = 0, 1
    while batch := _take(source, queue, ahead):
        # By the number that its confirm has.
        due = dict(enumerate(batch, published + 1))
        try:
            _publish(target, exchange, due)
        except Failure:
            _settle(source, batch, due.values())
            raise
        published += len(batch)
        if any(_got(one).redelivered for one in batch):
            _mark(target, queue)
        source.say(_CHANNEL, amqp.BasicAck(_got(batch[-1]).delivery_tag, multiple=True))
        yield len(batch)
        average = sum(len(one.body) for one in batch) // len(batch) + 1
        ahead = max(1, min(2 * ahead, _BATCH, _BATCH_BYTES // average))
    target.ask(_CHANNEL, amqp.ExchangeDelete(exchange=exchange), amqp.ExchangeDeleteOk)
    for link in (source, target):
        close = amqp.ChannelClose(reply_code=200, reply_text="", class_id=0, method_id=0)
        link.ask(_CHANNEL, close, amqp.ChannelCloseOk)


def _way_to(queue: str, target: BrokerLink) -> str:
    """An exchange that leads to this queue alone: routing keys stay, and a CC header names no other queue."""
    exchange = f"{OWN}.{sha256(queue.encode()).hexdigest()[:16]}"
    declare = amqp.ExchangeDeclare(exchange=exchange, type="fanout", durable=True)
    target.ask(_CHANNEL, amqp.ChannelOpen(), amqp.ChannelOpenOk)
    target.ask(_CHANNEL, amqp.ConfirmSelect(), amqp.ConfirmSelectOk)
    target.ask(_CHANNEL, declare, amqp.ExchangeDeclareOk)
    target.ask(_CHANNEL, amqp.QueueBind(queue=queue, exchange=exchange), amqp.QueueBindOk)
    return exchange


def _take(link: BrokerLink, queue: str, most: int) -> list[ContentReceived]:
    """Messages in their order, not acknowledged; none: the queue is empty."""
    for _ in range(most):
        link.say(_CHANNEL, amqp.BasicGet(queue=queue))
    taken = []
    for _ in range(most):
        event = link.next()
        if isinstance(event, ContentReceived):
            taken.append(event)
        elif not (isinstance(event, MethodReceived) and isinstance(event.method, amqp.BasicGetEmpty)):
            raise Failure(f"amqpgate: {link.end.upstream} gives no message from '{queue}'")
    return taken


def _got(event: ContentReceived) -> amqp.BasicGetOk:
    assert isinstance(event.method, amqp.BasicGetOk)
    return event.method


def _publish(link: BrokerLink, exchange: str, due: dict[int, ContentReceived]) -> None:
    """Publish them, until none is due to be confirmed. Raises ``Failure`` where one is refused."""
    for one in due.values():
        publish = amqp.BasicPublish(exchange=exchange, routing_key=_got(one).routing_key, mandatory=True)
        link.publish(_CHANNEL, publish, one.header.properties, one.body)
    while due:
        event = link.next()
        method = event.method if isinstance(event, ContentReceived | MethodReceived) else None
        if not isinstance(method, amqp.BasicAck):
            raise Failure(
                f"amqpgate: {link.end.upstream} does not take a message "
                f"({'nothing' if method is None else method.NAME}); it stays where it is"
            )
        tag = method.delivery_tag
        for number in [one for one in due if one == tag or (method.multiple and one < tag)]:
            del due[number]


def _settle(link: BrokerLink, batch: Sequence[ContentReceived], due: Iterable[ContentReceived]) -> None:
    """Acknowledge what was confirmed before one was refused: else it would be there twice. Not what is to be
    marked: that is done again, whole."""
    if any(_got(one).redelivered for one in batch):
        return
    left = {_got(one).delivery_tag for one in due}
    for one in batch:
        if _got(one).delivery_tag not in left:
            link.say(_CHANNEL, amqp.BasicAck(_got(one).delivery_tag))


def _mark(link: BrokerLink, queue: str) -> None:
    """Have all messages of the queue marked as redelivered: take them, and give them back."""
    last = 0
    while batch := _take(link, queue, _BATCH):
        last = _got(batch[-1]).delivery_tag
    if last:
        link.say(_CHANNEL, amqp.BasicNack(last, multiple=True, requeue=True))
