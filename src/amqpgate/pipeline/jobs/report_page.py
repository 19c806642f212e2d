"""A report as one page of HTML: nothing of another host, and no script but the one that draws the graph.

Texts from records are whatever clients chose. They are escaped, kept apart from the direction of the text
around them, cut, and shown without characters that do not print. The page forbids its reader's browser to run
or fetch anything besides (`picture_page`).
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from amqpgate.pipeline.jobs import picture_page
from amqpgate.pipeline.jobs.report_parts import (
    ByteCount,
    Cell,
    Picture,
    Plot,
    Report,
    ReportTable,
    Section,
    Series,
    Word,
)
from amqpgate.pipeline.jobs.report_plots import svg_of

#: Letters of a text that are shown.
MOST_LETTERS: Final = 80

#: As much of a word as stays together: letters, or what is written for one.
_LONG: Final = re.compile(r"(?:&[^;\s]+;|[^\s&]){20}(?=\S)")

_STYLE: Final = """
:root { --head: #f1f4f8; --series-1: #2b6cb0; --series-2: #c05621; --series-3: #2f855a; --series-4: #b83280;
  --series-5: #b7791f; --series-6: #6b46c1; --series-7: #a0aec0 }
@media (prefers-color-scheme: dark) {
  :root { --head: #1f2630; --series-1: #63b3ed; --series-2: #f6ad55; --series-3: #68d391; --series-4: #f687b3;
    --series-5: #ecc94b; --series-6: #b794f4; --series-7: #718096 } }
body { margin: 0 auto; max-width: 1280px; padding: 1rem clamp(.8rem, 3vw, 2rem) }
h1 { font-size: 1.5rem; margin: .5rem 0 } h2 { margin: 2.5rem 0 .25rem; font-size: 1.2rem }
h3, figcaption { font-size: 1rem; font-weight: 600; margin: 1.25rem 0 .25rem }
p { margin: .25rem 0 .5rem; color: var(--soft) } a { color: inherit }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 1rem 0 }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: .75rem; margin: 1rem 0 }
dl > div { background: var(--head); border-radius: 6px; padding: .5rem .75rem }
dt { color: var(--soft); font-size: .85rem } dd { margin: 0; font-size: 1.1rem }
.wide { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px }
table { border-collapse: collapse; width: 100%; font-size: .9rem }
th, td { text-align: start; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top }
th { background: var(--head); white-space: nowrap } tr:last-child td { border-bottom: 0 }
.n { text-align: end; white-space: nowrap }
time span { white-space: nowrap } i { color: var(--soft) }
figure { margin: 0 } .plot svg { display: block; min-width: 620px; width: 100%; height: auto }
ul { list-style: none; display: flex; flex-wrap: wrap; gap: .15rem 1.2rem; padding: 0; margin: .35rem 0;
  font-size: .9rem }
li { overflow-wrap: anywhere } li b { display: inline-block; width: .8em; height: .8em; border-radius: 2px;
  margin-inline-end: .4em }
@media print { .wide { overflow: visible } }
"""


def page(report: Report, title: str) -> str:
    """The whole page."""
    if report.first is None or report.last is None:
        when = "<p>There are no records of the time and virtual host that were asked for.</p>"
    else:
        when = f"<p>{_time(report.first)} to {_time(report.last)}, UTC</p>"
    facts = "".join(
        f"<div><dt>{_own(name)}</dt><dd>{_cell(value)}</dd></div>" for name, value in report.facts
    )
    links = "".join(
        f'<a href="#part-{number}">{_own(section.title)}</a>'
        for number, section in enumerate(report.sections, 1)
    )
    sections = "\n".join(_section(section, number) for number, section in enumerate(report.sections, 1))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{picture_page.policy(styles="'unsafe-inline'")}">
<title>{_text(title)}</title>
<style>{picture_page.style()}{_STYLE}</style></head>
<body>
<header><h1>{_text(title)}</h1>
{when}
<dl>{facts}</dl>
<nav>{links}</nav></header>
<main>
{sections}
</main></body></html>
"""


def _section(section: Section, number: int) -> str:
    parts = "\n".join(map(_part, section.parts))
    return (
        f'<section id="part-{number}"><h2>{_own(section.title)}</h2>\n<p>{_own(section.about)}</p>\n'
        f"{parts}</section>"
    )


def _part(part: ReportTable | Plot | Picture) -> str:
    if isinstance(part, ReportTable):
        return _table(part)
    if isinstance(part, Plot):
        return _plot(part)
    if not part.topology.edges and not part.denied:
        return "<p>Nobody sent anything to anybody.</p>"
    return picture_page.markup(part.topology, part.denied)


def _table(table: ReportTable) -> str:
    title = f"<h3>{_own(table.title)}</h3>"
    if not table.rows:
        return f"{title}\n<p>{_own(table.nothing)}</p>"
    numeric = [all(_is_number(row[column]) for row in table.rows) for column in range(len(table.heads))]
    ends = [' class="n"' if is_number else "" for is_number in numeric]
    heads = "".join(
        f'<th scope="col"{end}>{_own(head)}</th>' for head, end in zip(table.heads, ends, strict=True)
    )
    rows = "\n".join(
        "<tr>"
        + "".join(f"<td{end}>{_cell(cell)}</td>" for cell, end in zip(row, ends, strict=True))
        + "</tr>"
        for row in table.rows
    )
    more = f"\n<p>and {table.more:,} more</p>" if table.more else ""
    return (
        f'{title}\n<div class="wide" {_region(table.title)}><table><thead><tr>{heads}</tr></thead>\n'
        f"<tbody>{rows}</tbody></table></div>{more}"
    )


def _plot(plot: Plot) -> str:
    if not plot.times or not plot.series:
        return f"<h3>{_own(plot.title)}</h3>\n<p>Nothing.</p>"
    drawn = svg_of(plot).replace("<svg", f'<svg role="img" aria-label="{_own(plot.title)}"', 1)
    return (
        f"<figure><figcaption>{_own(plot.title)}</figcaption>\n"
        f'<div class="wide plot" {_region(f"{plot.title}, drawn")}>{drawn}</div>\n'
        f"<ul>{_legend(plot.series)}</ul></figure>"
    )


def _region(title: str) -> str:
    """What may be wider than the screen: the keyboard moves it, too."""
    return f'role="region" tabindex="0" aria-label="{_own(title)}"'


def _legend(series: Sequence[Series]) -> str:
    return "".join(
        f'<li><b style="background: var(--series-{number})"></b>{_cell(one.name)}</li>'
        for number, one in enumerate(series, 1)
    )


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float | Decimal | ByteCount)


def _cell(cell: Cell) -> str:
    match cell:
        case Word(text):
            return f"<i>{_breakable(_own(text))}</i>"
        case str():
            return f"<bdi>{_breakable(_text(cell))}</bdi>"
        case int():
            return f"{cell:,}"
        case float():
            return f"{cell:,.1f}"
        case Decimal():
            return f"{cell:,.2f}"
        case ByteCount(count):
            return byte_count(count)
        case datetime():
            return _time(cell)
        case None:
            return ""
        case _:
            return ", ".join(map(_cell, cell))


def _breakable(markup: str) -> str:
    """The text with places where a word may go on in the next line, if it is long: else it would be broken
    anywhere, or make its column as wide as itself."""
    return _LONG.sub(r"\g<0><wbr>", markup)


def byte_count(count: int) -> str:
    """In the largest unit (SI) of which there is one."""
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{count} B" if unit == "B" else f"{size:,.1f} {unit}"


def _time(time: datetime) -> str:
    # A date is broken nowhere, and a row may have the time in its next line.
    return f"<time>{time.astimezone(UTC):<span>%Y-%m-%d</span> %H:%M}</time>"


def _own(text: str) -> str:
    return html.escape(text)


def _text(text: str) -> str:
    shown = text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…"
    return html.escape("".join(letter if letter.isprintable() else "\ufffd" for letter in shown))
