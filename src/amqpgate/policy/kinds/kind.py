"""What a kind of policy brings. Whatever handles policies of all kinds knows them by this alone.

A module ``kinds/<kind>.py`` makes one `PolicyKind`, and `registry` lists it. The loader, the policy set, the
JSON Schemas, ``amqpgate policy check`` and what operators see of policies follow from its parts.

Some keys mean the same in every kind: ``spec.subjects``, ``spec.mode`` and ``spec.enforcePercent``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar

import attrs

from amqpgate.digests import blake2b
from amqpgate.policy.engine.matching import Values
from amqpgate.policy.engine.operations import Principal
from amqpgate.policy.engine.subjects import Subject
from amqpgate.policy.kinds.common import DefaultAccess, Metadata
from amqpgate.policy.kinds.finding import Finding
from amqpgate.values import frozen
from amqpgate.yamldoc import Mark, Node, locate

#: What operators see of a document, as JSON.
Row: TypeAlias = "Mapping[str, str | int | float | bool | Sequence[Row | str] | Row | None]"

#: Fractions of a percent by which sessions are chosen.
_SLICES = 10_000

#: Attribute names and positions that lead to a value of a document.
KeyPath: TypeAlias = "tuple[str | int, ...]"


class Document(Protocol):
    """A document of any kind."""

    @property
    def kind(self) -> str: ...
    @property
    def metadata(self) -> Metadata: ...


D = TypeVar("D", bound=Document, covariant=True)
S = TypeVar("S", covariant=True)


@frozen
class Placed(Generic[D]):
    """A document, and where it is written."""

    node: Node
    document: D

    @property
    def name(self) -> str:
        """The document's name."""
        return self.document.metadata.name

    def mark(self, *path: str | int) -> Mark:
        """Where the value at ``path`` stands, or the nearest thing around it."""
        return locate(self.node, type(self.document), path)


@frozen
class Selection(Generic[D]):
    """A policy that selects a session."""

    policy: D
    #: Whether it surely does. False: it may, the user is not known.
    is_sure: bool
    #: False: it only counts what it would do.
    is_enforced: bool


@frozen
class SessionSelection(Generic[D]):
    """The policies of one kind that select a session, sorted by name; those in mode ``off`` are not there."""

    policies: tuple[Selection[D], ...]
    principal: Principal
    #: The session's id.
    connection: str
    default_access: DefaultAccess

    @property
    def values(self) -> Values:
        """What variables stand for."""
        return self.principal.values


@frozen
class FolderCheck(Generic[D]):
    """What ``amqpgate policy check`` shows to a kind."""

    #: The documents of the kind.
    documents: Sequence[Placed[D]]
    #: The users that subjects of the folder name, whatever the kind.
    users: Mapping[str, Mark]
    #: Whether to report each deny that takes a part of what a rule allows.
    overlaps: bool = False


@frozen(kw_only=True)
class DocumentKind(Generic[D]):
    """A kind of document. Its name in ``kind`` is the name of its type."""

    document: type[D]
    #: ``AccessPolicy``.
    name: str = attrs.field(init=False)

    @name.default
    def _named(self) -> str:
        return self.document.__name__

    @property
    def schema_file(self) -> str:
        """Name of its JSON Schema in ``spec/schema/``: ``access-policy.json``."""
        return re.sub(r"(?<=.)(?=[A-Z])", "-", self.name).lower() + ".json"


class _Subjects(Protocol):
    @property
    def subjects(self) -> tuple[Subject, ...]: ...


class WithSubjects(Protocol):
    """A document with ``spec.subjects``."""

    @property
    def spec(self) -> _Subjects: ...


def by_subjects(document: WithSubjects) -> Iterator[tuple[KeyPath, Subject]]:
    """Whom a document selects by ``spec.subjects``."""
    for index, subject in enumerate(document.spec.subjects):
        yield ("spec", "subjects", index), subject


class _Rule(Protocol):
    @property
    def variables(self) -> frozenset[str]: ...


class _Rules(Protocol):
    @property
    def rules(self) -> Sequence[_Rule]: ...


class WithRules(Protocol):
    """A document with ``spec.rules``."""

    @property
    def spec(self) -> _Rules: ...


def rule_variables(document: WithRules) -> frozenset[str]:
    """The variables in ``spec.rules``."""
    return frozenset().union(*(rule.variables for rule in document.spec.rules))


def _accept(_documents: Sequence[Placed[Document]]) -> None:
    pass


@frozen(kw_only=True)
class PolicyKind(DocumentKind[D], Generic[D, S]):
    """A kind of policy: a document that says something of sessions."""

    #: Whom a document is about, and where it says so.
    subjects: Callable[[D], Iterator[tuple[KeyPath, Subject]]]
    #: What the policies that select a session mean for it. May raise what the session is closed with. Where
    #: none selects, it is the same for every session.
    compile: Callable[[SessionSelection[D]], S]
    #: What operators see of a document beside its kind, name and mode.
    row: Callable[[D], Row]
    #: What ``amqpgate policy check`` says of the documents of a folder beside modes and subjects.
    findings: Callable[[FolderCheck[D]], Iterator[Finding]]
    #: The variables in a document. All sessions with the same policies and the same values of their variables
    #: then share what ``compile`` makes, and it is made off the data path's thread. None: made for each anew.
    variables: Callable[[D], frozenset[str]] | None = None
    #: Raises `ConfigError` where documents of one folder exclude each other.
    check: Callable[[Sequence[Placed[D]]], None] = _accept
    #: Of all documents that select a session only one holds for it.
    takes_one: bool = False


AnyDocumentKind: TypeAlias = DocumentKind[Document]
AnyPolicyKind: TypeAlias = PolicyKind[Document, object]


def row_of(kind: AnyPolicyKind, document: Document) -> Row:
    """What operators see of a document."""
    mode, _ = mode_of(document)
    return {
        "kind": kind.name,
        "name": document.metadata.name,
        "mode": mode,
        "rules": [],
        **kind.row(document),
    }


def mode_of(document: Document) -> tuple[str, float]:
    """``spec.mode`` and ``spec.enforcePercent``; a kind without modes is enforced."""
    spec = getattr(document, "spec", None)
    return getattr(spec, "mode", "enforce"), getattr(spec, "enforce_percent", 0.0)


def is_enforced(mode: str, percent: float, policy: str, connection: str) -> bool | None:
    """Whether a policy is enforced for a session, or only counts what it would do; None where it is off.

    Which sessions ``spec.enforcePercent`` means is the same at every moment and in every process.
    """
    if mode == "off":
        return None
    if mode == "enforce":
        return True
    digest = blake2b(f"{policy}\0{connection}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % _SLICES < percent * (_SLICES / 100)
