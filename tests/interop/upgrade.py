"""Suites of clients on RabbitMQ 3, on RabbitMQ 4 directly, and on 4 through a gateway with a profile.

    python -m tests.interop.upgrade [--suite pika] [--quick] [--keep DIR [--told]]

The suites are the libraries' own acceptance tests, and this project's with clients in Python, C, Ruby, PHP,
JavaScript (`clients`), and with releases of Celery (`celery`). They run through a gateway with an audit log
before RabbitMQ 3 first. What its records say of RabbitMQ 4 is held against what fails there directly, test by
test; then all runs there through a gateway with a compatibility policy. Prints each set, suite by suite, then
of all. Exit code 1 if a test passes on RabbitMQ 3 and not on 4 through the gateway, or if the records name a
test that does not fail, or do not name one that does and passes with the policy; 3 if a suite could not be
had, or was not whole. What the records say to differ, not to fail, is told apart: a test may look at it.

What a suite did on one of the three ways is in the folder of ``--keep`` as soon as it has ended, and is not
played again by the next run with that folder. ``--told`` plays nothing, and prints what is there.

The node of version 4 denies what later versions deny. Bodies that it does not take go by way of an object
store, where there is one (`tools/test-tools.sh`).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import attrs

from amqpgate.policy.tools.preflight import FAILS, BrokerRequest, Outcome, troubles
from tests.interop.audit_trail.plays import Stage, Way, stage_of, stage_of_clients
from tests.interop.audit_trail.trail import Recording, record
from tests.interop.upstream.suites import SUITES, Play
from tests.support.audit import Record, records
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

#: What records say of a request that does not fail.
DIFFERS: tuple[Outcome, ...] = ("differs", "may-differ")

#: This project's suites, by the names that the command has for them.
OWN = {"clients": ("clients", "amqp_tools", "kombu"), "celery": ("celery",)}

#: Tests that do not notice what comes of it. The first expects an error, whichever: it passes where its
#: connection is lost over a queue, too. The others publish 20 MiB without confirms, and end.
UNNOTICED = (
    "aiormq tests/test_connection.py::test_connection_close_stairway",
    "aiormq tests/test_channel.py::test_big_message[amqp_channel2-",
    "aiormq tests/test_channel.py::test_big_message[amqp_channel3-",
)

#: Without a record, since they never open: RabbitMQ 3 refuses them, too, and they look at its words for that.
NEVER_OPEN = frozenset(
    {"clients tests/interop/test_clients.py::test_client[gateway-node_amqplib_0_10-unknown_vhost]"}
)


@attrs.frozen
class Outcomes:
    """What passes where, of all that passes on RabbitMQ 3 through a gateway."""

    on_three: frozenset[str]
    directly: frozenset[str]
    through_gateway: frozenset[str]
    #: Of which the records say that it fails, with the items.
    named: Mapping[str, frozenset[str]]
    #: Of which they say that something differs, and not that it fails.
    differ: Mapping[str, frozenset[str]]

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
        return (frozenset(self.named) & self.directly) - self.unnoticed

    @property
    def unnoticed(self) -> frozenset[str]:
        """What passes because it does not look."""
        return frozenset(test for test in self.directly if test.startswith(UNNOTICED))

    @property
    def unnamed(self) -> frozenset[str]:
        """What the profile mends, so what the records should have told."""
        return self.mended - frozenset(self.named) - frozenset(self.differ) - NEVER_OPEN

    @property
    def looked_at(self) -> frozenset[str]:
        """What fails since it looks at what differs."""
        return (self.mended & frozenset(self.differ)) - frozenset(self.named)

    def is_as_expected(self) -> bool:
        return not (self.lost or self.wrongly_named or self.unnamed)

    def __or__(self, other: Outcomes) -> Outcomes:
        """Of both."""
        return Outcomes(
            self.on_three | other.on_three,
            self.directly | other.directly,
            self.through_gateway | other.through_gateway,
            {**self.named, **other.named},
            {**self.differ, **other.differ},
        )


T = TypeVar("T")

NOTHING = Outcomes(frozenset(), frozenset(), frozenset(), {}, {})


class NotKept(Exception):
    """A suite has not ended on one of the ways, and is not to be played."""


@attrs.frozen
class Replay:
    """One suite on all three ways. What has ended is in the folder, and is read from there."""

    name: str
    folder: Path
    quick: bool = False
    #: Play nothing that is not there.
    only_kept: bool = False
    #: What the records name has one attempt directly: it may have failed for another reason.
    named_once: bool = False

    def outcomes(self) -> Outcomes:
        recording = self.on_three()
        passed, said = frozenset(recording.passed), named(recording, FAILS)
        directly = self._passed("directly", passed, self._directly, passed - said.keys())
        through = self._passed("through", passed, self._through, passed)
        return Outcomes(passed, directly, through, said, named(recording, DIFFERS))

    @property
    def audit(self) -> Path:
        """Where the records of RabbitMQ 3 are."""
        return self.folder / "three"

    def on_three(self) -> Recording:
        def played() -> dict[str, tuple[str, float, float]]:
            # Records of a run that was cut would be told of this one.
            shutil.rmtree(self.audit, ignore_errors=True)
            plays = record(self._stage(), self.audit).plays
            return {test: attrs.astuple(play) for test, play in plays.items()}

        plays = {test: Play(*values) for test, values in self._kept("on_three", played).items()}
        return Recording(plays, records(self.audit, "usage"), records(self.audit, "events"))

    def _passed(
        self,
        what: str,
        wanted: frozenset[str],
        play: Callable[[Collection[str]], Collection[str]],
        again: frozenset[str],
    ) -> frozenset[str]:
        """What passes, of these. What does not gets a second attempt alone: these tests measure time, too."""
        passed = wanted & set(self._kept(what, lambda: sorted(play(()))))
        rest = (again if self.named_once else wanted) - passed
        if not rest:
            return passed
        return passed | (rest & set(self._kept(f"{what}_again", lambda: sorted(play(rest)))))

    def _directly(self, only: Collection[str]) -> Collection[str]:
        with on_version_4():
            return _play(self._stage("direct"), "", only)

    def _through(self, only: Collection[str]) -> Collection[str]:
        profile = self.folder / "profile"
        profile.mkdir(exist_ok=True)
        with on_version_4(), object_store() as claim_check:
            (profile / "three.yaml").write_text(PROFILE + claim_check)
            return _play(self._stage(), f"policies: {profile}\n", only)

    def _stage(self, way: Way = "gateway") -> Stage:
        if self.name in OWN:
            return stage_of_clients(way, OWN[self.name])
        return stage_of([SUITES[self.name]], quick=self.quick, way=way)

    def _kept(self, what: str, play: Callable[[], T]) -> T:
        """What came of it, of this run or of one before."""
        file = self.folder / f"{what}.json"
        if not file.exists():
            if self.only_kept:
                raise NotKept(f"{self.name}: NOT WHOLE: {what}.json is not there")
            self.folder.mkdir(parents=True, exist_ok=True)
            half = file.with_suffix(".half")
            half.write_text(json.dumps(play()))
            half.replace(file)
        kept: T = json.loads(file.read_text())
        return kept


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


def _play(stage: Stage, settings: str, only: Collection[str]) -> set[str]:
    with stage(settings) as play:
        plays: Mapping[str, Play] = play(only)
    return {test for test, one in plays.items() if one.outcome == "passed"}


def named(recording: Recording, outcomes: Collection[Outcome]) -> dict[str, frozenset[str]]:
    """The tests that made a request of which preflight says that this comes of it on 4.3, with the items."""
    tests = recording.tests()
    found: dict[str, frozenset[str]] = {}
    for one in (*recording.events, *recording.usage):
        test = tests.get(str(one["session"]))
        request = _request(one) if "kind" in one else _publish(one)
        items = (
            set()
            if request is None
            else {trouble.item for trouble in troubles(request, "4.3") if trouble.outcome in outcomes}
        )
        if test in recording.passed and items:
            found[test] = found.get(test, frozenset()) | items
    return found


def _request(event: Record) -> BrokerRequest | None:
    operation = event["operation"]
    if event["kind"] == "session.open":
        return BrokerRequest(
            kind="connection.open",
            vhost=str(event["vhost"]),
            name="",
            amqp_version=str(event["amqp_version"]),
            frame_max=json.loads(str(event["detail"] or "{}")).get("frame_max", 0),
        )
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
        ("named, and does not notice", frozenset(outcomes.named) & outcomes.unnoticed),
        ("said to differ, and fails directly", outcomes.looked_at),
        ("never opens, and fails directly", outcomes.mended & NEVER_OPEN),
        ("not named, fails directly, passes with the policy", outcomes.unnamed),
        ("fails directly, and with the policy", outcomes.fails_directly - outcomes.through_gateway),
        ("passes directly, and not through the gateway", outcomes.lost & outcomes.directly),
    ):
        lines.append(f"{title}: {len(tests)}")
        said = {**outcomes.differ, **outcomes.named}
        items = Counter(f"{_brief(test)}  {' '.join(sorted(said.get(test, ())))}" for test in tests)
        lines += [f"  {count:4} {item}" for item, count in sorted(items.items())]
    return "\n".join(lines)


def _brief(test: str) -> str:
    """The libraries' have a name for each address and way to log in."""
    return test if test.startswith("clients ") else test.partition("[")[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    known = [*SUITES, *OWN]
    parser.add_argument("--suite", action="append", choices=known, help="only this one (default: all)")
    parser.add_argument("--quick", action="store_true", help="of the libraries' only what takes seconds")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="results there; those that are stay")
    parser.add_argument("--told", action="store_true", help="play nothing: print what --keep has")
    parser.add_argument("--named-once", action="store_true", help="no second attempt of what is named")
    options = parser.parse_args()
    if options.told and options.keep is None:
        parser.error("--told needs --keep")
    with tempfile.TemporaryDirectory(prefix="amqpgate-upgrade-") as temporary:
        folder = options.keep or Path(temporary)
        names = options.suite or known
        replays = [
            Replay(name, folder / name, options.quick, options.told, options.named_once) for name in names
        ]
        return _run(replays)


def _run(replays: Iterable[Replay]) -> int:
    whole, missing = NOTHING, 0
    for replay in replays:
        try:
            if replay.name in SUITES:
                SUITES[replay.name].source()
            outcomes = replay.outcomes()
        except (NotHere, NotKept) as error:
            print(f"{replay.name}: NOT RUN: {error}" if isinstance(error, NotHere) else error, flush=True)
            missing = 3
            continue
        whole |= outcomes
        print(f"{replay.name}: {told(outcomes)}", flush=True)
        command = [sys.executable, "-m", "amqpgate", "audit", "preflight", str(replay.audit)]
        subprocess.run(command, check=False)
    print(f"all: {told(whole)}", flush=True)
    return missing if whole.is_as_expected() else 1


if __name__ == "__main__":
    sys.exit(main())
