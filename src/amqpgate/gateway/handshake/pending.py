"""Connections that are not logged in yet: how many there may be, and which of them gives way.

::

    accepted ──▶ SILENT ──▶ served ──▶ GREETED ──▶ served ──▶ NAMED ──▶ served ──▶ logged in, or gone
                  │ ▲ protocol header   │ start-ok         │ ▲ secure-ok; tune-ok and open
                  └─┘ PROXY header      │                  └─┘
    gives way: the silent ones first, then those that were greeted, then those that have named themselves; of
    these the one that has been so for longest

``limits.maxHandshakes`` holds for all, ``limits.handshakesPerAddress`` for each source address (IPv6: for
each /64, which is what one host is given). A connection whose turn it is to speak gives way to a new one; one
that is served never does. To say a name proves nothing, so who has said one and is silent gives way, too.
Decisions only: who gives way is cancelled.
"""

from __future__ import annotations

import ipaddress
from enum import IntEnum
from functools import lru_cache
from typing import Final

import attrs

from amqpgate.gateway.transport.fiber import Interrupted
from amqpgate.gateway.transport.memory_trim import MANY, Tide
from amqpgate.gateway.transport.waiting import CancelScope, Interruptible
from amqpgate.values import define

#: Bits of an IPv6 address that tell hosts apart.
_HOST_BITS: Final = 64


class Silence(IntEnum):
    """What the gateway waits for; those who owe the least come last."""

    #: A protocol header, and what comes before it.
    SILENT = 0
    #: A start-ok.
    GREETED = 1
    #: What follows it.
    NAMED = 2


_SILENT: Final = Silence.SILENT


@define(eq=False)
class PendingHandshake:
    """One connection that is not logged in yet."""

    #: Whom it counts for; None: a balancer has not said yet whom it comes from.
    source: str | None = attrs.field(default=None, init=False)
    #: What is waited for of it; None: nothing.
    owes: Silence | None = attrs.field(default=None, init=False)
    gave_way: bool = attrs.field(default=False, init=False)
    is_cancelled: bool = attrs.field(default=False, init=False)
    #: What it goes by until it is a conversation.
    _steps: Interruptible | None = attrs.field(default=None, init=False)
    #: What it goes by then.
    _scope: CancelScope | None = attrs.field(default=None, init=False)

    @property
    def scope(self) -> CancelScope:
        """Of the conversation with it."""
        if self._scope is None:
            self._scope = CancelScope()
            if self.is_cancelled:
                self._scope.cancel()
        return self._scope

    def goes_by(self, steps: Interruptible) -> None:
        """It is no conversation yet: these are interrupted when it is cancelled."""
        self._steps = steps

    def is_over(self) -> None:
        """It goes by nothing any more, so that it is no cycle, which Python would have to find."""
        self._steps = None

    def comes_from(self, source: str) -> None:
        """It is known whom it counts for."""
        self.source = source

    def owe(self, silence: Silence | None) -> None:
        """This is waited for of it."""
        self.owes = silence

    def cancel(self) -> None:
        """No session comes of it."""
        self.is_cancelled = True
        if self._scope is not None:
            self._scope.cancel()
        elif self._steps is not None:
            self._steps.interrupt(Interrupted(self))

    def give_way(self) -> None:
        """End it, for another one."""
        self.gave_way = True
        self.cancel()


@define(eq=False)
class PendingHandshakes:
    """All pending handshakes of a gateway. A dict is a set that remembers who came first."""

    most: int
    most_per_source: int
    _tide: Tide = attrs.field(factory=Tide, init=False)
    _all: dict[PendingHandshake, None] = attrs.field(factory=dict, init=False)
    _waiting: dict[Silence, dict[PendingHandshake, None]] = attrs.field(init=False)
    _by_source: dict[str, dict[PendingHandshake, None]] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._waiting = {silence: {} for silence in Silence}

    def __len__(self) -> int:
        return len(self._all)

    def enter(self, address: str | None) -> PendingHandshake | None:
        """A new connection from an IP address; None: there is no room for it.

        ``address`` None: it comes from a balancer, which will say whom it is of (`of`).
        """
        if len(self._all) >= self.most and not self._make_room():
            return None
        handshake = PendingHandshake()
        try:
            if address is not None and not self.of(handshake, address):
                return None
            self._all[handshake] = None
            if len(self._all) >= MANY:
                self._tide.rise(len(self._all))
            self.awaits(handshake, _SILENT)
        except MemoryError:
            self.leave(handshake)
            raise
        return handshake

    def has_fallen(self) -> bool:
        """Whether there were many, and most of them are over. Not true again before there were many again."""
        return self._tide.fell(len(self._all))

    def of(self, handshake: PendingHandshake, address: str) -> bool:
        """It comes from there. Whether there is room for it."""
        source = source_of(address)
        others = self._by_source.get(source, {})
        if len(others) >= self.most_per_source and not self._give_way(others):
            return False
        handshake.comes_from(source)
        # `others` is dropped when it is empty, which it may have become.
        self._by_source.setdefault(source, {})[handshake] = None
        return True

    def awaits(self, handshake: PendingHandshake, silence: Silence | None) -> None:
        """What the client owes from now on; None: nothing."""
        before = handshake.owes
        if before is not None:
            handshake.owe(None)
            self._waiting[before].pop(handshake, None)
        if silence is not None and handshake in self._all:
            # In this order, so that none is left there where memory runs out.
            handshake.owe(silence)
            self._waiting[silence][handshake] = None

    def leave(self, handshake: PendingHandshake) -> None:
        """It is over, one way or another. Idempotent."""
        handshake.is_over()
        if handshake in self._all:
            del self._all[handshake]
            if handshake.owes is not None:
                self.awaits(handshake, None)
        if handshake.source is not None:
            others = self._by_source.get(handshake.source, {})
            others.pop(handshake, None)
            if not others:
                self._by_source.pop(handshake.source, None)

    def cancel(self) -> None:
        """None becomes a session any more."""
        for handshake in self._all:
            handshake.cancel()

    def _make_room(self) -> bool:
        for waiting in self._waiting.values():
            for handshake in waiting:
                self._dismiss(handshake)
                return True
        return False

    def _give_way(self, others: dict[PendingHandshake, None]) -> bool:
        for waiting in self._waiting.values():
            for handshake in others:
                if handshake in waiting:
                    self._dismiss(handshake)
                    return True
        return False

    def _dismiss(self, handshake: PendingHandshake) -> None:
        handshake.give_way()
        self.leave(handshake)


@lru_cache(maxsize=1024)
def source_of(address: str) -> str:
    """Whom an IP address stands for: itself, or its network where a host has a whole one."""
    try:
        ip = ipaddress.ip_address(address.strip("[]").partition("%")[0])
    except ValueError:
        return address
    if ip.version == 4:
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((ip, _HOST_BITS), strict=False))
