"""Stand-in: maps of 0-10 and field tables, the simplest types."""

from __future__ import annotations

from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.tables import EMPTY_TABLE, Field, Table
from amqpgate.wire.v0_10.types import Map, Value


def _field(value: Value) -> Field:
    match value.value:
        case bool(flag):
            return Field("t", flag)
        case int(number):
            return Field("l", number)
        case bytes(data):
            return Field("S", data.decode("utf-8", "replace"))
        case Map() as entries:
            return Field("F", to_table(entries))
    return Field("V", None)


def _value(field: Field) -> Value:
    match field.value:
        case bool(flag):
            return Value(TypeCode.BOOLEAN, flag)
        case int(number):
            return Value(TypeCode.INT64, number)
        case str(text):
            return Value(TypeCode.STR16, text.encode("utf-8", "surrogateescape"))
        case bytes(data):
            return Value(TypeCode.VBIN32, data)
        case Table() as table:
            return Value(TypeCode.MAP, from_table(table))
    return Value(TypeCode.VOID, None)


def to_table(entries: Map | None) -> Table:
    """A field table."""
    if entries is None:
        return EMPTY_TABLE
    return Table(tuple((key.decode(), _field(value)) for key, value in entries.entries))


def from_table(table: Table) -> Map:
    """A map."""
    return Map(tuple((key.encode(), _value(field)) for key, field in table.entries))
