"""How a connection ends (AMQP 0-9-1, sections 1.4.2.9 and 2.2.4)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import CaseSection
from amqpgate.conformance.talk import Talk, saying

CONNECTION: Final = CaseSection("connection", "Connections", Talk)


@CONNECTION.rule(
    "connection.close.ok",
    "connection.close is answered with close-ok",
    section="1.4.2.9",
    obeys="connection.close-ok",
)
async def _(talk: Talk) -> str:
    peer = await talk.connected()
    await peer.say(0, talk.amqp.ConnectionClose(reply_code=200, reply_text="bye"))
    return await peer.outcome()


@CONNECTION.rule(
    "connection.close.hangs-up",
    "after close-ok the stream ends",
    section="1.4.2.9",
    obeys="hangs up",
    # It waits for the client to do so.
    rabbitmq="goes on",
)
async def _(talk: Talk) -> str:
    peer = await talk.connected()
    await peer.say(0, talk.amqp.ConnectionClose(reply_code=200, reply_text="bye"))
    await peer.expect(talk.amqp.ConnectionCloseOk)
    return "hangs up" if await talk.ends(peer, seconds=talk.patience) else "goes on"


@CONNECTION.rule(
    "connection.close.channels",
    "connection.close with open channels is answered with close-ok alone",
    section="1.4.2.9",
    obeys="connection.close-ok",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await talk.channel(peer, 2)
    await talk.queue(peer)
    await peer.say(0, talk.amqp.ConnectionClose(reply_code=200, reply_text="bye"))
    return await peer.outcome()


@CONNECTION.rule(
    "connection.close.exclusive-queues",
    "exclusive queues go with their connection",
    section="1.7.2.1.5",
    obeys="channel.close 404",
)
async def _(talk: Talk) -> str:
    first = await talk.channel()
    name = await talk.queue(first)
    await first.say(0, talk.amqp.ConnectionClose(reply_code=200, reply_text="bye"))
    await first.expect(talk.amqp.ConnectionCloseOk)
    again = await talk.channel()
    await again.say(1, talk.amqp.QueueDeclare(queue=name, passive=True))
    return await again.outcome()


@CONNECTION.rule(
    "connection.close.hung-up",
    "who hangs up without a word loses its exclusive queues, too",
    section="1.7.2.1.5",
    obeys="channel.close 404",
)
async def _(talk: Talk) -> str:
    first = await talk.channel()
    name = await talk.queue(first)
    await first.aclose()
    again = await talk.channel()
    for wait in (0.05, 0.1, 0.3, 1):
        await again.say(1, talk.amqp.QueueDeclare(queue=name, passive=True))
        said = await again.outcome()
        if said != "channel.close 405":
            return said
        await talk.pause(wait)
        await talk.channel(again)
    return said


@CONNECTION.rule(
    "connection.close.method",
    "connection.close says which method it is about",
    section="1.4.2.9.3",
    obeys="40, 10",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await peer.say(1, talk.amqp.ExchangeDeclare(exchange=talk.name(), type="no-such-type"))
    said = await peer.method()
    return f"{getattr(said, 'class_id', '?')}, {getattr(said, 'method_id', '?')}"


CONNECTION.rule(
    "connection.close.unasked",
    "close-ok that nobody has asked for ends the connection, or is passed over",
    section="1.4.2.10",
    strength="should",
    obeys=("connection.close 50?", "hangs up", "basic.qos-ok"),
)(saying(lambda talk: talk.amqp.ChannelCloseOk(), lambda talk: talk.amqp.BasicQos()))


@CONNECTION.rule(
    "connection.close.waits",
    "frames between connection.close of the peer and close-ok are passed over",
    section="1.4.2.9",
    obeys="hangs up",
)
async def _(talk: Talk) -> str:
    peer = await talk.connected()
    # The first ends the connection; the rest is on its way meanwhile.
    await peer.send(*(peer.encoded(7, talk.amqp.BasicQos()) for _ in range(5)))
    said = await peer.outcome()
    if not said.startswith("connection.close"):
        return said
    return "hangs up" if await talk.ends(peer, seconds=talk.patience) else "goes on"
