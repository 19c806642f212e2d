"""One upstream connection that several sessions share, and the face that the control plane sees of it."""

from __future__ import annotations

from amqpgate.datapath.engine import Bytes, LinkEndpoint, Party, PeerGoneError, PooledEndpoint
from amqpgate.datapath.tables import Side
from amqpgate.values import define


@define(eq=False, weakref_slot=False)
class Link(Party):
    """One link in the data path.

    Its handler gets each frame on a channel that is nobody's, channel 0 included, as an upcall with
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
        """They are the link's handler's again. Does nothing where the channel is nobody's."""
        self.endpoint.unmap_channel(number)

    def mapped_to(self, number: int) -> tuple[PooledEndpoint, int] | None:
        """Whose the channel is, and its number on that client."""
        return self.endpoint.mapping_at(number)

    def send(self, data: Bytes) -> None:
        """Queue whole frames with the link's channel numbers, behind what was accepted before.

        What concerns a session's channel goes through that session's ``Relay.send``: what its
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
