"""Sockets for addresses, before anybody listens on them: the supervisor of workers has them, too."""

from __future__ import annotations

import contextlib
import socket
from typing import Final

import trio

from amqpgate.config import Address
from amqpgate.errors import ListenError

#: Seconds that a process listens on when another one listens in its place: handshakes that had begun end
#: meanwhile, one that needs a second SYN included (RFC 6298, section 2: a second).
LINGER: Final = 1.5


async def bind_all(bind: Address, what: str) -> list[socket.socket]:
    """Sockets that are bound and do not listen, to every address that the host stands for. With port 0 all of
    them get the one that the first got. Raises ``OSError``; where one is taken, `ListenError`, which says
    ``what`` was to listen.

    Other processes of the same user may listen there, too (SO_REUSEPORT): workers, and who takes over.
    """
    found = await trio.socket.getaddrinfo(
        bind.host.encode(), bind.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    port = bind.port
    with contextlib.ExitStack() as unfinished:
        sockets = []
        for family, kind, protocol, _name, address in dict.fromkeys(found):
            sock = unfinished.enter_context(socket.socket(family, kind, protocol))
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                sock.bind((address[0], port, *address[2:]))
            except OSError as error:
                raise ListenError(what, str(Address(bind.host, port)), port, error) from error
            port = sock.getsockname()[1]
            sockets.append(sock)
        unfinished.pop_all()
    return sockets
