"""Where a proxy's time goes in one case: `perf record`, and py-spy for Python's stacks if it is there."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from pathlib import Path

import attrs

from .accounting import tree
from .cases import Case
from .measure import Bench
from .samples import MeasureError
from .targets import Target

#: Samples per second; a prime, so as not to beat with timers.
_FREQUENCY = 1999
_LINES = 45
_SECONDS = 5.0


def profile(bench: Bench, case: Case, target: Target, folder: Path) -> str:
    """The symbols that took most, as text; also written to ``folder``. Raises `MeasureError`."""
    if target.pid is None:
        raise MeasureError(f"{target.name} has no process to profile")
    if case.mode == "idle":
        raise MeasureError("profile a case with traffic")
    scale = attrs.evolve(bench.scale, seconds=_SECONDS, open_loop=_SECONDS, rabbitmq=_SECONDS)
    longer = attrs.evolve(bench, scale=scale)
    parts = []
    for tool in (_perf, _py_spy):
        text = tool(longer, case, target, folder)
        if text:
            parts.append(text)
    if not parts:
        raise MeasureError("neither perf (Debian: linux-perf) nor py-spy is installed")
    report = f"{case.name}, {target.name}\n\n" + "\n\n".join(parts) + "\n"
    (folder / f"profile-{case.name}-{target.name}.txt").write_text(report)
    return report


def _pids(target: Target) -> str:
    assert target.pid is not None
    return ",".join(map(str, tree(target.pid)))


def _run_beside(command: list[str], bench: Bench, case: Case, target: Target) -> str:
    watcher = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        time.sleep(0.5)
        sample = bench.run(case, target, 0)
    finally:
        if watcher.poll() is None:
            watcher.send_signal(signal.SIGINT)
        output, _ = watcher.communicate(timeout=60)
    if sample is None:
        raise MeasureError(f"{target.name} does not take part in {case.name}")
    cost = sample.cpu_per_message
    split = ""
    if sample.user_ns and sample.system_ns:
        split = f", {sample.user_ns / (sample.user_ns + sample.system_ns):.0%} of it in user mode"
    return f"{cost:,.0f} ns per message{split}; {sample.rate:,.0f} messages/s" if cost else output


def _perf(bench: Bench, case: Case, target: Target, folder: Path) -> str:
    perf = shutil.which("perf")
    if perf is None:
        return ""
    data = folder / f"profile-{case.name}-{target.name}.data"
    # cpu-clock works in virtual machines without performance counters, too.
    record = [perf, "record", "-q", "-e", "cpu-clock", "-F", str(_FREQUENCY), "-o", str(data)]
    record += ["-p", _pids(target)]
    head = _run_beside(record, bench, case, target)
    done = subprocess.run(
        [perf, "report", "-i", str(data), "--stdio", "--fields", "overhead,dso,symbol", "-w", "7,28,60"],
        capture_output=True,
        text=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.strip() and not line.startswith("#")]
    return "\n".join([f"perf: {head}", *lines[:_LINES]])


def _py_spy(bench: Bench, case: Case, target: Target, folder: Path) -> str:
    py_spy = shutil.which("py-spy")
    assert target.pid is not None
    if py_spy is None or "python" not in Path(f"/proc/{target.pid}/exe").resolve().name:
        return ""
    data = folder / f"profile-{case.name}-{target.name}.folded"
    record = [py_spy, "record", "--format", "raw", "--rate", "500", "--nonblocking", "-o", str(data)]
    head = _run_beside([*record, "--pid", str(target.pid)], bench, case, target)
    functions: dict[str, int] = {}
    for line in data.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        leaf = stack.rpartition(";")[2]
        functions[leaf] = functions.get(leaf, 0) + int(count)
    whole = sum(functions.values()) or 1
    top = sorted(functions.items(), key=lambda one: -one[1])[:25]
    return "\n".join([f"py-spy: {head}", *(f"{count / whole:7.2%}  {name}" for name, count in top)])
