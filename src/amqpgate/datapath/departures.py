"""Who leaves the plain pump, and how: back to its handler, told once, whatever fails meanwhile."""

from __future__ import annotations

import contextlib
import select
from typing import cast

from amqpgate.datapath.endpoint import PlainPooledEndpoint, PlainRelayEndpoint
from amqpgate.datapath.engine import End, Party, PeerGoneError
from amqpgate.datapath.pressure import Pressure
from amqpgate.datapath.schedule import Schedule
from amqpgate.datapath.tables import Side
from amqpgate.datapath.wheel import Wheel


def endpoints_of(party: Party) -> tuple[PlainRelayEndpoint, ...]:
    """The endpoints of what is in a plain pump: plain ones."""
    return cast("tuple[PlainRelayEndpoint, ...]", party.endpoints)


class Departures:
    """The sockets of one pump, and who leaves it with them; see the module."""

    def __init__(self, schedule: Schedule, pressure: Pressure, epoll: select.epoll) -> None:
        self._schedule = schedule
        self._pressure = pressure
        self._epoll = epoll
        #: What is in the epoll set, by file descriptor.
        self.sockets: dict[int, PlainRelayEndpoint] = {}
        #: When each socket's next heartbeat is due, or the peer's is.
        self.beats: Wheel[PlainRelayEndpoint] = Wheel()
        #: Who is heard out in more than one turn, and how many reads are left.
        self.going: dict[Party, tuple[int, PeerGoneError]] = {}
        #: Who is to end, and why, since a send failed in what may be another's event.
        self.lost: list[tuple[Party, PeerGoneError]] = []
        #: Ends of sessions that are over, and where they were: frames that are kept are that link's now.
        self.left: list[tuple[Party, PlainPooledEndpoint]] = []
        #: Whose handlers could not be told of their end, for want of memory.
        self._untold: list[tuple[Party, End, Side | None, Exception | None]] = []

    def remove(self, party: Party, end: End, side: Side | None, error: Exception | None) -> None:
        """Hand a session, or a link, back to its handler."""
        if not party.active:
            return
        party.active = False
        self._schedule.counters.relays -= 1
        self.going.pop(party, None)
        try:
            unheard = self._take_out(party)
        except MemoryError as failure:
            self._schedule.note(failure)
            unheard = self._take_out(party)
        self._tell_end(party, end, side, error)
        link = endpoints_of(party)[0].as_link
        if link is not None:
            link.mappings.clear()
            link.behind.clear()
            self._pressure.let_go(link)
        if unheard is not None:
            # It will not hear what came for the session: it cannot know the channels' states any more.
            self.remove(unheard, End.FAILED, Side.UPSTREAM, None)

    def undo(self, party: Party) -> None:
        """It could not be taken in as a whole: nothing of it stays."""
        party.active = False
        self._schedule.counters.relays -= 1
        for endpoint in endpoints_of(party):
            if not endpoint.is_pooled:
                self._forget(endpoint)

    def fail(self, party: Party, side: Side, error: Exception) -> None:
        """An exception in an upcall ends that session, or link, and no other."""
        self._schedule.note(error)
        self.remove(party, End.FAILED, side, error)

    def lose(self, endpoint: PlainRelayEndpoint, gone: PeerGoneError) -> None:
        """A send to ``endpoint`` has failed in what may be another's event: its end comes after that."""
        shared = endpoint.as_link or endpoint.pooled_peer
        assert shared is not None, "who has no link has no other's events"
        if not shared.broken:
            self.lost.append((endpoint.relay, gone))
            shared.broken = True
            self._schedule.wake()

    def tell_again(self) -> None:
        """Tell those handlers of an end that could not be told."""
        if self._untold:
            untold, self._untold = self._untold, []
            for told in untold:
                self._tell_end(*told)

    def _take_out(self, party: Party) -> Party | None:
        """Forget its endpoints; it may be done again. The link that will not hear what came for it."""
        unheard: Party | None = None
        for endpoint in endpoints_of(party):
            pooled = endpoint.as_pooled
            if pooled is None:
                self._forget(endpoint)
                continue
            self.beats.discard(endpoint)
            self._schedule.throttles.discard(endpoint)
            self._pressure.caught_up(pooled)
            if pooled.way is not None and all(other is not pooled for _, other in self.left):
                try:
                    self.left.append((pooled.way.relay, pooled))
                except MemoryError as failure:
                    self._schedule.note(failure)
                    unheard = pooled.way.relay
            pooled.drop()
        return unheard

    def _forget(self, endpoint: PlainRelayEndpoint) -> None:
        """A socket, as far as it was entered."""
        self.beats.discard(endpoint)
        self._schedule.throttles.discard(endpoint)
        fd = endpoint.sock.fileno()
        if self.sockets.get(fd) is endpoint:
            del self.sockets[fd]
            with contextlib.suppress(OSError):
                self._epoll.unregister(fd)

    def _tell_end(self, party: Party, end: End, side: Side | None, error: Exception | None) -> None:
        """Who hears of it gives back what the session held: told again where that lacked memory."""
        try:
            party.handler.ended(end, side, error)
        except MemoryError as failure:
            self._schedule.note(failure)
            self._untold.append((party, end, side, error))
            self._schedule.wake()
        except Exception as failure:
            self._schedule.note(failure)
