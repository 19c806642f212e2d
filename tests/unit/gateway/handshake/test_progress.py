"""Where the client's conversation stands at each stage follows from what has been said by then."""

from __future__ import annotations

from amqpgate.gateway.handshake.progress import Progress, Stage
from amqpgate.gateway.transport.caller import Caller
from amqpgate.protocol.handshake import ConnectionState, step
from amqpgate.protocol.methods import Role
from amqpgate.wire.generated import v0_9_1 as amqp

#: What leads from each stage to the next, on the client's hop.
SAID = {
    Stage.STARTED: (Role.SERVER, amqp.ConnectionStart),
    Stage.LOGGED_IN: (Role.CLIENT, amqp.ConnectionStartOk),
    Stage.TUNING: (Role.SERVER, amqp.ConnectionTune),
    Stage.TUNED: (Role.CLIENT, amqp.ConnectionTuneOk),
    Stage.ASKED: (Role.CLIENT, amqp.ConnectionOpen),
}


def test_states() -> None:
    state: ConnectionState | None = ConnectionState.GREETED
    for stage in Stage:
        if stage in SAID:
            assert state is not None
            state = step(state, *SAID[stage])
        assert Progress(stage, Caller("s", "10.0.0.1:1"), 0.0).state is state
