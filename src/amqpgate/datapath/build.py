"""Chooses the engine, compiled or, on machines without a compiler, plain; and makes what enters it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amqpgate.datapath.engine import HandedOverSocket, Handler, PooledHandler
from amqpgate.datapath.link import Link
from amqpgate.datapath.relay import Relay
from amqpgate.datapath.scanner import Channels, FlowTable, Lane
from amqpgate.datapath.tables import Side

if TYPE_CHECKING:
    from amqpgate.datapath.accepting import accept
    from amqpgate.datapath.endpoint import PlainLinkEndpoint as LinkEndpoint
    from amqpgate.datapath.endpoint import PlainPooledEndpoint as PooledEndpoint
    from amqpgate.datapath.endpoint import PlainRelayEndpoint as RelayEndpoint
    from amqpgate.datapath.pump import PlainPump as Pump

    COMPILED = True
else:
    try:
        from amqpgate.datapath._pump import LinkEndpoint, PooledEndpoint, Pump, RelayEndpoint, accept

        COMPILED = True
    except ImportError:
        from amqpgate.datapath.accepting import accept
        from amqpgate.datapath.endpoint import PlainLinkEndpoint as LinkEndpoint
        from amqpgate.datapath.endpoint import PlainPooledEndpoint as PooledEndpoint
        from amqpgate.datapath.endpoint import PlainRelayEndpoint as RelayEndpoint
        from amqpgate.datapath.pump import PlainPump as Pump

        COMPILED = False

__all__ = [
    "COMPILED",
    "LinkEndpoint",
    "PooledEndpoint",
    "Pump",
    "RelayEndpoint",
    "accept",
    "make_link",
    "make_pooled_relay",
    "make_relay",
]

# To look a member of an enum up takes Python 3.11 a detour each time.
_CLIENT: Final = Side.CLIENT
_UPSTREAM: Final = Side.UPSTREAM


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
    channels = Channels()
    up = Lane(_CLIENT, client.frame_max, upstream.frame_max, channels, flows)
    down = Lane(_UPSTREAM, max(upstream.frame_max, largest_frame), client.frame_max, channels)
    client_end = RelayEndpoint(client.sock, _CLIENT, up, client.heartbeat, client.rest)
    upstream_end = RelayEndpoint(upstream.sock, _UPSTREAM, down, upstream.heartbeat, upstream.rest)
    client_end.meet(upstream_end)
    upstream_end.meet(client_end)
    return Relay(handler, (client_end, upstream_end), channels)


def make_link(handler: Handler, hop: HandedOverSocket, *, largest_frame: int = 0) -> Link:
    """Build a link; ``Pump.add`` takes it in. ``largest_frame`` as for ``make_relay``."""
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
    """Build the relay of a pooled session; ``relay.pooled`` is its end at a link, at none yet.

    ``frame_max`` is what is taken for the link's until it is attached to one. ``whole`` and ``limit`` are the
    pooled session's, both in bytes; the rest is as for ``make_relay``. Of what a client sends,
    ``2 * (whole + client.frame_max)``, a frame and one read are kept at most, and a copy while it is staged.
    """
    channels = Channels()
    up = Lane(Side.CLIENT, client.frame_max, frame_max, channels, flows)
    down = Lane(Side.UPSTREAM, max(frame_max, largest_frame), client.frame_max, channels)
    client_end = RelayEndpoint(client.sock, Side.CLIENT, up, client.heartbeat, client.rest)
    pooled = PooledEndpoint(down, whole=whole, limit=limit, largest_frame=largest_frame)
    client_end.meet(pooled)
    pooled.meet(client_end)
    return Relay(handler, (client_end, pooled), channels)
