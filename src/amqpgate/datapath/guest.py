"""What is known here of trio's inside, for where memory runs out: trio itself does not reckon with that.

A task of trio's own that raises, or a tick that does, ends all of the process. All names that are no public
ones of trio's are in this module; where one is not there any more, trio is left as it is.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

import outcome

#: Bytes of wake-ups that are taken at once. Some six fit into the socket; with what is before them in a
#: `bytes` they are one of Python's small objects, for which there is nearly always room.
_FEW: Final = 256


class _WakeupSocket(socket.socket):
    """Where trio takes in that it was woken.

    It asks for 64 KiB each time. Of whatever trio wants that is by far the most, and where clients take all
    that there is there may be no such piece, though there is memory for all else (spec/decisions/0045).
    """

    __slots__ = ()

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        return super().recv(min(size, _FEW), flags)


def be_modest(tick: Callable[[], object]) -> None:
    """Have the guest run whose first ``tick`` this is want little memory at once."""
    runner = getattr(getattr(tick, "__self__", None), "runner", None)
    for owner, name in (("entry_queue", "wakeup"), ("io_manager", "_force_wakeup")):
        wakeup = getattr(getattr(runner, owner, None), name, None)
        sock = getattr(wakeup, "wakeup_sock", None)
        if wakeup is not None and isinstance(sock, socket.socket):
            # The descriptor stays: it is watched already.
            modest = _WakeupSocket(sock.family, sock.type, sock.proto, sock.detach())
            modest.setblocking(False)
            wakeup.wakeup_sock = modest


def tick_without_thread(callback: Callable[[], object]) -> Callable[[], object] | None:
    """The next tick of trio's, whose last one has failed where it hands its wait to a thread; None: it was
    something else.

    By then it has looked for events, and there were none (trio's ``GuestState.guest_tick``).
    A callback of a guest is that method, or has its owner in a cell.
    """
    cells = [cell.cell_contents for cell in getattr(callback, "__closure__", None) or ()]
    for guest in (getattr(callback, "__self__", None), *cells):
        tick: Callable[[], object] | None = getattr(guest, "guest_tick", None)
        if tick is not None and hasattr(guest, "unrolled_run_next_send"):
            guest.unrolled_run_next_send = outcome.Value([])
            return tick
    return None
