"""Which of the processes that listen on one port gets the next connection (SO_REUSEPORT, Linux).

The kernel spreads new connections over all sockets that listen on a port. One that closes takes along the
connections whose handshake is under way there: their clients get a reset. So before a process closes its
socket for another one's sake it tells the kernel to choose among the others, by a program of four
instructions that every user may attach to his own sockets (socket(7), SO_ATTACH_REUSEPORT_CBPF).

The program answers with the place of a socket among all of the port, which are in the order in which they
began to listen. A place that there is not leaves the choice to the kernel.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from typing import Final

# Of linux/socket.h, which Python does not name.
_ATTACH: Final = 51
_DETACH: Final = 68

# Classic BPF (linux/filter.h): load 32 random bits, take them modulo, add, return.
_LOAD_WORD: Final = 0x20
_RANDOM: Final = 0x1_0000_0000 - 0x1000 + 56
_MODULO: Final = 0x94
_ADD: Final = 0x04
_RETURN: Final = 0x16


def choose_among(sock: socket.socket, first: int, count: int) -> None:
    """New connections go to one of ``count`` sockets from the place ``first`` on.

    Raises ``OSError`` where the kernel does not have that.
    """
    code = b"".join(
        struct.pack("HBBI", operation, 0, 0, constant)
        for operation, constant in ((_LOAD_WORD, _RANDOM), (_MODULO, count), (_ADD, first), (_RETURN, 0))
    )
    code_buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", 4, ctypes.addressof(code_buffer))
    sock.setsockopt(socket.SOL_SOCKET, _ATTACH, program)


def choose_all(sock: socket.socket) -> None:
    """The kernel chooses again. Raises ``OSError`` where it does already."""
    sock.setsockopt(socket.SOL_SOCKET, _DETACH, 0)
