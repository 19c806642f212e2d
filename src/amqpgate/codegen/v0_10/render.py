"""Grammar to the generated modules: ``v0_10_types``, and ``v0_10`` that has everything else."""

from __future__ import annotations

import re

from amqpgate.codegen import names
from amqpgate.codegen.pieces import stamp
from amqpgate.codegen.v0_10.grammar import EnumSpec, Grammar, StructSpec
from amqpgate.codegen.v0_10.render_structs import packer, struct_class

#: Modules below ``wire.v0_10``, and what generated code may need of them.
_IMPORTS = {
    "primitives": (
        "UINT8 UINT16 UINT32 UINT64 cut_short get_extent16 get_extent32 get_uint16 get_uint32 get_uuid"
        " get_vbin16 get_vbin32 left_over malformed put_uuid put_vbin8 put_vbin16 put_vbin32 unknown_flags"
    ),
    "sequences": "SequenceSet",
    "structs": "Command Control Struct",
    "types": "Array Map get_array get_map put_array put_map",
}


def types_module(grammar: Grammar) -> str:
    """The text of ``wire/generated/v0_10_types.py``."""
    codes = EnumSpec("TypeCode", tuple((spec.name, spec.code) for spec in grammar.types))
    lines = [
        *stamp([grammar.file]),
        f'"""AMQP {grammar.version}: the types of values in maps, lists and arrays (section "Types")."""',
        "",
        "from __future__ import annotations",
        "",
        "from enum import IntEnum",
        "",
        *_enum(codes, "Upper half of the code: how wide a value is.", "0x{:02X}"),
    ]
    return "\n".join(lines) + "\n"


def module(grammar: Grammar) -> str:
    """The text of ``wire/generated/v0_10.py``."""
    known = {spec.python: spec for spec in grammar.structs}
    body: list[str] = []
    for enum in grammar.enums:
        body += [*_enum(enum, "", "{}"), ""]
    # Fields are of structs, so these come first.
    ordered = [*grammar.of_kind("struct"), *grammar.of_kind("control"), *grammar.of_kind("command")]
    for spec in ordered:
        body += struct_class(spec, known)
    body += _table("CONTROLS", "Every control", "Control", grammar.of_kind("control"))
    body += _table("COMMANDS", "Every command", "Command", grammar.of_kind("command"))
    structs = [spec for spec in grammar.of_kind("struct") if spec.code]
    body += _table("STRUCTS", "Every struct that has a code", "Struct", structs)
    text = "\n".join(body)
    return "\n".join([*_head(grammar, text, ordered), text])


def _head(grammar: Grammar, text: str, structs: list[StructSpec]) -> list[str]:
    words = set(re.findall(r"\w+", text))
    lines = [
        *stamp([grammar.file]),
        f'"""AMQP {grammar.version}: controls, commands, structs and enumerations.',
        "",
        "See ``wire.v0_10.structs`` for what they have in common. Each is named as in the specification.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "import struct",
        "from enum import IntEnum",
        "from typing import ClassVar, Final, Self",
        "",
        f"from attrs import {'field, ' if 'field' in words else ''}frozen",
        "",
    ]
    for name, wanted in _IMPORTS.items():
        used = [word for word in wanted.split() if word in words]
        if used:
            lines += [f"from amqpgate.wire.v0_10.{name} import (", *(f"    {word}," for word in used), ")"]
    lines.append("")
    for name in sorted({packer(spec) for spec in structs if spec.pack and spec.fields}):
        # The packing flags are one number, its lowest byte first; nothing else here takes more than a byte.
        lines.append(f'{name}: Final = struct.Struct("<{name[1:]}")')
    lines += ["", f"PROTOCOL_HEADER: Final = {grammar.header!r}", ""]
    lines += [f"{names.constant(name)}: Final = {value}" for name, value in grammar.constants]
    return [*lines, ""]


def _enum(spec: EnumSpec, doc: str, form: str) -> list[str]:
    lines = ["", f"class {spec.name}(IntEnum):"]
    if doc:
        lines += [f'    """{doc}"""', ""]
    return lines + [f"    {names.constant(name)} = {form.format(value)}" for name, value in spec.choices]


def _table(name: str, what: str, base: str, specs: list[StructSpec]) -> list[str]:
    lines = ["", f"#: {what} by ``CLASS_CODE << 8 | CODE``.", f"{name}: Final[dict[int, type[{base}]]] = {{"]
    for spec in sorted(specs, key=lambda spec: (spec.class_code, spec.code)):
        lines.append(f"    0x{spec.class_code << 8 | spec.code:04X}: {spec.python},")
    return [*lines, "}", ""]
