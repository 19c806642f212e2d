"""Publishing, consuming and getting (AMQP 0-9-1, section 1.8)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import CaseSection
from amqpgate.conformance.talk import Talk, saying

BASIC: Final = CaseSection("basic", "Messages", Talk)

_CONSUME: Final = "1.8.3.3"
_PUBLISH: Final = "1.8.3.7"


# -- consume -------------------------------------------------------------------------------------------------


@BASIC.rule(
    "basic.consume.consumer-tag.own",
    "a consumer without a tag gets one of its own",
    section=_CONSUME,
    obeys="two tags",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    tags = {await talk.consume(peer, name) for _ in range(2)}
    return "two tags" if len(tags) == 2 and all(tags) else f"{tags}"


@BASIC.rule(
    "basic.consume.consumer-tag.unique",
    "a tag that the channel uses is refused with 530",
    section=_CONSUME,
    obeys="connection.close 530",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await talk.consume(peer, name, consumer_tag="t")
    await peer.say(1, talk.amqp.BasicConsume(queue=name, consumer_tag="t"))
    return await peer.outcome()


@BASIC.rule(
    "basic.consume.consumer-tag.by-channel",
    "two channels may use the same tag",
    section=_CONSUME,
    obeys="basic.consume-ok",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await talk.channel(peer, 2)
    name = await talk.queue(peer)
    await talk.consume(peer, name, consumer_tag="t")
    await peer.say(2, talk.amqp.BasicConsume(queue=name, consumer_tag="t"))
    return await peer.outcome()


BASIC.rule(
    "basic.consume.queue.exists",
    "a queue that is not there cannot be consumed: 404",
    section=_CONSUME,
    obeys="channel.close 404",
)(saying(lambda talk: talk.amqp.BasicConsume(queue=talk.name())))


@BASIC.rule(
    "basic.consume.exclusive.refused",
    "an exclusive consumer is refused where there is another: 403",
    section=_CONSUME,
    obeys="channel.close 403",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await talk.consume(peer, name)
    await peer.say(1, talk.amqp.BasicConsume(queue=name, exclusive=True))
    return await peer.outcome()


@BASIC.rule(
    "basic.consume.exclusive.alone",
    "beside an exclusive consumer there is no other: 403",
    section=_CONSUME,
    obeys="channel.close 403",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await talk.consume(peer, name, exclusive=True)
    await peer.say(1, talk.amqp.BasicConsume(queue=name))
    return await peer.outcome()


@BASIC.rule("basic.consume.no-wait", "with no-wait there is no answer", section=_CONSUME, obeys="goes on")
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await peer.say(1, talk.amqp.BasicConsume(queue=name, consumer_tag="t", no_wait=True))
    return await peer.goes_on(1)


@BASIC.rule(
    "basic.consume.no-ack",
    "what is delivered with no-ack is gone",
    section=_CONSUME,
    obeys="0 messages",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await talk.channel(peer, 2)
    name = await talk.queue(peer)
    await talk.consume(peer, name, 2, no_ack=True)
    await talk.publish(peer, name)
    await peer.message(2, talk.amqp.BasicDeliver)
    await peer.say(2, talk.amqp.ChannelClose(reply_code=200, reply_text="bye"))
    await peer.expect(talk.amqp.ChannelCloseOk, 2)
    return f"{await talk.count(peer, name)} messages"


@BASIC.rule(
    "basic.consume.round-robin",
    "a queue's consumers take turns",
    section="3.1.4",
    strength="should",
    obeys="5 and 5",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    tags = [await talk.consume(peer, name, no_ack=True) for _ in range(2)]

    async def taken(count: int) -> list[str]:
        for _ in range(count):
            await talk.publish(peer, name)
        return [(await peer.message(1, talk.amqp.BasicDeliver)).method.consumer_tag for _ in range(count)]

    # Behind consume-ok a consumer may still be on its way to its queue, as where a proxy gives credit for it
    # (0-10). A turn counts once each has got something, or had time enough for it.
    heard: set[str] = set()
    for wait in (0, 0, 0, 0.02, 0.05, 0.1, 0.3, 0.5):
        await talk.pause(wait)
        heard.update(await taken(1))
        if heard.issuperset(tags):
            break
    got = await taken(10)
    return f"{got.count(tags[0])} and {got.count(tags[1])}"


@BASIC.rule(
    "basic.deliver.order",
    "one channel's messages come in the order of their publishing",
    section="4.7",
    obeys="in order",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await talk.consume(peer, name, no_ack=True)
    for number in range(100):
        await talk.publish(peer, name, str(number).encode())
    got = [int((await peer.message(1, talk.amqp.BasicDeliver)).body) for _ in range(100)]
    return "in order" if got == sorted(got) else f"{got}"


@BASIC.rule(
    "basic.deliver.fields",
    "a delivery names the consumer, the exchange and the key, and begins to count at 1",
    section="1.8.3.9",
    obeys="t 1 False amq.direct key",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    key = talk.name()
    await talk.bind(peer, name, "amq.direct", key)
    await talk.consume(peer, name, consumer_tag="t")
    await talk.publish(peer, key, exchange="amq.direct")
    said = (await peer.message(1, talk.amqp.BasicDeliver)).method
    shown = "key" if said.routing_key == key else said.routing_key
    return f"{said.consumer_tag} {said.delivery_tag} {said.redelivered} {said.exchange} {shown}"


# -- cancel --------------------------------------------------------------------------------------------------


@BASIC.rule(
    "basic.cancel.ok",
    "after cancel-ok nothing is delivered to the consumer",
    section="1.8.3.5",
    obeys="goes on",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    tag = await talk.consume(peer, name)
    await peer.say(1, talk.amqp.BasicCancel(consumer_tag=tag))
    await peer.expect(talk.amqp.BasicCancelOk, 1)
    await talk.publish(peer, name)
    return await peer.goes_on(1)


BASIC.rule(
    "basic.cancel.consumer-tag.unknown",
    "cancelling a consumer that is not there is answered with cancel-ok",
    section="1.8.3.5",
    strength="should",
    obeys="basic.cancel-ok",
)(saying(lambda talk: talk.amqp.BasicCancel(consumer_tag="nobody")))


@BASIC.rule("basic.cancel.no-wait", "with no-wait there is no answer", section="1.8.3.5", obeys="goes on")
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    tag = await talk.consume(peer, await talk.queue(peer))
    await peer.say(1, talk.amqp.BasicCancel(consumer_tag=tag, no_wait=True))
    return await peer.goes_on(1)


@BASIC.rule(
    "basic.cancel.tag-free", "a tag is free after cancel-ok", section="1.8.3.5", obeys="basic.consume-ok"
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    tag = await talk.consume(peer, name)
    await peer.say(1, talk.amqp.BasicCancel(consumer_tag=tag))
    await peer.expect(talk.amqp.BasicCancelOk, 1)
    await peer.say(1, talk.amqp.BasicConsume(queue=name, consumer_tag=tag))
    return await peer.outcome()


# -- publish -------------------------------------------------------------------------------------------------


@BASIC.rule(
    "basic.publish.exchange.exists",
    "an exchange that is not there closes the channel with 404",
    section=_PUBLISH,
    obeys="channel.close 404",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await talk.publish(peer, "k", exchange=talk.name())
    return await peer.goes_on(1)


@BASIC.rule(
    "basic.publish.unroutable",
    "a message that goes nowhere is dropped without a word",
    section=_PUBLISH,
    obeys="goes on",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await talk.publish(peer, talk.name())
    return await peer.goes_on(1)


@BASIC.rule(
    "basic.publish.mandatory.returned",
    "a mandatory message that goes nowhere comes back whole, with 312",
    section=_PUBLISH,
    obeys="312 the key, the body",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    key = talk.name()
    await talk.publish(peer, key, b"back", mandatory=True)
    said = await peer.message(1, talk.amqp.BasicReturn)
    which = "the" if said.method.routing_key == key else "another"
    what = "the" if said.body == b"back" else "another"
    return f"{said.method.reply_code} {which} key, {what} body"


@BASIC.rule(
    "basic.publish.mandatory.routed",
    "a mandatory message that goes somewhere does not come back",
    section=_PUBLISH,
    obeys="goes on",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await talk.publish(peer, name, mandatory=True)
    return await peer.goes_on(1)


@BASIC.rule(
    "basic.publish.immediate",
    "an immediate message that has no consumer comes back with 313",
    section=_PUBLISH,
    obeys="313",
    rabbitmq="connection.close 540",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await talk.publish(peer, name, immediate=True)
    said = await peer.message(1, talk.amqp.BasicReturn)
    return str(said.method.reply_code)


@BASIC.rule(
    "basic.publish.default-exchange",
    "the default exchange routes to the queue of that name",
    section=_PUBLISH,
    obeys="m",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await talk.publish(peer, name)
    found = await talk.arrives(peer, name)
    return found.body.decode() if found else "nothing"


# -- get -----------------------------------------------------------------------------------------------------


@BASIC.rule(
    "basic.get.empty",
    "an empty queue answers get with get-empty",
    section="1.8.3.10",
    obeys="basic.get-empty",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await peer.say(1, talk.amqp.BasicGet(queue=name))
    return await peer.outcome()


@BASIC.rule(
    "basic.get.fields",
    "get-ok counts what is left, and has tag, exchange and key",
    section="1.8.3.11",
    obeys="1 False 2 left",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    for _ in range(3):
        await talk.publish(peer, name)
    await peer.goes_on(1)
    found = await talk.get(peer, name, no_ack=False)
    if found is None:
        return "nothing"
    said = found.method
    return f"{said.delivery_tag} {said.redelivered} {said.message_count} left"


BASIC.rule(
    "basic.get.queue.exists",
    "a queue that is not there cannot be asked: 404",
    section="1.8.3.10",
    obeys="channel.close 404",
)(saying(lambda talk: talk.amqp.BasicGet(queue=talk.name())))


@BASIC.rule("basic.get.no-ack", "what is got with no-ack is gone", section="1.8.3.10", obeys="gone")
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await talk.channel(peer, 2)
    name = await talk.queue(peer)
    await talk.publish(peer, name)
    await peer.goes_on(1)
    await talk.get(peer, name, channel=2)
    await peer.say(2, talk.amqp.ChannelClose(reply_code=200, reply_text="bye"))
    await peer.expect(talk.amqp.ChannelCloseOk, 2)
    return "gone" if await talk.get(peer, name) is None else "there again"
