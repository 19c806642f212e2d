"""What the specification of AMQP 0-10 says, with its domains resolved."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen


@frozen
class TypeSpec:
    """A type that a value of a map, a list or an array may have: its code says how wide it is."""

    name: str
    code: int


@frozen
class EnumSpec:
    """The choices of a domain; ``name`` is the name of the generated class."""

    name: str
    choices: tuple[tuple[str, int], ...]


@frozen
class StructField:
    """One field of a structure."""

    #: As in the specification, with hyphens.
    name: str
    #: As an attribute of the generated class.
    attr: str
    #: A type of the standard's, or "struct".
    type: str
    #: The class of a field that is a structure itself, else empty.
    struct: str = ""


@frozen
class StructSpec:
    """A structure: a control, a command, or what stands in a header, a result or a field.

    ``size`` is the width of its size where it has one, ``pack`` that of its packing flags, in bytes.
    """

    kind: Literal["control", "command", "struct"]
    class_name: str
    class_code: int
    name: str
    #: 0 where it has none.
    code: int
    #: The name of the generated class.
    python: str
    fields: tuple[StructField, ...]
    size: int = 0
    pack: int = 2
    responses: tuple[str, ...] = ()
    receivers: tuple[str, ...] = ()
    #: Whether a header and a body may follow.
    has_segments: bool = False
    #: The generated class of what it results in, else empty.
    result: str = ""

    @property
    def full_name(self) -> str:
        """ "message.transfer"."""
        return f"{self.class_name}.{self.name}"


@frozen
class Grammar:
    """The version as a whole. Controls, commands and structs are in the order of their codes."""

    version: str
    header: bytes
    file: str
    types: tuple[TypeSpec, ...]
    constants: tuple[tuple[str, int], ...]
    enums: tuple[EnumSpec, ...]
    structs: tuple[StructSpec, ...] = field()

    def of_kind(self, kind: Literal["control", "command", "struct"]) -> list[StructSpec]:
        """All controls, all commands, or all else."""
        return [struct for struct in self.structs if struct.kind == kind]
