"""The two endpoints of one established session, and the face that the control plane sees of them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Protocol, cast

import attrs

from amqpgate.datapath.endpoint import Bytes, PeerGoneError
from amqpgate.datapath.scanner import Channels, FlowTable, Lane
from amqpgate.datapath.tables import ScanResult, Side

if TYPE_CHECKING:
    import socket

    from amqpgate.datapath.engine import PooledEndpoint, Pump, RelayEndpoint


class End(Enum):
    """Why a relay left the pump."""

    #: The side's socket reached its end or was reset.
    GONE = "gone"
    #: The side was silent for two heartbeat intervals.
    SILENT = "silent"
    #: The control plane asked for it: closed by agreement, refused, drained.
    FINISHED = "finished"
    #: An exception in an upcall; it has been logged.
    FAILED = "failed"


class Handler(Protocol):
    """The control plane's side of a session that is in the pump. Called synchronously."""

    def upcall(self, side: Side, result: ScanResult, frame: memoryview) -> bool:
        """Deal with one frame from ``side``; the view is valid during the call only.

        True: the frame has not been dealt with, look again. At once after a miss whose flow has been
        installed; or later, if the handler has set ``Lane.ready_at`` of that side to when.
        """

    def ended(self, end: End, side: Side | None, error: Exception | None) -> None:
        """The relay left the pump; its sockets and unsent bytes are the handler's again."""


@attrs.frozen
class HandedOverSocket:
    """What the control plane knows of one socket when it hands it over."""

    sock: socket.socket
    frame_max: int
    #: Seconds; 0 is none.
    heartbeat: float
    #: Bytes that were received after the last frame of the handshake.
    rest: bytes = b""


@attrs.define(eq=False, weakref_slot=False)
class Party:
    """What enters the data path as one, and leaves it as one: a session's relay, or a link."""

    handler: Handler
    pump: Pump = attrs.field(init=False)
    active: bool = attrs.field(default=False, init=False)
    #: Its sockets, and a mapping on a link.
    endpoints: tuple[RelayEndpoint, ...] = attrs.field(init=False)

    def finish(self) -> None:
        """Leave the pump; ``handler.ended`` is called once, with ``End.FINISHED``."""
        self.pump.remove(self, End.FINISHED, None, None)


@attrs.define(eq=False, weakref_slot=False)
class Relay(Party):
    """One session in the data path."""

    endpoints: tuple[RelayEndpoint, RelayEndpoint]
    channels: Channels
    #: What is made of frames that ``send`` is given for a side, where they do not go as they are.
    outgoing: Callable[[Side, Bytes], Bytes] | None = attrs.field(default=None, init=False)

    @property
    def up(self) -> Lane:
        """From the client to the broker."""
        return self.endpoints[Side.CLIENT].lane

    @property
    def down(self) -> Lane:
        """From the broker to the client."""
        return self.endpoints[Side.UPSTREAM].lane

    @property
    def pooled(self) -> PooledEndpoint | None:
        """Its mapping, where it rides on a link."""
        end = self.endpoints[Side.UPSTREAM]
        return cast("PooledEndpoint", end) if end.is_pooled else None

    def send(self, side: Side, data: Bytes) -> None:
        """Queue whole frames for ``side``, behind what was forwarded to it before.

        Called in an upcall; ``PeerGoneError`` is the pump's to catch. Of a pooled session there
        is none: it may be another's upcall. Does nothing once the relay has left the pump: what a side then
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


def make_relay(
    handler: Handler,
    client: HandedOverSocket,
    upstream: HandedOverSocket,
    *,
    flows: FlowTable | None,
    largest_frame: int = 0,
) -> Relay:
    """Build the relay of one session.

    ``flows`` None: every publish may pass, and none is counted apart. RabbitMQ cuts bodies and nothing
    else: a content header may be larger than what was agreed, and clients take it. ``largest_frame``
    (bytes) is what is taken from the broker where less was agreed.
    """
    from amqpgate.datapath.engine import RelayEndpoint

    channels = Channels()
    up = Lane(Side.CLIENT, client.frame_max, upstream.frame_max, channels, flows)
    down = Lane(Side.UPSTREAM, max(upstream.frame_max, largest_frame), client.frame_max, channels)
    client_end = RelayEndpoint(client.sock, Side.CLIENT, up, client.heartbeat, client.rest)
    upstream_end = RelayEndpoint(upstream.sock, Side.UPSTREAM, down, upstream.heartbeat, upstream.rest)
    client_end.meet(upstream_end)
    upstream_end.meet(client_end)
    return Relay(handler, (client_end, upstream_end), channels)
