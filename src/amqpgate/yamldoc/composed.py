"""Documents as PyYAML composes them, for who changes their text and must know where in there something is."""

from __future__ import annotations

import yaml


def at(node: yaml.Node | None, *keys: str) -> yaml.Node | None:
    """What a mapping has by these keys, one in the other; None: it has none of them, or is no mapping."""
    for key in keys:
        if not isinstance(node, yaml.MappingNode):
            return None
        node = next((value for name, value in node.value if name.value == key), None)
    return node
