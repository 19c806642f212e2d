"""What a message has comes back as it was (AMQP 0-10, message-properties, and "Types")."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from amqpgate.conformance.v0_10.talk import SessionTalk, section
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.types import Array, Content, Map, Value

CONTENT: Final = section("content", "Content")

_UUID: Final = bytes(range(16))


async def _back(
    talk: SessionTalk, properties: amqp.MessageProperties | None, body: bytes = b"m"
) -> tuple[amqp.MessageProperties, bytes]:
    """What comes back of a message."""
    session = await talk.session()
    queue = await talk.queue(session)
    await session.publish(queue, body, message=properties)
    await session.subscribe(queue)
    message = await session.message()
    for struct in message.structs:
        if isinstance(struct, amqp.MessageProperties):
            return struct, message.body
    return amqp.MessageProperties(), message.body


_PROPERTIES: Final = (
    ("content-type", b"text/plain"),
    ("content-encoding", b"gzip"),
    ("message-id", _UUID),
    ("correlation-id", b"an answer to \x01"),
    ("app-id", b"conformance"),
    ("reply-to", amqp.ReplyTo(exchange=b"amq.direct", routing_key=b"answers")),
    ("reply-to", amqp.ReplyTo(routing_key=b"answers")),
)
for _field, _value in _PROPERTIES:
    _name = f"{_field}.key" if isinstance(_value, amqp.ReplyTo) and _value.exchange is None else _field

    async def _property(
        talk: SessionTalk, field: str = _field.replace("-", "_"), value: object = _value
    ) -> str:
        found, _ = await _back(talk, amqp.MessageProperties(**{field: value}))  # type: ignore[arg-type]
        said = getattr(found, field)
        if isinstance(said, amqp.ReplyTo):
            # The default exchange may be named or not.
            said = amqp.ReplyTo(exchange=said.exchange or None, routing_key=said.routing_key)
        return "the same" if said == value else f"{said!r}"

    CONTENT.rule(
        f"message.message-properties.{_name}",
        f"{_field} comes back as it was{', with a key alone' if _name.endswith('key') else ''}",
        section=f"message.message-properties.{_field}",
        obeys="the same",
    )(_property)

#: A value of each type.
_VALUES: Final[tuple[tuple[str, int, Content], ...]] = (
    ("bin8", TypeCode.BIN8, b"\x07"),
    ("int8", TypeCode.INT8, -7),
    ("uint8", TypeCode.UINT8, 200),
    ("char", TypeCode.CHAR, b"c"),
    ("boolean.true", TypeCode.BOOLEAN, True),
    ("boolean.false", TypeCode.BOOLEAN, False),
    ("int16", TypeCode.INT16, -700),
    ("uint16", TypeCode.UINT16, 60_000),
    ("int32", TypeCode.INT32, -70_000),
    ("uint32", TypeCode.UINT32, 4_000_000_000),
    ("float", TypeCode.FLOAT, 1.5),
    ("char-utf32", TypeCode.CHAR_UTF32, b"\0\0\x20\xac"),
    ("int64", TypeCode.INT64, -(1 << 40)),
    ("uint64", TypeCode.UINT64, (1 << 64) - 1),
    ("double", TypeCode.DOUBLE, -2.25),
    ("datetime", TypeCode.DATETIME, 1_700_000_000),
    ("uuid", TypeCode.UUID, _UUID),
    ("vbin8", TypeCode.VBIN8, b"\0\xff"),
    ("vbin16", TypeCode.VBIN16, b"\0\xff"),
    ("vbin32", TypeCode.VBIN32, b"\0\xff"),
    ("str8-latin", TypeCode.STR8_LATIN, b"caf\xe9"),
    ("str8", TypeCode.STR8, "café".encode()),
    ("str16", TypeCode.STR16, "café".encode()),
    ("str16.long", TypeCode.STR16, b"x" * 3000),
    ("map", TypeCode.MAP, Map(((b"k", Value(TypeCode.INT32, 7)),))),
    ("list", TypeCode.LIST, (Value(TypeCode.INT32, 7), Value(TypeCode.STR16, b"s"))),
    ("array", TypeCode.ARRAY, Array(TypeCode.INT32, (1, 2, 3))),
    ("dec32", TypeCode.DEC32, Decimal("12.34")),
    ("dec64", TypeCode.DEC64, Decimal("-12345678901.5")),
    ("void", TypeCode.VOID, None),
)
for _name, _code, _content in _VALUES:
    _value_of = Value(_code, _content)

    async def _survives(talk: SessionTalk, value: Value = _value_of) -> str:
        headers = Map(((b"header", value),))
        found, _ = await _back(talk, amqp.MessageProperties(application_headers=headers))
        said = (found.application_headers or Map()).get(b"header")
        if said == value:
            return "the same"
        return f"{said.value!r} of type 0x{said.code:02x}" if said is not None else "nothing"

    CONTENT.rule(
        f"types.{_name}",
        f"a header of type {_name.partition('.')[0]} comes back as it was",
        section="message.message-properties.application-headers; Types",
        # No rule says that a broker keeps a type, only what it is.
        strength="should",
        obeys="the same",
    )(_survives)


def _nested(depth: int) -> Map:
    return Map(((b"deeper", Value(TypeCode.MAP, _nested(depth - 1))),)) if depth else Map()


for _name, _title, _headers in (
    ("nested", "maps come back that are nested eight deep", _nested(8)),
    (
        "many",
        "three hundred headers come back, in their order",
        Map(tuple((b"key-%d" % number, Value(TypeCode.INT32, number)) for number in range(300))),
    ),
    ("long-key", "a key may have 255 bytes", Map(((b"k" * 255, Value(TypeCode.INT32, 7)),))),
    ("empty", "no headers are none", Map()),
):

    async def _map(talk: SessionTalk, headers: Map = _headers) -> str:
        found, _ = await _back(talk, amqp.MessageProperties(application_headers=headers))
        said = found.application_headers or Map()
        return "the same" if dict(said.entries) == dict(headers.entries) else f"{len(said.entries)} entries"

    CONTENT.rule(
        f"types.map.{_name}",
        _title,
        section="message.message-properties.application-headers; Types: map",
        strength="should",
        obeys="the same",
    )(_map)

for _name, _size in (("one-frame", 1000), ("many-frames", 200_000), ("big", 3_000_000)):

    async def _body(talk: SessionTalk, size: int = _size) -> str:
        body = bytes(number * 7 & 0xFF for number in range(1000)) * (size // 1000)
        _, said = await _back(talk, None, body)
        return "the same" if said == body else f"{len(said)} bytes"

    CONTENT.rule(
        f"message.transfer.body.{_name}",
        f"a body of {_size:,} bytes comes back as it was",
        section="message.transfer, body",
        obeys="the same",
    )(_body)


@CONTENT.rule(
    "message.transfer.body.small-frames",
    "a body in frames of 100 bytes comes back as it was",
    section="Transport: Assemblies, Segments, and Frames",
    obeys="the same",
)
async def _(talk: SessionTalk) -> str:
    peer = await talk.connected()
    session = await talk.session(peer)
    queue = await talk.queue(session)
    body = bytes(range(250)) * 40
    peer.cut_at(200)
    await session.publish(queue, body)
    await session.subscribe(queue)
    said = (await session.message()).body
    return "the same" if said == body else f"{len(said)} bytes"


@CONTENT.rule(
    "message.message-properties.content-length",
    "a content-length that is told is the body's",
    section="message.message-properties.content-length",
    strength="should",
    obeys=("11", "None"),
)
async def _(talk: SessionTalk) -> str:
    found, _ = await _back(talk, amqp.MessageProperties(content_length=11), b"eleven byte")
    return f"{found.content_length}"


@CONTENT.rule(
    "message.message-properties.several",
    "the properties of several messages are not mixed up",
    section="message.message-properties",
    obeys="a c",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    for kind in (b"a", None, b"c"):
        await session.publish(queue, message=amqp.MessageProperties(content_type=kind))
    await session.subscribe(queue)
    found = [
        struct.content_type.decode()
        for message in await session.drained()
        for struct in message.structs
        if isinstance(struct, amqp.MessageProperties) and struct.content_type is not None
    ]
    return " ".join(found)
