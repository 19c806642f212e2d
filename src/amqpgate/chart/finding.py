"""Values of the chart by their path, in one file and in several that Helm is given together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from amqpgate.yamldoc import Mapping, Node, Scalar
from amqpgate.yamldoc import Sequence as Items


def at(node: Node | None, path: Iterable[str | int]) -> Node | None:
    """What is there; None where nothing is."""
    for step in path:
        if isinstance(node, Mapping):
            node = node.entries.get(str(step))
        elif isinstance(node, Items) and isinstance(step, int) and step < len(node.items):
            node = node.items[step]
        else:
            return None
    return node


def last(roots: Sequence[Node], *path: str) -> Node | None:
    """What counts: of several files the last that says it."""
    return next((found for root in reversed(roots) if (found := at(root, path)) is not None), None)


def items(node: Node | None) -> tuple[Node, ...]:
    """Those of a list; none where there is no list."""
    return node.items if isinstance(node, Items) else ()


def text(node: Node | None) -> str:
    """That of a scalar which is not null; else empty."""
    return node.text if isinstance(node, Scalar) and node.kind != "null" else ""
