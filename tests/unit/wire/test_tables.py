"""Tables as values: building, looking up, changing."""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from amqpgate.wire.tables import EMPTY_TABLE, Field, Table


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("text", Field("S", "text")),
        (b"\x00\xff", Field("x", b"\x00\xff")),
        (bytearray(b"a"), Field("x", b"a")),
        (True, Field("t", True)),
        (0, Field("I", 0)),
        (2**31 - 1, Field("I", 2**31 - 1)),
        (-(2**31), Field("I", -(2**31))),
        (2**31, Field("l", 2**31)),
        (-(2**63), Field("l", -(2**63))),
        (1.5, Field("d", 1.5)),
        (None, Field("V", None)),
        (Decimal("1.50"), Field("D", Decimal("1.50"))),
        (Decimal("1E+2"), Field("D", Decimal("100"))),
        (datetime(2024, 1, 1, tzinfo=UTC), Field("T", 1_704_067_200)),
        ({"a": 1}, Field("F", Table((("a", Field("I", 1)),)))),
        (OrderedDict(b=2), Field("F", Table((("b", Field("I", 2)),)))),
        ([1, "a"], Field("A", (Field("I", 1), Field("S", "a")))),
        ((), Field("A", ())),
        (Field("u", 7), Field("u", 7)),
        (EMPTY_TABLE, Field("F", EMPTY_TABLE)),
    ],
)
def test_python_values_get_the_types_of_rabbitmqs_clients(value: object, field: Field) -> None:
    made = Field.of(value)
    assert made == field
    assert type(made.value) is type(field.value)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (object(), TypeError),
        ({1, 2}, TypeError),
        (2**63, ValueError),
        (-(2**63) - 1, ValueError),
        (Decimal("-1"), ValueError),
        (Decimal(2**32), ValueError),
        (Decimal("1E-256"), ValueError),
        (Decimal("1E+20"), ValueError),
        (Decimal("NaN"), ValueError),
        (datetime(1969, 12, 31, tzinfo=UTC), ValueError),
    ],
)
def test_what_no_type_holds(value: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        Field.of(value)


def test_decimals_keep_their_places() -> None:
    made = Field.of(Decimal("1.50")).value
    assert isinstance(made, Decimal)
    assert made.as_tuple().exponent == -2


def test_get_gives_ordinary_python() -> None:
    moment = datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    table = Table.of({"n": 1, "deep": {"list": [None, {"x": b"\x00"}]}, "at": moment})
    assert table.get("n") == 1
    assert table.get("deep") == {"list": [None, {"x": b"\x00"}]}
    assert table.get("at") == datetime(2024, 1, 1, tzinfo=UTC)
    assert table.get("gone") is None
    assert table.get("gone", 5) == 5
    assert table.to_python() == {
        "n": 1,
        "deep": {"list": [None, {"x": b"\x00"}]},
        "at": datetime(2024, 1, 1, tzinfo=UTC),
    }


def test_timestamps_past_the_calendar_stay_numbers() -> None:
    assert Field("T", 253_402_300_799).plain == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert Field("T", 253_402_300_800).plain == 253_402_300_800
    assert Field("T", 2**64 - 1).plain == 2**64 - 1


def test_a_boolea_byte_of_two_is_true() -> None:
    assert Field("t", 2).plain is True


def test_the_first_of_two_counts() -> None:
    # AMQP 0-9-1, section 4.2.5.5: a peer must use the first instance of a duplicate field only.
    table = Table((("a", Field("I", 1)), ("b", Field("I", 2)), ("a", Field("I", 3))))
    assert table.get("a") == 1
    assert table.field("a") == Field("I", 1)
    assert table.to_python() == {"a": 1, "b": 2}
    assert len(table) == 3
    assert [name for name, _ in table] == ["a", "b", "a"]


def test_with_replaces_in_place_and_leaves_no_second() -> None:
    table = Table((("a", Field("I", 1)), ("b", Field("I", 2)), ("a", Field("I", 3))))
    changed = table.with_("a", "new")
    assert list(changed) == [("a", Field("S", "new")), ("b", Field("I", 2))]
    assert len(table) == 3
    assert list(table.with_("c", None))[-1] == ("c", Field("V", None))


def test_without_removes_every_one() -> None:
    table = Table((("a", Field("I", 1)), ("b", Field("I", 2)), ("a", Field("I", 3))))
    assert list(table.without("a")) == [("b", Field("I", 2))]
    assert table.without("x") == table


def test_membership_equality_and_hash() -> None:
    table = Table.of({"a": [1, {"b": 2}]})
    assert "a" in table
    assert "b" not in table
    assert 1 not in table
    assert table == Table.of({"a": [1, {"b": 2}]})
    assert table != Table.of({"a": [1, {"b": 3}]})
    assert table != {"a": [1, {"b": 2}]}
    assert hash(table) == hash(Table.of({"a": [1, {"b": 2}]}))
    assert Table.of({"a": 1}) != Table((("a", Field("l", 1)),))


def test_order_is_part_of_the_value() -> None:
    assert Table.of({"a": 1, "b": 2}) != Table.of({"b": 2, "a": 1})


def test_repr_shows_names_and_types() -> None:
    assert repr(Table.of({"a": 1, "b": "x"})) == "Table({'a': I:1, 'b': S:'x'})"
