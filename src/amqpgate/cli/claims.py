"""One start at a time on each port.

A gateway listens with SO_REUSEPORT, for its workers and for who takes its place, so the kernel lets two
gateways of one user share a port, and neither is told. That nobody listens there is made sure of before
(`failures.ensure_free`); then a second and more pass until the gateway listens. A second start waits that
long: then it sees the first one listen, and says that the port is in use.

A claim is an abstract Unix socket: of one network namespace, as ports are, and gone with its process.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import time
from collections.abc import Iterable
from typing import Final

from amqpgate.cli.failures import FAILED, Failure

#: Seconds that a start waits for another one. A start takes one or two; on a busy machine, many times that.
_PATIENCE: Final = 60.0
#: Pause between two looks, in seconds.
_LOOK: Final = 0.05


def claimed(ports: Iterable[int]) -> contextlib.ExitStack:
    """Return when nobody else of this user is starting on any of them: closed, they are free for others.

    Port 0 is nobody's. Raises ``Failure``.
    """
    with contextlib.ExitStack() as unfinished:
        deadline = time.monotonic() + _PATIENCE
        # In one order, or two starts could wait for each other.
        for port in sorted(set(ports) - {0}):
            claim = unfinished.enter_context(socket.socket(socket.AF_UNIX))
            while not _take(claim, port):
                if time.monotonic() > deadline:
                    text = f"another amqpgate has been starting on port {port} for {_PATIENCE:g} s"
                    raise Failure(text, FAILED)
                time.sleep(_LOOK)
        return unfinished.pop_all()


def _take(claim: socket.socket, port: int) -> bool:
    try:
        # Only processes of one user can share a port.
        claim.bind(f"\0amqpgate/start/{os.geteuid()}/{port}")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True
