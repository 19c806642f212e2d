"""What the Dockerfile says, where that can be known without building it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.image.standin import requirements

ROOT = Path(__file__).parents[2]


def test_what_the_image_asserts_can_be_asked() -> None:
    # It is Python in a shell's line: neither mypy nor an import contract sees what it imports.
    scripts = re.findall(r"python -c '([^']+)'", (ROOT / "Dockerfile").read_text())
    assert scripts
    for script in scripts:
        asked = [node for node in ast.parse(script).body if isinstance(node, ast.Import | ast.ImportFrom)]
        assert asked
        exec(compile(ast.Module(asked, []), "Dockerfile", "exec"), {})


@pytest.mark.parametrize(
    ("extras", "has", "lacks"),
    [
        ("", [], ["pyjwt", "pyarrow"]),
        ("oauth", ["pyjwt"], ["pyarrow"]),
        ("audit,oauth", ["pyjwt", "pyarrow"], ["duckdb"]),
        ("pipeline,oauth", ["pyjwt", "pyarrow", "duckdb"], []),
    ],
)
def test_extras_are_a_list(extras: str, has: list[str], lacks: list[str]) -> None:
    text = " ".join(requirements(extras))
    assert [name for name in has if name not in text] == []
    assert [name for name in lacks if name in text] == []


def test_tokens_can_be_checked_by_what_is_built_without_a_word() -> None:
    (image,) = re.findall(r"(?m)^ARG EXTRAS=(.*)$", (ROOT / "Dockerfile").read_text())
    (package,) = re.findall(r"(?m)^extras=\$\{EXTRAS-(.*)\}$", (ROOT / "tools/deb.sh").read_text())
    assert (image, package) == ("oauth", "oauth")
