"""Prefetch, acknowledgements, rejects and recovery (AMQP 0-9-1, section 1.8.3)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import CaseSection
from amqpgate.conformance.peer import TestedPeer
from amqpgate.conformance.talk import Talk, saying

SETTLEMENT: Final = CaseSection("settlement", "Prefetch and acknowledgements", Talk)

_ACK: Final = "1.8.3.13"


async def _delivered(talk: Talk, count: int, *, prefetch: int = 0) -> tuple[TestedPeer, str]:
    """A channel whose consumer has so many messages, unacknowledged; and the queue."""
    peer = await talk.channel()
    name = await talk.queue(peer)
    await peer.say(1, talk.amqp.BasicQos(prefetch_count=prefetch))
    await peer.expect(talk.amqp.BasicQosOk, 1)
    await talk.consume(peer, name, consumer_tag="t")
    for number in range(count):
        await talk.publish(peer, name, str(number).encode())
    return peer, name


async def _left(talk: Talk, peer: TestedPeer, name: str) -> str:
    """What is in the queue when the channel is closed."""
    await peer.say(1, talk.amqp.ChannelClose(reply_code=200, reply_text="bye"))
    while (said := await peer.outcome()) == "basic.deliver":
        await peer.frame()
        await peer.frame()
    if said != "channel.close-ok":
        return said
    await talk.channel(peer)
    bodies = []
    while (found := await talk.get(peer, name)) is not None:
        bodies.append(found.body.decode() + ("*" if found.method.redelivered else ""))
    return " ".join(bodies) or "nothing"


# -- prefetch ------------------------------------------------------------------------------------------------


@SETTLEMENT.rule(
    "basic.qos.prefetch-count.limit",
    "no more are delivered than the prefetch count says",
    section="1.8.3.1",
    obeys="2",
)
async def _(talk: Talk) -> str:
    peer, _ = await _delivered(talk, 5, prefetch=2)
    for _ in range(2):
        await peer.message(1, talk.amqp.BasicDeliver)
    said = await peer.goes_on(1)
    return "2" if said == "goes on" else said


@SETTLEMENT.rule(
    "basic.qos.prefetch-count.ack",
    "an acknowledgement lets the next one come",
    section="1.8.3.1",
    obeys="2",
)
async def _(talk: Talk) -> str:
    peer, _ = await _delivered(talk, 3, prefetch=2)
    for _ in range(2):
        await peer.message(1, talk.amqp.BasicDeliver)
    await peer.say(1, talk.amqp.BasicAck(delivery_tag=1))
    return (await peer.message(1, talk.amqp.BasicDeliver)).body.decode()


@SETTLEMENT.rule(
    "basic.qos.prefetch-count.ignored-option",
    "consumers without acknowledgements have no limit",
    section="1.8.3.1.2",
    obeys="all",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await peer.say(1, talk.amqp.BasicQos(prefetch_count=1))
    await peer.expect(talk.amqp.BasicQosOk, 1)
    await talk.consume(peer, name, no_ack=True)
    for _ in range(5):
        await talk.publish(peer, name)
    for _ in range(5):
        await peer.message(1, talk.amqp.BasicDeliver)
    return "all"


@SETTLEMENT.rule(
    "basic.qos.prefetch-size.zero", "a prefetch size of 0 is taken", section="1.8.3.1.1", obeys="basic.qos-ok"
)
async def _(talk: Talk) -> str:
    return await saying(lambda talk: talk.amqp.BasicQos(prefetch_size=0, prefetch_count=5))(talk)


SETTLEMENT.rule(
    "basic.qos.prefetch-size.taken",
    "a prefetch size is taken",
    section="1.8.3.1.1",
    obeys="basic.qos-ok",
    rabbitmq="connection.close 540",
)(saying(lambda talk: talk.amqp.BasicQos(prefetch_size=10_000)))


@SETTLEMENT.rule(
    "basic.qos.global",
    "with global the limit is for more than one consumer",
    section="1.8.3.1.3",
    obeys="2",
    # Since 4.3 it is for each consumer.
    rabbitmq="basic.deliver",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await peer.say(1, talk.amqp.BasicQos(prefetch_count=2, global_=True))
    await peer.expect(talk.amqp.BasicQosOk, 1)
    for _ in range(2):
        await talk.consume(peer, name)
    for _ in range(6):
        await talk.publish(peer, name)
    for _ in range(2):
        await peer.message(1, talk.amqp.BasicDeliver)
    said = await peer.goes_on(1)
    return "2" if said == "goes on" else said


# -- ack -----------------------------------------------------------------------------------------------------


@SETTLEMENT.rule("basic.ack.one", "an acknowledged message is gone", section=_ACK, obeys="0[*] 2[*]")
async def _(talk: Talk) -> str:
    peer, name = await _delivered(talk, 3)
    for _ in range(3):
        await peer.message(1, talk.amqp.BasicDeliver)
    await peer.say(1, talk.amqp.BasicAck(delivery_tag=2))
    return await _left(talk, peer, name)


@SETTLEMENT.rule("basic.ack.multiple", "multiple acknowledges all up to the tag", section=_ACK, obeys="2[*]")
async def _(talk: Talk) -> str:
    peer, name = await _delivered(talk, 3)
    for _ in range(3):
        await peer.message(1, talk.amqp.BasicDeliver)
    await peer.say(1, talk.amqp.BasicAck(delivery_tag=2, multiple=True))
    return await _left(talk, peer, name)


@SETTLEMENT.rule(
    "basic.ack.delivery-tag.zero", "multiple with tag 0 acknowledges all", section=_ACK, obeys="nothing"
)
async def _(talk: Talk) -> str:
    peer, name = await _delivered(talk, 3)
    for _ in range(3):
        await peer.message(1, talk.amqp.BasicDeliver)
    await peer.say(1, talk.amqp.BasicAck(delivery_tag=0, multiple=True))
    return await _left(talk, peer, name)


async def _settled(talk: Talk, *tags: int, method: str = "BasicAck", **flags: bool) -> str:
    peer, _ = await _delivered(talk, 1)
    await peer.message(1, talk.amqp.BasicDeliver)
    for tag in tags:
        await peer.say(1, getattr(talk.amqp, method)(delivery_tag=tag, **flags))
    return await peer.goes_on(1)


@SETTLEMENT.rule(
    "basic.ack.delivery-tag.unknown",
    "a tag that was never delivered closes the channel with 406",
    section=_ACK,
    obeys="channel.close 406",
)
async def _(talk: Talk) -> str:
    return await _settled(talk, 99)


@SETTLEMENT.rule(
    "basic.ack.delivery-tag.again",
    "a tag that was acknowledged before closes the channel with 406",
    section=_ACK,
    obeys="channel.close 406",
)
async def _(talk: Talk) -> str:
    return await _settled(talk, 1, 1)


@SETTLEMENT.rule(
    "basic.ack.delivery-tag.zero-alone",
    "tag 0 without multiple closes the channel with 406",
    section=_ACK,
    strength="should",
    obeys="channel.close 406",
)
async def _(talk: Talk) -> str:
    return await _settled(talk, 0)


@SETTLEMENT.rule(
    "basic.ack.delivery-tag.channel-local",
    "tags belong to their channel",
    section="1.1 (delivery-tag)",
    obeys="channel.close 406",
)
async def _(talk: Talk) -> str:
    peer, _ = await _delivered(talk, 1)
    await peer.message(1, talk.amqp.BasicDeliver)
    await talk.channel(peer, 2)
    await peer.say(2, talk.amqp.BasicAck(delivery_tag=1))
    return await peer.goes_on(2)


@SETTLEMENT.rule(
    "basic.ack.unacknowledged",
    "what is not acknowledged comes again when its channel closes, and says so",
    section=_ACK,
    obeys="0[*] 1[*] 2[*]",
)
async def _(talk: Talk) -> str:
    peer, name = await _delivered(talk, 3)
    for _ in range(3):
        await peer.message(1, talk.amqp.BasicDeliver)
    return await _left(talk, peer, name)


# -- reject --------------------------------------------------------------------------------------------------


@SETTLEMENT.rule("basic.reject.drop", "a rejected message is gone", section="1.8.3.14", obeys="nothing")
async def _(talk: Talk) -> str:
    peer, name = await _delivered(talk, 1)
    await peer.message(1, talk.amqp.BasicDeliver)
    await peer.say(1, talk.amqp.BasicReject(delivery_tag=1, requeue=False))
    return await _left(talk, peer, name)


@SETTLEMENT.rule(
    "basic.reject.requeue",
    "a message that is rejected with requeue is delivered again, and says so",
    section="1.8.3.14",
    obeys="again",
)
async def _(talk: Talk) -> str:
    peer, _ = await _delivered(talk, 1)
    await peer.message(1, talk.amqp.BasicDeliver)
    await peer.say(1, talk.amqp.BasicReject(delivery_tag=1, requeue=True))
    said = await peer.message(1, talk.amqp.BasicDeliver)
    return "again" if said.method.redelivered else "as new"


@SETTLEMENT.rule(
    "basic.reject.delivery-tag.unknown",
    "rejecting a tag that was never delivered closes the channel with 406",
    section="1.8.3.14",
    obeys="channel.close 406",
)
async def _(talk: Talk) -> str:
    return await _settled(talk, 99, method="BasicReject")


@SETTLEMENT.rule(
    "basic.reject.order",
    "a message that is given back keeps its place",
    section="4.7",
    strength="should",
    obeys="0[*] 1",
)
async def _(talk: Talk) -> str:
    peer, name = await _delivered(talk, 2, prefetch=1)
    await peer.message(1, talk.amqp.BasicDeliver)
    await peer.say(1, talk.amqp.BasicCancel(consumer_tag="t"))
    await peer.expect(talk.amqp.BasicCancelOk, 1)
    await peer.say(1, talk.amqp.BasicReject(delivery_tag=1, requeue=True))
    return await _left(talk, peer, name)


# -- recover -------------------------------------------------------------------------------------------------


@SETTLEMENT.rule(
    "basic.recover.requeue",
    "recover with requeue has all that is not acknowledged delivered again",
    section="1.8.3.16",
    versions=("0-9-1",),
    obeys="again",
)
async def _(talk: Talk) -> str:
    peer, _ = await _delivered(talk, 1)
    await peer.message(1, talk.amqp.BasicDeliver)
    await peer.say(1, talk.amqp.BasicRecover(requeue=True))
    await peer.expect(talk.amqp.BasicRecoverOk, 1)
    said = await peer.message(1, talk.amqp.BasicDeliver)
    return "again" if said.method.redelivered else "as new"


SETTLEMENT.rule(
    "basic.recover.keep",
    "recover without requeue delivers to the same consumer again",
    section="1.8.3.16",
    versions=("0-9-1",),
    obeys="basic.recover-ok",
    rabbitmq="connection.close 540",
)(saying(lambda talk: talk.amqp.BasicRecover(requeue=False)))


@SETTLEMENT.rule(
    "basic.recover-async",
    "recover-async has no answer",
    section="1.8.3.15",
    versions=("0-9-1",),
    obeys="goes on",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await peer.say(1, talk.amqp.BasicRecoverAsync(requeue=True))
    return await peer.goes_on(1)
