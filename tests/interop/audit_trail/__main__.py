"""Record suites of clients, enforce what they were seen to need, and then take one grant away.

    python -m tests.interop.audit_trail [--suite pika] [--quick] [--times 2] [--drop RULE]

The suites are the libraries' own acceptance tests, and `clients`: this project's with clients in Python, C,
Ruby, PHP and JavaScript. They run through a gateway with an audit log, as often as said: names that differ
from run to run are folded into patterns. `amqpgate audit recommend` makes policies of the records. With these
enforced, every test passes that has passed before. Without one grant exactly the tests fail of which the
records say that they need it. Prints each set, and what took how long; exit code 1 if one is not as expected,
3 if a suite could not be had.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from amqpgate.policy.loader import Source
from tests.interop.audit_trail.plays import Stage, stage_of, stage_of_clients, stages_in_turn
from tests.interop.audit_trail.trail import (
    Grant,
    Recording,
    grants,
    recommend,
    record,
    replay,
    without,
    write,
)
from tests.interop.upstream.suites import SUITES
from tests.support.environments import NotHere


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    known = [*SUITES, "clients"]
    parser.add_argument("--suite", action="append", choices=known, help="only this one (default: all)")
    parser.add_argument("--quick", action="store_true", help="of the libraries' only what takes seconds")
    parser.add_argument("--times", type=int, default=2, help="recordings (default: %(default)s)")
    parser.add_argument("--drop", metavar="RULE", help="the grant to take away (default: one that some need)")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="leave records and policies there")
    options = parser.parse_args()
    names = options.suite or known
    missing = 0
    suites = [SUITES[name] for name in names if name in SUITES]
    for suite in list(suites):
        try:
            suite.source()
        except NotHere as error:
            print(f"{suite.package}: NOT RUN: {error}", file=sys.stderr)
            suites.remove(suite)
            missing = 3
    stages = [stage_of(suites, quick=options.quick)] if suites else []
    if "clients" in names:
        stages.append(stage_of_clients())
    if not stages:
        return missing
    with tempfile.TemporaryDirectory(prefix="amqpgate-trail-") as folder:
        return trail(stages_in_turn(stages), options, options.keep or Path(folder)) or missing


def trail(stage: Stage, options: argparse.Namespace, folder: Path) -> int:
    """The whole way. Policies and records are left in the folder."""
    (folder / "audit").mkdir(parents=True)
    made = [record(stage, folder / "audit" / str(number)) for number in range(options.times)]
    passed = set.intersection(*(one.passed for one in made))
    print(f"recorded {options.times} times: {len(made[0].plays)} tests, {len(passed)} always pass")
    _show("failed when recorded", set().union(*(one.failed for one in made)))
    usage, events = sum(len(one.usage) for one in made), sum(len(one.events) for one in made)
    print(f"records: {usage:,} of usage, {events:,} of events", flush=True)
    least = recommend(folder / "audit", folder / "least")
    print("replayed: " + "; ".join(replay(folder / "audit", folder / "least").splitlines()))
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

    grant, needed = _chosen(made, least, options.drop, most=len(passed) // 4)
    less = write(without(least, grant), folder / "less")
    dropped = record(stage, folder / "dropped", policies=less)
    always = passed & enforced.passed
    expected, failed = needed & always, always - dropped.passed
    surplus = failed - expected
    if surplus:
        surplus -= record(stage, folder / "dropped-again", policies=less, only=surplus).passed
    print(f"without {' '.join(grant)}: {len(expected)} tests need it, {len(failed)} fail")
    _show("fails as expected", expected & failed)
    _show("was expected to fail, and passes", expected - failed)
    _show("fails, and was not expected to", surplus)
    _show("passed at the second attempt", failed - expected - surplus)
    surprising = dropped.denied - enforced.denied - needed
    _show("was denied something, and was not expected to be", surprising)
    return 1 if refused or lost - again or surplus or expected - failed else 0


def _chosen(
    made: Sequence[Recording], least: Sequence[Source], name: str | None, most: int
) -> tuple[Grant, set[str]]:
    """The grant of that name, or one that many need, but at most so many tests, else few; and these."""
    decided: Counter[Grant] = Counter()
    for one in made:
        decided.update({grant: len(tests) for grant, tests in one.decided_by(least).items()})
    rest: list[tuple[Grant, set[str]]] = []
    for grant in [grant for grant, _ in decided.most_common() if name in (None, grant[1])]:
        needed = set().union(*(one.refused_by(without(least, grant)) for one in made))
        if needed and (name is not None or len(needed) <= most):
            return grant, needed
        if needed:
            rest.append((grant, needed))
    if rest:
        return min(rest, key=lambda one: len(one[1]))
    raise SystemExit("no such grant; there are: " + ", ".join(grant[1] for grant in grants(least)))


def _show(what: str, tests: Collection[str]) -> None:
    for test in sorted(tests):
        print(f"  {what}: {test}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
