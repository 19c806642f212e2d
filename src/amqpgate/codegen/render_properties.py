"""The properties of one content class to a class (AMQP 0-9-1, section 4.2.6.1 "The Content Header")."""

from __future__ import annotations

from amqpgate.codegen import names
from amqpgate.codegen.model import ClassSpec
from amqpgate.codegen.pieces import PYTHON_TYPES, call, getter, pick, put, statement


def properties_class(cls: ClassSpec, structs: set[str]) -> list[str]:
    """The class of one content header; flags from bit 15 down (section 4.2.6.1)."""
    used = 0
    for n in range(len(cls.properties)):
        used |= 1 << (15 - n)
    lines = [
        "",
        "@frozen(eq=False, repr=False)",
        f"class {names.class_name(cls.name)}Properties(Properties):",
        f'    """Properties of class {cls.name} ({cls.index}); None where absent. Section 4.2.6.1."""',
        "",
        f"    CLASS_ID: ClassVar[int] = {cls.index}",
        "",
    ]
    for field in cls.properties:
        lines.append(f"    {field.attr}: {PYTHON_TYPES[field.type]} | None = None")
    if cls.properties:
        lines.append("")
    lines.append("    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:")
    if not cls.properties:
        lines.append('        return b"\\x00\\x00"')
    else:
        lines += ["        flags = 0", '        parts = [b""]']
    for n, field in enumerate(cls.properties):
        value = f"self.{field.attr}"
        if field.type == "octet":
            encoded = f"bytes(({value},))"
        elif field.type in ("timestamp", "longlong"):
            encoded = f"{pick('Q', structs)}.pack({value})"
        else:
            encoded = put(field)
        lines += [
            f"        if {value} is not None:",
            f"            flags |= 0x{1 << (15 - n):04X}",
            f"            parts.append({encoded})",
        ]
    if cls.properties:
        lines += ["        parts[0] = _FLAGS.pack(flags)", '        return b"".join(parts)']
    lines += [
        "",
        "    @classmethod",
        "    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:",
        "        if pos + 2 > end:",
        "            raise cannot_decode()",
        "        flags = _FLAGS.unpack_from(buf, pos)[0]",
        "        pos += 2",
        f"        if flags & 0x{0xFFFF & ~used:04X} and not dialect.ignores_flag_continuation:",
        '            raise ProtocolViolation(501, "unknown property flags")',
    ]
    for n, field in enumerate(cls.properties):
        getters = {"octet": "get_octet(buf, pos, end)", "timestamp": "get_longlong(buf, pos, end)"}
        reader = getters.get(field.type) or getter(field, lenient=True)
        lines += [
            f"        {field.attr}: {PYTHON_TYPES[field.type]} | None = None",
            f"        if flags & 0x{1 << (15 - n):04X}:",
            f"            {field.attr}, pos = {reader}",
        ]
    lines += [
        "        if pos != end:",
        "            raise cannot_decode()",
        *statement("return ", call("cls", [field.attr for field in cls.properties]), "        "),
        "",
    ]
    return lines
