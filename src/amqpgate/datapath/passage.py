"""How bytes get from endpoint to endpoint, in plain Python: the pump's contract without epoll.

What is received lies in one scratch that all share, right behind what was kept of the frame before. Three
ways lead from there:

* from a socket to its session's other one: ``scan``, and what it lets pass (``_scan``);
* from a client to a link: ``whole.Walk``, then ``scan`` as far as no message is half there (``_collect``);
* from a link: by channel, in runs to whoever sits there, and there as from a socket (``_hand_out``).

Only whole messages go to a link, whatever happens. What the walk found whole may still end in the middle: an
upcall ends the session, or a bucket is empty while messages of two channels lie in each other. So while a
message is half way, its pooled stages what goes to the link, and drops it if the session ends.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import cast

import attrs

from amqpgate.datapath.endpoint import PeerGoneError, RelayEndpoint
from amqpgate.datapath.framing import CHANNEL, check_frame
from amqpgate.datapath.link import Link
from amqpgate.datapath.relay import End, Party, Relay
from amqpgate.datapath.scanner import reframe, scan
from amqpgate.datapath.shared import LinkEndpoint, PooledEndpoint
from amqpgate.datapath.staging import quiet_end
from amqpgate.datapath.tables import LAST_HARMLESS, OPEN, ScanResult, Side
from amqpgate.datapath.wheel import Wheel
from amqpgate.datapath.whole import Walk
from amqpgate.protocol.frames import FRAME_HEAD, FRAME_HEARTBEAT, FRAME_OVERHEAD

#: Frames of one pooled session that are relayed at once, at most; their numbers on the link are kept.
RUN = 1024
#: Bytes per read, into one shared scratch. The more, the fewer wake-ups and system calls; the longer others
#: wait, too. As a part of what a message costs with 256 KiB: 128 KiB 1.00 to 1.23, 512 KiB 0.84 to 1.00
#: (0.92 on average), 1 MiB 0.77 to 1.02 (0.88); bodies of 16 B to 64 KiB, both ways (medians of 5 rounds).
CHUNK = 512 * 1024
#: Bytes of what is kept that are looked at at once.
PIECE = 64 * 1024
#: Seconds that the upcalls of one connection may take before others have their turn; the clock is looked at
#: after each of them. See decision 0028 for the measurements.
TURN = 1e-3

#: A frame inside a message, maybe its last, is not passed yet.
_INSIDE = frozenset({ScanResult.HEADER, ScanResult.BODY, ScanResult.REFRAME})


@attrs.define
class PumpCounters:
    """What the pump did, for metrics."""

    relays: int = 0
    #: Upcalls by `ScanResult`.
    called: list[int] = attrs.field(factory=lambda: [0] * (max(ScanResult) + 1))
    failures: int = 0
    paused: int = 0
    throttled: int = 0

    @property
    def upcalls(self) -> int:
        return sum(self.called)


class Passage(ABC):
    """The scratch, and the three ways; see the module. ``pump.Pump`` is the only one."""

    def __init__(self, *, largest_frame: int, on_failure: Callable[[Exception], None]):
        # A partial frame is put right before the received bytes, so that the scan sees one piece.
        self._base = largest_frame + FRAME_OVERHEAD
        self._scratch = memoryview(bytearray(self._base + CHUNK))
        self._landing = self._scratch[self._base :]
        self._spans: list[tuple[int, int]] = []
        self._on_failure = on_failure
        #: To look at in the next step, whatever epoll says: first who has not had a turn, then who has.
        self._unserved: list[RelayEndpoint] = []
        self._ready: list[RelayEndpoint] = []
        #: When the present turn is over; 0: no upcall has begun it.
        self._turn_ends = 0.0
        #: It is.
        self._is_over = False
        #: What the clock said last.
        self._latest = 0.0
        self._throttles: Wheel[RelayEndpoint] = Wheel()
        #: Who is to end, and why, since a send failed in what may be another's event.
        self._lost: list[tuple[Party, PeerGoneError]] = []
        #: Seats of sessions that are over, and where they were: frames that are kept are that link's now.
        self._left: list[tuple[Link, PooledEndpoint]] = []
        #: Whose handlers could not be told of their end, for want of memory.
        self._untold: list[tuple[Party, End, Side | None, Exception | None]] = []
        #: How far the frames of ``_relay`` were dealt with when an exception ended it.
        self._passed = 0
        self._now = 0.0
        self.counters = PumpCounters()

    @abstractmethod
    def _wake(self) -> None:
        """Make the next step begin at once."""

    @abstractmethod
    def _look(self) -> float:
        """What the clock says; it is ``_latest`` then."""

    @abstractmethod
    def _balance(self, endpoint: RelayEndpoint) -> None:
        """Bring back-pressure and the epoll set in line with the bytes that wait."""

    @abstractmethod
    def caught_up(self, pooled: PooledEndpoint) -> None:
        """Its link need not wait for it, or not any more."""

    @abstractmethod
    def remove(self, party: Party, end: End, side: Side | None, error: Exception | None) -> None:
        """Hand a session, or a link, back to its handler."""

    def _fail(self, party: Party, side: Side, error: Exception) -> None:
        """An exception in an upcall ends that session, or link, and no other."""
        self._note(error)
        self.remove(party, End.FAILED, side, error)

    def _note(self, error: Exception) -> None:
        """Count a failure and tell of it; where even that fails, for want of memory maybe, go on."""
        with contextlib.suppress(Exception):
            self.counters.failures += 1
            self._on_failure(error)

    def lose(self, endpoint: RelayEndpoint, gone: PeerGoneError) -> None:
        """A send to ``endpoint`` has failed in what may be another's event: its end comes after that."""
        shared = endpoint if isinstance(endpoint, LinkEndpoint) else endpoint.peer
        assert isinstance(shared, LinkEndpoint | PooledEndpoint), "who has a link has no other's events"
        if not shared.broken:
            self._lost.append((endpoint.relay, gone))
            shared.broken = True
            self._wake()

    # -- turns -------------------------------------------------------------------------------

    def _begin(self) -> None:
        """An upcall is next."""
        if not self._turn_ends:
            self._turn_ends = self._look() + TURN

    def _ends_turn(self, endpoint: RelayEndpoint) -> bool:
        """After an upcall: whether others have their turn now. The endpoint goes on when it has its next."""
        if self._look() < self._turn_ends:
            return False
        self._is_over = True
        endpoint.fresh = True
        self._queue(self._ready, endpoint)
        return True

    def _queue(self, queue: list[RelayEndpoint], endpoint: RelayEndpoint) -> None:
        if not endpoint.queued:
            queue.append(endpoint)
            endpoint.queued = True
            self._wake()

    def _look_soon(self, endpoint: RelayEndpoint) -> None:
        """What is kept for it may be relayed in the next step."""
        endpoint.fresh = True
        self._queue(self._unserved, endpoint)

    def _dispatch(self, endpoint: RelayEndpoint, got: int) -> None:
        """What becomes of ``got`` new bytes in the scratch."""
        if isinstance(endpoint, LinkEndpoint):
            self._hand_out(endpoint, got)
        elif isinstance(endpoint.peer, PooledEndpoint):
            self._collect(endpoint, endpoint.peer, got)
        else:
            self._scan(endpoint, got)

    # -- from an endpoint to its peer --------------------------------------------------------

    def _take_rest(self, endpoint: RelayEndpoint) -> None:
        """Relay what is kept, as if it had just been received; when the turn is over the rest is kept on."""
        endpoint.fresh = False
        # Silence that was ours.
        endpoint.last_received = self._now
        if not isinstance(endpoint, LinkEndpoint) and isinstance(endpoint.peer, PooledEndpoint):
            self._collect(endpoint, endpoint.peer, 0)
            return
        rest = bytes(endpoint.partial)
        endpoint.partial.clear()
        at = 0
        while at < len(rest) and endpoint.relay.active and not endpoint.throttled and not endpoint.fresh:
            piece = rest[at : at + PIECE]
            self._landing[: len(piece)] = piece
            at += len(piece)
            self._dispatch(endpoint, len(piece))
        endpoint.partial += rest[at:]

    def _scan(self, endpoint: RelayEndpoint, got: int) -> None:
        """Relay the whole frames among ``got`` new bytes; keep the beginning of the next one."""
        partial = endpoint.partial
        pos = self._base - len(partial)
        end = self._base + got
        self._scratch[pos : self._base] = partial
        partial.clear()
        pos, stop = self._relay(endpoint, pos, end)
        # Where the session has ended, what came behind may be the answer to a close.
        partial += self._scratch[pos:end]
        endpoint.wanted = stop - pos

    def _relay(
        self, endpoint: RelayEndpoint, pos: int, end: int, *, is_quiet: bool = False
    ) -> tuple[int, int]:
        """Relay the whole frames among the scratch's bytes ``[pos:end]``, which begin with one.

        How far that came, and where the next frame will end, as far as that is known. ``is_quiet``: at
        ``end`` no message is half there.
        """
        scratch, spans = self._scratch, self._spans
        relay, lane = cast(Relay, endpoint.relay), endpoint.lane
        # An exception may have left another session's there.
        spans.clear()
        while True:
            pos, result, stop = scan(lane, scratch, pos, end, self._now, spans)
            self._passed = pos
            peer = endpoint.peer
            pooled = peer if isinstance(peer, PooledEndpoint) else None
            is_whole = True
            if pooled is not None:
                is_whole = (result is ScanResult.MORE and is_quiet) or (
                    result not in _INSIDE and not lane.channels.is_half_way(lane.side)
                )
                if not is_whole:
                    self._stage(pooled, spans)
                elif not pooled.stage:
                    pooled.release()
            if spans:
                taken = spans.copy()
                spans.clear()
                if pooled is None:
                    for first, last in taken:
                        peer.put(scratch[first:last])
                else:
                    # All of it or nothing: half a message would be the end of the link.
                    pooled.pass_on(b"".join(scratch[first:last] for first, last in taken))
                self._sent(peer)
            if pooled is not None and is_whole:
                pooled.release()
            if result is ScanResult.MORE:
                return pos, stop
            if result is ScanResult.THROTTLED:
                self._wait(endpoint)
                return pos, pos
            if pooled is not None:
                pooled.hold()
            if result is ScanResult.REFRAME:
                peer.put(reframe(scratch[pos:stop], lane.out_frame_max))
            else:
                self._passed = stop
                self.counters.called[result] += 1
                self._begin()
                again = relay.handler.upcall(endpoint.side, result, scratch[pos:stop])
                if pooled is not None and not lane.channels.is_half_way(lane.side):
                    pooled.release()
                if again:
                    if lane.ready_at > self._now:
                        self._wait(endpoint)
                        return pos, pos
                elif not relay.active:
                    return stop, stop
                else:
                    pos = stop
                if relay.active and self._ends_turn(endpoint):
                    return pos, pos
                continue
            pos = stop

    def _stage(self, pooled: PooledEndpoint, spans: list[tuple[int, int]]) -> None:
        """Of what the scanner passed, only whole messages go to the link now."""
        if not pooled.staging:
            quiet = quiet_end(self._scratch, spans)
            pooled.pass_on(
                b"".join(self._scratch[first : min(last, quiet)] for first, last in spans if first < quiet)
            )
            spans[:] = [(max(first, quiet), last) for first, last in spans if last > quiet]
        pooled.hold()

    def _sent(self, endpoint: RelayEndpoint) -> None:
        endpoint.last_sent = self._now
        if isinstance(endpoint, PooledEndpoint) and endpoint.link is not None:
            endpoint.link.endpoint.last_sent = self._now

    def _wait(self, endpoint: RelayEndpoint) -> None:
        """Look again at ``Lane.ready_at``."""
        endpoint.throttled = endpoint.fresh = True
        self.counters.throttled += 1
        self._throttles.set(endpoint, endpoint.lane.ready_at)

    # -- from a client to a link ---------------------------------------------------------------

    def _collect(self, client: RelayEndpoint, pooled: PooledEndpoint, got: int) -> None:
        """Relay what is whole of what is kept and of ``got`` new bytes; keep the rest."""
        data = client.partial + self._landing[:got]
        client.partial.clear()
        walk = pooled.walk or Walk()
        at = stop = 0
        try:
            while client.relay.active and not client.throttled and not client.fresh and client.peer is pooled:
                is_new = not walk.at
                result, first, stop = walk.look(client.lane, data, at, len(data), pooled.whole)
                first, stop = at + first, at + stop
                if walk.quiet:
                    passed = self._pass_whole(client, data, at, at + walk.quiet)
                    at += passed
                    walk.passed(passed)
                    if not passed and client.active and not (client.throttled or client.fresh):
                        raise RuntimeError("the scanner does not pass what is whole")
                elif result is ScanResult.MORE:
                    break
                else:
                    walk.restart()
                    if is_new and not self._tell(client, pooled, result, data[first:stop]):
                        at = stop
        finally:
            client.partial += data[at:]
            client.wanted = max(0, stop - at)
            pooled.walk = walk if client.partial else None
        if client.peer is not pooled and client.relay.active and client.partial:
            self._look_soon(client)

    def _pass_whole(self, client: RelayEndpoint, data: bytearray, first: int, last: int) -> int:
        """Relay what lies between two quiet places; how many bytes that came to."""
        at = first
        while at < last and client.relay.active and not client.throttled and not client.fresh:
            piece = data[at : min(last, at + len(self._scratch))]
            self._scratch[: len(piece)] = piece
            passed, _stop = self._relay(client, 0, len(piece), is_quiet=at + len(piece) == last)
            at += passed
        return at - first

    def _tell(
        self, client: RelayEndpoint, pooled: PooledEndpoint, result: ScanResult, frame: bytearray
    ) -> bool:
        """What the walk found is never scanned: the handler ends the session (False), or the message."""
        relay = pooled.relay
        self.counters.called[result] += 1
        self._begin()
        again = relay.handler.upcall(Side.CLIENT, result, memoryview(frame))
        if not relay.active or client.peer is not pooled:
            return relay.active
        if result > LAST_HARMLESS:
            raise RuntimeError(f"a session goes on after {result.name}")
        if again:
            if client.lane.ready_at > self._now:
                self._wait(client)
        elif relay.channels.state(int.from_bytes(frame[1:3], "big")) == OPEN:
            raise RuntimeError("a message that is too large was refused, and its channel goes on")
        self._ends_turn(client)
        return True

    # -- from a link ---------------------------------------------------------------------------

    def _hand_out(self, endpoint: LinkEndpoint, got: int) -> None:
        """Give the whole frames among ``got`` new bytes to those who sit at their channels.

        Once the turn is over, what comes is kept for each, until its own turn.
        """
        scratch, partial, link = self._scratch, endpoint.partial, endpoint.relay
        pos = self._base - len(partial)
        end = self._base + got
        scratch[pos : self._base] = partial
        partial.clear()
        run = _Run(pos)
        while True:
            result, kind, number, _size, stop = check_frame(scratch, pos, end, endpoint.lane.frame_max)
            pooled: PooledEndpoint | None = None
            if result is None and kind != FRAME_HEARTBEAT:
                # Whatever its type: it is for who sits there, or else the link's handler's.
                result = ScanResult.METHOD
                pooled, to = endpoint.mapped_to(number)
            if run.pooled is not None and (run.pooled is not pooled or len(run.numbers) == RUN):
                # Its upcalls may change who sits where: this frame is looked at again.
                pos = self._give(run, pos)
                run = _Run(pos)
                continue
            if result is ScanResult.MORE or not link.active:
                break
            if pooled is not None:
                run.pooled = pooled
                run.numbers.append(number)
                CHANNEL.pack_into(scratch, pos + 1, to)
                pos = stop
                continue
            if result is not None:
                self.counters.called[result] += 1
                self._begin()
                link.handler.upcall(Side.UPSTREAM, result, scratch[pos:stop])
            pos = stop
            run = _Run(pos)
            if result is not None and link.active and self._ends_turn(endpoint):
                break
        partial += scratch[pos:end]
        endpoint.wanted = stop - pos

    def _give(self, run: _Run, end: int) -> int:
        """Relay a run, up to ``end``. Where to go on: before that where the session ended in the middle."""
        pooled, at = run.pooled, run.first
        assert pooled is not None
        relay = pooled.relay
        self._passed = at
        try:
            if pooled.throttled or pooled.broken or pooled.partial or self._is_over:
                pooled.partial += self._scratch[at:end]
                if not (pooled.throttled or pooled.broken or pooled.fresh):
                    self._look_soon(pooled)
                at = end
            else:
                at, _stop = self._relay(pooled, at, end)
                if relay.active:
                    pooled.partial += self._scratch[at:end]
            if relay.active:
                self._balance(pooled)
        except PeerGoneError as gone:
            at = self._passed
            try:
                pooled.partial += self._scratch[at:end]
                self.lose(pooled.peer, gone)
            except MemoryError as error:
                self._fail(relay, Side.UPSTREAM, error)
        except Exception as error:
            at = self._passed
            self._fail(relay, Side.UPSTREAM, error)
        if relay.active:
            return end
        self._hand_back()
        run.restore(self._scratch, at)
        return at

    def _hand_back(self) -> None:
        """What came for a session that is over is for its link's handler."""
        while self._left:
            link, pooled = self._left.pop()
            try:
                for frame in pooled.give_back():
                    if link.active:
                        self.counters.called[ScanResult.METHOD] += 1
                        link.handler.upcall(Side.UPSTREAM, ScanResult.METHOD, memoryview(frame))
            except Exception as error:
                self._fail(link, Side.UPSTREAM, error)


@attrs.define
class _Run:
    """Consecutive frames for one pooled session."""

    first: int
    pooled: PooledEndpoint | None = None
    #: The channel of each, on the link; in the scratch it is the client's already.
    numbers: list[int] = attrs.field(factory=list)

    def restore(self, scratch: memoryview, at: int) -> None:
        """Write the link's numbers again from the frame at ``at`` on."""
        pos = self.first
        for number in self.numbers:
            if pos >= at:
                CHANNEL.pack_into(scratch, pos + 1, number)
            pos += FRAME_HEAD.unpack_from(scratch, pos)[2] + FRAME_OVERHEAD
