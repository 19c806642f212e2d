"""``python -m tests.mutations [NAME...]``: put faults into copies, and say what finds them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from tests.mutations.faults import MUTATIONS, ROOT, Mutation

#: Seconds for one fault, and for a copy without any: what the simulator says of that is no fault's.
_PATIENCE = 600
_CONTROL = 60


def _copy(mutation: Mutation | None, tree: Path) -> None:
    for room in ("src", "tests", "spec", "policies"):
        shutil.copytree(ROOT / room, tree / room, ignore=shutil.ignore_patterns("__pycache__"))
    if mutation is not None:
        path = tree / mutation.path
        path.write_text(mutation.apply(path.read_text()))


def _found(mutation: Mutation | None, seconds: int = _PATIENCE) -> str | None:
    """What the simulator says of a copy with that fault; None: nothing."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        tree = Path(name)
        _copy(mutation, tree)
        words = ("--seed", "mutations", "--seconds", str(seconds), "--failures", "1", "--shrinking", "0")
        done = subprocess.run(
            [sys.executable, "-m", "tests.simulation", *words],
            cwd=tree,
            env=os.environ | {"PYTHONPATH": str(tree / "src")},
            capture_output=True,
            text=True,
            timeout=2 * _PATIENCE,
        )
    for line in done.stdout.splitlines():
        if line.startswith("FAILED"):
            return line.removeprefix("FAILED ")
    if done.returncode:
        raise RuntimeError(f"the simulator did not run\n{done.stdout}{done.stderr}")
    return None


def main(names: list[str]) -> int:
    """0 where every fault is found, and nothing in a copy without one."""
    unknown = set(names) - {one.name for one in MUTATIONS}
    if unknown:
        print(f"no such fault: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    print(f"no fault, {_CONTROL} s", flush=True)
    if (said := _found(None, _CONTROL)) is not None:
        print(f"the copy without a fault failed, so no other is told apart: {said}", file=sys.stderr)
        return 2
    missed = 0
    for mutation in MUTATIONS:
        if names and mutation.name not in names:
            continue
        began = perf_counter()
        said = _found(mutation)
        missed += said is None
        print(f"{mutation.name} | {perf_counter() - began:.0f} s | {said or 'NOT FOUND'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
