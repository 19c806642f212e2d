"""Tasks of trio's that go on beside all else."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)


async def contained(whose: str, task: Callable[[], Awaitable[None]]) -> None:
    """Run a task whose fault ends nothing else: it is logged as one of ``whose`` tasks."""
    try:
        await task()
    except Exception:
        log.exception("a task of %s failed", whose)
