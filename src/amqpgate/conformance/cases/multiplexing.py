"""Channels in frames: which may be used, and how they share a connection (AMQP 0-9-1, section 2.2.4)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import CaseSection
from amqpgate.conformance.talk import Talk

MULTIPLEXING: Final = CaseSection("multiplexing", "Channels in frames", Talk)


@MULTIPLEXING.rule(
    "framing.channel.method-on-zero",
    "a method of a channel's class on channel 0 is a connection's error, 503",
    section="2.2.4",
    obeys=("connection.close 503", "connection.close 504"),
    rabbitmq="connection.close 50?",
)
async def _(talk: Talk) -> str:
    peer = await talk.connected()
    await peer.say(0, talk.amqp.QueueDeclare(queue=talk.name()))
    return await peer.outcome()


@MULTIPLEXING.rule(
    "framing.channel.connection-class-elsewhere",
    "a method of class connection on another channel than 0 is a connection's error, 503",
    section="2.2.4",
    obeys=("connection.close 503", "connection.close 504"),
    rabbitmq="connection.close 50?",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await peer.say(1, talk.amqp.ConnectionOpen(virtual_host=talk.target.vhost))
    return await peer.outcome()


@MULTIPLEXING.rule(
    "framing.channel.not-open",
    "a method on a channel that is not open is a connection's error, 504",
    section="2.2.4",
    obeys="connection.close 504",
)
async def _(talk: Talk) -> str:
    peer = await talk.connected()
    await peer.say(5, talk.amqp.BasicQos())
    return await peer.outcome()


@MULTIPLEXING.rule(
    "framing.channel.above-max",
    "a channel above the agreed channel-max is a connection's error",
    section="1.4.2.6.1",
    obeys=("connection.close 504", "connection.close 530", "connection.close 502", "connection.close 501"),
    # RabbitMQ counts channels, and takes any number.
    rabbitmq="channel.open-ok",
)
async def _(talk: Talk) -> str:
    peer = await talk.connected(channel_max=5)
    await peer.say(6, talk.amqp.ChannelOpen())
    return await peer.outcome()


@MULTIPLEXING.rule(
    "framing.channel.at-max",
    "the channel with the number of the agreed channel-max can be opened",
    section="1.4.2.6.1",
    obeys="goes on",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel(await talk.connected(channel_max=5), 5)
    return await peer.goes_on(5)


@MULTIPLEXING.rule(
    "framing.channel.parallel",
    "frames of several channels may lie between each other's",
    section="4.2.6",
    obeys="both whole",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await talk.channel(peer, 2)
    queue = await talk.queue(peer)
    publish = talk.amqp.BasicPublish(routing_key=queue)
    one = peer.content(1, publish, b"1" * 100)
    two = peer.content(2, publish, b"2" * 100)
    await peer.send(*(part for pair in zip(one, two, strict=True) for part in pair))
    bodies = [found.body if (found := await talk.arrives(peer, queue)) else b"" for _ in range(2)]
    return "both whole" if sorted(bodies) == [b"1" * 100, b"2" * 100] else f"{bodies}"
