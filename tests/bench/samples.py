"""What one run has shown."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


class MeasureError(Exception):
    """A run is not worth anything; the text says why."""


@attrs.frozen
class Latency:
    """Microseconds."""

    count: int
    p50: float
    p90: float
    p99: float
    p999: float
    max: float

    @classmethod
    def of(cls, result: Mapping[str, object]) -> Latency | None:
        """From what the load tool printed; None where nothing was to be waited for."""
        found = result["latency"]
        return cls(**found) if isinstance(found, dict) else None


@attrs.frozen
class Memory:
    """Proportional set size of the proxy in bytes, and what it had to hold at that time."""

    #: By number of connections, 0 among them.
    pss: dict[int, int]
    #: With the most connections, after each has published a message.
    pss_used: int
    #: CPU time per second, as a share of a core, with the most connections and nothing to do.
    idle_cpu: float


@attrs.frozen
class Storm:
    """What happened to a proxy when all clients came at once; before, they had come one after the other."""

    #: CPU time of the proxy in nanoseconds, while as many came one after the other; without those who stayed.
    one_by_one_ns: int
    #: What a few waited for who stayed: before all this, while others came one by one, and in the storm.
    quiet: Latency
    beside_one: Latency
    beside_all: Latency
    #: How often a client was refused or cut, and tried again.
    again: int
    #: Proportional set size in bytes: with nobody there but who stayed, with all, and after the storm.
    pss: tuple[int, int, int]


@attrs.frozen
class Sample:
    """One run."""

    case: str
    target: str
    round: int
    #: Or connections, of those that come and go; 1 of case start.
    messages: int = 0
    seconds: float = 0.0
    #: Of the proxy; None where there is none.
    cpu_ns: int | None = None
    #: The same from the clock tick, in its parts.
    user_ns: int | None = None
    system_ns: int | None = None
    load_cpu_ns: int = 0
    sink_cpu_ns: int = 0
    latency: Latency | None = None
    memory: Memory | None = None
    storm: Storm | None = None
    #: As agreed, or "".
    tls: str = ""
    #: Share of the machine's CPU time that others had, and that its host took from it.
    foreign: float = 0.0
    stolen: float = 0.0
    #: Messages that the proxy's own metrics miss (or have too many), where it has any.
    uncounted: int | None = None

    @property
    def cpu_per_message(self) -> float | None:
        """Nanoseconds of the proxy."""
        return None if self.cpu_ns is None or not self.messages else self.cpu_ns / self.messages

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds if self.seconds else 0.0
