"""Answers that go on for as long as somebody listens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio
from starlette.types import Receive


@asynccontextmanager
async def while_heard(receive: Receive, over: trio.Event) -> AsyncIterator[None]:
    """What is within is cancelled when the client leaves, or ``over`` is set."""
    async with trio.open_nursery() as nursery:

        async def end_with(until: Callable[[], Awaitable[object]]) -> None:
            await until()
            nursery.cancel_scope.cancel()

        async def disconnect() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        nursery.start_soon(end_with, disconnect)
        nursery.start_soon(end_with, over.wait)
        yield
        nursery.cancel_scope.cancel()
