"""Who looks for a fault in a copy of the gateway: conformance, the simulator, and chaos.

Conformance plays its cases through a gateway that is made of the copy, and compares the verdicts with those
of a copy without a fault. A case that does not come out the same each time there tells nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.mutations.faults import ROOT, Mutation
from tests.support.gateway import PATIENCE, Gateway
from tests.support.ports import free_port, refuses
from tests.support.processes import Child

#: By the upstream's settings, version and id the verdict of a case.
Verdicts = Mapping[tuple[str, str, str], str]

_CONFIG: Final = """
listeners: [{name: main, bind: "127.0.0.1:{port}"}]
upstreams: [{name: broker, host: 127.0.0.1, port: %d, %s}]
admin: {bind: "127.0.0.1:{admin_port}"}
limits: {drainTimeout: 2s}
"""

#: What conformance plays, by the version that brokers speak: settings of the upstream, and its words. The
#: probe is the broker itself.
_VERSIONS: Final = ("--versions", "0-9-1,0-9,0-10")
_PLAYS: Final[Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]]] = {
    "0-9-1": (
        ("connections: own", _VERSIONS),
        ("connections: pooled", _VERSIONS),
        ("connections: own", ("--upstream-probe",)),
    ),
    "0-10": (('version: "0-10"', ("--versions", "0-9-1,0-9")),),
}

#: By the clock a second of CPU takes this long at most.
_BUSY: Final = 60

#: Times that a copy without a fault is played, to see which cases are steady.
_STEADY: Final = 3


@contextmanager
def copy_of(mutation: Mutation | None) -> Iterator[Path]:
    """A tree with that fault. It has no compiled modules: faults are put into the plain engine, too."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        tree = Path(name)
        for room in ("src", "tests", "spec", "policies"):
            shutil.copytree(
                ROOT / room, tree / room, ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.c")
            )
        # Where brokers are.
        (tree / ".tools").symlink_to(ROOT / ".tools")
        if mutation is not None:
            path = tree / mutation.path
            path.write_text(mutation.apply(path.read_text()))
        yield tree


def simulated(tree: Path, seed: str, seconds: float, brokers: str, each: float | None = None) -> str | None:
    """What the simulator says of it; None: nothing. Raises ``RuntimeError`` where it does not run.

    ``seconds`` are of CPU: how busy the machine is changes nothing. ``each`` is how long a story is, in
    virtual seconds; it says so itself unless given.
    """
    words = ("--seed", seed, "--cpu", str(seconds), "--seconds", str(_BUSY * seconds))
    words += ("--failures", "1", "--shrinking", "0")
    words += ("--brokers", brokers)
    if each is not None:
        words += ("--each", str(each))
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *words],
        cwd=tree,
        env=_env(tree),
        capture_output=True,
        text=True,
        timeout=2 * _BUSY * seconds,
    )
    for line in done.stdout.splitlines():
        if line.startswith("FAILED"):
            return line.removeprefix("FAILED ")
    if done.returncode:
        raise RuntimeError(f"the simulator did not run\n{done.stdout}{done.stderr}")
    return None


def beset(tree: Path, setup: str, seconds: float) -> str | None:
    """What chaos says of it with this set-up; None: nothing. ``RuntimeError`` where it does not run."""
    out = tree / "chaos"
    words = ("--setups", setup, "--minutes", str(seconds / 60), "--seed", "7", "--out", str(out))
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", *words],
        cwd=tree,
        env=_env(tree),
        capture_output=True,
        text=True,
        timeout=seconds + 900,
    )
    if not done.returncode:
        return None
    lines = done.stdout.splitlines()
    said = next((line.strip() for line in lines if "NOT GOOD" in line), "")
    if not said or "did not play" in done.stdout:
        raise RuntimeError(f"chaos did not run\n{done.stdout}{done.stderr}")
    return said


def steady(brokers: str) -> Verdicts:
    """What conformance says of a copy without a fault, as far as that is always the same."""
    with copy_of(None) as tree:
        verdicts = dict(_verdicts(tree, brokers))
        for _ in range(_STEADY - 1):
            again = _verdicts(tree, brokers)
            verdicts = {case: said for case, said in verdicts.items() if again.get(case) == said}
    return verdicts


def judged(tree: Path, expected: Verdicts, brokers: str) -> str | None:
    """What conformance says otherwise of this copy; None: nothing."""
    found = _verdicts(tree, brokers)
    # What obeys now, and did not, does so by chance: no fault has mended it.
    others = [case for case, said in expected.items() if found.get(case) not in (said, "obeys")]
    if not others:
        return None
    upstream, version, case = others[0]
    return f"{len(others)} cases, first {version} {case} ({upstream}): {found.get(others[0], 'no end')}"


def _verdicts(tree: Path, brokers: str) -> Verdicts:
    found: dict[tuple[str, str, str], str] = {}
    for upstream, words in _PLAYS[brokers]:
        with _behind(words) as (port, more):
            gateway = Gateway(config=_CONFIG % (port, upstream), env=_env(tree))
            gateway.start()
            try:
                for one in _played(gateway.address, *words, *more):
                    found[upstream, one["version"], one["id"]] = one["verdict"]
            finally:
                gateway.kill()
    return found


@contextmanager
def _behind(words: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """What the gateway's upstream is: its port, and what conformance is told of that."""
    port = free_port()
    if words[0] == "--upstream-probe":
        yield port, (f"127.0.0.1:{port}",)
        return
    command = [sys.executable, "-m", "amqpgate", "broker", "--listen", f"127.0.0.1:{port}"]
    with tempfile.TemporaryDirectory() as folder:
        # The broker has no fault.
        broker = Child([*command, "--versions", "0-9-1,0-10"], log=Path(folder, "broker.log"))
        try:
            broker.wait_until(lambda: not refuses(port), timeout=PATIENCE, what="the broker")
            yield port, ()
        finally:
            broker.stop()


def _played(address: str, *words: str) -> list[dict[str, str]]:
    """The rows of one report; none where it does not come to its end."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "amqpgate", "conformance", address, "--json", str(report), *words]
        try:
            subprocess.run(command, capture_output=True, timeout=400, cwd=ROOT)
        except subprocess.TimeoutExpired:
            return []
        if not report.exists():
            return []
        rows: list[dict[str, str]] = json.loads(report.read_text())["results"]
        return rows


def _env(tree: Path) -> dict[str, str]:
    return dict(os.environ) | {"PYTHONPATH": str(tree / "src")}
