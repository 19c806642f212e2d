"""The file with the graph: one script that it allows, and names that are nothing but names."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest

from amqpgate.pipeline.jobs import picture_page
from amqpgate.pipeline.jobs.graph import DeniedEdge, Edge, Node, Topology
from amqpgate.pipeline.jobs.picture_page import markup, page, script, style

NOW = datetime(2026, 11, 22, tzinfo=UTC)

HOSTILE = (
    "<script>window.ran=1</script>",
    "</script><img src=x onerror=window.ran=1>",
    "<!--<script>",
    "]]>'\"&lt;",
    "\u202eevil\u2066",
    "\u2028\u2029",
    "\ud800",
    "\x00\xff" * 120,
)


def told(*names: str, messages: int = 7200) -> Topology:
    edges = [
        Edge(
            kind="publishes",
            source=Node("principal", name, name),
            target=Node("exchange", name, name),
            messages=messages - at,
            keys=(name,),
        )
        for at, name in enumerate(names)
    ]
    return Topology(tuple(edges), first=NOW - timedelta(hours=1), last=NOW)


def denied(*names: str) -> tuple[DeniedEdge, ...]:
    return tuple(
        DeniedEdge(
            source=Node("principal", name, name),
            target=Node("queue", name, name),
            times=2,
            by=name,
            last=NOW,
            keys=(name,),
        )
        for name in names
    )


class Reader(HTMLParser):
    """The elements, and what stands in those whose text is not markup."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.raw: list[tuple[str, str]] = []
        # As it is written to a file.
        self.feed(text.encode().decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] in ("script", "style") and data.strip():
            self.raw.append((self.tags[-1], data))

    @property
    def data(self) -> str:
        (text,) = (text for _, text in self.raw if text.startswith("{"))
        return text

    @property
    def edges(self) -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads(self.data)["edges"]
        return found


def test_names_do_nothing() -> None:
    plain = Reader(page(told("a"), denied("a"), "t"))
    for name in HOSTILE:
        hostile = Reader(page(told(name), denied(name), name))
        assert hostile.tags == plain.tags, name
        assert [name for name, _ in hostile.attributes] == [name for name, _ in plain.attributes]
        # They are there, whole.
        refused, passed = hostile.edges
        assert refused["source"] == passed["source"] == {"kind": "principal", "name": name}
        assert (refused["rule"], refused["denied"], passed["keys"]) == (name, 2, [name])
        assert passed["rate"] == 2.0


def test_the_file_allows_its_own_script_and_nothing_else() -> None:
    reader = Reader(page(told("a"), (), "t"))
    (policy,) = (value for _, value in reader.attributes if value and value.startswith("default-src"))
    for kind, content in (("script", script()), ("style", next(text for _, text in reader.raw))):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert ("script", script()) in reader.raw
    assert "default-src 'none'; " in policy
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy
    assert not {"src", "href", "style"} & {name for name, _ in reader.attributes}


def test_the_scripts_are_those_of_the_page() -> None:
    text = script()
    for name in ("dom", "picture", "drawing"):
        for line in picture_page._page_file(f"{name}.js").splitlines():
            assert line.startswith("import ") or line.removeprefix("export ") in text
    assert not re.search(r"^\s*(import|export) ", text, re.MULTILINE)
    assert not re.search(r"</|<!--|innerHTML|\beval\(|fetch\(", text)
    there = set(re.findall(r'\bid="([^"]+)"', markup(told("a"), ())))
    assert set(re.findall(r'byId\("([^"]+)"\)', text)) <= there
    assert "url(" not in style()
    assert "@import" not in style()


def test_a_large_graph_is_told_in_part_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"name-{number}" for number in range(10)]
    monkeypatch.setattr(picture_page, "MOST_EDGES", 4)
    monkeypatch.setattr(picture_page, "MOST_ROWS", 5)
    reader = Reader(text := page(told(*names), denied(*names), "t"))
    edges = reader.edges
    assert [edge["kind"] for edge in edges] == ["denied"] * 4 + ["publishes"] * 4
    # Those with the most messages.
    assert [edge["messages"] for edge in edges[4:]] == [7200, 7199, 7198, 7197]
    assert json.loads(reader.data)["left_out"] == 12
    assert "and 3 more" in text


def test_names_of_denials_leave_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_page, "MOST_BYTES", 8000)
    reader = Reader(page(told("a", "b"), denied(*(f"{number}" * 255 for number in range(10))), "t"))
    kinds = [edge["kind"] for edge in reader.edges]
    assert 0 < kinds.count("denied") < 10
    assert kinds[-2:] == ["publishes"] * 2
    assert json.loads(reader.data)["left_out"] == 10 - kinds.count("denied")
    assert len(reader.data) < 9000


def test_without_scripts_there_is_a_table() -> None:
    text = markup(told("orders"), denied("refunds"))
    assert "<td>principal <bdi>orders</bdi></td><td>publishes</td><td>exchange <bdi>orders</bdi></td>" in text
    assert "<td class=n>2</td></tr>" in text
    assert '<form id="graph-form" class="filters" autocomplete="off" hidden>' in text


def test_rates_are_those_of_the_time_with_messages() -> None:
    assert "from 2026-11-21 23:00 to 2026-11-22 00:00, UTC" in markup(told("a"), ())
    none = Topology(())
    assert (none.seconds, Topology((), first=NOW, last=NOW).seconds) == (None, 1.0)
    assert "Rates" not in markup(none, ())
