"""Back-pressure, in plain Python: who is read, and who is not.

Reads from a side stop while more than ``high`` bytes wait for the other side, and
go on below ``low``. A read adds at most ``CHUNK`` bytes to that, so memory per direction is
bounded by ``high + CHUNK`` and one frame. A throttled sender's last read is kept, unscanned.

A link is never stopped for one client's sake. What waits for a client of its sessions is bounded by the
pooled endpoint's ``limit``, where the handler ends the session, and one read. A client is not read while
more than ``high`` waits for its link, whoever has put it there; so a link holds ``high``, one read and what
one client may have kept.

A socket with buffers of its own (``engine.BufferedSocket``) is not read either while it is full. Frames that
it does not take, though the kernel has room, wait until something has come from its peer.

What waits for a session of a link only since its turns do not come as fast is no fault of its client's: from
half of ``limit`` on its link is not read until half of that is left.
"""

from __future__ import annotations

import select
from typing import cast

from amqpgate.datapath.budgets import CHUNK, OWN_WORDS
from amqpgate.datapath.endpoint import PlainLinkEndpoint, PlainPooledEndpoint, PlainRelayEndpoint
from amqpgate.datapath.engine import BufferedSocket, PooledHandler
from amqpgate.datapath.schedule import Schedule


class Pressure:
    """The water marks, and what follows from them; see the module."""

    def __init__(self, schedule: Schedule, epoll: select.epoll, *, high: int, low: int) -> None:
        self._schedule = schedule
        self._epoll = epoll
        self._high = high
        self._low = low
        self._own_words = high + CHUNK + OWN_WORDS

    def balance(self, endpoint: PlainRelayEndpoint) -> None:
        """Bring back-pressure and the epoll set in line with the bytes that wait."""
        if (link := endpoint.as_link) is not None:
            self._balance_link(link)
        elif (pooled := endpoint.as_pooled) is not None:
            self._balance_pooled(pooled.peer, pooled)
        elif (pooled := endpoint.pooled_peer) is not None:
            self._balance_pooled(endpoint, pooled)
        else:
            for one in (endpoint, endpoint.peer):
                mark = self._low if one.paused else self._high
                self._pause(one, len(one.peer.out) > mark or len(one.out) > self._own_words)

    def _balance_pooled(self, client: PlainRelayEndpoint, pooled: PlainPooledEndpoint) -> None:
        mark = self._low if client.paused else self._high
        link = pooled.way if pooled.way is not None and pooled.way.active else None
        held_up = link is not None and len(link.out) > mark
        self._pause(client, held_up or len(client.out) > self._own_words + pooled.limit)
        self._hold_back(pooled, link)
        if link is not None:
            if held_up:
                link.held_up[client] = None
            self._balance_link(link)
        waiting = len(client.out) + (len(pooled.partial) if pooled.throttled else 0)
        if waiting > pooled.limit and not pooled.has_overflowed and pooled.relay.active:
            pooled.has_overflowed = True
            cast(PooledHandler, pooled.relay.handler).overflowed()

    def _hold_back(self, pooled: PlainPooledEndpoint, link: PlainLinkEndpoint | None) -> None:
        """Note whether the link must wait for the session's turns."""
        if link is None:
            return
        mark = pooled.limit // (4 if pooled in link.behind else 2)
        if pooled.active and not pooled.throttled and len(pooled.partial) > mark:
            link.behind[pooled] = None
            self._balance_link(link)
        elif pooled in link.behind:
            self.caught_up(pooled)

    def caught_up(self, pooled: PlainPooledEndpoint) -> None:
        """Its link need not wait for it, or not any more."""
        link = pooled.way
        if link is not None and pooled in link.behind:
            del link.behind[pooled]
            if link.relay.active:
                self._balance_link(link)

    def _balance_link(self, endpoint: PlainLinkEndpoint) -> None:
        self._pause(endpoint, bool(endpoint.behind))
        if endpoint.held_up and len(endpoint.out) <= self._low:
            self.let_go(endpoint)

    def let_go(self, endpoint: PlainLinkEndpoint) -> None:
        """Clients that waited for a link need not any more."""
        clients, endpoint.held_up = endpoint.held_up, {}
        for client in clients:
            if client.relay.active:
                self.balance(client)

    def _pause(self, endpoint: PlainRelayEndpoint, over: bool) -> None:
        buffered = endpoint.buffered
        over = over or (buffered is not None and buffered.is_full)
        if over != endpoint.paused:
            endpoint.paused = over
            if over:
                self._schedule.counters.paused += 1
            else:
                # The silence was ours: the clock of this hop starts again.
                endpoint.last_received = self._schedule.now
                if endpoint.fresh or endpoint.has_pending():
                    self._schedule.serve(endpoint)
        stopped = over or endpoint.throttled or endpoint.fresh
        wish = (0 if stopped else select.EPOLLIN) | (select.EPOLLOUT if endpoint.out else 0)
        if buffered is not None:
            wish = self._look_behind(endpoint, buffered, wish)
        if wish != endpoint.interest:
            endpoint.interest = wish
            self._epoll.modify(endpoint.sock.fileno(), wish)

    def _look_behind(self, endpoint: PlainRelayEndpoint, buffered: BufferedSocket, wish: int) -> int:
        """What is in a socket's own buffers: frames are received soon; the epoll events to ask for.

        That the kernel has room is no news where frames wait for something else.
        """
        if wish & select.EPOLLIN and buffered.pending():
            self._schedule.serve(endpoint)
        if buffered.unsent or (endpoint.out and buffered.takes_frames):
            return wish | select.EPOLLOUT
        return wish & ~select.EPOLLOUT
