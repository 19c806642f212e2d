"""Plays one story in a process of its own; what became of it."""

from __future__ import annotations

import gc
import hashlib
import json
import re
import traceback
from collections import Counter
from typing import Any

import attrs

from tests.simulation.story import Story


@attrs.frozen
class Outcome:
    """Of one story."""

    story: Story
    #: "" all held; else what did not.
    failure: str
    #: The same for failures that are alike.
    kind: str
    digest: str
    virtual: float
    figures: dict[str, int]
    happened: dict[str, int]
    lines: list[str]
    #: Seconds of CPU that it has taken, where a process of its own has played it.
    cpu: float = 0.0

    def to_json(self) -> str:
        return json.dumps(attrs.asdict(self, recurse=False) | {"story": self.story.to_json()})

    @classmethod
    def from_json(cls, text: str) -> Outcome:
        told: dict[str, Any] = json.loads(text)
        return cls(**(told | {"story": Story.from_json(told["story"])}))


def play(story: Story, *, aloud: bool = False) -> Outcome:
    """Play it; amqpgate is imported, and the seams are in place."""
    from tests.simulation.ledger import Violation
    from tests.simulation.world import World

    gc.collect()
    # The ledger keeps all that was ever said: looking through it for garbage finds none.
    gc.set_threshold(100_000, 50, 1000)
    world = World(story, aloud=aloud)
    failure = kind = ""
    try:
        world.run()
    except Exception as error:
        if isinstance(error, Violation):
            failure = f"Violation: {error}"
        else:
            failure = "".join(traceback.format_exception(error))
        kind = _kind(failure.strip().splitlines()[-1])
    finally:
        world.close()
    faults = world.happened + Counter()
    return Outcome(
        story,
        failure,
        kind,
        hashlib.sha256(f"{world.network.digest} {failure}".encode()).hexdigest()[:16],
        world.clock.now - 1000,
        dict(world.checks.figures()),
        dict(faults),
        world.lines,
    )


def _kind(line: str) -> str:
    """What is alike in failures that are."""
    return re.sub(r"[0-9a-f]*[0-9][0-9a-f]*", "#", line)[:60]
