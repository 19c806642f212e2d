"""Queues and their bindings (AMQP 0-9-1, section 1.7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amqpgate.conformance.case import CaseSection
from amqpgate.conformance.talk import Talk, method, saying

QUEUE: Final = CaseSection("queue", "Queues", Talk)

_DECLARE: Final = "1.7.2.1"


@QUEUE.rule(
    "queue.declare.queue.default-name",
    "a queue without a name gets one of its own",
    section=_DECLARE,
    obeys="two names",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    names = [await talk.queue(peer, "") for _ in range(2)]
    return "two names" if all(names) and len(set(names)) == 2 else f"{names}"


@QUEUE.rule(
    "queue.declare.answer",
    "declare-ok has the name and the counts",
    section="1.7.2.2",
    obeys="same name, 2 messages, 1 consumers",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await peer.say(1, talk.amqp.BasicQos(prefetch_count=1))
    await peer.expect(talk.amqp.BasicQosOk, 1)
    await talk.consume(peer, name)
    for _ in range(3):
        await talk.publish(peer, name)
    await peer.message(1, talk.amqp.BasicDeliver)
    for wait in (0, 0.1, 0.5):
        # What was published may still be on its way.
        await talk.pause(wait)
        await peer.say(1, talk.amqp.QueueDeclare(queue=name, exclusive=True))
        said = await peer.expect(talk.amqp.QueueDeclareOk, 1)
        if said.message_count == 2:
            break
    which = "same" if said.queue == name else "another"
    return f"{which} name, {said.message_count} messages, {said.consumer_count} consumers"


QUEUE.rule(
    "queue.declare.passive.not-found",
    "a passive declare of what is not there is refused with 404",
    section=_DECLARE,
    obeys="channel.close 404",
)(saying(lambda talk: talk.amqp.QueueDeclare(queue=talk.name(), passive=True)))

QUEUE.rule(
    "queue.declare.queue.reserved",
    "a name that begins with amq. is refused with 403",
    section=_DECLARE,
    obeys="channel.close 403",
)(saying(lambda talk: talk.amqp.QueueDeclare(queue="amq.conformance", exclusive=True)))


@QUEUE.rule(
    "queue.declare.queue.last",
    "a method without a queue's name is about the one that the channel declared last",
    section="1.7.2.3",
    obeys="1 message",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await talk.publish(peer, name)
    await peer.goes_on(1)
    await peer.say(1, talk.amqp.QueuePurge(queue=""))
    said = await peer.expect(talk.amqp.QueuePurgeOk, 1)
    return f"{said.message_count} message"


for _title, _method in (
    ("queue.purge", "QueuePurge"),
    ("queue.delete", "QueueDelete"),
    ("basic.get", "BasicGet"),
    ("basic.consume", "BasicConsume"),
):
    QUEUE.rule(
        f"{_title}.queue.none",
        f"{_title} without a name, where no queue was declared, is 530, or 404",
        section="1.7.2.3",
        obeys=("connection.close 530", "channel.close 404", "connection.close 50?"),
    )(saying(method(_method, queue="")))


@QUEUE.rule(
    "queue.declare.exclusive.other",
    "another connection's exclusive queue cannot be declared: 405",
    section=_DECLARE,
    obeys="channel.close 405",
)
async def _(talk: Talk) -> str:
    name = await talk.queue(await talk.channel())
    other = await talk.channel()
    await other.say(1, talk.amqp.QueueDeclare(queue=name, passive=True))
    return await other.outcome()


for _id, _title, _method, _fields in (
    ("queue.purge.exclusive", "purged", "QueuePurge", {}),
    ("queue.delete.exclusive", "deleted", "QueueDelete", {}),
    ("queue.bind.exclusive", "bound", "QueueBind", {"exchange": "amq.direct", "routing_key": "k"}),
    ("basic.consume.exclusive-queue", "consumed", "BasicConsume", {}),
    ("basic.get.exclusive-queue", "got from", "BasicGet", {}),
):

    @QUEUE.rule(
        _id,
        f"another connection's exclusive queue cannot be {_title}: 405",
        section=_DECLARE,
        obeys=("channel.close 405", "channel.close 403"),
    )
    async def _(talk: Talk, name: str = _method, fields: Mapping[str, str] = _fields) -> str:
        queue = await talk.queue(await talk.channel())
        other = await talk.channel()
        await other.say(1, method(name, queue=queue, **fields)(talk))
        return await other.outcome()


for _flag in ("durable", "auto_delete", "exclusive"):

    @QUEUE.rule(
        f"queue.declare.{_flag.replace('_', '-')}.equivalence",
        f"a queue cannot be declared again with another {_flag.replace('_', '-')}: 406",
        section=_DECLARE,
        obeys=("channel.close 406", "channel.close 405"),
    )
    async def _(talk: Talk, flag: str = _flag) -> str:
        peer = await talk.channel()
        said = {"durable": True, "auto_delete": False, "exclusive": False}
        name = await talk.queue(peer, None, 1, **said)
        await peer.say(1, talk.amqp.QueueDeclare(queue=name, **(said | {flag: not said[flag]})))
        return await peer.outcome()


@QUEUE.rule(
    "queue.declare.again",
    "a queue can be declared again with the same properties",
    section=_DECLARE,
    obeys="queue.declare-ok",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await peer.say(1, talk.amqp.QueueDeclare(queue=name, exclusive=True))
    return await peer.outcome()


@QUEUE.rule("queue.declare.no-wait", "with no-wait there is no answer", section=_DECLARE, obeys="goes on")
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await peer.say(1, talk.amqp.QueueDeclare(queue=talk.name(), exclusive=True, no_wait=True))
    return await peer.goes_on(1)


@QUEUE.rule(
    "queue.declare.auto-delete",
    "an auto-delete queue goes with its last consumer",
    section=_DECLARE,
    obeys="channel.close 404",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer, auto_delete=True)
    tag = await talk.consume(peer, name)
    await peer.say(1, talk.amqp.BasicCancel(consumer_tag=tag))
    await peer.expect(talk.amqp.BasicCancelOk, 1)
    await peer.say(1, talk.amqp.QueueDeclare(queue=name, passive=True))
    return await peer.outcome()


@QUEUE.rule(
    "queue.declare.auto-delete.unused",
    "an auto-delete queue that never had a consumer stays",
    section=_DECLARE,
    obeys="queue.declare-ok",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer, auto_delete=True)
    await talk.pause(0.1)
    await peer.say(1, talk.amqp.QueueDeclare(queue=name, passive=True))
    return await peer.outcome()


@QUEUE.rule(
    "queue.declare.queue.longest",
    "a name of 255 bytes is taken",
    section="4.2.5.3",
    obeys="same name",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = talk.name().ljust(255, "q")
    return "same name" if await talk.queue(peer, name) == name else "another"


@QUEUE.rule(
    "queue.declare.queue.utf-8",
    "a name may be any UTF-8",
    section="4.2.5.3",
    obeys="same name",
    strength="should",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = talk.name() + "-grün-馬"
    return "same name" if await talk.queue(peer, name) == name else "another"


# -- purge and delete ----------------------------------------------------------------------------------------


@QUEUE.rule("queue.purge.counts", "purge-ok counts what was purged", section="1.7.2.7", obeys="3, then 0")
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    for _ in range(3):
        await talk.publish(peer, name)
    counts = []
    for _ in range(2):
        await peer.say(1, talk.amqp.QueuePurge(queue=name))
        counts.append(str((await peer.expect(talk.amqp.QueuePurgeOk, 1)).message_count))
    return ", then ".join(counts)


@QUEUE.rule(
    "queue.purge.unacked",
    "purge leaves what was delivered and is not acknowledged",
    section="1.7.2.7",
    obeys="comes again",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await talk.channel(peer, 2)
    name = await talk.queue(peer)
    await talk.publish(peer, name)
    await peer.goes_on(1)
    await talk.get(peer, name, no_ack=False, channel=2)
    await peer.say(1, talk.amqp.QueuePurge(queue=name))
    await peer.expect(talk.amqp.QueuePurgeOk, 1)
    await peer.say(2, talk.amqp.ChannelClose(reply_code=200, reply_text="bye"))
    await peer.expect(talk.amqp.ChannelCloseOk, 2)
    return "comes again" if await talk.arrives(peer, name) is not None else "gone"


QUEUE.rule(
    "queue.purge.queue.exists",
    "purging what is not there is refused with 404",
    section="1.7.2.7",
    obeys="channel.close 404",
)(saying(lambda talk: talk.amqp.QueuePurge(queue=talk.name())))


@QUEUE.rule(
    "queue.delete.counts", "delete-ok counts what was in the queue", section="1.7.2.9", obeys="2 messages"
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    for _ in range(2):
        await talk.publish(peer, name)
    await peer.goes_on(1)
    await peer.say(1, talk.amqp.QueueDelete(queue=name))
    return f"{(await peer.expect(talk.amqp.QueueDeleteOk, 1)).message_count} messages"


QUEUE.rule(
    "queue.delete.queue.exists",
    "deleting what is not there is refused with 404",
    section="1.7.2.9",
    obeys="channel.close 404",
    rabbitmq="queue.delete-ok",
)(saying(lambda talk: talk.amqp.QueueDelete(queue=talk.name())))


@QUEUE.rule(
    "queue.delete.if-empty",
    "if-empty leaves a queue that has messages: 406",
    section="1.7.2.9",
    obeys="channel.close 406",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await talk.publish(peer, name)
    await peer.goes_on(1)
    await peer.say(1, talk.amqp.QueueDelete(queue=name, if_empty=True))
    return await peer.outcome()


@QUEUE.rule(
    "queue.delete.if-unused",
    "if-unused leaves a queue that has consumers: 406",
    section="1.7.2.9",
    obeys="channel.close 406",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await talk.consume(peer, name)
    await peer.say(1, talk.amqp.QueueDelete(queue=name, if_unused=True))
    return await peer.outcome()


@QUEUE.rule(
    "queue.delete.consumers",
    "a queue with consumers can be deleted, and they hear of it",
    section="1.7.2.9",
    versions=("0-9-1",),
    obeys="basic.cancel, queue.delete-ok",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await talk.consume(peer, name)
    await peer.say(1, talk.amqp.QueueDelete(queue=name))
    return ", ".join(sorted([await peer.outcome(), await peer.outcome()]))
