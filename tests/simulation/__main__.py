"""``python -m tests.simulation``: play seeds for some time, and shrink what fails."""

from __future__ import annotations

import os
import sys

# The order of sets of text, and where things are in memory, are the same in each run.
_FIXED = "AMQPGATE_SIMULATION"
if _FIXED not in os.environ:
    import ctypes

    os.environ |= {_FIXED: "1", "PYTHONHASHSEED": "0", "MALLOC_ARENA_MAX": "1"}
    _NO_RANDOM_ADDRESSES = 0x0040000
    ctypes.CDLL(None).personality(_NO_RANDOM_ADDRESSES)
    os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])

from time import perf_counter as now  # noqa: E402 - before it is another one

from tests.simulation import seams  # noqa: E402
from tests.simulation.story import engine_of  # noqa: E402

engine = seams.install(engine_of(sys.argv))

from tests.simulation.cli import main  # noqa: E402

sys.exit(main(now, engine))
