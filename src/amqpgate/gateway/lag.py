"""A task that looks how late it is itself: so late is every other one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

#: Seconds between looks. A loop that stands still for longer is always seen; for half that, every other time.
INTERVAL: Final = 0.25


async def watch(late: Callable[[float], None]) -> None:
    """For ever; ``late`` is told each time by how many seconds."""
    while True:
        due = trio.current_time() + INTERVAL
        await trio.sleep_until(due)
        late(trio.current_time() - due)
