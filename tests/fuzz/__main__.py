"""Fuzz all targets side by side, ten minutes by default: ``python -m tests.fuzz [--seconds 600] ...``

Exit code 1 if anything was found; it lies in ``tests/fuzz/crashes`` then, where the regressions replay it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.fuzz import store
from tests.fuzz.driver import Slot
from tests.fuzz.keeping import keep

ROOT = Path(__file__).parents[2]
#: Seconds for one input, beyond which it counts as one that hangs.
PATIENCE = 40.0
#: Seconds beyond its time that a target may take to load.
LOADING = 300.0
#: Seconds between two lines of progress.
EVERY = 10.0


class Run:
    """One target's process, started again where it dies."""

    def __init__(self, name: str, build: Path, seconds: float) -> None:
        self.name = name
        self.work = build / name
        self.work.mkdir(parents=True, exist_ok=True)
        self.seconds = seconds
        self.began = self._moved = time.monotonic()
        (self.work / "slot").unlink(missing_ok=True)
        self.slot = Slot(self.work / "slot")
        self._last = -1
        self._start()

    def _start(self) -> None:
        left = max(1.0, self.seconds - (time.monotonic() - self.began))
        command = [sys.executable, "-m", "tests.fuzz.driver", self.name, str(self.work), str(left)]
        self._before = self.slot.counts[0]
        with (self.work / "log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

    def is_over(self) -> bool:
        """Whether it is done. An input that it died of, or hangs at, is kept as a crash."""
        now = time.monotonic()
        code = self._process.poll()
        if code is None:
            done = self.slot.counts[0]
            if done != self._last:
                self._last, self._moved = done, now
            # The first one comes when all is loaded, which takes as long as it takes.
            is_loading = done == self._before and now - self.began < self.seconds + LOADING
            if is_loading or now - self._moved < PATIENCE:
                return False
            self._process.kill()
            self._process.wait()
            self._crash("hang")
        elif code:
            self._crash(f"died-{code}")
        if now - self.began >= self.seconds:
            return True
        if code is None or code:
            self._moved = now
            self._start()
            return False
        return True

    def _crash(self, what: str) -> None:
        self.slot.found()
        data = self.slot.data
        store.put(store.CRASHES / self.name.partition("@")[0], data, f"{what}-{store.name_of(data)}")

    def stop(self) -> None:
        """End it now."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def main() -> int:
    """Run them; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="wall time of all targets together")
    parser.add_argument("--targets", default=",".join(store.runs()), help="some of them, by commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="targets at once")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "fuzz", help="folder for what grows")
    parser.add_argument("--keep", action="store_true", help="only choose what of the grown corpus is kept")
    options = parser.parse_args()
    names = options.targets.split(",")
    unknown = set(names) - set(store.runs())
    if unknown:
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(store.runs())}")
    if options.keep:
        for name in dict.fromkeys(name.partition("@")[0] for name in names):
            print(keep(name, options.build / name), flush=True)
        return 0
    return fuzz(names, options.seconds * options.jobs / len(names), options.jobs, options.build)


def fuzz(names: list[str], seconds: float, jobs: int, build: Path) -> int:
    """So many seconds for each target; 1 if there is something to mend."""
    before = {name: set(listing(name)) for name in store.names()}
    waiting, running, over = list(names), [], []  # type: ignore[var-annotated]
    told = 0.0
    print(f"{len(names)} targets, {seconds:.0f} s each, {jobs} at a time", flush=True)
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(Run(waiting.pop(0), build, seconds))
            time.sleep(0.2)
            for run in [run for run in running if run.is_over()]:
                running.remove(run)
                over.append(run)
                print(line(run), "done", flush=True)
            if time.monotonic() - told > EVERY:
                told = time.monotonic()
                for run in running:
                    print(line(run), flush=True)
    finally:
        for run in running:
            run.stop()
    remember(over, build)
    new = {name: sorted(set(listing(name)) - before[name]) for name in before}
    for name, files in new.items():
        for file in files:
            print(f"FOUND {store.CRASHES.relative_to(ROOT) / name / file}", flush=True)
    return int(any(new.values()))


def listing(name: str) -> list[str]:
    """The crashes of a target that are kept."""
    folder = store.CRASHES / name
    return [path.name for path in folder.iterdir()] if folder.is_dir() else []


def line(run: Run) -> str:
    """How far it is."""
    done, found = run.slot.counts
    passed = time.monotonic() - run.began
    grown = sum(1 for _ in (run.work / "corpus").glob("*")) if (run.work / "corpus").is_dir() else 0
    return (
        f"{run.name:<14} {passed:4.0f} of {run.seconds:.0f} s {done:>9} executions"
        f" {done / max(passed, 0.1):>7.0f}/s {grown:>6} inputs {found:>4} failed"
    )


def remember(runs: list[Run], build: Path) -> None:
    """Add to the sums of all runs here, and show them."""
    path = build / "sums.json"
    sums = json.loads(path.read_text()) if path.exists() else {}
    for run in runs:
        done, found = run.slot.counts
        old = sums.get(run.name, {"executions": 0, "seconds": 0.0, "failed": 0})
        sums[run.name] = {
            "executions": old["executions"] + done,
            "seconds": round(old["seconds"] + run.seconds, 1),
            "failed": old["failed"] + found,
        }
    path.write_text(json.dumps(sums, indent=1, sort_keys=True))
    for name, each in sorted(sums.items()):
        print(f"| {name} | {each['executions']:,} | {each['seconds'] / 60:.0f} min | {each['failed']:,} |")


if __name__ == "__main__":
    sys.exit(main())
