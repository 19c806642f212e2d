"""How far a handshake has come that leaves the fast path, for the conversation that goes on with it."""

from __future__ import annotations

from enum import Enum

from amqpgate.gateway.handshake.agreements import Agreement, Offer
from amqpgate.gateway.transport.caller import Caller
from amqpgate.gateway.upstream.dialer import DialedBroker, Dialer
from amqpgate.policy import SelectedPolicies
from amqpgate.protocol.handshake import ConnectionState
from amqpgate.values import frozen
from amqpgate.wire.generated import v0_9_1 as amqp


class Stage(Enum):
    """What was said last. What comes next may have been received."""

    #: Nothing that was understood.
    ACCEPTED = "accepted"
    #: The client has heard start.
    STARTED = "started"
    #: The broker has heard start-ok.
    LOGGED_IN = "logged in"
    #: The client has heard tune.
    TUNING = "tuning"
    #: The client has said tune-ok. What is unsent is the broker's, and goes with the open.
    TUNED = "tuned"
    #: The broker has heard open.
    ASKED = "asked"


#: Where the client's conversation stands.
_STATES = {
    Stage.ACCEPTED: ConnectionState.GREETED,
    Stage.STARTED: ConnectionState.STARTING,
    Stage.LOGGED_IN: ConnectionState.SECURING,
    Stage.TUNING: ConnectionState.TUNING,
    Stage.TUNED: ConnectionState.OPENING,
    Stage.ASKED: ConnectionState.ASKED,
}


@frozen(eq=False)
class Progress:
    """What there is by then: more at each stage."""

    stage: Stage
    caller: Caller
    #: When it must be over, on trio's clock.
    until: float
    #: What the client has said beyond the stage, or why no more is heard of it.
    received: bytes | OSError = b""
    dialler: Dialer | None = None
    #: As the client has heard it.
    start: amqp.ConnectionStart | None = None
    #: To the broker, once it has been dialled.
    line: DialedBroker | None = None
    start_ok: amqp.ConnectionStartOk | None = None
    offer: Offer | None = None
    agreement: Agreement | None = None
    #: What is to be opened, by whom.
    opening: tuple[amqp.ConnectionOpen, SelectedPolicies] | None = None
    #: Of what was said last, what was not sent: to whom the stage says.
    unsent: bytes = b""

    @property
    def state(self) -> ConnectionState:
        """Where the client's conversation stands."""
        return _STATES[self.stage]
