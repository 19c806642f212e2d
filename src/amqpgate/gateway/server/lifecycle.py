"""Whether a gateway takes new connections, and how it ends.

::

    starting ──▶ ready ◀────▶ paused
                   │             │
                   └─▶ draining ◀┘ ──▶ the end of ``Gateway.run``
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping

import attrs
import trio

from amqpgate.config import Limits
from amqpgate.gateway.handshake.listeners import Listeners
from amqpgate.gateway.server.readiness import Readiness
from amqpgate.gateway.server.standing import Impairment, Phase, Standing
from amqpgate.gateway.session.drain import Drain, Times
from amqpgate.gateway.session.graceful_close import LOOK
from amqpgate.gateway.session.session import Session
from amqpgate.telemetry.events import Events
from amqpgate.values import define

log = logging.getLogger(__name__)


@define(eq=False)
class Lifecycle:
    """The lifecycle of one gateway."""

    limits: Limits
    listeners: Listeners
    readiness: Readiness
    #: Where each change is told.
    events: Events
    #: Set when the gateway is to end.
    drained: trio.Event = attrs.field(factory=trio.Event, init=False)
    #: Set when nothing is listened on any more.
    closed: trio.Event = attrs.field(factory=trio.Event, init=False)
    #: Set when the admin address is another process's.
    handed_over: trio.Event = attrs.field(factory=trio.Event, init=False)
    #: When a drain is over at the latest, on trio's clock.
    until: float = attrs.field(default=math.inf, init=False)
    _window: float = attrs.field(default=0.0, init=False)
    _successors: int = attrs.field(default=0, init=False)

    @property
    def phase(self) -> Phase:
        if self.drained.is_set():
            return "draining"
        if self.listeners.paused:
            return "paused"
        return "ready" if self.listeners.is_open else "starting"

    def pause(self) -> None:
        """Refuse new connections; sessions go on."""
        if not self.listeners.paused:
            self.listeners.pause()
            self.changed()

    def resume(self) -> None:
        """Take new connections again."""
        self.listeners.resume()

    def changed(self) -> None:
        """The phase is another one."""
        self.check()
        self.events.tell("gateway", state=self.phase)

    def check(self, impairments: Impairment | None = None) -> None:
        """Find out whether the gateway is ready, which it is not while it is impaired; None: as before."""
        self.readiness.become(self.phase == "ready", impairments)

    def drain(self, window: float | None, successors: int) -> None:
        """See ``Gateway.drain``."""
        if self.drained.is_set():
            return
        self._window = self.limits.drain_timeout if window is None else window
        self.until = trio.current_time() + self._window
        self._successors = successors
        self.drained.set()
        self.changed()

    async def serve(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Take connections until there is a drain."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self.listeners.run)
            task_status.started()
            await self.drained.wait()
            if self._successors:
                await self.listeners.hand_over(self._successors)
                # Whoever came meanwhile has the whole window, too.
                self.until = trio.current_time() + self._window
            self.listeners.close()
        self.closed.set()

    async def part(self, sessions: Mapping[str, Session], connections: Callable[[], int]) -> float:
        """Part with the sessions. Who is left then is to be told, and to be gone at the time that is returned
        (trio's clock)."""
        times = Times.of(self._window, self.limits.close_timeout)
        began = self.until - self._window
        log.info("draining: %d connections, at most %g s", connections(), times.end)
        draining = Drain(connections(), times)
        while connections() and (after := trio.current_time() - began) < times.confirms:
            draining.look(list(sessions.values()), after)
            await trio.sleep(LOOK)
        return began + times.end

    def standing(self, sessions: int, connections: int) -> Standing:
        """``sessions`` and ``connections`` as `Standing` has them."""
        left = None if self.until == math.inf else max(0.0, self.until - trio.current_time())
        return Standing(self.phase, sessions, connections, left)
