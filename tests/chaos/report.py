"""A run as text, as JSON, and as one page of HTML."""

from __future__ import annotations

import json
from collections.abc import Sequence

import attrs

from .checker import ANOMALIES
from .outcome import Outcome


def summary(outcome: Outcome) -> str:
    verdict = outcome.verdict
    found = ", ".join(f"{verdict.anomalies[what]} {what}" for what in ANOMALIES if verdict.anomalies[what])
    lines = [
        f"  {outcome.setup}: {'good' if outcome.is_good else 'NOT GOOD'}; {outcome.settled:,} confirmed or committed, "
        f"{verdict.delivered:,} delivered ({verdict.redelivered:,} redelivered), {len(outcome.faults)} faults, "
        f"cut off {dict(outcome.ends)}; anomalies: {found or 'none'}",
        *(f"    {what}: {', '.join(names[:5])}" for what, names in verdict.named.items()),
        *(f"    {problem}" for problem in outcome.problems),
    ]
    return "\n".join(lines)


def written(outcomes: Sequence[Outcome]) -> str:
    return json.dumps([attrs.asdict(outcome) | {"is_good": outcome.is_good} for outcome in outcomes], indent=1)


def page(outcomes: Sequence[Outcome]) -> str:
    return ""
