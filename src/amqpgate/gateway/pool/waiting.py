"""The end of a wait for a link: it has lasted too long, or its client has gone.

A session that waits is not read, so the data path does not see that its client closes its socket.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Final

from amqpgate.datapath.relay import End, Relay
from amqpgate.datapath.tables import Side
from amqpgate.errors import OverLimit
from amqpgate.wire.generated import v0_9_1 as amqp

if TYPE_CHECKING:
    from amqpgate.gateway.pool.pooled_session import PooledSession

#: Seconds that a client waits for a channel where all are taken. Then its connection is closed with 506.
PATIENCE: Final = 10.0


def end_waiting(riding: PooledSession, deadline: float, now: float) -> None:
    """End the session if it has waited for a channel until the ``deadline``, or its client has gone."""
    relay = riding.session.relay
    if _has_hung_up(relay):
        relay.pump.remove(relay, End.GONE, Side.CLIENT, None)
    elif now >= deadline:
        text = "no channel is free on the connections to the broker that are shared"
        if riding.link is not None:
            text = f"no channel is free on the shared connection to the broker, and {riding.why_fixed()}"
        ids = amqp.ChannelOpen
        riding.session.fail(OverLimit(506, text, class_id=ids.CLASS_ID, method_id=ids.METHOD_ID))


def _has_hung_up(relay: Relay) -> bool:
    """Whether the client has closed, or lost, its connection."""
    poll = select.poll()
    poll.register(relay.endpoints[Side.CLIENT].sock, select.POLLRDHUP)
    return bool(poll.poll(0))
