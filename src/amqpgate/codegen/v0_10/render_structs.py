"""One control, command or struct to a class: straight-line code, no loop over field descriptors."""

from __future__ import annotations

from amqpgate.codegen.pieces import WIDTH, call, statement, wrap
from amqpgate.codegen.v0_10.grammar import StructSpec
from amqpgate.codegen.v0_10.pieces import code_bytes, declaration, python_type, reading, writing

#: Packing flags by their width, as for ``struct``: the first byte has the first fields.
_FLAGS = {1: "B", 2: "H", 4: "I"}


def struct_class(spec: StructSpec, structs: dict[str, StructSpec]) -> list[str]:
    """The lines of one class."""
    lines = [
        "",
        "@frozen",
        f"class {spec.python}({spec.kind.capitalize()}):",
        *_doc(spec),
        "",
        f'    NAME: ClassVar[str] = "{spec.full_name}"',
        f"    CLASS_CODE: ClassVar[int] = 0x{spec.class_code:02X}",
        f"    CODE: ClassVar[int] = 0x{spec.code:02X}",
    ]
    if spec.kind == "command":
        result = structs[spec.result] if spec.result else None
        code = result.class_code << 8 | result.code if result else 0
        lines += [
            f"    CONTENT: ClassVar[bool] = {spec.has_segments}",
            f"    RESULT: ClassVar[int] = 0x{code:04X}",
        ]
    lines.append("")
    lines += [declaration(spec, field) for field in spec.fields]
    if spec.fields:
        lines.append("")
    return [*lines, *_encode(spec, structs), "", *_decode(spec, structs), ""]


def _doc(spec: StructSpec) -> list[str]:
    facts = [f"{spec.kind} 0x{spec.code:02x}" if spec.code else f"{spec.kind} without a code"]
    facts[0] += f" of class 0x{spec.class_code:02x}"
    if spec.receivers:
        facts.append("to the " + " or the ".join(spec.receivers))
    if spec.has_segments:
        facts.append("header and body may follow")
    sentence = f"{spec.full_name}: " + ", ".join(facts) + "."
    if spec.responses:
        sentence += " Answered by " + " or ".join(f"{spec.class_name}.{r}" for r in spec.responses) + "."
    if spec.result:
        sentence += f" Results in `{spec.result}`."
    lines = wrap('"""' + sentence, "    ")
    if len(lines) == 1 and len(lines[0]) + 3 <= WIDTH:
        return [lines[0] + '"""']
    return [*lines, '    """']


def _encode(spec: StructSpec, structs: dict[str, StructSpec]) -> list[str]:
    if spec.kind == "command":
        head = ["    def encode(self, sync: bool = False) -> bytes:"]
    else:
        head = ["    def encode(self) -> bytes:"]
    if not spec.pack:
        parts = [writing(field, structs) for field in spec.fields]
        return [*head, *statement("return ", " + ".join(parts), "        ")]
    if not spec.fields:
        return [*head, f"        return {_bare(spec)}"]
    lines = [*head, "        flags = 0", '        parts = [b""]']
    for number, field in enumerate(spec.fields):
        value = f"self.{field.attr}"
        lines.append(f"        if {value}:" if field.type == "bit" else f"        if {value} is not None:")
        lines.append(f"            flags |= 0x{1 << number:X}")
        if field.type != "bit":
            lines += statement("parts.append(", writing(field, structs), "            ", ")")
    values = [f"0x{spec.class_code:02X}", f"0x{spec.code:02X}"] if spec.code else []
    if spec.kind == "command":
        values += ["1", "sync"]
    return [
        *lines,
        f"        parts[0] = {call(f'{packer(spec)}.pack', [*values, 'flags'])}",
        '        return b"".join(parts)',
    ]


def _bare(spec: StructSpec) -> str:
    """All of the encoding of what has no fields."""
    code = code_bytes(spec)[:-1] if spec.code else 'b"'
    flags = "\\x00" * spec.pack
    if spec.kind == "command":
        return f'{code}\\x01\\x01{flags}" if sync else {code}\\x01\\x00{flags}"'
    return f'{code}{flags}"'


def packer(spec: StructSpec) -> str:
    """The module-level name of the ``struct.Struct`` for what comes before the fields."""
    code = "BB" if spec.code else ""
    return f"_{code}{'BB' if spec.kind == 'command' else ''}{_FLAGS[spec.pack]}"


def _decode(spec: StructSpec, structs: dict[str, StructSpec]) -> list[str]:
    lines = ["    @classmethod", "    def decode(cls, buf: bytes, pos: int, end: int) -> Self:"]
    if spec.pack:
        flags = " | ".join(
            ["buf[pos]", *(f"buf[pos + {number}] << {8 * number}" for number in range(1, spec.pack))]
        )
        lines += [
            f"        if pos + {spec.pack} > end:",
            "            raise cut_short()",
            f"        flags = {flags}",
        ]
        unknown = (1 << 8 * spec.pack) - (1 << len(spec.fields))
        if unknown:
            lines += [f"        if flags & 0x{unknown:X}:", "            raise unknown_flags()"]
        lines.append(f"        pos += {spec.pack}")
    arguments: list[str] = []
    for number, field in enumerate(spec.fields):
        if field.type == "bit":
            arguments.append(f"flags & 0x{1 << number:X} != 0")
            continue
        arguments.append(field.attr)
        if not spec.pack:
            lines += [f"        {line}" for line in reading(field, structs)]
            continue
        lines += [
            f"        {field.attr}: {python_type(field)} | None = None",
            f"        if flags & 0x{1 << number:X}:",
            *(f"            {line}" for line in reading(field, structs)),
        ]
    lines += ["        if pos != end:", "            raise left_over()"]
    return [*lines, *statement("return ", call("cls", arguments), "        ")]
