"""Record a library's acceptance tests, enforce what they were seen to need, and then take one grant away.

    python -m tests.interop.audit_trail [--suite pika] [--quick] [--times 2] [--drop RULE]

The suite runs through a gateway with an audit log, as often as said: names that differ from run to run are
folded into patterns. `amqpgate audit recommend` makes policies of the records. With these enforced, every
test passes that has passed before. Without one grant exactly the tests fail of which the records say that
they need it. Prints each set; exit code 1 if one is not as expected, 3 if the suite could not be had.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

from tests.interop.audit_trail.plays import stage_of
from tests.interop.audit_trail.trail import Grant, grants, recommend, record, without, write
from tests.interop.upstream.suites import SUITES, NotHere


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--suite", choices=list(SUITES), default="pika")
    parser.add_argument("--quick", action="store_true", help="only what takes seconds")
    parser.add_argument("--times", type=int, default=2, help="recordings (default: %(default)s)")
    parser.add_argument("--drop", metavar="RULE", help="the grant to take away (default: one that some need)")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="leave records and policies there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="amqpgate-trail-") as folder:
        try:
            return trail(options, options.keep or Path(folder))
        except NotHere as error:
            print(f"{options.suite}: NOT RUN: {error}", file=sys.stderr)
            return 3


def trail(options: argparse.Namespace, folder: Path) -> int:
    """The whole way. Policies and records are left in the folder."""
    (folder / "audit").mkdir(parents=True)
    stage = stage_of(SUITES[options.suite], quick=options.quick)
    made = [record(stage, folder / "audit" / str(number)) for number in range(options.times)]
    passed = set.intersection(*(one.passed for one in made))
    print(f"recorded {options.times} times: {len(made[0].plays)} tests, {len(passed)} always pass")
    least = recommend(folder / "audit", folder / "least")
    print(f"recommended: {len(grants(least))} rules; of what was allowed they refuse", end=" ")
    refused = set().union(*(one.refused_by(least) for one in made))
    print(sorted(refused) or "nothing", flush=True)

    enforced = record(stage, folder / "enforced", policies=folder / "least")
    lost = passed - enforced.passed
    # These tests measure time, too: a second attempt, alone.
    again = record(stage, folder / "again", policies=folder / "least", only=lost).passed if lost else set()
    print(f"enforced: {len(enforced.passed)} pass, {len(enforced.denied)} were denied something")
    _show("was denied something", enforced.denied)
    _show("passed when recorded only", lost - again)
    _show("passed at the second attempt", lost & again)

    needed = {
        grant: set().union(*(one.refused_by(without(least, grant)) for one in made))
        for grant in grants(least)
    }
    grant = _chosen(needed, options.drop, most=len(passed) // 4)
    less = write(without(least, grant), folder / "less")
    dropped = record(stage, folder / "dropped", policies=less)
    always = passed & enforced.passed
    expected, failed = needed[grant] & always, always - dropped.passed
    surplus = failed - expected
    if surplus:
        surplus -= record(stage, folder / "dropped-again", policies=less, only=surplus).passed
    print(f"without {' '.join(grant)}: {len(expected)} tests need it, {len(failed)} fail")
    _show("fails as expected", expected & failed)
    _show("was expected to fail, and passes", expected - failed)
    _show("fails, and was not expected to", surplus)
    _show("passed at the second attempt", failed - expected - surplus)
    surprising = dropped.denied - enforced.denied - needed[grant]
    _show("was denied something, and was not expected to be", surprising)
    return 1 if refused or lost - again or surplus or expected - failed else 0


def _chosen(needed: Mapping[Grant, Collection[str]], name: str | None, most: int) -> Grant:
    """The grant of that name, or the one that the most tests need of those that at most so many do."""
    fitting = [
        grant
        for grant, tests in needed.items()
        if (grant[1] == name if name is not None else 0 < len(tests) <= most)
    ]
    if not fitting:
        raise SystemExit("no such grant; there are: " + ", ".join(grant[1] for grant in needed))
    return max(fitting, key=lambda grant: len(needed[grant]))


def _show(what: str, tests: Collection[str]) -> None:
    for test in sorted(tests):
        print(f"  {what}: {test}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
