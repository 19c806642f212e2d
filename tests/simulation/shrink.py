"""The shortest story that fails alike: fewer faults, fewer clients, less of each, the plainest set-up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from tests.simulation.play import Outcome
from tests.simulation.story import ClientPlan, Setup, Story

#: What of a client may be made less, and to what.
_LESS: tuple[tuple[str, object], ...] = (
    ("channels", 1), ("burst", 1), ("sizes", 2), ("secret", 0.0), ("silent", 0.0), ("fickle", 600),
    ("confirms", 0.0), ("confirms", 1.0), ("rest", 40), ("stay", 3000), ("prefetch", 20), ("work", 0.001),
)  # fmt: skip


def shrink(failed: Outcome, run: Callable[[Story], Outcome], *, until: Callable[[], bool]) -> Outcome:
    """Try smaller stories for as long as one of them fails alike, and not longer than ``until`` is true."""
    best, changed = failed, True
    while changed and not until():
        changed = False
        for story in _smaller(best):
            if until():
                break
            outcome = run(story)
            if outcome.kind == failed.kind:
                best, changed = outcome, True
                break
    return best


def _smaller(outcome: Outcome) -> Iterator[Story]:
    story, end = outcome.story, outcome.virtual
    faults = [fault for fault in story.faults if fault.at <= end]
    if len(faults) < len(story.faults):
        yield attrs.evolve(story, faults=faults)
        return
    size = len(faults)
    while size:
        for start in range(0, len(faults), size):
            yield attrs.evolve(story, faults=faults[:start] + faults[start + size :])
        size //= 2
    clients = story.clients
    size = len(clients) // 2
    while size:
        for start in range(0, len(clients), size):
            kept = clients[:start] + clients[start + size :]
            names = {"", "a", "b", *(one.name for one in kept)}
            yield attrs.evolve(story, clients=kept, faults=[one for one in faults if one.target in names])
        size //= 2
    for field in attrs.fields(Setup):
        if field.name not in ("brokers", "engine") and getattr(story.setup, field.name) != field.default:
            yield attrs.evolve(story, setup=attrs.evolve(story.setup, **{field.name: field.default}))
    for number, client in enumerate(clients):
        for name, value in _LESS:
            if getattr(client, name) != value:
                less: ClientPlan = attrs.evolve(client, **{name: value})
                yield attrs.evolve(story, clients=[*clients[:number], less, *clients[number + 1 :]])
    if end < 0.7 * story.seconds:
        yield attrs.evolve(story, seconds=round(end + 1, 3))
