"""What a specification says, after the overlays."""

from __future__ import annotations

from typing import Literal

from attrs import define, field

#: Elementary domains (AMQP 0-9-1, section 4.2.5).
WIRE_TYPES: frozenset[str] = frozenset(
    {"bit", "octet", "short", "long", "longlong", "timestamp", "shortstr", "longstr", "table"}
)


@define
class FieldSpec:
    """One argument or property."""

    #: As in the specification, with hyphens.
    name: str
    #: As an attribute of the generated class.
    attr: str
    type: str
    #: May be missing at the end of the payload (two dialects under one header).
    optional: bool = False


@define
class MethodSpec:
    """One method."""

    name: str
    index: int
    synchronous: bool
    content: bool
    fields: list[FieldSpec] = field(factory=list)
    #: Names of methods of the same class.
    responses: list[str] = field(factory=list)
    #: The roles that must or may implement it: who receives it.
    receivers: list[str] = field(factory=list)
    #: Short strings are not checked for UTF-8.
    lenient: bool = False
    #: The overlay's extension, empty for the standard's own.
    extension: str = ""
    #: Where an overlay took it from.
    source: str = ""


@define
class ClassSpec:
    """One class, with its properties if it has content."""

    name: str
    index: int
    methods: list[MethodSpec] = field(factory=list)
    properties: list[FieldSpec] = field(factory=list)

    @property
    def has_content(self) -> bool:
        """Whether a content header of this class can occur."""
        return any(method.content for method in self.methods)

    def method(self, name: str) -> MethodSpec:
        """By name; KeyError if there is none."""
        for method in self.methods:
            if method.name == name:
                return method
        raise KeyError(f"{self.name}.{name}")


@define
class ConstantSpec:
    """One constant; ``scope`` is set for reply codes that are errors."""

    name: str
    value: int
    scope: Literal["", "channel", "connection"] = ""
    source: str = ""


@define
class Spec:
    """One version."""

    version: tuple[int, int, int]
    header: bytes
    #: File names, the specification first, then the overlays.
    files: list[str]
    constants: list[ConstantSpec] = field(factory=list)
    classes: list[ClassSpec] = field(factory=list)

    def cls(self, name: str) -> ClassSpec:
        """By name; KeyError if there is none."""
        for spec in self.classes:
            if spec.name == name:
                return spec
        raise KeyError(name)
