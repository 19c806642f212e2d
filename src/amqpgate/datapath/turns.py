"""One endpoint's turn in the plain pump: what it says is read and relayed; a failure ends it and no other."""

from __future__ import annotations

import select

from amqpgate.datapath.budgets import CHUNK, CHUNK_REWRITTEN, LAST_READS
from amqpgate.datapath.departures import Departures, endpoints_of
from amqpgate.datapath.endpoint import PlainRelayEndpoint
from amqpgate.datapath.engine import End, Party, PeerGoneError
from amqpgate.datapath.passage import Passage
from amqpgate.datapath.pressure import Pressure
from amqpgate.datapath.schedule import Schedule
from amqpgate.datapath.tables import Side
from amqpgate.datapath.turn_timer import TurnTimer
from amqpgate.errors import ProtocolViolation

_GONE = select.EPOLLHUP | select.EPOLLERR


class Turns:
    """Gives endpoints their turns."""

    def __init__(
        self, schedule: Schedule, pressure: Pressure, departures: Departures, passage: Passage
    ) -> None:
        self._schedule = schedule
        self._pressure = pressure
        self._departures = departures
        self._passage = passage
        #: Of which some are timed.
        self.timer = TurnTimer(schedule.counters.latency, schedule.now)

    def serve(self, queue: list[PlainRelayEndpoint], until: float) -> None:
        """Give turns, one at least, up to that time; whoever has had one is taken out of the queue."""
        while queue:
            endpoint = queue.pop(0)
            endpoint.queued = False
            going = self._departures.going.get(endpoint.relay)
            if going is not None and endpoint.side is going[1].side:
                self._hear_out(endpoint.relay, going[1])
            elif endpoint.active and not endpoint.paused and not endpoint.throttled:
                self._guarded(endpoint, select.EPOLLIN)
                self.timer.end(self._schedule.look)
            if self._schedule.look() >= until:
                return

    def heed(self, endpoint: PlainRelayEndpoint, events: int, *, is_late: bool) -> None:
        """What epoll says of one endpoint."""
        if is_late and events & ~select.EPOLLOUT:
            self._schedule.serve(endpoint)
        if endpoint.queued:
            events &= select.EPOLLOUT
        if events:
            self._guarded(endpoint, events)
            self._schedule.look()
            self.timer.end(self._schedule.look)

    def hear_lost(self) -> None:
        """Those to whom a send has failed in another's turn end now."""
        lost = self._departures.lost
        for _ in range(len(lost)):
            self._hear_out(*lost[0])
            del lost[0]

    def _guarded(self, endpoint: PlainRelayEndpoint, events: int) -> None:
        """One endpoint's turn. Whatever goes wrong ends that session, or link, and no other."""
        party = endpoint.relay
        self._schedule.begin_turn()
        try:
            if events & select.EPOLLOUT and (endpoint.out or endpoint.buffered is not None):
                endpoint.flush()
                endpoint.last_sent = self._schedule.now
            if endpoint.pooled_peer is not None:
                # Others may have filled the link since.
                self._pressure.balance(endpoint)
            # A socket that is gone in both directions reports so until it is read to its end.
            stopped = endpoint.paused or endpoint.throttled
            if party.active and (events & _GONE or (events & select.EPOLLIN and not stopped)):
                self._read(endpoint)
            if party.active:
                self._pressure.balance(endpoint)
        except PeerGoneError as gone:
            self._hear_out(party, gone)
        except Exception as error:
            self._departures.fail(party, endpoint.side, error)
        if self._departures.left:
            self._passage.hand_back()

    def _hear_out(self, party: Party, gone: PeerGoneError) -> None:
        """A send failed. What the side said before it went comes first: its own reason, maybe.

        That takes as many turns as it takes.
        """
        endpoint = endpoints_of(party)[0 if gone.side is Side.CLIENT else -1]
        left, before = self._departures.going.get(party, (LAST_READS, gone))
        if endpoint.queued and party in self._departures.going and gone.side is before.side:
            return
        self._schedule.begin_turn()
        try:
            while party.active and not endpoint.throttled and gone.side is before.side:
                if endpoint.fresh:
                    self._passage.take_rest(endpoint)
                elif left:
                    left -= 1
                    self._read(endpoint)
                    if endpoint.buffered is not None and party.active and endpoint.has_pending():
                        # What was read is heard in more than one turn.
                        left += 1
                        self._schedule.end_turn(endpoint)
                else:
                    break
                if self._schedule.is_over and endpoint.queued and party.active:
                    self._departures.going[party] = left, gone
                    return
        except PeerGoneError:
            pass
        except Exception as error:
            self._schedule.note(error)
        if party.active and (link := endpoint.as_link) is not None and link.owes():
            self._departures.going[party] = 0, gone
            self._schedule.go_on(endpoint)
            return
        self._departures.remove(party, End.GONE, gone.side, gone)
        if self._departures.left:
            self._passage.hand_back()

    def _read(self, endpoint: PlainRelayEndpoint) -> None:
        if endpoint.fresh and not endpoint.throttled:
            self._passage.take_rest(endpoint)
            if not endpoint.relay.active or endpoint.throttled or endpoint.fresh:
                return
        if endpoint.is_pooled:
            return
        try:
            most = CHUNK_REWRITTEN if endpoint.rewritten else CHUNK
            got = endpoint.receive_into(self._passage.landing[:most])
        except ProtocolViolation as violation:
            self._departures.remove(endpoint.relay, End.FAILED, endpoint.side, violation)
            return
        if got == 0:
            if (link := endpoint.as_link) is not None and link.owes():
                self._schedule.go_on(endpoint)
            else:
                self._departures.remove(endpoint.relay, End.GONE, endpoint.side, None)
            return
        if got > 0:
            self._take(endpoint, got)
        elif endpoint.buffered is None:
            return
        if endpoint.buffered is not None and endpoint.buffered.has_heard():
            # It may be no frame yet, but is a sign of life.
            endpoint.last_received = self._schedule.now
        if endpoint.relay.active and endpoint.has_pending():
            self._schedule.go_on(endpoint)

    def _take(self, endpoint: PlainRelayEndpoint, got: int) -> None:
        """So many bytes have been received."""
        if endpoint.buffered is None:
            endpoint.last_received = self._schedule.now
        if endpoint.throttled or len(endpoint.partial) + got < endpoint.wanted:
            # Who is throttled, and is read, is gone in both directions: there is little more.
            endpoint.partial += self._passage.landing[:got]
        else:
            self._passage.dispatch(endpoint, got)
