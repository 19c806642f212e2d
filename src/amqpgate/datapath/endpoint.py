"""The plain engine's endpoints: one socket, with its unsent bytes, its partial frame and its clocks; and the
ends of a connection that several sessions share.

A **link** is one upstream connection of several sessions. A pooled session has a ``PlainPooledEndpoint``
where it would else have a socket to the broker: it takes what the session sends, and gives what the link has
for it.
The client's channel n is the link's channel m; ``Channels.open(n, to=m)`` says so on the way up, and
``Link.map_channel`` on the way down.
"""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Callable
from typing import cast

import attrs

from amqpgate.datapath import engine
from amqpgate.datapath.engine import (
    BufferedSocket,
    Bytes,
    LinkParty,
    Party,
    PeerGoneError,
    Socket,
    out_of_memory,
    say_end,
)
from amqpgate.datapath.framing import CHANNEL
from amqpgate.datapath.scanner import Lane
from amqpgate.datapath.staging import whole_only
from amqpgate.datapath.tables import Side
from amqpgate.datapath.tls import has_ended, is_tls, would_block
from amqpgate.datapath.whole import Walk
from amqpgate.protocol.frames import FRAME_HEAD, FRAME_OVERHEAD, HEARTBEAT

#: TLS sends go one record at a time: OpenSSL demands that a send that could not finish is repeated
#: with the same beginning, and unsent bytes only ever grow at their end.
_TLS_RECORD = 16 * 1024
#: Largest piece that one send offers to the kernel; a default socket buffer takes no more at once.
_SEND_PIECE = 256 * 1024


@attrs.define(eq=False)
class PlainRelayEndpoint:
    """One socket of an established session. Owned by the pump while its relay is in it."""

    sock: Socket
    side: Side
    #: The direction that begins at this socket.
    lane: Lane
    #: Negotiated heartbeat of this hop in seconds; 0 is none.
    heartbeat: float
    #: Received, but not a whole frame yet; what came along with the hand-over, at first.
    partial: bytearray = attrs.field(factory=bytearray, converter=bytearray)
    #: Set by the pump.
    relay: Party = attrs.field(init=False)
    peer: PlainRelayEndpoint = attrs.field(init=False)
    #: ``sock``, if it has buffers of its own.
    buffered: BufferedSocket | None = attrs.field(init=False)
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
    #: What was sent last of what came was rewritten.
    rewritten: bool = attrs.field(default=False, init=False)
    #: More is about to follow what is sent now.
    more: bool = attrs.field(default=False, init=False)
    #: The kernel keeps what was sent last back for that.
    _is_corked: bool = attrs.field(default=False, init=False)
    last_received: float = attrs.field(default=0.0, init=False)
    last_sent: float = attrs.field(default=0.0, init=False)

    def __attrs_post_init__(self) -> None:
        self.fresh = bool(self.partial)
        self.buffered = self.sock if isinstance(self.sock, BufferedSocket) else None

    def meet(self, peer: PlainRelayEndpoint) -> None:
        """Tell it who is at the other end of the session."""
        self.peer = peer

    def part(self) -> None:
        """See ``engine.RelayEndpoint.part``. Nothing: a cycle of these is left to Python's collector."""

    @property
    def active(self) -> bool:
        """Whether its session, or link, is in the pump, and it is still an end of that."""
        return self.relay.active

    def close_at_once(self) -> bool:
        """See ``engine.RelayEndpoint.close_at_once``."""
        sock = self.sock
        if isinstance(sock, BufferedSocket) or self.out or sock.fileno() < 0:
            return False
        if is_tls(sock):
            if not say_end(sock):
                return False
        else:
            try:
                if sock.recv(1, socket.MSG_PEEK):
                    return False
            except BlockingIOError:
                pass
            except OSError:
                return False
        sock.close()
        return True

    def peer_name(self) -> tuple[str, int] | None:
        """See ``engine.RelayEndpoint.peer_name``."""
        try:
            host, port = self.sock.getpeername()[:2]
        except OSError:
            return None
        return host, port

    @property
    def is_tls(self) -> bool:
        return is_tls(self.sock) if self.buffered is None else self.buffered.is_tls

    @property
    def is_wrapped(self) -> bool:
        """Whether there may be something to receive that no epoll knows of."""
        return self.buffered is not None or is_tls(self.sock)

    @property
    def is_pooled(self) -> bool:
        """Whether it is a ``PlainPooledEndpoint``: it has no socket."""
        return self.as_pooled is not None

    @property
    def as_pooled(self) -> PlainPooledEndpoint | None:
        """Itself, if it is a pooled session's end at a link."""
        return None

    @property
    def as_link(self) -> PlainLinkEndpoint | None:
        """Itself, if it is the socket of a link."""
        return None

    @property
    def pooled_peer(self) -> PlainPooledEndpoint | None:
        """Its peer, if that is a pooled session's end at a link: it is that session's client then."""
        return self.peer.as_pooled

    @property
    def waiting(self) -> int:
        """How many bytes are unsent."""
        return len(self.out) + (0 if self.buffered is None else self.buffered.unsent)

    def unsent(self) -> bytes:
        """A copy of what was put here and the socket did not take yet."""
        return bytes(self.out)

    def rest(self) -> bytes:
        """A copy of what was received and not dealt with."""
        return bytes(self.partial)

    def receive_into(self, view: memoryview) -> int:
        """Bytes received, 0 at the end of the stream, -1 when there is nothing now.

        Raises ``PeerGoneError`` when it is broken; of a ``BufferedSocket``, ``ProtocolViolation``.
        """
        try:
            return self.sock.recv_into(view)
        except would_block():
            return -1
        except has_ended():
            return 0
        except OSError as error:
            raise PeerGoneError(self.side, error) from error

    def has_pending(self) -> bool:
        """Whether OpenSSL or a ``BufferedSocket`` holds bytes, which epoll cannot know of."""
        if self.buffered is not None:
            return self.buffered.pending()
        return is_tls(self.sock) and self.sock.pending() > 0

    def put(self, data: Bytes) -> None:
        """Accept bytes for this socket: straight to the kernel as far as it takes them."""
        if self.out:
            self.out += data
        elif self.is_wrapped:
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
        """Send what is unsent, as far as the kernel takes it; of a ``BufferedSocket``, for a turn."""
        if self.buffered is not None:
            self._flush_buffered(self.buffered)
            return
        most = _TLS_RECORD if self.is_wrapped else _SEND_PIECE
        while self.out:
            # Released both, for a traceback keeps what has failed: else nothing could be put any more.
            with memoryview(self.out) as view, view[:most] as piece:
                sent = self._send(piece)
            if not sent:
                return
            del self.out[:sent]

    def _flush_buffered(self, sock: BufferedSocket) -> None:
        try:
            sock.flush()
        except OSError as error:
            raise PeerGoneError(self.side, error) from error
        if self.out:
            with memoryview(self.out) as view:
                sent = self._send(view)
            del self.out[:sent]

    def beat(self) -> None:
        """Send a heartbeat, unless what is unsent tells the peer as much once the kernel takes it."""
        if self.buffered is not None:
            try:
                self.buffered.beat()
            except OSError as error:
                raise PeerGoneError(self.side, error) from error
        elif not self.out:
            self.put(HEARTBEAT)

    def uncork(self) -> None:
        """Nothing has followed: the kernel sends what it keeps back. Where it has been sent, does nothing.

        What goes out before an upcall and what the upcall sends is one packet so: to hand one over within a
        machine, where the peer is woken, takes as long as the upcall.
        """
        if self._is_corked and isinstance(self.sock, socket.socket):
            self._is_corked = False
            with contextlib.suppress(OSError):
                # On again, which it is: that is what has the kernel send (tcp(7), TCP_NODELAY).
                self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _send(self, data: Bytes) -> int:
        try:
            if self.more:
                assert isinstance(self.sock, socket.socket), "it is plain"
                sent = self.sock.send(data, socket.MSG_MORE)
            else:
                sent = self.sock.send(data)
            self._is_corked = self.more
            return sent
        except would_block():
            return 0
        except OSError as error:
            raise PeerGoneError(self.side, error) from error


@attrs.define(eq=False)
class PlainLinkEndpoint(PlainRelayEndpoint):
    """The socket of a link. It has no peer: what comes is handed out by channel."""

    #: Whose each channel of the link is, and the channel's number on that client.
    mappings: dict[int, tuple[PlainPooledEndpoint, int]] = attrs.field(factory=dict, init=False)
    #: Clients that are not read because too much waits for this socket.
    held_up: dict[PlainRelayEndpoint, None] = attrs.field(factory=dict, init=False)
    #: Sessions for which so much waits, only since their turns do not come as fast, that it is not read.
    behind: dict[PlainPooledEndpoint, None] = attrs.field(factory=dict, init=False)
    #: A send has failed; the pump ends it at the end of the event.
    broken: bool = attrs.field(default=False, init=False)

    @property
    def as_link(self) -> PlainLinkEndpoint:
        return self

    @property
    def pooled_peer(self) -> None:
        return None

    def map_channel(self, number: int, pooled: engine.PooledEndpoint, to: int) -> None:
        """See ``Link.map_channel``."""
        self.mappings[number] = cast(PlainPooledEndpoint, pooled), to

    def unmap_channel(self, number: int) -> None:
        """See ``Link.unmap_channel``."""
        self.mappings.pop(number, None)

    def mapping_at(self, number: int) -> tuple[PlainPooledEndpoint, int] | None:
        """Whose the channel is, and its number on that client."""
        return self.mappings.get(number)

    def owes(self) -> bool:
        """Whether something that came by it still waits for a session's turn."""
        return any(
            pooled.active and pooled.fresh and not pooled.throttled for pooled, _to in self.mappings.values()
        )

    def mapped_to(self, number: int) -> tuple[PlainPooledEndpoint | None, int]:
        """As ``mapping_at``, but nobody where the session is over."""
        mapping = self.mappings.get(number)
        return mapping if mapping is not None and mapping[0].active else (None, 0)

    def take(self, data: Bytes) -> None:
        """As ``put``, but what is broken is noted for the pump: it is not the caller's session that ends.

        Bytes for a link that is broken or over are dropped.
        """
        if self.broken or not self.relay.active:
            return
        try:
            self.put(data)
            if self.buffered is not None or (self.out and not self.interest & select.EPOLLOUT):
                # Who puts may leave before anybody balances.
                self.relay.pump.touched(self)
        except PeerGoneError as gone:
            self.relay.pump.lose(self, gone)
        except MemoryError:
            # Some of a frame may have gone; nothing can follow it. (The compiled one asks for room first.)
            self.relay.pump.lose(self, out_of_memory(self.side))
        except Exception:
            # A translator has failed, which the pump finds out.
            self.relay.pump.touched(self)
            raise


@attrs.define(eq=False, init=False)
class PlainPooledEndpoint(PlainRelayEndpoint):
    """A pooled session's end at a link: the upstream endpoint of its relay, without a socket."""

    #: What it is attached to; None: nothing, and what is put is dropped.
    link: LinkParty | None = attrs.field(init=False)
    #: The link's socket.
    way: PlainLinkEndpoint | None = attrs.field(init=False)
    #: Bytes of body that a message may have to wait for its end here. Larger ones are ``LARGE``.
    whole: int = attrs.field(init=False)
    #: Bytes that may wait for a client that does not read; ``handler.overflowed`` is called above.
    limit: int = attrs.field(init=False)
    #: Largest frame that is taken from a broker where less was agreed.
    largest_frame: int = attrs.field(init=False)
    #: How far the client's bytes are known to be whole; None: nothing of a message is kept.
    walk: Walk | None = attrs.field(init=False)
    #: What was put while a message was half way; with the link's channel numbers.
    stage: bytearray = attrs.field(init=False)
    #: Called once ``stage`` has gone.
    told: list[Callable[[], None]] = attrs.field(init=False)
    #: ``stage`` takes what is put.
    staging: bool = attrs.field(init=False)
    #: ``handler.overflowed`` has been called.
    has_overflowed: bool = attrs.field(init=False)
    #: Its client's socket is broken; the pump ends the session at the end of the event.
    broken: bool = attrs.field(init=False)

    def __init__(self, lane: Lane, *, whole: int, limit: int, largest_frame: int = 0) -> None:
        """``lane`` is the session's way down."""
        self.sock = None  # type: ignore[assignment]
        self.buffered = None
        self.lane = lane
        self.side = Side.UPSTREAM
        self.heartbeat = 0.0
        self.partial, self.out = bytearray(), bytearray()
        self.wanted = self.interest = 0
        self.fresh = self.paused = self.throttled = self.halted = self.queued = False
        self.last_received = self.last_sent = 0.0
        self.link = self.way = None
        self.whole, self.limit, self.largest_frame = whole, limit, largest_frame
        self.walk = None
        self.stage = bytearray()
        self.told = []
        self.staging = self.has_overflowed = self.broken = False

    def peer_name(self) -> None:
        return None

    @property
    def active(self) -> bool:
        return self.relay.active and self.relay.endpoints[Side.UPSTREAM] is self

    @property
    def as_pooled(self) -> PlainPooledEndpoint:
        return self

    def attach(self, link: LinkParty) -> None:
        """From now on what is put goes to ``link``, whose frame size holds for the session."""
        self.link, self.way = link, cast(PlainLinkEndpoint, link.endpoint)
        self.lane.frame_max = max(link.frame_max, self.largest_frame)
        self.peer.lane.out_frame_max = link.frame_max
        self._look_again()

    def detach(self, *, is_lost: bool = False) -> None:
        """See ``engine.PooledEndpoint.detach``."""
        self.release()
        if is_lost:
            self.partial.clear()
        if self.active:
            self.relay.pump.caught_up(self)
        self.link = self.way = None
        self._look_again()

    def _look_again(self) -> None:
        """Its client may have waited for the link that it was on."""
        if self.active:
            self.relay.pump.touched(self)

    def put(self, data: Bytes) -> None:
        """Accept whole frames with the client's channel numbers.

        Raises ``KeyError`` for a frame on a channel that is not open: it has no number on the link.
        """
        if self.way is None:
            return
        frames = bytearray(data)
        at = 0
        while at < len(frames):
            _kind, number, size = FRAME_HEAD.unpack_from(frames, at)
            to = self.lane.channels.to(number)
            if not to:
                raise KeyError(number)
            CHANNEL.pack_into(frames, at + 1, to)
            at += size + FRAME_OVERHEAD
        self.pass_on(frames)

    def pass_on(self, data: Bytes) -> None:
        """As ``put``, of a scanner's spans: they have the link's numbers."""
        if self.staging:
            self.stage += data
        elif self.way is not None:
            self.way.take(data)

    def when_sent(self, told: Callable[[], None]) -> None:
        """Call it once what was put has gone to the link; now, if it has. It may be amid a step."""
        if self.stage:
            self.told.append(told)
        else:
            told()

    def hold(self) -> None:
        """A message may be half way: keep what is put, until ``release``."""
        self.staging = True

    def release(self) -> None:
        """No message is half way: what is kept may go, and what is put from now on."""
        self.staging = False
        if self.stage:
            data, self.stage = whole_only(self.stage), bytearray()
            self.pass_on(data)
            told, self.told = self.told, []
            for each in told:
                each()

    def drop(self) -> None:
        """The session is over, maybe in mid-message: of what was put the link gets the whole messages only,
        and what was said on other channels."""
        self.release()
        self.walk = None

    def give_back(self) -> list[bytes]:
        """The frames that came for a session that is over, with the link's channel numbers."""
        frames: list[bytes] = []
        at = 0
        while at < len(self.partial):
            _kind, number, size = FRAME_HEAD.unpack_from(self.partial, at)
            to = self.lane.channels.to(number)
            if to:
                CHANNEL.pack_into(self.partial, at + 1, to)
                frames.append(bytes(self.partial[at : at + size + FRAME_OVERHEAD]))
            at += size + FRAME_OVERHEAD
        self.partial.clear()
        return frames
