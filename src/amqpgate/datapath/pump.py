"""Every established socket in one epoll set, in plain Python: the contract of the compiled pump.

``step()`` handles what is ready: one bounded read per socket and step, so that no sender can starve
the rest; the scan; the sends; heartbeats and throttled senders that are due. ``fileno()`` is
readable whenever a step has something to do, deadlines included (a timerfd in the same epoll set),
so whoever waits on it needs no clock.

Back-pressure: reads from a side stop while more than ``high`` octets wait for the other side, and
go on below ``low``. A read adds at most ``CHUNK`` octets to that, so memory per direction is
bounded by ``high + CHUNK`` and one frame. A throttled sender's last read is kept, unscanned.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

import attrs

from amqpgate.datapath.endpoint import Endpoint, PeerGoneError
from amqpgate.datapath.relay import End, Relay
from amqpgate.datapath.scanner import reframe, scan
from amqpgate.datapath.tables import Side, Verdict
from amqpgate.datapath.timer import Timer
from amqpgate.datapath.wheel import Wheel
from amqpgate.protocol.frames import FRAME_OVERHEAD, HEARTBEAT

#: Octets per read. 256 KiB in one shared scratch is where bytes per system call stop to matter:
#: in the study behind the design, relaying 64 KiB bodies costs 0.7 of HAProxy with it.
CHUNK = 256 * 1024
#: Sockets handled per step; the driver lets other tasks run between steps.
EVENTS = 256
#: Reads from a side to which a send has failed: its last words are within so many times ``CHUNK``, or lost.
LAST_READS = 4
#: What the gateway itself may say to a client that does not read (refusals, close-oks) before it
#: stops listening to it. Deliveries do not count: a client may publish while it does not read.
OWN_WORDS = 1024 * 1024

_GONE = select.EPOLLHUP | select.EPOLLERR


@attrs.define
class PumpCounters:
    """What the pump did, for metrics."""

    relays: int = 0
    upcalls: int = 0
    failures: int = 0
    paused: int = 0
    throttled: int = 0


class Pump:
    """One epoll set; see the module. Not thread-safe, but for ``interrupt``: one thread owns it."""

    def __init__(
        self,
        *,
        high: int,
        low: int,
        largest_frame: int,
        clock: Callable[[], float] | None = None,
        on_failure: Callable[[Exception], None],
    ) -> None:
        """``high`` and ``low`` in octets per direction.

        ``clock`` gives seconds; only a test has one of its own, and then calls ``step`` itself when
        a deadline has passed. ``on_failure`` is told of exceptions that ended one session.
        """
        self._epoll = select.epoll()
        self._timer = Timer()
        self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._timer.fileno(), select.EPOLLIN)
        self._epoll.register(self._event, select.EPOLLIN)
        self._endpoints: dict[int, Endpoint] = {}
        self._high = high
        self._low = low
        self._own_words = high + CHUNK + OWN_WORDS
        self._own_clock = clock is not None
        self._clock = clock or time.monotonic
        self._on_failure = on_failure
        # A partial frame is put right before the received bytes, so that the scan sees one piece.
        self._base = largest_frame + FRAME_OVERHEAD
        self._scratch = memoryview(bytearray(self._base + CHUNK))
        self._landing = self._scratch[self._base :]
        self._ready: list[Endpoint] = []
        self._beats: Wheel[Endpoint] = Wheel()
        self._throttles: Wheel[Endpoint] = Wheel()
        self._spans: list[tuple[int, int]] = []
        self._now = self._clock()
        self._closed = False
        self._interrupted = False
        self.counters = PumpCounters()

    def fileno(self) -> int:
        """Readable when ``step`` has something to do."""
        return self._epoll.fileno()

    def __len__(self) -> int:
        """How many sockets are in it."""
        return len(self._endpoints)

    @property
    def deadlines(self) -> int:
        """How many timers are set: heartbeats and throttled senders."""
        return len(self._beats) + len(self._throttles)

    def close(self) -> None:
        """End every relay without a word; their sockets stay open and are the handlers'. Idempotent."""
        if self._closed:
            return
        for endpoint in list(self._endpoints.values()):
            if endpoint.relay.active:
                self.remove(endpoint.relay, End.FINISHED, None, None)
        self._closed = True
        self._epoll.close()
        self._timer.close()
        os.close(self._event)

    def interrupt(self) -> None:
        """Make ``run``, or a waiting ``step``, return. Safe from other threads and signal handlers."""
        self._interrupted = True
        self._wake()

    def _wake(self) -> None:
        os.eventfd_write(self._event, 1)

    def add(self, relay: Relay) -> None:
        """Take a session in. Bytes that its hops brought along are relayed at the next step."""
        now = self._now = self._clock()
        relay.pump = self
        relay.active = True
        self.counters.relays += 1
        for endpoint in relay.endpoints:
            endpoint.relay = relay
            endpoint.last_received = endpoint.last_sent = now
            fd = endpoint.sock.fileno()
            endpoint.interest = select.EPOLLIN
            self._endpoints[fd] = endpoint
            self._epoll.register(fd, endpoint.interest)
            if endpoint.heartbeat:
                self._beats.set(endpoint, now + endpoint.heartbeat / 2)
            # Bytes of the hand-over, and those that OpenSSL holds, are news to no epoll.
            if endpoint.fresh or endpoint.is_tls:
                self._ready.append(endpoint)
        if self._ready:
            self._wake()
        self._arm()

    def remove(self, relay: Relay, end: End, side: Side | None, error: Exception | None) -> None:
        """Hand a session back to its handler."""
        if not relay.active:
            return
        relay.active = False
        self.counters.relays -= 1
        for endpoint in relay.endpoints:
            self._beats.discard(endpoint)
            self._throttles.discard(endpoint)
            fd = endpoint.sock.fileno()
            del self._endpoints[fd]
            self._epoll.unregister(fd)
        relay.handler.ended(end, side, error)

    def touched(self, endpoint: Endpoint) -> None:
        """Somebody put bytes into ``endpoint`` outside a scan."""
        endpoint.last_sent = self._now
        self._balance(endpoint.relay)

    def retry(self, relay: Relay) -> None:
        """Other flows may let pass now what an empty bucket held back: look at the next step."""
        for endpoint in relay.endpoints:
            if relay.active and endpoint.throttled:
                self._throttles.set(endpoint, self._now)
        self._arm()

    def step(self, timeout: float = 0) -> None:
        """Handle what is ready. Waits for it up to ``timeout`` seconds, for ever below zero."""
        events = self._epoll.poll(timeout if timeout >= 0 else None, EVENTS)
        self._now = self._clock()
        ready, self._ready = self._ready, []
        for endpoint in ready:
            if endpoint.relay.active and not endpoint.paused and not endpoint.throttled:
                self._guarded(endpoint, select.EPOLLIN)
        for fd, event in events:
            if fd == self._event:
                os.eventfd_read(self._event)
            elif fd == self._timer.fileno():
                self._timer.drain()
            elif (found := self._endpoints.get(fd)) is not None:
                self._guarded(found, event)
        self._run_timers()
        if self._ready:
            self._wake()

    def run(self) -> None:
        """Step for as long as nobody interrupts; what an interrupt cut short goes on at the next call."""
        while not self._interrupted:
            self.step(-1)
        self._interrupted = False

    # -- sockets ---------------------------------------------------------------------------

    def _guarded(self, endpoint: Endpoint, events: int) -> None:
        """One socket's events. Whatever goes wrong ends that session and no other."""
        relay = endpoint.relay
        try:
            if events & select.EPOLLOUT and endpoint.out:
                endpoint.flush()
                endpoint.last_sent = self._now
            # A socket that is gone in both directions reports so until it is read to its end.
            stopped = endpoint.paused or endpoint.throttled
            if events & _GONE or (events & select.EPOLLIN and not stopped):
                self._read(endpoint)
            if relay.active:
                self._balance(relay)
        except PeerGoneError as gone:
            self._hear_out(relay, gone)
        except Exception as error:
            self.counters.failures += 1
            self._on_failure(error)
            self.remove(relay, End.FAILED, endpoint.side, error)

    def _hear_out(self, relay: Relay, gone: PeerGoneError) -> None:
        """A send failed. What the side said before it went comes first: its own reason, maybe."""
        try:
            for _ in range(LAST_READS):
                if relay.active:
                    self._read(relay.endpoints[gone.side])
        except PeerGoneError:
            pass
        except Exception as error:
            self.counters.failures += 1
            self._on_failure(error)
        self.remove(relay, End.GONE, gone.side, gone)

    def _read(self, endpoint: Endpoint) -> None:
        if endpoint.fresh:
            self._take_rest(endpoint)
            if not endpoint.relay.active or endpoint.throttled:
                return
        got = endpoint.receive_into(self._landing)
        if got < 0:
            return
        if got == 0:
            self.remove(endpoint.relay, End.GONE, endpoint.side, None)
            return
        endpoint.last_received = self._now
        if len(endpoint.partial) + got < endpoint.wanted:
            endpoint.partial += self._landing[:got]
        else:
            self._scan(endpoint, got)
        if endpoint.relay.active and endpoint.has_pending():
            self._ready.append(endpoint)

    def _take_rest(self, endpoint: Endpoint) -> None:
        """Relay what is kept, as if it had just been received."""
        rest = bytes(endpoint.partial)
        endpoint.partial.clear()
        endpoint.fresh = False
        at = 0
        while at < len(rest) and endpoint.relay.active and not endpoint.throttled:
            piece = rest[at : at + CHUNK]
            self._landing[: len(piece)] = piece
            at += len(piece)
            self._scan(endpoint, len(piece))
        endpoint.partial += rest[at:]

    def _scan(self, endpoint: Endpoint, got: int) -> None:
        """Relay the whole frames among ``got`` new octets; keep the beginning of the next one."""
        scratch = self._scratch
        partial = endpoint.partial
        pos = self._base - len(partial)
        end = self._base + got
        scratch[pos : self._base] = partial
        partial.clear()
        relay = endpoint.relay
        peer = endpoint.peer
        lane = endpoint.lane
        spans = self._spans
        while True:
            pos, verdict, stop = scan(lane, scratch, pos, end, self._now, spans)
            if spans:
                taken = spans.copy()
                spans.clear()
                for first, last in taken:
                    peer.put(scratch[first:last])
                peer.last_sent = self._now
            if verdict is Verdict.MORE:
                break
            if verdict is Verdict.THROTTLED:
                stop = self._wait(endpoint, pos)
                break
            if verdict is Verdict.REFRAME:
                peer.put(reframe(scratch[pos:stop], lane.out_frame_max))
            else:
                self.counters.upcalls += 1
                if relay.handler.upcall(endpoint.side, verdict, scratch[pos:stop]):
                    if lane.ready_at > self._now:
                        stop = self._wait(endpoint, pos)
                        break
                    continue
                if not relay.active:
                    # What came behind it may be the answer to a close.
                    partial += scratch[stop:end]
                    return
            pos = stop
        partial += scratch[pos:end]
        endpoint.wanted = stop - pos

    def _wait(self, endpoint: Endpoint, pos: int) -> int:
        """Look again at ``Lane.ready_at`` at what begins at ``pos``."""
        endpoint.throttled = endpoint.fresh = True
        self.counters.throttled += 1
        self._throttles.set(endpoint, endpoint.lane.ready_at)
        return pos

    def _balance(self, relay: Relay) -> None:
        """Bring back-pressure and the epoll set in line with the bytes that wait."""
        for endpoint in relay.endpoints:
            mark = self._low if endpoint.paused else self._high
            over = len(endpoint.peer.out) > mark or len(endpoint.out) > self._own_words
            if over != endpoint.paused:
                endpoint.paused = over
                if over:
                    self.counters.paused += 1
                else:
                    # The silence was ours: the clock of this hop starts again.
                    endpoint.last_received = self._now
                    if endpoint.fresh or endpoint.has_pending():
                        self._ready.append(endpoint)
                        self._wake()
            stopped = over or endpoint.throttled
            wish = (0 if stopped else select.EPOLLIN) | (select.EPOLLOUT if endpoint.out else 0)
            if wish != endpoint.interest:
                endpoint.interest = wish
                self._epoll.modify(endpoint.sock.fileno(), wish)

    # -- timers ----------------------------------------------------------------------------

    def _run_timers(self) -> None:
        for endpoint in self._throttles.due(self._now):
            endpoint.throttled = False
            endpoint.last_received = self._now
            if not endpoint.paused:
                self._guarded(endpoint, select.EPOLLIN)
        for endpoint in self._beats.due(self._now):
            if endpoint.relay.active:
                self._beat(endpoint)
        self._arm()

    def _arm(self) -> None:
        if not self._own_clock:
            self._timer.set(min(self._beats.deadline(), self._throttles.deadline()))

    def _beat(self, endpoint: Endpoint) -> None:
        """Send when half an interval passed without a send; give up after two silent ones.

        (AMQP 0-9-1, section 4.2.7.) A side that we do not read from, because its peer is slow or
        its bucket is empty, cannot be called silent.
        """
        now = self._now
        interval = endpoint.heartbeat
        stopped = endpoint.paused or endpoint.throttled
        if not stopped and now - endpoint.last_received >= 2 * interval:
            self.remove(endpoint.relay, End.SILENT, endpoint.side, None)
            return
        if now - endpoint.last_sent >= interval / 2:
            # Unsent bytes will tell the peer as much as a heartbeat, once it takes them.
            if not endpoint.out:
                try:
                    endpoint.put(HEARTBEAT)
                except PeerGoneError as gone:
                    self.remove(endpoint.relay, End.GONE, gone.side, gone)
                    return
            endpoint.last_sent = now
            self._balance(endpoint.relay)
        due = endpoint.last_sent + interval / 2
        if not stopped:
            due = min(due, endpoint.last_received + 2 * interval)
        self._beats.set(endpoint, due)
