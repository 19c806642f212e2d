"""Cells of CSV: names that clients chose are no formulas."""

from __future__ import annotations

import pytest

from amqpgate.cli.audit_output import _cell, _word


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1+1", "@SUM(A1)", "\tx", "\rx", "\nx"])
def test_a_spreadsheet_does_not_reckon_with_what_a_client_wrote(name: str) -> None:
    assert _cell(name) == f"'{name}"
    assert _cell([name, "b"]) == f"'{name} b"


def test_numbers_and_other_texts_stay_as_they_are() -> None:
    assert [_cell(value) for value in (-5, -0.5, None, True, "orders", "a=b")] == [
        -5,
        -0.5,
        None,
        True,
        "orders",
        "a=b",
    ]


def test_people_see_every_letter() -> None:
    assert _word("shop\u202egpj") == "shop\\u202egpj"
