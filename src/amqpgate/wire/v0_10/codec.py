"""Segments of AMQP 0-10 to objects and back: controls, commands, headers, results.

Error handling
    All that comes from the wire and is wrong raises :class:`~amqpgate.errors.ProtocolViolation`, with class
    and code in ``class_id`` and ``method_id`` where they are known; the channel is the caller's to add. For
    commands and headers it is 503, to be said in an execution.exception. A control is answered by a close of
    the connection, whose codes know 501 for all of that. 506 is what is larger or deeper than ``types``
    allows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated.v0_10 import COMMANDS, CONTROLS, STRUCTS
from amqpgate.wire.v0_10.primitives import get_extent32, malformed, put_vbin32
from amqpgate.wire.v0_10.structs import Command, Control, Struct, Unknown

#: Where the packing flags of a command are: behind class, command, and the size and flags of its header.
_FLAGS_AT: Final = 4


def encode_control(control: Control) -> bytes:
    """The payload of a control segment. Errors as `Control.encode` has them."""
    return control.encode()


def decode_control(payload: bytes) -> Control:
    """The control in a control segment; 501 if there is no such control, or it is malformed."""
    end = len(payload)
    if end < 2:
        raise ProtocolViolation(501, f"a control of {end} bytes")
    class_code, code = payload[0], payload[1]
    cls = CONTROLS.get(class_code << 8 | code)
    if cls is None:
        raise _violation(501, f"unknown control 0x{class_code:02x} 0x{code:02x}", class_code, code)
    try:
        return cls.decode(payload, 2, end)
    except ProtocolViolation as violation:
        reply = 501 if violation.code == 503 else violation.code
        raise _violation(reply, f"{cls.NAME}: {violation.text}", class_code, code) from None


def encode_command(command: Command, sync: bool = False) -> bytes:
    """The payload of a command segment. Errors as `Command.encode` has them."""
    return command.encode(sync)


def decode_command(payload: bytes) -> tuple[Command, bool]:
    """The command in a command segment, and whether it asks to be told of its completion (``sync``).

    503 if there is no such command, or it is malformed.
    """
    end = len(payload)
    if end < _FLAGS_AT:
        raise malformed(f"a command of {end} bytes")
    class_code, code = payload[0], payload[1]
    cls = COMMANDS.get(class_code << 8 | code)
    if cls is None:
        raise _violation(503, f"unknown command 0x{class_code:02x} 0x{code:02x}", class_code, code)
    # The header of a session (struct "session.header"): one byte of packing flags, one of them used.
    sync = payload[3]
    if payload[2] != 1 or sync > 1:
        raise _violation(503, f"{cls.NAME}: malformed session header", class_code, code)
    try:
        return cls.decode(payload, _FLAGS_AT, end), sync == 1
    except ProtocolViolation as violation:
        raise _violation(violation.code, f"{cls.NAME}: {violation.text}", class_code, code) from None


def encode_header(structs: Iterable[Struct | Unknown]) -> bytes:
    """The payload of a header segment, in the order given. Errors as `Struct.encode` has them."""
    return b"".join([put_vbin32(encode_struct32(struct)) for struct in structs])


def decode_header(payload: bytes) -> tuple[Struct | Unknown, ...]:
    """What stands in a header segment, in its order.

    503 if something is malformed, or stands there twice: who judges a message must judge the routing key that
    the broker goes by.
    """
    end = len(payload)
    pos = 0
    found: list[Struct | Unknown] = []
    seen: set[int] = set()
    while pos < end:
        start, pos = get_extent32(payload, pos, end)
        index, struct = _decode_struct(payload, start, pos)
        if index in seen:
            raise malformed("a header has the same struct twice")
        seen.add(index)
        found.append(struct)
    return tuple(found)


def encode_struct32(struct: Struct | Unknown) -> bytes:
    """A struct as it stands in fields and values of type ``struct32``, such as the value of a result.

    Class, code, packing flags and fields; whoever puts it there puts its size before it.
    """
    if isinstance(struct, Unknown):
        return bytes((struct.class_code, struct.code)) + struct.content
    return struct.encode()


def decode_struct32(content: bytes) -> Struct | Unknown:
    """The struct in what `encode_struct32` makes; 503 if it is malformed."""
    return _decode_struct(content, 0, len(content))[1]


def _decode_struct(buf: bytes, pos: int, end: int) -> tuple[int, Struct | Unknown]:
    """Class and code as one number, and the struct."""
    if pos + 2 > end:
        raise malformed(f"a struct of {end - pos} bytes")
    index = buf[pos] << 8 | buf[pos + 1]
    cls = STRUCTS.get(index)
    if cls is None:
        return index, Unknown(index >> 8, index & 0xFF, buf[pos + 2 : end])
    try:
        return index, cls.decode(buf, pos + 2, end)
    except ProtocolViolation as violation:
        raise ProtocolViolation(violation.code, f"{cls.NAME}: {violation.text}") from None


def _violation(reply: int, text: str, class_code: int, code: int) -> ProtocolViolation:
    return ProtocolViolation(reply, text, class_id=class_code, method_id=code)
