"""What a handshake hands over: both peers have agreed, and the session may begin."""

from __future__ import annotations

from typing import Protocol

from amqpgate.bridge import Interpreter
from amqpgate.datapath.build import make_relay
from amqpgate.datapath.engine import HandedOverSocket, Socket
from amqpgate.datapath.scanner import FlowTable
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.session.session_token import SessionToken
from amqpgate.gateway.session.upcalls import Upcalls
from amqpgate.gateway.session.upstream import OwnUpstream, SessionUpstream
from amqpgate.policy import Choice, SelectedPolicies
from amqpgate.values import frozen


class UpstreamSource(Protocol):
    """Where a session gets its way to the broker from."""

    @property
    def sock(self) -> Socket | None:
        """The connection to the broker; None: it is not the session's own."""

    def connect(
        self, session: Session, client: HandedOverSocket, flows: FlowTable | None, largest_frame: int
    ) -> SessionUpstream:
        """The way of a session, with its relay."""

    def close(self) -> None:
        """No session comes about."""


@frozen
class OwnSource:
    """A connection that was opened for one session."""

    hop: HandedOverSocket

    @property
    def sock(self) -> Socket:
        return self.hop.sock

    def connect(
        self, session: Session, client: HandedOverSocket, flows: FlowTable | None, largest_frame: int
    ) -> OwnUpstream:
        return OwnUpstream(
            make_relay(Upcalls(session), client, self.hop, flows=flows, largest_frame=largest_frame)
        )

    def close(self) -> None:
        self.hop.sock.close()


@frozen
class Established:
    """Both hops are open."""

    policies: SelectedPolicies
    client: HandedOverSocket
    upstream: UpstreamSource
    channel_max: int
    #: Of the client and of the broker, by ``datapath.tables.Side``.
    interpreters: tuple[Interpreter, Interpreter]
    #: What the client says that it understands, such as consumer_cancel_notify.
    capabilities: frozenset[str] = frozenset()
    #: The route that was taken; None: none.
    choice: Choice | None = None
    #: The name of the cluster that the broker is of.
    cluster: str = ""
    #: Whether channel.flow off is done here for a client of 0-9-1, too.
    keeps_deliveries: bool = False
    #: Whether what both peers say passes as it came.
    is_relayed: bool = False
    #: None: the client has not logged in by a token that the gateway has verified.
    token: SessionToken | None = None

    def close(self) -> None:
        """Close the sockets: no session comes about."""
        self.client.sock.close()
        self.upstream.close()
