"""Snippets of generated Python that methods and properties share."""

from __future__ import annotations

from amqpgate.codegen.model import FieldSpec, Spec

STAMP = "# DO NOT EDIT. Made by `python -m amqpgate.codegen` from {files}"

PYTHON_TYPES: dict[str, str] = {
    "bit": "bool",
    "octet": "int",
    "short": "int",
    "long": "int",
    "longlong": "int",
    "timestamp": "int",
    "shortstr": "str",
    "longstr": "bytes",
    "table": "Table",
}
DEFAULTS: dict[str, str] = {"bool": "False", "int": "0", "str": '""', "bytes": 'b""', "Table": "EMPTY_TABLE"}

#: The width of generated lines; longer ones are broken up.
WIDTH = 106


def stamp(files: list[str]) -> list[str]:
    """The first lines of every generated file, which is made from ``files``."""
    return [STAMP.format(files="spec/amqp:"), *(f"#   {name}" for name in files)]


def version_name(spec: Spec) -> str:
    """ "0-9-1"; the last part is left out if it is 0."""
    parts = spec.version if spec.version[2] else spec.version[:2]
    return "-".join(str(part) for part in parts)


def struct_name(format_: str) -> str:
    """The module-level name of a precompiled ``struct.Struct``."""
    return f"_{format_}"


def pick(format_: str, structs: set[str]) -> str:
    """The same, and note that the module needs it."""
    structs.add(format_)
    return struct_name(format_)


def wrap(text: str, indent: str) -> list[str]:
    """Break prose at spaces."""
    lines: list[str] = []
    line = indent
    for word in text.split():
        if len(line) + len(word) + 1 > WIDTH and line.strip():
            lines.append(line.rstrip())
            line = indent
        line += word + " "
    lines.append(line.rstrip())
    return lines


def call(function: str, arguments: list[str]) -> str:
    """A call on one line."""
    return f"{function}({', '.join(arguments)})"


def statement(before: str, expression: str, indent: str, after: str = "") -> list[str]:
    """One expression, a call of many arguments broken after the commas."""
    line = f"{indent}{before}{expression}{after}"
    if len(line) <= WIDTH:
        return [line]
    head, _, rest = expression.partition("(")
    lines = [f"{indent}{before}{head}("]
    for argument in rest[:-1].split(", "):
        if len(argument) + len(indent) + 5 <= WIDTH:
            lines.append(f"{indent}    {argument},")
            continue
        first, *others = argument.split(" | ")
        lines.append(f"{indent}    {first}")
        lines += [f"{indent}    | {other}" for other in others]
        lines[-1] += ","
    lines.append(f"{indent}){after}")
    return lines


def put(field: FieldSpec) -> str:
    """The expression that gives a field's bytes."""
    value = f"self.{field.attr}"
    if field.type == "shortstr":
        return f"put_shortstr({value})"
    if field.type == "longstr":
        return f"put_longstr({value})"
    if field.optional:
        return f'b"" if {value} is None else put_table({value}, dialect)'
    return f"put_table({value}, dialect)"


#: Tables that peers say again with each connection: what they are.
_OFTEN_THE_SAME = frozenset({"client_properties", "server_properties"})


def getter(field: FieldSpec, lenient: bool) -> str:
    """The expression that reads a field, giving the value and the new position."""
    if field.type == "shortstr":
        return "get_shortstr_lenient(buf, pos, end)" if lenient else "get_shortstr(buf, pos, end)"
    if field.type == "longstr":
        return "get_longstr(buf, pos, end)"
    if field.attr in _OFTEN_THE_SAME:
        return "get_known_table(buf, pos, end, dialect)"
    return "get_table(buf, pos, end, dialect)"
