"""Fixed bytes for every method, worked out from the sizes of its fields.

On purpose nothing here is shared with ``render`` and ``layout``: fields are written one by one as the
standard describes them (AMQP 0-9-1, section 4.2.5), so that a mistake in one shows against the other.
"""

from __future__ import annotations

from attrs import frozen

from amqpgate.codegen.model import ClassSpec, FieldSpec, MethodSpec

_SIZES: dict[str, int] = {"octet": 1, "short": 2, "long": 4, "longlong": 8, "timestamp": 8}

#: Fifteen bytes: a name of one letter, a type and a value, twice.
_TABLE_SOURCE = 'Table.of({"k": "v", "n": 7})'
_TABLE_BYTES = b"\x00\x00\x00\x0f" + b"\x01k" + b"S\x00\x00\x00\x01v" + b"\x01n" + b"I\x00\x00\x00\x07"


@frozen
class Golden:
    """One vector: keyword arguments as Python source, and the bytes they make."""

    arguments: list[tuple[str, str]]
    encoded: bytes


def method(cls: ClassSpec, spec: MethodSpec) -> Golden:
    """The payload of a method frame with a different value in every field, bits in turn set and unset."""
    ids = cls.index.to_bytes(2, "big") + spec.index.to_bytes(2, "big")
    arguments: list[tuple[str, str]] = []
    out = bytearray(ids)
    bit = 8
    for number, field in enumerate(spec.fields):
        if field.type == "bit":
            if bit == 8:
                out.append(0)
                bit = 0
            is_set = number % 2 == 0
            out[-1] |= is_set << bit
            bit += 1
            arguments.append((field.attr, str(is_set)))
            continue
        bit = 8
        source, encoded = _value(field, number)
        arguments.append((field.attr, source))
        out += encoded
    return Golden(arguments, bytes(out))


def properties(cls: ClassSpec) -> Golden:
    """Flags and values of a content header with every property there."""
    flags = 0
    arguments: list[tuple[str, str]] = []
    out = bytearray()
    for number, field in enumerate(cls.properties):
        flags |= 0x8000 >> number
        source, encoded = _value(field, number)
        arguments.append((field.attr, source))
        out += encoded
    return Golden(arguments, flags.to_bytes(2, "big") + bytes(out))


def _value(field: FieldSpec, number: int) -> tuple[str, bytes]:
    """Python source and bytes of a value that depends on the field's place."""
    if field.type == "table":
        return _TABLE_SOURCE, _TABLE_BYTES
    if field.type == "shortstr":
        text = f"é{number}"
        encoded = text.encode()
        return f'"{text}"', bytes((len(encoded),)) + encoded
    if field.type == "longstr":
        encoded = bytes((0, 255, number))
        return repr(encoded).replace("'", '"'), len(encoded).to_bytes(4, "big") + encoded
    size = _SIZES[field.type]
    # 0x80 on top: a signed reading would show.
    encoded = bytes((0x80, *range(number + 1, number + size)))
    return "0x" + encoded.hex().upper(), encoded
