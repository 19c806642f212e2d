"""What came of all connections: the worst of each rule counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import attrs

from amqpgate.conformance.case import CaseResult, ConformanceRule, Verdict
from amqpgate.conformance.client.findings import ClientFindings
from amqpgate.conformance.client.rules import PASSIVE
from amqpgate.conformance.client.scenario import Scenario
from amqpgate.conformance.versions import VERSIONS, Name

#: The last counts before all others.
_RANK: Final[Sequence[Verdict]] = ("untestable", "obeys", "as RabbitMQ", "deviates")

_PASSIVE: Final = [rule for section in PASSIVE for rule in section.cases]


@attrs.define(eq=False)
class ClientVerdicts:
    """Of a run; ``played`` are the scenarios that were chosen, and ``judged`` the ids of other rules."""

    played: Sequence[type[Scenario]]
    judged: Collection[str]
    _found: dict[tuple[Name, str], CaseResult] = attrs.field(factory=dict)

    def add(self, version: Name, findings: ClientFindings) -> None:
        """What a connection has shown."""
        for rule in _PASSIVE:
            said = findings.outcomes.get(rule.id)
            if said is not None and rule.id in self.judged:
                self._add(rule, version, rule.verdict(said), said)

    def add_played(
        self, version: Name, scenario: type[Scenario], said: str | None, seconds: float, code: int
    ) -> None:
        """What came of a scenario; ``code`` is the exit code of its program, 0 where none was started."""
        rule = scenario.rule
        if scenario not in self.played:
            return
        if said is None:
            self._add(rule, version, "untestable", scenario.needs, seconds)
        elif rule.verdict(said) != "deviates" and code and not scenario.may_fail:
            self._add(rule, version, "deviates", f"{said}; the program ended with {code}", seconds)
        else:
            self._add(rule, version, rule.verdict(said), said, seconds)

    def _add(
        self, rule: ConformanceRule, version: Name, verdict: Verdict, said: str, seconds: float = 0
    ) -> None:
        key = version, rule.id
        known = self._found.get(key)
        if known is None or _RANK.index(verdict) > _RANK.index(known.verdict):
            self._found[key] = CaseResult(
                case=rule, version=version, verdict=verdict, said=said, seconds=seconds
            )

    def results(self) -> list[CaseResult]:
        """Of each rule, in each version that was spoken."""
        versions = [name for name in VERSIONS if any(version == name for version, _ in self._found)]
        rules: Mapping[str, tuple[ConformanceRule, str]] = {
            **{
                rule.id: (rule, "nothing that was said is about it")
                for rule in _PASSIVE
                if rule.id in self.judged
            },
            **{one.rule.id: (one.rule, "no connection came for it") for one in self.played},
        }
        return [
            self._found.get(
                (version, path),
                CaseResult(case=rule, version=version, verdict="untestable", said=why, seconds=0),
            )
            for version in versions or ["0-9-1"]
            for path, (rule, why) in rules.items()
        ]
