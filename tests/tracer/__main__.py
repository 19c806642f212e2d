"""Print the figures and each path, file by file; `--update` writes the figures into docs/architecture.md."""

from __future__ import annotations

import sys

from .figures import SCENES, update
from .record import Trace

#: Times that each scene is played.
PLAYS = 5


def _print(name: str, trace: Trace) -> None:
    print(f"\n{name}: {trace.summary()}\n")
    for number, (file, functions) in enumerate(trace.legs, 1):
        print(f"{number:4} {file:40} {', '.join(functions)}")


def main() -> None:
    # The longest of some: what has to wait for a peer more often walks farther.
    traces = {
        name: max((scene.play() for _ in range(PLAYS)), key=lambda trace: len(trace.calls))
        for name, scene in SCENES.items()
    }
    for name, trace in traces.items():
        _print(name, trace)
    if "--update" in sys.argv[1:]:
        update(traces)


if __name__ == "__main__":
    main()
