"""The versions of AMQP that cases are played in: header, dialect, methods."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Final, Literal, TypeAlias, TypeVar

import attrs

from amqpgate.wire.dialects import HEADER_0_8, HEADER_0_9, HEADER_0_9_1, RABBITMQ_0_8, RABBITMQ_0_9_1, Dialect
from amqpgate.wire.generated.v0_10 import PROTOCOL_HEADER
from amqpgate.wire.method import Method

M = TypeVar("M", bound=Method)

Name: TypeAlias = Literal["0-9-1", "0-9", "0-8", "0-10"]


#: Those whose frames are 0-9-1's, and those of them in which RabbitMQ's extensions are said.
ALL: Final[tuple[Name, ...]] = ("0-9-1", "0-9", "0-8")
OF_RABBITMQ: Final[tuple[Name, ...]] = ("0-9-1", "0-9")


@attrs.frozen(eq=False)
class SpokenVersion:
    """One of the versions whose frames are 0-9-1's, as a client says it."""

    name: Name
    header: bytes
    #: What methods are written and read with. Brokers answer the header of 0-9 in 0-9-1's own methods.
    dialect: Dialect

    @property
    def amqp(self) -> ModuleType:
        """The generated methods."""
        name = "0-8" if self.dialect.version == (0, 8, 0) else "0-9-1"
        return import_module(f"amqpgate.wire.generated.v{name.replace('-', '_')}")


def said_in(version: SpokenVersion, method: Method) -> Method:
    """A method as a version has it. Raises `LookupError` where it has none of the name."""
    kind: type[Method] | None = getattr(version.amqp, type(method).__name__, None)
    if kind is None:
        raise LookupError(f"AMQP {version.name} has no {method.NAME}")
    return said_as(kind, method)


def said_as(kind: type[M], method: Method) -> M:
    """A method in another version's class, with the fields that both have."""
    if isinstance(method, kind):
        return method
    return kind(**{name: getattr(method, name) for name in kind.__match_args__ if hasattr(method, name)})


VERSIONS: Final[Mapping[Name, SpokenVersion]] = {
    version.name: version
    for version in (
        SpokenVersion("0-9-1", HEADER_0_9_1, RABBITMQ_0_9_1),
        SpokenVersion("0-9", HEADER_0_9, RABBITMQ_0_9_1),
        SpokenVersion("0-8", HEADER_0_8, RABBITMQ_0_8),
    )
}

#: By version the header that a client says. Frames of 0-10 are others: ``v0_10`` has what speaks them.
HEADERS: Final[Mapping[Name, bytes]] = {
    **{name: version.header for name, version in VERSIONS.items()},
    "0-10": PROTOCOL_HEADER,
}
