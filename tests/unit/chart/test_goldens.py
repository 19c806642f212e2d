"""What the chart renders, kept to be read; ``python -m tests.unit.chart --update`` writes it anew."""

from __future__ import annotations

import pytest

from tests.unit.chart import chart_readme, values_schema
from tests.unit.chart.rendering import CASES, GOLDENS, golden, render_case


@pytest.mark.parametrize("case", CASES)
def test_it_renders_what_is_kept(case: str) -> None:
    assert golden(render_case(case)) == (GOLDENS / f"{case}.yaml").read_text()


def test_nothing_else_is_kept() -> None:
    assert {path.stem for path in GOLDENS.iterdir()} == set(CASES)


def test_the_readme_says_what_the_values_say() -> None:
    assert chart_readme.FILE.read_text() == chart_readme.made()


def test_the_values_schema_has_the_projects_own() -> None:
    assert values_schema.FILE.read_text() == values_schema.made()
