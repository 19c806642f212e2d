"""Where new connections come in: listening sockets that are open, closed for a while, or closed for good.

::

              pause                  close
    open ◀──────────────▶ paused ────────────▶ closed
      │       resume                              ▲
      │                   close                   │
      └───────────────────────────────────────────┘

While they are not open connections are refused at once, so that a balancer, or whoever else listens on the
port, gets them. What the kernel has let in by then is accepted first: it would be reset.
"""

from __future__ import annotations

import contextlib
import logging
import math
import socket
from collections.abc import Callable
from functools import partial

import attrs
import trio

from amqpgate.config import Address, Listener, Settings
from amqpgate.errors import ListenError
from amqpgate.gateway.transport.binding import LINGER, bind_all
from amqpgate.gateway.transport.connecting import is_paced, prepare_listening
from amqpgate.gateway.transport.fibers import Fibers
from amqpgate.gateway.transport.listener import BACKLOG, Accepting, ListeningSocket
from amqpgate.gateway.transport.reuseport import choose_all, choose_among
from amqpgate.values import define

log = logging.getLogger(__name__)


@define(eq=False)
class Listeners:
    """The listening sockets of one gateway."""

    settings: Settings
    #: Takes a connection of a listener in, given its socket and its peer.
    enter: Callable[[Listener, socket.socket, str], None]
    #: Called when they are open.
    on_open: Callable[[], None]
    #: Where connections are accepted.
    fibers: Fibers
    #: Listener name -> (host, port) as bound; set when ``run`` has started.
    addresses: dict[str, tuple[str, int]]
    paused: bool = attrs.field(default=False, init=False)
    _is_over: bool = attrs.field(default=False, init=False)
    _changed: trio.Event = attrs.field(factory=trio.Event, init=False)
    #: Why it cannot be listened any more.
    _broken: Exception | None = attrs.field(default=None, init=False)
    _listening: list[tuple[socket.socket, Listener]] = attrs.field(factory=list, init=False)

    @property
    def is_open(self) -> bool:
        """Whether anything is listened on."""
        return bool(self._listening)

    def pause(self) -> None:
        """Refuse new connections until ``resume``. Idempotent, as the others are."""
        self.paused = True
        self._changed.set()

    def resume(self) -> None:
        if self.paused:
            self.paused = False
            self._changed.set()

    def close(self) -> None:
        """For good: ``run`` returns."""
        self._is_over = True
        self._changed.set()

    async def hand_over(self, successors: int) -> None:
        """So many processes listen on the same ports: from now on new connections are theirs.

        Returns when nothing is under way here any more. Where the kernel cannot be told to choose the
        others, it goes on spreading them.
        """
        if not self._listening:
            return
        for sock, _ in self._listening:
            try:
                choose_among(sock, self.settings.workers, successors)
            except OSError as error:
                log.warning("the kernel goes on spreading new connections: %s", error)
        await trio.sleep(LINGER)
        for sock, _ in self._listening:
            with contextlib.suppress(OSError):
                choose_all(sock)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Until they are closed for good. Raises ``OSError`` where an address cannot be listened on."""
        with contextlib.ExitStack() as kept:
            binds = []
            for listener in self.settings.listeners:
                # Bound, and never listening: it keeps the port while there is a pause.
                sockets = await bind_all(listener.bind, f"listener {listener.name}")
                for sock in sockets:
                    kept.enter_context(sock)
                self.addresses[listener.name] = sockets[0].getsockname()[:2]
                port = sockets[0].getsockname()[1]
                binds.append((listener, Address(listener.bind.host, port)))
            is_new = True
            while not self._is_over:
                self._changed = trio.Event()
                opened = []
                if not self.paused:
                    try:
                        opened = await self._open(binds)
                    except OSError as error:
                        if is_new:
                            raise
                        log.error("still paused, since there is no listening: %s", error)
                        self.paused = True
                self._listening = opened
                if opened and not self._changed.is_set():
                    self.on_open()
                if is_new:
                    task_status.started()
                    is_new = False
                await self._serve()
                if self._broken is not None:
                    raise self._broken

    async def _open(self, binds: list[tuple[Listener, Address]]) -> list[tuple[socket.socket, Listener]]:
        with contextlib.ExitStack() as unfinished:
            opened = []
            for listener, bind in binds:
                for sock in await bind_all(bind, f"listener {listener.name}"):
                    opened.append((unfinished.enter_context(sock), listener))
            # Last, and at once: who has come to one that is closed again, since another one fails, is reset.
            for sock, listener in opened:
                prepare_listening(sock)
                try:
                    sock.listen(BACKLOG)
                except OSError as error:
                    # Bound, for others are bound there with the same option, and one of them listens now.
                    host, port = sock.getsockname()[:2]
                    raise ListenError(
                        f"listener {listener.name}", str(Address(host, port)), port, error
                    ) from error
            unfinished.pop_all()
        return opened

    async def _serve(self) -> None:
        """Until something changes."""
        accepting = [
            Accepting(
                self.fibers,
                math.inf,
                ListeningSocket(sock, is_paced(sock)),
                partial(self.enter, listener),
                self._break,
            )
            for sock, listener in self._listening
        ]
        for one in accepting:
            self.fibers.begin(one)
        try:
            await self._changed.wait()
        finally:
            self._listening = []
            for one in accepting:
                one.cancel()
        for one in accepting:
            await one.over()

    def _break(self, error: Exception) -> None:
        """A listening socket is broken: that is for whoever runs the gateway."""
        self._broken = error
        self._changed.set()
