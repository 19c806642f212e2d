"""Many clients that have a channel open and say nothing."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Sequence

from tests.interop.pooling.ways import in_step
from tests.support.talker import Talker


def room_for(files: int) -> int:
    """Raise the limit of open files as far as it goes; how many of `files` there may be."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(files, hard - 500) if hard != resource.RLIM_INFINITY else files


def connect(port: int, vhost: str, clients: int, *, at_once: int = 8) -> list[Talker]:
    """So many, each with one channel."""
    found: list[Talker] = []
    failures: list[BaseException] = []

    def work(count: int) -> None:
        try:
            for _ in range(count):
                client = Talker.dial(port, timeout=60)
                found.append(client)
                client.open(vhost=vhost)
        except BaseException as error:
            failures.append(error)

    _together(work, clients, at_once)
    if failures:
        raise failures[0]
    return found


def ask_each(clients: Sequence[Talker], *, at_once: int = 8) -> float:
    """Every client's channel answers; how many seconds it took together."""
    rest = iter(clients)
    lock = threading.Lock()
    failures: list[BaseException] = []

    def work(count: int) -> None:
        try:
            for _ in range(count):
                with lock:
                    client = next(rest)
                in_step(client)
        except BaseException as error:
            failures.append(error)

    started = time.perf_counter()
    _together(work, len(clients), at_once)
    if failures:
        raise failures[0]
    return time.perf_counter() - started


def _together(work: object, count: int, at_once: int) -> None:
    shares = [count // at_once + (number < count % at_once) for number in range(at_once)]
    threads = [threading.Thread(target=work, args=(share,), daemon=True) for share in shares]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
