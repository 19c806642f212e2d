"""One case on one target, once: what happened, and what it cost."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import attrs

from .accounting import Machine, cpu_ns, pss, split_ns
from .cases import Case, Scale
from .targets import Target
from .tools import Counts, Sink, Tool, ToolError, load, load_once


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
class Sample:
    """One run."""

    case: str
    target: str
    round: int
    #: Or connections, of case churn.
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


@attrs.define
class Bench:
    """What a run needs besides the target."""

    load: os.PathLike[str]
    sink: Sink
    scale: Scale
    ca: os.PathLike[str]
    #: Another process that is part of the scene and not of the disturbance: RabbitMQ.
    broker_pid: int | None = None

    def run(self, case: Case, target: Target, number: int) -> Sample | None:
        """Round ``number``; None if the target has no such way. Raises `MeasureError`."""
        try:
            if case.mode == "idle":
                return self._idle(case, target, number)
            return self._run(case, target, number)
        except ToolError as error:
            raise MeasureError(str(error)) from error

    def options(self, case: Case) -> list[str]:
        """The load tool's options for ``case``."""
        seconds, warmup = case.lasts(self.scale), self.scale.warmup
        options = [*case.options, "--seconds", str(seconds), "--warmup", str(warmup)]
        if case.way == "tls":
            options += ["--tls-ca", os.fspath(self.ca)]
        return options

    def _run(
        self, case: Case, target: Target, number: int, during: Callable[[Tool], None] | None = None
    ) -> Sample | None:
        address = target.address(case.way)
        if address is None:
            return None
        with load(self.load, case.mode, address, *self.options(case)) as tool:
            assert tool.hear() == "ready"
            own_count, sink_count = target.published(), self.sink.counts()
            before = _Reading.take(target.pid, self.sink.pid, self.broker_pid)
            tool.say("go")
            result = tool.hear_json()
            after = _Reading.take(target.pid, self.sink.pid, self.broker_pid)
            counts = self.sink.counts().since(sink_count)
            messages = int(str(result["messages"]))
            missing = _missing(target, own_count, messages) if case.mode == "publish" else None
            tool.finish()
        _check(case, counts, messages)
        cost = after.since(before)
        seconds, load_cpu = float(str(result["seconds"])), int(str(result["cpu_ns"]))
        known = (cost.proxy + cost.sink + cost.broker + load_cpu) / 1e9
        whole = cost.seconds * (os.cpu_count() or 1)
        latency = result["latency"]
        return Sample(
            case=case.name,
            target=target.name,
            round=number,
            messages=messages,
            seconds=seconds,
            cpu_ns=cost.proxy if target.pid is not None else None,
            user_ns=cost.user if target.pid is not None else None,
            system_ns=cost.system if target.pid is not None else None,
            load_cpu_ns=load_cpu,
            sink_cpu_ns=cost.sink,
            latency=Latency(**latency) if isinstance(latency, dict) else None,
            tls=str(result.get("tls", "")),
            foreign=max(0.0, cost.machine_busy - known) / whole,
            stolen=cost.machine_stolen / whole,
            uncounted=missing,
        )

    def _idle(self, case: Case, target: Target, number: int) -> Sample | None:
        # In a new process: what earlier cases left in the allocator would hide what a connection takes.
        other = target.fresh()
        if other is not None:
            other.start()
        elif target.pid is None:
            return None
        used = other or target
        try:
            return self._idle_in(case, used, number)
        finally:
            if other is not None:
                other.stop()

    def _idle_in(self, case: Case, target: Target, number: int) -> Sample | None:
        address, pid = target.address(case.way), target.pid
        if address is None or pid is None:
            return None
        # So that what is loaded or allocated once is not counted to the connections.
        load_once(os.fspath(self.load), "churn", address, "--seconds", "0.3", "--warmup", "0")
        most = self.scale.idle[-1]
        held = {}
        with load(os.fspath(self.load), "idle", address, "--connections", str(most)) as tool:
            assert tool.hear() == "ready"
            held[0] = self._settled_pss(pid)
            cpu, seconds = cpu_ns(pid), 0.0
            for count in self.scale.idle:
                tool.say(f"open {count}")
                seconds += float(str(tool.hear_json()["seconds"]))
                self._await_connections(count)
                held[count] = self._settled_pss(pid)
            cpu = cpu_ns(pid) - cpu
            idle, start = cpu_ns(pid), time.monotonic()
            time.sleep(self.scale.watch)
            share = (cpu_ns(pid) - idle) / 1e9 / (time.monotonic() - start)
            tool.say("publish")
            tool.hear_json()
            used = self._settled_pss(pid)
            tool.finish()
        return Sample(
            case=case.name,
            target=target.name,
            round=number,
            messages=most,
            seconds=seconds,
            cpu_ns=cpu,
            memory=Memory(held, used, share),
        )

    def _settled_pss(self, pid: int) -> int:
        """The memory once the process has done what it does after an event."""
        time.sleep(self.scale.settle)
        return pss(pid)

    def _await_connections(self, count: int) -> None:
        found = self.sink.counts().connections
        if found < count:
            raise MeasureError(f"{count} connections, but the sink has {found}")


@attrs.frozen
class _Reading:
    """The clocks at one moment."""

    seconds: float
    proxy: int
    user: int
    system: int
    sink: int
    broker: int
    machine_busy: float
    machine_stolen: float

    @classmethod
    def take(cls, proxy: int | None, sink: int, broker: int | None) -> _Reading:
        machine = Machine.read()
        user, system = split_ns(proxy) if proxy is not None else (0, 0)
        return cls(
            time.monotonic(),
            cpu_ns(proxy) if proxy is not None else 0,
            user,
            system,
            cpu_ns(sink),
            cpu_ns(broker) if broker is not None else 0,
            machine.busy,
            machine.stolen,
        )

    def since(self, before: _Reading) -> _Reading:
        mine, theirs = attrs.astuple(self), attrs.astuple(before)
        return _Reading(*(now - then for now, then in zip(mine, theirs, strict=True)))


def _missing(target: Target, before: int | None, messages: int) -> int | None:
    """Messages that passed by the target's own metrics."""
    if before is None:
        return None
    for _ in range(20):
        count = target.published()
        assert count is not None
        missing = messages - (count - before)
        if not missing:
            break
        time.sleep(0.1)
    return missing


def _check(case: Case, counts: Counts, messages: int) -> None:
    """Every message that was sent has arrived, once, and whole."""
    if counts.errors:
        raise MeasureError(f"the sink was sent nonsense: {counts.last_error}")
    if case.way == "rabbitmq":
        return
    arrived = counts.delivered if case.mode == "deliver" else counts.published
    if arrived != messages:
        raise MeasureError(f"{messages} messages were sent, {arrived} arrived")
    if case.mode != "deliver":
        size = int(case.options[case.options.index("--size") + 1])
        if counts.octets != size * messages:
            raise MeasureError(f"{size * messages} bytes were sent, {counts.octets} arrived")
