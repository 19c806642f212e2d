"""What an engine is: the contract of both pumps, the compiled one (``_pump``) and the plain one (``pump``).

``build`` chooses between them, and makes what goes into a pump.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import ssl
from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol

import attrs

from amqpgate.datapath.captures import Captured
from amqpgate.datapath.latency import LatencyCounts
from amqpgate.datapath.scanner import Lane
from amqpgate.datapath.tables import ScanResult, Side
from amqpgate.datapath.tls import is_tls
from amqpgate.errors import AmqpgateError
from amqpgate.values import define, frozen

Bytes = bytes | bytearray | memoryview


class PeerGoneError(AmqpgateError):
    """The connection of ``side`` is broken; the cause is chained."""

    def __init__(self, side: Side, cause: OSError) -> None:
        super().__init__(f"{side.name.lower()}: {cause}")
        self.side = side


def out_of_memory(side: Side) -> PeerGoneError:
    """A frame to ``side`` is cut: there is no memory for the rest. Its connection is as good as gone."""
    return PeerGoneError(side, OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)))


class End(Enum):
    """Why a relay left the pump."""

    #: The side's socket reached its end or was reset.
    GONE = "gone"
    #: The side was silent for two heartbeat intervals.
    SILENT = "silent"
    #: The control plane asked for it: closed by agreement, refused, drained.
    FINISHED = "finished"
    #: An exception in an upcall; it has been logged. Or a violation that a ``BufferedSocket`` has found.
    FAILED = "failed"


# To look a member of an enum up takes Python 3.11 a detour each time.
_FINISHED: Final = End.FINISHED


class Handler(Protocol):
    """The control plane's side of a session that is in the pump. Called synchronously."""

    def upcall(self, side: Side, result: ScanResult, frame: memoryview) -> bool:
        """Deal with one frame from ``side``; the view is valid during the call only.

        True: the frame has not been dealt with, look again. At once after a miss whose flow has been
        installed; or later, if the handler has set ``Lane.ready_at`` of that side to when. False: it has been
        dealt with; where the handler has set ``Lane.ready_at``, nothing of that side is looked at before.
        """

    def captured(self, side: Side, messages: list[Captured]) -> None:
        """These messages from ``side`` have passed, in this order. Called once for those of a scan."""

    def ended(self, end: End, side: Side | None, error: Exception | None) -> None:
        """The relay left the pump; its sockets and unsent bytes are the handler's again."""


class PooledHandler(Handler, Protocol):
    """The control plane's side of a pooled session."""

    def overflowed(self) -> None:
        """More than ``PooledEndpoint.limit`` bytes wait for the client, for which no link is stopped.

        Called once; the handler ends the session.
        """


class BufferedSocket:
    """A socket with buffers of its own, whose peer speaks no AMQP 0-9-1. To both pumps it does.

    Frames come out of it that no epoll knows of, and it has bytes to send that no pump has put there. So a
    pump asks it after each turn of its session. All of it is non-blocking, and takes no longer than a turn.
    """

    #: The real socket, plain or TLS.
    inner: socket.socket

    @property
    def is_tls(self) -> bool:
        return is_tls(self.inner)

    def fileno(self) -> int:
        """The descriptor of the real socket, for epoll."""
        return self.inner.fileno()

    def getpeername(self) -> tuple[str, int]:
        """The real socket's address and port. Raises ``OSError``."""
        host, port = self.inner.getpeername()[:2]
        return host, port

    def close(self) -> None:
        """Close at once; what is unsent is dropped. Idempotent."""
        self.inner.close()

    # -- frames ------------------------------------------------------------------------------

    def read_headers(self, is_read: bool) -> None:
        """Whether anybody looks at the content headers that come out of it. While nobody does, they may lack
        properties."""

    def recv_into(self, view: memoryview) -> int:
        """Bytes of frames, cut anywhere; 0 at the end of the stream, -1 when there is nothing now.

        Raises ``OSError`` when the connection is broken, and
        ``ProtocolViolation`` for the peer's; all frames before that have been given out.
        """
        raise NotImplementedError

    def pending(self) -> bool:
        """Whether ``recv_into`` has to be called, though the real socket may have nothing."""
        raise NotImplementedError

    @property
    def is_full(self) -> bool:
        """Whether nothing is read of the real socket before something has been sent to it, or put here."""
        raise NotImplementedError

    def send(self, frames: Bytes) -> int:
        """How many bytes of whole frames were taken: whole frames.

        Raises ``BlockingIOError`` where that is none, and ``OSError`` when the connection is broken.
        """
        raise NotImplementedError

    @property
    def takes_frames(self) -> bool:
        """Whether ``send`` would take some now."""
        raise NotImplementedError

    # -- bytes of its own ----------------------------------------------------------------------

    @property
    def unsent(self) -> int:
        """How many of its own bytes the kernel did not take yet."""
        raise NotImplementedError

    def flush(self) -> None:
        """Send them as far as the kernel takes them. Raises ``OSError``."""
        raise NotImplementedError

    # -- heartbeats ----------------------------------------------------------------------------

    def beat(self) -> None:
        """Send a heartbeat, before all frames that were not taken yet. Called each half interval.

        Not if the kernel has taken anything for the peer since the call before, or bytes are unsent.
        Raises ``OSError``.
        """
        raise NotImplementedError

    def has_heard(self) -> bool:
        """Whether the peer has sent anything since this was asked last."""
        raise NotImplementedError


#: What a pump takes for the socket of a peer: a plain one, an ``ssl.SSLSocket``, or one with buffers.
Socket = socket.socket | BufferedSocket


@frozen
class HandedOverSocket:
    """What the control plane knows of one socket when it hands it over."""

    sock: Socket
    frame_max: int
    #: Seconds; 0 is none.
    heartbeat: float
    #: Bytes that were received after the last frame of the handshake.
    rest: bytes = b""


def say_end(sock: ssl.SSLSocket) -> bool:
    """Tell a peer of TLS that nothing more comes (RFC 8446, section 6.1), unless it has said more than that
    itself; whether it was told. What it has said is dropped."""
    try:
        if sock.recv(1):
            return False
    except (ssl.SSLWantReadError, ssl.SSLZeroReturnError, ssl.SSLEOFError):
        pass
    except (OSError, ValueError):
        return False
    with contextlib.suppress(OSError, ValueError):
        # The peer's own end is not waited for.
        sock.unwrap()
    return True


class RelayEndpoint(Protocol):
    """One end of a session in the pump: a socket, or a ``PooledEndpoint``."""

    @property
    def sock(self) -> Socket:
        """Its socket. The endpoint owns it once it has entered the pump: the object that was handed over may
        not be used any more, and this may be another one.
        """

    def close_at_once(self) -> bool:
        """Close the socket of an endpoint that has left the pump, if nothing of it is left; whether it was.

        Where bytes are unsent, or unread, it was not: what is unread would make the kernel reset the
        connection, and what the kernel has still to send be lost. Nor where it is a ``BufferedSocket``, or
        broken. A peer that speaks TLS is told, and not waited for (`say_end`).
        """

    def part(self) -> None:
        """Its session is over, and nobody asks for the other end any more: they keep each other no longer."""

    def peer_name(self) -> tuple[str, int] | None:
        """The peer's address and port. None: it has gone, or there is no socket."""

    @property
    def side(self) -> Side: ...
    @property
    def lane(self) -> Lane:
        """The direction that begins here."""

    @property
    def heartbeat(self) -> float:
        """Negotiated interval of this hop in seconds; 0 is none."""

    @property
    def last_received(self) -> float: ...
    @property
    def paused(self) -> bool:
        """No reads: too much waits for its peer."""

    @property
    def throttled(self) -> bool:
        """No reads: a token bucket is empty."""

    @property
    def halted(self) -> bool:
        """No reads, ever again."""

    @property
    def is_tls(self) -> bool: ...
    @property
    def is_pooled(self) -> bool:
        """Whether it is a ``PooledEndpoint``: it has no socket."""

    @property
    def waiting(self) -> int:
        """How many bytes are unsent, those of a ``BufferedSocket`` included."""

    def unsent(self) -> bytes:
        """A copy of what was put here and the socket did not take yet."""

    def rest(self) -> bytes:
        """A copy of what was received and not dealt with."""

    def put(self, data: Bytes) -> None:
        """Accept whole frames, behind what was accepted before. Raises ``PeerGoneError``."""


class LinkEndpoint(RelayEndpoint, Protocol):
    """The socket of a link. It has no peer: what comes is handed out by channel."""

    def map_channel(self, number: int, pooled: PooledEndpoint, to: int) -> None:
        """See ``Link.map_channel``."""

    def unmap_channel(self, number: int) -> None:
        """See ``Link.unmap_channel``."""

    def mapping_at(self, number: int) -> tuple[PooledEndpoint, int] | None:
        """Whose the channel is, and its number on that client."""

    def owes(self) -> bool:
        """Whether something that came by it still waits for a session's turn."""

    def take(self, data: Bytes) -> None:
        """As ``put``, but what is broken is noted for the pump. Does nothing once the link is over."""


class PooledEndpoint(RelayEndpoint, Protocol):
    """A pooled session's end at a link, in the place of a socket to the broker."""

    #: Bytes of body that a message may have to wait for its end here. Larger ones are ``LARGE``.
    whole: int
    #: Bytes that may wait for a client that does not read; ``handler.overflowed`` is called above.
    limit: int

    def when_sent(self, told: Callable[[], None]) -> None:
        """Call it once what was put has gone to the link; now, if it has. It may be amid a step."""

    def attach(self, link: LinkParty) -> None:
        """From now on what is put goes to ``link``, whose frame size holds for the session."""

    def detach(self, *, is_lost: bool = False) -> None:
        """From now on what is put is dropped. What was put before still goes to the link, and what the link
        gave to the client. No message may be half way.

        ``is_lost``: the link is over, and its channels with it. What it gave and no scan has passed, be it
        for want of a header or of tokens, is for nobody.
        """


class Counters(Protocol):
    """What the pump did, for metrics."""

    relays: int
    #: Upcalls by `ScanResult`.
    called: list[int]
    failures: int
    paused: int
    throttled: int
    latency: LatencyCounts

    @property
    def upcalls(self) -> int: ...


class Pump(Protocol):
    """Every established socket in one epoll set. One thread owns it; ``interrupt`` is safe from others."""

    @property
    def counters(self) -> Counters: ...
    @property
    def deadlines(self) -> int:
        """How many timers are set: heartbeats and throttled senders."""

    def fileno(self) -> int:
        """Readable when ``step`` has something to do."""

    def __len__(self) -> int:
        """How many sockets are in it."""

    def watch(self, seconds: float, late: Callable[[float], None]) -> None:
        """Every so often tell ``late`` by how many seconds the loop got there too late."""

    def attend(self, fd: int, callback: Callable[[], None] | None) -> None:
        """Call this in each step in which the descriptor is readable, after the turns of sockets; None: not
        any more. The descriptor stays the caller's, who takes it out before it is closed."""

    def serve_guests(self, take_in: Callable[[list[object]], None]) -> None:
        """Call this in each step with the guests who have something to read, after the turns of sockets."""

    def lend(self, fd: int, guest: object | None) -> None:
        """Watch the descriptor for a guest; None: not any more.

        The guest takes it out before it is closed, or leaves it to the session whose socket it becomes: for
        that it is watched on.
        """

    def step(self, timeout: float = 0) -> None:
        """Handle what is ready. Waits for it up to ``timeout`` seconds, for ever below zero.

        Memory that runs out ends the session that asked for it. Where that was none, the next step goes on.
        """

    def run(self) -> None:
        """Step for as long as nobody interrupts; what an interrupt cut short goes on at the next call."""

    def interrupt(self) -> None:
        """Make ``run``, or a waiting ``step``, return. Safe from other threads and signal handlers."""

    def close(self) -> None:
        """End every relay without a word; their sockets stay open and are the handlers'. Idempotent."""

    def add(self, party: Party) -> None:
        """Take a session, or a link, in. Bytes that its hops brought along are relayed at the next step."""

    def remove(self, party: Party, end: End, side: Side | None, error: Exception | None) -> None:
        """Hand a session, or a link, back to its handler."""

    def exchange(self, relay: Party, hop: HandedOverSocket) -> None:
        """A pooled session gets a socket of its own to the broker; it goes on with all that is kept.

        While no message is half way, and not in an upcall of what came from the link. Who has the link's
        channels, and the session's channels' numbers (``Channels.remap``), are the caller's business.
        """

    def touched(self, endpoint: RelayEndpoint) -> None:
        """Somebody put bytes into ``endpoint`` outside a scan."""

    def lose(self, endpoint: RelayEndpoint, gone: PeerGoneError) -> None:
        """A send to ``endpoint`` has failed in what may be another's event: its end comes after that."""

    def caught_up(self, pooled: PooledEndpoint) -> None:
        """Its link need not wait for it, or not any more."""

    def retry(self, relay: Party) -> None:
        """Other flows may let pass now what an empty bucket held back: look at the next step."""

    def feed(self, relay: Party, side: Side, frames: Bytes) -> None:
        """Whole frames that the handler has kept of what ``side`` said, with the session's channel numbers:
        they come again, before all else that is kept. Not in an upcall; nothing where the relay is over.
        """

    def halt(self, relay: Party) -> None:
        """Read no more from the client: of what it says the broker has had a beginning, and gets no more.

        A message may end in the middle. What comes from the broker goes on, and so do heartbeats.
        """


@define(eq=False, weakref_slot=False)
class Party:
    """What enters the data path as one, and leaves it as one: a session's relay, or a link."""

    handler: Handler
    pump: Pump = attrs.field(init=False)
    active: bool = attrs.field(default=False, init=False)
    #: Its sockets, or of a pooled session the client's and its end at the link.
    endpoints: tuple[RelayEndpoint, ...] = attrs.field(init=False)

    def finish(self) -> None:
        """Leave the pump; ``handler.ended`` is called once, with ``End.FINISHED``."""
        self.pump.remove(self, _FINISHED, None, None)


class LinkParty(Protocol):
    """A link, as a pooled endpoint sees it."""

    handler: Handler
    active: bool
    frame_max: int

    @property
    def endpoint(self) -> LinkEndpoint: ...
