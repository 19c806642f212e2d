"""Counts and the verdict of a whole run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import attrs

from amqpgate.conformance.case import KNOWN, VERDICTS, CaseResult, Verdict
from amqpgate.conformance.versions import Name


@attrs.frozen
class ConformanceRun:
    """A run, and who was tested."""

    #: ``host:port``.
    address: str
    #: As the peer names itself: product and version.
    product: str
    results: Sequence[CaseResult]
    seconds: float

    def counts(self) -> dict[Name, dict[Verdict, int]]:
        """How many of each verdict, by version."""
        counted: Counter[tuple[Name, Verdict]] = Counter((one.version, one.verdict) for one in self.results)
        versions = dict.fromkeys(one.version for one in self.results)
        return {version: {verdict: counted[version, verdict] for verdict in VERDICTS} for version in versions}

    def failed(self, *, strict: bool) -> list[CaseResult]:
        """The results that count against the peer.

        A deviation from a *must* does; with ``strict`` one from a *should*, and one that is known, too.
        """
        return [one for one in self.results if _counts(one, strict=strict)]


def _counts(result: CaseResult, *, strict: bool) -> bool:
    if result.verdict == "deviates":
        return strict or result.case.strength == "must"
    return strict and result.verdict in KNOWN


def not_obeyed(results: Iterable[CaseResult]) -> list[CaseResult]:
    """Those to tell of."""
    return [one for one in results if one.verdict != "obeys"]


def wanted(result: CaseResult) -> str:
    """What the rule allows, in words."""
    return " or ".join(result.case.obeys)
