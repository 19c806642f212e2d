"""The simulation itself: some seconds by a fresh seed, stories that were kept, and that it repeats itself."""

from __future__ import annotations

import random
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


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> Path:
    """Where a fresh seed's stories are kept that have failed."""
    return Path(request.config.rootpath, "build/simulation/fresh")


@pytest.mark.parametrize(
    ("engine", "brokers"), [("plain", "0-9-1"), ("compiled", "0-9-1"), ("compiled", "0-10")]
)
def test_a_fresh_seed(engine: str, brokers: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A story that failed is played again each time, until it holds: no second run takes it for chance."""
    for path in sorted(folder.glob(f"{engine}-{brokers}-*.json")):
        code, said = simulate("--story", str(path))
        assert code == 0, f"{path} failed before, and fails again\n{said}"
        path.unlink()
    seed = f"{engine}-{brokers}-{random.SystemRandom().getrandbits(32):08x}"
    with capsys.disabled():
        print(f"\nsimulation: SEED={seed}")
    words = ("--engine", engine, "--brokers", brokers, "--seed", seed, "--out", str(folder))
    code, said = simulate(*words, "--seconds", "4", "--each", "20", "--shrinking", "20")
    assert code == 0, f"seed {seed}, kept in {folder}\n{said}"


@pytest.mark.parametrize(
    ("engine", "brokers"), [("plain", "0-9-1"), ("compiled", "0-9-1"), ("compiled", "0-10")]
)
def test_a_seed_is_the_same_each_time(engine: str, brokers: str) -> None:
    words = ("--engine", engine, "--brokers", brokers, "--once", "--seed", f"again, {engine}", "--each", "20")
    first, second = (simulate(*words) for _ in range(2))
    assert first[0] == 0, first[1]
    assert trace(first[1]) == trace(second[1])


def test_another_seed_is_another_story() -> None:
    first, second = (simulate("--once", "--seed", seed, "--each", "20")[1] for seed in ("one", "two"))
    assert trace(first) != trace(second)


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_stories_that_were_kept(path: Path) -> None:
    code, said = simulate("--story", str(path))
    assert code == 0, said
