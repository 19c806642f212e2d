"""Memory for small pieces when there is no other, so that what nobody can go on without does not fail.

::

    Python asks ──▶ the C library ── none ──▶ at most 64 KiB, and not for a client's buffer? ──▶ the reserve
                          │                                       │ no                             │ full
                          ▼                                       ▼                                ▼
                        a piece                              MemoryError                      MemoryError

It is not given back for everybody to take: who asks for much still fails, and a session ends for it. Pieces
come back one by one, when they are freed. It is mapped at the start and touched when it is used: it costs
address space until then, and no memory.

Without the compiled data path there is none, and none where another allocator is in the place of Python's own
(``PYTHONMALLOC=debug``, ``tracemalloc``). With ``PYTHONMALLOC=malloc`` Python asks for it seldom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    #: Bytes in use from which on memory is short.
    SHORT: int

    def in_use() -> int:
        """Bytes of it that somebody has."""

    def install() -> bool:
        """Put it below all that Python asks for, for as long as the process runs; whether it is there."""

    def lacks(size: int) -> bool:
        """Whether there are not so many bytes in one piece, but for the reserve."""

    def is_short() -> bool:
        """Whether the reserve is lived on now. A comparison where it is not."""

    def numbers() -> tuple[int, int, int, int]:
        """Bytes in use, the most there ever were, pieces given out, and requests that found it full."""

else:
    try:
        from amqpgate.datapath._reserve import SHORT, in_use, install, is_short, lacks, numbers
    except ImportError:
        SHORT = 0

        def in_use():
            return 0

        def install():
            return False

        def lacks(size):
            return False

        def is_short():
            return False

        def numbers():
            return 0, 0, 0, 0


__all__ = ["SHORT", "in_use", "install", "is_short", "lacks", "numbers"]
