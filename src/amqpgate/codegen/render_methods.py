"""One method to a class: straight-line code, no loop over field descriptors."""

from __future__ import annotations

from amqpgate.codegen import names
from amqpgate.codegen.layout import Cell, Run, Single, steps
from amqpgate.codegen.model import ClassSpec, FieldSpec, MethodSpec
from amqpgate.codegen.pieces import DEFAULTS, PYTHON_TYPES, WIDTH, call, getter, pick, put, statement, wrap

#: Arguments that are a password or a token, or may be the answer to a challenge: no ``repr`` has them.
SECRET = frozenset({("start-ok", "response"), ("secure-ok", "response"), ("update-secret", "new-secret")})


def method_class(cls: ClassSpec, method: MethodSpec, structs: set[str]) -> list[str]:
    """The lines of one class; adds the formats it packs with to ``structs``."""
    replies = [f"0x{cls.index << 16 | cls.method(name).index:08X}" for name in method.responses]
    joined = ", ".join(replies) + ("," if len(replies) == 1 else "")
    lines = [
        "",
        "@frozen(eq=False, repr=False)",
        f"class {names.class_name(cls.name, method.name)}(Method):",
        *_doc(cls, method),
        "",
        f'    NAME: ClassVar[str] = "{cls.name}.{method.name}"',
        f"    CLASS_ID: ClassVar[int] = {cls.index}",
        f"    METHOD_ID: ClassVar[int] = {method.index}",
        f"    INDEX: ClassVar[int] = 0x{cls.index << 16 | method.index:08X}",
        f"    CONTENT: ClassVar[bool] = {method.content}",
        f"    SYNC: ClassVar[bool] = {method.synchronous}",
        f"    REPLIES: ClassVar[tuple[int, ...]] = ({joined})",
        f'    EXTENSION: ClassVar[str] = "{method.extension}"',
        "",
    ]
    lines += [_declaration(field, secret=(method.name, field.name) in SECRET) for field in method.fields]
    if method.fields:
        lines.append("")
    lines += _encode(cls, method, structs)
    lines.append("")
    lines += _decode(method, structs)
    lines.append("")
    return lines


def _python_type(field: FieldSpec) -> str:
    python = PYTHON_TYPES[field.type]
    return f"{python} | None" if field.optional else python


def _default(field: FieldSpec) -> str:
    return "None" if field.optional else DEFAULTS[PYTHON_TYPES[field.type]]


def _declaration(field: FieldSpec, *, secret: bool) -> str:
    if secret:
        return f"    {field.attr}: {_python_type(field)} = field(default={_default(field)}, repr=False)"
    return f"    {field.attr}: {_python_type(field)} = {_default(field)}"


def _doc(cls: ClassSpec, method: MethodSpec) -> list[str]:
    name = f"{cls.name}.{method.name}"
    facts = [f"class {cls.index}, method {method.index}"]
    if method.receivers:
        facts.append("to the " + " or the ".join(method.receivers))
    facts.append("synchronous" if method.synchronous else "asynchronous")
    if method.content:
        facts.append("carries content")
    sentence = f"{name}: " + ", ".join(facts) + "."
    if method.responses:
        sentence += " Answered by " + " or ".join(f"{cls.name}.{r}" for r in method.responses) + "."
    if method.lenient:
        sentence += " Short strings may be any bytes."
    if method.source:
        sentence += f" Overlay: {method.source}."
    lines = wrap('"""' + sentence, "    ")
    if len(lines) == 1 and len(lines[0]) + 3 <= WIDTH:
        return [lines[0] + '"""']
    return [*lines, '    """']


def _encode(cls: ClassSpec, method: MethodSpec, structs: set[str]) -> list[str]:
    lines = ["    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:"]
    head = (cls.index << 16 | method.index).to_bytes(4, "big")
    ids = "".join(f"\\x{octet:02x}" for octet in head)
    todo = steps(method.fields)
    if not todo:
        return [*lines, f'        return b"{ids}"']
    parts: list[str] = []
    format_, arguments = "HH", [str(cls.index), str(method.index)]
    if isinstance(todo[0], Run):
        format_ += todo[0].format
        arguments += _pack_arguments(todo[0])
        todo = todo[1:]
        parts.append(call(f"{pick(format_, structs)}.pack", arguments))
    else:
        parts.append(f'b"{ids}"')
    for step in todo:
        if isinstance(step, Run):
            parts.append(call(f"{pick(step.format, structs)}.pack", _pack_arguments(step)))
        else:
            parts.append(put(step.field))
    if len(parts) == 1:
        return [*lines, *statement("return ", parts[0], "        ")]
    lines += ['        return b"".join(', "            ("]
    for part in parts:
        lines += statement("", part, "                ", ",")
    lines += ["            )", "        )"]
    return lines


def _bits(cell: Cell) -> str:
    terms = [
        f"self.{field.attr}" if n == 0 else f"self.{field.attr} << {n}" for n, field in enumerate(cell.fields)
    ]
    return " | ".join(terms)


def _pack_arguments(run: Run) -> list[str]:
    return [_bits(cell) if cell.is_bits else f"self.{cell.fields[0].attr}" for cell in run.cells]


def _decode(method: MethodSpec, structs: set[str]) -> list[str]:
    lines = [
        "    @classmethod",
        "    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:",
    ]
    todo = steps(method.fields)
    arguments: list[str] = []
    bit_bytes = 0
    for number, step in enumerate(todo):
        if isinstance(step, Single):
            field = step.field
            value = getter(field, method.lenient)
            if field.optional:
                lines += [
                    f"        {field.attr}: {_python_type(field)} = None",
                    "        if pos != end:",
                    f"            {field.attr}, pos = {value}",
                ]
            else:
                lines.append(f"        {field.attr}, pos = {value}")
            arguments.append(field.attr)
            continue
        last = number == len(todo) - 1
        lines.append(f"        if pos + {step.size} {'!=' if last else '>'} end:")
        lines.append("            raise cannot_decode()")
        targets: list[str] = []
        for cell in step.cells:
            if not cell.is_bits:
                targets.append(cell.fields[0].attr)
                arguments.append(cell.fields[0].attr)
                continue
            bit_bytes += 1
            octet = "bits" if bit_bytes == 1 else f"bits{bit_bytes}"
            targets.append(octet)
            arguments += [f"{octet} & {1 << n} != 0" for n in range(len(cell.fields))]
        if step.format == "B":
            lines.append(f"        {targets[0]} = buf[pos]")
        elif len(targets) == 1:
            lines.append(f"        {targets[0]} = {pick(step.format, structs)}.unpack_from(buf, pos)[0]")
        else:
            lines.append(f"        {', '.join(targets)} = {pick(step.format, structs)}.unpack_from(buf, pos)")
        if not last:
            lines.append(f"        pos += {step.size}")
    if not todo or isinstance(todo[-1], Single):
        lines += ["        if pos != end:", "            raise cannot_decode()"]
    lines += statement("return ", call("cls", arguments), "        ")
    return lines
