"""XML to model: a specification file and the overlays that change it.

An overlay is XML of the same vocabulary under the root ``overlay``; each entry carries a ``source``:

``<constant name value class source/>``
    adds a constant.
``<rename class method [field] to source/>``
    gives a method or a field another name.
``<class name index><method name index source ...>...</method></class>``
    adds a method (and its class, if new). A method that exists already is changed: attributes that are
    given replace, responses are added, and fields, if there are any, replace all fields.
``<lenient class method source/>``
    short strings of that method are not checked for UTF-8.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from attrs import frozen

from amqpgate.codegen.model import (
    WIRE_TYPES,
    ClassSpec,
    ConstantSpec,
    FieldSpec,
    MethodSpec,
    Spec,
)
from amqpgate.codegen.names import attribute, canonical


class SpecError(Exception):
    """A specification or overlay that does not say what it must."""


@frozen
class SpecSource:
    """Which files make one version."""

    module: str
    version: tuple[int, int, int]
    header: bytes
    base: str
    overlays: tuple[str, ...]


def sources(root: Path) -> tuple[SpecSource, ...]:
    """What makes each version that a module ``bridge/v*.py`` below ``root`` is there for.

    Raises :class:`SpecError` for a version without a specification.
    """
    modules = sorted((root / "src/amqpgate/bridge").glob("v[0-9]*.py"))
    if not modules:
        raise SpecError("no module bridge/v*.py says which versions there are")
    return tuple(_source(path.stem, root / "spec/amqp") for path in modules)


def _source(module: str, folder: Path) -> SpecSource:
    stem = f"amqp{module.removeprefix('v').replace('_', '-')}"
    base = next((path for end in ("", ".extended") if (path := folder / f"{stem}{end}.xml").exists()), None)
    if base is None:
        raise SpecError(f"bridge/{module}.py has no specification {stem}.xml")
    root = parse(base)
    major, minor = int(need(root, "major")), int(need(root, "minor"))
    revision = int(root.get("revision", "0"))
    # What clients of the version send (``spec/amqp/README.md``): 0-9-1 was the first to have a revision.
    header = (0, major, minor, revision) if revision else (1, 1, major, minor)
    overlays = [(path.name, parse(path).get("base")) for path in folder.glob("*.overlay.xml")]
    overlays.sort(reverse=True)
    return SpecSource(
        module,
        # By its own numbers 0-8 is 8-0.
        (0, 8, 0) if (major, minor) == (8, 0) else (major, minor, revision),
        b"AMQP" + bytes(header),
        base.name,
        tuple(name for wanted in (base.name, "*") for name, of in overlays if of == wanted),
    )


def load(source: SpecSource, folder: Path) -> Spec:
    """One version from its files in ``folder``; :class:`SpecError` if they do not fit together."""
    root = parse(folder / source.base)
    spec = Spec(source.version, source.header, [source.base, *source.overlays])
    domains = {canonical(need(node, "name")): need(node, "type") for node in root.iter("domain")}
    for node in root.findall("constant"):
        spec.constants.append(_constant(node))
    for node in root.findall("class"):
        spec.classes.append(_class(node, domains))
    for name in source.overlays:
        _overlay(spec, parse(folder / name), domains, name)
    _check(spec)
    spec.constants.sort(key=lambda constant: constant.value)
    spec.classes.sort(key=lambda cls: cls.index)
    for cls in spec.classes:
        cls.methods.sort(key=lambda method: method.index)
    return spec


def parse(path: Path) -> ET.Element:
    """The root of a file; :class:`SpecError` if it cannot be read."""
    try:
        return ET.parse(path).getroot()  # noqa: S314 - the project's own files
    except (OSError, ET.ParseError) as error:
        raise SpecError(f"{path}: {error}") from error


def need(node: ET.Element, name: str) -> str:
    """An attribute; :class:`SpecError` if it is not there."""
    value = node.get(name)
    if value is None:
        raise SpecError(f"<{node.tag} {node.attrib}> lacks the attribute {name!r}")
    return value


def _constant(node: ET.Element) -> ConstantSpec:
    scopes: dict[str, Literal["channel", "connection"]] = {
        "soft-error": "channel",
        "hard-error": "connection",
    }
    return ConstantSpec(
        name=canonical(need(node, "name")),
        value=int(need(node, "value")),
        scope=scopes.get(canonical(node.get("class", "")), ""),
        source=node.get("source", ""),
    )


def _class(node: ET.Element, domains: dict[str, str]) -> ClassSpec:
    cls = ClassSpec(canonical(need(node, "name")), int(need(node, "index")))
    cls.properties = list(_fields(node, domains))
    for child in node.findall("method"):
        method = MethodSpec(canonical(need(child, "name")), int(need(child, "index")), False, False)
        _fill(method, child, domains)
        cls.methods.append(method)
    return cls


def _fill(method: MethodSpec, node: ET.Element, domains: dict[str, str]) -> None:
    method.index = int(node.get("index", str(method.index)))
    method.synchronous = node.get("synchronous", "1" if method.synchronous else "0") == "1"
    method.content = node.get("content", "1" if method.content else "0") == "1"
    fields = list(_fields(node, domains))
    if fields:
        method.fields = fields
    method.responses += [canonical(need(child, "name")) for child in node.findall("response")]
    receivers = [need(child, "name") for child in node.findall("chassis")]
    if receivers:
        method.receivers = receivers


def _fields(node: ET.Element, domains: dict[str, str]) -> Iterable[FieldSpec]:
    for child in node.findall("field"):
        domain = canonical(child.get("domain") or need(child, "type"))
        wire = domains.get(domain, domain)
        if wire not in WIRE_TYPES and wire != "content":
            raise SpecError(f"field {child.get('name')!r} of unknown type {wire!r}")
        name = canonical(need(child, "name"))
        yield FieldSpec(name, attribute(name), wire, child.get("optional") == "1")


def _overlay(spec: Spec, root: ET.Element, domains: dict[str, str], file: str) -> None:
    if root.tag != "overlay":
        raise SpecError(f"{file}: the root is <{root.tag}>, not <overlay>")
    extension = root.get("extension", "")
    for node in root:
        if node.tag == "constant":
            need(node, "source")
            spec.constants.append(_constant(node))
        elif node.tag == "rename":
            need(node, "source")
            _rename(spec, node)
        elif node.tag == "lenient":
            need(node, "source")
            spec.cls(need(node, "class")).method(need(node, "method")).lenient = True
        elif node.tag == "class":
            _overlay_class(spec, node, domains, extension)
        else:
            raise SpecError(f"{file}: unknown entry <{node.tag}>")


def _rename(spec: Spec, node: ET.Element) -> None:
    cls = spec.cls(need(node, "class"))
    method = cls.method(need(node, "method"))
    to = canonical(need(node, "to"))
    wanted = node.get("field")
    if wanted is None:
        for other in cls.methods:
            other.responses = [to if name == method.name else name for name in other.responses]
        method.name = to
        method.source = need(node, "source")
        return
    for field in method.fields:
        if field.name == wanted:
            field.name, field.attr = to, attribute(to)
            return
    raise SpecError(f"{cls.name}.{method.name} has no field {wanted!r}")


def _overlay_class(spec: Spec, node: ET.Element, domains: dict[str, str], extension: str) -> None:
    name = canonical(need(node, "name"))
    try:
        cls = spec.cls(name)
    except KeyError:
        cls = ClassSpec(name, int(need(node, "index")))
        spec.classes.append(cls)
    for child in node.findall("method"):
        source = need(child, "source")
        try:
            method = cls.method(canonical(need(child, "name")))
        except KeyError:
            method = MethodSpec(
                canonical(need(child, "name")), int(need(child, "index")), False, False, extension=extension
            )
            cls.methods.append(method)
        _fill(method, child, domains)
        method.source = source


def _check(spec: Spec) -> None:
    for cls in spec.classes:
        indexes = [method.index for method in cls.methods]
        names = [method.name for method in cls.methods]
        if len(set(indexes)) != len(indexes) or len(set(names)) != len(names):
            raise SpecError(f"class {cls.name}: a method index or name occurs twice")
        for method in cls.methods:
            for response in method.responses:
                if response not in names:
                    raise SpecError(f"{cls.name}.{method.name}: unknown response {response!r}")
            attrs = [field.attr for field in method.fields]
            if len(set(attrs)) != len(attrs):
                raise SpecError(f"{cls.name}.{method.name}: a field name occurs twice")
            for field in method.fields:
                if field.type == "content":
                    raise SpecError(f"{cls.name}.{method.name}: no overlay says what {field.name!r} is")
                if field.optional and (field is not method.fields[-1] or field.type != "table"):
                    raise SpecError(f"{cls.name}.{method.name}: only a table at the end may be optional")
    values = [constant.value for constant in spec.constants]
    if len(set(values)) != len(values):
        raise SpecError("a constant occurs twice")
