"""Memory that was needed for a while goes back to the system.

What Python frees, and OpenSSL most of all, glibc keeps: after 500 half TLS handshakes some 20 MiB, for ever.
"""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """Blocks for some milliseconds: for a thread of its own. Only glibc has it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
