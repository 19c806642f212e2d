"""The ports that tests hand out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ports

ROOT = Path(__file__).parents[2]


def test_two_test_runs_have_no_port_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    only = ports.free_port()
    # As if it had not been this process.
    ports._taken.remove(only)
    other = (
        "from tests.support import ports\n"
        f"ports._LOWEST = ports._HIGHEST = {only}\n"
        "try: print(ports.free_port())\n"
        "except RuntimeError: print('none')\n"
    )
    monkeypatch.setattr(ports, "_LOWEST", only)
    monkeypatch.setattr(ports, "_HIGHEST", only)

    def ask_other() -> str:
        return subprocess.run(
            [sys.executable, "-c", other], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert ask_other() == "none"
    assert ports.free_port() == only
    with pytest.raises(RuntimeError):
        ports.free_port()


def test_a_port_is_free_again_when_its_test_run_is_over() -> None:
    code = "from tests.support import ports; print(ports.free_port())"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not ports._is_others(int(ended.stdout))
