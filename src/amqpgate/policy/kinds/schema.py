"""JSON Schemas and tables of the policy documents."""

from __future__ import annotations

from amqpgate.policy.kinds.registry import KINDS, SCHEMA_FILES
from amqpgate.yamldoc import describe as describe_type
from amqpgate.yamldoc import schema_for
from amqpgate.yamldoc.schema import Schema


def schema(kind: str) -> Schema:
    """The JSON Schema of one kind, as committed in ``spec/schema/``."""
    return schema_for(KINDS[kind], identifier=f"https://amqpgate.io/schema/{SCHEMA_FILES[kind]}")


def describe(kind: str) -> str:
    """A Markdown table of every key of one kind: type, default, meaning."""
    return describe_type(KINDS[kind])
