"""File descriptors for as many connections as the settings allow, taken before the first one comes."""

from __future__ import annotations

import fcntl
import logging
import os
import resource
from typing import Final

from amqpgate.config import Settings

log = logging.getLogger(__name__)

#: Of a process beside its sessions: listeners, epoll sets, files, the admin interface.
_SPARE: Final = 64


def needed(settings: Settings) -> int:
    """How many descriptors one process may have open: two for each connection, and some."""
    return 2 * settings.limits.max_connections + _SPARE


def allowed() -> int | None:
    """How many the system allows at most, which `prepare` asks for; None: as many as one likes."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if hard == resource.RLIM_INFINITY else hard


def prepare(settings: Settings) -> None:
    """Ask for that many, and have the kernel make its table of them now. Before a thread is started.

    Where a process has threads, Linux lets a table grow only when each core has passed through a quiet
    moment (``expand_fdtable`` in fs/file.c): the call that makes one descriptor too many sleeps for it, 15 to
    31 ms, in which no session has a turn. The table doubles, so 5,000 sessions are seven such calls
    (2026-11-29, decision 0092). The room costs the kernel 8 bytes a descriptor.
    """
    wanted, most = needed(settings), allowed()
    if most is not None and most < wanted:
        log.info(
            "open files: %d at most, and limits.maxConnections %d takes %d: "
            "raise LimitNOFILE or `ulimit -n`, or lower limits.maxConnections",
            most,
            settings.limits.max_connections,
            wanted,
        )
        wanted = most
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        some = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.close(fcntl.fcntl(some, fcntl.F_DUPFD_CLOEXEC, wanted - 1))
        finally:
            os.close(some)
    except (OSError, ValueError) as error:
        # Connections will come all the same, some of them later.
        log.warning("no room for %d open files: %s", wanted, error)
