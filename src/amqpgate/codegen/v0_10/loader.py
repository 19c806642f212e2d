"""XML of AMQP 0-10 to its grammar: ``amqp``, with ``type``, ``constant``, ``domain`` and ``class`` in it.

A class has domains of its own, which others name as "class.domain"; ``struct``, ``control`` and ``command``
with their fields; and structs inside of the ``result`` of a command.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, cast

from amqpgate.codegen import names
from amqpgate.codegen.loader import SpecError, need, parse
from amqpgate.codegen.v0_10.grammar import EnumSpec, Grammar, StructField, StructSpec, TypeSpec
from amqpgate.codegen.v0_10.pieces import FORMS

#: The errata: what every implementation speaks. They differ in how an xid is written.
FILE = "amqp0-10.qpid-errata.xml"

#: Structs whose name alone does not say what they are.
_PYTHON_NAMES = {("session", "header"): "SessionHeader"}

#: What a field may be, besides a struct.
FIELD_TYPES = frozenset(("bit", *FORMS))


def load(folder: Path) -> Grammar:
    """The grammar from its file in ``folder``; :class:`SpecError` if it does not hold together."""
    root = parse(folder / FILE)
    for node in root.iter():
        # The namespace is one for all.
        node.tag = node.tag.rpartition("}")[2]
    return _Specification(root).grammar()


def _code(node: ET.Element) -> int:
    code = int(need(node, "code"), 16)
    if not 0 < code < 256:
        raise SpecError(f"<{node.tag} {node.attrib}>: a code is one byte")
    return code


class _Specification:
    def __init__(self, root: ET.Element) -> None:
        self._root = root
        self._classes = root.findall("class")
        #: Type of each domain, by its name; those of a class by "class.domain".
        self._domains: dict[str, str] = {
            need(node, "name"): need(node, "type") for node in root.findall("domain")
        }
        self._structs: dict[str, str] = {}
        for cls in self._classes:
            scope = need(cls, "name")
            for node in cls.findall("domain"):
                self._domains[f"{scope}.{need(node, 'name')}"] = need(node, "type")
            for node in cls.iter("struct"):
                name = need(node, "name")
                self._structs[f"{scope}.{name}"] = _PYTHON_NAMES.get((scope, name), names.class_name(name))

    def grammar(self) -> Grammar:
        major, minor = int(need(self._root, "major")), int(need(self._root, "minor"))
        structs = tuple(spec for cls in self._classes for spec in self._of_class(cls))
        return Grammar(
            version=f"{major}-{minor}",
            # AMQP 0-10, "Version negotiation": protocol class and instance 1 stand for TCP.
            header=b"AMQP" + bytes((1, 1, major, minor)),
            file=FILE,
            types=tuple(
                TypeSpec(need(node, "name"), int(need(node, "code"), 16))
                for node in self._root.findall("type")
                if node.get("code")
            ),
            constants=tuple(
                (need(node, "name"), int(need(node, "value"))) for node in self._root.findall("constant")
            ),
            enums=tuple(self._enums()),
            structs=_checked(structs),
        )

    def _enums(self) -> Iterator[EnumSpec]:
        nodes = [("", node) for node in self._root.findall("domain")]
        nodes += [(need(cls, "name"), node) for cls in self._classes for node in cls.findall("domain")]
        nodes = [(scope, node) for scope, node in nodes if node.find("enum") is not None]
        count = Counter(need(node, "name") for _, node in nodes)
        for scope, node in nodes:
            name = need(node, "name")
            # Two classes may call different things by one name.
            python = names.class_name(name) if count[name] == 1 else names.class_name(scope, name)
            yield EnumSpec(
                python,
                tuple((need(choice, "name"), int(need(choice, "value"))) for choice in node.iter("choice")),
            )

    def _of_class(self, cls: ET.Element) -> Iterator[StructSpec]:
        scope, class_code = need(cls, "name"), _code(cls)
        found = [
            self._struct(scope, class_code, node)
            for node in cls.iter()
            if node.tag in ("struct", "control", "command")
        ]
        yield from sorted(found, key=lambda spec: (spec.kind, spec.code))

    def _struct(self, scope: str, class_code: int, node: ET.Element) -> StructSpec:
        name = need(node, "name")
        result = node.find("result")
        python = self._structs[f"{scope}.{name}"] if node.tag == "struct" else names.class_name(scope, name)
        return StructSpec(
            kind=cast(Literal["control", "command", "struct"], node.tag),
            class_name=scope,
            class_code=class_code,
            name=name,
            code=_code(node) if node.tag != "struct" or node.get("code") else 0,
            python=python,
            fields=tuple(self._field(scope, child) for child in node.findall("field")),
            size=int(node.get("size", "0")),
            pack=int(node.get("pack", "2")),
            responses=tuple(need(child, "name") for child in node.findall("response")),
            receivers=tuple(need(child, "role") for child in node.findall("implement")),
            has_segments=node.find("segments") is not None,
            result="" if result is None else self._result(scope, result),
        )

    def _result(self, scope: str, node: ET.Element) -> str:
        inner = node.find("struct")
        name = need(node, "type") if inner is None else need(inner, "name")
        try:
            return self._structs[f"{scope}.{name}"]
        except KeyError:
            raise SpecError(f"class {scope}: no struct {name!r}") from None

    def _field(self, scope: str, node: ET.Element) -> StructField:
        name, type_ = need(node, "name"), need(node, "type")
        scoped = type_ if "." in type_ else f"{scope}.{type_}"
        if scoped in self._structs:
            return StructField(name, names.attribute(name), "struct", self._structs[scoped])
        # A domain is of a type of the standard's, never of another domain.
        seen = self._domains.get(scoped) or self._domains.get(type_) or type_
        if seen not in FIELD_TYPES:
            raise SpecError(f"class {scope}, field {name!r}: unknown type {type_!r}")
        return StructField(name, names.attribute(name), seen)


def _checked(structs: tuple[StructSpec, ...]) -> tuple[StructSpec, ...]:
    known = {spec.python: spec for spec in structs}
    if len(known) != len(structs):
        raise SpecError("two structures have one name")
    codes = [(spec.kind == "struct", spec.class_code, spec.code) for spec in structs if spec.code]
    if len(set(codes)) != len(codes):
        raise SpecError("a code occurs twice")
    for spec in structs:
        if spec.pack not in (0, 1, 2, 4) or spec.size not in (0, 1, 2, 4):
            raise SpecError(f"{spec.full_name}: sizes and packing flags take 1, 2 or 4 bytes, or none")
        if len(spec.fields) > 8 * spec.pack and spec.pack:
            raise SpecError(f"{spec.full_name}: more fields than packing flags")
        attrs = [one.attr for one in spec.fields]
        if len(set(attrs)) != len(attrs):
            raise SpecError(f"{spec.full_name}: a field name occurs twice")
        for one in spec.fields:
            if one.struct and known[one.struct].size not in (2, 4):
                raise SpecError(f"{spec.full_name}: a structure as a field has a size of 2 or 4 bytes")
        if spec.result and known[spec.result].size != 4:
            raise SpecError(f"{spec.full_name}: a result has a size of 4 bytes")
    return structs
