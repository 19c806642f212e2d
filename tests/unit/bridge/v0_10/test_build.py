"""Which codec serves: the compiled one wherever it was compiled; and the plain one does the same."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.compiled import CHOSEN, is_compiled

ROOT = Path(__file__).parents[4]
#: What the plain twins have to pass alone, too: those tests that go through whole connections.
PASSED = (
    "tests/unit/bridge/v0_10/native",
    "tests/unit/gateway/transport/test_method_stream_translated.py",
)


@pytest.mark.parametrize("module", CHOSEN)
def test_what_was_compiled_is_used(module: str) -> None:
    chooser, name = CHOSEN[module]
    chosen = getattr(importlib.import_module(chooser), name)
    # A class of Cython's says of which package it is, a function of which module.
    is_plain = getattr(importlib.import_module(chosen.__module__), "__file__", "").endswith(".py")
    assert is_plain is not is_compiled(module), f"{module} is there and cannot be imported: build it anew"


def test_all_that_is_compiled_is_known_to_these_tests() -> None:
    compiled = {
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for path in (ROOT / "src").rglob("*.pyx")
    }
    assert {name for name in compiled if not name.startswith("amqpgate.datapath.")} == set(CHOSEN)


@pytest.mark.skipif(
    not any(map(is_compiled, CHOSEN)), reason="nothing was compiled: all tests are of the plain code"
)
def test_the_plain_twins_pass_the_same_tests() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "tests.support.plain_only", *PASSED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stdout[-4000:]
