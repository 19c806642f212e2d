"""``python -m tests.mutations [NAME...]``: put faults into copies of the gateway; who finds them first.

First the simulator looks for each with short stories, then conformance for those that are left, then the
simulator with stories of all lengths. ``--by`` asks one of them alone, or chaos.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from time import perf_counter

from tests.mutations.faults import MUTATIONS, Mutation
from tests.mutations.finders import Verdicts, beset, copy_of, judged, simulated, steady

#: Seconds of CPU that the simulator has for a fault: with short stories, and with all.
_SHORT = 120
_LONG = 420
#: Virtual seconds of a short story.
_EACH = 60.0
#: Seconds of CPU that a copy without a fault is looked at, with each.
_CONTROL = 30
#: Seconds that chaos has.
_CHAOS = 120

#: A copy, and what is in it -> what is said of it; None: nothing.
Finder = Callable[[Path, Mutation], str | None]


def main() -> int:
    """0 where every fault is found, and nothing in a copy without one."""
    options = _options()
    unknown = set(options.names) - {one.name for one in MUTATIONS}
    if unknown:
        print(f"no such fault: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    left = [one for one in MUTATIONS if not options.names or one.name in options.names]
    finders: dict[str, Finder] = {
        "the simulator, short stories": partial(_short, options.seed),
        "conformance": _conformance,
        "the simulator": partial(_long, options.seed),
        "chaos": _chaos,
    }
    asked = {name: find for name, find in finders.items() if _is_asked(name, options.by)}
    if options.by in ("", "simulator"):
        for brokers in sorted({one.brokers for one in left}):
            with copy_of(None) as tree:
                seed = options.seed
                said = simulated(tree, seed, _CONTROL, brokers, _EACH)
                said = said or simulated(tree, seed, _CONTROL, brokers)
            if said is not None:
                print(f"a copy without a fault failed, so no other is told apart: {said}", file=sys.stderr)
                return 2
    for name, find in asked.items():
        left = list(_missed(name, find, left, options.jobs))
    for one in left:
        print(f"{one.name} | NOT FOUND", flush=True)
    return 1 if left else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these faults")
    parser.add_argument("--by", choices=("simulator", "conformance", "chaos"), default="")
    parser.add_argument("--jobs", type=int, default=2, help="so many at once")
    parser.add_argument("--seed", default="mutations", help="of the simulator's stories")
    return parser.parse_args()


def _is_asked(finder: str, by: str) -> bool:
    return by in finder if by else finder != "chaos"


def _missed(name: str, find: Finder, mutations: Iterable[Mutation], jobs: int) -> Iterator[Mutation]:
    """Those that this one does not find."""

    def look(mutation: Mutation) -> str | None:
        began = perf_counter()
        with copy_of(mutation) as tree:
            said = find(tree, mutation)
        if said is not None:
            print(f"{mutation.name} | {name} after {perf_counter() - began:.0f} s: {said}", flush=True)
        return said

    with ThreadPoolExecutor(1 if name in _ALONE else jobs) as crew:
        mutations = list(mutations)
        for mutation, said in zip(mutations, crew.map(look, mutations), strict=True):
            if said is None:
                yield mutation


def _short(seed: str, tree: Path, mutation: Mutation) -> str | None:
    return simulated(tree, seed, _SHORT, mutation.brokers, _EACH)


def _long(seed: str, tree: Path, mutation: Mutation) -> str | None:
    return simulated(tree, seed, _LONG, mutation.brokers)


@cache
def _expected(brokers: str) -> Verdicts:
    """The verdicts of a copy without a fault."""
    expected = steady(brokers)
    print(f"{len(expected)} verdicts of conformance are always the same", flush=True)
    return expected


def _conformance(tree: Path, mutation: Mutation) -> str | None:
    return judged(tree, _expected(mutation.brokers), mutation.brokers)


def _chaos(tree: Path, mutation: Mutation) -> str | None:
    return beset(tree, mutation.setup, _CHAOS)


#: Those that take a whole machine.
_ALONE = ("conformance", "chaos")


if __name__ == "__main__":
    sys.exit(main())
