"""What a session is made from: both connections, open, and what is known of their peers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

from amqpgate.bridge import Interpreter
from amqpgate.datapath import relay
from amqpgate.datapath.scanner import FlowTable
from amqpgate.gateway.transport.method_stream import MethodStream
from amqpgate.policy import Choice, Principal
from amqpgate.protocol.handshake import Tune

if TYPE_CHECKING:
    from amqpgate.gateway.session.session import Session


class SharedUpstream(Protocol):
    """Connections to a broker that several sessions share."""

    def seat(
        self, session: Session, client: relay.HandedOverSocket, flows: FlowTable | None, largest_frame: int
    ) -> relay.Relay:
        """The relay of a session on them."""


@attrs.frozen
class Established:
    """Both hops are open."""

    principal: Principal
    client: relay.HandedOverSocket
    #: None: the session shares upstream connections.
    upstream: relay.HandedOverSocket | None
    channel_max: int
    #: Of the client and of the broker, by ``datapath.tables.Side``.
    interpreters: tuple[Interpreter, Interpreter]
    #: What the client says that it understands, such as consumer_cancel_notify.
    capabilities: frozenset[str] = frozenset()
    #: The route that was taken; None: none.
    choice: Choice | None = None
    #: The pool whose connections are shared.
    pool: SharedUpstream | None = None
    #: Whether channel.flow off is done here for a client of 0-9-1, too.
    keeps_deliveries: bool = False

    def close(self) -> None:
        """Close the sockets: no session comes about."""
        self.client.sock.close()
        if self.upstream is not None:
            self.upstream.sock.close()


def hand_over(hop: MethodStream, tune: Tune) -> relay.HandedOverSocket:
    """A socket as the data path takes it."""
    return relay.HandedOverSocket(hop.sock, tune.frame_max, float(tune.heartbeat), hop.decoder.take_rest())
