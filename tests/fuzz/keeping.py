"""Which inputs of a grown corpus are kept: few and short ones that reach what no seed and no other does."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import amqpgate
from tests.fuzz import store

_ROOT = str(Path(amqpgate.__file__).parent)
#: Seconds for choosing, of one target; and how long one input may take in the regressions.
PATIENCE = 120.0
SLOW = 0.1
#: Inputs of one target; and of one that plays with a whole gateway.
MOST, MOST_PLAYED = 60, 40


def keep(name: str, work: Path) -> str:
    """Put the chosen ones in the place of the corpus that is kept; a line about it."""
    target = store.load(name)
    folder = store.CORPUS / name
    seeds = {data[: target.MOST] for data in target.seeds()}
    candidates = {*store.inputs(folder), *store.inputs(work / "corpus")} - seeds
    end = time.monotonic() + PATIENCE
    reached: set[tuple[str, int, int]] = set()
    chosen: list[bytes] = []
    size = 0
    # The seeds need not be kept: they are made anew.
    for data in (*sorted(seeds, key=len), *sorted(candidates, key=len)):
        if time.monotonic() > end or len(chosen) == (MOST_PLAYED if name in store.BOTH_ENGINES else MOST):
            break
        began = time.monotonic()
        try:
            arcs = arcs_of(target, data)
        except (Exception, BaseExceptionGroup):  # A crash has a place of its own.
            continue
        took = time.monotonic() - began
        if arcs <= reached or size + len(data) > store.KEPT_BYTES or took > 20 * SLOW:
            continue
        reached |= arcs
        if data not in seeds:
            chosen.append(data)
            size += len(data)
    shutil.rmtree(folder, ignore_errors=True)
    for data in chosen:
        store.put(folder, data)
    return f"{name}: {len(chosen)} of {len(candidates)} inputs, {size} bytes, {len(reached)} steps"


def arcs_of(target: store.Target | ModuleType, data: bytes) -> set[tuple[str, int, int]]:
    """The steps from line to line of the gateway's Python that an input takes."""
    found: set[tuple[str, int, int]] = set()

    def called(frame: FrameType, _event: str, _arg: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(_ROOT):
            return None
        last = -frame.f_code.co_firstlineno

        def stepped(frame: FrameType, event: str, _arg: Any) -> Any:
            nonlocal last
            if event == "line":
                found.add((file, last, frame.f_lineno))
                last = frame.f_lineno
            return stepped

        return stepped

    sys.settrace(called)
    try:
        target.check(data)
    finally:
        sys.settrace(None)
    return found
