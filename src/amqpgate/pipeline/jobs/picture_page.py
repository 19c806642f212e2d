"""The graph in a file of HTML, drawn by the scripts of the admin page, which stand in the file itself.

The file asks no other host and no other file. Its policy (W3C, Content Security Policy Level 3) allows the
one script whose digest it has, and no text to become markup: names come from clients. They stand in a block
of JSON without a letter that markup knows, and in a table of escaped text, for whoever has no scripts.

The file is bounded: so many edges, so many bytes of them, so many rows. What is left out is counted.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Final, TypeAlias

from amqpgate.pipeline.jobs.graph import DeniedEdge, Edge, Node, Topology

#: Edges of each sort in the file, those with the most messages; bytes of them; rows of the first table.
MOST_EDGES: Final = 5_000
MOST_BYTES: Final = 4 << 20
MOST_ROWS: Final = 200

_JSON: TypeAlias = "dict[str, object]"

#: Modules of the page, those first that others import.
_MODULES: Final = ("dom", "picture", "drawing")
_IMPORT: Final = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:const|class|function) (\w+))", re.MULTILINE)

#: As JSON says letters that end a script, or a line of one.
_MARKUP: Final = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&'\u2028\u2029"}

_STYLE: Final = """
.line { display: flex; flex-wrap: wrap; align-items: baseline; gap: .2rem .6rem }
.empty { padding: .4rem 0 }
"""
_BUTTONS: Final = "\n".join(
    f'<button type="button" class="plain small" id="graph-{name}"{label} title="{title}">{shown}</button>'
    for name, label, title, shown in (
        ("farther", ' aria-label="Farther"', "Farther (-)", "&minus;"),
        ("whole", "", "All of it (0)", "Whole"),
        ("closer", ' aria-label="Closer"', "Closer (+)", "+"),
    )
)
_PAGE_STYLE: Final = """
body { max-width: 1280px; margin: 0 auto; padding: 1rem clamp(.8rem, 3vw, 2rem) 3rem }
h1 { font-size: 1.35rem; margin-bottom: .6rem; overflow-wrap: anywhere }
"""


def policy(*, styles: str) -> str:
    """What a file with this script, and with these styles, may do."""
    return (
        f"default-src 'none'; script-src '{_digest(script())}'; style-src {styles}; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _digest(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def style() -> str:
    """What the admin page and the file look like."""
    return _page_file("look.css") + _STYLE


def script() -> str:
    """The page's modules, each in a function of its own, and what draws with them."""
    parts = [f"modules.{name} = (() => {{\n{_body(_page_file(f'{name}.js'))}}})();" for name in _MODULES]
    main, _ = _inlined(files("amqpgate.pipeline.jobs").joinpath("written.js").read_text("utf-8"))
    return "\n".join(['"use strict";', "(() => {", "const modules = {};", *parts, main, "})();"])


def _page_file(name: str) -> str:
    # The pipeline does not import the admin interface; this is a file.
    return files("amqpgate").joinpath("admin", "page", name).read_text("utf-8")


def _body(module: str) -> str:
    text, exports = _inlined(module)
    return f"{text}return {{ {', '.join(exports)} }};\n"


def _inlined(module: str) -> tuple[str, list[str]]:
    exports = _EXPORT.findall(module)
    return _EXPORT.sub("", _IMPORT.sub(r"const \1 = modules.\2;", module)), exports


def page(topology: Topology, denied: Sequence[DeniedEdge], title: str) -> str:
    """One file with the graph alone."""
    styles = style() + _PAGE_STYLE
    allowed = policy(styles=f"'{_digest(styles)}'")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{allowed}">
<title>{_text(title)}</title>
<style>{styles}</style></head>
<body><main>
<h1>{_text(title)}</h1>
{markup(topology, denied)}
</main></body></html>
"""


def markup(topology: Topology, denied: Sequence[DeniedEdge]) -> str:
    """The graph as a part of a page that has `style` and `policy`, once."""
    edges = sorted(topology.edges, key=lambda edge: (-edge.messages, edge.kind, edge.source, edge.target))
    told, left_out = _bounded(edges, denied, topology.seconds)
    data = {"edges": told, "left_out": left_out + topology.left_out}
    return f"""<form id="graph-form" class="filters" autocomplete="off" hidden>
<label>Vhost <select name="vhost"><option value="">all</option></select></label>
<label>Containing <input name="text" type="search" placeholder="name or key"></label>
<label>Messages <select name="numbers">
<option value="rates">per second</option>
<option value="sums">in all</option>
</select></label>
<span class="line">{_BUTTONS}</span>
</form>
<p class="hint" id="graph-count" role="status"></p>
<p class="hint">{_about(topology)}</p>
<noscript><p class="hint">The picture needs JavaScript; the table has the same.</p></noscript>
<div class="card flush picture" id="picture" tabindex="0" role="region" aria-label="Picture of the graph"
 hidden></div>
<details class="card flush"><summary>As a table</summary>
<table id="graph-table">{_table(told)}</table></details>
<script type="application/json" id="graph-data">{_quoted(data)}</script>
<script>{script()}</script>"""


def _about(topology: Topology) -> str:
    when = ""
    if topology.first is not None and topology.last is not None:
        when = (
            f"Rates are means from {topology.first:%Y-%m-%d %H:%M} to {topology.last:%Y-%m-%d %H:%M}, UTC. "
        )
    return (
        f"{when}An asterisk stands for ids in names; dashed is what was declared and not seen to be used, "
        "red what was denied."
    )


def _bounded(
    edges: Sequence[Edge], denied: Sequence[DeniedEdge], seconds: float | None
) -> tuple[list[_JSON], int]:
    """What was denied first, then those with the most messages; and how many there was no room for."""
    told: list[_JSON] = []
    left, room = 0, MOST_BYTES
    for number, one in _numbered(denied, edges):
        row = _denied(one) if isinstance(one, DeniedEdge) else _edge(one, seconds)
        # Of what was denied half the room, so that names that somebody makes up leave some.
        size = len(_quoted(row))
        if number >= MOST_EDGES or size > room - (MOST_BYTES // 2 if isinstance(one, DeniedEdge) else 0):
            left += 1
        else:
            room -= size
            told.append(row)
    return told, left


def _numbered(denied: Iterable[DeniedEdge], edges: Iterable[Edge]) -> Iterator[tuple[int, DeniedEdge | Edge]]:
    yield from enumerate(denied)
    yield from enumerate(edges)


def _node(node: Node) -> _JSON:
    return {"kind": node.kind, "name": node.name}


def _edge(edge: Edge, seconds: float | None) -> _JSON:
    rate = None if seconds is None else edge.messages / seconds
    return {
        "kind": edge.kind,
        "vhost": edge.source.vhost,
        "source": _node(edge.source),
        "target": _node(edge.target),
        "messages": edge.messages,
        "bytes": edge.bytes,
        "rate": rate,
        "keys": list(edge.keys),
        "upstream_users": [],
    }


def _denied(edge: DeniedEdge) -> _JSON:
    return {
        "kind": "denied",
        "vhost": edge.source.vhost,
        "source": _node(edge.source),
        "target": _node(edge.target),
        "messages": 0,
        "bytes": 0,
        "rate": None,
        "keys": list(edge.keys),
        "upstream_users": [],
        "denied": edge.times,
        "rule": edge.by,
    }


def _quoted(data: _JSON) -> str:
    """JSON without a letter that markup knows, nor half a letter."""
    return json.dumps(data, separators=(",", ":")).translate(_MARKUP)


def _table(told: Sequence[_JSON]) -> str:
    """Rows for who has no scripts."""
    rows = "\n".join(
        f"<tr><td>{_name(row['source'])}</td><td>{row['kind']}</td><td>{_name(row['target'])}</td>"
        f"<td>{_text(str(row['vhost']))}</td><td class=n>{row['messages']:,}</td>"
        f"<td class=n>{row.get('denied', 0):,}</td></tr>"
        for row in told[:MOST_ROWS]
    )
    more = len(told) - MOST_ROWS
    rest = f'<tr><td colspan="6">and {more:,} more</td></tr>' if more > 0 else ""
    heads = "".join(
        f'<th scope="col"{end}>{head}</th>'
        for head, end in (
            *((head, "") for head in ("From", "Does", "To", "Vhost")),
            *((head, " class=n") for head in ("Messages", "Denied")),
        )
    )
    return f"<thead><tr>{heads}</tr></thead>\n<tbody>{rows}{rest}</tbody>"


def _name(node: object) -> str:
    assert isinstance(node, dict)
    return f"{node['kind']} <bdi>{_text(node['name'] or '(default)')}</bdi>"


def _text(text: str) -> str:
    return html.escape("".join(letter if letter.isprintable() else "\ufffd" for letter in text))
