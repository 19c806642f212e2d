"""What every TCP connection of the gateway is set to, whichever side it leads to."""

from __future__ import annotations

import contextlib
import ipaddress
import socket

#: Congestion controls that pace: they spread what is sent over time, with a timer per 64 KiB.
_PACED = b"bbr"
#: Built into every Linux, open to every user, and never paced.
_UNPACED = b"reno"
#: Linux's longest name of a congestion control, with its final NUL.
_NAME_MAX = 16


def prepare(sock: socket.socket) -> None:
    """Make a connected TCP socket non-blocking, without Nagle's delay, and not paced within one machine.

    Where the system's congestion control is BBR, loopback is paced like a wide-area network. There is
    nothing to share it with, and the timers cost more than the copying: ``make bench`` on such a machine
    saw a publish of 64 KiB cost 14 us or 48 us by luck, and mostly 14 to 20 us since (spec/decisions/0004).
    """
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # A kernel that lacks or forbids the option works as it did.
    with contextlib.suppress(OSError):
        paced = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _NAME_MAX).startswith(_PACED)
        if paced and _is_local(sock):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _UNPACED)


def _is_local(sock: socket.socket) -> bool:
    """Whether both ends are on this machine."""
    peer, own = str(sock.getpeername()[0]), str(sock.getsockname()[0])
    return peer == own or ipaddress.ip_address(peer.partition("%")[0]).is_loopback
