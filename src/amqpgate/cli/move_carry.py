"""Messages from one broker's queue to another's queue of the same name, while nobody uses either.

A message is acknowledged where it was once the other broker has confirmed it. Stopped in between it is in
both queues: then it is taken again, and all that lies in the other queue is marked as redelivered, as it is
where a client had one of them before. The last message is acknowledged when that is done. So nobody gets a
message twice that is not marked.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final

import attrs

from amqpgate.broker.amqp.events import ContentReceived, MethodReceived
from amqpgate.cli.failures import Failure
from amqpgate.cli.move_amqp import ChannelClosed, MoveLink
from amqpgate.move.objects import OWN
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Properties

#: The channel for it.
_CHANNEL: Final = 3
#: Messages that are under way at once, and about as many bytes.
_BATCH: Final = 200
_BATCH_BYTES: Final = 8 << 20
#: What a broker says where there is no queue of that name.
_NOT_FOUND: Final = 404
#: Seconds between two looks at a queue that gets its messages back, and for which it may get none.
_PACE: Final = 0.05
_PATIENCE: Final = 10.0
#: Headers that quorum queues add to what they deliver.
_WRITTEN: Final = ("x-delivery-count", "x-acquired-count")
_CLOSE: Final = amqp.ChannelClose(reply_code=200, reply_text="", class_id=0, method_id=0)


def carry(queue: str, source: MoveLink, target: MoveLink, *, type_there: str = "classic") -> Iterator[int]:
    """Take all messages of the queue, which is of that type on the target; yields how many, batch by batch.
    Raises ``Failure``.
    """
    source.ask(_CHANNEL, amqp.ChannelOpen(), amqp.ChannelOpenOk)
    exchange, there = _way_to(queue, target)
    # What is there may have come from a command that was killed, and still be here.
    is_known = there > 0
    published, ahead, last = 0, 1, 0
    while batch := _take(source, queue, ahead):
        is_known = is_known or any(_got(one).redelivered for one in batch)
        # By the number that its confirm has.
        due = dict(enumerate(batch, published + 1))
        try:
            _publish(target, exchange, due)
        except Failure:
            if not is_known:
                _settle(source, last, batch, due.values())
            raise
        published += len(batch)
        tags = [last, *(_got(one).delivery_tag for one in batch)]
        last = tags[-1]
        if tags[-2]:
            source.say(_CHANNEL, amqp.BasicAck(tags[-2], multiple=True))
        yield len(batch)
        average = sum(len(one.body) for one in batch) // len(batch) + 1
        ahead = max(1, min(2 * ahead, _BATCH, _BATCH_BYTES // average))
    if is_known:
        _mark(target, queue, type_there)
    if last:
        source.say(_CHANNEL, amqp.BasicAck(last, multiple=True))
    target.ask(_CHANNEL, amqp.ExchangeDelete(exchange=exchange), amqp.ExchangeDeleteOk)
    for link in (source, target):
        link.ask(_CHANNEL, _CLOSE, amqp.ChannelCloseOk)


def mark(queue: str, link: MoveLink, type_there: str = "classic") -> None:
    """Have all messages of the queue, which is of that type, marked as redelivered."""
    link.ask(_CHANNEL, amqp.ChannelOpen(), amqp.ChannelOpenOk)
    _mark(link, queue, type_there)
    link.ask(_CHANNEL, _CLOSE, amqp.ChannelCloseOk)


def _way_to(queue: str, target: MoveLink) -> tuple[str, int]:
    """An exchange that leads to this queue alone (routing keys stay, and a CC header names no other queue),
    and how many messages are in the queue."""
    exchange = f"{OWN}.{sha256(queue.encode()).hexdigest()[:16]}"
    declare = amqp.ExchangeDeclare(exchange=exchange, type="fanout", durable=True)
    target.ask(_CHANNEL, amqp.ChannelOpen(), amqp.ChannelOpenOk)
    target.ask(_CHANNEL, amqp.ConfirmSelect(), amqp.ConfirmSelectOk)
    try:
        known = target.ask(_CHANNEL, amqp.QueueDeclare(queue=queue, passive=True), amqp.QueueDeclareOk)
    except ChannelClosed as closed:
        if closed.code != _NOT_FOUND:
            raise
        raise Failure(
            f"{closed.message}\ndeclare it there as its clients would, or leave its messages where they are: "
            "`--leftovers leave`"
        ) from None
    target.ask(_CHANNEL, declare, amqp.ExchangeDeclareOk)
    target.ask(_CHANNEL, amqp.QueueBind(queue=queue, exchange=exchange), amqp.QueueBindOk)
    return exchange, known.message_count


def _take(link: MoveLink, queue: str, most: int) -> list[ContentReceived]:
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


def _publish(link: MoveLink, exchange: str, due: dict[int, ContentReceived]) -> None:
    """Publish them, until none is due to be confirmed. Raises ``Failure`` where one is refused."""
    for one in due.values():
        publish = amqp.BasicPublish(exchange=exchange, routing_key=_got(one).routing_key, mandatory=True)
        link.publish(_CHANNEL, publish, _as_published(one.header.properties), one.body)
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


def _as_published(properties: Properties) -> Properties:
    """Without what the broker wrote into the headers."""
    assert isinstance(properties, amqp.BasicProperties)
    headers = properties.headers
    if headers is None or not any(name in headers for name in _WRITTEN):
        return properties
    for name in _WRITTEN:
        headers = headers.without(name)
    return attrs.evolve(properties, headers=headers)


def _settle(
    link: MoveLink, last: int, batch: Sequence[ContentReceived], due: Iterable[ContentReceived]
) -> None:
    """Acknowledge what was confirmed before one was refused: else it would be there twice."""
    if last:
        link.say(_CHANNEL, amqp.BasicAck(last, multiple=True))
    left = {_got(one).delivery_tag for one in due}
    for one in batch:
        if _got(one).delivery_tag not in left:
            link.say(_CHANNEL, amqp.BasicAck(_got(one).delivery_tag))


def _mark(link: MoveLink, queue: str, kind: str) -> None:
    """Take all of them, and give them back."""
    last = taken = 0
    while batch := _take(link, queue, _BATCH):
        last = _got(batch[-1]).delivery_tag
        taken += len(batch)
    if not last:
        return
    if kind == "classic":
        # By basic.nack RabbitMQ would put them back one by one, 20,000 in a minute; so it does it at once.
        link.ask(_CHANNEL, _CLOSE, amqp.ChannelCloseOk)
        link.ask(_CHANNEL, amqp.ChannelOpen(), amqp.ChannelOpenOk)
    else:
        # To a quorum queue a consumer that has gone is a failed delivery.
        link.say(_CHANNEL, amqp.BasicNack(last, multiple=True, requeue=True))
    _await_all(link, queue, taken)


def _await_all(link: MoveLink, queue: str, count: int) -> None:
    """Wait until so many messages are back.

    Who consumed meanwhile would get them out of their order, and who moved them on would find a part of them.
    Where no more come for long, the others have expired.
    """
    most, since = -1, time.monotonic()
    while True:
        there = link.ask(_CHANNEL, amqp.QueueDeclare(queue=queue, passive=True), amqp.QueueDeclareOk)
        if there.message_count > most:
            most, since = there.message_count, time.monotonic()
        if most >= count or time.monotonic() - since >= _PATIENCE:
            return
        time.sleep(_PACE)
