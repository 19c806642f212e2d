"""What all generated structures have in common (AMQP 0-10, "Encoding of controls, commands and structs").

They are frozen attrs classes with slots, and every field has a default: None, which is not on the wire at
all, and False for bits, which are nothing but a packing flag. Nothing that the standard calls required is
asked for: clients leave such fields out, too. Strings of any kind are ``bytes``, for they are only claimed to
be text; maps are :class:`~amqpgate.wire.v0_10.types.Map`, arrays :class:`~amqpgate.wire.v0_10.types.Array`,
sets of ids :class:`~amqpgate.wire.v0_10.sequences.SequenceSet`, uuids 16 bytes, the rest ``int``. A
``struct32`` is the bytes that ``codec.decode_struct32`` takes.
"""

from __future__ import annotations

from typing import ClassVar, Self

from attrs import frozen


class _Packed:
    """Packing flags, and the fields that they say are there."""

    __slots__ = ()

    #: The names of the fields in order; attrs fills it in.
    __match_args__: ClassVar[tuple[str, ...]]
    #: As in the specification: "message.transfer".
    NAME: ClassVar[str]
    CLASS_CODE: ClassVar[int]
    #: The code within the class; 0 for a structure that is known by where it stands.
    CODE: ClassVar[int]

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        """From packing flags and fields: all of ``buf[pos:end]``, and nothing before that.

        :class:`~amqpgate.errors.ProtocolViolation` 503 for flags of no field, for fields that are cut short
        or malformed, and for bytes behind them; 506 for a map or an array of more than `types` allows.
        """
        raise TypeError(f"{cls.__name__} is no generated structure")


class Control(_Packed):
    """A control: of the connection on channel 0, or of the session that is attached to a channel."""

    __slots__ = ()

    def encode(self) -> bytes:
        """The payload of a control segment.

        :class:`ValueError` for bytes that are too long, :class:`struct.error` for numbers out of range.
        """
        raise TypeError(f"{type(self).__name__} is no generated control")


class Command(_Packed):
    """A command of a session; it has an id, which is not on the wire."""

    __slots__ = ()

    #: Whether a header and a body may follow.
    CONTENT: ClassVar[bool]
    #: Class and code of the structure that it results in (0x0801), 0 for none.
    RESULT: ClassVar[int]

    def encode(self, sync: bool = False) -> bytes:
        """The payload of a command segment; ``sync`` asks to be told as soon as it is complete.

        Errors as for a control.
        """
        raise TypeError(f"{type(self).__name__} is no generated command")


class Struct(_Packed):
    """A part of a header, a result, or a field that has fields itself."""

    __slots__ = ()

    def encode(self) -> bytes:
        """Class and code if it has one, packing flags, fields: all but its size. Errors as for a control."""
        raise TypeError(f"{type(self).__name__} is no generated structure")


@frozen
class Unknown:
    """A structure of a class and code that the standard does not have, and all that follows them."""

    class_code: int
    code: int
    content: bytes
