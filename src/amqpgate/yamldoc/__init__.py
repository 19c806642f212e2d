"""YAML documents as frozen types: the one mechanism behind configuration and policies.

In comes the text of a file; out come attrs objects, or a `ConfigError` that cites file, line and
column, says what is allowed there, and names the nearest known key. The same types also give the
JSON Schemas under ``spec/schema/`` and the table of ``docs/configuration.md``.

- `nodes`: text to a tree of nodes that know where they stand (bounded; no aliases, no tags).
- `environment`: ``${NAME}`` and ``${NAME:-default}`` in scalars.
- `values`: quantities (`Size`, `Seconds`, `WholeSeconds`), file paths and `Secret`.
- `structure`: nodes to attrs types; ``camelCase`` keys, ``snake_case`` attributes.
- `schema`: JSON Schema and Markdown tables from the same types.

Neighbours: `amqpgate.config` and `amqpgate.policy` call it; it knows only `amqpgate.errors`.
"""

from amqpgate.yamldoc.environment import expand, only_document
from amqpgate.yamldoc.nodes import (
    Mapping,
    Mark,
    Node,
    NumberBounds,
    Plain,
    Scalar,
    Sequence,
    compose,
    from_python,
    read,
)
from amqpgate.yamldoc.schema import describe, schema_for
from amqpgate.yamldoc.structure import doc, key_of, locate, structure
from amqpgate.yamldoc.values import (
    AnyValue,
    FilePath,
    FolderPath,
    Invalid,
    Percent,
    Ratio,
    Seconds,
    Secret,
    Size,
    TextValue,
    WholeSeconds,
    between,
    nearest,
    not_empty,
)

__all__ = [
    "AnyValue",
    "FilePath",
    "FolderPath",
    "Invalid",
    "Mapping",
    "Mark",
    "Node",
    "NumberBounds",
    "Percent",
    "Plain",
    "Ratio",
    "Scalar",
    "Seconds",
    "Secret",
    "Sequence",
    "Size",
    "TextValue",
    "WholeSeconds",
    "between",
    "compose",
    "describe",
    "doc",
    "expand",
    "from_python",
    "key_of",
    "locate",
    "nearest",
    "not_empty",
    "only_document",
    "read",
    "schema_for",
    "structure",
]
