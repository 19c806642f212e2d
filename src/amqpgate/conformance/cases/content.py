"""Content: headers, bodies, properties (AMQP 0-9-1, sections 4.2.6 and 1.8.1)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from amqpgate.conformance.case import CaseSection
from amqpgate.conformance.peer import BODY, HEADER, TestedPeer, frame
from amqpgate.conformance.talk import Talk
from amqpgate.wire.tables import Table

CONTENT: Final = CaseSection("content", "Content", Talk)

_SECTION: Final = "4.2.6"
_UNEXPECTED: Final = ("connection.close 505", "connection.close 501")


async def _published(talk: Talk, *parts: bytes, body: bytes = b"body") -> str:
    """Said behind basic.publish and before its content; what comes of it."""
    peer = await talk.channel()
    method, *_ = peer.content(1, talk.amqp.BasicPublish(routing_key=talk.name()), body)
    await peer.send(method, *parts)
    return await peer.outcome()


@CONTENT.rule(
    "content.header.missing",
    "a method in the place of the content header is unexpected, 505",
    section=_SECTION,
    obeys="connection.close 505",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await peer.say(1, talk.amqp.BasicPublish(routing_key="k"), talk.amqp.BasicQos())
    return await peer.outcome()


@CONTENT.rule(
    "content.header.body-first",
    "a body in the place of the content header is unexpected, 505",
    section=_SECTION,
    obeys="connection.close 505",
)
async def _(talk: Talk) -> str:
    return await _published(talk, frame(BODY, 1, b"body"))


@CONTENT.rule(
    "content.header.class",
    "a content header of another class than the method's is unexpected, 505 or 501",
    section="4.2.6.1",
    obeys=_UNEXPECTED,
)
async def _(talk: Talk) -> str:
    return await _published(talk, frame(HEADER, 1, b"\0\x32\0\0" + bytes(10)))


@CONTENT.rule(
    "content.header.weight",
    "a weight other than 0 is refused",
    section="4.2.6.1",
    obeys=_UNEXPECTED,
    strength="should",
)
async def _(talk: Talk) -> str:
    return await _published(talk, frame(HEADER, 1, b"\0\x3c\0\1" + bytes(10)))


@CONTENT.rule(
    "content.header.short",
    "a content header that is too short is refused",
    section="4.2.6.1",
    obeys=("connection.close 50?", "connection.close 541"),
)
async def _(talk: Talk) -> str:
    return await _published(talk, frame(HEADER, 1, b"\0\x3c\0\0\0"))


@CONTENT.rule(
    "content.header.properties.missing",
    "property flags without their values are refused",
    section="4.2.6.1",
    obeys=("connection.close 50?",),
    rabbitmq="connection.close 541",
)
async def _(talk: Talk) -> str:
    return await _published(talk, frame(HEADER, 1, b"\0\x3c\0\0" + bytes(8) + b"\x80\0"))


@CONTENT.rule(
    "content.body.too-long",
    "more body than the header says is refused with 501, or 505",
    section=_SECTION,
    obeys=_UNEXPECTED,
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    method, head, _ = peer.content(1, talk.amqp.BasicPublish(routing_key=talk.name()), b"1234")
    await peer.send(method, head, frame(BODY, 1, b"12345"))
    return await peer.goes_on(1)


@CONTENT.rule(
    "content.body.too-short",
    "a method before the body is whole is unexpected, 505",
    section=_SECTION,
    obeys="connection.close 505",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    method, head, _ = peer.content(1, talk.amqp.BasicPublish(routing_key=talk.name()), b"1234")
    await peer.send(method, head, frame(BODY, 1, b"12"))
    return await peer.goes_on(1)


async def _back(talk: Talk, peer: TestedPeer, queue: str, *frames: bytes) -> bytes | None:
    await peer.send(*frames)
    found = await talk.arrives(peer, queue)
    return None if found is None else found.body


@CONTENT.rule("content.body.empty", "a body may be empty", section=_SECTION, obeys="empty")
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    await talk.publish(peer, name, b"")
    found = await talk.arrives(peer, name)
    return "empty" if found is not None and found.body == b"" else f"{found}"


@CONTENT.rule("content.body.frames", "a body may come in many frames", section=_SECTION, obeys="the same")
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    body = bytes(range(256)) * 4
    method, head, _ = peer.content(1, talk.amqp.BasicPublish(routing_key=name), body)
    parts = [frame(BODY, 1, body[at : at + 7]) for at in range(0, len(body), 7)]
    return "the same" if await _back(talk, peer, name, method, head, *parts) == body else "another"


@CONTENT.rule(
    "content.body.empty-frames",
    "a body may have empty frames in it",
    section=_SECTION,
    strength="should",
    obeys="the same",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    method, head, _ = peer.content(1, talk.amqp.BasicPublish(routing_key=name), b"1234")
    none = frame(BODY, 1, b"")
    parts = (none, frame(BODY, 1, b"12"), none, frame(BODY, 1, b"34"))
    return "the same" if await _back(talk, peer, name, method, head, *parts) == b"1234" else "another"


@CONTENT.rule("content.body.binary", "a body may be any bytes", section=_SECTION, obeys="the same")
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.queue(peer)
    body = b"\xce\x01\0\0\0\0\0AMQP\xce" + bytes(range(256))
    await talk.publish(peer, name, body)
    found = await talk.arrives(peer, name)
    return "the same" if found is not None and found.body == body else "another"


@CONTENT.rule("content.body.large", "a body of a megabyte arrives whole", section=_SECTION, obeys="the same")
async def _(talk: Talk) -> str:
    peer = await talk.channel(await talk.connected(frame_max=131072))
    name = await talk.queue(peer)
    body = bytes(range(256)) * 4096
    method, head, _ = peer.content(1, talk.amqp.BasicPublish(routing_key=name), body)
    step = 131072 - 8
    parts = [frame(BODY, 1, body[at : at + step]) for at in range(0, len(body), step)]
    return "the same" if await _back(talk, peer, name, method, head, *parts) == body else "another"


# -- properties ----------------------------------------------------------------------------------------------

_VALUES: Final[dict[str, object]] = {
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "headers": Table.of({"a": 1}),
    "delivery_mode": 2,
    "priority": 9,
    "correlation_id": "correlation",
    "reply_to": "somebody",
    "expiration": "60000",
    "message_id": "id",
    "timestamp": int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()),
    "type": "type",
    "app_id": "app",
}

for _name, _value in _VALUES.items():

    @CONTENT.rule(
        f"content.properties.{_name.replace('_', '-')}",
        f"{_name.replace('_', '-')} arrives as it was sent, and nothing else",
        section="1.8.1",
        obeys="the same",
    )
    async def _(talk: Talk, name: str = _name, value: object = _value) -> str:
        peer = await talk.channel()
        queue = await talk.queue(peer)
        properties = talk.amqp.BasicProperties(**{name: value})
        await talk.publish(peer, queue, properties=properties)
        found = await talk.arrives(peer, queue)
        return "the same" if found is not None and found.properties == properties else f"{found}"


@CONTENT.rule("content.properties.all", "all properties arrive at once", section="1.8.1", obeys="the same")
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    queue = await talk.queue(peer)
    properties = talk.amqp.BasicProperties(**_VALUES)
    await talk.publish(peer, queue, properties=properties)
    found = await talk.arrives(peer, queue)
    return "the same" if found is not None and found.properties == properties else f"{found}"


@CONTENT.rule("content.properties.none", "a message need not have properties", section="1.8.1", obeys="none")
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    queue = await talk.queue(peer)
    await talk.publish(peer, queue)
    found = await talk.arrives(peer, queue)
    return "none" if found is not None and found.properties == talk.amqp.BasicProperties() else f"{found}"
