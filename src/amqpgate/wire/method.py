"""What all generated methods and properties have in common (AMQP 0-9-1, section 4.2.4)."""

from __future__ import annotations

from typing import ClassVar, Self

from attrs import Attribute

from amqpgate.errors import Scope
from amqpgate.values import frozen
from amqpgate.wire.dialects import RABBITMQ_0_9_1, Dialect
from amqpgate.wire.primitives import Buffer


class _Fields:
    """What attrs would make for each of the generated classes anew: half of what they cost a process."""

    __slots__ = ()

    #: The names of the fields in order; attrs fills it in.
    __match_args__: ClassVar[tuple[str, ...]]
    #: The fields, likewise.
    __attrs_attrs__: ClassVar[tuple[Attribute[object], ...]]

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__match_args__)

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self.__match_args__)))

    def __repr__(self) -> str:
        # Secrets say `repr=False`.
        names = (one.name for one in self.__attrs_attrs__ if one.repr)
        shown = (f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({', '.join(shown)})"


class Method(_Fields):
    """A method of one version; the generated classes fill everything in.

    They are frozen attrs classes with slots: every field has a default, and may be given by position or
    by name. Short strings are ``str``, long strings ``bytes``, tables
    :class:`~amqpgate.wire.tables.Table`, bits ``bool``, the rest ``int``.
    """

    __slots__ = ()

    #: As in the specification: "basic.publish".
    NAME: ClassVar[str]
    CLASS_ID: ClassVar[int]
    METHOD_ID: ClassVar[int]
    #: ``CLASS_ID << 16 | METHOD_ID``: the first four bytes of the payload as a number.
    INDEX: ClassVar[int]
    #: A content header and body follow.
    CONTENT: ClassVar[bool]
    #: One half of a question and its answer; the question has ``REPLIES``.
    SYNC: ClassVar[bool]
    #: ``INDEX`` of each method that may answer.
    REPLIES: ClassVar[tuple[int, ...]]
    #: The overlay in ``spec/amqp`` that it comes from ("rabbitmq", "qpid"), empty for the standard's own.
    EXTENSION: ClassVar[str]

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        """The payload of a method frame: class id, method id, arguments.

        :class:`ValueError` for strings over 255 bytes, :class:`struct.error` for numbers out of range.
        """
        raise TypeError(f"{type(self).__name__} is no generated method")

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        """From arguments (the bytes after the two ids), all of them.

        :class:`~amqpgate.errors.ProtocolViolation` 501 if they are too few, too many, or no UTF-8; see
        ``table_codec`` for tables. Class and method ids are filled in by ``codec``.
        """
        raise TypeError(f"{cls.__name__} is no generated method")


class Properties(_Fields):
    """The properties of one content class; the fields of the generated classes are None when absent."""

    __slots__ = ()

    CLASS_ID: ClassVar[int]

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        """Property flags and the values that are there (section 4.2.6.1 "The Content Header")."""
        raise TypeError(f"{type(self).__name__} is no generated class")

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        """From property flags and values, all of them; 541 as RabbitMQ answers if they do not parse."""
        raise TypeError(f"{cls.__name__} is no generated class")


@frozen
class ReplyCode:
    """A reply code of one version: 404, "not-found", and what it closes."""

    code: int
    name: str
    scope: Scope
