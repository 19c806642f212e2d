"""Suites of clients on RabbitMQ 3, on RabbitMQ 4 directly, and on 4 through a gateway with a profile.

    python -m tests.interop.upgrade [--suite pika] [--quick] [--keep DIR]

The suites are the libraries' own acceptance tests, and `clients`: this project's with clients in Python, C,
Ruby, PHP and JavaScript. They run through a gateway with an audit log before RabbitMQ 3 first. What its
records say of RabbitMQ 4 is held against what fails there directly, test by test; then all runs there
through a gateway with a compatibility policy. Prints each set. Exit code 1 if a test passes on RabbitMQ 3 and
not on 4 through the gateway, or if the records name a test that does not fail, or do not name one that does
and passes with the policy; 3 if a suite could not be had.

The node of version 4 denies what later versions deny. Bodies that it does not take go by way of an object
store, where there is one (`tools/test-tools.sh`).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import attrs

from amqpgate.policy.tools.preflight import FAILS, BrokerRequest, troubles
from tests.interop.audit_trail.plays import Stage, Way, stage_of, stage_of_clients, stages_in_turn
from tests.interop.audit_trail.trail import Recording, record
from tests.interop.upstream.suites import SUITES, Play, Suite
from tests.support.audit import Record
from tests.support.environments import NotHere
from tests.support.rabbitmq_root import CONFIG, DENYING, ROOT, root_of_4
from tests.support.swift import Swift

PROFILE = """
apiVersion: amqpgate.io/v1alpha1
kind: CompatibilityPolicy
metadata: {name: three}
spec:
  subjects: [{}]
  as: rabbitmq-3.13
  deliveryLimits: [{limit: -1}]
  nacks: count
"""

CLAIM_CHECK = """  claimCheck:
    store: "s3://claims/prod?endpoint_override=http://127.0.0.1:%d"
    above: 16Mi
"""

#: Tests that expect an error, whichever: they pass where their connection is lost over a queue, too.
EXPECT_ERRORS = ("aiormq tests/test_connection.py::test_connection_close_stairway",)


@attrs.frozen
class Outcomes:
    """What passes where, of all that passes on RabbitMQ 3 through a gateway."""

    on_three: frozenset[str]
    directly: frozenset[str]
    through_gateway: frozenset[str]
    #: Of which the records say that it fails, with the items.
    named: Mapping[str, frozenset[str]]

    @property
    def fails_directly(self) -> frozenset[str]:
        return self.on_three - self.directly

    @property
    def mended(self) -> frozenset[str]:
        return self.fails_directly & self.through_gateway

    @property
    def lost(self) -> frozenset[str]:
        """What the gateway does not mend."""
        return self.on_three - self.through_gateway

    @property
    def wrongly_named(self) -> frozenset[str]:
        return (frozenset(self.named) & self.directly) - self.expecting

    @property
    def expecting(self) -> frozenset[str]:
        """What passes because it expects an error."""
        return frozenset(test for test in self.directly if test.startswith(EXPECT_ERRORS))

    @property
    def unnamed(self) -> frozenset[str]:
        """What the profile mends, so what the records should have told."""
        return self.mended - frozenset(self.named)

    def is_as_expected(self) -> bool:
        return not (self.lost or self.wrongly_named or self.unnamed)


@contextlib.contextmanager
def during(wanted: Mapping[str, str]) -> Iterator[None]:
    """The environment has these meanwhile."""
    before = dict(os.environ)
    os.environ.update(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def on_version_4() -> contextlib.AbstractContextManager[None]:
    """Nodes that are started meanwhile are of version 4, and deny."""
    return during({ROOT: str(root_of_4()), CONFIG: "\n".join(DENYING)})


@contextlib.contextmanager
def object_store() -> Iterator[str]:
    """What the profile says of an object store, which is there meanwhile; nothing without one."""
    if importlib.util.find_spec("boto3") is None or not Swift.is_here():
        print("bodies above 16 MiB: NOT MENDED: there is no object store here", file=sys.stderr)
        yield ""
        return
    swift = Swift()
    try:
        swift.start()
        swift.client().create_dir("claims")
        with during(swift.environment() | {"AMQPGATE_CLAIM_KEYS": "k" * 40}):
            os.environ.pop("AWS_ENDPOINT_URL", None)
            yield CLAIM_CHECK % swift.port
    finally:
        swift.destroy()


def upgrade(suites: Collection[Suite], *, clients: bool, quick: bool, folder: Path) -> Outcomes:
    """All three ways. Records and policies are left in the folder."""
    profile = folder / "profile"
    profile.mkdir(parents=True)
    on_three = record(_stage(suites, clients=clients, quick=quick), folder / "three")
    with on_version_4():
        directly = _passed(_stage(suites, clients=clients, quick=quick, way="direct"), on_three.passed)
        with object_store() as claim_check:
            (profile / "three.yaml").write_text(PROFILE + claim_check)
            through = _passed(
                _stage(suites, clients=clients, quick=quick), on_three.passed, f"policies: {profile}\n"
            )
    return Outcomes(frozenset(on_three.passed), directly, through, named(on_three))


def _stage(suites: Collection[Suite], *, clients: bool, quick: bool, way: Way = "gateway") -> Stage:
    stages = [stage_of([suite], quick=quick, way=way) for suite in suites]
    if clients:
        stages.append(stage_of_clients(way))
    return stages_in_turn(stages)


def _passed(stage: Stage, wanted: Collection[str], settings: str = "") -> frozenset[str]:
    """What passes, of these. What does not gets a second attempt alone: these tests measure time, too."""
    passed = _play(stage, settings, ()) & set(wanted)
    rest = set(wanted) - passed
    return frozenset(passed | (_play(stage, settings, rest) if rest else set()))


def _play(stage: Stage, settings: str, only: Collection[str]) -> set[str]:
    with stage(settings) as play:
        plays: Mapping[str, Play] = play(only)
    return {test for test, one in plays.items() if one.outcome == "passed"}


def named(recording: Recording) -> dict[str, frozenset[str]]:
    """The tests that made a request of which preflight says that it fails on 4.3, with the items."""
    tests = recording.tests()
    found: dict[str, frozenset[str]] = {}
    for one in (*recording.events, *recording.usage):
        test = tests.get(str(one["session"]))
        request = _request(one) if "kind" in one else _publish(one)
        items = (
            set()
            if request is None
            else {trouble.item for trouble in troubles(request, "4.3") if trouble.outcome in FAILS}
        )
        if test in recording.passed and items:
            found[test] = found.get(test, frozenset()) | items
    return found


def _request(event: Record) -> BrokerRequest | None:
    operation = event["operation"]
    if event["kind"] != "topology" or operation not in ("queue.declare", "exchange.declare"):
        return None
    detail = json.loads(str(event["detail"] or "{}"))
    return BrokerRequest(
        kind="queue.declare" if operation == "queue.declare" else "exchange.declare",
        vhost=str(event["vhost"]),
        name=str(event["queue"] or event["exchange"]),
        durable=detail.get("durable") in (True, "true"),
        exclusive=detail.get("exclusive") in (True, "true"),
        type=detail.get("type") or "",
        arguments=json.loads(str(event["arguments"] or "{}")),
    )


def _publish(usage: Record) -> BrokerRequest | None:
    if usage["operation"] != "basic.publish":
        return None
    largest = usage["largest_body"]
    return BrokerRequest(
        kind="basic.publish",
        vhost=str(usage["vhost"]),
        name=str(usage["exchange"]),
        largest_body=largest if isinstance(largest, int) else 0,
    )


def told(outcomes: Outcomes) -> str:
    """The sets in numbers, and whatever is in them by name."""
    lines = [
        f"{len(outcomes.on_three)} tests pass on RabbitMQ 3, {len(outcomes.directly)} of them on 4 directly, "
        f"{len(outcomes.through_gateway)} on 4 through the gateway",
        f"the records name {len(outcomes.named)} tests; {len(outcomes.fails_directly)} fail directly",
    ]
    for title, tests in (
        ("named, and fails directly", frozenset(outcomes.named) & outcomes.fails_directly),
        ("named, and passes directly", outcomes.wrongly_named),
        ("named, and expects an error", frozenset(outcomes.named) & outcomes.expecting),
        ("not named, fails directly, passes with the policy", outcomes.unnamed),
        ("fails directly, and with the policy", outcomes.fails_directly - outcomes.through_gateway),
        ("passes directly, and not through the gateway", outcomes.lost & outcomes.directly),
    ):
        lines.append(f"{title}: {len(tests)}")
        items = Counter(f"{_brief(test)}  {' '.join(sorted(outcomes.named.get(test, ())))}" for test in tests)
        lines += [f"  {count:4} {item}" for item, count in sorted(items.items())]
    return "\n".join(lines)


def _brief(test: str) -> str:
    """The libraries' have a name for each address and way to log in."""
    return test if test.startswith("clients ") else test.partition("[")[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    known = [*SUITES, "clients"]
    parser.add_argument("--suite", action="append", choices=known, help="only this one (default: all)")
    parser.add_argument("--quick", action="store_true", help="of the libraries' only what takes seconds")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="leave records and policies there")
    options = parser.parse_args()
    if options.keep is not None and options.keep.exists():
        # Records of another run would be told of this one.
        parser.error(f"{options.keep} is there already: name a folder that is not")
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
    with tempfile.TemporaryDirectory(prefix="amqpgate-upgrade-") as temporary:
        folder = options.keep or Path(temporary)
        outcomes = upgrade(suites, clients="clients" in names, quick=options.quick, folder=folder)
        print(told(outcomes), flush=True)
        command = [sys.executable, "-m", "amqpgate", "audit", "preflight", str(folder / "three")]
        subprocess.run(command, check=False)
    return missing if outcomes.is_as_expected() else 1


if __name__ == "__main__":
    sys.exit(main())
