"""Frames: their types, channels, sizes and ends (AMQP 0-9-1, section 4.2.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from amqpgate.conformance.case import CaseSection, Conversation
from amqpgate.conformance.peer import BODY, HEADER, HEARTBEAT, METHOD, frame
from amqpgate.conformance.talk import Talk

FRAMING: Final = CaseSection("framing", "Frames", Talk)

#: What ends a connection for a frame: the standard's 501, or nothing more, as frames cannot be told apart.
_BROKEN: Final = ("connection.close 501", "hangs up")
_SECTION: Final = "4.2.3"
#: A frame-max that every broker takes: RabbitMQ 4 wants as much.
_SMALL: Final = 8192


@FRAMING.rule(
    "framing.end.wrong",
    "a frame without the frame-end byte ends the connection",
    section=_SECTION,
    obeys=_BROKEN,
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    good = talk.amqp.BasicQos().encode(talk.version.dialect)
    await peer.send(frame(METHOD, 1, good, end=0xCD))
    return await peer.outcome()


@FRAMING.rule(
    "framing.end.zero",
    "a frame that ends in a zero byte ends the connection",
    section=_SECTION,
    obeys=_BROKEN,
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await peer.send(frame(BODY, 1, b"x", end=0))
    return await peer.outcome()


def _of_type(kind: int, channel: int) -> Conversation[Talk]:
    async def conversation(talk: Talk) -> str:
        peer = await talk.channel()
        await peer.send(frame(kind, channel, b"\0\0\0\0"))
        return await peer.outcome()

    return conversation


for _kind in (0, 9, 10, 127, 255):
    FRAMING.rule(
        f"framing.type.unknown.{_kind}",
        f"a frame of the unknown type {_kind} ends the connection",
        section=_SECTION,
        obeys=_BROKEN,
    )(_of_type(_kind, 1))

for _kind in (4, 5, 6, 7):
    FRAMING.rule(
        f"framing.type.retired.{_kind}",
        f"a frame of type {_kind}, which 0-9-1 no longer has, ends the connection",
        section=_SECTION,
        versions=("0-9-1",),
        obeys=_BROKEN,
    )(_of_type(_kind, 1))


@FRAMING.rule(
    "framing.split.byte",
    "frames may arrive byte by byte",
    section=_SECTION,
    obeys="goes on",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    for byte in peer.encoded(1, talk.amqp.BasicQos(prefetch_count=1)):
        await peer.send(bytes([byte]))
    await peer.expect(talk.amqp.BasicQosOk, 1)
    return await peer.goes_on(1)


@FRAMING.rule(
    "framing.split.joined",
    "many frames may arrive at once",
    section=_SECTION,
    obeys="goes on",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await peer.say(1, *[talk.amqp.BasicQos(prefetch_count=one) for one in range(1, 101)])
    for _ in range(100):
        await peer.expect(talk.amqp.BasicQosOk, 1)
    return await peer.goes_on(1)


@FRAMING.rule(
    "framing.size.above",
    "a frame above the agreed frame-max ends the connection with 501",
    section="4.2.3",
    obeys=_BROKEN,
)
async def _(talk: Talk) -> str:
    peer = await talk.channel(await talk.connected(frame_max=_SMALL))
    queue = await talk.queue(peer)
    publish = talk.amqp.BasicPublish(routing_key=queue)
    size = _SMALL + 100
    method, head, *_ = peer.content(1, publish, bytes(size))
    await peer.send(method, head, frame(BODY, 1, bytes(size)))
    return await peer.outcome()


@FRAMING.rule(
    "framing.size.claimed",
    "a frame is refused for the size that it claims, before it is there",
    section="4.2.3",
    strength="should",
    obeys=_BROKEN,
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await peer.send(frame(METHOD, 1, b"", size=0x7FFFFFFF)[:-1])
    return await peer.outcome()


@FRAMING.rule(
    "framing.size.exact",
    "a frame of exactly the agreed frame-max is taken",
    section="4.2.3",
    obeys="got all",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel(await talk.connected(frame_max=_SMALL))
    queue = await talk.queue(peer)
    body = bytes(_SMALL - 8)
    await talk.publish(peer, queue, body)
    found = await talk.arrives(peer, queue)
    return "got all" if found is not None and found.body == body else "lost"


@FRAMING.rule(
    "framing.size.sent",
    "no frame that the peer sends is above the agreed frame-max",
    section="4.2.3",
    obeys="all within",
)
async def _(talk: Talk) -> str:
    most = _SMALL
    peer = await talk.channel(await talk.connected(frame_max=most))
    queue = await talk.queue(peer)
    body = bytes(3 * most)
    publish = talk.amqp.BasicPublish(routing_key=queue)
    method, head, *_ = peer.content(1, publish, body)
    await peer.send(method, head, *(frame(BODY, 1, bytes(most // 2)) for _ in range(6)))
    await peer.goes_on(1)
    await talk.consume(peer, queue, no_ack=True)
    left, largest = len(body), 0
    while left:
        found = await peer.frame()
        if found is None:
            return await peer.outcome()
        largest = max(largest, len(found.payload) + 8)
        left -= len(found.payload) if found.type == BODY else 0
    return "all within" if largest <= most else f"a frame of {largest} bytes"


@FRAMING.rule(
    "framing.heartbeat.channel",
    "a heartbeat on another channel than 0 is a connection's error, or is taken",
    section="4.2.7",
    strength="should",
    obeys=("connection.close 50?", "goes on"),
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await peer.send(frame(HEARTBEAT, 1, b""))
    return await peer.goes_on(1)


@FRAMING.rule(
    "framing.heartbeat.payload",
    "a heartbeat with a payload is a connection's error, or is taken",
    section="4.2.7",
    strength="should",
    obeys=("connection.close 501", "goes on", "hangs up"),
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await peer.send(frame(HEARTBEAT, 0, b"beat"))
    return await peer.goes_on(1)


@FRAMING.rule(
    "framing.heartbeat.any-time",
    "heartbeats may come at any time, within a message, too",
    section="4.2.7",
    obeys="got all",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    queue = await talk.queue(peer)
    beat = frame(HEARTBEAT, 0, b"")
    parts = peer.content(1, talk.amqp.BasicPublish(routing_key=queue), b"body")
    await peer.send(*(piece for part in parts for piece in (beat, part)))
    found = await talk.arrives(peer, queue)
    return "got all" if found is not None and found.body == b"body" else "lost"


_MALFORMED: Final = ("connection.close 501", "connection.close 502", "connection.close 505")
_UNKNOWN: Final = ("connection.close 503", "connection.close 540")


def _method(payload: Callable[[Talk], bytes]) -> Conversation[Talk]:
    """A method frame with this in it."""

    async def conversation(talk: Talk) -> str:
        peer = await talk.channel()
        await peer.send(frame(METHOD, 1, payload(talk)))
        return await peer.outcome()

    return conversation


def _cut(talk: Talk) -> bytes:
    whole: bytes = talk.amqp.QueueDeclare(queue="q").encode(talk.version.dialect)
    return whole[:-5]


def _with_more(talk: Talk) -> bytes:
    whole: bytes = talk.amqp.BasicQos().encode(talk.version.dialect)
    return whole + b"more"


def _always(payload: bytes) -> Callable[[Talk], bytes]:
    return lambda _: payload


for _id, _title, _payload, _obeys in (
    ("empty", "a method frame without class and method ends the connection", _always(b""), _MALFORMED),
    ("half", "a method frame of three bytes ends the connection", _always(b"\0\x3c\0"), _MALFORMED),
    (
        "unknown-class",
        "a method of an unknown class ends the connection: 503 or 540",
        _always(b"\x03\xe7\0\x0a"),
        _UNKNOWN,
    ),
    (
        "unknown-method",
        "an unknown method of a known class ends the connection: 503 or 540",
        _always(b"\0\x3c\x03\xe7"),
        _UNKNOWN,
    ),
    (
        "short",
        "arguments that end too early are a syntax error, 502, or a frame error, 501",
        _cut,
        _MALFORMED,
    ),
    (
        "long",
        "bytes behind the arguments are a syntax error, 502, or a frame error, 501",
        _with_more,
        _MALFORMED,
    ),
    (
        "string-beyond",
        "a short string that claims more than there is ends the connection",
        _always(b"\0\x32\0\x0a\0\0\xffq\0\0\0\0\0"),
        _MALFORMED,
    ),
):
    FRAMING.rule(
        f"framing.method.{_id}",
        _title,
        section="4.2.5.3" if _id == "string-beyond" else "4.2.4",
        strength="should" if _id == "long" else "must",
        obeys=_obeys,
        rabbitmq="hangs up" if _obeys is _UNKNOWN else (),
    )(_method(_payload))


@FRAMING.rule(
    "framing.header.unasked",
    "a content header without its method is unexpected, 505",
    section="4.2.6",
    obeys="connection.close 505",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    _, head, *_ = peer.content(1, talk.amqp.BasicPublish(), b"x")
    await peer.send(head)
    return await peer.outcome()


@FRAMING.rule(
    "framing.body.unasked",
    "a content body without its header is unexpected, 505",
    section="4.2.6",
    obeys="connection.close 505",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await peer.send(frame(BODY, 1, b"x"))
    return await peer.outcome()


@FRAMING.rule(
    "framing.header.on-zero",
    "a content header on channel 0 ends the connection",
    section="4.2.6",
    obeys=("connection.close 50?", "hangs up"),
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await peer.send(frame(HEADER, 0, b"\0\x3c\0\0" + bytes(10)))
    return await peer.outcome()
