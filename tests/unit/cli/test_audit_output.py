"""Cells of CSV: names that clients chose are no formulas."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from pathlib import Path
from typing import Literal

import pytest

from amqpgate.cli.audit_output import _cell, _word, replaced, write_rows


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1+1", "@SUM(A1)", "\tx", "\rx", "\nx"])
def test_a_spreadsheet_does_not_reckon_with_what_a_client_wrote(name: str) -> None:
    assert _cell(name) == f"'{name}"
    assert _cell([name, "b"]) == f"'{name} b"


@pytest.mark.parametrize("name", ["\uff1d1+1", "\uff0b1", "\uff0d1", "\uff201"])
def test_nor_with_the_wide_letters_of_a_formula(name: str) -> None:
    assert _cell(name) == f"'{name}"


@pytest.mark.parametrize("separator", [";", ",", "|", "\t", "\n", '"', "';", '","', "; "])
def test_a_cell_that_begins_within_a_name_is_no_formula(separator: str) -> None:
    """Where a spreadsheet splits by semicolons, and does not heed quotes."""
    assert _cell(f"x{separator}=1+1") == f"x{separator}'=1+1"


def test_blanks_before_a_formula_do_not_hide_it() -> None:
    assert _cell(" =1+1") == " '=1+1"


def test_numbers_and_other_texts_stay_as_they_are() -> None:
    assert [_cell(value) for value in (-5, -0.5, None, True, "orders", "a=b")] == [
        -5,
        -0.5,
        None,
        True,
        "orders",
        "a=b",
    ]
    plain = "a-b, c-d; order.*.created +1"
    assert _cell(plain) == plain


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n", "\n\r"])
def test_ends_of_lines_within_a_name_end_no_row(end: str) -> None:
    out = io.StringIO()
    write_rows(["name", "of"], [[f"a{end}b", "1"], [f"{end}a", "2"]], "csv", out)
    rows = list(csv.reader(io.StringIO(out.getvalue(), newline="")))
    assert rows == [["name", "of"], [f"a{end}b", "1"], [f"'{end}a", "2"]]
    assert out.getvalue().startswith("name,of\n")


def test_money_is_written_as_it_is() -> None:
    for form, expected in (("csv", "cost\n0.000000000\n1234.500000000\n"), ("json", None)):
        out = io.StringIO()
        write_rows(["cost"], [[Decimal("0E-9")], [Decimal("1234.500000000")]], form, out)  # type: ignore[arg-type]
        assert out.getvalue() == (expected or '{"cost": "0.000000000"}\n{"cost": "1234.500000000"}\n')
    assert _word(Decimal("1234.500049999")) == "1,234.5000"


def test_people_see_every_letter() -> None:
    assert _word("shop\u202egpj") == "shop\\u202egpj"


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_half_a_character_can_be_written(form: Literal["table", "csv", "json"], tmp_path: Path) -> None:
    """A file of definitions may have it: JSON can say so."""
    file = tmp_path / "out"
    with replaced(str(file)) as out:
        write_rows(["name"], [["a\ud800b"], ["\u00e9"]], form, out)
    text = file.read_text(encoding="utf-8")
    assert "ud800" in text
    assert "\u00e9" in text
