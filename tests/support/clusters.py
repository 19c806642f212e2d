"""Clusters from a line of settings."""

from __future__ import annotations

from amqpgate.config import parse
from amqpgate.gateway.upstream.cluster import Cluster


def cluster(keys: str = "", *, endpoints: str = "h:1 h:2 h:3") -> Cluster:
    """A cluster with these keys; each endpoint is host:port, or host:port*weight."""
    places = []
    for text in endpoints.split():
        address, _, weight = text.partition("*")
        places.append(f"{{address: '{address}', weight: {weight or 1}}}")
    text = (
        "listeners: [{name: main, bind: '127.0.0.1:0'}]\n"
        f"upstreams: [{{name: c, endpoints: [{', '.join(places)}]{', ' + keys if keys else ''}}}]\n"
    )
    return Cluster(parse(text, {}).upstreams[0])
