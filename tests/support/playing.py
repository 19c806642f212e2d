"""Brokers that play their parts in threads, beside what a test does on trio."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from amqpgate.errors import AmqpgateError

from .inprocess import PATIENCE, Doorway
from .talker import Talker

T = TypeVar("T")

#: What a broker does with one connection.
Plays = Callable[[Talker], None]


async def beside(do: Callable[[], Awaitable[T]], *played: tuple[Doorway, Plays]) -> T:
    """What ``do`` gives or raises. Each door takes one connection, and plays its part."""

    def play(door: Doorway, plays: Plays) -> None:
        with door.accept() as broker:
            plays(broker)

    failure: AmqpgateError | None = None
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            for door, plays in played:
                nursery.start_soon(trio.to_thread.run_sync, play, door, plays)
            try:
                found = await do()
            except AmqpgateError as error:
                failure = error
    if failure is not None:
        raise failure
    return found
