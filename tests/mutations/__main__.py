"""``python -m tests.mutations [--chaos|--simulator] [NAME...]``: put faults into copies; who finds them.

With ``--chaos`` that is chaos alone, for a few minutes each; with ``--simulator`` that alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from tests.mutations.faults import MUTATIONS, Mutation
from tests.mutations.finders import Verdicts, beset, copy_of, judged, simulated, steady

#: Seconds that the simulator has for a fault that conformance has not found, and for any other copy.
_PATIENCE = 540
_CONTROL = 60
#: Seconds that chaos has.
_CHAOS = 120


def main(names: list[str]) -> int:
    """0 where every fault is found, and nothing in a copy without one."""
    options = {name for name in names if name in ("--chaos", "--simulator")}
    names = [name for name in names if name not in options]
    unknown = set(names) - {one.name for one in MUTATIONS}
    if unknown:
        print(f"no such fault: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    mutations = [one for one in MUTATIONS if not names or one.name in names]
    if "--chaos" in options:
        return _beset(mutations)
    has_conformance = "--simulator" not in options
    print(f"no fault: the simulator for {_CONTROL} s, conformance three times", flush=True)
    with copy_of(None) as tree:
        said = simulated(tree, _CONTROL)
    if said is not None:
        print(f"the copy without a fault failed, so no other is told apart: {said}", file=sys.stderr)
        return 2
    expected: dict[str, Verdicts] = {}
    for brokers in sorted({one.brokers for one in mutations} if has_conformance else ()):
        expected[brokers] = steady(brokers)
        print(f"{len(expected[brokers])} verdicts of conformance are always the same", flush=True)
    missed = 0
    for mutation in mutations:
        with copy_of(mutation) as tree:
            found = [
                f"{by} after {after:.0f} s: {said}"
                for by, after, said in _found(tree, expected.get(mutation.brokers), mutation.brokers)
            ]
        missed += not found
        print(f"{mutation.name} | {' | '.join(found) or 'NOT FOUND'}", flush=True)
    return 1 if missed else 0


def _beset(mutations: list[Mutation]) -> int:
    missed = 0
    for mutation in mutations:
        with copy_of(mutation) as tree:
            began = perf_counter()
            said = beset(tree, mutation.setup, _CHAOS)
            missed += said is None
            after = f"after {perf_counter() - began:.0f} s"
            print(f"{mutation.name} | {mutation.setup} | {said or 'NOT FOUND'} | {after}", flush=True)
    return 1 if missed else 0


def _found(tree: Path, expected: Verdicts | None, brokers: str) -> Iterator[tuple[str, float, str]]:
    """Who finds the fault, after how many seconds, and what is said of it; without ``expected`` not by
    conformance. The simulator has as long as it takes only where conformance has found nothing.
    """
    began = perf_counter()
    said = judged(tree, expected, brokers) if expected is not None else None
    if said is not None:
        yield "conformance", perf_counter() - began, said
    began = perf_counter()
    said = simulated(tree, _CONTROL if said is not None else _PATIENCE, brokers)
    if said is not None:
        yield "the simulator", perf_counter() - began, said


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
