"""One mirror: a queue, and a task that lives while there is something to send.

::

    idle ── a message ──▶ dial, log in ──▶ open ── nothing to send for a while ──▶ idle
                              │ failed       │ lost
                              ▼              ▼
                            away: what waits and what comes is dropped, for a while that doubles each time

When a connection is lost that had confirmed something, what waits is kept until it is dialled again; what was
not confirmed is not sent again, for it may have arrived.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import attrs
import trio

from amqpgate.errors import AmqpgateError
from amqpgate.gateway.observers.mirror.dial import Dialled
from amqpgate.gateway.observers.mirror.line import MirrorLine
from amqpgate.gateway.observers.mirror.pipe import MirrorPipe
from amqpgate.gateway.observers.mirror.queue import MirrorQueue
from amqpgate.telemetry.mirrors import MirrorAccount

log = logging.getLogger(__name__)

#: Seconds before the next attempt, the first time and at most.
FIRST_BACK_OFF = 0.5
LAST_BACK_OFF = 30.0


@attrs.define(eq=False)
class MirrorWorker:
    """Of one process. Nobody waits for it: a message is put into ``queue``, and that is all."""

    #: For logs.
    name: str
    #: Opens a connection to it. Raises ``AmqpgateError``.
    dial: Callable[[], Awaitable[Dialled]]
    account: MirrorAccount
    #: Bytes that may wait.
    buffer: int
    #: Begins a task.
    start: Callable[[Callable[[], Awaitable[None]]], None]
    queue: MirrorQueue = attrs.field(init=False)
    #: Set when the task ends; None: there is none.
    idle: trio.Event | None = attrs.field(default=None, init=False)
    #: The gateway stops: nothing is waited for any more.
    _finishing: trio.Event = attrs.field(factory=trio.Event, init=False)
    _pipe: MirrorPipe | None = attrs.field(default=None, init=False)
    _back_off: float = attrs.field(default=FIRST_BACK_OFF, init=False)
    #: What the log said last.
    _said: str = attrs.field(default="", init=False)

    def __attrs_post_init__(self) -> None:
        self.queue = MirrorQueue(self.buffer, self.account, self._arrived)

    def _arrived(self) -> None:
        if self.idle is None:
            self.idle = trio.Event()
            self.start(self._run)
        elif self._pipe is not None:
            self._pipe.stir()

    async def finish(self) -> None:
        """Send what is there, and be idle. Deadlines are the caller's."""
        self._finishing.set()
        if self._pipe is not None:
            self._pipe.stir()
        if self.idle is not None:
            await self.idle.wait()

    async def _run(self) -> None:
        assert self.idle is not None
        try:
            while self.queue:
                try:
                    await self._use_a_connection()
                except Exception:
                    # A mirror's fault is that mirror's; the gateway goes on.
                    log.exception("mirror %s failed", self.name)
                    await self._stay_away()
        finally:
            # Only what it was not given the time for.
            self.queue.close("stopped")
            self.queue.open()
            self.idle.set()
            self.idle = None

    async def _use_a_connection(self) -> None:
        """Until there is nothing to send, or it is lost."""
        try:
            dialled = await self.dial()
        except AmqpgateError as error:
            self._say(logging.WARNING, f"is away: {error}")
            await self._stay_away()
            return
        self._say(logging.INFO, "is connected")
        tune = dialled.tune
        line = MirrorLine(self.name, dialled.user, tune.frame_max, tune.channel_max, self.account)
        self._pipe = MirrorPipe(dialled.hop, line, self.queue, tune.heartbeat, self._finishing)
        try:
            fault = await self._pipe.run()
        finally:
            self._pipe = None
        if line.proven:
            self._back_off = FIRST_BACK_OFF
        if fault is not None:
            self._say(logging.WARNING, f"is lost: {fault}")
            if line.proven:
                await self._pause()
            else:
                await self._stay_away()

    async def _stay_away(self) -> None:
        self.queue.close("unavailable")
        await self._pause()
        self._back_off = min(2 * self._back_off, LAST_BACK_OFF)
        self.queue.open()

    async def _pause(self) -> None:
        with trio.move_on_after(self._back_off):
            await self._finishing.wait()

    def _say(self, level: int, text: str) -> None:
        """Once per change."""
        if text != self._said:
            self._said = text
            log.log(level, "mirror %s %s", self.name, text)
