"""JSON Schemas and tables of the policy documents."""

from __future__ import annotations

from amqpgate.policy.kinds.kind import AnyDocumentKind
from amqpgate.yamldoc import describe as describe_type
from amqpgate.yamldoc import schema_for
from amqpgate.yamldoc.schema import Schema


def schema(kind: AnyDocumentKind) -> Schema:
    """The JSON Schema of one kind, as committed in ``spec/schema/``."""
    return schema_for(kind.document, identifier=f"https://amqpgate.io/schema/{kind.schema_file}")


def describe(kind: AnyDocumentKind) -> str:
    """A Markdown table of every key of one kind: type, default, meaning."""
    return describe_type(kind.document)
