"""Messages in both directions: properties, bodies, order, and what was never whole."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.peer import BODY, HEADER, frame
from amqpgate.conformance.proxy.between import ProbedChannel, ProxySection, ProxyTalk
from amqpgate.conformance.proxy.inner import Noted
from amqpgate.conformance.versions import OF_RABBITMQ
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.method import Properties

CONTENTS: Final = ProxySection("proxy.contents", "Messages")

_LARGE: Final = bytes(range(256)) * 1200


def _full(at: ProxyTalk) -> Properties:
    """All that there are; what 0-8 and 0-9 call cluster-id is reserved in 0-9-1."""
    names = at.amqp.BasicProperties.__match_args__
    said = {
        "content_type": "text/plain; ä",
        "content_encoding": "x-probe",
        "headers": at.types,
        "delivery_mode": 2,
        "priority": 255,
        "correlation_id": "",
        "reply_to": "r" * 255,
        "expiration": "60000",
        "message_id": "m",
        "timestamp": 2**63,
        "type": "t",
        "user_id": "guest",
        "app_id": "a",
        names[-1]: "c",
    }
    made: Properties = at.amqp.BasicProperties(**said)
    return made


async def _published(
    at: ProxyTalk, channel: ProbedChannel, body: bytes, properties: Properties | None = None
) -> Noted:
    publish = at.amqp.BasicPublish(exchange="", routing_key=at.name())
    await channel.peer.send(*channel.peer.content(channel.number, publish, body, properties))
    return await at.hears("basic.publish", routing_key=publish.routing_key)


@CONTENTS.rule("publish.method", "basic.publish passes byte for byte", section="1.8.3.7")
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    publish = at.amqp.BasicPublish(exchange="x" * 255, routing_key=f"{at.name()}ä", mandatory=True)
    await channel.peer.send(*channel.peer.content(channel.number, publish, b"m"))
    noted = await at.hears("basic.publish", routing_key=publish.routing_key)
    return "as it was" if at.came(noted, publish) else "other bytes"


@CONTENTS.rule(
    "publish.properties", "all properties of a publish pass, with headers of all types", section="4.2.6.1"
)
async def _(at: ProxyTalk) -> str:
    noted = await _published(at, await at.channel(), b"m", _full(at))
    wanted = encode_header(ContentHeader(60, 1, _full(at)), at.talk.version.dialect)
    return "as it was" if noted.header == wanted else "another header"


@CONTENTS.rule("publish.body.large", "a body in several frames passes", section="4.2.6.2")
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    publish = at.amqp.BasicPublish(exchange="", routing_key=at.name())
    head = channel.peer.content(channel.number, publish, _LARGE)[:2]
    parts = [_LARGE[start : start + 4000] for start in range(0, len(_LARGE), 4000)]
    await channel.peer.send(*head, *(frame(BODY, channel.number, part) for part in parts))
    noted = await at.hears("basic.publish", routing_key=publish.routing_key)
    return "as it was" if noted.body == _LARGE else f"{len(noted.body)} other bytes"


@CONTENTS.rule("publish.body.empty", "a body of no bytes passes", section="4.2.6.2")
async def _(at: ProxyTalk) -> str:
    noted = await _published(at, await at.channel(), b"")
    return "as it was" if noted.body == b"" else "a body"


@CONTENTS.rule(
    "publish.body.bytes", "a body in frames of one byte, in segments of one byte, passes", section="4.2.6.2"
)
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    publish = at.amqp.BasicPublish(exchange="", routing_key=at.name())
    head = channel.peer.content(channel.number, publish, b"body")[:2]
    for one in b"".join((*head, *(frame(BODY, channel.number, bytes([letter])) for letter in b"body"))):
        await channel.peer.send(bytes([one]))
    noted = await at.hears("basic.publish", routing_key=publish.routing_key)
    return "as it was" if noted.body == b"body" else f"{noted.body!r}"


@CONTENTS.rule("publish.order", "a channel's publishes come in their order", section="4.7", obeys="in order")
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    publish = at.amqp.BasicPublish(exchange="", routing_key=at.name())
    for number in range(500):
        await channel.peer.send(*channel.peer.content(channel.number, publish, str(number).encode()))
    found = [await at.hears("basic.publish", routing_key=publish.routing_key) for _ in range(500)]
    return "in order" if [int(one.body) for one in found] == list(range(500)) else "in another order"


@CONTENTS.rule(
    "publish.interleaved",
    "messages of two channels whose frames lie between each other's come whole, on two channels",
    section="4.2.6",
    obeys="both whole",
)
async def _(at: ProxyTalk) -> str:
    first = await at.channel()
    await at.channel(first.peer, 2)
    names = at.name(), at.name()
    parts = [
        first.peer.content(number, at.amqp.BasicPublish(routing_key=name), str(number).encode() * 50)
        for number, name in enumerate(names, 1)
    ]
    await first.peer.send(*(one for pair in zip(*parts, strict=True) for one in pair))
    one, two = [await at.hears("basic.publish", routing_key=name) for name in names]
    is_whole = (one.body, two.body) == (b"1" * 50, b"2" * 50)
    return "both whole" if is_whole and one.channel != two.channel else "mixed"


@CONTENTS.rule(
    "publish.half",
    "half a message of a client that has gone never becomes a whole one",
    section="4.2.6",
    obeys="never whole",
)
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    publish = at.amqp.BasicPublish(exchange="", routing_key=at.name())
    head = channel.peer.content(channel.number, publish, b"x" * 100)[:2]
    await channel.peer.send(*head, frame(BODY, channel.number, b"x" * 50))
    await channel.peer.aclose()
    # Either the broker's end is over, or the channel is.
    await at.gone(channel)
    wanted = [one for one in at.inner.noted if getattr(one.method, "routing_key", "") == publish.routing_key]
    found = [one for one in wanted if one.is_whole]
    return "whole" if found else "never whole"


@CONTENTS.rule(
    "deliver",
    "a delivery passes: its exchange, key, mark, all properties, and its body",
    section="1.8.3.9",
)
async def _(at: ProxyTalk) -> str:
    channel, tag = await at.consuming()
    deliver = at.amqp.BasicDeliver(tag, 1, True, "x" * 255, "kä")
    await channel.end.send(*channel.end.content(channel.inner_number, deliver, _full(at), _LARGE))
    found = await channel.peer.message(channel.number, at.amqp.BasicDeliver)
    method = found.method
    is_same = (method.consumer_tag, method.redelivered, method.exchange, method.routing_key) == (
        "reader",
        True,
        "x" * 255,
        "kä",
    )
    if not is_same:
        return "another method"
    return "as it was" if (found.properties, found.body) == (_full(at), _LARGE) else "another content"


@CONTENTS.rule(
    "deliver.half",
    "half a message of a broker that has gone never becomes a whole one",
    section="4.2.6",
    obeys=("hangs up", "connection.close *", "channel.close *"),
)
async def _(at: ProxyTalk) -> str:
    channel, tag = await at.consuming()
    frames = channel.end.content(channel.inner_number, at.amqp.BasicDeliver(tag, 1), _full(at), b"x" * 100)
    half = frame(BODY, channel.inner_number, b"x" * 50)
    await channel.end.send(*frames[:2], half)
    channel.end.outbox.end()
    size = 0
    while (found := await channel.peer.frame()) is not None:
        if found.type == BODY:
            size += len(found.payload)
        elif found.type != HEADER and not found.payload.startswith(b"\0\x3c\0\x3c"):
            return await channel.peer.told(found.channel, channel.peer.decoded(found))
        if size >= 100:
            return "whole"
    return "hangs up"


@CONTENTS.rule(
    "deliver.frame-max",
    "no frame of a delivery is larger than the client has agreed to",
    section="4.2.3",
    obeys="within",
)
async def _(at: ProxyTalk) -> str:
    peer = await at.talk.connected(frame_max=4096)
    channel = await at.channel(peer)
    queue = at.name()
    channel = await at.asks(channel, at.amqp.BasicGet(queue=queue), queue=queue)
    got = at.amqp.BasicGetOk(1, False, "", "k", 0)
    await channel.end.send(*channel.end.content(channel.inner_number, got, _full(at), _LARGE))
    largest, size = 0, 0
    while size < len(_LARGE):
        found = await peer.frame()
        if found is None:
            return "hangs up"
        largest = max(largest, len(found.payload) + 8)
        size += len(found.payload) if found.type == BODY else 0
    return "within" if largest <= 4096 else f"a frame of {largest} bytes"


@CONTENTS.rule(
    "publish.frame-max",
    "no frame of a publish is larger than was agreed with the broker",
    section="4.2.3",
    obeys="within",
)
async def _(at: ProxyTalk) -> str:
    at.inner.script.frame_max = 4096
    peer, tune = await at.talk.tuned()
    await at.talk.open(peer, tune)
    await peer.expect(at.amqp.ConnectionOpenOk)
    channel = await at.channel(peer)
    publish = at.amqp.BasicPublish(exchange="", routing_key=at.name())
    head = peer.content(1, publish, _LARGE)[:2]
    room = (tune.frame_max or 131072) - 8
    bodies = [frame(BODY, 1, _LARGE[start : start + room]) for start in range(0, len(_LARGE), room)]
    await peer.send(*head, *bodies)
    noted = await at.hears("basic.publish", routing_key=publish.routing_key)
    if noted.body != _LARGE:
        return "another body"
    return "within" if channel.end.largest <= 4096 else f"a frame of {channel.end.largest} bytes"


@CONTENTS.rule("get", "an answer to basic.get passes, and that there is none", section="1.8.3.11")
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    queue = at.name()
    channel = await at.asks(channel, at.amqp.BasicGet(queue=queue, no_ack=True), queue=queue)
    await channel.answer(at.amqp.BasicGetEmpty())
    await channel.peer.expect(at.amqp.BasicGetEmpty, 1)
    channel = await at.asks(channel, at.amqp.BasicGet(queue=queue, no_ack=True), queue=queue)
    got = at.amqp.BasicGetOk(2**40, True, "e", "k", 4_000_000_000)
    await channel.end.send(*channel.end.content(channel.inner_number, got, _full(at), b"m"))
    found = await channel.peer.message(1, at.amqp.BasicGetOk)
    return "as it was" if (found.method, found.properties, found.body) == (got, _full(at), b"m") else "other"


@CONTENTS.rule(
    "return",
    "a return passes with its content, before the confirm of its publish",
    section="1.8.3.8",
)
async def _(at: ProxyTalk) -> str:
    has_confirms = at.talk.version.name in OF_RABBITMQ
    channel = await (at.confirming() if has_confirms else at.channel())
    noted = await _published(at, channel, b"lost")
    returned = at.amqp.BasicReturn(312, "NO_ROUTE ä", "e", "k")
    content = noted.end.content(noted.channel, returned, _full(at), b"lost")
    await noted.end.send(*content)
    if has_confirms:
        await channel.answer(at.amqp.BasicAck(1))
    found = await channel.peer.message(1, at.amqp.BasicReturn)
    if has_confirms:
        await channel.peer.expect(at.amqp.BasicAck, 1)
    is_same = (found.method, found.properties, found.body) == (returned, _full(at), b"lost")
    return "as it was" if is_same else "other"


@CONTENTS.rule(
    "confirms",
    "confirms pass with their numbers, in the broker's order, multiple and refused ones, too",
    section="confirm",
    versions=OF_RABBITMQ,
)
async def _(at: ProxyTalk) -> str:
    channel = await at.confirming()
    for _ in range(5):
        await _published(at, channel, b"m")
    said = [at.amqp.BasicAck(3, False), at.amqp.BasicNack(2, True, False), at.amqp.BasicAck(5, True)]
    await channel.answer(*said)
    found = [await channel.peer.method(1) for _ in said]
    return "as it was" if found == said else f"{found}"


@CONTENTS.rule(
    "settlements",
    "ack, nack and reject come to the broker, each for what the client means",
    section="1.8.3.13",
    versions=OF_RABBITMQ,
)
async def _(at: ProxyTalk) -> str:
    channel, tag = await at.consuming()
    tags = []
    for number in range(1, 6):
        deliver = at.amqp.BasicDeliver(tag, number, False, "", "k")
        await channel.end.send(*channel.end.content(channel.inner_number, deliver, _full(at), b"m"))
        tags.append((await channel.peer.message(1, at.amqp.BasicDeliver)).method.delivery_tag)
    await channel.say(
        at.amqp.BasicAck(tags[1], True),
        at.amqp.BasicReject(tags[2], True),
        at.amqp.BasicNack(tags[4], True, False),
    )
    said = [await at.hears(f"basic.{name}") for name in ("ack", "reject", "nack")]
    wanted = [at.amqp.BasicAck(2, True), at.amqp.BasicReject(3, True), at.amqp.BasicNack(5, True, False)]
    return "as it was" if [one.method for one in said] == wanted else f"{[one.method for one in said]}"
