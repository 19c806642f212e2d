"""Hypothesis strategies for values of AMQP 0-10, as wide as the wire allows."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

from hypothesis import strategies as st

from amqpgate.wire.generated.v0_10 import ReplyTo, Xid
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.sequences import SequenceSet, serial_add
from amqpgate.wire.v0_10.types import Array, Content, Map, Value

BIT = st.booleans()
UINT8 = st.integers(0, 2**8 - 1)
UINT16 = st.integers(0, 2**16 - 1)
UINT32 = st.integers(0, 2**32 - 1)
UINT64 = st.integers(0, 2**64 - 1)
DATETIME = UINT64
SEQUENCE_NO = UINT32
UUID = st.binary(min_size=16, max_size=16)
VBIN8 = STR8 = st.binary(max_size=255) | st.binary(max_size=9)
VBIN16 = VBIN32 = STR16 = BYTE_RANGES = STRUCT32 = st.binary(max_size=300) | st.binary(max_size=9)


def _set(first: int, marks: set[int]) -> SequenceSet:
    """Each two marks are the ends of a range."""
    ordered = sorted(marks)
    ends = [serial_add(first, mark) for mark in ordered[: len(ordered) & ~1]]
    return SequenceSet(tuple(pair for number, pair in enumerate(pairwise(ends)) if number % 2 == 0))


SEQUENCE_SET = st.builds(_set, SEQUENCE_NO, st.sets(st.integers(0, 2**31 - 1), max_size=12))

#: How wide the values of a code are that nobody knows, or the lengths before them.
_WIDTHS = {0: 1, 1: 2, 2: 4, 3: 8, 4: 16, 5: 32, 6: 64, 7: 128, 0xC: 5, 0xD: 9, 0xF: 0}
_LENGTHS = (8, 9, 0xA)


def _decimals(bits: int) -> st.SearchStrategy[Decimal]:
    def made(places: int, mantissa: int) -> Decimal:
        return Decimal((int(mantissa < 0), tuple(map(int, str(abs(mantissa)))), -places))

    return st.builds(made, UINT8, st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))


def _signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


#: By code: what a value holds, less maps, lists and arrays.
CONTENTS: dict[int, st.SearchStrategy[Content]] = {
    **{
        half << 4 | low: st.binary(min_size=width, max_size=width)
        for half, width in _WIDTHS.items()
        for low in range(16)
    },
    **{half << 4 | low: st.binary(max_size=20) for half in _LENGTHS for low in range(16)},
    TypeCode.INT8: _signed(8),
    TypeCode.UINT8: UINT8,
    TypeCode.BOOLEAN: BIT | st.integers(2, 255),
    TypeCode.INT16: _signed(16),
    TypeCode.UINT16: UINT16,
    TypeCode.INT32: _signed(32),
    TypeCode.UINT32: UINT32,
    TypeCode.FLOAT: st.floats(width=32, allow_nan=False)
    | st.sampled_from([b"\x7f\x80\0\1", b"\xff\xc0\0\0"]),
    TypeCode.INT64: _signed(64),
    TypeCode.UINT64: UINT64,
    TypeCode.DOUBLE: st.floats(allow_nan=False) | st.just(b"\x7f\xf0\0\0\0\0\0\1"),
    TypeCode.DATETIME: UINT64,
    TypeCode.DEC32: _decimals(32),
    TypeCode.DEC64: _decimals(64),
    TypeCode.VOID: st.none(),
    TypeCode.BIT: st.just(True),
}
for _code in (TypeCode.MAP, TypeCode.LIST, TypeCode.ARRAY):
    del CONTENTS[_code]

_SCALARS = st.sampled_from(sorted(CONTENTS)).flatmap(
    lambda code: st.builds(Value, st.just(code), CONTENTS[code])
)
_ARRAYS = st.sampled_from(sorted(CONTENTS)).flatmap(
    lambda code: st.lists(CONTENTS[code], max_size=3).map(lambda items: Array(code, tuple(items)))
)
_KEYS = st.binary(max_size=3) | st.binary(max_size=255)


def _within(values: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    maps, lists = _maps(values), st.lists(values, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Value, st.just(TypeCode.MAP), maps),
        st.builds(Value, st.just(TypeCode.LIST), lists),
        st.builds(Value, st.just(TypeCode.ARRAY), _ARRAYS),
        st.lists(maps, max_size=2).map(
            lambda items: Value(TypeCode.ARRAY, Array(TypeCode.MAP, tuple(items)))
        ),
        st.lists(lists, max_size=2).map(
            lambda items: Value(TypeCode.ARRAY, Array(TypeCode.LIST, tuple(items)))
        ),
    )


def _maps(values: st.SearchStrategy[Value]) -> st.SearchStrategy[Map]:
    """Keys may repeat."""
    return st.lists(st.tuples(_KEYS, values), max_size=4).map(lambda entries: Map(tuple(entries)))


VALUE = st.recursive(_SCALARS, _within, max_leaves=6)
MAP = _maps(VALUE)
ARRAY = _ARRAYS | st.lists(MAP, max_size=2).map(lambda items: Array(TypeCode.MAP, tuple(items)))

REPLY_TO = st.builds(ReplyTo, exchange=st.none() | STR8, routing_key=st.none() | STR8)
XID = st.builds(Xid, format=st.none() | UINT32, global_id=st.none() | VBIN8, branch_id=st.none() | VBIN8)
