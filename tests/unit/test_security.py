"""SECURITY.md names tests that exist, and settings that there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from amqpgate.config import describe

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text()
TESTS = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)
KEYS = re.findall(r"`((?:limits|listeners|upstreams|admin)(?:\[\])?\.[\w.\[\]]+)`", TEXT)


@pytest.mark.parametrize(("path", "name"), TESTS)
def test_every_test_that_is_named_exists(path: str, name: str) -> None:
    tree = ast.parse((ROOT / path).read_text())
    defined = {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert name in defined


@pytest.mark.parametrize("key", sorted(set(KEYS)))
def test_every_setting_that_is_named_exists(key: str) -> None:
    assert f"| `{key}` |" in describe()


def test_every_promise_has_its_test() -> None:
    promises = [
        line
        for table in TEXT.split("| promise | test |\n|---|---|\n")[1:]
        for line in table.partition("\n\n")[0].splitlines()
    ]
    bare = [line for line in promises if not re.search(r"`tests/.*::\w+` \|$", line)]
    assert len(promises) > 20
    assert not bare


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)", TEXT):
        assert (ROOT / link).exists(), link
