"""How bytes get from endpoint to endpoint, in the plain engine.

What is received lies in one scratch that all share, right behind what was kept of the frame before. Three
ways lead from there:

* from a socket to its session's other one: ``scan``, and what it lets pass (``_scan``);
* from a client to a link: ``whole.Walk``, then ``scan`` as far as no message is half there (``_collect``);
* from a link: by channel, in runs to the session that has it, and there as from a socket (``_hand_out``).

Only whole messages go to a link, whatever happens. What the walk found whole may still end in the middle: an
upcall ends the session, or a bucket is empty while messages of two channels lie in each other. So while a
message is half way, its pooled endpoint stages what goes to the link, and drops it if the session ends.
"""

from __future__ import annotations

import attrs

from amqpgate.datapath.budgets import CHUNK, PIECE, RUN
from amqpgate.datapath.captures import Captured
from amqpgate.datapath.departures import Departures
from amqpgate.datapath.endpoint import PlainLinkEndpoint, PlainPooledEndpoint, PlainRelayEndpoint
from amqpgate.datapath.engine import PeerGoneError
from amqpgate.datapath.framing import CHANNEL, check_frame
from amqpgate.datapath.pressure import Pressure
from amqpgate.datapath.scanner import reframe, scan
from amqpgate.datapath.schedule import Schedule
from amqpgate.datapath.staging import quiet_end
from amqpgate.datapath.tables import LAST_HARMLESS, OPEN, ScanResult, Side
from amqpgate.datapath.whole import Walk
from amqpgate.protocol.frames import FRAME_HEAD, FRAME_HEARTBEAT, FRAME_OVERHEAD

#: A frame inside a message, maybe its last, is not passed yet.
_INSIDE = frozenset({ScanResult.HEADER, ScanResult.BODY, ScanResult.REFRAME})
#: The control plane is asked about a method that follows.
_ASKED = frozenset({ScanResult.METHOD, ScanResult.MISS})


class Passage:
    """The scratch, and the three ways; see the module."""

    def __init__(
        self, schedule: Schedule, pressure: Pressure, departures: Departures, *, largest_frame: int
    ) -> None:
        self._schedule = schedule
        self._pressure = pressure
        self._departures = departures
        # A partial frame is put right before the received bytes, so that the scan sees one piece.
        self._base = largest_frame + FRAME_OVERHEAD
        self._scratch = memoryview(bytearray(self._base + CHUNK))
        #: Where a read puts what it receives.
        self.landing = self._scratch[self._base :]
        self._spans: list[tuple[int, int]] = []
        #: How far the frames of ``_relay`` were dealt with when an exception ended it.
        self._passed = 0
        #: To whom something was sent that more may follow.
        self._corked: PlainRelayEndpoint | None = None

    def dispatch(self, endpoint: PlainRelayEndpoint, got: int) -> None:
        """What becomes of ``got`` new bytes in the scratch."""
        if (link := endpoint.as_link) is not None:
            self._hand_out(link, got)
        elif (pooled := endpoint.pooled_peer) is not None:
            self._collect(endpoint, pooled, got)
        else:
            self._scan(endpoint, got)

    # -- from an endpoint to its peer --------------------------------------------------------

    def take_rest(self, endpoint: PlainRelayEndpoint) -> None:
        """Relay what is kept, as if it had just been received; when the turn is over the rest is kept on."""
        endpoint.fresh = False
        # Silence that was ours.
        endpoint.last_received = self._schedule.now
        if (pooled := endpoint.pooled_peer) is not None:
            self._collect(endpoint, pooled, 0)
            return
        rest = bytes(endpoint.partial)
        endpoint.partial.clear()
        at = 0
        while at < len(rest) and endpoint.relay.active and not endpoint.throttled and not endpoint.fresh:
            piece = rest[at : at + PIECE]
            self.landing[: len(piece)] = piece
            at += len(piece)
            self.dispatch(endpoint, len(piece))
        endpoint.partial += rest[at:]

    def _scan(self, endpoint: PlainRelayEndpoint, got: int) -> None:
        """Relay the whole frames among ``got`` new bytes; keep the beginning of the next one."""
        partial = endpoint.partial
        pos = self._base - len(partial)
        end = self._base + got
        self._scratch[pos : self._base] = partial
        partial.clear()
        try:
            pos, stop = self._relay(endpoint, pos, end)
        finally:
            if self._corked is not None:
                self._corked.uncork()
                self._corked = None
        # Where the session has ended, what came behind may be the answer to a close.
        partial += self._scratch[pos:end]
        endpoint.wanted = stop - pos

    def _relay(
        self, endpoint: PlainRelayEndpoint, pos: int, end: int, *, is_quiet: bool = False
    ) -> tuple[int, int]:
        """Relay the whole frames among the scratch's bytes ``[pos:end]``, which begin with one.

        How far that came, and where the next frame will end, as far as that is known. ``is_quiet``: at
        ``end`` no message is half there.
        """
        scratch, spans = self._scratch, self._spans
        relay, lane = endpoint.relay, endpoint.lane
        # An exception may have left another session's there.
        spans.clear()
        captured: list[Captured] = []
        made = bytearray()
        while True:
            pos, result, stop = scan(lane, scratch, pos, end, self._schedule.now, spans, captured, made)
            self._passed = pos
            peer = endpoint.peer
            pooled = peer.as_pooled
            is_whole = True
            data, is_rewritten = scratch, bool(made)
            if made:
                # It is all that goes on.
                data = memoryview(bytes(made))
                spans.append((0, len(made)))
                made.clear()
            if pooled is not None:
                is_whole = (result is ScanResult.MORE and is_quiet) or (
                    result not in _INSIDE and not lane.channels.is_half_way(lane.side)
                )
                if not is_whole:
                    self._stage(pooled, data, spans)
                elif not pooled.stage:
                    pooled.release()
            if spans and result in _ASKED and not peer.is_pooled and not peer.is_wrapped:
                # What is asked about next goes there, too, as a rule.
                peer.more = True
                self._corked = peer
            try:
                if spans:
                    endpoint.rewritten = is_rewritten
                    self._put(peer, data, spans)
            finally:
                peer.more = False
                if captured:
                    self._schedule.begin_timed()
                    relay.handler.captured(endpoint.side, captured)
                    captured = []
            if pooled is not None and is_whole:
                pooled.release()
            if result is ScanResult.MORE:
                return pos, stop
            if result is ScanResult.THROTTLED:
                self._schedule.wait(endpoint)
                return pos, pos
            if result is ScanResult.JUDGED:
                # No upcall, but it takes time as one does.
                self._schedule.begin_timed()
                if relay.active and self._schedule.ends_turn(endpoint):
                    return pos, pos
                continue
            if pooled is not None:
                pooled.hold()
            if result is ScanResult.REFRAME:
                peer.put(reframe(scratch[pos:stop], lane.out_frame_max))
            else:
                self._passed = stop
                self._schedule.begin_upcall(result)
                again = relay.handler.upcall(endpoint.side, result, scratch[pos:stop])
                if pooled is not None and not lane.channels.is_half_way(lane.side):
                    pooled.release()
                if again:
                    if lane.ready_at > self._schedule.now:
                        self._schedule.wait(endpoint)
                        return pos, pos
                elif not relay.active:
                    return stop, stop
                else:
                    pos = stop
                    if lane.ready_at > self._schedule.now:
                        self._schedule.wait(endpoint)
                        return pos, pos
                if relay.active and self._schedule.ends_turn(endpoint):
                    return pos, pos
                continue
            pos = stop

    def _put(self, peer: PlainRelayEndpoint, data: memoryview, spans: list[tuple[int, int]]) -> None:
        """Give it what the scanner passed of ``data``."""
        taken = spans.copy()
        spans.clear()
        pooled = peer.as_pooled
        if pooled is None:
            for first, last in taken:
                peer.put(data[first:last])
        else:
            # All of it or nothing: half a message would be the end of the link.
            pooled.pass_on(b"".join(data[first:last] for first, last in taken))
        self.sent(peer)

    def _stage(self, pooled: PlainPooledEndpoint, data: memoryview, spans: list[tuple[int, int]]) -> None:
        """Of ``data`` that the scanner passed, only whole messages go to the link now."""
        if not pooled.staging:
            quiet = quiet_end(data, spans)
            pooled.pass_on(b"".join(data[first : min(last, quiet)] for first, last in spans if first < quiet))
            spans[:] = [(max(first, quiet), last) for first, last in spans if last > quiet]
        pooled.hold()

    def sent(self, endpoint: PlainRelayEndpoint) -> None:
        """Something has been sent to it."""
        endpoint.last_sent = self._schedule.now
        pooled = endpoint.as_pooled
        if pooled is not None and pooled.way is not None:
            pooled.way.last_sent = self._schedule.now

    # -- from a client to a link ---------------------------------------------------------------

    def _collect(self, client: PlainRelayEndpoint, pooled: PlainPooledEndpoint, got: int) -> None:
        """Relay what is whole of what is kept and of ``got`` new bytes; keep the rest."""
        data = client.partial + self.landing[:got]
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
            self._schedule.look_soon(client)

    def _pass_whole(self, client: PlainRelayEndpoint, data: bytearray, first: int, last: int) -> int:
        """Relay what lies between two quiet places; how many bytes that came to."""
        at = first
        while at < last and client.relay.active and not client.throttled and not client.fresh:
            piece = data[at : min(last, at + len(self._scratch))]
            self._scratch[: len(piece)] = piece
            passed, _stop = self._relay(client, 0, len(piece), is_quiet=at + len(piece) == last)
            at += passed
        return at - first

    def _tell(
        self, client: PlainRelayEndpoint, pooled: PlainPooledEndpoint, result: ScanResult, frame: bytearray
    ) -> bool:
        """What the walk found is never scanned: the handler ends the session (False), or the message."""
        relay = pooled.relay
        self._schedule.begin_upcall(result)
        again = relay.handler.upcall(Side.CLIENT, result, memoryview(frame))
        if not relay.active or client.peer is not pooled:
            return relay.active
        if result > LAST_HARMLESS:
            raise RuntimeError(f"a session goes on after {result.name}")
        if again:
            if client.lane.ready_at > self._schedule.now:
                self._schedule.wait(client)
        elif client.lane.channels.state(int.from_bytes(frame[1:3], "big")) == OPEN:
            raise RuntimeError("a message that is too large was refused, and its channel goes on")
        self._schedule.ends_turn(client)
        return True

    # -- from a link ---------------------------------------------------------------------------

    def _hand_out(self, endpoint: PlainLinkEndpoint, got: int) -> None:
        """Give the whole frames among ``got`` new bytes to the sessions that have their channels.

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
            pooled: PlainPooledEndpoint | None = None
            if result is None and kind != FRAME_HEARTBEAT:
                # Whatever its type: it is for the session that has the channel, or else the link's handler's.
                result = ScanResult.METHOD
                pooled, to = endpoint.mapped_to(number)
            if run.pooled is not None and (run.pooled is not pooled or len(run.numbers) == RUN):
                # Its upcalls may map channels anew: this frame is looked at again.
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
                self._schedule.begin_upcall(result)
                link.handler.upcall(Side.UPSTREAM, result, scratch[pos:stop])
            pos = stop
            run = _Run(pos)
            if result is not None and link.active and self._schedule.ends_turn(endpoint):
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
            if pooled.throttled or pooled.broken or pooled.partial or self._schedule.is_over:
                pooled.partial += self._scratch[at:end]
                if not (pooled.throttled or pooled.broken or pooled.fresh):
                    self._schedule.look_soon(pooled)
                at = end
            else:
                at, _stop = self._relay(pooled, at, end)
                if relay.active:
                    pooled.partial += self._scratch[at:end]
            if relay.active:
                self._pressure.balance(pooled)
        except PeerGoneError as gone:
            at = self._passed
            try:
                pooled.partial += self._scratch[at:end]
                self._departures.lose(pooled.peer, gone)
            except MemoryError as error:
                self._departures.fail(relay, Side.UPSTREAM, error)
        except Exception as error:
            at = self._passed
            self._departures.fail(relay, Side.UPSTREAM, error)
        if relay.active:
            return end
        self.hand_back()
        run.restore(self._scratch, at)
        return at

    def hand_back(self) -> None:
        """What came for a session that is over is for its link's handler."""
        while self._departures.left:
            link, pooled = self._departures.left.pop()
            try:
                for frame in pooled.give_back():
                    if link.active:
                        self._schedule.counters.called[ScanResult.METHOD] += 1
                        link.handler.upcall(Side.UPSTREAM, ScanResult.METHOD, memoryview(frame))
            except Exception as error:
                self._departures.fail(link, Side.UPSTREAM, error)


@attrs.define
class _Run:
    """Consecutive frames for one pooled session."""

    first: int
    pooled: PlainPooledEndpoint | None = None
    #: The channel of each, on the link; in the scratch it is the client's already.
    numbers: list[int] = attrs.field(factory=list)

    def restore(self, scratch: memoryview, at: int) -> None:
        """Write the link's numbers again from the frame at ``at`` on."""
        pos = self.first
        for number in self.numbers:
            if pos >= at:
                CHANNEL.pack_into(scratch, pos + 1, number)
            pos += FRAME_HEAD.unpack_from(scratch, pos)[2] + FRAME_OVERHEAD
