"""The graph as a picture: Mermaid for documents, and a page of HTML with an SVG that needs nothing else.

Both are for people: of a large graph the edges with the most messages are drawn, and how many are not is
said.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

import attrs

from amqpgate.pipeline.jobs.graph import Edge, Node, Topology

#: Edges in a picture.
MAX_EDGES = 200

_SHAPES = {"principal": ('(["', '"])'), "exchange": ('{{"', '"}}'), "queue": ('[("', '")]')}
_COLORS = {"principal": "#2b6cb0", "exchange": "#b7791f", "queue": "#2f855a"}

_WIDTH, _HEIGHT, _GAP, _ROW, _TOP = 220, 26, 150, 40, 64


def chosen(topology: Topology) -> tuple[list[Edge], int]:
    """The edges to draw, and how many are left out."""
    edges = sorted(topology.edges, key=lambda edge: (-edge.messages, edge.kind, edge.source, edge.target))
    return edges[:MAX_EDGES], max(0, len(edges) - MAX_EDGES) + topology.left_out


def mermaid(topology: Topology) -> str:
    """A flow chart in Mermaid's language."""
    edges, left_out = chosen(topology)
    nodes = sorted({node for edge in edges for node in (edge.source, edge.target)})
    ids = {node: f"n{number}" for number, node in enumerate(nodes)}
    lines = ["flowchart LR"]
    for node in nodes:
        begin, end = _SHAPES[node.kind]
        lines.append(f"  {ids[node]}{begin}{_mermaid_text(_label(node))}{end}")
    for edge in edges:
        arrow = "-->" if edge.messages else "-.->"
        lines.append(f'  {ids[edge.source]} {arrow}|"{_mermaid_text(_said(edge))}"| {ids[edge.target]}')
    if left_out:
        lines.append(f"  %% {left_out} edges with fewer messages are left out")
    return "\n".join(lines) + "\n"


def _label(node: Node) -> str:
    return f"{node.name or '(default)'} @ {node.vhost}"


def _said(edge: Edge) -> str:
    return f"{edge.kind} {edge.messages:,}" if edge.messages else edge.kind


def _mermaid_text(text: str) -> str:
    """Everything that is not plain stands as its number: clients choose names."""
    return "".join(
        letter if letter.isalnum() or letter in " ._-@,()" else f"#{ord(letter)};" for letter in text
    )


@attrs.frozen
class _Box:
    x: float
    y: float


def svg(topology: Topology) -> str:
    """Publishers, exchanges, queues and readers from left to right."""
    edges, left_out = chosen(topology)
    columns = _columns(edges)
    boxes: dict[tuple[Node, int], _Box] = {}
    for number, nodes in enumerate(columns):
        for row, node in enumerate(nodes):
            boxes[node, number] = _Box(20 + number * (_WIDTH + _GAP), _TOP + row * _ROW)
    width = 40 + len(columns) * _WIDTH + (len(columns) - 1) * _GAP
    height = _TOP + max(map(len, columns), default=0) * _ROW + 40
    most = max((edge.messages for edge in edges), default=0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="12" role="img">'
    ]
    for number, title in enumerate(("publishers", "exchanges", "queues", "readers")):
        parts.append(f'<text x="{20 + number * (_WIDTH + _GAP)}" y="36" font-weight="bold">{title}</text>')
    for edge in edges:
        parts.append(_line(edge, boxes, most))
    for (node, _), box in boxes.items():
        parts.append(_drawn(node, box))
    if left_out:
        parts.append(
            f'<text x="20" y="{height - 14}">{left_out} edges with fewer messages are left out</text>'
        )
    return "\n".join([*parts, "</svg>"])


def _columns(edges: Sequence[Edge]) -> list[list[Node]]:
    """A principal that both sends and gets stands on either side."""
    senders = {edge.source for edge in edges if edge.source.kind == "principal"}
    readers = {edge.target for edge in edges if edge.target.kind == "principal"}
    nodes = {node for edge in edges for node in (edge.source, edge.target)}
    exchanges = {node for node in nodes if node.kind == "exchange"}
    queues = {node for node in nodes if node.kind == "queue"}
    return [sorted(column) for column in (senders, exchanges, queues, readers)]


_COLUMN = {"exchange": 1, "queue": 2}


def _line(edge: Edge, boxes: dict[tuple[Node, int], _Box], most: int) -> str:
    source = boxes[edge.source, _COLUMN.get(edge.source.kind, 0)]
    target = boxes[edge.target, _COLUMN.get(edge.target.kind, 3)]
    start, end = source.x + _WIDTH, target.x
    if target.x <= source.x:
        # Backward, or within one column: around on the right-hand side.
        end = target.x + _WIDTH
    y, other = source.y + _HEIGHT / 2, target.y + _HEIGHT / 2
    bend = max(50.0, abs(end - start) / 2)
    control = end + bend if target.x <= source.x else end - bend
    thick = 1 + (4 * math.log1p(edge.messages) / math.log1p(most) if edge.messages else 0)
    dashed = "" if edge.messages else ' stroke-dasharray="4 3"'
    keys = f"; keys {' '.join(edge.keys)}" if edge.keys else ""
    title = f"{edge.source} {_said(edge)} to {edge.target}{keys}"
    return (
        f'<path d="M{start:g} {y:g} C{start + bend:g} {y:g} {control:g} {other:g} {end:g} {other:g}" '
        f'fill="none" stroke="#718096" stroke-opacity=".7" stroke-width="{thick:.1f}"{dashed}>'
        f"<title>{_text(title)}</title></path>"
    )


def _drawn(node: Node, box: _Box) -> str:
    label = _label(node)
    shown = label if len(label) <= 32 else label[:31] + "…"
    return (
        f'<g><rect x="{box.x:g}" y="{box.y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="5" '
        f'fill="{_COLORS[node.kind]}"/>'
        f'<text x="{box.x + 8:g}" y="{box.y + 17:g}" fill="#fff">{_text(shown)}</text>'
        f"<title>{_text(str(node))}</title></g>"
    )


def _text(text: str) -> str:
    """As XML can hold it."""
    return html.escape("".join(letter if letter.isprintable() else "�" for letter in text))


def page(topology: Topology, title: str) -> str:
    """One page with the picture and a table of its edges."""
    edges, _ = chosen(topology)
    rows = "\n".join(
        f"<tr><td>{_text(str(edge.source))}</td><td>{edge.kind}</td><td>{_text(str(edge.target))}</td>"
        f"<td class=n>{edge.messages:,}</td><td class=n>{edge.bytes:,}</td>"
        f"<td>{_text(' '.join(edge.keys))}</td></tr>"
        for edge in edges
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{_text(title)}</title>
<style>
body {{ font: 14px/1.4 sans-serif; margin: 2em; color: #1a202c }}
.picture {{ overflow: auto; border: 1px solid #cbd5e0 }}
.picture svg {{ display: block; width: 100%; min-width: 680px; height: auto }}
table {{ border-collapse: collapse; margin-top: 1em }}
th, td {{ text-align: left; padding: .2em .8em; border-bottom: 1px solid #e2e8f0 }}
.n {{ text-align: right }}
</style></head><body>
<h1>{_text(title)}</h1>
<div class="picture">{svg(topology)}</div>
<table><tr><th>from</th><th></th><th>to</th><th class=n>messages</th><th class=n>bytes</th><th>keys</th></tr>
{rows}
</table></body></html>
"""
