"""A process that serves until it is told to end."""

from __future__ import annotations

import logging
import signal
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from typing import TypeAlias

    #: Serves until its first argument returns, and starts with what was bound.
    Serve: TypeAlias = Callable[[Callable[[], Awaitable[None]], trio.TaskStatus[str]], Awaitable[None]]

log = logging.getLogger(__name__)


def run_until_signalled(serve: Serve, tell: Callable[[str], None]) -> None:
    """Until SIGTERM or SIGINT; ``tell`` gets what was bound. Raises what ``serve`` does."""
    trio.run(_run, serve, tell)


async def _run(serve: Serve, tell: Callable[[str], None]) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:

        async def signalled() -> None:
            async for number in signals:
                log.info("%s: ending", signal.Signals(number).name)
                return

        async def until(*, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
            await serve(signalled, task_status)

        async with trio.open_nursery() as root:
            tell(await root.start(until))
