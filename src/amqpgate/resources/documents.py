"""One custom resource, as a document of a policy folder; and what is wrong with it, by path.

A resource has no file. So errors cite the path of the value, such as ``spec.rules[0].effect``. Sizes and
depth are bounded before anything is made of a resource, since its author may write what the API server
stores: 1.5 MB.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping as AbstractMapping
from typing import Final, TypeAlias

import attrs
import yaml

from amqpgate.digests import sha256
from amqpgate.errors import ConfigError
from amqpgate.policy.kinds.kind import Document, Placed
from amqpgate.policy.loader import placed_document
from amqpgate.resources.definitions import GROUP, VERSION
from amqpgate.yamldoc import Mapping, Mark, Node, NumberBounds, Scalar, Sequence, compose

#: What JSON has.
Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Resource: TypeAlias = "dict[str, Json]"

#: Characters of the texts of one resource. A policy has some 500.
MOST_TEXT: Final = 128 << 10
_BOUNDS: Final = NumberBounds(nodes=20_000)
#: What a resource has that is no part of the document.
_OF_KUBERNETES: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
#: Characters of a key in a ConfigMap.
_MOST_KEY: Final = 253
#: Half of a pair that UTF-16 has, and JSON can say: nothing that UTF-8 has.
_HALF: Final = re.compile("[\ud800-\udfff]")
_HEAD: Final = "# amqpgate: "


@attrs.frozen(order=True)
class ResourceKey:
    """Which resource."""

    kind: str
    namespace: str
    name: str

    @property
    def file(self) -> str:
        """The name of its file in a ConfigMap."""
        file = f"{self.kind.lower()}.{self.namespace}.{self.name}.yaml"
        if len(file) <= _MOST_KEY:
            return file
        return f"{file[: _MOST_KEY - 22]}.{sha256(file.encode()).hexdigest()[:16]}.yaml"

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@attrs.frozen
class WrittenResource:
    """A resource in a version that is valid by itself: what the gateway reads of it."""

    key: ResourceKey
    generation: int
    #: The whole file, and the document in it.
    text: str = attrs.field(repr=False)
    placed: Placed[Document] = attrs.field(repr=False, eq=False)

    @property
    def digest(self) -> str:
        """SHA-256 of the document, in part."""
        return sha256(self.text.partition("\n")[2].encode()).hexdigest()[:16]


class RefusedResource(Exception):
    """A resource, or this version of it, does not get in force. ``reason`` is a word for programs."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def written(key: ResourceKey, name: str, resource: Resource, generation: int) -> WrittenResource:
    """The resource as a document that is called ``name``. Raises `RefusedResource`."""
    document: Resource = {"apiVersion": f"{GROUP}/{VERSION}", "kind": key.kind, "metadata": {"name": name}}
    document |= {part: value for part, value in resource.items() if part not in _OF_KUBERNETES}
    try:
        node = _Growing().node(document, "", 0)
        body = yaml.dump(
            document,
            Dumper=_QuotingDumper,
            sort_keys=False,
            allow_unicode=True,
            default_flow_style=False,
            width=110,
        )
        placed = placed_document(node)
        head = {"kind": key.kind, "namespace": key.namespace, "name": key.name, "generation": generation}
        return WrittenResource(key, generation, f"{_HEAD}{json.dumps(head)}\n{body}", placed)
    except ConfigError as error:
        raise RefusedResource("Invalid", _told(error)) from None


def read_back(file: str, text: str) -> WrittenResource | None:
    """What an operator has written before; None where it was not one, or what it says is no longer valid."""
    head, _, _ = text.partition("\n")
    try:
        told = json.loads(head.removeprefix(_HEAD))
        key = ResourceKey(str(told["kind"]), str(told["namespace"]), str(told["name"]))
        generation = int(told["generation"])
        (node,) = compose(text, file)
        placed = placed_document(node)
    except (ValueError, KeyError, TypeError, RecursionError, ConfigError):
        return None
    if not head.startswith(_HEAD) or key.file != file or placed.document.kind != key.kind:
        return None
    return WrittenResource(key, generation, text, placed)


def _told(error: ConfigError) -> str:
    """All that is wrong, a line each."""
    return "\n".join(str(one) for one in error.all[:10])


@attrs.define
class _Growing:
    """Makes nodes of JSON that know their path, within bounds."""

    texts: int = 0
    nodes: int = 0

    def node(self, value: Json, path: str, depth: int) -> Node:
        """Of one value. Raises `ConfigError`."""
        mark = Mark(path or "the resource")
        self.nodes += 1
        if depth > _BOUNDS.depth:
            raise mark.error(f"nested deeper than {_BOUNDS.depth} levels")
        if self.nodes > _BOUNDS.nodes:
            raise ConfigError(f"the resource has more than {_BOUNDS.nodes} values; split it")
        if isinstance(value, dict):
            return self._mapping(value, path, depth)
        if isinstance(value, list):
            return Sequence(
                tuple(self.node(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)),
                mark,
            )
        if value is None:
            return Scalar("null", mark, plain=True)
        if isinstance(value, bool):
            return Scalar("true" if value else "false", mark, plain=True)
        self._count(str(value), mark)
        return Scalar(str(value), mark, plain=not isinstance(value, str))

    def _mapping(self, value: AbstractMapping[str, Json], path: str, depth: int) -> Node:
        entries: dict[str, Node] = {}
        keys: dict[str, Mark] = {}
        for key, entry in value.items():
            self._count(key, Mark(path or "the resource"))
            if key == "<<":
                raise Mark(path or "the resource").error("merge keys (<<) are not supported")
            if key == "passwordFile" and path.startswith("spec.routes["):
                raise Mark(f"{path}.{key}").error("a resource names no files of gateways: say passwordEnv")
            # A key that is no word is shown as JSON has it, and cut.
            shown = key if re.match(r"[A-Za-z0-9_-]{1,63}\Z", key) else json.dumps(key[:63])
            inner = f"{path}.{shown}" if path else shown
            keys[key] = Mark(inner)
            entries[key] = self.node(entry, inner, depth + 1)
        return Mapping(entries, keys, Mark(path or "the resource"))

    def _count(self, text: str, mark: Mark) -> None:
        self.texts += len(text)
        if self.texts > MOST_TEXT:
            raise ConfigError(f"the resource is larger than {MOST_TEXT} characters; split it")
        # It would be in no file, and in no answer.
        if _HALF.search(text):
            raise mark.error("there is text that is no Unicode, half of a surrogate pair")


class _QuotingDumper(yaml.SafeDumper):
    """Writes what YAML 1.2 reads as it was: the library knows YAML 1.1."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
    is_text = Scalar(data, Mark(""), plain=True).kind == "string"
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=None if is_text else "'")


_QuotingDumper.add_representer(str, _text)
