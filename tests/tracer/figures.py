"""The table of docs/architecture.md: what each scene takes, what it took, and what it is to take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import attrs

from .record import Trace
from .scenes import close_of_a_denied_publish, denied_publish, handshake

DOCUMENT = Path(__file__).parents[2] / "docs/architecture.md"
BEGIN, END = "<!-- made by: python -m tests.tracer --update -->\n", "<!-- end of figures -->"


@attrs.frozen
class Scene:
    play: Callable[[], Trace]
    #: Calls and files when all modules of the gateway were in one folder, as it was counted then.
    before: str
    goal: str


SCENES = {
    "a denied publish until channel.close leaves": Scene(close_of_a_denied_publish, "151 in 32", "60 in 12"),
    "a denied publish until all is said": Scene(
        partial(denied_publish, observed=False), "not counted", "none set"
    ),
    "the same with audit and traces": Scene(
        partial(denied_publish, observed=True), "not counted", "none set"
    ),
    "a handshake with PLAIN": Scene(handshake, "994 in 60", "400 in 25"),
}


def figures(trace: Trace) -> tuple[int, int, int]:
    """Calls, files, moves between files."""
    return len(trace.calls), trace.files, trace.moves


def table(traces: Mapping[str, Trace]) -> str:
    """In Markdown."""
    lines = ["| scene | calls | files | moves between files | before (calls in files) | goal |"]
    lines.append("|---|---|---|---|---|---|")
    for name, trace in traces.items():
        calls, files, moves = figures(trace)
        scene = SCENES[name]
        lines.append(f"| {name} | {calls} | {files} | {moves} | {scene.before} | {scene.goal} |")
    return "\n".join(lines)


def documented() -> dict[str, tuple[int, int, int]]:
    """The figures of each scene as the document has them."""
    inside = DOCUMENT.read_text().partition(BEGIN)[2].partition(END)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in inside.strip().splitlines()[2:]]
    return {name: (int(calls), int(files), int(moves)) for name, calls, files, moves, *_ in rows}


def update(traces: Mapping[str, Trace]) -> None:
    """Write the table anew."""
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}\n{table(traces)}\n\n{END}{rest.partition(END)[2]}")
