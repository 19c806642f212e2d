"""Where a new connection goes: the clusters there are, and which of them a session is for."""

from __future__ import annotations

import attrs

from amqpgate.config import Listener, Settings
from amqpgate.gateway.clusters import Cluster
from amqpgate.gateway.dialling import Dialler
from amqpgate.gateway.tls import TlsContexts
from amqpgate.telemetry.upstreams import UpstreamMetrics


@attrs.define(eq=False)
class Routing:
    """One per gateway."""

    settings: Settings
    contexts: TlsContexts
    metrics: UpstreamMetrics
    clusters: dict[str, Cluster] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.clusters = {upstream.name: Cluster(upstream) for upstream in self.settings.upstreams}
        for cluster in self.clusters.values():
            for endpoint in cluster.endpoints:
                self.metrics.checked(cluster.name, str(endpoint.address), endpoint.up)

    def default(self, listener: Listener) -> Cluster:
        """Where a listener's connections go that no route is for."""
        return self.clusters[self.settings.upstream_of(listener).name]

    def dialler(self, cluster: Cluster, session: str) -> Dialler:
        """The attempts of one session."""
        return Dialler(
            cluster, cluster.settings, self.contexts, self.settings.largest_frame, session, self.metrics
        )
