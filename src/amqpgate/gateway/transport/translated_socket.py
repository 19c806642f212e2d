"""The socket of a peer that speaks no AMQP 0-8 to 0-9-1, and what makes it look as if it did.

Between the real socket, plain or TLS, and the frames that the gateway sees is a translator, which is pure:
``translation`` has its I/O, its back-pressure, and the bound on what it may do at once.

=====================================  =======================================================
the peer is not read while             frames wait for the gateway, the translator wants no bytes, or
                                       more than ``MOST_UNSENT`` bytes wait for the peer
frames are not taken while             any bytes wait for the peer, or the translator wants no frames
=====================================  =======================================================
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from amqpgate.bridge import Translator
from amqpgate.datapath.engine import BufferedSocket

if TYPE_CHECKING:
    from amqpgate.gateway.transport.translation import PlainTranslation as Translation
else:
    try:
        from amqpgate.gateway.transport._translation import Translation
    except ImportError:
        from amqpgate.gateway.transport.translation import PlainTranslation as Translation

#: Bytes of its own that may wait for a peer before it is not read any more: answers to what it says.
MOST_UNSENT: Final = 1024 * 1024


class TranslatedSocket(Translation, BufferedSocket):
    """A non-blocking socket with a translator; see the module.

    ``first`` is what the peer has sent already, behind its protocol header. ``clock`` gives seconds.
    """

    def __init__(
        self,
        inner: socket.socket,
        translator: Translator,
        first: bytes = b"",
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(inner, translator, first, clock, MOST_UNSENT)
