"""What a process and its children cost: CPU time and memory, as the kernel counts them."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

import attrs

_TICKS = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """``pid`` and all its living descendants."""
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        found.append(one)
        for task in Path(f"/proc/{one}/task").glob("*"):
            todo += map(int, (task / "children").read_text().split())
    return found


def cpu_ns(pid: int) -> int:
    """CPU time of ``pid`` and its living descendants, in nanoseconds.

    The clock is POSIX's process clock (``clock_getcpuclockid``), which adds up the scheduler's own exact
    figures of all threads, ended ones too: the numbers of /proc/PID/schedstat, but for whole processes.
    The kernel's work for a process is in it: system calls, and the delivery over loopback of what it sends.
    """
    return sum(time.clock_gettime_ns(~one << 3 | 2) for one in tree(pid))


def split_ns(pid: int) -> tuple[int, int]:
    """User and system time of the same, in nanoseconds; only as exact as the clock tick."""
    user = system = 0
    for one in tree(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        user += int(fields[11])
        system += int(fields[12])
    return user * 10**9 // _TICKS, system * 10**9 // _TICKS


def pss(pid: int) -> int:
    """Proportional set size in bytes: resident memory, a shared page divided among those who share it."""
    total = 0
    for one in tree(pid):
        for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


@attrs.frozen
class Machine:
    """CPU time of the whole machine since it started, in seconds: spent, and taken by its host."""

    busy: float
    stolen: float

    @classmethod
    def read(cls) -> Machine:
        fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        user, nice, system, _idle, _waiting, interrupts, soft, stolen = fields
        return cls((user + nice + system + interrupts + soft) / _TICKS, stolen / _TICKS)


@attrs.frozen
class Reading:
    """The clocks at one moment: of proxy, sink and broker, in nanoseconds, and of the machine, in seconds."""

    seconds: float
    proxy: int
    user: int
    system: int
    sink: int
    broker: int
    machine_busy: float
    machine_stolen: float

    @classmethod
    def take(cls, proxy: int | None, sink: int, broker: int | None) -> Reading:
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

    def since(self, before: Reading) -> Reading:
        mine, theirs = attrs.astuple(self), attrs.astuple(before)
        return Reading(*(now - then for now, then in zip(mine, theirs, strict=True)))


def describe_machine() -> dict[str, object]:
    """What a reader needs to know about this machine."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "congestion_control": Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip(),
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
    }
