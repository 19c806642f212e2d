"""AMQP 0-8 and 0-9 as 0-9-1 has them: models think in 0-9-1, and old clients speak so.

Made of the names of fields alone, apart from the gateway's own translation, which is what is looked at.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import attrs

from amqpgate.wire.codec import ContentHeader, decode_header, decode_method
from amqpgate.wire.dialects import LEGACY_CLIENT, LEGACY_CLIENT_0_9, RABBITMQ_0_9_1, Dialect
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

DIALECTS = {"0-9-1": RABBITMQ_0_9_1, "0-9": LEGACY_CLIENT_0_9, "0-8": LEGACY_CLIENT}


class Version:
    """What one client speaks."""

    def __init__(self, name: str) -> None:
        self.name, self.dialect = name, DIALECTS[name]
        self.is_old = self.dialect is not RABBITMQ_0_9_1

    @property
    def header(self) -> bytes:
        """The bytes that begin a connection."""
        return self.dialect.header

    def spoken(self, method: Method) -> Method:
        """What the client says, as this version has it."""
        return _as(method, _class(self.dialect, type(method).__name__)) if self.is_old else method

    def heard(self, payload: bytes) -> Method:
        """What the client hears, as 0-9-1 has it."""
        method = decode_method(payload, self.dialect)
        return _as(method, _class(RABBITMQ_0_9_1, type(method).__name__)) if self.is_old else method

    def header_heard(self, payload: bytes) -> ContentHeader:
        """A content header."""
        header = decode_header(payload, self.dialect)
        if not self.is_old:
            return header
        return attrs.evolve(header, properties=_as(header.properties, amqp.BasicProperties))

    def properties_spoken(self, properties: amqp.BasicProperties) -> Any:  # type: ignore[explicit-any]
        """Those of a message."""
        return _as(properties, _class(self.dialect, "BasicProperties")) if self.is_old else properties


@cache
def _class(dialect: Dialect, name: str) -> Any:  # type: ignore[explicit-any]
    version = "_".join(str(part) for part in (dialect.version if dialect.version[2] else dialect.version[:2]))
    return getattr(import_module(f"amqpgate.wire.generated.v{version}"), name)


def _as(one: Any, cls: Any) -> Any:  # type: ignore[explicit-any]
    """The same with another class: fields of the same name, and the others as by default."""
    known = {field.name for field in attrs.fields(type(one))}
    return cls(**{field.name: getattr(one, field.name) for field in attrs.fields(cls) if field.name in known})
