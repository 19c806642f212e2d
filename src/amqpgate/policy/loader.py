"""A folder of policy documents to a `PolicySet`, all or nothing.

Every ``.yaml`` and ``.yml`` file under the folder counts, in the order of its path. Names that start
with ``.`` or ``_`` are ignored; symbolic links are followed, as a mounted ConfigMap needs: its files
are links into a hidden folder that is swapped whole. A swap while the files are read is noticed, and
they are read again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from amqpgate import yamldoc
from amqpgate.digests import sha256
from amqpgate.errors import ConfigError
from amqpgate.policy.kinds.common import DefaultAccess
from amqpgate.policy.kinds.kind import AnyDocumentKind, Document, Placed, PolicyKind
from amqpgate.policy.kinds.registry import DOCUMENT_KINDS
from amqpgate.policy.kinds.route import ROUTE
from amqpgate.policy.policy_set import PolicySet, Written
from amqpgate.values import frozen
from amqpgate.yamldoc import Mapping, Node, NumberBounds, Scalar, compose, nearest, structure

MAX_FILES = 1000
MAX_TOTAL_BYTES = 16 << 20
_MAX_FOLDER_DEPTH = 8
_ATTEMPTS = 5
#: What holds the rules of a document, whatever its kind.
_RULES = ("rules", "limits", "routes", "arguments")


@frozen
class Source:
    """One file: its name for errors, and what is in it."""

    name: str
    data: bytes


def load_folder(folder: Path, default_access: DefaultAccess = "allow") -> PolicySet:
    """The policies in ``folder``; `ConfigError` for the first thing wrong, or if there is no file at all."""
    return build(read_folder(folder), default_access)


def read_folder(folder: Path) -> list[Source]:
    """The files in ``folder``, as they were at one moment; `ConfigError` if they cannot be read."""
    for _ in range(_ATTEMPTS):
        files = _files(folder)
        sources = [Source(str(path), _read(path)) for path, _ in files]
        if _files(folder) == files:
            return sources
    raise ConfigError("the folder keeps changing while it is read", file=str(folder))


#: How a folder looks: of each file its path, which file that is, its size, and when it was changed.
Stamp: TypeAlias = "tuple[tuple[str, int, int, int, int, int], ...] | str"


def stamp(folder: Path) -> Stamp:
    """How the folder looks, without reading it: equal as long as nothing has changed. Never raises."""
    try:
        looks: list[tuple[str, int, int, int, int, int]] = []
        for path in sorted(_walk(folder, _MAX_FOLDER_DEPTH)):
            if len(looks) > MAX_FILES:
                break
            # Of the file that the links lead to, so that a swap of a link shows.
            is_ = path.stat()
            looks.append((str(path), is_.st_dev, is_.st_ino, is_.st_size, is_.st_mtime_ns, is_.st_ctime_ns))
        return tuple(looks)
    except (ConfigError, OSError) as error:
        return str(error)


def _files(folder: Path) -> list[tuple[Path, str]]:
    """Each policy file with the place where its links lead."""
    found = sorted(_walk(folder, _MAX_FOLDER_DEPTH))
    if not found:
        raise ConfigError("no .yaml or .yml file in this folder", file=str(folder))
    if len(found) > MAX_FILES:
        raise ConfigError(f"more than {MAX_FILES} policy files", file=str(folder))
    return [(path, os.path.realpath(path)) for path in found]


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    if not depth:
        raise ConfigError("folders are nested too deeply, or link in a circle", file=str(folder))
    try:
        entries = list(folder.iterdir())
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(folder)) from None
    for path in entries:
        if path.name.startswith((".", "_")):
            continue
        if path.is_dir():
            yield from _walk(path, depth - 1)
        elif path.suffix.lower() in (".yaml", ".yml"):
            yield path


def _read(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise ConfigError("not a file", file=str(path))
    try:
        with path.open("rb") as file:
            return file.read(NumberBounds().size + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(path)) from None


def build(
    sources: Iterable[Source],
    default_access: DefaultAccess = "allow",
    kinds: Sequence[AnyDocumentKind] = DOCUMENT_KINDS,
) -> PolicySet:
    """The policies in ``sources``. `ConfigError` cites file, line and column; nothing is skipped."""
    digest = sha256()
    total = 0
    documents: dict[tuple[str, str], Placed[Document]] = {}
    for source in sources:
        total += len(source.data)
        if total > MAX_TOTAL_BYTES:
            raise ConfigError(
                f"the policies are larger than {MAX_TOTAL_BYTES} bytes together", file=source.name
            )
        digest.update(f"{len(source.data)}:".encode() + source.data)
        for placed in documents_of([source], kinds):
            key = (placed.document.kind, placed.name)
            if key in documents:
                first = documents[key].node.mark
                raise placed.node.mark.error(
                    f"{key[0]} '{key[1]}' exists already, at {first.file}:{first.line}"
                )
            documents[key] = placed
    policy_kinds = tuple(kind for kind in kinds if isinstance(kind, PolicyKind))
    for kind in policy_kinds:
        kind.check([placed for placed in documents.values() if placed.document.kind == kind.name])
    ordered = tuple(documents[key].document for key in sorted(documents))
    places = {placed.name: placed for placed in documents.values() if placed.document.kind == ROUTE.name}
    written = {key: _written(placed.node) for key, placed in documents.items()}
    return PolicySet(ordered, digest.hexdigest(), default_access, policy_kinds, places, written)


def _written(node: Node) -> Written:
    spec = node.entries.get("spec") if isinstance(node, Mapping) else None
    lines: tuple[int, ...] = ()
    for key in _RULES:
        rules = spec.entries.get(key) if isinstance(spec, Mapping) else None
        if isinstance(rules, yamldoc.Sequence):
            lines = tuple(rule.mark.line for rule in rules.items)
    return Written(node.mark.file, node.mark.line, lines)


def documents_of(
    sources: Iterable[Source], kinds: Sequence[AnyDocumentKind] = DOCUMENT_KINDS
) -> Iterator[Placed[Document]]:
    """Every document with its node, which knows the line of each key; `ConfigError` for a wrong one."""
    for source in sources:
        for node in compose(source.data, source.name):
            yield placed_document(node, kinds)


def placed_document(node: Node, kinds: Sequence[AnyDocumentKind] = DOCUMENT_KINDS) -> Placed[Document]:
    """The document that a node describes; `ConfigError` for a wrong one."""
    return Placed(node, _document(node, kinds))


def errors_in(sources: Iterable[Source]) -> list[ConfigError]:
    """The errors of every document; a file that is no YAML has one."""
    found = []
    for source in sources:
        try:
            nodes = compose(source.data, source.name)
        except ConfigError as error:
            found.append(error)
            continue
        for node in nodes:
            try:
                _document(node, DOCUMENT_KINDS)
            except ConfigError as error:
                found += error.all
    return found


def _document(node: Node, kinds: Sequence[AnyDocumentKind]) -> Document:
    types = {kind.name: kind.document for kind in kinds}
    if not isinstance(node, Mapping):
        raise node.mark.error("expected a document with apiVersion, kind, metadata and spec")
    kind = node.entries.get("kind")
    if kind is None:
        raise node.mark.error(f"key 'kind' is missing; known are {', '.join(types)}")
    name = kind.text if isinstance(kind, Scalar) else ""
    if name not in types:
        raise kind.mark.error(f"unknown kind '{name}'{nearest(name, types)}; known are {', '.join(types)}")
    return structure(node, types[name])
