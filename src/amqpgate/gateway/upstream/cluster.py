"""Which endpoint of a cluster a new connection tries, and which are left out for a while.

Decisions only: nothing here dials, and time is an argument (seconds of a clock that never goes back).

- An endpoint is *down* while its health checks say so, and *ejected* for a while after new connections have
  failed there several times in a row. Those come last, and only while attempts are left: where all are
  believed down, the belief may be wrong.
- An ejected endpoint returns on probation: one more failure ejects it again, for twice as long. One that
  health checks see go down and come up again returns at once.
- A second attempt is paid out of a budget, which each connection fills a little. Where it is empty, the
  first failure is the client's to see; so a cluster that fails does not get three times the connections.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Final

import attrs
import trio

from amqpgate.bridge import AnyVersion, Interpreter
from amqpgate.config import Address, HealthCheck, Outliers, Upstream
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.gateway.transport.waiting import in_trio
from amqpgate.policy import Choice, by_weight
from amqpgate.telemetry.upstreams import UpstreamMetrics
from amqpgate.values import define, frozen
from amqpgate.wire.generated import v0_9_1 as amqp

#: Seconds for which what a broker says in its start is taken to be what it would say now.
FRESH: Final = 60.0

#: Seconds for which a cluster that could not be asked what it offers is not asked again.
PATIENCE: Final = 5.0


@define(eq=False)
class Inquiry:
    """A question that many may have at once: one asks, and the others wait for the answer."""

    _under_way: trio.Event | None = attrs.field(default=None, init=False)

    async def wait(self) -> bool:
        """Whether somebody was asking, and has an answer now, or none."""
        if self._under_way is None:
            return False
        await in_trio(self._under_way.wait)
        return True

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Others wait meanwhile."""
        asking = self._under_way = trio.Event() if self._under_way is None else self._under_way
        try:
            yield
        finally:
            asking.set()
            if self._under_way is asking:
                self._under_way = None


@frozen
class Meeting:
    """What a broker's start means, which says the same to all clients."""

    said: amqp.ConnectionStart
    asked: AnyVersion
    is_set: bool
    interpreter: Interpreter
    #: In the canonical model.
    start: amqp.ConnectionStart

    def is_again(self, said: amqp.ConnectionStart, asked: AnyVersion, *, is_set: bool) -> bool:
        """Whether it has been met just so."""
        is_same = self.said is said or self.said == said
        return is_same and self.asked is asked and self.is_set is is_set


@define(eq=False)
class Starts:
    """The starts that one broker has said last."""

    #: In the canonical model by the version that the settings have for it, and when they were heard.
    _by_version: dict[str, tuple[amqp.ConnectionStart, float]] = attrs.field(factory=dict, init=False)
    #: The last one as it came; None: it is of no use for the next one.
    met: Meeting | None = attrs.field(default=None, init=False)

    def known(self, version: str, now: float) -> amqp.ConnectionStart | None:
        """What it says to that version, unless that may have changed since."""
        start, heard = self._by_version.get(version, (None, -math.inf))
        return start if now - heard < FRESH else None

    def heard(self, version: str, start: amqp.ConnectionStart, now: float) -> None:
        """It has said this."""
        self._by_version[version] = start, now

    def meet(self, meeting: Meeting) -> None:
        """It has said what it is. Interpreters of other versions remember what their peers said."""
        self.met = meeting if meeting.interpreter.is_native else None

    def forget(self, version: str) -> None:
        """It may say something else to that version."""
        self._by_version.pop(version, None)

    def clear(self) -> None:
        """It may be another one by now."""
        self._by_version.clear()
        self.met = None


@define(eq=False)
class EndpointHealth:
    """One broker, and what is believed of it."""

    address: Address
    weight: int
    #: What the health checks say.
    up: bool = True
    #: Checks in a row that contradict ``up``.
    doubts: int = 0
    #: New connections that failed in a row.
    failures: int = 0
    ejected_until: float = 0.0
    #: The length of its last ejection.
    sentence: float = 0.0
    #: The version of AMQP that it was found to speak, such as "0-9-1"; None: it is to be asked.
    version: str | None = None
    #: What it was then: product and release, as in its start.
    software: tuple[object, ...] = ()
    #: What it said last when it was dialled.
    starts: Starts = attrs.field(factory=Starts, init=False)
    #: For its start.
    inquiry: Inquiry = attrs.field(factory=Inquiry, init=False)
    #: ``host:port``, in logs and metrics.
    name: str = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.name = str(self.address)

    def unheard(self, version: str) -> None:
        """It has not answered: next time it is asked what it speaks."""
        self.version = None
        self.starts.forget(version)

    def succeeded(self) -> None:
        """A new connection got its answer there; a refusal is an answer."""
        self.failures = 0

    def failed(self) -> int:
        """A new connection failed there; how many have in a row."""
        self.failures += 1
        return self.failures

    def eject(self, now: float, outliers: Outliers) -> None:
        """Leave it out for a while; longer than the last time where that is not long ago."""
        fresh = now - self.ejected_until > outliers.max_ejection or not self.sentence
        self.sentence = min(
            float(outliers.max_ejection), float(outliers.base_ejection) if fresh else 2 * self.sentence
        )
        self.ejected_until = now + self.sentence
        self.failures = outliers.failures - 1

    def checked(self, well: bool, health: HealthCheck | None) -> bool:
        """A health check has ended. Whether it has gone down, or come up, by that."""
        if health is None or well == self.up:
            self.doubts = 0
            return False
        self.doubts += 1
        if self.doubts < (health.successes if well else health.failures):
            return False
        self.up, self.doubts = well, 0
        if well:
            # What it was ejected for is over.
            self.ejected_until, self.failures = 0.0, 0
        return True

    def answered(self, version: str, start: amqp.ConnectionStart) -> None:
        """It speaks that version. Where it is no more what it was, it is asked anew next time."""
        software = tuple([start.server_properties.get(name) for name in ("product", "version")])
        is_changed = self.version is not None and software != self.software
        self.version, self.software = (None if is_changed else version), software

    def is_ejected(self, now: float) -> bool:
        return now < self.ejected_until

    def is_available(self, now: float) -> bool:
        """Whether it is believed to take connections."""
        return self.up and not self.is_ejected(now)


@define(eq=False)
class Cluster:
    """One upstream of the settings, for as long as the process lives."""

    settings: Upstream
    endpoints: list[EndpointHealth] = attrs.field(init=False)
    #: Second attempts that may be made.
    budget: float = attrs.field(init=False)
    #: What one of its brokers said last; None until one has.
    start: amqp.ConnectionStart | None = attrs.field(default=None, init=False)
    tune: amqp.ConnectionTune | None = attrs.field(default=None, init=False)
    #: When it was asked in vain what it offers.
    asked: float = attrs.field(default=-math.inf, init=False)
    #: For that.
    inquiry: Inquiry = attrs.field(factory=Inquiry, init=False)

    def __attrs_post_init__(self) -> None:
        self.endpoints = [EndpointHealth(place.address, place.weight) for place in self.settings.places]
        self.budget = float(self.settings.retries.burst)

    @property
    def name(self) -> str:
        return self.settings.name

    def order(self, session: str, now: float) -> list[EndpointHealth]:
        """The endpoints in the order in which a new session tries them; pays into the budget."""
        retries = self.settings.retries
        self.budget = min(float(retries.burst), self.budget + retries.ratio / 100)
        return self.ordered(session, now)[: retries.attempts]

    def ordered(self, session: str, now: float) -> list[EndpointHealth]:
        """All endpoints in that order; pays nothing."""
        ordered = self.endpoints
        if len(ordered) == 1:
            return ordered.copy()
        if self.settings.order == "weighted":
            ordered = by_weight(ordered, f"{self.name}\0{session}", _name_of, _weight_of)
        # Sorting is stable: within each half the order stays.
        return sorted(ordered, key=lambda endpoint: not endpoint.is_available(now))

    def may_retry(self) -> bool:
        """Whether one more attempt is within the budget; if so, it is paid for."""
        if self.budget < 1:
            return False
        self.budget -= 1
        return True

    def heard(self, start: amqp.ConnectionStart) -> None:
        """One of its brokers has said this start."""
        self.start = start

    def offered(self, tune: amqp.ConnectionTune) -> None:
        """One of its brokers has proposed this tune."""
        self.tune = tune

    def is_to_be_asked(self, now: float) -> bool:
        """Whether it is not known what it offers, and it was not asked in vain just now."""
        return self.start is None and now - self.asked >= PATIENCE

    def asked_in_vain(self, now: float) -> None:
        """None of its brokers has said what it offers."""
        self.asked = now

    def failed(self, endpoint: EndpointHealth, now: float) -> bool:
        """A new connection failed there. Whether that ejected the endpoint."""
        outliers = self.settings.outliers
        endpoint.starts.clear()
        if endpoint.is_ejected(now) or endpoint.failed() < outliers.failures:
            return False
        ejected = sum(other.is_ejected(now) for other in self.endpoints)
        if (ejected + 1) * 100 > outliers.max_ejected * len(self.endpoints):
            return False
        endpoint.eject(now, outliers)
        return True

    def lost(self) -> None:
        """A session's broker is gone: what is there next may be another one, with another start."""
        for endpoint in self.endpoints:
            endpoint.starts.clear()

    def checked(self, endpoint: EndpointHealth, well: bool) -> bool:
        """A health check has ended. Whether the endpoint has gone down, or come up, by that."""
        return endpoint.checked(well, self.settings.health)


@frozen(eq=False)
class Destination:
    """A cluster, as all who come by the same listener or route get there."""

    cluster: Cluster
    #: Those of the cluster, with what a route changes.
    settings: Upstream
    contexts: TlsContexts
    frame_max: int
    metrics: UpstreamMetrics
    #: The route that leads there; None: the listener's own upstream.
    choice: Choice | None = None

    def answered(
        self, endpoint: EndpointHealth, greeting: amqp.ConnectionStart | amqp.ConnectionClose, seconds: float
    ) -> None:
        """A broker has said its first word, so long after it was dialled."""
        name = self.settings.name
        self.metrics.dial_seconds[(name,)].observe(seconds)
        self.metrics.dials[name, endpoint.name, "connected"] += 1
        if isinstance(greeting, amqp.ConnectionStart):
            self.cluster.heard(greeting)


def _name_of(endpoint: EndpointHealth) -> str:
    return endpoint.name


def _weight_of(endpoint: EndpointHealth) -> int:
    return endpoint.weight
