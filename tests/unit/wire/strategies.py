"""Hypothesis strategies for wire values, as wide as the wire allows."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

from amqpgate.wire.tables import Field, Table

BIT = st.booleans()
OCTET = st.integers(0, 2**8 - 1)
SHORT = st.integers(0, 2**16 - 1)
LONG = st.integers(0, 2**32 - 1)
LONGLONG = st.integers(0, 2**64 - 1)

#: Any text whose UTF-8 fits a length octet; `st.text` makes no surrogates.
SHORTSTR = st.text(max_size=63, alphabet=st.characters(exclude_categories=["Cs"]))
LONGSTR = st.binary(max_size=40)

_LONG_TEXT = st.text(max_size=20, alphabet=st.characters(exclude_categories=["Cs"]))


def _as_decoded(data: bytes) -> str | bytes:
    """Long strings in tables are text where they can be."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


_DECIMAL = st.builds(
    lambda places, number: Decimal((0, tuple(map(int, str(number))), -places)),
    st.integers(0, 255),
    st.integers(0, 2**32 - 1),
)

#: Every type that RabbitMQ has, less tables and arrays.
SCALAR = st.one_of(
    st.builds(Field, st.just("t"), st.booleans()),
    st.builds(Field, st.just("b"), st.integers(-(2**7), 2**7 - 1)),
    st.builds(Field, st.just("B"), OCTET),
    st.builds(Field, st.just("s"), st.integers(-(2**15), 2**15 - 1)),
    st.builds(Field, st.just("u"), SHORT),
    st.builds(Field, st.just("I"), st.integers(-(2**31), 2**31 - 1)),
    st.builds(Field, st.just("i"), LONG),
    st.builds(Field, st.sampled_from("lL"), st.integers(-(2**63), 2**63 - 1)),
    st.builds(Field, st.just("f"), st.floats(width=32, allow_nan=False, allow_infinity=False)),
    st.builds(Field, st.just("d"), st.floats(allow_nan=False, allow_infinity=False)),
    st.builds(Field, st.just("D"), _DECIMAL),
    st.builds(Field, st.just("S"), _LONG_TEXT | LONGSTR.map(_as_decoded)),
    st.builds(Field, st.just("x"), LONGSTR),
    st.builds(Field, st.just("T"), LONGLONG),
    st.just(Field("V", None)),
)


def _table(fields: st.SearchStrategy[Field], size: int) -> st.SearchStrategy[Table]:
    """Names may repeat."""
    entries = st.lists(st.tuples(SHORTSTR, fields), max_size=size)
    return entries.map(lambda pairs: Table(tuple(pairs)))


FIELD = st.recursive(
    SCALAR,
    lambda inner: st.one_of(
        _table(inner, 3).map(lambda table: Field("F", table)),
        st.lists(inner, max_size=3).map(lambda items: Field("A", tuple(items))),
    ),
    max_leaves=6,
)

#: What RabbitMQ takes.
TABLE = _table(FIELD, 4)
