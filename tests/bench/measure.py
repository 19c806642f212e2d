"""One case on one target, once: what happened, and what it cost."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

import attrs

from .accounting import Reading, cpu_ns, pss
from .cases import Case, Scale
from .samples import Latency, MeasureError, Memory, Sample
from .setups import measure_start, measure_storm
from .targets import Target
from .tools import Counts, Sink, Tool, ToolError, load, load_once


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
            match case.mode:
                case "idle":
                    return self._in_new_process(target, lambda used: self._idle(case, used, number))
                case "storm":
                    return self._in_new_process(
                        target,
                        lambda used: measure_storm(self.sink, self.load, self.scale, case, used, number),
                    )
                case "start":
                    return measure_start(case, target, number)
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
            before = Reading.take(target.pid, self.sink.pid, self.broker_pid)
            tool.say("go")
            result = tool.hear_json()
            after = Reading.take(target.pid, self.sink.pid, self.broker_pid)
            counts = self.sink.counts().since(sink_count)
            messages = int(str(result["messages"]))
            missing = _missing(target, own_count, messages) if case.mode == "publish" else None
            tool.finish()
        _check(case, counts, messages)
        _check_sessions(case, result)
        cost = after.since(before)
        seconds, load_cpu = float(str(result["seconds"])), int(str(result["cpu_ns"]))
        known = (cost.proxy + cost.sink + cost.broker + load_cpu) / 1e9
        whole = cost.seconds * (os.cpu_count() or 1)
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
            latency=Latency.of(result),
            tls=str(result.get("tls", "")),
            foreign=max(0.0, cost.machine_busy - known) / whole,
            stolen=cost.machine_stolen / whole,
            uncounted=missing,
        )

    def _in_new_process(self, target: Target, measure: Callable[[Target], Sample | None]) -> Sample | None:
        """What earlier cases left in the allocator would hide what a connection takes."""
        other = target.fresh()
        if other is not None:
            other.start()
        try:
            return measure(other or target)
        finally:
            if other is not None:
                other.stop()

    def _idle(self, case: Case, target: Target, number: int) -> Sample | None:
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
        if counts.byte_count != size * messages:
            raise MeasureError(f"{size * messages} bytes were sent, {counts.byte_count} arrived")


def _check_sessions(case: Case, result: Mapping[str, object]) -> None:
    """Every connection of a case over TLS went on with a session, or none did."""
    if case.mode != "churn" or case.way != "tls":
        return
    wanted = result["messages"] if "--resume" in case.options else 0
    if result["resumed"] != wanted:
        raise MeasureError(
            f"{result['resumed']} of {result['messages']} TLS handshakes went on with a session"
        )
