"""Every established socket in one epoll set, in plain Python: the contract of the compiled pump.

``step()`` handles what is ready: one bounded read per socket and step, and of its upcalls as many as fit
into a turn (``passage.TURN``), so that no sender can starve the rest; the scan; the sends; heartbeats and
throttled senders that are due. What does not fit into a step (``ROUND``) waits for the next: first those who
have not had a turn, then, one after the other, those who have more to say than went into theirs.
``fileno()`` is readable whenever a step has something to do, deadlines included (a timerfd in the same epoll
set), so whoever waits on it needs no clock. ``passage`` has what happens to the bytes, ``pressure`` who is
read.
"""

from __future__ import annotations

import math
import os
import select
import time
from collections.abc import Callable

from amqpgate.datapath.endpoint import PeerGoneError, RelayEndpoint
from amqpgate.datapath.link import Link
from amqpgate.datapath.pressure import Pressure
from amqpgate.datapath.relay import End, HandedOverSocket, Party, Relay
from amqpgate.datapath.shared import LinkEndpoint, PooledEndpoint
from amqpgate.datapath.tables import Side
from amqpgate.datapath.timer import Timer
from amqpgate.datapath.wheel import Wheel
from amqpgate.protocol.frames import HEARTBEAT

#: Sockets handled per step; the driver lets other tasks run between steps.
EVENTS = 256
#: Reads from a side to which a send has failed: its last words are within so many times ``CHUNK``, or lost.
LAST_READS = 4
#: Seconds after which a step begins no more turns of those whom epoll names, and as many for those who have
#: had theirs and have more to say: whoever drives the pump, and new events, wait for two of it and two turns.
#: See decision 0028 for the measurements.
ROUND = 2e-3

_GONE = select.EPOLLHUP | select.EPOLLERR


class Pump(Pressure):
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
        """``high`` and ``low`` in bytes per direction.

        ``clock`` gives seconds; only a test has one of its own, and then calls ``step`` itself when
        a deadline has passed. ``on_failure`` is told of exceptions that ended one session.
        """
        super().__init__(high=high, low=low, largest_frame=largest_frame, on_failure=on_failure)
        self._timer = Timer()
        self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._timer.fileno(), select.EPOLLIN)
        self._epoll.register(self._event, select.EPOLLIN)
        self._endpoints: dict[int, RelayEndpoint] = {}
        self._own_clock = clock is not None
        self._clock = clock or time.monotonic
        self._beats: Wheel[RelayEndpoint] = Wheel()
        self._now = self._clock()
        self._look_every = self._look_at = math.inf
        self._late: Callable[[float], None] = lambda _: None
        #: Who is heard out in more than one turn, and how many reads are left.
        self._going: dict[Party, tuple[int, PeerGoneError]] = {}
        self._closed = False
        self._interrupted = False

    def fileno(self) -> int:
        """Readable when ``step`` has something to do."""
        return self._epoll.fileno()

    def __len__(self) -> int:
        """How many sockets are in it."""
        return len(self._endpoints)

    def watch(self, seconds: float, late: Callable[[float], None]) -> None:
        """Every so often tell ``late`` by how many seconds the loop got there too late."""
        self._late, self._look_every = late, seconds
        self._look_at = self._clock() + seconds
        self._arm()

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

    def _look(self) -> float:
        self._latest = self._clock()
        return self._latest

    def add(self, party: Party) -> None:
        """Take a session, or a link, in. Bytes that its hops brought along are relayed at the next step."""
        self._now = self._clock()
        party.pump = self
        party.active = True
        self.counters.relays += 1
        for endpoint in party.endpoints:
            endpoint.relay = party
            if not isinstance(endpoint, PooledEndpoint):
                self._enter(endpoint)
        self._arm()

    def _enter(self, endpoint: RelayEndpoint) -> None:
        endpoint.last_received = endpoint.last_sent = self._now
        fd = endpoint.sock.fileno()
        endpoint.interest = select.EPOLLIN
        self._endpoints[fd] = endpoint
        self._epoll.register(fd, endpoint.interest)
        if endpoint.heartbeat:
            self._beats.set(endpoint, self._now + endpoint.heartbeat / 2)
        # Bytes of the hand-over, and those that OpenSSL holds, are news to no epoll.
        if endpoint.fresh or endpoint.is_tls:
            self._queue(self._unserved, endpoint)

    def remove(self, party: Party, end: End, side: Side | None, error: Exception | None) -> None:
        """Hand a session, or a link, back to its handler."""
        if not party.active:
            return
        party.active = False
        self.counters.relays -= 1
        self._going.pop(party, None)
        try:
            unheard = self._take_out(party)
        except MemoryError as failure:
            self._note(failure)
            unheard = self._take_out(party)
        self._tell_end(party, end, side, error)
        if isinstance(party, Link):
            party.endpoint.mappings.clear()
            party.endpoint.behind.clear()
            self._let_go(party.endpoint)
        if unheard is not None:
            # It will not hear what came for the session: it cannot know the channels' states any more.
            self.remove(unheard, End.FAILED, Side.UPSTREAM, None)

    def _take_out(self, party: Party) -> Link | None:
        """Forget its endpoints; it may be done again. The link that will not hear what came for it."""
        unheard: Link | None = None
        for endpoint in party.endpoints:
            self._beats.discard(endpoint)
            self._throttles.discard(endpoint)
            if not isinstance(endpoint, PooledEndpoint):
                fd = endpoint.sock.fileno()
                if fd in self._endpoints:
                    self._epoll.unregister(fd)
                    del self._endpoints[fd]
                continue
            self.caught_up(endpoint)
            if endpoint.link is not None and all(pooled is not endpoint for _, pooled in self._left):
                try:
                    self._left.append((endpoint.link, endpoint))
                except MemoryError as failure:
                    self._note(failure)
                    unheard = endpoint.link
            endpoint.drop()
        return unheard

    def _tell_end(self, party: Party, end: End, side: Side | None, error: Exception | None) -> None:
        """Who hears of it gives back what the session held: told again where that lacked memory."""
        try:
            party.handler.ended(end, side, error)
        except MemoryError as failure:
            self._note(failure)
            self._untold.append((party, end, side, error))
            self._wake()
        except Exception as failure:
            self._note(failure)

    def exchange(self, relay: Relay, hop: HandedOverSocket) -> None:
        """A pooled session gets a socket of its own to the broker; it goes on with all that is kept.

        While no message is half way, and not in an upcall of what came from the link. Who sits at the
        link's channels, and the session's channels' numbers (``Channels.remap``), are the caller's business.
        """
        client, pooled = relay.endpoints[Side.CLIENT], relay.pooled
        if pooled is None or pooled.stage or not relay.active:
            raise RuntimeError("this session cannot have another upstream now")
        pooled.detach()
        pooled.drop()
        self._throttles.discard(pooled)
        self._now = self._clock()
        pooled.lane.frame_max = max(hop.frame_max, pooled.largest_frame)
        client.lane.out_frame_max = hop.frame_max
        own = RelayEndpoint(hop.sock, Side.UPSTREAM, pooled.lane, hop.heartbeat, pooled.rest() + hop.rest)
        pooled.partial.clear()
        client.meet(own)
        own.meet(client)
        own.relay = relay
        relay.endpoints = client, own
        self._enter(own)
        if client.throttled:
            self._throttles.set(client, self._now)
        elif client.partial:
            self._look_soon(client)
        self._balance(client)
        self._arm()

    def touched(self, endpoint: RelayEndpoint) -> None:
        """Somebody put bytes into ``endpoint`` outside a scan."""
        self._sent(endpoint)
        self._balance(endpoint)

    def retry(self, relay: Relay) -> None:
        """Other flows may let pass now what an empty bucket held back: look at the next step."""
        for endpoint in relay.endpoints:
            if relay.active and endpoint.throttled:
                self._throttles.set(endpoint, self._now)
        self._arm()

    def halt(self, relay: Relay) -> None:
        """Read no more from the client: of what it says the broker has had a beginning, and gets no more.

        A message may end in the middle. What comes from the broker goes on, and so do heartbeats.
        """
        if relay.active:
            client = relay.endpoints[Side.CLIENT]
            client.halted = client.throttled = True
            self._throttles.discard(client)
            self._balance(client)

    def step(self, timeout: float = 0) -> None:
        """Handle what is ready. Waits for it up to ``timeout`` seconds, for ever below zero.

        Memory that runs out ends the session that asked for it. Where that was none, the next step goes on.
        """
        try:
            self._handle(timeout)
        except MemoryError as error:
            self._note(error)
            self._wake()

    def _handle(self, timeout: float) -> None:
        events = self._epoll.poll(timeout if timeout >= 0 else None, EVENTS)
        self._now = self._look()
        late, self._unserved = self._unserved, []
        ready, self._ready = self._ready, []
        until = self._now + ROUND
        try:
            self._serve(late, until)
            for fd, event in events:
                if fd == self._event:
                    os.eventfd_read(self._event)
                elif fd == self._timer.fileno():
                    self._timer.drain()
                elif (found := self._endpoints.get(fd)) is not None:
                    self._heed(found, event, is_late=bool(late) or self._latest >= until)
            self._serve(ready, self._latest + ROUND)
        finally:
            # Who is left goes first the next time.
            self._unserved[:0] = late
            self._ready[:0] = ready
        self._run_timers()
        for _ in range(len(self._lost)):
            self._hear_out(*self._lost[0])
            del self._lost[0]
        if self._untold:
            untold, self._untold = self._untold, []
            for told in untold:
                self._tell_end(*told)
        if self._unserved or self._ready:
            self._wake()

    def run(self) -> None:
        """Step for as long as nobody interrupts; what an interrupt cut short goes on at the next call."""
        while not self._interrupted:
            self.step(-1)
        self._interrupted = False

    # -- sockets ---------------------------------------------------------------------------

    def _serve(self, queue: list[RelayEndpoint], until: float) -> None:
        """Give turns, one at least, up to that time; whoever has had one is taken out of the queue."""
        while queue:
            endpoint = queue.pop(0)
            endpoint.queued = False
            going = self._going.get(endpoint.relay)
            if going is not None and endpoint.side is going[1].side:
                self._hear_out(endpoint.relay, going[1])
            elif endpoint.active and not endpoint.paused and not endpoint.throttled:
                self._guarded(endpoint, select.EPOLLIN)
            if self._look() >= until:
                return

    def _heed(self, endpoint: RelayEndpoint, events: int, *, is_late: bool) -> None:
        """What epoll says of one endpoint."""
        if is_late and events & ~select.EPOLLOUT:
            self._queue(self._unserved, endpoint)
        if endpoint.queued:
            events &= select.EPOLLOUT
        if events:
            self._guarded(endpoint, events)
            self._look()

    def _guarded(self, endpoint: RelayEndpoint, events: int) -> None:
        """One endpoint's turn. Whatever goes wrong ends that session, or link, and no other."""
        party = endpoint.relay
        self._turn_ends, self._is_over = 0.0, False
        try:
            if events & select.EPOLLOUT and endpoint.out:
                endpoint.flush()
                endpoint.last_sent = self._now
            if _is_of_pooled(endpoint):
                # Others may have filled the link since.
                self._balance(endpoint)
            # A socket that is gone in both directions reports so until it is read to its end.
            stopped = endpoint.paused or endpoint.throttled
            if party.active and (events & _GONE or (events & select.EPOLLIN and not stopped)):
                self._read(endpoint)
            if party.active:
                self._balance(endpoint)
        except PeerGoneError as gone:
            self._hear_out(party, gone)
        except Exception as error:
            self._fail(party, endpoint.side, error)
        if self._left:
            self._hand_back()

    def _hear_out(self, party: Party, gone: PeerGoneError) -> None:
        """A send failed. What the side said before it went comes first: its own reason, maybe.

        That takes as many turns as it takes.
        """
        endpoint = party.endpoints[0 if gone.side is Side.CLIENT else -1]
        left, before = self._going.get(party, (LAST_READS, gone))
        if endpoint.queued and party in self._going and gone.side is before.side:
            return
        self._turn_ends, self._is_over = 0.0, False
        try:
            while party.active and not endpoint.throttled and gone.side is before.side:
                if endpoint.fresh:
                    self._take_rest(endpoint)
                elif left:
                    left -= 1
                    self._read(endpoint)
                else:
                    break
                if self._is_over and endpoint.queued and party.active:
                    self._going[party] = left, gone
                    return
        except PeerGoneError:
            pass
        except Exception as error:
            self._note(error)
        if party.active and isinstance(endpoint, LinkEndpoint) and endpoint.owes():
            self._going[party] = 0, gone
            self._queue(self._ready, endpoint)
            return
        self.remove(party, End.GONE, gone.side, gone)
        if self._left:
            self._hand_back()

    def _read(self, endpoint: RelayEndpoint) -> None:
        if endpoint.fresh and not endpoint.throttled:
            self._take_rest(endpoint)
            if not endpoint.relay.active or endpoint.throttled or endpoint.fresh:
                return
        if isinstance(endpoint, PooledEndpoint):
            return
        got = endpoint.receive_into(self._landing)
        if got < 0:
            return
        if got == 0:
            if isinstance(endpoint, LinkEndpoint) and endpoint.owes():
                self._queue(self._ready, endpoint)
            else:
                self.remove(endpoint.relay, End.GONE, endpoint.side, None)
            return
        endpoint.last_received = self._now
        if endpoint.throttled or len(endpoint.partial) + got < endpoint.wanted:
            # Who is throttled, and is read, is gone in both directions: there is little more.
            endpoint.partial += self._landing[:got]
        else:
            self._dispatch(endpoint, got)
        if endpoint.relay.active and endpoint.has_pending():
            self._queue(self._ready, endpoint)

    # -- timers ----------------------------------------------------------------------------

    def _run_timers(self) -> None:
        if self._now >= self._look_at:
            self._late(self._now - self._look_at)
            self._look_at = self._now + self._look_every
        for endpoint in self._throttles.due(self._now):
            if not endpoint.active or endpoint.halted:
                continue
            endpoint.throttled = False
            endpoint.last_received = self._now
            if not endpoint.paused:
                self._heed(endpoint, select.EPOLLIN, is_late=self._latest >= self._now + ROUND)
        for endpoint in self._beats.due(self._now):
            if endpoint.relay.active:
                self._beat(endpoint)
        self._arm()

    def _arm(self) -> None:
        if not self._own_clock:
            self._timer.set(min(self._beats.deadline(), self._throttles.deadline(), self._look_at))

    def _beat(self, endpoint: RelayEndpoint) -> None:
        """Send when half an interval passed without a send; give up after two silent ones.

        (AMQP 0-9-1, section 4.2.7.) A side that we do not read from, because its peer is slow or
        its bucket is empty, cannot be called silent.
        """
        now = self._now
        interval = endpoint.heartbeat
        stopped = endpoint.paused or endpoint.throttled or endpoint.fresh
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
            self._balance(endpoint)
        due = endpoint.last_sent + interval / 2
        if not stopped:
            due = min(due, endpoint.last_received + 2 * interval)
        self._beats.set(endpoint, due)


def _is_of_pooled(endpoint: RelayEndpoint) -> bool:
    """Whether it is the client of a pooled session."""
    return endpoint.side is Side.CLIENT and isinstance(endpoint.peer, PooledEndpoint)
