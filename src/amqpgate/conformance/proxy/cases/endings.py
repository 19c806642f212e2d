"""Channels and connections: how they end, what is told of it on the other side, and what interrupts them."""

from __future__ import annotations

from typing import Final

import trio

from amqpgate.conformance.proxy.between import ProxySection, ProxyTalk
from amqpgate.conformance.versions import OF_RABBITMQ

ENDINGS: Final = ProxySection("proxy.endings", "Channels and connections")


@ENDINGS.rule(
    "channel.close.client", "the client's channel.close comes to the broker as it was", section="1.5.2.5"
)
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    close = at.amqp.ChannelClose(506, f"{at.name()} ä", 60, 40)
    await channel.say(close)
    noted = await at.hears("channel.close", reply_text=close.reply_text)
    await channel.peer.expect(at.amqp.ChannelCloseOk, 1)
    return "as it was" if at.came(noted, close) else "another close"


@ENDINGS.rule(
    "channel.close.broker",
    "the broker's channel.close comes to the client as it was, its answer to the broker, and others go on",
    section="1.5.2.5",
)
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    other = await at.channel(channel.peer, 2)
    close = at.amqp.ChannelClose(404, f"NOT_FOUND - {at.name()} ä", 50, 10)
    await channel.answer(close)
    said = await at.returns(channel.peer, 1, close)
    await channel.say(at.amqp.ChannelCloseOk())
    await at.hears("channel.close-ok")
    await other.say(at.amqp.BasicQos(prefetch_count=7))
    await other.peer.expect(at.amqp.BasicQosOk, 2)
    return said


@ENDINGS.rule(
    "channel.open.again", "a channel that was closed can be opened again", section="1.5.2.1", obeys="opens"
)
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    for _ in range(3):
        await channel.say(at.amqp.ChannelClose(200, "bye", 0, 0))
        await channel.peer.expect(at.amqp.ChannelCloseOk, 1)
        channel = await at.channel(channel.peer)
    return "opens"


@ENDINGS.rule(
    "channel.flow", "the broker's channel.flow comes to the client, and its answer back", section="1.5.2.3"
)
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    flow = at.amqp.ChannelFlow(active=False)
    await channel.answer(flow)
    said = await at.returns(channel.peer, 1, flow)
    await channel.say(at.amqp.ChannelFlowOk(active=False))
    await at.hears("channel.flow-ok", active=False)
    return said


@ENDINGS.rule(
    "basic.cancel.broker",
    "the broker's basic.cancel comes to the client",
    section="consumer_cancel_notify",
    versions=OF_RABBITMQ,
)
async def _(at: ProxyTalk) -> str:
    channel, tag = await at.consuming()
    await channel.answer(at.amqp.BasicCancel(tag, True))
    return await at.returns(channel.peer, 1, at.amqp.BasicCancel("reader", True))


@ENDINGS.rule(
    "basic.cancel.client",
    "the client's basic.cancel comes to the broker, and its answer back",
    section="1.8.3.5",
)
async def _(at: ProxyTalk) -> str:
    channel, tag = await at.consuming()
    await channel.say(at.amqp.BasicCancel("reader"))
    await at.hears("basic.cancel", consumer_tag=tag)
    await channel.answer(at.amqp.BasicCancelOk(tag))
    return await at.returns(channel.peer, 1, at.amqp.BasicCancelOk("reader"))


@ENDINGS.rule(
    "connection.close.client",
    "the client's connection.close comes to the broker, or what ends its channels there",
    section="1.4.2.9",
    obeys=("as it was", "its channel ends"),
)
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    close = at.amqp.ConnectionClose(200, f"{at.name()} ä", 0, 0)
    await channel.peer.say(0, close)
    await channel.peer.expect(at.amqp.ConnectionCloseOk)
    await channel.peer.aclose()
    said = await at.gone(channel)
    return "as it was" if any(at.came(one, close) for one in at.inner.noted) else said


@ENDINGS.rule(
    "connection.close.broker",
    "the broker's connection.close comes to the client as it was",
    section="1.4.2.9",
)
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    close = at.amqp.ConnectionClose(320, f"CONNECTION_FORCED - {at.name()} ä", 0, 0)
    await channel.end.say(0, close)
    return await at.returns(channel.peer, 0, close)


@ENDINGS.rule(
    "connection.blocked",
    "connection.blocked, its reason, and unblocked come to a client that publishes",
    section="connection.blocked",
    versions=OF_RABBITMQ,
)
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    publish = at.amqp.BasicPublish(routing_key=at.name())
    await channel.peer.send(*channel.peer.content(1, publish, b"m"))
    await at.hears("basic.publish", routing_key=publish.routing_key)
    blocked = at.amqp.ConnectionBlocked(f"low on {at.name()} ä")
    await channel.end.say(0, blocked)
    said = await at.returns(channel.peer, 0, blocked)
    await channel.end.say(0, at.amqp.ConnectionUnblocked())
    back = await at.returns(channel.peer, 0, at.amqp.ConnectionUnblocked())
    return said if said != "as it was" else back


@ENDINGS.rule(
    "connection.gone.client",
    "the broker hears that a client has gone without a word",
    section="2.2.4",
    obeys=("the connection ends", "its channel ends"),
)
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    await channel.peer.aclose()
    return await at.gone(channel)


@ENDINGS.rule(
    "connection.gone.broker",
    "the client hears that the broker has gone without a word",
    section="2.2.4",
    obeys=("hangs up", "connection.close *", "channel.close *"),
)
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    channel.end.outbox.end()
    return await channel.peer.outcome()


@ENDINGS.rule(
    "connection.update-secret",
    "connection.update-secret comes to the broker, and its answer back",
    section="connection.update-secret",
    versions=OF_RABBITMQ,
    obeys=("as it was", "connection.update-secret-ok"),
)
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    said = at.amqp.ConnectionUpdateSecret(at.name().encode(), "a reason")
    await channel.peer.say(0, said)

    def found() -> bool | None:
        return any(at.came(one, said) for one in at.inner.noted) or None

    outcome = await at.either(channel, found, "as it was")
    if outcome == "as it was":
        noted = await at.hears("connection.update-secret")
        await noted.end.say(0, at.amqp.ConnectionUpdateSecretOk())
        return await at.returns(channel.peer, 0, at.amqp.ConnectionUpdateSecretOk())
    return outcome


@ENDINGS.rule(
    "heartbeats.client",
    "a client hears something in time, where the broker has nothing to say",
    section="4.2.7",
    obeys="in time",
)
async def _(at: ProxyTalk) -> str:
    at.inner.script.heartbeat = 1
    peer = await at.talk.connected(heartbeat=1)
    gap = 0.0
    for _ in range(3):
        began = trio.current_time()
        if not await at.talk.raw(peer, 1, seconds=3):
            return "3 s of silence, with a heartbeat every second"
        gap = max(gap, trio.current_time() - began)
        # The rest of the frame.
        await at.talk.raw(peer, 7, seconds=1)
    return "in time" if gap <= 2.5 else f"{gap:.1f} s of silence, with a heartbeat every second"


@ENDINGS.rule(
    "heartbeats.broker",
    "the broker hears something in time, where the client has nothing to say",
    section="4.2.7",
    obeys="in time",
)
async def _(at: ProxyTalk) -> str:
    at.inner.script.heartbeat = 1
    channel = await at.channel(await at.talk.connected(heartbeat=1))
    agreed = channel.end.tune_ok.heartbeat if channel.end.tune_ok is not None else 0
    if not agreed:
        return "in time"
    channel.end.silence = 0
    for _ in range(7):
        await channel.peer.send(b"\x08\0\0\0\0\0\0\xce")
        await at.talk.pause(0.5)
    silence = max(channel.end.silence, trio.current_time() - channel.end.heard_at)
    is_kept = silence <= 2 * agreed + 0.5
    return "in time" if is_kept else f"{silence:.1f} s of silence, with a heartbeat every {agreed} s"
