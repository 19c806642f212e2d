"""A run as one page of HTML that can be mailed: no scripts, and nothing of another host."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from amqpgate import __version__
from amqpgate.conformance.case import KNOWN, VERDICTS, CaseResult, RuleSection
from amqpgate.conformance.report.summary import ConformanceRun, wanted

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1a202c; --soft: #5a6675; --page: #fff; --line: #d5dbe3;
  --head: #f1f4f8; --good: #2f855a; --known: #b7791f; --bad: #c53030; --none: #718096 }
@media (prefers-color-scheme: dark) { :root { --ink: #e2e8f0; --soft: #a0aec0; --page: #14181f;
  --line: #323b48; --head: #1f2630; --good: #68d391; --known: #ecc94b; --bad: #fc8181; --none: #a0aec0 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 0 auto;
  max-width: 1080px; padding: 1rem }
p, .soft { color: var(--soft) }
table { border-collapse: collapse; width: 100%; font-size: .9rem; margin: .5rem 0 1.5rem }
th, td { text-align: start; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere }
.cases { table-layout: fixed } .zero { color: var(--soft) } .wide { overflow-x: auto }
.graph { width: 40% } .name { white-space: nowrap }
.count { text-align: end; white-space: nowrap; font-variant-numeric: tabular-nums }
dl { display: grid; grid-template-columns: max-content auto; gap: 0 1rem; font-size: .9rem }
dd { margin: 0; color: var(--soft) }
th { background: var(--head) } summary { cursor: pointer; font-weight: 600 }
.obeys { color: var(--good) } .as-RabbitMQ, .as-Qpid { color: var(--known) } .deviates { color: var(--bad) }
.untestable { color: var(--none) } .bar { display: flex; height: .8rem; border-radius: 4px; overflow: hidden }
.bar i { background: currentColor }
@media (max-width: 40rem) {
  h1 { font-size: 1.4rem; overflow-wrap: anywhere } .graph { display: none }
  .wide th, .wide td { padding: .3rem .25rem; font-size: .8rem }
  .cases, .cases tbody, .cases tr, .cases td { display: block } .cases tr:first-child, col { display: none }
  .cases tr { padding: .4rem 0; border-bottom: 1px solid var(--line) }
  .cases td { padding: .1rem 0; border: 0 }
  .cases td[data-is]::before { content: attr(data-is) ": "; color: var(--soft) } }
"""

#: What a verdict says of the peer, for readers who have not asked for the report.
_MEANINGS: Final = {
    "obeys": "it does what the rule says",
    "as RabbitMQ": "it does otherwise, as RabbitMQ is known to; clients are written for that",
    "as Qpid": "it does otherwise, as Qpid's broker is known to",
    "deviates": "it does otherwise; of a must, that breaks the specification",
    "untestable": "it does not offer what the rule is about, or does not speak the version",
}

#: Widths of the columns of cases.
_COLUMNS: Final = "".join(f"<col style='width:{width}'>" for width in ("5.5rem", "27%", "27%", "auto", "18%"))

#: What the reader's browser may do for the page.
_ALLOWED: Final = "default-src 'none'; style-src 'unsafe-inline'"


def page(run: ConformanceRun, sections: Iterable[RuleSection], *, strict: bool) -> str:
    """The whole page: counts, what is not obeyed, and all cases by section."""
    return "\n".join(_parts(run, sections, strict=strict)) + "\n"


def _parts(run: ConformanceRun, sections: Iterable[RuleSection], *, strict: bool) -> Iterator[str]:
    title = f"AMQP conformance of {_text(run.address)}"
    yield "<!doctype html><html lang='en'><meta charset='utf-8'>"
    yield f'<meta http-equiv="Content-Security-Policy" content="{_ALLOWED}">'
    yield "<meta name='viewport' content='width=device-width'>"
    yield f"<title>{title}</title><style>{_STYLE}</style><h1>{title}</h1>"
    yield (
        f"<p>{_text(run.product)}; {run.size} in {run.seconds:.1f} s; "
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC; amqpgate {__version__}</p>"
    )
    yield (
        "<p>Each case is one rule of the specification, and a short conversation about it. Below its name "
        "stands the section, of the specification of that version. <code>amqpgate conformance</code> (from "
        "<code>pip install amqpgate</code>) plays one again with <code>--section NAME</code>.</p>"
    )
    seen = {one.verdict for one in run.results} | {"obeys", "deviates"}
    verdicts = [verdict for verdict in VERDICTS if verdict in seen]
    yield (
        "<div class='wide'><table><tr><th>version"
        + "".join(f"<th class='count'>{one}" for one in verdicts)
        + "<th class='graph'></tr>"
    )
    for version, counts in run.counts().items():
        cells = "".join(_count(counts[verdict]) for verdict in verdicts)
        bar = "".join(
            f"<i class='{_class(verdict)}' style='flex:{counts[verdict]}'></i>" for verdict in verdicts
        )
        yield f"<tr><td class='name'>AMQP {version}{cells}<td class='graph'><div class='bar'>{bar}</div></tr>"
    yield f"</table></div><p>{_counting(len(run.failed(strict=strict)), strict=strict)}</p><dl>"
    for verdict in verdicts:
        yield f"<dt class='{_class(verdict)}'>{verdict}<dd>{_MEANINGS[verdict]}"
    yield "</dl>"
    for verdict in ("deviates", *KNOWN, "untestable"):
        found = [one for one in run.results if one.verdict == verdict]
        if found:
            yield f"<h2 class='{_class(verdict)}'>{verdict}: {len(found)}</h2>"
            # What must be comes before what should be.
            yield from _table(sorted(found, key=lambda one: one.case.strength != "must"))
    yield "<h2>All cases</h2>"
    for section in sections:
        mine = {id(case) for case in section.cases}
        found = [one for one in run.results if id(one.case) in mine]
        if found:
            yield f"<details><summary>{_text(section.title)}: {len(found)}</summary>"
            yield from _table(found)
            yield "</details>"
    yield "</html>"


def _table(results: Iterable[CaseResult]) -> Iterator[str]:
    yield f"<table class='cases'>{_COLUMNS}<tr><th>version<th>rule<th>asks for<th>seen<th>allowed</tr>"
    for one in results:
        case = one.case
        yield (
            f"<tr><td>{one.version}<td><code>{_text(case.id).replace('.', '.<wbr>')}</code><br>"
            f"<span class='soft'>{_text(case.section)}, {case.strength}</span>"
            f"<td>{_text(case.title)}<td data-is='seen' class='{_class(one.verdict)}'>{_text(one.said)}"
            f"<td data-is='allowed'>{_text(wanted(one))}</tr>"
        )
    yield "</table>"


def _counting(failed: int, *, strict: bool) -> str:
    """What the numbers come to."""
    said = f"{failed} count" if failed else "Nothing counts"
    if strict:
        return f"{said} against it, with a should and what is known of a broker counted, too."
    return f"{said} against it: a deviation from a must does."


def _count(number: int) -> str:
    return f"<td class='count{'' if number else ' zero'}'>{number}"


def _class(verdict: str) -> str:
    return verdict.replace(" ", "-")


def _text(said: str) -> str:
    """What a peer says may be anything."""
    return html.escape("".join(letter if letter.isprintable() else "?" for letter in said))
