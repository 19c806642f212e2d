"""Fixed bytes for every control, command and struct, worked out from the sizes of their fields.

On purpose nothing here is shared with ``render`` and ``pieces``: what the specification says of types and
packing flags is written down a second time, so that a mistake in one shows against the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from amqpgate.codegen.v0_10.grammar import StructField, StructSpec

_NUMBERS: dict[str, int] = {
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "datetime": 8,
    "sequence-no": 4,
}
_LENGTHS: dict[str, int] = {
    "vbin8": 1,
    "vbin16": 2,
    "vbin32": 4,
    "str8": 1,
    "str16": 2,
    "byte-ranges": 2,
    "struct32": 4,
}

#: Values that do not depend on the field's place: as Python source, and in hex.
_FIXED: dict[str, tuple[str, str]] = {
    "uuid": (repr(bytes(range(0xF0, 0x100))).replace("'", '"'), "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"),
    # Two entries: a str16 of one letter, and an uint8.
    "map": (
        'Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7))))',
        "0000000e 00000002 016b 95 0001 76 016e 02 07",
    ),
    # Two values of type str16.
    "array": ('Array(0x95, (b"a", b""))', "0000000a 95 00000002 0001 61 0000"),
    "sequence-set": ("SequenceSet(((1, 2), (4, 4)))", "0010 00000001 00000002 00000004 00000004"),
}


@frozen
class Vector:
    """Keyword arguments as Python source, and the bytes they make."""

    arguments: tuple[tuple[str, str], ...]
    encoded: bytes


def vectors(spec: StructSpec, structs: dict[str, StructSpec]) -> Iterator[Vector]:
    """All that a structure encodes to: without its fields, with all of them, and with each alone."""
    everything = range(len(spec.fields))
    if spec.pack:
        yield _vector(spec, structs, ())
    if spec.fields:
        yield _vector(spec, structs, everything)
    if spec.pack and len(spec.fields) > 1:
        for number in everything:
            yield _vector(spec, structs, (number,))


def _vector(spec: StructSpec, structs: dict[str, StructSpec], present: Iterable[int]) -> Vector:
    flags = bytearray(spec.pack)
    arguments: list[tuple[str, str]] = []
    values = b""
    for number in present:
        field = spec.fields[number]
        if spec.pack:
            # Field i is bit i mod 8 of byte i div 8.
            flags[number // 8] |= 1 << number % 8
        source, encoded = _value(field, number, structs)
        arguments.append((field.attr, source))
        values += encoded
    head = bytes((spec.class_code, spec.code)) if spec.code else b""
    if spec.kind == "command":
        head += b"\x01\x00"
    return Vector(tuple(arguments), head + flags + values)


def _value(field: StructField, number: int, structs: dict[str, StructSpec]) -> tuple[str, bytes]:
    """Python source and bytes of a value that depends on the field's place."""
    if field.type == "bit":
        return "True", b""
    if field.type in _FIXED:
        source, encoded = _FIXED[field.type]
        return source, bytes.fromhex(encoded)
    if field.type in _NUMBERS:
        # 0x80 on top: a signed reading would show.
        value = bytes((0x80, *range(number + 1, number + _NUMBERS[field.type])))
        return "0x" + value.hex().upper(), value
    if field.type == "struct":
        spec = structs[field.struct]
        inner = _vector(spec, structs, (len(spec.fields) - 1,))
        arguments = ", ".join(f"{name}={value}" for name, value in inner.arguments)
        return f"wire.{spec.python}({arguments})", len(inner.encoded).to_bytes(
            spec.size, "big"
        ) + inner.encoded
    value = bytes((0, 255, number))
    return repr(value).replace("'", '"'), len(value).to_bytes(_LENGTHS[field.type], "big") + value
