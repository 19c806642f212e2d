"""Tasks of trio's that go on beside all else."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from amqpgate.logs import log_failure

log = logging.getLogger(__name__)

#: Seconds until what has failed begins anew.
AGAIN: Final = 1.0


async def contained(whose: str, task: Callable[[], Awaitable[None]]) -> None:
    """Run a task whose fault ends nothing else: it is logged as one of ``whose`` tasks."""
    try:
        await task()
    except Exception:
        log_failure(log, "a task of %s failed", whose)


async def kept(whose: str, task: Callable[[], Awaitable[None]]) -> None:
    """Run a task that goes on for as long as the process does: what fails begins anew, a moment later."""
    while True:
        try:
            await task()
            return
        except Exception:
            log_failure(log, "a task of %s failed, and begins anew", whose)
        with contextlib.suppress(MemoryError):
            await trio.sleep(AGAIN)
