"""Listeners whose connections take the fast path (`fast_handshake`), and what becomes of these."""

from __future__ import annotations

import socket
from typing import Protocol

import attrs

from amqpgate.config import Listener
from amqpgate.gateway.handshake.agreements import Agreements
from amqpgate.gateway.handshake.context import HandshakeContext
from amqpgate.gateway.handshake.pending import PendingHandshake
from amqpgate.gateway.handshake.progress import Progress
from amqpgate.gateway.handshake.start_ok import Introduction
from amqpgate.gateway.session.established import Established
from amqpgate.gateway.transport.caller import Caller
from amqpgate.gateway.upstream.cluster import Destination
from amqpgate.policy import Principal, SelectedPolicies
from amqpgate.values import define


class Conversations(Protocol):
    """What becomes of connections that leave the fast path (`accept.Acceptor`)."""

    def converse(
        self, sock: socket.socket, listener: Listener, pending: PendingHandshake, progress: Progress
    ) -> None:
        """It goes on as a conversation, from there."""

    def establish(
        self,
        caller: Caller,
        established: Established,
        pending: PendingHandshake,
        policies: SelectedPolicies,
    ) -> bool:
        """It becomes a session; whether it did. Where it did not, its sockets are closed."""

    def left(self, sock: socket.socket, pending: PendingHandshake, outcome: str | None) -> None:
        """It is over so; None: it is a session."""


@define(eq=False)
class FastPath:
    """The fast path of one listener."""

    context: HandshakeContext
    listener: Listener
    conversations: Conversations
    agreements: Agreements = attrs.field(init=False)
    #: Where its clients go while there are no routes; None: that is for conversations.
    home: Destination | None = attrs.field(init=False)
    #: Whether channel.flow off is done here.
    keeps_deliveries: bool = attrs.field(init=False)
    #: Whether tokens are verified, which a conversation does.
    verifies_tokens: bool = attrs.field(init=False)
    #: Seconds that a handshake may take.
    timeout: float = attrs.field(init=False)
    #: Seconds after which its connections look at their deadlines for the first time.
    first_look: float = attrs.field(init=False)
    #: Who came last, by where from, by which name, to which virtual host, and by what it said of itself: who
    #: comes again is found by what there is of it, where another object would have to be compared.
    principals: dict[tuple[str, str, str, int], tuple[Principal, Introduction]] = attrs.field(
        factory=dict, init=False
    )

    def __attrs_post_init__(self) -> None:
        self.agreements = Agreements(self.listener)
        self.home = self.context.router.home(self.listener)
        self.keeps_deliveries = self.listener.keeps_deliveries
        self.verifies_tokens = self.context.identities is not None
        settings = self.context.settings
        self.timeout = settings.limits.handshake_timeout
        waits = [min(one.connect_timeout, one.answer_timeout) for one in settings.upstreams]
        self.first_look = min(self.timeout, *waits)
