"""Maps of 0-10 and field tables."""

from __future__ import annotations

from decimal import Decimal
from math import inf, isfinite, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.bridge.v0_10.tables import field_of, from_table, to_table, value_of
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.table_codec import get_table, put_table
from amqpgate.wire.tables import EMPTY_TABLE, Field, Table
from amqpgate.wire.v0_10.types import EMPTY_MAP, Array, Content, Map, Value, get_map, put_map
from tests.unit.wire.strategies import FIELD, SCALAR, SHORTSTR, TABLE
from tests.unit.wire.v0_10.strategies import CONTENTS, MAP

UUID = bytes(range(16))
UUID_TEXT = "00010203-0405-0607-0809-0a0b0c0d0e0f"


@pytest.mark.parametrize(
    ("code", "value", "field", "back"),
    [
        (0x01, -5, Field("b", -5), None),
        (0x02, 200, Field("B", 200), None),
        (0x11, -300, Field("s", -300), None),
        (0x12, 60_000, Field("u", 60_000), None),
        (0x21, -70_000, Field("I", -70_000), None),
        (0x22, 2**32 - 1, Field("i", 2**32 - 1), None),
        (0x31, -(2**63), Field("l", -(2**63)), None),
        (0x32, 2**63 - 1, Field("l", 2**63 - 1), Value(0x31, 2**63 - 1)),
        (0x32, 2**63, Field("S", "9223372036854775808"), Value(0x95, b"9223372036854775808")),
        (0x23, 1.5, Field("f", 1.5), None),
        (0x33, 1e300, Field("d", 1e300), None),
        (0x08, True, Field("t", True), None),
        (0x08, False, Field("t", False), None),
        (0x08, 7, Field("t", True), Value(0x08, True)),
        (0xF1, True, Field("t", True), Value(0x08, True)),
        (0x38, 1_795_370_545, Field("T", 1_795_370_545), None),
        (0x38, 2**64 - 1, Field("T", 2**64 - 1), None),
        (0xC8, Decimal("1.25"), Field("D", Decimal("1.25")), None),
        (0xC8, Decimal("-1.25"), Field("S", "-1.25"), Value(0x95, b"-1.25")),
        (0xD8, Decimal(2**32 - 1), Field("D", Decimal(2**32 - 1)), None),
        (0xD8, Decimal(7), Field("D", Decimal(7)), Value(0xC8, Decimal(7))),
        (0xD8, Decimal(2**32), Field("S", "4294967296"), Value(0x95, b"4294967296")),
        (0x04, b"\xa4", Field("S", "\u20ac"), Value(0x95, b"\xe2\x82\xac")),
        (0x27, b"\0\0\x20\xac", Field("S", "\u20ac"), Value(0x95, b"\xe2\x82\xac")),
        (0x27, b"\xff\0\0\0", Field("x", b"\xff\0\0\0"), Value(0xA0, b"\xff\0\0\0")),
        (0x48, UUID, Field("S", UUID_TEXT), Value(0x95, UUID_TEXT.encode())),
        (0x84, b"\xa4", Field("S", "\u20ac"), Value(0x95, b"\xe2\x82\xac")),
        (0x94, b"x", Field("S", "x"), Value(0x95, b"x")),
        (0x85, b"x", Field("S", "x"), Value(0x95, b"x")),
        (0x95, "käse".encode(), Field("S", "käse"), None),
        (0x95, b"\xff", Field("S", b"\xff"), Value(0xA0, b"\xff")),
        (0x86, b"\0x", Field("S", "x"), Value(0x95, b"x")),
        (0x96, b"\xff\xfex\0", Field("S", "x"), Value(0x95, b"x")),
        (0x96, b"\xfe\xff\0x", Field("S", "x"), Value(0x95, b"x")),
        (0x96, b"x", Field("x", b"x"), Value(0xA0, b"x")),
        (0x80, b"x", Field("x", b"x"), Value(0xA0, b"x")),
        (0x90, b"x", Field("x", b"x"), Value(0xA0, b"x")),
        (0xA0, b"x", Field("x", b"x"), None),
        (0x00, b"x", Field("x", b"x"), Value(0xA0, b"x")),
        (0x70, b"x" * 128, Field("x", b"x" * 128), Value(0xA0, b"x" * 128)),
        (0xD0, b"x" * 9, Field("x", b"x" * 9), Value(0xA0, b"x" * 9)),
        (0xAB, b"\x04\x01\0\0", Field("x", b"\x04\x01\0\0"), Value(0xA0, b"\x04\x01\0\0")),
        (0x0F, b"x", Field("x", b"x"), Value(0xA0, b"x")),
        (0xF2, b"", Field("x", b""), Value(0xA0, b"")),
        (0xF0, None, Field("V", None), None),
        (0xA8, Map(((b"a", Value(0x02, 1)),)), Field("F", Table((("a", Field("B", 1)),))), None),
        (0xA9, (Value(0x02, 1), Value(0xF0, None)), Field("A", (Field("B", 1), Field("V", None))), None),
        (
            0xAA,
            Array(0x95, (b"a", b"b")),
            Field("A", (Field("S", "a"), Field("S", "b"))),
            Value(0xA9, (Value(0x95, b"a"), Value(0x95, b"b"))),
        ),
    ],
)
def test_each_type(code: int, value: Content, field: Field, back: Value | None) -> None:
    """`back` is None where it comes back as it was."""
    made = field_of(code, value)
    assert made == field
    assert type(made.value) is type(field.value)
    assert value_of(made) == (back or Value(code, value))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (Field("L", 5), Value(0x31, 5)),
        (Field("U", -5), Value(0x11, -5)),
        (Field("l", 2**63), Value(0x32, 2**63)),
        (Field("B", 256), Value(0x31, 256)),
        (Field("i", -1), Value(0x31, -1)),
        (Field("l", 2**64), Value(0x95, b"18446744073709551616")),
        (Field("t", 5), Value(0x08, True)),
        (Field("D", Decimal("-7.5")), Value(0xC8, Decimal("-7.5"))),
        (Field("D", Decimal(2**31)), Value(0xD8, Decimal(2**31))),
        (Field("D", Decimal("1E+3")), Value(0x95, b"1E+3")),
        (Field("D", Decimal("NaN")), Value(0x95, b"NaN")),
        (Field("k", "x"), Value(0x95, b"x")),
        (Field("s", "text"), Value(0x95, b"text")),
        (Field("S", "x" * 65_535), Value(0x95, b"x" * 65_535)),
        (Field("S", "x" * 65_536), Value(0xA0, b"x" * 65_536)),
        (Field("s", "\udcff"), Value(0xA0, b"\xff")),
        (Field("d", inf), Value(0x33, inf)),
    ],
)
def test_fields_of_other_versions_and_of_policies(field: Field, value: Value) -> None:
    assert value_of(field) == value
    assert put_map(Map(((b"", value),)))


@pytest.mark.parametrize("code", [0x23, 0x33])
@pytest.mark.parametrize("value", [inf, -inf, b"\x7f\xf0\0\0\0\0\0\1", nan])
def test_what_is_no_finite_number_is_refused_or_text(code: int, value: float | bytes) -> None:
    entries = Map(((b"a", Value(0xA9, (Value(code, value),))),))
    with pytest.raises(ProtocolViolation) as caught:
        to_table(entries)
    assert caught.value.code == 542
    text = str(value) if isinstance(value, float) else "nan"
    assert to_table(entries, lenient=True) == Table((("a", Field("A", (Field("S", text),))),))


@pytest.mark.parametrize("name", [b"qpid.subject", b"x-jms-type"])
def test_two_names_hold_text(name: bytes) -> None:
    """Qpid's C++ clients write text as vbin16."""
    assert to_table(Map(((name, Value(0x90, b"text")),))).entries[0][1] == Field("S", "text")
    assert to_table(Map(((name, Value(0x90, b"\xff")),))).entries[0][1] == Field("S", b"\xff")
    assert to_table(Map(((name, Value(0x02, 5)),))).entries[0][1] == Field("B", 5)
    assert to_table(Map(((name + b".", Value(0x90, b"text")),))).entries[0][1] == Field("x", b"text")


def test_the_last_of_several_values_counts_in_0_10() -> None:
    """As with Qpid. What judges a table goes by the first, so that there must be no other."""
    hidden = Map(((b"a", Value(0x02, 1)), (b"b", Value(0x02, 2)), (b"a", Value(0x95, b"evil"))))
    table = to_table(Map((*hidden.entries, (b"c", Value(0xA8, hidden)))))
    inner = Table((("a", Field("S", "evil")), ("b", Field("B", 2))))
    assert table == Table((*inner.entries, ("c", Field("F", inner))))


def test_the_first_of_several_values_counts_in_0_9_1() -> None:
    hidden = Table((("a", Field("B", 1)), ("b", Field("B", 2)), ("a", Field("S", "evil"))))
    found = from_table(Table((*hidden.entries, ("c", Field("F", hidden)))))
    inner = Map(((b"a", Value(0x02, 1)), (b"b", Value(0x02, 2))))
    assert found == Map((*inner.entries, (b"c", Value(0xA8, inner))))


def test_a_name_that_is_no_utf_8_comes_out_as_it_was() -> None:
    entries = Map(((b"\xff\xc3", Value(0x02, 1)), ("ä".encode(), Value(0x02, 2)), (b"", Value(0x02, 3))))
    table = to_table(entries)
    assert from_table(table) == entries
    encoded = put_table(table)
    assert get_table(encoded, 0, len(encoded))[0] == table


def test_nothing_and_no_entries() -> None:
    assert to_table(None) == to_table(EMPTY_MAP) == EMPTY_TABLE
    assert from_table(EMPTY_TABLE) == EMPTY_MAP


def _decoded(table: Table) -> Table:
    encoded = put_table(table)
    found, end = get_table(encoded, 0, len(encoded))
    assert end == len(encoded)
    return found


@given(MAP)
def test_every_map_is_a_table_that_rabbitmq_reads(entries: Map) -> None:
    table = to_table(entries, lenient=True)
    assert _decoded(table) == table
    assert {name for name, _ in table} == {
        key.decode("utf-8", "surrogateescape") for key, _ in entries.entries
    }
    assert len(table) == len({key for key, _ in entries.entries})
    # What has crossed once crosses again as it is.
    again = to_table(from_table(table), lenient=True)
    assert from_table(again) == from_table(table)


@given(TABLE)
def test_every_table_is_a_map(table: Table) -> None:
    entries = from_table(table)
    encoded = put_map(entries)
    assert get_map(encoded, 0, len(encoded)) == (entries, len(encoded))
    assert len(entries.entries) == len({name for name, _ in table})
    for key, value in entries.entries:
        field = table.field(key.decode())
        assert field is not None
        assert value == value_of(field)


#: Letters whose values come back as they were.
_EXACT_LETTERS = frozenset("tbBsuIilfdDSxTV")


def _is_exact(field: Field) -> bool:
    if isinstance(field.value, tuple):
        return all(map(_is_exact, field.value))
    if isinstance(field.value, Table):
        names = [name for name, _ in field.value]
        return len(set(names)) == len(names) and all(_is_exact(inner) for _, inner in field.value)
    if field.tag == "S":
        return isinstance(field.value, str)
    return field.tag in _EXACT_LETTERS


@given(st.dictionaries(SHORTSTR, (SCALAR | FIELD).filter(_is_exact), max_size=4))
def test_from_0_9_1_and_back(fields: dict[str, Field]) -> None:
    table = Table(tuple(fields.items()))
    assert to_table(from_table(table)) == table


_EXACT_CODES = [
    code for code in CONTENTS if code in {0x01, 0x02, 0x11, 0x12, 0x21, 0x22, 0x31, 0x38, 0xA0, 0xF0}
]
_EXACT_VALUES = st.one_of(
    st.sampled_from(_EXACT_CODES).flatmap(lambda code: st.builds(Value, st.just(code), CONTENTS[code])),
    st.builds(Value, st.just(TypeCode.BOOLEAN), st.booleans()),
    st.builds(Value, st.just(TypeCode.STR16), SHORTSTR.map(str.encode)),
    st.builds(
        Value,
        st.just(TypeCode.DEC32),
        CONTENTS[TypeCode.DEC32].filter(lambda number: isinstance(number, Decimal) and number >= 0),
    ),
    st.builds(
        Value,
        st.sampled_from([TypeCode.FLOAT, TypeCode.DOUBLE]),
        st.floats(width=32).filter(isfinite),
    ),
)


def _exact_maps(values: st.SearchStrategy[Value]) -> st.SearchStrategy[Map]:
    keys = st.binary(max_size=255)
    return st.dictionaries(keys, values, max_size=4).map(lambda entries: Map(tuple(entries.items())))


_EXACT_MAPS = _exact_maps(
    st.recursive(
        _EXACT_VALUES,
        lambda inner: st.one_of(
            _exact_maps(inner).map(lambda entries: Value(TypeCode.MAP, entries)),
            st.lists(inner, max_size=3).map(lambda items: Value(TypeCode.LIST, tuple(items))),
        ),
        max_leaves=6,
    )
)


@given(_EXACT_MAPS)
def test_from_0_10_and_back(entries: Map) -> None:
    assert from_table(to_table(entries)) == entries


def test_values_as_deep_as_either_side_takes_them() -> None:
    """32 levels come from 0-10, and 64 from 0-9-1."""
    entries = Map(((b"", Value(TypeCode.VOID, None)),))
    for _ in range(31):
        entries = Map(((b"", Value(TypeCode.MAP, entries)),))
    encoded = put_map(entries)
    table = to_table(get_map(encoded, 0, len(encoded))[0])
    assert _decoded(table) == table
    assert from_table(table) == entries
    for _ in range(32):
        table = Table((("", Field("F", table)),))
    assert to_table(from_table(_decoded(table))) == table
