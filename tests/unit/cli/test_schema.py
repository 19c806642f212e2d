"""Schemas on the command line: those that are committed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from amqpgate.cli import main

SHIPPED = Path(__file__).parents[3] / "spec/schema"


@pytest.mark.parametrize(
    ("kind", "file"),
    [("settings", "config.json"), ("AccessPolicy", "access-policy.json"), ("ratepolicy", "rate-policy.json")],
)
def test_it_prints_what_is_shipped(kind: str, file: str) -> None:
    done = CliRunner().invoke(main, ["schema", kind])
    assert done.exit_code == 0
    assert json.loads(done.output) == json.loads((SHIPPED / file).read_text())


def test_it_lists_the_kinds() -> None:
    listed = CliRunner().invoke(main, ["schema"]).output.splitlines()
    assert listed[:2] == ["settings", "AccessPolicy"]
    assert all(CliRunner().invoke(main, ["schema", kind]).exit_code == 0 for kind in listed)


def test_a_kind_that_is_none_is_told() -> None:
    done = CliRunner().invoke(main, ["schema", "AcessPolicy"])
    assert done.exit_code == 2
    assert "(did you mean 'AccessPolicy'?); there are settings, AccessPolicy, " in done.output


def test_half_a_kind_is_found_without_its_end() -> None:
    for word, kind in (("Acess", "AccessPolicy"), ("rates", "RatePolicy"), ("polcytest", "PolicyTest")):
        assert f"(did you mean '{kind}'?)" in CliRunner().invoke(main, ["schema", word]).output
    assert "did you mean" not in CliRunner().invoke(main, ["schema", "xyz"]).output
