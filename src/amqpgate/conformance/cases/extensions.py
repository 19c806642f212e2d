"""What RabbitMQ has added to 0-9-1, where a peer has it (its documents: "Protocol Extensions")."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import CaseSection
from amqpgate.conformance.cases.confirm import has
from amqpgate.conformance.talk import Talk, method, saying
from amqpgate.wire.tables import Table

EXTENSIONS: Final = CaseSection("extensions", "RabbitMQ's extensions", Talk)

_ONLY: Final = ("0-9-1",)


# -- basic.nack ----------------------------------------------------------------------------------------------


async def _nacked(talk: Talk, tag: int, *, multiple: bool, requeue: bool) -> str:
    """Three messages got, this said of them; how many are in the queue then."""
    await has(talk, "basic.nack")
    peer = await talk.channel()
    name = await talk.queue(peer)
    for _ in range(3):
        await talk.publish(peer, name)
    await peer.goes_on(1)
    for _ in range(3):
        await talk.get(peer, name, no_ack=False)
    await peer.say(1, talk.amqp.BasicNack(delivery_tag=tag, multiple=multiple, requeue=requeue))
    said = await peer.goes_on(1)
    return f"{await talk.count(peer, name)} left" if said == "goes on" else said


for _id, _title, _tag, _multiple, _requeue, _obeys in (
    ("requeue", "gives one message back", 2, False, True, "1 left"),
    ("multiple", "with multiple gives all up to the tag back", 2, True, True, "2 left"),
    ("all", "with multiple and tag 0 gives all back", 0, True, True, "3 left"),
    ("drop", "without requeue drops", 2, True, False, "0 left"),
    (
        "unknown",
        "of a tag that was never delivered closes the channel with 406",
        9,
        False,
        True,
        "channel.close 406",
    ),
):

    @EXTENSIONS.rule(
        f"basic.nack.{_id}", f"nack {_title}", section="basic.nack", versions=_ONLY, obeys=_obeys
    )
    async def _(talk: Talk, tag: int = _tag, multiple: bool = _multiple, requeue: bool = _requeue) -> str:
        return await _nacked(talk, tag, multiple=multiple, requeue=requeue)


# -- exchange to exchange ------------------------------------------------------------------------------------


@EXTENSIONS.rule(
    "exchange.bind.routes",
    "an exchange that is bound to another gets its messages",
    section="exchange.bind",
    versions=_ONLY,
    obeys="1, then 0",
)
async def _(talk: Talk) -> str:
    await has(talk, "exchange_exchange_bindings")
    peer = await talk.channel()
    amqp = talk.amqp
    source, target = await talk.exchange(peer), await talk.exchange(peer, "fanout")
    name = await talk.queue(peer)
    await talk.bind(peer, name, target)
    counts = []
    for asked, answer in (
        (amqp.ExchangeBind, amqp.ExchangeBindOk),
        (amqp.ExchangeUnbind, amqp.ExchangeUnbindOk),
    ):
        await peer.say(1, asked(destination=target, source=source, routing_key="k"))
        await peer.expect(answer, 1)
        await talk.publish(peer, "k", exchange=source)
        counts.append(str(await talk.count(peer, name)))
        await talk.get(peer, name)
    return ", then ".join(counts)


EXTENSIONS.rule(
    "exchange.bind.exists",
    "an exchange that is not there cannot be bound: 404",
    section="exchange.bind",
    versions=_ONLY,
    obeys="channel.close 404",
)(saying(lambda talk: talk.amqp.ExchangeBind(destination=talk.name(), source="amq.direct", routing_key="k")))

# -- arguments -----------------------------------------------------------------------------------------------


@EXTENSIONS.rule(
    "queue.declare.x-message-ttl",
    "messages go when their time is over",
    section="ttl",
    versions=_ONLY,
    obeys="0 messages",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer, arguments=Table.of({"x-message-ttl": 1}))
    await talk.publish(peer, name)
    await peer.goes_on(1)
    await talk.pause(0.3)
    return f"{await talk.count(peer, name)} messages"


@EXTENSIONS.rule(
    "basic.publish.expiration",
    "a message's expiration is kept",
    section="ttl",
    versions=_ONLY,
    obeys="nothing",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await talk.publish(peer, name, properties=talk.amqp.BasicProperties(expiration="1"))
    await peer.goes_on(1)
    await talk.pause(0.3)
    return "nothing" if await talk.get(peer, name) is None else "there"


@EXTENSIONS.rule(
    "basic.publish.expiration.malformed",
    "an expiration that is no number closes the channel with 406",
    section="ttl",
    versions=_ONLY,
    obeys="channel.close 406",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await talk.publish(peer, name, properties=talk.amqp.BasicProperties(expiration="soon"))
    return await peer.goes_on(1)


@EXTENSIONS.rule(
    "queue.declare.x-max-length",
    "a queue that is full drops its oldest",
    section="maxlength",
    versions=_ONLY,
    obeys="2 3",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer, arguments=Table.of({"x-max-length": 2}))
    for number in (1, 2, 3):
        await talk.publish(peer, name, str(number).encode())
    await peer.goes_on(1)
    got = [await talk.get(peer, name) for _ in range(2)]
    return " ".join(one.body.decode() for one in got if one is not None)


@EXTENSIONS.rule(
    "queue.declare.x-dead-letter-exchange",
    "what is rejected goes to the dead letter exchange, and says why",
    section="dlx",
    versions=_ONLY,
    obeys="rejected",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    dead = await talk.queue(peer)
    arguments = Table.of({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
    name = await talk.queue(peer, arguments=arguments)
    await talk.publish(peer, name)
    await peer.goes_on(1)
    await talk.get(peer, name, no_ack=False)
    await peer.say(1, talk.amqp.BasicReject(delivery_tag=1, requeue=False))
    found = await talk.arrives(peer, dead)
    headers = None if found is None else getattr(found.properties, "headers", None)
    deaths = headers.to_python().get("x-death") if headers is not None else None
    return str(deaths[0]["reason"]) if isinstance(deaths, list) and deaths else f"{found}"


@EXTENSIONS.rule(
    "exchange.declare.alternate-exchange",
    "what goes nowhere goes to the alternate exchange",
    section="ae",
    versions=_ONLY,
    obeys="1 message",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    other = await talk.exchange(peer, "fanout")
    name = await talk.queue(peer)
    await talk.bind(peer, name, other)
    first = await talk.exchange(peer, arguments=Table.of({"alternate-exchange": other}))
    await talk.publish(peer, "nowhere", exchange=first)
    return f"{await talk.count(peer, name)} message"


@EXTENSIONS.rule(
    "queue.declare.x-expires",
    "a queue that nobody uses goes",
    section="ttl",
    versions=_ONLY,
    obeys="channel.close 404",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer, arguments=Table.of({"x-expires": 100}))
    await talk.pause(0.8)
    await peer.say(1, talk.amqp.QueueDeclare(queue=name, passive=True))
    return await peer.outcome()


@EXTENSIONS.rule(
    "queue.declare.x-max-priority",
    "messages of a higher priority go first",
    section="priority",
    versions=_ONLY,
    obeys="5 3 1",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer, arguments=Table.of({"x-max-priority": 5}))
    for number in (1, 5, 3):
        properties = talk.amqp.BasicProperties(priority=number)
        await talk.publish(peer, name, str(number).encode(), properties=properties)
    await peer.goes_on(1)
    got = [await talk.get(peer, name) for _ in range(3)]
    return " ".join(one.body.decode() for one in got if one is not None)


@EXTENSIONS.rule(
    "basic.consume.x-priority",
    "a consumer of a higher priority gets messages first",
    section="consumer-priority",
    versions=_ONLY,
    obeys="high high",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    for tag, priority in (("low", 1), ("high", 5)):
        await talk.consume(peer, name, consumer_tag=tag, arguments=Table.of({"x-priority": priority}))
    for _ in range(2):
        await talk.publish(peer, name)
    return " ".join([(await peer.message(1, talk.amqp.BasicDeliver)).method.consumer_tag for _ in range(2)])


@EXTENSIONS.rule(
    "basic.publish.cc",
    "CC routes to more keys, and BCC is not shown",
    section="sender-selected",
    versions=_ONLY,
    obeys="3 messages, CC",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    names = [await talk.queue(peer) for _ in range(3)]
    headers = Table.of({"CC": [names[1]], "BCC": [names[2]]})
    await talk.publish(peer, names[0], properties=talk.amqp.BasicProperties(headers=headers))
    got = [found for name in names if (found := await talk.arrives(peer, name)) is not None]
    shown = {one for found in got for one, _ in getattr(found.properties, "headers", None) or ()}
    return f"{len(got)} messages, {' '.join(sorted(shown))}"


@EXTENSIONS.rule(
    "basic.publish.user-id",
    "a user-id of somebody else closes the channel with 406",
    section="validated-user-id",
    versions=_ONLY,
    obeys="channel.close 406",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    properties = talk.amqp.BasicProperties(user_id="somebody-else")
    await talk.publish(peer, talk.name(), properties=properties)
    return await peer.goes_on(1)


@EXTENSIONS.rule(
    "basic.consume.direct-reply-to",
    "answers come to amq.rabbitmq.reply-to",
    section="direct-reply-to",
    versions=_ONLY,
    obeys="answer",
)
async def _(talk: Talk) -> str:
    await has(talk, "direct_reply_to")
    peer = await talk.channel()
    name = await talk.queue(peer)
    await talk.consume(peer, "amq.rabbitmq.reply-to", no_ack=True)
    properties = talk.amqp.BasicProperties(reply_to="amq.rabbitmq.reply-to")
    await talk.publish(peer, name, properties=properties)
    await talk.channel(peer, 2)
    asked = await talk.arrives(peer, name, channel=2)
    await talk.publish(peer, getattr(asked and asked.properties, "reply_to", ""), b"answer", channel=2)
    return (await peer.message(1, talk.amqp.BasicDeliver)).body.decode()


for _argument, _value in (
    ("x-message-ttl", -1),
    ("x-expires", 0),
    ("x-max-length", -1),
    ("x-max-priority", 256),
    ("x-overflow", "no-such-way"),
    ("x-dead-letter-routing-key", "k"),
    ("x-queue-type", "no-such-type"),
):
    EXTENSIONS.rule(
        f"queue.declare.{_argument}.invalid",
        f"{_argument} of {_value!r} closes the channel with 406",
        section="queues",
        versions=_ONLY,
        obeys="channel.close 406",
    )(
        saying(
            method("QueueDeclare", exclusive=True, queue=Talk.name, arguments=Table.of({_argument: _value}))
        )
    )
