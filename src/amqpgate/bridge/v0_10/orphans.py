"""Messages of a queue that is deleted: with 0-10 they go to its alternate exchange (class "queue", "delete").

With RabbitMQ they are gone, but what is rejected goes to the queue's dead-letter exchange, which is the
alternate exchange here (see ``arguments``). So what the session has of the queue is rejected, and then each
message that is in it is got and rejected, in their order. Not all of them are found:

- what others have got and not settled, and what this session has in a transaction,
- what comes while the queue is being deleted, and more than `MOST_AHEAD` of one that must keep a consumer.

That also ends a queue which is bound to its own alternate exchange: what comes back is not got again.
"""

from __future__ import annotations

from typing import Final

from amqpgate.bridge.v0_10.channels import ChannelUse
from amqpgate.bridge.v0_10.steps import Answer, Call, Part, insist
from amqpgate.bridge.v0_10.subscriptions import Subscriptions
from amqpgate.wire.generated import v0_9_1 as amqp

#: Messages that are got before any of them is rejected.
MOST_AHEAD: Final = 65_536


def reroute(queue: str, subscriptions: Subscriptions | None, *, ends_unused: bool) -> Part[None]:
    """Have what is in the queue go to its alternate exchange, and what ``subscriptions`` have of it.

    It takes a round trip for each. Violation 403 if the client may not read the queue, 404 if it has gone.
    """
    if subscriptions is not None:
        if ends_unused and any(one.queue == queue for one in subscriptions.consuming):
            yield from _with_consumers(queue, subscriptions)
            return
        yield from subscriptions.end_consumers(queue)
        if subscriptions.give_up(queue):
            # Only when this is answered the queue has heard of it.
            yield Call(ChannelUse.MAIN, amqp.BasicQos())
    for _ in range((yield from _count(queue))):
        answer = yield from insist(amqp.BasicGet(queue=queue))
        if not isinstance(answer, amqp.BasicGetOk):
            return
        yield Call(ChannelUse.ASK, amqp.BasicReject(answer.delivery_tag, requeue=False))


def _with_consumers(queue: str, subscriptions: Subscriptions) -> Part[None]:
    """The queue would end with its consumers. They have all that they may get, or it is empty: so it stays,
    until something is settled.
    """
    tags = []
    for _ in range(min((yield from _count(queue)), MOST_AHEAD)):
        answer: Answer = yield Call(ChannelUse.MAIN, amqp.BasicGet(queue=queue))
        if not isinstance(answer.method, amqp.BasicGetOk):
            break
        tags.append(answer.method.delivery_tag)
    # What was on its way to them has come when this is answered.
    yield Call(ChannelUse.MAIN, amqp.BasicQos())
    subscriptions.give_up(queue)
    for tag in tags:
        yield Call(ChannelUse.MAIN, amqp.BasicReject(tag, requeue=False))


def _count(queue: str) -> Part[int]:
    found = yield from insist(amqp.QueueDeclare(queue=queue, passive=True))
    assert isinstance(found, amqp.QueueDeclareOk)
    return found.message_count
