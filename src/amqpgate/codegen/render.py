"""Model to a generated module."""

from __future__ import annotations

from amqpgate.codegen import names
from amqpgate.codegen.model import Spec
from amqpgate.codegen.pieces import stamp, struct_name, version_name
from amqpgate.codegen.render_methods import method_class
from amqpgate.codegen.render_properties import properties_class


def module(spec: Spec) -> str:
    """The text of ``wire/generated/<version>.py``."""
    structs: set[str] = set()
    body: list[str] = []
    for cls in spec.classes:
        for method in cls.methods:
            body += method_class(cls, method, structs)
    for cls in spec.classes:
        if cls.has_content:
            body += properties_class(cls, structs)
    body += _tables(spec)
    text = "\n".join(body)
    return "\n".join([*_head(spec, structs, text), text, ""])


def package() -> str:
    """The text of ``wire/generated/__init__.py``."""
    return (
        "# DO NOT EDIT. Made by `python -m amqpgate.codegen`.\n"
        '"""One module per version of AMQP; see ``amqpgate.wire`` for the room."""\n'
    )


def _head(spec: Spec, structs: set[str], text: str) -> list[str]:
    lines = stamp(spec.files)
    lines += [
        f'"""AMQP {version_name(spec)}: methods, properties and constants (see ``wire.method`` for what they',
        "have in common). Section numbers in this module are those of the AMQP 0-9-1 specification.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from struct import Struct",
        "from typing import ClassVar, Final, Self",
        "",
    ]
    if " field(" in text:
        lines += ["from attrs import field", ""]
    if "ProtocolViolation(" in text:
        lines.append("from amqpgate.errors import ProtocolViolation")
    lines += [
        "from amqpgate.values import frozen",
        "from amqpgate.wire.dialects import RABBITMQ_0_9_1, Dialect",
        "from amqpgate.wire.method import Method, Properties, ReplyCode",
    ]
    wanted = [
        name
        for name in (
            "Buffer",
            "cannot_decode",
            "get_longlong",
            "get_longstr",
            "get_octet",
            "get_shortstr",
            "get_shortstr_lenient",
            "put_longstr",
            "put_shortstr",
        )
        if f"{name}(" in text or name == "Buffer"
    ]
    lines.append("from amqpgate.wire.primitives import (")
    lines += [f"    {name}," for name in wanted]
    lines += [
        ")",
        "from amqpgate.wire.table_codec import get_known_table, get_table, put_table",
        "from amqpgate.wire.tables import EMPTY_TABLE, Table",
        "",
    ]
    lines.append('_FLAGS: Final = Struct(">H")')
    lines += [
        f'{struct_name(format_)}: Final = Struct(">{format_}")'
        for format_ in sorted(structs, key=lambda f: (len(f), f))
    ]
    lines += ["", f"PROTOCOL_HEADER: Final = {spec.header!r}", ""]
    for constant in spec.constants:
        lines.append(f"{names.constant(constant.name)}: Final = {constant.value}")
    lines.append("")
    return lines


def _tables(spec: Spec) -> list[str]:
    lines = ["", "#: Every method by INDEX.", "METHODS: Final[dict[int, type[Method]]] = {"]
    for cls in spec.classes:
        for method in cls.methods:
            index = f"0x{cls.index << 16 | method.index:08X}"
            lines.append(f"    {index}: {names.class_name(cls.name, method.name)},")
    lines += ["}", "", "#: Properties by class id.", "PROPERTIES: Final[dict[int, type[Properties]]] = {"]
    for cls in spec.classes:
        if cls.has_content:
            lines.append(f"    {cls.index}: {names.class_name(cls.name)}Properties,")
    lines += ["}", "", "#: Errors by code.", "REPLY_CODES: Final[dict[int, ReplyCode]] = {"]
    for constant in spec.constants:
        if constant.scope:
            code = constant.value
            lines.append(f'    {code}: ReplyCode({code}, "{constant.name}", "{constant.scope}"),')
    lines.append("}")
    return lines
