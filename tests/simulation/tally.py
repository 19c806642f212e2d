"""What a run has come to: a line for each story, so that a run may be ended at any time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs

from tests.simulation.play import Outcome


@attrs.define
class Tally:
    """Of stories that were played."""

    stories: int = 0
    virtual: float = 0.0
    cpu: float = 0.0
    figures: Counter[str] = attrs.field(factory=Counter)
    happened: Counter[str] = attrs.field(factory=Counter)
    #: Seeds, and how each failed.
    failed: dict[str, str] = attrs.field(factory=dict)

    def add(self, outcome: Outcome) -> None:
        """One more."""
        self._take(_told(outcome))

    def _take(self, told: dict[str, Any]) -> None:
        self.stories += 1
        self.virtual += told["virtual"]
        self.cpu += told["cpu"]
        self.figures.update(told["figures"])
        self.happened.update(told["happened"])
        if told["failed"]:
            self.failed[told["seed"]] = told["failed"]

    @classmethod
    def of(cls, files: Iterable[Path]) -> Tally:
        """Of all that these files tell."""
        tally = cls()
        for told in _stories(files):
            tally._take(told)
        return tally

    def lines(self) -> list[str]:
        """For people."""
        faults = ", ".join(f"{name} {number}" for name, number in sorted(self.happened.items()))
        return [
            f"{self.virtual / 3600:.2f} virtual hours in {self.cpu:.0f} s of CPU, {self.stories} stories, "
            f"{len(self.failed)} failed",
            "  " + ", ".join(f"{name} {number}" for name, number in sorted(self.figures.items())),
            f"  faults: {faults or 'none'}",
            *(f"  FAILED {seed}: {how}" for seed, how in self.failed.items()),
        ]


def write(outcome: Outcome, file: Path) -> None:
    """Add its line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as end:
        end.write(json.dumps(_told(outcome)) + "\n")


def _told(outcome: Outcome) -> dict[str, Any]:
    return {
        "seed": outcome.story.seed,
        "virtual": outcome.virtual,
        "cpu": round(outcome.cpu, 3),
        "failed": outcome.failure.strip().splitlines()[-1] if outcome.failure else "",
        "figures": outcome.figures,
        "happened": outcome.happened,
    }


def _stories(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Each once; a line that was cut off is none."""
    seen = set[str]()
    for file in files:
        for line in file.read_text().splitlines():
            try:
                told = json.loads(line)
            except ValueError:
                continue
            if told["seed"] not in seen:
                seen.add(told["seed"])
                yield told
