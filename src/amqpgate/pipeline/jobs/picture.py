"""The graph as a picture for documents, in Mermaid's language.

Of a large graph the edges with the most messages are drawn, and how many are not is said. What people look at
in a browser is `picture_page`.
"""

from __future__ import annotations

from amqpgate.pipeline.jobs.graph import Edge, Node, Topology

#: Edges in a picture.
MAX_EDGES = 200

_SHAPES = {"principal": ('(["', '"])'), "exchange": ('{{"', '"}}'), "queue": ('[("', '")]')}


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
