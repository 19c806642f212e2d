"""Messages of a queue that is deleted: with 0-10 they go to its alternate exchange (class "queue", "delete").

With RabbitMQ they are gone, but what is rejected goes to the queue's dead-letter exchange, which is the
alternate exchange here (see ``arguments``). So each of them is got and rejected, in their order, and what the
session itself has of the queue before them. Not all of them are found:

- what others have got and not settled, and what this session has in a transaction,
- what comes while the queue is being deleted.

That also ends a queue which is bound to its own alternate exchange: what comes back is not got again.
"""

from __future__ import annotations

from amqpgate.bridge.v0_10.channels import ChannelUse
from amqpgate.bridge.v0_10.codes import violation_of_channel_close
from amqpgate.bridge.v0_10.steps import Call, Part, ask
from amqpgate.bridge.v0_10.subscriptions import Subscriptions
from amqpgate.wire.generated import v0_9_1 as amqp


def reroute(queue: str, count: int, subscriptions: Subscriptions) -> Part[None]:
    """Have what the session has of the queue, and the next ``count`` messages, go to its alternate exchange.

    It takes as many round trips. Violation 403 if the client may not read the queue.
    """
    rejected = subscriptions.give_up(queue)
    while rejected:
        # Only when this is answered, the queue has heard of it. A consumer has got others in their place.
        yield Call(ChannelUse.MAIN, amqp.BasicQos())
        rejected = subscriptions.give_up(queue) if count > 0 else 0
        count -= rejected
    for _ in range(count):
        answer = yield from ask(amqp.BasicGet(queue=queue))
        if isinstance(answer, amqp.ChannelClose):
            raise violation_of_channel_close(answer)
        if not isinstance(answer, amqp.BasicGetOk):
            return
        yield Call(ChannelUse.ASK, amqp.BasicReject(answer.delivery_tag, requeue=False))
