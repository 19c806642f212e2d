"""Standard error for a process that may not wait for whoever reads its log.

A pipe or a terminal whose reader stands still is full after some hundred lines. A plain write waits then,
and all sessions with it (decision 0094).
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import select
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, TextIO, cast

log = logging.getLogger(__name__)

#: Bytes of lines that wait for their reader: some 5,000 of them.
MOST: Final = 1 << 20
#: Seconds that the end of a process waits for a reader.
LAST_WORDS: Final = 1.0


@contextlib.contextmanager
def standard_error() -> Iterator[TextIO]:
    """The stream for the log; at the end what waits in it is given `LAST_WORDS` seconds."""
    try:
        stream = NonBlockingStream(sys.stderr)
    except (OSError, AttributeError):
        # Somebody in this process catches what it says, or it is closed.
        yield sys.stderr
        return
    try:
        yield cast(TextIO, stream)
    finally:
        stream.finish(LAST_WORDS)


class NonBlockingStream(io.TextIOBase):
    """Text that goes where ``stream`` would put it, at once or by a thread that waits there.

    The thread lives while something waits. Texts beyond ``most`` bytes are not kept: once the reader goes on,
    the log says how many were lost. What nobody can read any more is dropped. Raises ``OSError`` where
    ``stream`` is no file.
    """

    def __init__(self, stream: TextIO, most: int = MOST) -> None:
        self._stream, self._most = stream, most
        self._fd, self._put = _writer(stream.fileno())
        self._lock = threading.Lock()
        #: What waits, oldest first, and how many bytes; the thread that writes it.
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._thread: threading.Thread | None = None
        #: How many texts were not kept since the reader stands still.
        self._lost = 0

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        data = text.encode(self.encoding, "backslashreplace")
        with self._lock:
            if self._thread is None:
                data = data[self._put(data) :]
                if data:
                    self._keep(data)
                    self._begin()
            elif self._size + len(data) > self._most:
                self._lost += 1
            else:
                self._keep(data)
        return len(text)

    def finish(self, seconds: float) -> None:
        """Wait for the reader of what waits."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _keep(self, data: bytes) -> None:
        self._waiting.append(data)
        self._size += len(data)

    def _begin(self) -> None:
        self._thread = threading.Thread(target=self._drain, name="log", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            # As many threads as the system allows.
            self._thread, self._size = None, 0
            self._waiting.clear()

    def _drain(self) -> None:
        waiter = select.poll()
        waiter.register(self._fd, select.POLLOUT)
        while True:
            waiter.poll()
            with self._lock:
                data = self._waiting.popleft()
                done = self._put(data)
                self._size -= done
                if done < len(data):
                    self._waiting.appendleft(data[done:])
                elif not self._waiting:
                    self._thread = None
                    lost, self._lost = self._lost, 0
                    break
        if lost:
            log.warning("%d lines of this log are lost: whoever reads it stood still, or is too slow", lost)


def _writer(fd: int) -> tuple[int, Callable[[bytes], int]]:
    """A descriptor to wait for, and what writes as much of some bytes as goes at once: how many that were."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd, lambda data: _written(fd, data)
    if stat.S_ISFIFO(mode) or os.isatty(fd):
        # Opened anew it is non-blocking for this process alone: others may have the same pipe, a shell, say.
        with contextlib.suppress(OSError):
            own = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            return own, lambda data: _written(own, data)
    return fd, lambda data: _written_if_ready(fd, data)


def _written(fd: int, data: bytes) -> int:
    try:
        return os.write(fd, data)
    except BlockingIOError:
        return 0
    except OSError:
        # Nobody reads any more, or the disk is full: a log that cannot be written is no reason to stop.
        return len(data)


def _written_if_ready(fd: int, data: bytes) -> int:
    """A socket, or a pipe of another user's: what can be written to has room for so much (POSIX, PIPE_BUF).

    Where several processes write to one pipe, another may take that room in between: then this one waits.
    """
    ready = select.poll()
    ready.register(fd, select.POLLOUT)
    return _written(fd, data[: select.PIPE_BUF]) if ready.poll(0) else 0
