"""Environment variables in scalars: ``${NAME}`` and ``${NAME:-default}``.

Values only, never keys. What is put in is text: it is not read as YAML and not expanded again, so a
password may contain anything. The default also stands in for a variable that is set but empty, as in
a shell. ``$${`` writes a literal ``${``; any other dollar sign stands for itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as AbstractMapping

from amqpgate.yamldoc.nodes import Mapping, Mark, Node, Scalar, Sequence

_REFERENCE = re.compile(r"\$\$\{|\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\})?")


def only_document(documents: tuple[Node, ...], file: str, environ: AbstractMapping[str, str]) -> Node:
    """That of a settings file in which every key has a default, with references replaced: an empty file means
    all of them. `ConfigError` for a second document."""
    if len(documents) > 1:
        raise documents[1].mark.error("a settings file is one document; remove the '---'")
    return expand(documents[0], environ) if documents else Mapping({}, {}, Mark(file, 1, 1))


def expand(node: Node, environ: AbstractMapping[str, str]) -> Node:
    """The same tree with references replaced; `ConfigError` for one that is unset and has no default."""
    if isinstance(node, Scalar):
        return _expand_scalar(node, environ) if "${" in node.text else node
    if isinstance(node, Sequence):
        return Sequence(tuple(expand(item, environ) for item in node.items), node.mark)
    return Mapping({key: expand(entry, environ) for key, entry in node.entries.items()}, node.keys, node.mark)


def _expand_scalar(node: Scalar, environ: AbstractMapping[str, str]) -> Scalar:
    expanded = False

    def replace(match: re.Match[str]) -> str:
        nonlocal expanded
        if match[0] == "$${":
            return "${"
        name, default = match["name"], match["default"]
        if name is None:
            raise node.mark.error(
                "write ${NAME} or ${NAME:-default}, with letters, digits and _; $${ for a literal ${"
            )
        expanded = True
        value = environ.get(name)
        if not value and default is not None:
            return default
        if value is None:
            raise node.mark.error(
                f"environment variable {name} is not set; set it, or write ${{{name}:-default}}"
            )
        return value

    text = _REFERENCE.sub(replace, node.text)
    return Scalar(text, node.mark, plain=node.plain and not expanded, shown=node.text, expanded=expanded)
