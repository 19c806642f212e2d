"""A run as text, as JSON, and as one page of HTML that can be mailed: no scripts, nothing of another host."""

from __future__ import annotations

import html
import json
import time
from collections.abc import Iterator, Sequence

import attrs

from .checker import ANOMALIES, FORGIVEN
from .outcome import FaultRun, Outcome, by_fault
from .picture import picture

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a202c; background: #fff; margin: 0 auto;
  max-width: 1100px; padding: 1rem }
h2 { margin: 2.2rem 0 .4rem } .soft { color: #5a6675 } .good { color: #2f855a } .bad { color: #c53030 }
table { border-collapse: collapse; width: 100%; font-size: .86rem; margin: .5rem 0 1.2rem }
th, td { text-align: left; padding: .25rem .5rem; border-bottom: 1px solid #d5dbe3; vertical-align: top }
td.n, th.n { text-align: right; white-space: nowrap } th { background: #f1f4f8 }
svg { width: 100%; height: auto }
pre { white-space: pre-wrap; font-size: .8rem; background: #fdf2f2; padding: .5rem }
summary { cursor: pointer; font-weight: 600 }
"""
_ALLOWED = "default-src 'none'; style-src 'unsafe-inline'"


def summary(outcome: Outcome) -> str:
    """A few lines."""
    verdict = outcome.verdict
    found = ", ".join(f"{verdict.anomalies[what]} {what}" for what in ANOMALIES if verdict.anomalies[what])
    lines = [
        f"  {outcome.setup}: {'good' if outcome.is_good else 'NOT GOOD'}; {outcome.settled:,} confirmed or "
        f"committed, {verdict.delivered:,} delivered ({verdict.redelivered:,} marked), "
        f"{len(outcome.faults)} faults, cut off {sum(outcome.ends.values())} times; "
        f"anomalies: {found or 'none'}",
        *(f"    {what}: {', '.join(names[:5])}" for what, names in verdict.named.items()),
        *(f"    {problem}" for problem in outcome.problems),
    ]
    return "\n".join(lines)


def written(outcomes: Sequence[Outcome]) -> str:
    """As JSON."""
    told = [attrs.asdict(outcome) | {"is_good": outcome.is_good} for outcome in outcomes]
    return json.dumps(told, indent=1)


def page(outcomes: Sequence[Outcome]) -> str:
    return "\n".join(_parts(outcomes)) + "\n"


def _parts(outcomes: Sequence[Outcome]) -> Iterator[str]:
    good = all(outcome.is_good for outcome in outcomes)
    settled = sum(outcome.settled for outcome in outcomes)
    faults = sum(len(outcome.faults) for outcome in outcomes)
    begin = time.strftime("%Y-%m-%d %H:%M", time.gmtime(outcomes[0].begin))
    yield "<!doctype html><html lang='en'><meta charset='utf-8'>"
    yield f'<meta http-equiv="Content-Security-Policy" content="{_ALLOWED}">'
    yield f"<meta name='viewport' content='width=device-width'><title>Chaos, {begin}</title>"
    yield f"<style>{_STYLE}</style><h1>Chaos: <span class='{_class(good)}'>{_word(good)}</span></h1>"
    yield (
        f"<p>{settled:,} messages confirmed or committed under {faults} faults, {begin} UTC, seed "
        f"{outcomes[0].seed}.</p>"
    )
    yield from _verdicts(outcomes)
    yield from _matrix(outcomes)
    for outcome in outcomes:
        yield from _setup(outcome)
    yield "</html>"


def _class(is_good: bool) -> str:
    return "good" if is_good else "bad"


def _word(is_good: bool) -> str:
    return "nothing wrong" if is_good else "something is wrong"


def _verdicts(outcomes: Sequence[Outcome]) -> Iterator[str]:
    heads = ("confirmed", "committed", "delivered", "marked as redelivered", "denied", "rolled back")
    yield "<table><tr><th>set-up<th class=n>minutes" + "".join(f"<th class=n>{head}" for head in heads)
    yield "<th class=n>faults<th>anomalies</tr>"
    for outcome in outcomes:
        one = outcome.verdict
        counts = (
            one.confirmed,
            one.committed,
            one.delivered,
            one.redelivered,
            one.forbidden,
            one.rolled_back,
        )
        found = [f"{one.anomalies[what]:,} {what}" for what in ANOMALIES if one.anomalies[what]]
        found += [f"{len(outcome.problems)} problems"] if outcome.problems else []
        yield (
            f"<tr><td>{html.escape(outcome.setup)}<td class=n>{(outcome.end - outcome.begin) / 60:.1f}"
            + "".join(f"<td class=n>{count:,}" for count in counts)
            + f"<td class=n>{len(outcome.faults)}<td class='{_class(outcome.is_good)}'>"
            + (", ".join(found) or "none")
            + "</tr>"
        )
    yield "</table>"
    if any(outcome.verdict.anomalies[what] for outcome in outcomes for what in FORGIVEN):
        yield "<p class=soft>What happens over a kill of a node is RabbitMQ's own: so it is directly.</p>"


def _matrix(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield "<h2>What clients waited for</h2><p class=soft>The longest time of one client between two confirms "
    yield "/ two deliveries that a fault lies in, in seconds; how often it was played. How long the fault "
    yield "itself lasts is part of it.</p>"
    yield (
        "<table><tr><th>fault"
        + "".join(f"<th class=n>{html.escape(one.setup)}" for one in outcomes)
        + "</tr>"
    )
    quiet = "".join(f"<td class=n>{one.quiet[0]:.1f} / {one.quiet[1]:.1f}" for one in outcomes)
    yield f"<tr><td class=soft>none{quiet}</tr>"
    for name, runs in by_fault(outcomes).items():
        cells = (_cell([run for its, run in runs if its is one]) for one in outcomes)
        yield f"<tr><td>{name}" + "".join(f"<td class=n>{cell}" for cell in cells) + "</tr>"
    yield "</table>"


def _cell(runs: Sequence[FaultRun]) -> str:
    if not runs:
        return ""
    confirm = max(run.confirm_stall for run in runs)
    delivery = max(run.delivery_stall for run in runs)
    return f"{confirm:.1f} / {delivery:.1f} <span class=soft>{len(runs)}x</span>"


def _setup(outcome: Outcome) -> Iterator[str]:
    yield f"<h2>{html.escape(outcome.setup)}: <span class='{_class(outcome.is_good)}'>"
    yield f"{_word(outcome.is_good)}</span></h2>"
    yield picture(outcome)
    for what, names in outcome.verdict.named.items():
        count = outcome.verdict.anomalies[what]
        yield f"<p><b>{count:,} {what}</b>: {html.escape(', '.join(names))}</p>"
    for problem in outcome.problems:
        yield f"<pre>{html.escape(problem)}</pre>"
    ends = ", ".join(
        f"{count} by {code}" if code else f"{count} unsaid" for code, count in outcome.ends.items()
    )
    yield f"<p class=soft>Clients were cut off {sum(outcome.ends.values())} times: {ends or 'never'}.</p>"
    yield "<details><summary>Every fault</summary><table><tr><th class=n>at<th>fault<th class=n>lasted"
    yield "<th class=n>confirms waited<th class=n>deliveries waited<th></tr>"
    for run in outcome.faults:
        yield (
            f"<tr><td class=n>{run.begin - outcome.begin:.0f} s<td>{run.name}<td class=n>"
            f"{run.end - run.begin:.1f} s<td class=n>{run.confirm_stall:.1f} s<td class=n>"
            f"{run.delivery_stall:.1f} s<td>{html.escape(run.detail)}"
            f"<span class=bad>{html.escape(run.problem[:200])}</span></tr>"
        )
    yield "</table></details>"
