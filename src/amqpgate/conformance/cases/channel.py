"""Channels: open, close, flow (AMQP 0-9-1, section 1.5)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import CaseSection
from amqpgate.conformance.talk import Talk, saying

CHANNEL: Final = CaseSection("channel", "Channels", Talk)


CHANNEL.rule(
    "channel.open.twice",
    "a channel that is open cannot be opened again: 504",
    section="1.5.2.1",
    obeys="connection.close 504",
)(saying(lambda talk: talk.amqp.ChannelOpen()))


@CHANNEL.rule("channel.open.many", "a hundred channels can be open", section="1.5.2.1", obeys="goes on")
async def _(talk: Talk) -> str:
    peer = await talk.connected()
    await peer.send(*(peer.encoded(number, talk.amqp.ChannelOpen()) for number in range(1, 101)))
    opened: set[int] = set()
    while len(opened) < 100:
        # Channels answer in any order.
        found = await peer.frame()
        if found is None or not isinstance(peer.decoded(found), talk.amqp.ChannelOpenOk):
            return f"{len(opened)} are open"
        opened.add(found.channel)
    return await peer.goes_on(100)


@CHANNEL.rule(
    "channel.close.ok", "channel.close is answered with close-ok", section="1.5.2.5", obeys="channel.close-ok"
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await peer.say(1, talk.amqp.ChannelClose(reply_code=200, reply_text="bye"))
    return await peer.outcome()


@CHANNEL.rule(
    "channel.close.again", "a channel's number is free after close-ok", section="1.5.2.5", obeys="goes on"
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await peer.say(1, talk.amqp.ChannelClose(reply_code=200, reply_text="bye"))
    await peer.expect(talk.amqp.ChannelCloseOk, 1)
    await talk.channel(peer)
    return await peer.goes_on(1)


@CHANNEL.rule(
    "channel.close.then-used",
    "a method on a channel that its client has closed is a connection's error, 504",
    section="1.5.2.5",
    obeys="connection.close 504",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await peer.say(1, talk.amqp.ChannelClose(reply_code=200, reply_text="bye"))
    await peer.expect(talk.amqp.ChannelCloseOk, 1)
    await peer.say(1, talk.amqp.BasicQos())
    return await peer.outcome()


@CHANNEL.rule(
    "channel.close.others", "an error of one channel leaves the others", section="1.5.2.5", obeys="goes on"
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await talk.channel(peer, 2)
    await peer.say(1, talk.amqp.QueueDeclare(queue=talk.name(), passive=True))
    said = await peer.outcome()
    return await peer.goes_on(2) if said == "channel.close 404" else said


@CHANNEL.rule(
    "channel.close.passed-over",
    "methods between channel.close of the peer and close-ok are passed over",
    section="1.5.2.5",
    obeys="goes on",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    amqp = talk.amqp
    # The first one closes the channel; what is behind it was said before the client knew.
    await peer.say(1, amqp.QueueDeclare(queue=talk.name(), passive=True), amqp.BasicQos(), amqp.BasicQos())
    said = await peer.outcome()
    if said != "channel.close 404":
        return said
    await talk.channel(peer)
    return await peer.goes_on(1)


@CHANNEL.rule(
    "channel.close.content-passed-over",
    "a message behind an error is passed over, and published nowhere",
    section="1.5.2.5",
    obeys="0 messages",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    queue = await talk.queue(peer)
    passive = peer.encoded(1, talk.amqp.QueueDeclare(queue=talk.name(), passive=True))
    await peer.send(passive, *peer.content(1, talk.amqp.BasicPublish(routing_key=queue), b"late"))
    await peer.outcome()
    await talk.channel(peer)
    return f"{await talk.count(peer, queue)} messages"


@CHANNEL.rule(
    "channel.close.crossing",
    "where both sides close at once the channel can be opened again",
    section="1.5.2.5",
    obeys="goes on",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    amqp = talk.amqp
    close = amqp.ChannelClose(reply_code=200, reply_text="bye")
    await peer.say(1, amqp.QueueDeclare(queue=talk.name(), passive=True), close)
    said = [await peer.outcome(), await peer.outcome()]
    if said != ["channel.close 404", "channel.close-ok"]:
        return ", ".join(said)
    # The close-ok that answered the peer's close may come after its own: it is for nobody then.
    return "goes on"


@CHANNEL.rule(
    "channel.close.consumers", "consumers end with their channel", section="1.5.2.5", obeys="0 consumers"
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await talk.channel(peer, 2)
    queue = await talk.queue(peer)
    await talk.consume(peer, queue, 2)
    await peer.say(2, talk.amqp.ChannelClose(reply_code=200, reply_text="bye"))
    await peer.expect(talk.amqp.ChannelCloseOk, 2)
    await peer.say(1, talk.amqp.QueueDeclare(queue=queue, passive=True))
    said = await peer.expect(talk.amqp.QueueDeclareOk, 1)
    return f"{said.consumer_count} consumers"


@CHANNEL.rule(
    "channel.close.reply-text",
    "channel.close says which method it is about",
    section="1.5.2.5",
    obeys="50, 10",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await peer.say(1, talk.amqp.QueueDeclare(queue=talk.name(), passive=True))
    said = await peer.method()
    return f"{getattr(said, 'class_id', '?')}, {getattr(said, 'method_id', '?')}"


CHANNEL.rule(
    "channel.flow.on",
    "channel.flow that asks for deliveries is answered with flow-ok",
    section="1.5.2.3",
    obeys="channel.flow-ok",
)(saying(lambda talk: talk.amqp.ChannelFlow(active=True)))

CHANNEL.rule(
    "channel.flow.off",
    "channel.flow that stops deliveries is answered with flow-ok",
    section="1.5.2.3",
    obeys="channel.flow-ok",
    rabbitmq="connection.close 540",
)(saying(lambda talk: talk.amqp.ChannelFlow(active=False)))


@CHANNEL.rule(
    "channel.flow.stops",
    "after channel.flow off nothing is delivered until it is on",
    section="1.5.2.3",
    obeys="stopped, then delivered",
    rabbitmq="connection.close 540",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    queue = await talk.queue(peer)
    await talk.consume(peer, queue, no_ack=True)
    await peer.say(1, talk.amqp.ChannelFlow(active=False))
    await peer.expect(talk.amqp.ChannelFlowOk, 1)
    await talk.publish(peer, queue)
    said = await peer.goes_on(1)
    if said != "goes on":
        return said
    await talk.pause(0.2)
    said = await peer.goes_on(1)
    if said != "goes on":
        return said
    await peer.say(1, talk.amqp.ChannelFlow(active=True))
    # The message may come before the answer.
    heard = []
    for _ in range(2):
        heard.append(await peer.outcome())
        if heard[-1] == "basic.deliver":
            await peer.frame()
            await peer.frame()
    both = sorted(heard) == ["basic.deliver", "channel.flow-ok"]
    return "stopped, then delivered" if both else ", ".join(heard)
