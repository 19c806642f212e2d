"""Documents with pods in them, as ``kubectl apply`` takes them.

Read as kubectl reads YAML, which is version 1.1 but for times and numbers in base 60. Documents in which
nothing changes are given back as they were written; in the others comments are lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, cast

import attrs
import yaml

from amqpgate.errors import ConfigError
from amqpgate.inject.pods import inject, why_left
from amqpgate.inject.settings import Injector
from amqpgate.inject.values import NotInjectedError, as_mapping, mapping_at, mappings_at, text_at
from amqpgate.yamldoc.schema import Json

#: Where the pod template is, by API group and kind.
_TEMPLATES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): (),
    ("", "ReplicationController"): ("spec", "template"),
    ("apps", "DaemonSet"): ("spec", "template"),
    ("apps", "Deployment"): ("spec", "template"),
    ("apps", "ReplicaSet"): ("spec", "template"),
    ("apps", "StatefulSet"): ("spec", "template"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
    ("batch", "Job"): ("spec", "template"),
}
#: Letters and nodes of a document that are there by aliases; the API server stores no object above 1.5 MiB.
_MOST_REPEATED: Final = 1 << 20
#: What stands between documents (YAML 1.1, sections 9.1 and 9.2); inside of a text such a line is indented.
#: The next document may begin on the same line: then there is neither a comment nor the line's end.
_SEPARATOR: Final = re.compile(r"^---(?=[ \t\r\n]|\Z)[ \t]*(?:#.*)?\r?\n?", re.MULTILINE)
_END: Final = re.compile(r"^\.\.\.(?=[ \t\r\n]|\Z)", re.MULTILINE)
_BREAK: Final = re.compile("[\r\n\x85\u2028\u2029]")


@attrs.frozen
class ManifestOutcome:
    """What became of one object."""

    #: Of its document, from 1.
    line: int
    kind: str
    name: str
    #: None for what makes no pods.
    is_injected: bool | None
    #: What leads to the sidecar now, or why nothing does.
    words: str = ""


@attrs.frozen
class InjectedManifests:
    """Manifests with sidecars."""

    text: str
    #: Of each object, in their order.
    outcomes: tuple[ManifestOutcome, ...]


def inject_manifests(text: str, settings: Injector, *, file: str) -> InjectedManifests:
    """The same documents, with sidecars. ``file`` is the name that errors cite.

    Raises ``ConfigError`` for all documents that are no YAML and, with their names, all objects that cannot
    have a sidecar (unless ``settings.on_error`` is ``open``: then these go without).
    """
    parts: list[str] = []
    outcomes: list[ManifestOutcome] = []
    errors: list[ConfigError] = []
    separator = ""
    end = 0
    for match in [*_SEPARATOR.finditer(text), None]:
        part = text[end : len(text) if match is None else match.start()]
        line = text.count("\n", 0, end)
        try:
            written = _document(part, settings, file, line, outcomes)
            # What is written is in lines of its own.
            is_inside = written != part and separator.endswith((" ", "\t"))
            parts += [f"{separator.rstrip()}\n" if is_inside else separator, written]
        except ConfigError as error:
            errors += error.all
        except RecursionError:
            errors.append(ConfigError("nested too deeply", file=file, line=line + 1))
        if match is not None:
            separator, end = match[0], match.end()
    if errors:
        raise ConfigError.together(errors)
    return InjectedManifests("".join(parts), tuple(outcomes))


def _document(
    text: str, settings: Injector, file: str, lines_before: int, outcomes: list[ManifestOutcome]
) -> str:
    body, directives = _apart(text)
    try:
        document = cast("Json", yaml.load(body, _Loader))  # noqa: S506 - a safe one, see there
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark or error.context_mark
        line = None if at is None else lines_before + at.line + 1
        raise ConfigError(f"not valid YAML: {error.problem or error.context}", file=file, line=line) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"not valid YAML: {error}", file=file, line=lines_before + 1) from None
    if not isinstance(document, dict):
        return text
    changed = False
    try:
        objects = list(_objects(document))
    except NotInjectedError as error:
        raise ConfigError(str(error), file=file, line=lines_before + 1) from None
    errors: list[ConfigError] = []
    for item, kind, name in objects:
        try:
            is_injected, words = _inject_object(item, settings)
        except NotInjectedError as error:
            if settings.on_error == "closed":
                shown = f"{kind} {name}".strip()
                errors.append(ConfigError(f"{shown}: {error}", file=file, line=lines_before + 1))
            is_injected, words = False, str(error)
        changed |= is_injected is True
        outcomes.append(ManifestOutcome(lines_before + 1, kind, name, is_injected, words))
    if errors:
        raise ConfigError.together(errors)
    if not changed:
        return text
    if text.lstrip().startswith("{"):
        written = json.dumps(document, indent=2) + "\n"
    else:
        written = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)
    return (written.replace("\n", "\r\n") if "\r\n" in text else written) + directives


def _apart(text: str) -> tuple[str, str]:
    """A document, and the directives of the next one, such as ``%YAML 1.1``, with what ends this one."""
    end = _END.search(text)
    start, rest = (0, text) if end is None else (end.start(), text[end.end() :])
    lines = [line for line in _BREAK.split(rest) if line.strip() and not line.lstrip().startswith("#")]
    if lines and all(line.startswith("%") for line in lines):
        return text[:start], text[start:]
    return text, ""


def _objects(document: dict[str, Json]) -> Iterator[tuple[dict[str, Json], str, str]]:
    """What is in a document, each with its kind and name."""
    if document.get("kind") == "List":
        for item in mappings_at(document, "items", "document"):
            yield from _objects(item)
    else:
        metadata = mapping_at(document, "metadata", "document")
        yield document, str(document.get("kind")), text_at(metadata, "name", "metadata")


def _inject_object(document: dict[str, Json], settings: Injector) -> tuple[bool | None, str]:
    """Change the pod in ``document``, if there is one; what an `ManifestOutcome` says of it."""
    group, _, _version = text_at(document, "apiVersion", "document").rpartition("/")
    path = _TEMPLATES.get((group, text_at(document, "kind", "document")))
    if path is None:
        return None, ""
    pod = document
    for key in path:
        pod = as_mapping(pod.get(key), f"{document.get('kind')}.{key}")
    injection = inject(pod, settings)
    if injection is None:
        return False, why_left(pod, settings)
    pod.update(injection.pod)
    return True, ", ".join(injection.variables)


class _Loader(yaml.SafeLoader):
    """Plain data only, none of the plain scalars that kubectl takes for text, and no bombs."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        #: Letters and nodes so far, written out, and of each node with an end.
        self._size = 0
        self._sizes: dict[int, int] = {}
        #: Of those, what stands there by an alias.
        self._repeated = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """The next node; what its aliases would be, written out, is bounded."""
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        before = self._size
        node = super().compose_node(parent, index)
        if not isinstance(event, yaml.AliasEvent):
            self._size += 1 + (len(event.value) if isinstance(event, yaml.ScalarEvent) else 0)
            self._sizes[id(node)] = self._size - before
            return node
        # One that has no end yet has this alias in itself.
        size = self._sizes.get(id(node), _MOST_REPEATED + 1)
        self._size += size
        self._repeated += size
        if self._repeated > _MOST_REPEATED:
            raise yaml.MarkedYAMLError(
                problem=f"with its aliases written out it has over {_MOST_REPEATED} letters more",
                problem_mark=cast("yaml.Mark | None", event.start_mark),
            )
        return node

    def compose_mapping_node(self, anchor: dict[str, yaml.Node]) -> yaml.MappingNode:
        """A mapping. Of a key that is there twice one value would be gone without a word."""
        node = super().compose_mapping_node(anchor)
        keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in keys:
                raise yaml.MarkedYAMLError(
                    problem=f"key '{key.value}' is given twice", problem_mark=key.start_mark
                )
            keys.add(key.value)
        return node


class _Dumper(yaml.SafeDumper):
    """No anchors; quotes around whatever any reader of YAML 1.1 or 1.2 could take for no text."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


_TIME: Final = "tag:yaml.org,2002:timestamp"
_INT: Final = "tag:yaml.org,2002:int"
_FLOAT: Final = "tag:yaml.org,2002:float"
_TEXT: Final = "tag:yaml.org,2002:str"

_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_TIME, _INT, _FLOAT)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    _INT, re.compile(r"[-+]?(0b[01_]+|0[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)\Z"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    _FLOAT,
    re.compile(r"([-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?)\Z"),
    list("-+0123456789."),
)


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """A text; over several lines as a block, and with quotes if its first letter could begin a number."""
    style = None
    if "\n" in text:
        style = "|"
    elif text[:1] in "0123456789+-.=" or text.lower() in ("y", "n"):
        style = "'"
    return dumper.represent_scalar(_TEXT, text, style=style)


_Dumper.add_representer(str, _text)
