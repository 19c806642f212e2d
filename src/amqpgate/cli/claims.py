"""One start at a time on each port.

A gateway listens with SO_REUSEPORT, for its workers and for who takes its place, so the kernel lets two
gateways of one user share a port, and neither is told. That nobody listens there is made sure of before
(`failures.ensure_free`); then a second and more pass until the gateway listens. A second start waits that
long: then it sees the first one listen, and says that the port is in use. Who takes a gateway's place has the
claim until it has the admin address: a second one then takes the place of the first, from the beginning.

A claim is an abstract Unix socket: of one network namespace, as ports are, and gone with its process. It
listens, so that who waits hears when it is gone, and whose it is: the kernel tells the user of a peer that
listens. Any local user may take such a name; who is another user is not waited for.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import struct
import time
from collections.abc import Iterable
from typing import Final

import attrs

from amqpgate.cli.failures import FAILED, Failure

log = logging.getLogger(__name__)

#: Seconds that a start waits for another one. A start takes one or two; on a busy machine, many times that.
_PATIENCE: Final = 60.0
#: Seconds that it waits for a claim whose holder does not show: a start listens at once.
_UNSEEN: Final = 1.0
#: Pause between two looks at such a one, in seconds.
_LOOK: Final = 0.05

#: Of a peer: process, user, group (SO_PEERCRED, unix(7)).
_CREDENTIALS: Final = struct.Struct("3i")


def claimed(ports: Iterable[int]) -> contextlib.ExitStack:
    """Return when nobody else of this user is starting on any of them: closed, they are free for others.

    Port 0 is nobody's. Raises ``Failure``.
    """
    with contextlib.ExitStack() as unfinished:
        deadline = time.monotonic() + _PATIENCE
        # In one order, or two starts could wait for each other.
        for port in sorted(set(ports) - {0}):
            claim = unfinished.enter_context(socket.socket(socket.AF_UNIX))
            _claim(claim, port, deadline)
        return unfinished.pop_all()


def _claim(claim: socket.socket, port: int, deadline: float) -> None:
    """Return when the claim is taken, or whoever has it need not be waited for."""
    # Only processes of one user can share a port.
    user = os.geteuid()
    name = f"\0amqpgate/start/{user}/{port}"
    told, unseen_until = None, time.monotonic() + _UNSEEN
    while not _take(claim, name):
        with socket.socket(socket.AF_UNIX) as turn:
            holder = _holder(turn, name)
            if holder is None:
                if time.monotonic() > unseen_until:
                    log.warning(
                        "port %d: somebody who does not show has the turn to start: not waited for", port
                    )
                    return
                time.sleep(_LOOK)
                continue
            if holder.user != user:
                log.warning(
                    "port %d: user %d (process %d) has the turn to start: not waited for",
                    port,
                    holder.user,
                    holder.process,
                )
                return
            if told != holder:
                told = holder
                log.warning(
                    "port %d: another amqpgate (process %d) is starting: waiting", port, holder.process
                )
            if not _gone(turn, deadline):
                text = f"another amqpgate has been starting on port {port} for {_PATIENCE:g} s"
                raise Failure(text, FAILED)
        unseen_until = time.monotonic() + _UNSEEN


def _take(claim: socket.socket, name: str) -> bool:
    try:
        claim.bind(name)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    claim.listen(socket.SOMAXCONN)
    return True


@attrs.frozen
class _Holder:
    """Who has a claim."""

    process: int
    user: int


def _holder(turn: socket.socket, name: str) -> _Holder | None:
    """Who has the claim, to which ``turn`` is connected then; None: it has just gone, or does not listen."""
    turn.setblocking(False)
    try:
        turn.connect(name)
    except (ConnectionRefusedError, BlockingIOError):
        return None
    process, user, _ = _CREDENTIALS.unpack(
        turn.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return _Holder(process, user)


def _gone(turn: socket.socket, deadline: float) -> bool:
    """Wait until who has the claim lets go of it; False where it has not at the deadline."""
    turn.settimeout(max(deadline - time.monotonic(), 1e-3))
    try:
        turn.recv(1)
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True
