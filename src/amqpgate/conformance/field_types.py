"""Field tables with all types."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from amqpgate.conformance.versions import Name
from amqpgate.wire.tables import Field, Table

#: A field of each type that RabbitMQ writes.
ALL_TYPES: Final = Table(
    (
        ("bool", Field("t", True)),
        ("int8", Field("b", -8)),
        ("uint8", Field("B", 200)),
        ("int16", Field("s", -1600)),
        ("uint16", Field("u", 60_000)),
        ("int32", Field("I", -320_000)),
        ("uint32", Field("i", 4_000_000_000)),
        ("int64", Field("l", -(2**40))),
        ("float", Field("f", 1.5)),
        ("double", Field("d", 2.25)),
        ("decimal", Field("D", Decimal("1.25"))),
        ("text", Field("S", "text")),
        ("bytes", Field("x", b"\0\xff")),
        ("time", Field("T", 1_700_000_000)),
        ("nothing", Field("V", None)),
        ("table", Field("F", Table((("deep", Field("F", Table((("er", Field("S", "")),)))),)))),
        ("array", Field("A", (Field("I", 1), Field("S", "two"), Field("A", ()), Field("V", None)))),
        ("none", Field("F", Table())),
        ("n" * 128, Field("S", "a long name")),
    )
)


#: AMQP 0-8 has these only.
OF_OLD: Final = Table(
    tuple((name, field) for name, field in ALL_TYPES if field.tag in "SIDT" or name == "none")
)


def types_of(version: Name) -> Table:
    """All that a version has."""
    return OF_OLD if version == "0-8" else ALL_TYPES
