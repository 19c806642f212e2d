"""Field tables, methods and content headers of every version and dialect: there and back, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.codec import (
    ContentHeader,
    decode_header,
    decode_method,
    encode_header,
    methods,
    properties,
)
from amqpgate.wire.dialects import DIALECTS, Dialect, FieldKind
from amqpgate.wire.method import Method
from amqpgate.wire.table_codec import get_table, put_table
from amqpgate.wire.tables import Field, Table
from tests.fuzz.choices import Choices

MOST = 2048
NAMES = sorted(DIALECTS)
TOKENS = (
    *(tag.encode() for tag in "tbBsuIilLfdDSATFVxUkcC"),
    *(b"\0\0\0\1", b"\0\0\0\0", b"\xff\xff\xff\xff", b"\1a", b"\0\x3c", b"\0\x0a", b"\x7f\xa0\0\1"),
)
#: Reply codes that what cannot be decoded may have.
CODES = {501, 502, 505, 506, 540, 541}

_EVERYTHING = Table(
    (
        ("t", Field("t", True)),
        ("I", Field("I", -5)),
        ("l", Field("l", 1 << 40)),
        ("d", Field("d", 1.5)),
        ("D", Field("D", Decimal("1.25"))),
        ("S", Field("S", "text")),
        ("S", Field("S", b"\xff")),
        ("T", Field("T", 1)),
        ("V", Field("V", None)),
        ("F", Field("F", Table((("A", Field("A", (Field("I", 1), Field("A", ())))),)))),
    )
)


def seeds() -> Iterator[bytes]:
    """A table, and every method as it is without arguments."""
    for number, name in enumerate(NAMES):
        dialect = DIALECTS[name]
        try:
            yield bytes((number, 0)) + put_table(_EVERYTHING, dialect)
        except ValueError:
            yield bytes((number, 0)) + put_table(Table.of({"a": 1, "b": "c"}), dialect)
        for cls in properties(dialect).values():
            yield bytes((number, 2)) + encode_header(ContentHeader(cls.CLASS_ID, 5, cls()), dialect)
    for name in ("rabbitmq-0-9-1", "legacy-0-8", "legacy-0-9"):
        for cls in methods(DIALECTS[name]).values():
            yield bytes((NAMES.index(name), 1)) + cls().encode(DIALECTS[name])


def check(data: bytes) -> None:
    """Decode; a clean error, or the same bytes when it is encoded, and again."""
    choices = Choices(data)
    dialect = DIALECTS[choices.pick(NAMES)]
    what = choices.below(3)
    payload = choices.rest()
    try:
        if what == 0:
            table, end = get_table(payload, 0, len(payload), dialect)
            payload = payload[:end]
            again = put_table(table, dialect)
            exact = is_exact(table, dialect)
            twice = put_table(get_table(again, 0, len(again), dialect)[0], dialect) if exact else again
            table.to_python()
            repr(table)
        elif what == 1:
            method = decode_method(payload, dialect)
            again = method.encode(dialect)
            exact = all(is_exact(value, dialect) for value in _tables(method))
            twice = decode_method(again, dialect).encode(dialect) if exact else again
            repr(method)
            payload = again if _has_bits(method) and len(again) == len(payload) else payload
        else:
            header = decode_header(payload, dialect)
            again = encode_header(header, dialect)
            exact = all(is_exact(value, dialect) for value in _tables(header.properties))
            twice = encode_header(decode_header(again, dialect), dialect) if exact else again
            # Flags that mean nothing come out as 0.
            exact = exact and again[12:14] == payload[12:14]
    except ProtocolViolation as violation:
        assert violation.code in CODES, violation.code
        assert len(violation.reply_text.encode("utf-8", "surrogateescape")) <= 255
        return
    assert twice == again
    if exact:
        assert again == payload, (dialect.name, payload, again)


def _tables(value: object) -> list[Table]:
    names = getattr(value, "__match_args__", ())
    return [one for name in names if isinstance(one := getattr(value, name), Table)]


def _has_bits(method: Method) -> bool:
    return any(isinstance(getattr(method, name), bool) for name in method.__match_args__)


def is_exact(table: Table, dialect: Dialect) -> bool:
    """Whether every value of it can be written as it was read: the peer reads what it writes, and no float of
    32 bits is a signalling NaN."""
    to_do: list[tuple[str, Field]] = list(table.entries)
    while to_do:
        _, field = to_do.pop()
        kind = dialect.decodes.get(field.tag)
        if kind is None or dialect.encodes.get(field.tag) is not kind:
            return False
        if kind is FieldKind.FLOAT and isinstance(field.value, float) and field.value != field.value:
            return False
        if isinstance(field.value, Table):
            to_do += field.value.entries
        elif isinstance(field.value, tuple):
            to_do += [("", one) for one in field.value]
    return True
