"""Print the figures and each path, file by file; `--update` writes the figures into docs/architecture.md."""

from __future__ import annotations

import sys

from .figures import SCENES, update
from .record import Trace


def _print(name: str, trace: Trace) -> None:
    print(f"\n{name}: {trace.summary()}\n")
    for number, (file, functions) in enumerate(trace.legs, 1):
        print(f"{number:4} {file:40} {', '.join(functions)}")


def main() -> None:
    traces = {name: scene.play() for name, scene in SCENES.items()}
    for name, trace in traces.items():
        _print(name, trace)
    if "--update" in sys.argv[1:]:
        update(traces)


if __name__ == "__main__":
    main()
