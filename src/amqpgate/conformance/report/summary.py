"""Counts and the verdict of a whole run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from amqpgate.conformance.case import KNOWN, VERDICTS, CaseResult, Verdict
from amqpgate.conformance.versions import Name

#: A reply code as a pattern has it.
_CODE: Final = re.compile("[0-9]{2}[0-9?]")


@attrs.frozen
class ConformanceRun:
    """A run, and who was tested."""

    #: ``host:port``.
    address: str
    #: As the peer names itself: product and version.
    product: str
    results: Sequence[CaseResult]
    seconds: float

    @property
    def size(self) -> str:
        """How many cases, in words."""
        return "1 case" if len(self.results) == 1 else f"{len(self.results)} cases"

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
    """What the rule allows, in words: of an answer with several codes all at once, and 50x for 500 to 509."""
    answers: dict[str, list[str]] = {}
    for pattern in result.case.obeys:
        answer, _, code = pattern.rpartition(" ")
        if answer and _CODE.fullmatch(code):
            answers.setdefault(answer, []).append(code.replace("?", "x"))
        else:
            answers.setdefault(pattern.replace(" *", " of any kind"), [])
    return ", or ".join(f"{answer} {_one_of(codes)}".rstrip() for answer, codes in answers.items())


def _one_of(codes: Sequence[str]) -> str:
    *others, last = sorted(codes) or [""]
    return f"{', '.join(others)} or {last}" if others else last
