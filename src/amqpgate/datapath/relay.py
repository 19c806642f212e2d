"""The two endpoints of one established session, and the face that the control plane sees of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

import attrs

from amqpgate.datapath.captures import Captured
from amqpgate.datapath.engine import (
    Bytes,
    End,
    HandedOverSocket,
    Handler,
    Party,
    PeerGoneError,
    PooledEndpoint,
    RelayEndpoint,
)
from amqpgate.datapath.scanner import Channels, Lane
from amqpgate.datapath.tables import ScanResult, Side
from amqpgate.values import define

__all__ = ["End", "HandedOverSocket", "Handler", "Party", "Relay"]


class _Nobody:
    """The handler of relays that are over: whatever comes is nothing."""

    def upcall(self, side: Side, result: ScanResult, frame: memoryview) -> bool:
        return False

    def captured(self, side: Side, messages: list[Captured]) -> None:
        pass

    def ended(self, end: End, side: Side | None, error: Exception | None) -> None:
        pass


NOBODY: Final = _Nobody()


@define(eq=False, weakref_slot=False)
class Relay(Party):
    """One session in the data path."""

    #: By their `Side`: the client's, the broker's.
    endpoints: tuple[RelayEndpoint, RelayEndpoint]
    channels: Channels
    #: What is made of frames that ``send`` is given for a side, where they do not go as they are.
    outgoing: Callable[[Side, Bytes], Bytes] | None = attrs.field(default=None, init=False)

    @property
    def up(self) -> Lane:
        """From the client to the broker."""
        return self.endpoints[0].lane

    @property
    def down(self) -> Lane:
        """From the broker to the client."""
        return self.endpoints[1].lane

    @property
    def pooled(self) -> PooledEndpoint | None:
        """Its end at a link, where it is a pooled session."""
        end = self.endpoints[1]
        return cast(PooledEndpoint, end) if end.is_pooled else None

    def release(self) -> None:
        """The session is over, and its sockets are closed: nothing that was its own is kept by the others."""
        self.handler, self.outgoing = NOBODY, None
        for endpoint in self.endpoints:
            endpoint.part()

    def send(self, side: Side, data: Bytes) -> None:
        """Queue whole frames for ``side``, behind what was forwarded to it before.

        Called in an upcall; ``PeerGoneError`` is the pump's to catch. Of a pooled session there is none: it
        may be another's upcall. Does nothing once the relay has left the pump: what a side then
        hears is the tear-down's.
        """
        if not self.active:
            return
        if self.outgoing is not None:
            data = self.outgoing(side, data)
        if data:
            endpoint = self.endpoints[side]
            try:
                endpoint.put(data)
            except PeerGoneError as gone:
                if self.pooled is None:
                    raise
                self.pump.lose(endpoint, gone)
            else:
                self.pump.touched(endpoint)
