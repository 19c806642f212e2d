"""One non-blocking socket, plain or TLS: its unsent bytes, its partial frame, its clocks."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from typing import TYPE_CHECKING

import attrs

from amqpgate.errors import AmqpgateError

if TYPE_CHECKING:
    from amqpgate.datapath.relay import Party
    from amqpgate.datapath.scanner import Lane
    from amqpgate.datapath.tables import Side

#: TLS sends go one record at a time: OpenSSL demands that a send that could not finish is repeated
#: with the same beginning, and unsent bytes only ever grow at their end.
_TLS_RECORD = 16 * 1024
#: Largest piece that one send offers to the kernel; a default socket buffer takes no more at once.
_SEND_PIECE = 256 * 1024

Bytes = bytes | bytearray | memoryview


class PeerGoneError(AmqpgateError):
    """The connection of ``side`` is broken; the cause is chained."""

    def __init__(self, side: Side, cause: OSError) -> None:
        super().__init__(f"{side.name.lower()}: {cause}")
        self.side = side


def out_of_memory(side: Side) -> PeerGoneError:
    """A frame to ``side`` is cut: there is no memory for the rest. Its connection is as good as gone."""
    return PeerGoneError(side, OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)))


@attrs.define(eq=False)
class RelayEndpoint:
    """One socket of an established session. Owned by the pump while its relay is in it."""

    sock: socket.socket
    side: Side
    #: The direction that begins at this socket.
    lane: Lane
    #: Negotiated heartbeat of this hop in seconds; 0 is none.
    heartbeat: float
    #: Received, but not a whole frame yet; what came along with the hand-over, at first.
    partial: bytearray = attrs.field(factory=bytearray, converter=bytearray)
    #: Set by the pump.
    relay: Party = attrs.field(init=False)
    peer: RelayEndpoint = attrs.field(init=False)
    #: ``partial`` may hold whole frames: it came with the hand-over, its sender was throttled, or its turn
    #: was over.
    fresh: bool = attrs.field(init=False)
    #: How long ``partial`` must become before a scan can get further; 0 when it is empty.
    wanted: int = attrs.field(default=0, init=False)
    #: Accepted for this socket but not taken by the kernel yet. Whole frames, always.
    out: bytearray = attrs.field(factory=bytearray, init=False)
    #: No reads: the peer's unsent bytes are above the high mark.
    paused: bool = attrs.field(default=False, init=False)
    #: No reads: a token bucket is empty.
    throttled: bool = attrs.field(default=False, init=False)
    #: No reads, ever again.
    halted: bool = attrs.field(default=False, init=False)
    #: The pump will look at it soon, whatever epoll says.
    queued: bool = attrs.field(default=False, init=False)
    #: The epoll events that are asked for.
    interest: int = attrs.field(default=0, init=False)
    last_received: float = attrs.field(default=0.0, init=False)
    last_sent: float = attrs.field(default=0.0, init=False)

    def __attrs_post_init__(self) -> None:
        self.fresh = bool(self.partial)

    def meet(self, peer: RelayEndpoint) -> None:
        """Tell it who is at the other end of the session."""
        self.peer = peer

    @property
    def active(self) -> bool:
        """Whether its session, or link, is in the pump, and it is still an end of that."""
        return self.relay.active

    @property
    def is_tls(self) -> bool:
        return isinstance(self.sock, ssl.SSLSocket)

    @property
    def is_pooled(self) -> bool:
        """Whether it is a ``PooledEndpoint``, a mapping on a link: it has no socket."""
        return False

    @property
    def waiting(self) -> int:
        """How many bytes are unsent."""
        return len(self.out)

    def unsent(self) -> bytes:
        """A copy of what the kernel did not take yet."""
        return bytes(self.out)

    def rest(self) -> bytes:
        """A copy of what was received and not dealt with."""
        return bytes(self.partial)

    def receive_into(self, view: memoryview) -> int:
        """Bytes received, 0 at the end of the stream, -1 when there is nothing now.

        Raises ``PeerGoneError`` when the connection is broken.
        """
        try:
            return self.sock.recv_into(view)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return -1
        except ssl.SSLZeroReturnError:
            return 0
        except ssl.SSLEOFError:
            # A peer that drops TCP without close_notify; AMQP frames guard against truncation.
            return 0
        except OSError as error:
            raise PeerGoneError(self.side, error) from error

    def has_pending(self) -> bool:
        """Whether OpenSSL holds decrypted bytes, which epoll cannot know of."""
        return isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0

    def put(self, data: Bytes) -> None:
        """Accept bytes for this socket: straight to the kernel as far as it takes them."""
        if self.out:
            self.out += data
        elif self.is_tls:
            self.out += data
            self.flush()
        else:
            sent = self._send(data)
            if sent < len(data):
                try:
                    self.out += memoryview(data)[sent:]
                except MemoryError:
                    if not sent:
                        raise
                    # A frame is cut: nothing may follow it, no close either.
                    raise out_of_memory(self.side) from None

    def flush(self) -> None:
        """Send what is unsent, as far as the kernel takes it."""
        piece = _TLS_RECORD if self.is_tls else _SEND_PIECE
        while self.out:
            with memoryview(self.out) as view:
                sent = self._send(view[:piece])
            if not sent:
                return
            del self.out[:sent]

    def _send(self, data: Bytes) -> int:
        try:
            return self.sock.send(data)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0
        except OSError as error:
            raise PeerGoneError(self.side, error) from error
