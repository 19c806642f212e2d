"""What is set up step by step without a coroutine, beside the fibers: it says itself what it does next.

A step runs when a socket that it watches has something, and ends when it waits again. Sockets stay watched
from one wait to the next, which spares a system call for each. One that has something while another one is
waited for is not watched until it is its turn.
"""

from __future__ import annotations

import select

import attrs

from amqpgate.gateway.transport.fiber import HasFileno, Interrupted, Scheduled
from amqpgate.values import define


@define(eq=False)
class Stepper(Scheduled):
    """Its steps are `proceed`'s. It may be interrupted where it waits."""

    #: When it is over at the latest, on trio's clock.
    until: float
    #: It goes no further.
    is_interrupted: bool = attrs.field(default=False, init=False)
    #: No more comes of it at all.
    is_cancelled: bool = attrs.field(default=False, init=False)

    def queue(self) -> bool:
        if self.is_queued:
            return False
        self.is_queued = True
        return True

    def cancel(self) -> None:
        self.is_cancelled = True
        self.scheduler.resume_soon(self)

    def interrupt(self, why: Interrupted) -> None:
        """It goes no further, and says what becomes of it in its next step."""
        self.is_interrupted = True
        self.scheduler.resume_soon(self)

    def wait_for(self, sock: HasFileno, events: int = select.EPOLLIN) -> None:
        """Step on when the socket has something, or is broken."""
        fd = sock.fileno()
        if fd not in self._watched:
            self.scheduler.watch(fd, self, events)
            self._watched[fd] = sock
        self.fd = fd

    def wait_alone_for(self, sock: HasFileno, events: int = select.EPOLLIN) -> None:
        """As ``wait_for``: it has nothing, so another one has that is not to be heard yet."""
        fd = sock.fileno()
        for other in [one for one in self._watched if one != fd]:
            self.ignore(other)
        self.wait_for(sock, events)

    def ignore(self, fd: int) -> None:
        """What comes there waits."""
        if self._watched.pop(fd, None) is not None:
            try:  # noqa: SIM105 - it would be three calls more
                self.scheduler.unwatch(fd)
            except (OSError, ValueError):
                # It has been closed.
                pass

    def ignore_all(self) -> None:
        """They are somebody else's from now on."""
        for fd in list(self._watched):
            self.ignore(fd)

    def finish(self) -> None:
        self.ignore_all()
        self.is_over = True
        if self._over is not None:
            self._over.set()
