"""Typed values: bytes of every type, what is bounded, what is refused."""

from __future__ import annotations

import math
import tracemalloc
import xml.etree.ElementTree as ET
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.types import (
    DEPTH,
    EMPTY_MAP,
    EMPTY_VALUES,
    VALUES,
    Array,
    Content,
    Map,
    Value,
    get_array,
    get_map,
    put_array,
    put_map,
)
from tests.unit.wire.v0_10 import strategies as values

SPEC = Path(__file__).parents[4] / "spec/amqp/amqp0-10.qpid-errata.xml"

#: Code, what it is in Python, its bytes.
VECTORS: list[tuple[TypeCode, Content, str]] = [
    (TypeCode.BIN8, b"\xff", "ff"),
    (TypeCode.INT8, -128, "80"),
    (TypeCode.UINT8, 128, "80"),
    (TypeCode.CHAR, b"\xa4", "a4"),
    (TypeCode.BOOLEAN, True, "01"),
    (TypeCode.BOOLEAN, False, "00"),
    (TypeCode.BOOLEAN, 255, "ff"),
    (TypeCode.BIN16, b"\1\2", "0102"),
    (TypeCode.INT16, -2, "fffe"),
    (TypeCode.UINT16, 0xFFFE, "fffe"),
    (TypeCode.BIN32, b"\1\2\3\4", "01020304"),
    (TypeCode.INT32, -2, "fffffffe"),
    (TypeCode.UINT32, 0xFFFFFFFE, "fffffffe"),
    (TypeCode.FLOAT, 1.5, "3fc00000"),
    (TypeCode.FLOAT, -math.inf, "ff800000"),
    # Neither of them is a number, and the first would not survive as a float.
    (TypeCode.FLOAT, b"\x7f\x80\0\1", "7f800001"),
    (TypeCode.DOUBLE, b"\x7f\xf8\0\0\0\0\0\0", "7ff8000000000000"),
    (TypeCode.CHAR_UTF32, b"\0\1\xf6\0", "0001f600"),
    (TypeCode.BIN64, bytes(8), "00" * 8),
    (TypeCode.INT64, -(2**63), "8000000000000000"),
    (TypeCode.UINT64, 2**63, "8000000000000000"),
    (TypeCode.DOUBLE, 1.5, "3ff8000000000000"),
    # Seconds: the last of the year 9999.
    (TypeCode.DATETIME, 253_402_300_799, "0000003afff4417f"),
    (TypeCode.DATETIME, 2**64 - 1, "ffffffffffffffff"),
    (TypeCode.BIN128, bytes(range(16)), "000102030405060708090a0b0c0d0e0f"),
    (TypeCode.UUID, bytes(range(16)), "000102030405060708090a0b0c0d0e0f"),
    (TypeCode.BIN256, bytes(32), "00" * 32),
    (TypeCode.BIN512, bytes(64), "00" * 64),
    (TypeCode.BIN1024, bytes(128), "00" * 128),
    (TypeCode.VBIN8, b"\xff", "01 ff"),
    (TypeCode.STR8_LATIN, b"\xe9", "01 e9"),
    (TypeCode.STR8, b"\xc3\xa9", "02 c3a9"),
    (TypeCode.STR8_UTF16, b"\0\xe9", "02 00e9"),
    (TypeCode.VBIN16, b"", "0000"),
    (TypeCode.STR16_LATIN, b"\xe9", "0001 e9"),
    (TypeCode.STR16, b"\xff", "0001 ff"),
    (TypeCode.STR16_UTF16, b"\0\xe9", "0002 00e9"),
    (TypeCode.VBIN32, b"\1", "00000001 01"),
    (TypeCode.MAP, Map(), "00000004 00000000"),
    (TypeCode.MAP, Map(((b"k", Value(0x02, 7)),)), "00000008 00000001 01 6b 02 07"),
    (TypeCode.LIST, (), "00000004 00000000"),
    (TypeCode.LIST, (Value(0x02, 7), Value(0xF0, None)), "00000007 00000002 02 07 f0"),
    (TypeCode.ARRAY, Array(0x95, (b"a", b"")), "0000000a 95 00000002 0001 61 0000"),
    (TypeCode.ARRAY, Array(0xF0, (None, None)), "00000005 f0 00000002"),
    (TypeCode.ARRAY, Array(0xF1, (True,)), "00000005 f1 00000001"),
    (TypeCode.ARRAY, Array(0x48), "00000005 48 00000000"),
    # An xa-result, as dtx.recover has an array of them.
    (TypeCode.STRUCT32, b"\6\1\1\0\0\0", "00000006 060101000000"),
    (TypeCode.BIN40, bytes(5), "00" * 5),
    (TypeCode.DEC32, Decimal("-12.34"), "02 fffffb2e"),
    (TypeCode.DEC32, Decimal((0, (0,), -255)), "ff 00000000"),
    (TypeCode.BIN72, bytes(9), "00" * 9),
    (TypeCode.DEC64, Decimal(2**63 - 1), "00 7fffffffffffffff"),
    (TypeCode.VOID, None, ""),
    (TypeCode.BIT, True, ""),
]

#: Nobody has given these a meaning; their width is known all the same.
UNKNOWN: list[tuple[int, str]] = [
    (0x0F, "aa"),
    (0x1F, "aabb"),
    (0x2F, "aabbccdd"),
    (0x3F, "aa" * 8),
    (0x4F, "aa" * 16),
    (0x5F, "aa" * 32),
    (0x6F, "aa" * 64),
    (0x7F, "aa" * 128),
    (0x8F, "02 aabb"),
    (0x9F, "0002 aabb"),
    (0xAF, "00000002 aabb"),
    (0xCF, "aa" * 5),
    (0xDF, "aa" * 9),
    (0xFF, ""),
]


def in_map(code: int, data: str) -> bytes:
    """A map of one entry with the empty key."""
    entry = bytes((0, code)) + bytes.fromhex(data)
    return (4 + len(entry)).to_bytes(4, "big") + b"\0\0\0\1" + entry


def refusal(data: bytes) -> ProtocolViolation:
    with pytest.raises(ProtocolViolation) as caught:
        get_map(data, 0, len(data))
    return caught.value


def check_cuts(data: bytes) -> None:
    """All of it is needed, and nothing is looked at behind the end."""
    for size in range(len(data)):
        assert refusal(data[:size]).code == 503
        with pytest.raises(ProtocolViolation):
            get_map(data, 0, size)


@pytest.mark.parametrize(("code", "value", "raw"), VECTORS)
def test_every_type(code: TypeCode, value: Content, raw: str) -> None:
    data, expected = in_map(code, raw), Map(((b"", Value(code, value)),))
    assert get_map(data, 0, len(data)) == (expected, len(data))
    assert get_map(b"x" + data + b"x", 1, 1 + len(data)) == (expected, 1 + len(data))
    assert put_map(expected) == data
    (found,) = [one.value for _, one in get_map(data, 0, len(data))[0].entries]
    assert type(found) is type(value)
    check_cuts(data)


@pytest.mark.parametrize(("code", "value", "raw"), VECTORS)
def test_every_type_in_an_array(code: TypeCode, value: Content, raw: str) -> None:
    content = bytes((code, 0, 0, 0, 2)) + 2 * bytes.fromhex(raw)
    data = len(content).to_bytes(4, "big") + content
    assert get_array(data, 0, len(data)) == (Array(code, (value, value)), len(data))
    assert put_array(Array(code, (value, value))) == data


def test_the_types_of_the_standard_are_all_here() -> None:
    codes = {}
    for node in ET.parse(SPEC).getroot():
        if node.tag.endswith("}type") and node.get("code"):
            code = int(node.attrib["code"], 16)
            codes[code] = node
            fixed, variable = node.get("fixed-width"), node.get("variable-width")
            width = int(fixed or variable or "")
            # The upper half says it: that is why an unknown one can be stepped over.
            by_code = {0xC: 5, 0xD: 9, 0xF: 0}.get(code >> 4, 1 << (code >> 4 & 7))
            assert width == (by_code if fixed else 1 << (code >> 4 & 3)), node.attrib
    assert set(codes) == set(TypeCode) == {code for code, _, _ in VECTORS}


@pytest.mark.parametrize(("code", "raw"), UNKNOWN)
def test_unknown_types_are_kept(code: int, raw: str) -> None:
    data = in_map(code, raw)
    (entry,) = get_map(data, 0, len(data))[0].entries
    assert entry == (
        b"",
        Value(code, b"" if not raw else b"\xaa\xbb" if " " in raw else bytes.fromhex(raw)),
    )
    assert put_map(Map((entry,))) == data
    check_cuts(data)


@pytest.mark.parametrize("code", [0xB0, 0xBF, 0xE0, 0xEF])
def test_types_of_no_width(code: int) -> None:
    assert refusal(in_map(code, "00" * 20)).code == 503
    with pytest.raises(ProtocolViolation, match="whose width nobody knows"):
        get_array(b"\0\0\0\6" + bytes((code,)) + b"\0\0\0\1\0", 0, 10)


def test_what_stands_twice_stands_twice() -> None:
    twice = Map(((b"a", Value(0x02, 1)), (b"b", Value(0x02, 2)), (b"a", Value(0x02, 3))))
    assert get_map(put_map(twice), 0, len(put_map(twice)))[0] == twice
    # As Qpid's clients and brokers have it.
    assert twice.get(b"a") == Value(0x02, 3)
    assert twice.get(b"c") is None
    assert twice != Map((twice.entries[1], twice.entries[0], twice.entries[2]))


def test_keys_are_any_bytes() -> None:
    keys = Map(((b"\xff" * 255, Value(0xF0, None)), (b"", Value(0xF0, None))))
    assert get_map(put_map(keys), 0, len(put_map(keys)))[0] == keys
    with pytest.raises(ValueError, match="255 bytes"):
        put_map(Map(((b"k" * 256, Value(0xF0, None)),)))


# Qpid's Python client writes None as a map of no bytes.
def test_what_has_no_bytes_at_all() -> None:
    assert get_map(bytes(4), 0, 4) == (EMPTY_MAP, 4)
    assert get_array(bytes(4), 0, 4) == (Array(TypeCode.VOID), 4)
    data = in_map(TypeCode.LIST, "00000000")
    assert get_map(data, 0, len(data))[0] == Map(((b"", Value(TypeCode.LIST, ())),))
    # The one thing that does not come out as it came in: what is empty says so with a count.
    assert put_map(EMPTY_MAP) == bytes.fromhex("00000004 00000000")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("00000005 00000000 00", id="a byte behind the entries"),
        pytest.param("00000003 000000", id="no room for the count"),
        pytest.param("00000006 00000002 00f0", id="fewer entries than it says"),
        pytest.param("00000006 00000001 01f0", id="a key without a type"),
        pytest.param("00000006 00000001 02f0", id="a key behind the end"),
        pytest.param("00000005 00000001 00", id="a key and nothing else"),
        pytest.param("ffffffff 00000000", id="larger than what there is"),
        pytest.param("00000004 ffffffff", id="a count that lies"),
        pytest.param("0000000b 00000001 00 a8 00000004 00", id="a map longer than the map around it"),
        pytest.param("0000000a 00000001 00 a9 00000003 00", id="a list without room for a count"),
        pytest.param("0000000e 00000001 00 a9 00000004 00000001", id="a list of less than it says"),
        pytest.param("0000000f 00000001 00 a9 00000005 00000000 00", id="a list longer than its values"),
        pytest.param("0000000f 00000001 00 aa 00000005 02 00000001", id="an array of less than it says"),
        pytest.param("00000010 00000001 00 aa 00000006 02 00000000 00", id="an array longer than its values"),
        pytest.param("00000010 00000001 00 aa 00000006 12 00000001 00", id="an array cut within a value"),
    ],
)
def test_malformed_values(data: str) -> None:
    assert refusal(bytes.fromhex(data)).code == 503


def _memory_of(data: bytes) -> int:
    """The most bytes that reading it took, and whatever it raises is a violation."""
    tracemalloc.start()
    try:
        get_map(data, 0, len(data))
    except ProtocolViolation:
        pass
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return most


@pytest.mark.parametrize("code", [TypeCode.VOID, TypeCode.BIT, 0xF7])
def test_thousands_of_millions_of_nothing(code: int) -> None:
    data = in_map(TypeCode.ARRAY, f"00000005 {code:02x} ffffffff")
    assert refusal(data).code == 506
    assert _memory_of(data) < 20_000
    allowed = in_map(TypeCode.ARRAY, f"00000005 {code:02x} {EMPTY_VALUES:08x}")
    (entry,) = get_map(allowed, 0, len(allowed))[0].entries
    assert isinstance(entry[1].value, Array)
    assert len(entry[1].value.items) == EMPTY_VALUES
    assert refusal(in_map(TypeCode.ARRAY, f"00000005 {code:02x} {EMPTY_VALUES + 1:08x}")).code == 506


def test_a_large_count_is_kept_by_nobody() -> None:
    for raw in ("00000005 02 ffffffff", "00000005 a8 ffffffff", "00000005 95 00ffffff"):
        data = in_map(TypeCode.ARRAY, raw)
        assert refusal(data).code == 503
        assert _memory_of(data) < 20_000


def _nested(depth: int, code: int) -> bytes:
    """So many maps, lists or arrays within each other, in a map."""
    content = b""
    for _ in range(depth - 1):
        head = {
            TypeCode.MAP: b"\0\0\0\1\0\xa8",
            TypeCode.LIST: b"\0\0\0\1\xa9",
            TypeCode.ARRAY: b"\xaa\0\0\0\1",
        }
        content = (head[TypeCode(code)] if content else bytes(4)) + content
        content = len(content).to_bytes(4, "big") + content
    content = b"\0\0\0\1\0" + bytes((code,)) + content
    return len(content).to_bytes(4, "big") + content


@pytest.mark.parametrize("code", [TypeCode.MAP, TypeCode.LIST])
def test_what_is_nested_too_deep(code: int) -> None:
    deepest = _nested(DEPTH, code)
    assert put_map(get_map(deepest, 0, len(deepest))[0]) == deepest
    assert refusal(_nested(DEPTH + 1, code)).code == 506
    # As deep as a frame has room for: no stack is used up.
    assert refusal(_nested(5900, code)).code == 506


def test_beside_each_other_is_not_within() -> None:
    inner = (Value(0xA8, Map()), Value(0xA9, ()), Value(0xAA, Array(0x02)))
    many = Map(((b"", Value(0xA9, inner * DEPTH)),))
    assert get_map(put_map(many), 0, len(put_map(many)))[0] == many


def test_arrays_nested_too_deep() -> None:
    content = b"\xf0" + bytes(4)
    for _ in range(5900):
        content = b"\xaa\0\0\0\1" + len(content).to_bytes(4, "big") + content
    data = len(content).to_bytes(4, "big") + content
    with pytest.raises(ProtocolViolation) as caught:
        get_array(data, 0, len(data))
    assert caught.value.code == 506


def test_no_more_values_than_a_table_has() -> None:
    def of(count: int) -> bytes:
        return put_map(Map(((b"", Value(TypeCode.LIST, (Value(TypeCode.VOID, None),) * count)),)))

    assert get_map(of(VALUES - 1), 0, len(of(VALUES - 1)))[0].entries
    assert refusal(of(VALUES)).code == 506
    # Many that take no bytes, in many arrays that take few.
    empty = Array(TypeCode.VOID, (None,) * EMPTY_VALUES)
    many = put_map(Map(((b"", Value(TypeCode.ARRAY, Array(TypeCode.ARRAY, (empty,) * 7000))),)))
    assert len(many) < 65536
    assert refusal(many).code == 506
    assert _memory_of(many) < 3_000_000


def test_the_most_that_a_frame_can_ask_for() -> None:
    """The dearest values there are, as many as there may be."""
    cheap = Map(tuple((b"", Value(TypeCode.INT8, 5)) for _ in range(VALUES)))
    data = put_map(cheap)
    assert len(data) < 65536
    assert _memory_of(data) < 6_000_000


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (TypeCode.UINT8, b"four"),
        (TypeCode.UINT8, "1"),
        (TypeCode.UINT8, None),
        (TypeCode.STR16, "text"),
        (TypeCode.UUID, b"short"),
        (TypeCode.VOID, False),
        (TypeCode.BIT, False),
        (TypeCode.BOOLEAN, None),
        (TypeCode.BOOLEAN, 256),
        (TypeCode.MAP, ()),
        (TypeCode.LIST, EMPTY_MAP),
        (TypeCode.ARRAY, ()),
        (TypeCode.DEC32, 1),
        (TypeCode.DEC32, Decimal("NaN")),
        (0xB0, b""),
        (256, b""),
    ],
)
def test_values_that_are_not_of_their_type(code: int, value: Content) -> None:
    with pytest.raises(ValueError, match=r"is no value of type|range"):
        put_map(Map(((b"", Value(code, value)),)))


@given(values.MAP)
def test_any_map_there_and_back(value: Map) -> None:
    data = put_map(value)
    again, end = get_map(b"\xff" + data + b"\xff", 1, 1 + len(data))
    assert (again, end) == (value, 1 + len(data))
    assert put_map(again) == data


@given(values.ARRAY)
def test_any_array_there_and_back(value: Array) -> None:
    data = put_array(value)
    assert get_array(data, 0, len(data)) == (value, len(data))


@given(values.MAP, st.data())
def test_any_map_cut_anywhere(value: Map, data: st.DataObject) -> None:
    raw = put_map(value)
    size = data.draw(st.integers(0, len(raw) - 1))
    assert refusal(raw[:size]).code == 503
