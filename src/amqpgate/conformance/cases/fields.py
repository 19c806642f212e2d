"""Field tables: each type of value arrives as it was sent (AMQP 0-9-1, section 4.2.5.5)."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import Final

from amqpgate.conformance.case import CaseSection
from amqpgate.conformance.peer import HEADER, METHOD, frame
from amqpgate.conformance.talk import Talk
from amqpgate.wire.tables import Field, FieldValue, Table

FIELDS: Final = CaseSection("fields", "Field tables", Talk)

_SECTION: Final = "4.2.5.5"
_REFUSED: Final = ("connection.close 50?", "connection.close 541")

#: By letter, as RabbitMQ and its clients write them (the errata of 0-9-1): least and largest.
_VALUES: Final[dict[str, tuple[FieldValue, ...]]] = {
    "t": (True, False),
    "b": (-128, 127),
    "B": (0, 255),
    "s": (-32768, 32767),
    "u": (0, 65535),
    "I": (-(2**31), 2**31 - 1),
    "i": (0, 2**32 - 1),
    "l": (-(2**63), 2**63 - 1),
    "f": (1.5, -0.25),
    "d": (1e300, -1e-300),
    "D": (Decimal("123.45"),),
    "S": ("text", ""),
    "A": ((Field("I", 1), Field("S", "two")), ()),
    "T": (1_700_000_000,),
    "F": (Table.of({"a": {"b": 1}}), Table()),
    "V": (None,),
    "x": (b"\0\xff", b""),
}
#: Those that the standards of 0-8 and 0-9 have, too.
_STANDARD: Final = frozenset("ISDTF")

for _tag, _each in _VALUES.items():

    @FIELDS.rule(
        f"fields.type.{_tag if _tag.islower() else 'upper-' + _tag.lower()}",
        f"values of type {_tag} arrive as they were sent",
        section=_SECTION,
        strength="must" if _tag in _STANDARD else "should",
        versions=("0-9-1", "0-9", "0-8") if _tag in _STANDARD else ("0-9-1", "0-9"),
        obeys="the same",
    )
    async def _(talk: Talk, tag: str = _tag, each: tuple[FieldValue, ...] = _each) -> str:
        peer = await talk.channel()
        queue = await talk.queue(peer)
        sent = Table.of({f"h{number}": Field(tag, value) for number, value in enumerate(each)})
        await talk.publish(peer, queue, properties=talk.amqp.BasicProperties(headers=sent))
        said = await peer.goes_on(1)
        if said != "goes on":
            return said
        found = await talk.arrives(peer, queue)
        got = None if found is None else getattr(found.properties, "headers", None)
        return "the same" if got == sent else f"{got}"


async def _declared(talk: Talk, table: bytes) -> str:
    """queue.declare with these bytes as the arguments' table, without its length."""
    peer = await talk.channel()
    head = talk.amqp.QueueDeclare(queue=talk.name(), exclusive=True).encode(talk.version.dialect)[:-4]
    await peer.send(frame(METHOD, 1, head + len(table).to_bytes(4, "big") + table))
    return await peer.outcome()


for _id, _title, _table in (
    ("unknown", "a value of an unknown type", b"\x01kZ\0\0\0\0"),
    ("short", "a value that ends too early", b"\x01kI\0\0"),
    ("name-beyond", "a name that claims more than there is", b"\xffk"),
    ("string-beyond", "a long string that claims more than there is", b"\x01kS\xff\xff\xff\xff"),
    ("table-beyond", "a table within that claims more than there is", b"\x01kF\0\0\xff\xff"),
    ("array-beyond", "an array that claims more than there is", b"\x01kA\0\0\xff\xff"),
    ("without-value", "a name without a value", b"\x01k"),
):
    FIELDS.rule(
        f"fields.malformed.{_id}",
        f"{_title} ends the connection",
        section=_SECTION,
        obeys=_REFUSED,
        rabbitmq="hangs up",
    )(partial(_declared, table=_table))


@FIELDS.rule(
    "fields.malformed.length",
    "a table that claims more than its method has ends the connection",
    section=_SECTION,
    obeys=_REFUSED,
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    head = talk.amqp.QueueDeclare(queue=talk.name(), exclusive=True).encode(talk.version.dialect)[:-4]
    await peer.send(frame(METHOD, 1, head + b"\xff\xff\xff\xff"))
    return await peer.goes_on(1)


@FIELDS.rule(
    "fields.malformed.headers",
    "malformed headers of a message end the connection",
    section=_SECTION,
    obeys=_REFUSED,
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    method, *_ = peer.content(1, talk.amqp.BasicPublish(routing_key=talk.name()), b"")
    header = b"\0\x3c\0\0" + bytes(8) + b"\x20\0" + b"\0\0\0\x05\x01kZ\0\0"
    await peer.send(method, frame(HEADER, 1, header))
    return await peer.goes_on(1)


@FIELDS.rule(
    "fields.nested.deep",
    "tables within tables are taken, or refused with a code",
    section=_SECTION,
    strength="should",
    obeys=("queue.declare-ok", *_REFUSED),
)
async def _(talk: Talk) -> str:
    table = b""
    for _ in range(100):
        table = b"\x01kF" + len(table).to_bytes(4, "big") + table
    return await _declared(talk, table)


@FIELDS.rule(
    "fields.name.empty", "a name may be empty", section=_SECTION, strength="should", obeys="queue.declare-ok"
)
async def _(talk: Talk) -> str:
    return await _declared(talk, b"\0I\0\0\0\1")


@FIELDS.rule(
    "fields.order",
    "fields keep their order",
    section=_SECTION,
    strength="should",
    obeys="in order",
    # Since version 4 it sorts.
    rabbitmq="*a*, *b*, *m*, *z*",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    queue = await talk.queue(peer)
    sent = Table.of(dict.fromkeys(("z", "a", "m", "b"), 1))
    await talk.publish(peer, queue, properties=talk.amqp.BasicProperties(headers=sent))
    found = await talk.arrives(peer, queue)
    names = [] if found is None else [name for name, _ in getattr(found.properties, "headers", ())]
    return "in order" if names == ["z", "a", "m", "b"] else f"{names}"
