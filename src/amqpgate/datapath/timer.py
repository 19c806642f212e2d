"""A timerfd: a deadline that an epoll set can wait for, accurate to well under a millisecond.

``os.timerfd_create`` came with Python 3.13; before it, the same calls go through the C library.
"""

from __future__ import annotations

import ctypes
import math
import os

_TFD_TIMER_ABSTIME = 1
_CLOCK_MONOTONIC = 1


class _Timespec(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("it_interval", _Timespec), ("it_value", _Timespec))


_C = ctypes.CDLL(None, use_errno=True)


class Timer:
    """One deadline on ``time.monotonic``'s clock."""

    def __init__(self) -> None:
        self._fd: int = _C.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        self._when = math.inf

    def fileno(self) -> int:
        """Readable once the deadline has passed, until ``drain``."""
        return self._fd

    def set(self, when: float) -> None:
        """Move the deadline to ``when``, in seconds; infinity is never."""
        if when == self._when:
            return
        self._when = when
        spec = _Itimerspec()
        if when < math.inf:
            fraction, whole = math.modf(max(when, 1e-9))
            spec.it_value = _Timespec(int(whole), int(fraction * 1e9))
        _C.timerfd_settime(self._fd, _TFD_TIMER_ABSTIME, ctypes.byref(spec), None)

    def drain(self) -> None:
        """Take note that it went off."""
        self._when = math.nan
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return

    def close(self) -> None:
        os.close(self._fd)
