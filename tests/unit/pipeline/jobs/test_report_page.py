"""A report as a page: whatever clients call things, it shows them and does nothing else."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest

from amqpgate.pipeline.jobs.graph import Edge, Node, Topology
from amqpgate.pipeline.jobs.report_page import MOST_LETTERS, byte_count, page
from amqpgate.pipeline.jobs.report_parts import (
    MOST_SERIES,
    ByteCount,
    Cell,
    Part,
    Picture,
    Plot,
    Report,
    ReportTable,
    Section,
    Series,
    Word,
)
from amqpgate.pipeline.jobs.report_plots import svg_of

START = datetime(2026, 11, 22, tzinfo=UTC)

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=https://evil.example/x onerror=alert(1)>',
    "'--></style></svg></td></table><h1>",
    "&lt;b&gt; &amp; &#60;",
    "$\\frac{1}{0}$ \\undefined",
    "שלום.עולם",
    "日本語 \U0001f600",
    "\ud800",
    "\u202eevil\u2066",
    "\x00\x1b[31m\r\n",
    "",
)

#: Elements that have no end.
_VOID = frozenset({"input", "meta"})


class Reader(HTMLParser):
    """Sees what a browser would."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def seen(text: str) -> str:
    """Without the places where a line may end."""
    return text.replace("<wbr>", "")


def read(text: str) -> Reader:
    reader = Reader()
    # As it is written to a file.
    reader.feed(seen(text).encode().decode())
    reader.close()
    assert not reader.open
    return reader


def report(*parts: Part) -> Report:
    facts: tuple[tuple[str, Cell], ...] = (("Bytes", ByteCount(1_500_000)), ("Gateways", 2))
    section = Section("Section", "About it.", parts)
    return Report(first=START, last=START + timedelta(hours=1), facts=facts, sections=(section,))


def table(*rows: tuple[Cell, ...], more: int = 0) -> ReportTable:
    heads = tuple(f"head {number}" for number in range(len(rows[0]) if rows else 1))
    return ReportTable(title="A table", heads=heads, rows=rows, more=more, nothing="There is nothing here.")


def plot(*names: str | Word, steps: int = 3) -> Plot:
    times = tuple(START + number * timedelta(minutes=1) for number in range(steps))
    series = tuple(Series(name, tuple(float(step) for step in range(steps))) for name in names)
    return Plot(title="A plot", unit="messages/s", times=times, series=series)


def picture(*names: str) -> Picture:
    edges = [
        Edge(
            kind="publishes",
            source=Node("principal", name, name),
            target=Node("exchange", name, name),
            messages=1,
            keys=(name,),
        )
        for name in names
    ]
    return Picture(Topology(tuple(edges)))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_do_nothing(name: str) -> None:
    """Wherever one stands; the browser is told to do nothing of the kind, too."""
    plain, hostile = (
        read(page(report(table((one, (one, one)), (one, 1)), plot(one), picture(one)), one))
        for one in ("name", name)
    )
    assert hostile.tags == plain.tags
    assert {name for name, _ in hostile.attributes} == {name for name, _ in plain.attributes}
    (policy,) = (value for _, value in hostile.attributes if value.startswith("default-src 'none'; "))
    assert "script-src 'sha256-" in policy
    for attribute, value in hostile.attributes:
        assert not attribute.startswith("on")
        if attribute in ("src", "href", "xlink:href"):
            assert value.startswith("#")
        assert "url(" not in value or "url(#" in value
    for text in hostile.texts:
        assert all(letter.isprintable() or letter in "\n " for letter in text)


def test_names_are_shown_as_they_are() -> None:
    shown = {name for name in HOSTILE if name.isprintable() and name}
    assert len(shown) > 5
    assert set(read(page(report(table(*((name,) for name in shown))), "t")).texts) >= shown
    assert set(read(page(report(plot(*shown)), "t")).texts) >= shown


def test_what_does_not_print_is_marked() -> None:
    text = page(report(table(("\u202eevil\x1b",))), "t")
    assert "<bdi>\ufffdevil\ufffd</bdi>" in text


def test_long_names_are_cut() -> None:
    long = seen(page(report(table(("<" * 4096,)), plot("<" * 4096), picture("<" * 200)), "<" * 4096))
    cut = "&lt;" * (MOST_LETTERS - 1) + "…"
    assert long.count(cut) == 4
    assert "&lt;" * MOST_LETTERS not in long.replace("<title>", "").split("<svg")[0]
    whole = seen(page(report(table(("x" * MOST_LETTERS,))), "t"))
    assert f"<bdi>{'x' * MOST_LETTERS}</bdi>" in whole


def test_a_long_word_may_go_on_in_the_next_line() -> None:
    text = page(report(table((f"exchange.declare {'<' * 21} {'x' * 41}",))), "t")
    words = f"exchange.declare {'&lt;' * 20}<wbr>&lt; {'x' * 20}<wbr>{'x' * 20}<wbr>x"
    assert f"<bdi>{words}</bdi>" in text


def test_cells_of_all_kinds() -> None:
    row: tuple[Cell, ...] = (
        "a",
        Word("(default)"),
        12_345,
        1.25,
        ByteCount(2_000),
        START,
        None,
        ("a", Word("b")),
    )
    text = page(report(table(row)), "t")
    expected = (
        "<td><bdi>a</bdi></td>",
        "<td><i>(default)</i></td>",
        '<td class="n">12,345</td>',
        '<td class="n">1.2</td>',
        '<td class="n">2.0 kB</td>',
        "<td><time><span>2026-11-22</span> 00:00</time></td>",
        "<td></td>",
        "<td><bdi>a</bdi>, <i>b</i></td>",
    )
    assert "".join(expected) in text
    assert text.count('<th scope="col"') == len(row)


def test_how_many_more_there_are() -> None:
    assert "and 1,234 more" in page(report(table(("a",), more=1234)), "t")
    assert "more" not in read(page(report(table(("a",))), "t")).texts


def test_what_is_empty_says_so() -> None:
    text = page(report(table(), plot(), picture()), "t")
    assert "There is nothing here." in text
    assert "Nobody sent anything" in text
    assert "<table>" not in text
    assert "<svg" not in text
    none = page(Report(first=None, last=None, facts=(), sections=()), "Audit report of x")
    assert "There are no records" in none
    read(none)


@pytest.mark.parametrize("steps", [1, 2, 240])
def test_plots_are_svg_of_the_page_s_colors(steps: int) -> None:
    names = [f"{number}" for number in range(MOST_SERIES + 1)]
    text = svg_of(plot(*names, steps=steps))
    root = ET.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    for number in range(1, MOST_SERIES + 2):
        assert f"var(--series-{number})" in text
    assert "currentColor" in text
    assert "#0000" not in text
    assert "metadata" not in text
    assert text == svg_of(plot(*names, steps=steps))


def test_a_plot_of_zeros_has_an_axis() -> None:
    assert "<svg" in svg_of(plot("a", steps=1))


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (2 * 10**15, "2.0 PB"), (10**19, "10,000.0 PB")],
)
def test_bytes(count: int, text: str) -> None:
    assert byte_count(count) == text
