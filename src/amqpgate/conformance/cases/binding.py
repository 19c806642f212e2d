"""Bindings of queues (AMQP 0-9-1, sections 1.7.2.3 and 1.7.2.5)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import CaseSection
from amqpgate.conformance.talk import Talk, saying

BINDING: Final = CaseSection("binding", "Bindings", Talk)


@BINDING.rule(
    "queue.bind.default-exchange",
    "every queue is bound to the default exchange by its name",
    section="3.1.3.1",
    obeys="1 message",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await talk.publish(peer, name)
    return f"{await talk.count(peer, name)} message"


BINDING.rule(
    "queue.bind.exchange.exists",
    "a queue cannot be bound to an exchange that is not there: 404",
    section="1.7.2.3",
    obeys="channel.close 404",
)(
    saying(
        lambda talk: talk.amqp.QueueDeclare(exclusive=True),
        lambda talk: talk.amqp.QueueBind(queue="", exchange=talk.name(), routing_key="k"),
    )
)

BINDING.rule(
    "queue.bind.queue.exists",
    "a queue that is not there cannot be bound: 404",
    section="1.7.2.3",
    obeys="channel.close 404",
)(saying(lambda talk: talk.amqp.QueueBind(queue=talk.name(), exchange="amq.direct", routing_key="k")))

BINDING.rule(
    "queue.bind.default.refused",
    "a queue cannot be bound to the default exchange by hand: 403",
    section="3.1.3.1",
    strength="should",
    obeys=("channel.close 403", "connection.close 530"),
)(
    saying(
        lambda talk: talk.amqp.QueueDeclare(exclusive=True),
        lambda talk: talk.amqp.QueueBind(queue="", exchange="", routing_key="k"),
    )
)


@BINDING.rule(
    "queue.bind.duplicates",
    "the same binding again passes, and changes nothing",
    section="1.7.2.3",
    obeys="1 message",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    for _ in range(3):
        await talk.bind(peer, name, "amq.direct", name)
    await talk.publish(peer, name, exchange="amq.direct")
    return f"{await talk.count(peer, name)} message"


@BINDING.rule("queue.bind.no-wait", "with no-wait there is no answer", section="1.7.2.3", obeys="goes on")
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    bind = talk.amqp.QueueBind(queue=name, exchange="amq.direct", routing_key="k", no_wait=True)
    await peer.say(1, bind)
    return await peer.goes_on(1)


@BINDING.rule(
    "queue.unbind.ok",
    "after unbind nothing is routed any more",
    section="1.7.2.5",
    versions=("0-9-1", "0-9"),
    obeys="0 messages",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await talk.bind(peer, name, "amq.direct", name)
    await peer.say(1, talk.amqp.QueueUnbind(queue=name, exchange="amq.direct", routing_key=name))
    await peer.expect(talk.amqp.QueueUnbindOk, 1)
    await talk.publish(peer, name, exchange="amq.direct")
    return f"{await talk.count(peer, name)} messages"


BINDING.rule(
    "queue.unbind.queue.exists",
    "a queue that is not there cannot be unbound: 404",
    section="1.7.2.5",
    versions=("0-9-1", "0-9"),
    obeys="channel.close 404",
    rabbitmq="queue.unbind-ok",
)(saying(lambda talk: talk.amqp.QueueUnbind(queue=talk.name(), exchange="amq.direct", routing_key="k")))
