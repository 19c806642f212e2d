"""A folder of policy documents to a `PolicySet`, all or nothing.

Every ``.yaml`` and ``.yml`` file under the folder counts, in the order of its path. Names that start
with ``.`` or ``_`` are ignored; symbolic links are followed, as a mounted ConfigMap needs: its files
are links into a hidden folder that is swapped whole. A swap while the files are read is noticed, and
they are read again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import attrs

from amqpgate.errors import ConfigError
from amqpgate.policy.kinds.access import AccessPolicy, DefaultAccess
from amqpgate.policy.kinds.audit import AuditPolicy
from amqpgate.policy.kinds.rate import RatePolicy
from amqpgate.policy.kinds.registry import KINDS, Document
from amqpgate.policy.kinds.route import RoutePolicy
from amqpgate.policy.kinds.trace import TracePolicy
from amqpgate.policy.kinds.transform import TransformPolicy
from amqpgate.policy.policy_set import PolicySet
from amqpgate.yamldoc import Mapping, Mark, Node, NumberBounds, Scalar, compose, nearest, structure

MAX_FILES = 1000
MAX_TOTAL_BYTES = 16 << 20
_MAX_FOLDER_DEPTH = 8
_ATTEMPTS = 5


@attrs.frozen
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


def build(sources: Iterable[Source], default_access: DefaultAccess = "allow") -> PolicySet:
    """The policies in ``sources``. `ConfigError` cites file, line and column; nothing is skipped."""
    digest = hashlib.sha256()
    total = 0
    documents: dict[tuple[str, str], Document] = {}
    places: dict[tuple[str, str], Mark] = {}
    for source in sources:
        total += len(source.data)
        if total > MAX_TOTAL_BYTES:
            raise ConfigError(
                f"the policies are larger than {MAX_TOTAL_BYTES} bytes together", file=source.name
            )
        digest.update(f"{len(source.data)}:".encode() + source.data)
        for node in compose(source.data, source.name):
            document = _document(node)
            key = (document.kind, document.metadata.name)
            if key in places:
                raise node.mark.error(
                    f"{key[0]} '{key[1]}' exists already, at {places[key].file}:{places[key].line}"
                )
            documents[key], places[key] = document, node.mark
    _check_routes(documents, places)
    ordered = [documents[key] for key in sorted(documents)]
    return PolicySet(
        tuple(document for document in ordered if isinstance(document, AccessPolicy)),
        digest.hexdigest(),
        tuple(document for document in ordered if isinstance(document, RatePolicy)),
        routes=tuple(document for document in ordered if isinstance(document, RoutePolicy)),
        audits=tuple(document for document in ordered if isinstance(document, AuditPolicy)),
        transforms=tuple(document for document in ordered if isinstance(document, TransformPolicy)),
        traces=tuple(document for document in ordered if isinstance(document, TracePolicy)),
        default_access=default_access,
    )


def documents_of(sources: Iterable[Source]) -> Iterator[tuple[Node, Document]]:
    """Every document with its node, which knows the line of each key; `ConfigError` for a wrong one."""
    for source in sources:
        for node in compose(source.data, source.name):
            yield node, _document(node)


def _check_routes(documents: dict[tuple[str, str], Document], places: dict[tuple[str, str], Mark]) -> None:
    """An operator pauses a route by its id alone."""
    taken: dict[str, str] = {}
    for key, document in documents.items():
        if isinstance(document, RoutePolicy):
            for route in document.spec.routes:
                if route.id in taken:
                    raise places[key].error(f"RoutePolicy '{taken[route.id]}' has a route '{route.id}', too")
                taken[route.id] = key[1]


def errors_in(sources: Iterable[Source]) -> list[ConfigError]:
    """The first error of every document; a file that is no YAML has one."""
    found = []
    for source in sources:
        try:
            nodes = compose(source.data, source.name)
        except ConfigError as error:
            found.append(error)
            continue
        for node in nodes:
            try:
                _document(node)
            except ConfigError as error:
                found.append(error)
    return found


def _document(node: Node) -> Document:
    if not isinstance(node, Mapping):
        raise node.mark.error("expected a document with apiVersion, kind, metadata and spec")
    kind = node.entries.get("kind")
    if kind is None:
        raise node.mark.error(f"key 'kind' is missing; known are {', '.join(KINDS)}")
    name = kind.text if isinstance(kind, Scalar) else ""
    if name not in KINDS:
        raise kind.mark.error(f"unknown kind '{name}'{nearest(name, KINDS)}; known are {', '.join(KINDS)}")
    return structure(node, KINDS[name])
