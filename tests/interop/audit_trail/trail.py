"""The way from records to policies and back.

Which tests need a grant is told by the records: each belongs to a session, each session to the test that ran
when it began, and the code that enforces says what the policies without the grant would answer.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

import attrs
import yaml

from amqpgate.pipeline.jobs.judge import ASKED, PRINCIPAL, judge_of
from amqpgate.policy.loader import Source, read_folder
from tests.interop.audit_trail.plays import Stage
from tests.interop.upstream.suites import Play
from tests.support.audit import Record, records, setting

#: A policy and one of its rules.
Grant: TypeAlias = "tuple[str, str]"


@attrs.frozen
class Recording:
    """What was played, and the records of it."""

    plays: Mapping[str, Play]
    usage: Sequence[Record]
    events: Sequence[Record]

    @property
    def passed(self) -> set[str]:
        return {test for test, play in self.plays.items() if play.outcome == "passed"}

    @property
    def failed(self) -> set[str]:
        return {test for test, play in self.plays.items() if play.outcome == "failed"}

    @property
    def denied(self) -> set[str]:
        """The tests of which something was denied by a policy."""
        refused = {one["session"] for one in self.events if one["kind"] == "denied"}
        return {test for session, test in self.tests().items() if session in refused}

    def tests(self) -> dict[str, str]:
        """By session, the test that ran when the first was heard of it."""
        began: dict[str, float] = {}
        for one in self.events:
            session, time = one["session"], one["time"]
            if isinstance(session, str) and isinstance(time, datetime):
                began[session] = min(began.get(session, time.timestamp()), time.timestamp())
        return {
            session: test
            for session, moment in began.items()
            for test, play in self.plays.items()
            if play.began <= moment <= play.ended
        }

    def asked(self) -> Iterator[tuple[Record, set[str]]]:
        """What was allowed, each once, with the tests that did it."""
        tests = self.tests()
        found: dict[str, tuple[Record, set[str]]] = {}
        for one in self.usage:
            if one["verdict"] == "allow":
                asked = {
                    name: value for name, value in one.items() if name in (*PRINCIPAL, *ASKED, "verdict")
                }
                _, those = found.setdefault(repr(asked), (asked, set()))
                those.add(tests.get(str(one["session"]), "nobody"))
        yield from found.values()

    def refused_by(self, policies: Sequence[Source]) -> set[str]:
        """The tests that did what these policies do not allow, and what was allowed then."""
        judge = judge_of(tuple(policies))
        refused = (tests for one, tests in self.asked() if judge.answer(one).outcome != "allow")
        return set().union(*refused)

    def decided_by(self, policies: Sequence[Source]) -> dict[Grant, set[str]]:
        """By grant, the tests that did what it allows."""
        judge = judge_of(tuple(policies))
        found: dict[Grant, set[str]] = {}
        for one, tests in self.asked():
            answer = judge.answer(one)
            if answer.outcome == "allow" and answer.policy is not None:
                found.setdefault((answer.policy, answer.rule), set()).update(tests)
        return found


def record(
    stage: Stage, folder: Path, *, policies: Path | None = None, only: Collection[str] = ()
) -> Recording:
    """Play with an audit log in a new folder, and with these policies enforced."""
    settings = setting(folder, 0.5)
    if policies is not None:
        settings += f"policies: {policies}\nwatchPolicies: false\n"
    with stage(settings) as play:
        plays = play(only)
    return Recording(plays, records(folder, "usage"), records(folder, "events"))


def recommend(folder: Path, out: Path) -> list[Source]:
    """What `amqpgate audit recommend` makes of the records, and `amqpgate policy check` finds in order."""
    # A name or a key that differs from run to run is seen as often as there are runs.
    _amqpgate("audit", "recommend", folder, "--out", out, "--values", "1", "--format", "csv")
    _amqpgate("policy", "check", out)
    return read_folder(out)


def replay(folder: Path, policies: Path) -> str:
    """What `amqpgate audit replay` counts of answers, before and after. A request that is refused now is an
    error, as for the verb."""
    return _amqpgate("audit", "replay", folder, "--policies", policies, "--format", "csv").strip()


def _amqpgate(*words: object) -> str:
    """Standard error of the verb, which must succeed."""
    command = [sys.executable, "-m", "amqpgate", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}{done.stdout}"
    return done.stderr


def grants(policies: Sequence[Source]) -> list[Grant]:
    """All rules."""
    return [
        (document["metadata"]["name"], rule["id"])
        for file in policies
        for document in yaml.safe_load_all(file.data)
        for rule in document["spec"]["rules"]
    ]


def without(policies: Sequence[Source], grant: Grant) -> list[Source]:
    """The policies without one of the rules."""
    files = []
    for file in policies:
        documents = list(yaml.safe_load_all(file.data))
        for document in documents:
            if document["metadata"]["name"] == grant[0]:
                spec = document["spec"]
                spec["rules"] = [rule for rule in spec["rules"] if rule["id"] != grant[1]]
        files.append(attrs.evolve(file, data=yaml.safe_dump_all(documents).encode()))
    assert len(grants(files)) == len(grants(policies)) - 1
    return files


def write(policies: Sequence[Source], folder: Path) -> Path:
    """The policies as files in a new folder."""
    folder.mkdir()
    for file in policies:
        (folder / Path(file.name).name).write_bytes(file.data)
    return folder
