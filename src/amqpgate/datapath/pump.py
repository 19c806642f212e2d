"""Every established socket in one epoll set, in plain Python: the contract of the compiled pump.

``step()`` handles what is ready: one bounded read per socket and step, and of its upcalls as many as fit
into a turn (``budgets.TURN``), so that no sender can starve the rest; the scan; the sends; heartbeats and
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
from collections.abc import Callable
from typing import cast

from amqpgate.datapath import engine
from amqpgate.datapath.budgets import EVENTS, ROUND, PumpCounters
from amqpgate.datapath.departures import Departures, endpoints_of
from amqpgate.datapath.endpoint import PlainPooledEndpoint, PlainRelayEndpoint
from amqpgate.datapath.engine import End, HandedOverSocket, Party, PeerGoneError
from amqpgate.datapath.passage import Passage
from amqpgate.datapath.pressure import Pressure
from amqpgate.datapath.schedule import Schedule
from amqpgate.datapath.tables import Side
from amqpgate.datapath.timer import Timer
from amqpgate.datapath.turns import Turns


class PlainPump:
    """One epoll set; see the module, and ``engine.Pump``. It owns its parts, which share one schedule."""

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
        self._epoll = select.epoll()
        self._timer = Timer()
        self._schedule = Schedule(clock, on_failure)
        self._pressure = Pressure(self._schedule, self._epoll, high=high, low=low)
        self._departures = Departures(self._schedule, self._pressure, self._epoll)
        self._passage = Passage(self._schedule, self._pressure, self._departures, largest_frame=largest_frame)
        self._turns = Turns(self._schedule, self._pressure, self._departures, self._passage)
        self._epoll.register(self._timer.fileno(), select.EPOLLIN)
        self._epoll.register(self._schedule.event, select.EPOLLIN)
        self._own_clock = clock is not None
        self._look_every = self._look_at = math.inf
        self._late: Callable[[float], None] = lambda _: None
        #: By the descriptor that they are called for.
        self._attending: dict[int, Callable[[], None]] = {}
        self._take_in: Callable[[list[object]], None] = lambda _: None
        #: Who waits for it, by descriptor.
        self._lent: dict[int, object] = {}
        self._closed = False
        self._interrupted = False

    @property
    def counters(self) -> PumpCounters:
        """What it did, for metrics."""
        return self._schedule.counters

    def fileno(self) -> int:
        """Readable when ``step`` has something to do."""
        return self._epoll.fileno()

    def __len__(self) -> int:
        """How many sockets are in it."""
        return len(self._departures.sockets)

    def watch(self, seconds: float, late: Callable[[float], None]) -> None:
        """Every so often tell ``late`` by how many seconds the loop got there too late."""
        self._late, self._look_every = late, seconds
        self._look_at = self._schedule.clock() + seconds
        self._arm()

    def attend(self, fd: int, callback: Callable[[], None] | None) -> None:
        """See ``engine.Pump``."""
        if self._attending.pop(fd, None) is not None:
            self._epoll.unregister(fd)
        if callback is not None:
            self._attending[fd] = callback
            self._epoll.register(fd, select.EPOLLIN)

    def serve_guests(self, take_in: Callable[[list[object]], None]) -> None:
        """See ``engine.Pump``."""
        self._take_in = take_in

    def lend(self, fd: int, guest: object | None) -> None:
        """See ``engine.Pump``."""
        if guest is not None:
            self._epoll.register(fd, select.EPOLLIN)
            self._lent[fd] = guest
        elif self._lent.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    @property
    def deadlines(self) -> int:
        """How many timers are set: heartbeats and throttled senders."""
        return len(self._departures.beats) + len(self._schedule.throttles)

    def close(self) -> None:
        """End every relay without a word; their sockets stay open and are the handlers'. Idempotent."""
        if self._closed:
            return
        for endpoint in list(self._departures.sockets.values()):
            if endpoint.relay.active:
                self.remove(endpoint.relay, End.FINISHED, None, None)
        self._closed = True
        self._epoll.close()
        self._timer.close()
        self._schedule.close()

    def interrupt(self) -> None:
        """Make ``run``, or a waiting ``step``, return. Safe from other threads and signal handlers."""
        self._interrupted = True
        self._schedule.wake()

    def add(self, party: Party) -> None:
        """Take a session, or a link, in. Bytes that its hops brought along are relayed at the next step.

        Where it raises, nothing of it is in the pump.
        """
        self._schedule.begin()
        party.pump = self
        party.active = True
        self._schedule.counters.relays += 1
        try:
            for endpoint in endpoints_of(party):
                endpoint.relay = party
                if not endpoint.is_pooled:
                    self._enter(endpoint)
            self._arm()
        except Exception:
            self._departures.undo(party)
            raise

    def _enter(self, endpoint: PlainRelayEndpoint) -> None:
        endpoint.last_received = endpoint.last_sent = self._schedule.now
        fd = endpoint.sock.fileno()
        endpoint.interest = select.EPOLLIN
        self._departures.sockets[fd] = endpoint
        if self._lent.pop(fd, None) is None:
            self._epoll.register(fd, endpoint.interest)
        if endpoint.heartbeat:
            self._departures.beats.set(endpoint, self._schedule.now + endpoint.heartbeat / 2)
        # No epoll announces bytes of the hand-over, or those that OpenSSL or a buffered socket holds.
        if endpoint.fresh or endpoint.has_pending():
            self._schedule.serve(endpoint)

    def remove(self, party: Party, end: End, side: Side | None, error: Exception | None) -> None:
        """Hand a session, or a link, back to its handler."""
        self._departures.remove(party, end, side, error)

    def lose(self, endpoint: engine.RelayEndpoint, gone: PeerGoneError) -> None:
        """A send to ``endpoint`` has failed in what may be another's event: its end comes after that."""
        self._departures.lose(cast(PlainRelayEndpoint, endpoint), gone)

    def caught_up(self, pooled: engine.PooledEndpoint) -> None:
        """Its link need not wait for it, or not any more."""
        self._pressure.caught_up(cast(PlainPooledEndpoint, pooled))

    def exchange(self, relay: Party, hop: HandedOverSocket) -> None:
        """A pooled session gets a socket of its own to the broker; it goes on with all that is kept.

        While no message is half way, and not in an upcall of what came from the link. Who has the
        link's channels, and the session's channels' numbers (``Channels.remap``), are the caller's business.
        """
        client, end = endpoints_of(relay)
        pooled = end.as_pooled
        if pooled is None or pooled.stage or not relay.active:
            raise RuntimeError("this session cannot have another upstream now")
        pooled.detach()
        pooled.drop()
        self._schedule.throttles.discard(pooled)
        self._schedule.begin()
        pooled.lane.frame_max = max(hop.frame_max, pooled.largest_frame)
        client.lane.out_frame_max = hop.frame_max
        own = PlainRelayEndpoint(
            hop.sock, Side.UPSTREAM, pooled.lane, hop.heartbeat, pooled.rest() + hop.rest
        )
        pooled.partial.clear()
        client.meet(own)
        own.meet(client)
        own.relay = relay
        relay.endpoints = client, own
        self._enter(own)
        if client.throttled:
            self._schedule.throttles.set(client, self._schedule.now)
        elif client.partial:
            self._schedule.look_soon(client)
        self._pressure.balance(client)
        self._arm()

    def touched(self, endpoint: engine.RelayEndpoint) -> None:
        """Somebody put bytes into ``endpoint`` outside a scan."""
        mine = cast(PlainRelayEndpoint, endpoint)
        self._passage.sent(mine)
        self._pressure.balance(mine)

    def retry(self, relay: Party) -> None:
        """Other flows may let pass now what an empty bucket held back: look at the next step."""
        for endpoint in endpoints_of(relay):
            if relay.active and endpoint.throttled:
                self._schedule.throttles.set(endpoint, self._schedule.now)
        self._arm()

    def feed(self, relay: Party, side: Side, frames: engine.Bytes) -> None:
        """What the handler has kept of ``side`` comes again, before all else that is kept."""
        if relay.active and frames:
            endpoint = endpoints_of(relay)[side]
            endpoint.partial[:0] = frames
            endpoint.wanted = 0
            self._schedule.look_soon(endpoint)
            self._pressure.balance(endpoint)

    def halt(self, relay: Party) -> None:
        """Read no more from the client: of what it says the broker has had a beginning, and gets no more.

        A message may end in the middle. What comes from the broker goes on, and so do heartbeats.
        """
        if relay.active:
            client = endpoints_of(relay)[Side.CLIENT]
            client.halted = client.throttled = True
            self._schedule.throttles.discard(client)
            self._pressure.balance(client)

    def step(self, timeout: float = 0) -> None:
        """Handle what is ready. Waits for it up to ``timeout`` seconds, for ever below zero.

        Memory that runs out ends the session that asked for it. Where that was none, the next step goes on.
        """
        try:
            self._handle(timeout)
        except MemoryError as error:
            self._schedule.note(error)
            self._schedule.wake()

    def _handle(self, timeout: float) -> None:
        timer, schedule = self._turns.timer, self._schedule
        events: list[tuple[int, int]] = []
        if timer.is_due() or timeout == 0:
            events = self._epoll.poll(0, EVENTS)
        if waited := not events and timeout != 0:
            events = self._epoll.poll(timeout if timeout >= 0 else None, EVENTS)
        schedule.begin_step()
        chosen = timer.choose(len(events), schedule.now, waited=waited)
        late, ready = schedule.take_queues()
        until = schedule.now + ROUND
        attends = False
        try:
            self._turns.serve(late, until)
            for number, (fd, event) in enumerate(events):
                if fd == schedule.event:
                    os.eventfd_read(fd)
                elif fd == self._timer.fileno():
                    self._timer.drain()
                elif fd in self._attending or fd in self._lent:
                    attends = True
                elif (found := self._departures.sockets.get(fd)) is not None:
                    if number == chosen:
                        timer.begin(found, has_bytes=bool(event & select.EPOLLIN))
                    self._turns.heed(found, event, is_late=bool(late) or schedule.latest >= until)
            self._turns.serve(ready, schedule.latest + ROUND)
        finally:
            schedule.put_back(late, ready)
        self._run_timers()
        self._turns.hear_lost()
        self._departures.tell_again()
        if attends:
            self._attend_to(events)
        if schedule.unserved or schedule.ready:
            schedule.wake()

    def _attend_to(self, events: list[tuple[int, int]]) -> None:
        guests = []
        for fd, _ in events:
            # Another one may have taken it out.
            if (guest := self._lent.get(fd)) is not None:
                guests.append(guest)
            elif (callback := self._attending.get(fd)) is not None:
                try:
                    callback()
                except Exception as error:
                    self._schedule.note(error)
        if guests:
            try:
                self._take_in(guests)
            except Exception as error:
                self._schedule.note(error)

    def run(self) -> None:
        """Step for as long as nobody interrupts; what an interrupt cut short goes on at the next call."""
        while not self._interrupted:
            self.step(-1)
        self._interrupted = False

    # -- timers ----------------------------------------------------------------------------

    def _run_timers(self) -> None:
        if self._schedule.now >= self._look_at:
            self._late(self._schedule.now - self._look_at)
            self._look_at = self._schedule.now + self._look_every
        for endpoint in self._schedule.throttles.due(self._schedule.now):
            if not endpoint.active or endpoint.halted:
                continue
            endpoint.throttled = False
            endpoint.last_received = self._schedule.now
            if not endpoint.paused:
                is_late = self._schedule.latest >= self._schedule.now + ROUND
                self._turns.heed(endpoint, select.EPOLLIN, is_late=is_late)
        for endpoint in self._departures.beats.due(self._schedule.now):
            if endpoint.relay.active:
                self._beat(endpoint)
        self._arm()

    def _arm(self) -> None:
        if not self._own_clock:
            throttled, beat = self._schedule.throttles.deadline(), self._departures.beats.deadline()
            self._timer.set(min(beat, throttled, self._look_at))

    def _beat(self, endpoint: PlainRelayEndpoint) -> None:
        """Send when half an interval passed without a send; give up after two silent ones.

        (AMQP 0-9-1, section 4.2.7.) A side that we do not read from, because its peer is slow or
        its bucket is empty, cannot be called silent.
        """
        now = self._schedule.now
        interval = endpoint.heartbeat
        stopped = endpoint.paused or endpoint.throttled or endpoint.fresh
        if not stopped and now - endpoint.last_received >= 2 * interval:
            self.remove(endpoint.relay, End.SILENT, endpoint.side, None)
            return
        if endpoint.buffered is not None or now - endpoint.last_sent >= interval / 2:
            try:
                endpoint.beat()
            except PeerGoneError as gone:
                self.remove(endpoint.relay, End.GONE, gone.side, gone)
                return
            endpoint.last_sent = now
            self._pressure.balance(endpoint)
        due = endpoint.last_sent + interval / 2
        if not stopped:
            due = min(due, endpoint.last_received + 2 * interval)
        self._departures.beats.set(endpoint, due)
