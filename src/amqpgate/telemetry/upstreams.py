"""Metrics of upstreams and routes. All labels come from the settings and the policies: they are bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from amqpgate.telemetry.tallies import Tallies

#: Of a dial.
OUTCOMES: Final = ("connected", "failed", "broken")


M = TypeVar("M")


class Labelled(dict[tuple[str, ...], M]):
    """What a metric counts, by its labels. To look that up takes prometheus_client as long as to count."""

    def __init__(self, look_up: Callable[..., M]) -> None:  # type: ignore[explicit-any]
        self._look_up = look_up

    def __missing__(self, labels: tuple[str, ...]) -> M:
        found = self[labels] = self._look_up(*labels)
        return found


class UpstreamMetrics:
    """Registered beside the gateway's other metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        place = ["upstream", "endpoint"]
        #: By upstream, endpoint and one of `OUTCOMES`: connected, failed, or (after it was connected, before
        #: it was open) broken.
        self.dials = Tallies(
            registry,
            "amqpgate_upstream_dials",
            "New connections to an endpoint, up to the broker's start.",
            [*place, "outcome"],
        ).counts
        #: By upstream, in seconds.
        self.dial_seconds = Labelled(
            Histogram(
                "amqpgate_upstream_dial_seconds",
                "From the first packet to the broker's start, of the new connections that got one.",
                ["upstream"],
                buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
                registry=registry,
            ).labels
        )
        self._ejections = Counter(
            "amqpgate_upstream_ejections_total",
            "Times that an endpoint was left out since connections failed there.",
            place,
            registry=registry,
        )
        self._unaffordable = Counter(
            "amqpgate_upstream_retries_refused_total",
            "Second attempts that the retry budget did not allow.",
            ["upstream"],
            registry=registry,
        )
        self._up = Gauge(
            "amqpgate_upstream_up",
            "Processes whose health checks say that the endpoint is up; all, where there are no checks.",
            place,
            registry=registry,
        )
        self._choices = Counter(
            "amqpgate_route_choices_total",
            "Connections for which a route was chosen, or (mode shadow) would have been.",
            ["policy", "route", "upstream", "mode"],
            registry=registry,
        )
        self._paused = Counter(
            "amqpgate_route_pauses_total",
            "Connections that came while their route was paused, by what became of them.",
            ["route", "outcome"],
            registry=registry,
        )

    def knows(self, upstream: str, endpoint: str) -> None:
        """An endpoint of the settings: a counter that begins at its first increment hides that from rates."""
        for outcome in OUTCOMES:
            self.dials.setdefault((upstream, endpoint, outcome), 0)
        self._ejections.labels(upstream, endpoint)
        self._unaffordable.labels(upstream)
        _ = self.dial_seconds[(upstream,)]
        self._up.labels(upstream, endpoint).set(1)

    def ejected(self, upstream: str, endpoint: str) -> None:
        self._ejections.labels(upstream, endpoint).inc()

    def unaffordable(self, upstream: str) -> None:
        self._unaffordable.labels(upstream).inc()

    def checked(self, upstream: str, endpoint: str, up: bool) -> None:
        """What is believed of an endpoint now."""
        self._up.labels(upstream, endpoint).set(up)

    def chosen(self, policy: str, route: str, upstream: str, mode: str) -> None:
        self._choices.labels(policy, route, upstream, mode).inc()

    def waited(self, route: str, outcome: str) -> None:
        """``outcome``: resumed, timeout or full."""
        self._paused.labels(route, outcome).inc()
