"""The Pythons that pyproject.toml lists are those that everything else speaks of, the oldest above all."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SAID = tomllib.loads((ROOT / "pyproject.toml").read_text())
LISTED = [
    int(found[1])
    for line in SAID["project"]["classifiers"]
    if (found := re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", line))
]
OLDEST = f"3.{LISTED[0]}"


def test_none_is_left_out() -> None:
    assert list(range(LISTED[0], LISTED[-1] + 1)) == LISTED


def test_the_oldest_is_what_tools_take_as_the_oldest() -> None:
    assert SAID["project"]["requires-python"] == f">={OLDEST}"
    assert SAID["tool"]["ruff"]["target-version"] == f"py3{LISTED[0]}"
    assert SAID["tool"]["mypy"]["python_version"] == OLDEST
    install = (ROOT / "tools/install.sh").read_text()
    # Pins are resolved for it and for all that came after.
    assert re.findall(r"--universal --python-version (\S+)", install) == [OLDEST] * 2
    assert f"sys.version_info < (3, {LISTED[0]})" in install


def test_the_documents_say_which() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        assert f"CPython {OLDEST} to 3.{LISTED[-1]}" in (ROOT / name).read_text()
    assert f"python3 ({OLDEST} to 3.{LISTED[-1]})" in (ROOT / "Makefile").read_text()
