"""Publisher confirms, as RabbitMQ has added them (its documents: "Publisher Confirms")."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import CaseSection
from amqpgate.conformance.endings import Untestable
from amqpgate.conformance.peer import TestedPeer
from amqpgate.conformance.talk import Talk, method, saying
from amqpgate.wire.tables import Table

CONFIRM: Final = CaseSection("confirm", "Publisher confirms", Talk)

_SECTION: Final = "publisher_confirms"


async def has(talk: Talk, capability: str) -> None:
    """Raises `Untestable` if the peer does not offer this."""
    peer = await talk.dial()
    await peer.send(talk.version.header)
    start = await peer.expect(talk.amqp.ConnectionStart)
    offered = start.server_properties.get("capabilities")
    if not (isinstance(offered, dict) and offered.get(capability)):
        raise Untestable(f"{capability} is not among its capabilities")


async def _confirmed(talk: Talk) -> tuple[TestedPeer, str]:
    await has(talk, "publisher_confirms")
    peer = await talk.channel()
    name = await talk.queue(peer)
    await peer.say(1, talk.amqp.ConfirmSelect())
    await peer.expect(talk.amqp.ConfirmSelectOk, 1)
    return peer, name


async def _acked(talk: Talk, peer: TestedPeer, count: int) -> list[int]:
    """Tags in the order of their confirms; of several at once each."""
    done: list[int] = []
    while len(done) < count:
        said = await peer.expect(talk.amqp.BasicAck, 1)
        first = max(done, default=0) + 1 if said.multiple else said.delivery_tag
        done += [tag for tag in range(first, said.delivery_tag + 1) if tag not in done]
    return done


CONFIRM.rule(
    "confirm.select.no-wait",
    "with no-wait there is no answer",
    section=_SECTION,
    versions=("0-9-1",),
    obeys="goes on",
)(lambda talk: _no_wait(talk))


async def _no_wait(talk: Talk) -> str:
    await has(talk, "publisher_confirms")
    peer = await talk.channel()
    await peer.say(1, talk.amqp.ConfirmSelect(no_wait=True))
    return await peer.goes_on(1)


@CONFIRM.rule(
    "confirm.ack.each",
    "each message is confirmed once, numbered from 1",
    section=_SECTION,
    versions=("0-9-1",),
    obeys="1 to 50",
)
async def _(talk: Talk) -> str:
    peer, name = await _confirmed(talk)
    for _ in range(50):
        await talk.publish(peer, name)
    done = sorted(await _acked(talk, peer, 50))
    return "1 to 50" if done == list(range(1, 51)) else f"{done}"


@CONFIRM.rule(
    "confirm.ack.unroutable",
    "a message that goes nowhere is confirmed",
    section=_SECTION,
    versions=("0-9-1",),
    obeys="basic.ack",
)
async def _(talk: Talk) -> str:
    peer, _ = await _confirmed(talk)
    await talk.publish(peer, talk.name())
    return await peer.outcome()


@CONFIRM.rule(
    "confirm.return-first",
    "a message that comes back does so before it is confirmed",
    section=_SECTION,
    versions=("0-9-1",),
    obeys="basic.return, basic.ack",
)
async def _(talk: Talk) -> str:
    peer, _ = await _confirmed(talk)
    await talk.publish(peer, talk.name(), mandatory=True)
    returned = await peer.message(1, talk.amqp.BasicReturn)
    return f"{returned.method.NAME}, {await peer.outcome()}"


@CONFIRM.rule(
    "confirm.nack.overflow",
    "a message that a full queue refuses is told by basic.nack",
    section=_SECTION,
    versions=("0-9-1",),
    obeys="basic.ack, basic.nack",
)
async def _(talk: Talk) -> str:
    await has(talk, "publisher_confirms")
    peer = await talk.channel()
    arguments = Table.of({"x-max-length": 1, "x-overflow": "reject-publish"})
    name = await talk.queue(peer, arguments=arguments)
    await peer.say(1, talk.amqp.ConfirmSelect())
    await peer.expect(talk.amqp.ConfirmSelectOk, 1)
    said = []
    for _ in range(2):
        await talk.publish(peer, name)
        said.append(await peer.outcome())
    return ", ".join(said)


@CONFIRM.rule(
    "confirm.exchange-missing",
    "a publish to an exchange that is not there closes the channel, and is not confirmed",
    section=_SECTION,
    versions=("0-9-1",),
    obeys="channel.close 404",
)
async def _(talk: Talk) -> str:
    peer, _ = await _confirmed(talk)
    await talk.publish(peer, "k", exchange=talk.name())
    return await peer.outcome()


@CONFIRM.rule(
    "confirm.counts-anew",
    "a channel that is opened again counts from 1",
    section=_SECTION,
    versions=("0-9-1",),
    obeys="1",
)
async def _(talk: Talk) -> str:
    peer, name = await _confirmed(talk)
    for _ in range(3):
        await talk.publish(peer, name)
    await _acked(talk, peer, 3)
    await peer.say(1, talk.amqp.ChannelClose(reply_code=200, reply_text="bye"))
    await peer.expect(talk.amqp.ChannelCloseOk, 1)
    await talk.channel(peer)
    await peer.say(1, talk.amqp.ConfirmSelect())
    await peer.expect(talk.amqp.ConfirmSelectOk, 1)
    await talk.publish(peer, name)
    return str((await _acked(talk, peer, 1))[0])


for _first, _second in (("ConfirmSelect", "TxSelect"), ("TxSelect", "ConfirmSelect")):
    CONFIRM.rule(
        f"confirm.exclusive.{_first.lower()}",
        f"{_second} behind {_first} is refused: a channel has one of both",
        section=_SECTION,
        versions=("0-9-1",),
        obeys="channel.close 406",
    )(saying(method(_first), method(_second)))
