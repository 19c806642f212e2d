"""What the scripted broker does with each method of a channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Never, TypeAlias, cast

import attrs

from amqpgate.conformance.client.served_channel import (
    ChannelRefusal,
    PublishUnderWay,
    ServedChannel,
    ServedConsumer,
)
from amqpgate.conformance.client.store import HeldExchange, HeldQueue
from amqpgate.wire.generated import v0_9_1
from amqpgate.wire.method import Method

#: Given a channel and a method; what comes back is the answer's class and fields, for those that want one.
Answer: TypeAlias = tuple[str, dict[str, object]] | None


@attrs.define(eq=False)
class ChannelNames:
    """Names that the broker gives: to queues, and to consumers."""

    #: What a name is filled up to.
    length: int = 0
    count: int = 0
    #: The queue that was declared last, which an empty name means.
    queue: str = ""

    def next(self, prefix: str) -> str:
        """A name that nobody has."""
        self.count += 1
        return f"{prefix}{id(self):x}-{self.count}-".ljust(self.length, "n")[:255]


def _queue(channel: ServedChannel, names: ChannelNames, name: str) -> HeldQueue:
    wanted = name or names.queue
    queue = channel.store.queues.get(wanted)
    if queue is None:
        raise ChannelRefusal(404, f"NOT_FOUND - no queue '{wanted}' in vhost")
    if queue.owner not in (None, channel.line):
        raise ChannelRefusal(
            405, f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{wanted}'"
        )
    return queue


def _exchange(channel: ServedChannel, name: str) -> HeldExchange:
    exchange = channel.store.exchanges.get(name)
    if exchange is None:
        raise ChannelRefusal(404, f"NOT_FOUND - no exchange '{name}' in vhost")
    return exchange


def _flow(channel: ServedChannel, names: ChannelNames, said: v0_9_1.ChannelFlow) -> Answer:
    channel.is_active = said.active
    return "ChannelFlowOk", {"active": said.active}


def _exchange_declare(channel: ServedChannel, names: ChannelNames, said: v0_9_1.ExchangeDeclare) -> Answer:
    if said.passive:
        _exchange(channel, said.exchange)
    channel.store.exchanges.setdefault(said.exchange, HeldExchange(said.type))
    return "ExchangeDeclareOk", {}


def _exchange_delete(channel: ServedChannel, names: ChannelNames, said: v0_9_1.ExchangeDelete) -> Answer:
    channel.store.exchanges.pop(said.exchange, None)
    return "ExchangeDeleteOk", {}


def _exchange_bind(channel: ServedChannel, names: ChannelNames, said: v0_9_1.ExchangeBind) -> Answer:
    _exchange(channel, said.destination)
    bound = ("exchange", said.destination, said.routing_key, said.arguments)
    _bind(_exchange(channel, said.source), bound)
    return "ExchangeBindOk", {}


def _exchange_unbind(channel: ServedChannel, names: ChannelNames, said: v0_9_1.ExchangeUnbind) -> Answer:
    bound = ("exchange", said.destination, said.routing_key, said.arguments)
    _unbind(_exchange(channel, said.source), bound)
    return "ExchangeUnbindOk", {}


def _queue_declare(channel: ServedChannel, names: ChannelNames, said: v0_9_1.QueueDeclare) -> Answer:
    name = said.queue or names.next("amq.gen-")
    queue = channel.store.queues.get(name)
    if queue is None:
        if said.passive:
            raise ChannelRefusal(404, f"NOT_FOUND - no queue '{name}' in vhost")
        owner = channel.line if said.exclusive else None
        queue = channel.store.queues[name] = HeldQueue(name, owner, said.auto_delete)
    names.queue = name
    counts = {"message_count": len(queue.messages), "consumer_count": len(queue.readers)}
    return "QueueDeclareOk", {"queue": _queue(channel, names, name).name, **counts}


def _queue_bind(channel: ServedChannel, names: ChannelNames, said: v0_9_1.QueueBind) -> Answer:
    queue = _queue(channel, names, said.queue)
    _bind(_exchange(channel, said.exchange), ("queue", queue.name, said.routing_key, said.arguments))
    return "QueueBindOk", {}


def _queue_unbind(channel: ServedChannel, names: ChannelNames, said: v0_9_1.QueueUnbind) -> Answer:
    queue = _queue(channel, names, said.queue)
    _unbind(_exchange(channel, said.exchange), ("queue", queue.name, said.routing_key, said.arguments))
    return "QueueUnbindOk", {}


def _bind(exchange: HeldExchange, bound: tuple[str, str, str, object]) -> None:
    if bound not in exchange.bindings:
        exchange.bindings.append(bound)  # type: ignore[arg-type]


def _unbind(exchange: HeldExchange, bound: tuple[str, str, str, object]) -> None:
    exchange.bindings[:] = [one for one in exchange.bindings if one != bound]


def _queue_purge(channel: ServedChannel, names: ChannelNames, said: v0_9_1.QueuePurge) -> Answer:
    return "QueuePurgeOk", {"message_count": _queue(channel, names, said.queue).purge()}


def _queue_delete(channel: ServedChannel, names: ChannelNames, said: v0_9_1.QueueDelete) -> Answer:
    name = said.queue or names.queue
    found = channel.store.queues.get(name)
    if found is None:
        return "QueueDeleteOk", {"message_count": 0}
    queue = _queue(channel, names, name)
    if (said.if_unused and queue.readers) or (said.if_empty and queue.messages):
        raise ChannelRefusal(406, f"PRECONDITION_FAILED - queue '{name}' in vhost in use or not empty")
    return "QueueDeleteOk", {"message_count": channel.store.delete_queue(name)}


def _qos(channel: ServedChannel, names: ChannelNames, said: v0_9_1.BasicQos) -> Answer:
    channel.prefetch = said.prefetch_count
    return "BasicQosOk", {}


def _consume(channel: ServedChannel, names: ChannelNames, said: v0_9_1.BasicConsume) -> Answer:
    queue = _queue(channel, names, said.queue)
    tag = said.consumer_tag or names.next("amq.ctag-")
    consumer = ServedConsumer(channel, tag, queue, said.no_ack, channel.prefetch)
    channel.consumers[tag] = consumer
    queue.readers.append(consumer)
    return "BasicConsumeOk", {"consumer_tag": tag}


def _cancel(channel: ServedChannel, names: ChannelNames, said: v0_9_1.BasicCancel) -> Answer:
    channel.cancel(said.consumer_tag)
    return "BasicCancelOk", {"consumer_tag": said.consumer_tag}


def _publish(channel: ServedChannel, names: ChannelNames, said: v0_9_1.BasicPublish) -> Answer:
    channel.under_way = PublishUnderWay(said)
    return None


def _get(channel: ServedChannel, names: ChannelNames, said: v0_9_1.BasicGet) -> Answer:
    queue = _queue(channel, names, said.queue)
    if not queue.messages:
        return "BasicGetEmpty", {}
    channel.get(queue, no_ack=said.no_ack)
    return None


def _ack(channel: ServedChannel, names: ChannelNames, said: v0_9_1.BasicAck) -> Answer:
    channel.settle(said.delivery_tag, multiple=said.multiple, requeue=False)
    return None


def _nack(channel: ServedChannel, names: ChannelNames, said: v0_9_1.BasicNack) -> Answer:
    channel.settle(said.delivery_tag, multiple=said.multiple, requeue=said.requeue)
    return None


def _reject(channel: ServedChannel, names: ChannelNames, said: v0_9_1.BasicReject) -> Answer:
    channel.settle(said.delivery_tag, multiple=False, requeue=said.requeue)
    return None


def _recover(channel: ServedChannel, names: ChannelNames, said: v0_9_1.BasicRecover) -> Answer:
    channel.requeue_all()
    return "BasicRecoverOk", {}


def _recover_async(channel: ServedChannel, names: ChannelNames, said: v0_9_1.BasicRecoverAsync) -> Answer:
    channel.requeue_all()
    return None


def _confirm(channel: ServedChannel, names: ChannelNames, said: v0_9_1.ConfirmSelect) -> Answer:
    if channel.confirmed is None:
        channel.confirmed = 0
    return "ConfirmSelectOk", {}


def _tx_select(channel: ServedChannel, names: ChannelNames, said: v0_9_1.TxSelect) -> Answer:
    channel.transaction = channel.transaction or []
    return "TxSelectOk", {}


def _tx_commit(channel: ServedChannel, names: ChannelNames, said: v0_9_1.TxCommit) -> Answer:
    parts, channel.transaction = channel.transaction or [], None
    for part in parts:
        part()
    channel.transaction = []
    return "TxCommitOk", {}


def _tx_rollback(channel: ServedChannel, names: ChannelNames, said: v0_9_1.TxRollback) -> Answer:
    channel.transaction = []
    return "TxRollbackOk", {}


def _access(channel: ServedChannel, names: ChannelNames, said: v0_9_1.AccessRequest) -> Answer:
    return "AccessRequestOk", {"ticket": 1}


#: By name. The method is of this name, in the classes of whichever version.
METHODS: Final[Mapping[str, Callable[[ServedChannel, ChannelNames, Never], Answer]]] = {
    "channel.flow": _flow,
    "access.request": _access,
    "exchange.declare": _exchange_declare,
    "exchange.delete": _exchange_delete,
    "exchange.bind": _exchange_bind,
    "exchange.unbind": _exchange_unbind,
    "queue.declare": _queue_declare,
    "queue.bind": _queue_bind,
    "queue.unbind": _queue_unbind,
    "queue.purge": _queue_purge,
    "queue.delete": _queue_delete,
    "basic.qos": _qos,
    "basic.consume": _consume,
    "basic.cancel": _cancel,
    "basic.publish": _publish,
    "basic.get": _get,
    "basic.ack": _ack,
    "basic.nack": _nack,
    "basic.reject": _reject,
    "basic.recover": _recover,
    "basic.recover-async": _recover_async,
    "confirm.select": _confirm,
    "tx.select": _tx_select,
    "tx.commit": _tx_commit,
    "tx.rollback": _tx_rollback,
}

#: What says nothing to the broker, or only to the scenario.
SILENT: Final = ("channel.flow-ok",)


def answer(channel: ServedChannel, names: ChannelNames, said: Method) -> None:
    """Do what a method asks for. Raises `ChannelRefusal`."""
    act = METHODS.get(said.NAME)
    if act is None:
        if said.NAME not in SILENT:
            raise ChannelRefusal(540, f"NOT_IMPLEMENTED - {said.NAME}")
        return
    found = act(channel, names, cast("Never", said))
    if found is not None and not getattr(said, "no_wait", False):
        channel.say(channel.line.method(found[0], **found[1]))
    for consumer in list(channel.consumers.values()):
        consumer.queue.deliver()
