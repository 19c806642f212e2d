"""What a client is offered before it is known which broker it is for: what all that it may be for offer.

Decisions only. What is not known of a broker is not promised: no capabilities, and the two mechanisms that
every broker of AMQP 0-9-1 has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from amqpgate.config import USUAL_FRAME_MAX, Listener, Upstream
from amqpgate.gateway.transport.conversation import OWN_PROPERTIES
from amqpgate.gateway.upstream.cluster import Cluster
from amqpgate.protocol.frames import FRAME_MIN_SIZE
from amqpgate.protocol.handshake import Tune, negotiate
from amqpgate.protocol.sasl import AMQPLAIN, EXTERNAL, PLAIN, REPEATABLE, with_both_plain
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

#: RabbitMQ's own, offered where nothing is configured and nothing has been learnt.
_USUAL = Tune(frame_max=USUAL_FRAME_MAX, channel_max=2047, heartbeat=60)

#: Entries that name one broker among several.
_PERSONAL = ("cluster_name",)


#: Starts that are kept: brokers and settings choose them.
_MOST: Final = 64
#: By the ids of all that one is made of, which are their own while that is kept.
_MADE: Final[dict[tuple[int, ...], tuple[tuple[object, ...], amqp.ConnectionStart]]] = {}


def start_for(clusters: Sequence[Cluster], listener: Listener) -> amqp.ConnectionStart:
    """The start that goes for all of these clusters: the same object until one of them says another.

    What is derived from it is asked for by its identity.
    """
    parts = (listener, *(part for cluster in clusters for part in (cluster.settings, cluster.start)))
    ids = tuple([id(part) for part in parts])
    known = _MADE.get(ids)
    if known is None:
        if len(_MADE) >= _MOST:
            _MADE.clear()
        known = _MADE[ids] = parts, _start_for(clusters, listener)
    return known[1]


def _start_for(clusters: Sequence[Cluster], listener: Listener) -> amqp.ConnectionStart:
    known = [cluster.start for cluster in clusters if cluster.start is not None]
    usual = f"{PLAIN} {AMQPLAIN}".encode()
    unknown = amqp.ConnectionStart(0, 9, OWN_PROPERTIES, usual, b"en_US")
    starts = [cluster.start or unknown for cluster in clusters]
    first = known[0] if known else starts[0]
    common = set.intersection(*[set(with_both_plain(start.mechanisms.split())) for start in starts])
    takes_external = all(_takes_external(cluster.settings, listener) for cluster in clusters)
    offered = [
        name
        for name in with_both_plain(first.mechanisms.split())
        if name in common and name.decode(errors="replace") in REPEATABLE
        if takes_external or name != EXTERNAL.encode()
    ]
    tables = [_capabilities(start) for start in starts]
    shared = {name: True for name in tables[0] if all(table.get(name) is True for table in tables)}
    personal = _PERSONAL if len(clusters) > 1 else ()
    properties = Table(tuple([entry for entry in first.server_properties if entry[0] not in personal]))
    return attrs.evolve(
        first,
        mechanisms=b" ".join(offered) or PLAIN.encode(),
        server_properties=properties.with_("capabilities", shared),
    )


def _takes_external(upstream: Upstream, listener: Listener) -> bool:
    """Whether it is known whom EXTERNAL means there."""
    if upstream.tls is not None and upstream.tls.cert is not None:
        # The broker sees the gateway's certificate, and in it who logs in.
        return listener.proves_clients
    # The gateway has checked the client's certificate; the broker sees another login, and nothing of it.
    return upstream.has_login and listener.tls is not None and listener.tls.require_client_cert


def tune_for(clusters: Sequence[Cluster], listener: Listener) -> Tune:
    """The limits to offer: the listener's own, or what the brokers offered last."""
    learnt = [cluster.tune for cluster in clusters if cluster.tune is not None]
    frame_max, channel_max, heartbeat = _USUAL.frame_max, _USUAL.channel_max, _USUAL.heartbeat
    if learnt:
        frame_max = min(tune.frame_max or USUAL_FRAME_MAX for tune in learnt)
        channel_max = min(tune.channel_max or _USUAL.channel_max for tune in learnt)
        heartbeat = learnt[0].heartbeat
    for cluster in clusters:
        channel_max = negotiate(channel_max, cluster.settings.channel_max or 0)
    return Tune(
        frame_max=listener.frame_max or max(FRAME_MIN_SIZE, min(frame_max, USUAL_FRAME_MAX)),
        channel_max=negotiate(channel_max, listener.channel_max or 0),
        heartbeat=heartbeat if listener.heartbeat is None else listener.heartbeat,
    )


def _capabilities(start: amqp.ConnectionStart) -> dict[str, object]:
    found = start.server_properties.field("capabilities")
    return dict(found.value.to_python()) if found is not None and isinstance(found.value, Table) else {}
