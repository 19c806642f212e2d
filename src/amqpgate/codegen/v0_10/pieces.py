"""How a field of each type is declared, read and written."""

from __future__ import annotations

from attrs import frozen

from amqpgate.codegen.pieces import DEFAULTS
from amqpgate.codegen.v0_10.grammar import StructField, StructSpec


@frozen
class _Form:
    """``get`` and ``put`` are functions that the generated module imports; none for what is read inline."""

    python: str
    get: str
    put: str


#: Each type that a field may be of, but for bits and structs.
FORMS: dict[str, _Form] = {
    "uint8": _Form("int", "", "UINT8.pack"),
    "uint16": _Form("int", "get_uint16", "UINT16.pack"),
    "uint32": _Form("int", "get_uint32", "UINT32.pack"),
    "uint64": _Form("int", "", "UINT64.pack"),
    "datetime": _Form("int", "", "UINT64.pack"),
    "sequence-no": _Form("int", "get_uint32", "UINT32.pack"),
    "uuid": _Form("bytes", "get_uuid", "put_uuid"),
    "vbin8": _Form("bytes", "", "put_vbin8"),
    "vbin16": _Form("bytes", "get_vbin16", "put_vbin16"),
    "vbin32": _Form("bytes", "get_vbin32", "put_vbin32"),
    "str8": _Form("bytes", "", "put_vbin8"),
    "str16": _Form("bytes", "get_vbin16", "put_vbin16"),
    "byte-ranges": _Form("bytes", "get_vbin16", "put_vbin16"),
    "struct32": _Form("bytes", "get_vbin32", "put_vbin32"),
    "map": _Form("Map", "get_map", "put_map"),
    "array": _Form("Array", "get_array", "put_array"),
    "sequence-set": _Form("SequenceSet", "SequenceSet.decode", ""),
}

_UINT8 = ["if pos >= end:", "    raise cut_short()", "NAME = buf[pos]", "pos += 1"]
_UINT64 = [
    "if pos + 8 > end:",
    "    raise cut_short()",
    "NAME = UINT64.unpack_from(buf, pos)[0]",
    "pos += 8",
]
_VBIN8 = [
    "if pos >= end:",
    "    raise cut_short()",
    "start = pos + 1",
    "pos = start + buf[pos]",
    "if pos > end:",
    "    raise cut_short()",
    "NAME = buf[start:pos]",
]
_INLINE: dict[str, list[str]] = {
    "uint8": _UINT8,
    "uint64": _UINT64,
    "datetime": _UINT64,
    "vbin8": _VBIN8,
    "str8": _VBIN8,
}

#: By the width of the size of a struct within another.
_SIZED: dict[int, str] = {2: "vbin16", 4: "vbin32"}

#: Passwords, tokens and answers to challenges: no ``repr`` has them.
_SECRET = frozenset({("start-ok", "response"), ("secure-ok", "response")})


def python_type(field: StructField) -> str:
    """Without None."""
    if field.type == "bit":
        return "bool"
    return field.struct or FORMS[field.type].python


def declaration(spec: StructSpec, field: StructField) -> str:
    """The line that declares it; whether it is there is for each sender to say, but for bits."""
    if field.type == "bit":
        return f"    {field.attr}: bool = False"
    if not spec.pack:
        # Without packing flags it is always there.
        return f"    {field.attr}: {python_type(field)} = {DEFAULTS[python_type(field)]}"
    default = "field(default=None, repr=False)" if (spec.name, field.name) in _SECRET else "None"
    return f"    {field.attr}: {python_type(field)} | None = {default}"


def reading(field: StructField, structs: dict[str, StructSpec]) -> list[str]:
    """The lines that read it at ``pos``."""
    if field.type in _INLINE:
        # What most messages have is read where it stands: a call costs more than the reading.
        return [line.replace("NAME", field.attr) for line in _INLINE[field.type]]
    if not field.struct:
        return [f"{field.attr}, pos = {FORMS[field.type].get}(buf, pos, end)"]
    inner = structs[field.struct]
    width = inner.size
    # Its fields are read from the buffer that is there, not from a copy.
    lines = [f"start, stop = get_extent{8 * width}(buf, pos, end)"]
    start = "start"
    if inner.code:
        lines += [
            f"if buf[start : start + 2] != {code_bytes(inner)}:",
            f'    raise malformed("no {inner.name}")',
        ]
        start = "start + 2"
    return [*lines, f"{field.attr} = {field.struct}.decode(buf, {start}, stop)", "pos = stop"]


def writing(field: StructField, structs: dict[str, StructSpec]) -> str:
    """The expression of its bytes."""
    value = f"self.{field.attr}"
    if field.struct:
        return f"put_{_SIZED[structs[field.struct].size]}({value}.encode())"
    put = FORMS[field.type].put
    return f"{put}({value})" if put else f"{value}.encode()"


def code_bytes(spec: StructSpec) -> str:
    """Class and code as bytes."""
    return f'b"\\x{spec.class_code:02x}\\x{spec.code:02x}"'
