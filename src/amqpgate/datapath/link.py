"""One upstream connection that several sessions share, and the face that the control plane sees of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

from amqpgate.datapath.endpoint import Bytes, PeerGoneError
from amqpgate.datapath.relay import HandedOverSocket, Handler, Party, Relay
from amqpgate.datapath.scanner import Channels, FlowTable, Lane
from amqpgate.datapath.tables import Side

if TYPE_CHECKING:
    from amqpgate.datapath.engine import LinkEndpoint, PooledEndpoint


class PooledHandler(Handler, Protocol):
    """The control plane's side of a pooled session."""

    def overflowed(self) -> None:
        """More than ``PooledEndpoint.limit`` bytes wait for the client, for which no link is stopped.

        Called once; the handler ends the session.
        """


@attrs.define(eq=False, weakref_slot=False)
class Link(Party):
    """One link in the data path.

    Its handler gets each frame on a channel where nobody sits, channel 0 included, as an upcall with
    ``ScanResult.METHOD``, whatever its type; what it returns does not matter. It gets violations, too, and
    should end the link then. Frames for a session that has ended are its handler's as well.
    """

    endpoints: tuple[LinkEndpoint]
    #: Largest frame that the broker takes.
    frame_max: int

    @property
    def endpoint(self) -> LinkEndpoint:
        """Its socket."""
        return self.endpoints[0]

    def map_channel(self, number: int, pooled: PooledEndpoint, to: int) -> None:
        """Frames on the link's channel ``number`` go to ``pooled`` now, as its client's channel ``to``.

        May be called in an upcall; it holds for the next frame.
        """
        self.endpoint.map_channel(number, pooled, to)

    def unmap_channel(self, number: int) -> None:
        """They are the link's handler's again. Does nothing where nobody sits."""
        self.endpoint.unmap_channel(number)

    def mapped_to(self, number: int) -> tuple[PooledEndpoint, int] | None:
        """Who sits there, and the channel's number on that client."""
        return self.endpoint.mapping_at(number)

    def send(self, data: Bytes) -> None:
        """Queue whole frames with the link's channel numbers, behind what was accepted before.

        What concerns a channel where somebody sits goes through that session's ``Relay.send``: what its
        client said before may still wait there. Does nothing once the link is broken, or has left the pump.
        """
        if self.active:
            self.endpoint.take(data)

    def finish_heard(self) -> None:
        """As ``finish``, once all that came by it has been given to its sessions. It sends nothing more."""
        if self.endpoint.owes():
            self.pump.lose(self.endpoint, PeerGoneError(Side.UPSTREAM, ConnectionAbortedError("closed")))
        else:
            self.finish()


def make_link(handler: Handler, hop: HandedOverSocket, *, largest_frame: int = 0) -> Link:
    """Build a link; ``Pump.add`` takes it in. ``largest_frame`` as for ``make_relay``."""
    from amqpgate.datapath.engine import LinkEndpoint

    lane = Lane(Side.UPSTREAM, max(hop.frame_max, largest_frame), hop.frame_max, Channels())
    endpoint = LinkEndpoint(hop.sock, Side.UPSTREAM, lane, hop.heartbeat, hop.rest)
    return Link(handler, (endpoint,), hop.frame_max)


def make_pooled_relay(
    handler: PooledHandler,
    client: HandedOverSocket,
    *,
    frame_max: int,
    flows: FlowTable | None,
    whole: int,
    limit: int,
    largest_frame: int = 0,
) -> Relay:
    """Build the relay of a pooled session; ``relay.pooled`` is its mapping, on no link yet.

    ``frame_max`` is what is taken for the link's until it boards one. ``whole`` and ``limit`` are the
    pooled session's, both in bytes; the rest is as for ``make_relay``. Of what a client sends,
    ``2 * (whole + client.frame_max)``, a frame and one read are kept at most, and a copy while it is staged.
    """
    from amqpgate.datapath.engine import PooledEndpoint, RelayEndpoint

    channels = Channels()
    up = Lane(Side.CLIENT, client.frame_max, frame_max, channels, flows)
    down = Lane(Side.UPSTREAM, max(frame_max, largest_frame), client.frame_max, channels)
    client_end = RelayEndpoint(client.sock, Side.CLIENT, up, client.heartbeat, client.rest)
    pooled = PooledEndpoint(down, whole=whole, limit=limit, largest_frame=largest_frame)
    client_end.meet(pooled)
    pooled.meet(client_end)
    return Relay(handler, (client_end, pooled), channels)
