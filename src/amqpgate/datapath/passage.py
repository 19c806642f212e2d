"""How octets get from endpoint to endpoint, in plain Python: the pump's contract without epoll.

What is received lies in one scratch that all share, right behind what was kept of the frame before. Three
ways lead from there:

* from a socket to its session's other one: ``scan``, and what it lets pass (``_scan``);
* from a client to a link: ``whole.Walk``, then ``scan`` as far as no message is half there (``_collect``);
* from a link: by channel, in runs to whoever sits there, and there as from a socket (``_hand_out``).

Only whole messages go to a link, whatever happens. What the walk found whole may still end in the middle: an
upcall ends the session, or a bucket is empty while messages of two channels lie in each other. So while a
message is half way, its rider stages what goes to the link, and drops it if the session ends.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import cast

import attrs

from amqpgate.datapath.endpoint import Endpoint, PeerGoneError
from amqpgate.datapath.framing import CHANNEL, check_frame
from amqpgate.datapath.link import Link
from amqpgate.datapath.relay import End, Party, Relay
from amqpgate.datapath.scanner import reframe, scan
from amqpgate.datapath.shared import LinkEndpoint, Rider
from amqpgate.datapath.staging import quiet_end
from amqpgate.datapath.tables import LAST_HARMLESS, OPEN, Side, Verdict
from amqpgate.datapath.wheel import Wheel
from amqpgate.datapath.whole import Walk
from amqpgate.protocol.frames import FRAME_HEAD, FRAME_HEARTBEAT, FRAME_OVERHEAD

#: Frames of one rider that are relayed at once, at most: their numbers on the link are kept meanwhile.
RUN = 1024
#: Octets per read, into one shared scratch. The more, the fewer wake-ups and system calls; the longer others
#: wait, too. As a part of what a message costs with 256 KiB: 128 KiB 1.00 to 1.23, 512 KiB 0.84 to 1.00
#: (0.92 on average), 1 MiB 0.77 to 1.02 (0.88); bodies of 16 B to 64 KiB, both ways (medians of 5 rounds).
CHUNK = 512 * 1024
#: Octets of what is kept that are looked at at once.
PIECE = 64 * 1024
#: Seconds that the upcalls of one connection may take before others have their turn; the clock is looked at
#: after each of them. See decision 0028 for the measurements.
TURN = 1e-3

#: A frame inside a message, maybe its last, is not passed yet.
_INSIDE = frozenset({Verdict.HEADER, Verdict.BODY, Verdict.REFRAME})


@attrs.define
class PumpCounters:
    """What the pump did, for metrics."""

    relays: int = 0
    #: Upcalls by `Verdict`.
    called: list[int] = attrs.field(factory=lambda: [0] * (max(Verdict) + 1))
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
        self._unserved: list[Endpoint] = []
        self._ready: list[Endpoint] = []
        #: When the present turn is over; 0: no upcall has begun it.
        self._turn_ends = 0.0
        #: It is.
        self._is_over = False
        #: What the clock said last.
        self._latest = 0.0
        self._throttles: Wheel[Endpoint] = Wheel()
        #: Who is to end, and why, since a send failed in what may be another's event.
        self._lost: list[tuple[Party, PeerGoneError]] = []
        #: Seats of sessions that are over, and where they were: frames that are kept are that link's now.
        self._left: list[tuple[Link, Rider]] = []
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
    def _balance(self, endpoint: Endpoint) -> None:
        """Bring back-pressure and the epoll set in line with the bytes that wait."""

    @abstractmethod
    def caught_up(self, rider: Rider) -> None:
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

    def lose(self, endpoint: Endpoint, gone: PeerGoneError) -> None:
        """A send to ``endpoint`` has failed in what may be another's event: its end comes after that."""
        shared = endpoint if isinstance(endpoint, LinkEndpoint) else endpoint.peer
        assert isinstance(shared, LinkEndpoint | Rider), "who has a link has no other's events"
        if not shared.broken:
            self._lost.append((endpoint.relay, gone))
            shared.broken = True
            self._wake()

    # -- turns -------------------------------------------------------------------------------

    def _begin(self) -> None:
        """An upcall is next."""
        if not self._turn_ends:
            self._turn_ends = self._look() + TURN

    def _ends_turn(self, endpoint: Endpoint) -> bool:
        """After an upcall: whether others have their turn now. The endpoint goes on when it has its next."""
        if self._look() < self._turn_ends:
            return False
        self._is_over = True
        endpoint.fresh = True
        self._queue(self._ready, endpoint)
        return True

    def _queue(self, queue: list[Endpoint], endpoint: Endpoint) -> None:
        if not endpoint.queued:
            queue.append(endpoint)
            endpoint.queued = True
            self._wake()

    def _look_soon(self, endpoint: Endpoint) -> None:
        """What is kept for it may be relayed in the next step."""
        endpoint.fresh = True
        self._queue(self._unserved, endpoint)

    def _dispatch(self, endpoint: Endpoint, got: int) -> None:
        """What becomes of ``got`` new octets in the scratch."""
        if isinstance(endpoint, LinkEndpoint):
            self._hand_out(endpoint, got)
        elif isinstance(endpoint.peer, Rider):
            self._collect(endpoint, endpoint.peer, got)
        else:
            self._scan(endpoint, got)

    # -- from an endpoint to its peer --------------------------------------------------------

    def _take_rest(self, endpoint: Endpoint) -> None:
        """Relay what is kept, as if it had just been received; when the turn is over the rest is kept on."""
        endpoint.fresh = False
        # Silence that was ours.
        endpoint.last_received = self._now
        if not isinstance(endpoint, LinkEndpoint) and isinstance(endpoint.peer, Rider):
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

    def _scan(self, endpoint: Endpoint, got: int) -> None:
        """Relay the whole frames among ``got`` new octets; keep the beginning of the next one."""
        partial = endpoint.partial
        pos = self._base - len(partial)
        end = self._base + got
        self._scratch[pos : self._base] = partial
        partial.clear()
        pos, stop = self._relay(endpoint, pos, end)
        # Where the session has ended, what came behind may be the answer to a close.
        partial += self._scratch[pos:end]
        endpoint.wanted = stop - pos

    def _relay(self, endpoint: Endpoint, pos: int, end: int, *, is_quiet: bool = False) -> tuple[int, int]:
        """Relay the whole frames among the scratch's octets ``[pos:end]``, which begin with one.

        How far that came, and where the next frame will end, as far as that is known. ``is_quiet``: at
        ``end`` no message is half there.
        """
        scratch, spans = self._scratch, self._spans
        relay, lane = cast(Relay, endpoint.relay), endpoint.lane
        # An exception may have left another session's there.
        spans.clear()
        while True:
            pos, verdict, stop = scan(lane, scratch, pos, end, self._now, spans)
            self._passed = pos
            peer = endpoint.peer
            rider = peer if isinstance(peer, Rider) else None
            is_whole = True
            if rider is not None:
                is_whole = (verdict is Verdict.MORE and is_quiet) or (
                    verdict not in _INSIDE and not lane.channels.is_half_way(lane.side)
                )
                if not is_whole:
                    self._stage(rider, spans)
                elif not rider.stage:
                    rider.release()
            if spans:
                taken = spans.copy()
                spans.clear()
                if rider is None:
                    for first, last in taken:
                        peer.put(scratch[first:last])
                else:
                    # All of it or nothing: half a message would be the end of the link.
                    rider.pass_on(b"".join(scratch[first:last] for first, last in taken))
                self._sent(peer)
            if rider is not None and is_whole:
                rider.release()
            if verdict is Verdict.MORE:
                return pos, stop
            if verdict is Verdict.THROTTLED:
                self._wait(endpoint)
                return pos, pos
            if rider is not None:
                rider.hold()
            if verdict is Verdict.REFRAME:
                peer.put(reframe(scratch[pos:stop], lane.out_frame_max))
            else:
                self._passed = stop
                self.counters.called[verdict] += 1
                self._begin()
                again = relay.handler.upcall(endpoint.side, verdict, scratch[pos:stop])
                if rider is not None and not lane.channels.is_half_way(lane.side):
                    rider.release()
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

    def _stage(self, rider: Rider, spans: list[tuple[int, int]]) -> None:
        """Of what the scanner passed, only whole messages go to the link now."""
        if not rider.staging:
            quiet = quiet_end(self._scratch, spans)
            rider.pass_on(
                b"".join(self._scratch[first : min(last, quiet)] for first, last in spans if first < quiet)
            )
            spans[:] = [(max(first, quiet), last) for first, last in spans if last > quiet]
        rider.hold()

    def _sent(self, endpoint: Endpoint) -> None:
        endpoint.last_sent = self._now
        if isinstance(endpoint, Rider) and endpoint.link is not None:
            endpoint.link.endpoint.last_sent = self._now

    def _wait(self, endpoint: Endpoint) -> None:
        """Look again at ``Lane.ready_at``."""
        endpoint.throttled = endpoint.fresh = True
        self.counters.throttled += 1
        self._throttles.set(endpoint, endpoint.lane.ready_at)

    # -- from a client to a link ---------------------------------------------------------------

    def _collect(self, client: Endpoint, rider: Rider, got: int) -> None:
        """Relay what is whole of what is kept and of ``got`` new octets; keep the rest."""
        octets = client.partial + self._landing[:got]
        client.partial.clear()
        walk = rider.walk or Walk()
        at = stop = 0
        try:
            while client.relay.active and not client.throttled and not client.fresh and client.peer is rider:
                is_new = not walk.at
                verdict, first, stop = walk.look(client.lane, octets, at, len(octets), rider.whole)
                first, stop = at + first, at + stop
                if walk.quiet:
                    passed = self._pass_whole(client, octets, at, at + walk.quiet)
                    at += passed
                    walk.passed(passed)
                    if not passed and client.active and not (client.throttled or client.fresh):
                        raise RuntimeError("the scanner does not pass what is whole")
                elif verdict is Verdict.MORE:
                    break
                else:
                    walk.restart()
                    if is_new and not self._tell(client, rider, verdict, octets[first:stop]):
                        at = stop
        finally:
            client.partial += octets[at:]
            client.wanted = max(0, stop - at)
            rider.walk = walk if client.partial else None
        if client.peer is not rider and client.relay.active and client.partial:
            self._look_soon(client)

    def _pass_whole(self, client: Endpoint, octets: bytearray, first: int, last: int) -> int:
        """Relay what lies between two quiet places; how many octets that came to."""
        at = first
        while at < last and client.relay.active and not client.throttled and not client.fresh:
            piece = octets[at : min(last, at + len(self._scratch))]
            self._scratch[: len(piece)] = piece
            passed, _stop = self._relay(client, 0, len(piece), is_quiet=at + len(piece) == last)
            at += passed
        return at - first

    def _tell(self, client: Endpoint, rider: Rider, verdict: Verdict, frame: bytearray) -> bool:
        """What the walk found is never scanned: the handler ends the session (False), or the message."""
        relay = rider.relay
        self.counters.called[verdict] += 1
        self._begin()
        again = relay.handler.upcall(Side.CLIENT, verdict, memoryview(frame))
        if not relay.active or client.peer is not rider:
            return relay.active
        if verdict > LAST_HARMLESS:
            raise RuntimeError(f"a session goes on after {verdict.name}")
        if again:
            if client.lane.ready_at > self._now:
                self._wait(client)
        elif relay.channels.state(int.from_bytes(frame[1:3], "big")) == OPEN:
            raise RuntimeError("a message that is too large was refused, and its channel goes on")
        self._ends_turn(client)
        return True

    # -- from a link ---------------------------------------------------------------------------

    def _hand_out(self, endpoint: LinkEndpoint, got: int) -> None:
        """Give the whole frames among ``got`` new octets to those who sit at their channels.

        Once the turn is over, what comes is kept for each, until its own turn.
        """
        scratch, partial, link = self._scratch, endpoint.partial, endpoint.relay
        pos = self._base - len(partial)
        end = self._base + got
        scratch[pos : self._base] = partial
        partial.clear()
        run = _Run(pos)
        while True:
            verdict, kind, number, _size, stop = check_frame(scratch, pos, end, endpoint.lane.frame_max)
            rider: Rider | None = None
            if verdict is None and kind != FRAME_HEARTBEAT:
                # Whatever its type: it is for who sits there, or else the link's handler's.
                verdict = Verdict.METHOD
                rider, to = endpoint.rider_at(number)
            if run.rider is not None and (run.rider is not rider or len(run.numbers) == RUN):
                # Its upcalls may change who sits where: this frame is looked at again.
                pos = self._give(run, pos)
                run = _Run(pos)
                continue
            if verdict is Verdict.MORE or not link.active:
                break
            if rider is not None:
                run.rider = rider
                run.numbers.append(number)
                CHANNEL.pack_into(scratch, pos + 1, to)
                pos = stop
                continue
            if verdict is not None:
                self.counters.called[verdict] += 1
                self._begin()
                link.handler.upcall(Side.UPSTREAM, verdict, scratch[pos:stop])
            pos = stop
            run = _Run(pos)
            if verdict is not None and link.active and self._ends_turn(endpoint):
                break
        partial += scratch[pos:end]
        endpoint.wanted = stop - pos

    def _give(self, run: _Run, end: int) -> int:
        """Relay a run, up to ``end``. Where to go on: before that where the session ended in the middle."""
        rider, at = run.rider, run.first
        assert rider is not None
        relay = rider.relay
        self._passed = at
        try:
            if rider.throttled or rider.broken or rider.partial or self._is_over:
                rider.partial += self._scratch[at:end]
                if not (rider.throttled or rider.broken or rider.fresh):
                    self._look_soon(rider)
                at = end
            else:
                at, _stop = self._relay(rider, at, end)
                if relay.active:
                    rider.partial += self._scratch[at:end]
            if relay.active:
                self._balance(rider)
        except PeerGoneError as gone:
            at = self._passed
            try:
                rider.partial += self._scratch[at:end]
                self.lose(rider.peer, gone)
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
            link, rider = self._left.pop()
            try:
                for frame in rider.give_back():
                    if link.active:
                        self.counters.called[Verdict.METHOD] += 1
                        link.handler.upcall(Side.UPSTREAM, Verdict.METHOD, memoryview(frame))
            except Exception as error:
                self._fail(link, Side.UPSTREAM, error)


@attrs.define
class _Run:
    """Consecutive frames for one rider."""

    first: int
    rider: Rider | None = None
    #: The channel of each, on the link; in the scratch it is the client's already.
    numbers: list[int] = attrs.field(factory=list)

    def restore(self, scratch: memoryview, at: int) -> None:
        """Write the link's numbers again from the frame at ``at`` on."""
        pos = self.first
        for number in self.numbers:
            if pos >= at:
                CHANNEL.pack_into(scratch, pos + 1, number)
            pos += FRAME_HEAD.unpack_from(scratch, pos)[2] + FRAME_OVERHEAD
