"""``python -m tests.mutations [--chaos] [NAME...]``: put faults into copies, and say who finds them.

With ``--chaos`` that is chaos alone, for a few minutes each.
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
    is_chaos = "--chaos" in names
    names = [name for name in names if name != "--chaos"]
    unknown = set(names) - {one.name for one in MUTATIONS}
    if unknown:
        print(f"no such fault: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    if is_chaos:
        return _beset([one for one in MUTATIONS if not names or one.name in names])
    print(f"no fault: the simulator for {_CONTROL} s, conformance three times", flush=True)
    with copy_of(None) as tree:
        said = simulated(tree, _CONTROL)
    if said is not None:
        print(f"the copy without a fault failed, so no other is told apart: {said}", file=sys.stderr)
        return 2
    expected = steady()
    print(f"{len(expected)} verdicts of conformance are always the same", flush=True)
    missed = 0
    for mutation in MUTATIONS:
        if names and mutation.name not in names:
            continue
        with copy_of(mutation) as tree:
            found = [
                f"{by} after {after:.0f} s: {said}"
                for by, after, said in _found(tree, expected, mutation.brokers)
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


def _found(tree: Path, expected: Verdicts, brokers: str) -> Iterator[tuple[str, float, str]]:
    """Who finds the fault, after how many seconds, and what is said of it.

    The simulator has as long as it takes only where conformance has found nothing.
    """
    began = perf_counter()
    said = judged(tree, expected)
    if said is not None:
        yield "conformance", perf_counter() - began, said
    began = perf_counter()
    said = simulated(tree, _CONTROL if said is not None else _PATIENCE, brokers)
    if said is not None:
        yield "the simulator", perf_counter() - began, said


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
