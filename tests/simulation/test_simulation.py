"""The simulation itself: some seconds by a fresh seed, stories that were kept, and that it repeats itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

STORIES = sorted(Path(__file__).with_name("stories").glob("*.json"))


def simulate(*options: str) -> tuple[int, str]:
    """Its exit code, and what it says."""
    command = [sys.executable, "-m", "tests.simulation", *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def trace(said: str) -> str:
    return next(line.partition(";")[0] for line in said.splitlines() if line.startswith("trace "))


def test_a_fresh_seed(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = simulate("--seconds", "6", "--each", "20", "--shrinking", "20")
    with capsys.disabled():
        print("\n" + said.splitlines()[0])
    assert code == 0, said


@pytest.mark.parametrize("seed", ["again", "and again"])
def test_a_seed_is_the_same_each_time(seed: str) -> None:
    first, second = (simulate("--once", "--seed", seed, "--each", "20") for _ in range(2))
    assert first[0] == 0, first[1]
    assert trace(first[1]) == trace(second[1])


def test_another_seed_is_another_story() -> None:
    first, second = (simulate("--once", "--seed", seed, "--each", "20")[1] for seed in ("one", "two"))
    assert trace(first) != trace(second)


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_stories_that_were_kept(path: Path) -> None:
    code, said = simulate("--story", str(path))
    assert code == 0, said
