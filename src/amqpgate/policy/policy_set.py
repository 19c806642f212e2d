"""All policies of one folder: which of them select a session, and what these mean for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, Generic, TypeAlias, cast

import attrs

from amqpgate.policy.engine.operations import Operation, Principal
from amqpgate.policy.engine.rules import Verdict
from amqpgate.policy.engine.subjects import Subject
from amqpgate.policy.engine.verdicts import SessionPolicy
from amqpgate.policy.kinds.access import ACCESS, SessionAccess
from amqpgate.policy.kinds.access_document import AccessPolicy
from amqpgate.policy.kinds.audit import AUDIT, SessionAudit
from amqpgate.policy.kinds.audit_document import AuditPolicy
from amqpgate.policy.kinds.common import DefaultAccess
from amqpgate.policy.kinds.compatibility import COMPATIBILITY, Compatibilities, Compatibility, for_upstream
from amqpgate.policy.kinds.compatibility_document import CompatibilityPolicy
from amqpgate.policy.kinds.kind import (
    AnyPolicyKind,
    D,
    Document,
    Placed,
    PolicyKind,
    Row,
    S,
    Selection,
    SessionSelection,
    is_enforced,
    mode_of,
    row_of,
)
from amqpgate.policy.kinds.rate import RATE, RatePolicy, SharedLimit, limits_strangers
from amqpgate.policy.kinds.registry import POLICY_KINDS
from amqpgate.policy.kinds.route import ROUTE
from amqpgate.policy.kinds.route_document import RoutePolicy
from amqpgate.policy.kinds.route_table import Chosen
from amqpgate.policy.kinds.trace import TRACE, SessionTraces, TracePolicy
from amqpgate.policy.kinds.transform import TRANSFORM
from amqpgate.policy.kinds.transform_set import Transform
from amqpgate.policy.kinds.user_groups import Membership
from amqpgate.values import frozen

#: How many different sets of selected policies are kept ready, of each kind; beyond that the oldest go.
KEPT_SETS = 1024

#: How many clients that log in are remembered, with the policies that select each.
KEPT_KEYS = 64

#: Of each policy that selects: its index, whether it surely does, whether it is enforced; and the values of
#: the variables in it.
_Key: TypeAlias = "tuple[tuple[tuple[int, bool, bool], ...], tuple[tuple[str, str | None], ...]]"

#: The key of those whom no policy selects.
_NONE: Final[_Key] = ((), ())


@frozen
class Written:
    """Where a document is, for people."""

    file: str | None
    line: int | None
    #: The lines of its rules, in their order.
    rules: tuple[int, ...] = ()


@frozen(eq=False)
class PolicySet:
    """All policies of one folder; replaced whole, never changed.

    ``documents_of`` and ``compiled`` serve any kind; the other methods are short for the kinds that the
    gateway asks for.
    """

    #: All of the folder, sorted by kind and name; groups of users and tests among them.
    documents: tuple[Document, ...]
    #: SHA-256 of what was read, in hexadecimal: the same digest means the same policies.
    digest: str
    #: What becomes of sessions that no access policy selects.
    default_access: DefaultAccess = "allow"
    kinds: tuple[AnyPolicyKind, ...] = POLICY_KINDS
    #: Where the route policies are written, by their names: they name what settings must have.
    places: Mapping[str, Placed[Document]] = attrs.field(factory=dict, repr=False)
    #: Where each document begins, by kind and name.
    written: Mapping[tuple[str, str], Written] = attrs.field(factory=dict, repr=False)
    #: Who is in which group.
    membership: Membership = attrs.field(init=False, repr=False)
    _by_kind: Mapping[str, KindPolicies[Document, object]] = attrs.field(init=False, repr=False)
    #: Those kinds that are compiled before a session needs them.
    _prepared: tuple[KindPolicies[Document, object], ...] = attrs.field(init=False, repr=False)
    #: What they mean for those who have logged in, where it is the same for all of their sessions.
    _known: dict[Principal, Meaning] = attrs.field(factory=dict, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        held = {
            kind.name: KindPolicies(
                kind, tuple([one for one in self.documents if one.kind == kind.name]), self.default_access
            )
            for kind in self.kinds
        }
        object.__setattr__(self, "membership", Membership.of(self.documents))
        object.__setattr__(self, "_by_kind", held)
        object.__setattr__(self, "_prepared", tuple([one for one in held.values() if one.is_shared]))

    @classmethod
    def empty(cls, default_access: DefaultAccess = "allow") -> PolicySet:
        """No policies: everything is allowed, or nothing."""
        return cls((), "", default_access)

    @property
    def policies(self) -> tuple[Document, ...]:
        """The documents that select sessions."""
        return tuple([one for one in self.documents if one.kind in self._by_kind])

    def documents_of(self, kind: PolicyKind[D, S]) -> tuple[D, ...]:
        """The documents of one kind, sorted by name."""
        return cast("tuple[D, ...]", self._by_kind[kind.name].documents)

    def compiled(self, kind: PolicyKind[D, S], principal: Principal, connection: str = "") -> S:
        """What the policies of one kind mean for the session that is called ``connection``.

        Ask once, when the session is opened. It may take long: see ``prepare``. Raises what the kind raises.
        """
        member = self.membership.applied(principal)
        return cast("S", self._by_kind[kind.name].compiled(member, connection))

    def rows(self) -> Iterator[Row]:
        """What operators see of each document."""
        for kind in self.kinds:
            for document in self._by_kind[kind.name].documents:
                yield row_of(kind, document)

    def subjects(self) -> Iterator[tuple[str, str, Subject]]:
        """All subjects, each with the kind and the name of its policy."""
        for kind in self.kinds:
            for document in self._by_kind[kind.name].documents:
                for _, subject in kind.subjects(document):
                    yield kind.name, document.metadata.name, subject

    def selecting(self, principal: Principal) -> list[Document]:
        """The policies that select the principal or may do so, whatever their mode, but for kinds of which
        only one policy holds."""
        member = self.membership.applied(principal)
        return [
            document
            for held in self._by_kind.values()
            if held.documents and not held.kind.takes_one
            for document in held.selecting(member)
        ]

    def is_prepared(self, principal: Principal, connection: str) -> bool:
        """Whether the session's policies are compiled."""
        member = self.membership.applied(principal)
        return all(held.is_ready(member, connection) for held in self._prepared)

    def known(self, principal: Principal, connection: str) -> SelectedPolicies | None:
        """What they mean for the session, if they were asked for one that is like it (`keep`)."""
        meaning = self._known.get(principal)
        if meaning is None:
            return None
        if meaning.principal.upstream_user == principal.upstream_user:
            # The same one as before is found quickly wherever it is looked for.
            principal = meaning.principal
        return SelectedPolicies(self, principal, connection, meaning)

    def keep(self, selected: SelectedPolicies) -> None:
        """Keep what they mean for a session, for its principal's next ones. Raises `SessionDeniedError`."""
        if selected.is_known or any(self._by_kind[kind.name].chooses_sessions for kind in _MEANT):
            return
        meaning = Meaning(
            selected.principal,
            selected.access,
            selected.limits,
            selected.transform,
            selected.compatibilities,
            selected.access.enforced.is_free("connection.open"),
        )
        if any(limit.is_own for limit in meaning.limits):
            return
        if len(self._known) >= KEPT_KEYS:
            self._known.clear()
        self._known[selected.principal] = meaning

    def prepare(self, principal: Principal, connection: str) -> SessionAccess:
        """Compile the session's policies: for a thread that nobody waits for. It may be several at once."""
        member = self.membership.applied(principal)
        for held in self._prepared:
            held.compiled(member, connection)
        return self.access_of(principal, connection)

    @property
    def access(self) -> tuple[AccessPolicy, ...]:
        """The access policies."""
        return self.documents_of(ACCESS)

    @property
    def rates(self) -> tuple[RatePolicy, ...]:
        """The rate policies."""
        return self.documents_of(RATE)

    @property
    def routes(self) -> tuple[RoutePolicy, ...]:
        """The route policies."""
        return self.documents_of(ROUTE)

    @property
    def audits(self) -> tuple[AuditPolicy, ...]:
        """The audit policies."""
        return self.documents_of(AUDIT)

    @property
    def compatibilities(self) -> tuple[CompatibilityPolicy, ...]:
        """The compatibility policies."""
        return self.documents_of(COMPATIBILITY)

    @property
    def traces(self) -> tuple[TracePolicy, ...]:
        """The trace policies."""
        return self.documents_of(TRACE)

    def access_of(self, principal: Principal, connection: str = "") -> SessionAccess:
        """What a session may do."""
        return self.compiled(ACCESS, principal, connection)

    def for_principal(self, principal: Principal, connection: str = "") -> SessionPolicy:
        """What is enforced for a session."""
        return self.access_of(principal, connection).enforced

    @cached_property
    def limits_strangers(self) -> bool:
        """Whether a limit holds for connections that are not open yet."""
        return limits_strangers(self.rates)

    def limits_for(self, principal: Principal, connection: str) -> tuple[SharedLimit, ...]:
        """The limits that hold for a session."""
        return self.compiled(RATE, principal, connection)

    def route_of(self, principal: Principal, connection: str = "") -> Chosen:
        """Where a session goes."""
        return self.compiled(ROUTE, principal, connection)

    def audit_of(self, principal: Principal) -> SessionAudit:
        """What is written down of a session's requests."""
        return self.compiled(AUDIT, principal)

    def traces_of(self, principal: Principal) -> SessionTraces | None:
        """What is traced of a session's requests. None: nothing."""
        return self.compiled(TRACE, principal)

    def transform_for(self, principal: Principal) -> Transform | None:
        """What is changed for a session, or None. Raises `SessionDeniedError`."""
        return self.compiled(TRANSFORM, principal)

    def compatibility_for(self, principal: Principal, upstream: str) -> Compatibility | None:
        """Which habits of an older broker a session is given whose broker is of this cluster, or None."""
        return for_upstream(self.compiled(COMPATIBILITY, principal), upstream)

    def decide(self, operation: Operation) -> Verdict:
        """One decision from scratch; a session keeps its `SessionPolicy` instead."""
        return self.for_principal(operation.principal).decide(operation)


@frozen(eq=False)
class Meaning:
    """What the policies of a set mean for a session."""

    principal: Principal
    access: SessionAccess
    limits: tuple[SharedLimit, ...]
    transform: Transform | None
    compatibilities: Compatibilities
    #: Whether it may open its virtual host, with nothing to tell of it.
    opens_freely: bool


#: The kinds that a `Meaning` is of.
_MEANT: Final = (ACCESS, RATE, TRANSFORM, COMPATIBILITY)


@frozen(eq=False, slots=False)
class SelectedPolicies:
    """What the policies of a set mean for one session that is about to begin: each kind is asked once."""

    policies: PolicySet
    principal: Principal
    connection: str
    #: What they have meant for another one of its principal's; None: that is not known.
    _meaning: Meaning | None = None

    @property
    def is_known(self) -> bool:
        """Whether nothing has to be found out."""
        return self._meaning is not None

    @property
    def opens_freely(self) -> bool:
        """Whether it is known that it may open its virtual host, with nothing to tell of it."""
        return self._meaning is not None and self._meaning.opens_freely

    @property
    def access(self) -> SessionAccess:
        """What the session may do."""
        return self._access if self._meaning is None else self._meaning.access

    @property
    def limits(self) -> tuple[SharedLimit, ...]:
        """The limits that hold for it."""
        return self._limits if self._meaning is None else self._meaning.limits

    @property
    def transform(self) -> Transform | None:
        """What is changed for it, or None. Raises `SessionDeniedError`."""
        return self._transform if self._meaning is None else self._meaning.transform

    @property
    def compatibilities(self) -> Compatibilities:
        """Which habits of an older broker it is given."""
        return self._compatibilities if self._meaning is None else self._meaning.compatibilities

    @cached_property
    def _access(self) -> SessionAccess:
        return self.policies.compiled(ACCESS, self.principal, self.connection)

    @cached_property
    def _limits(self) -> tuple[SharedLimit, ...]:
        return self.policies.compiled(RATE, self.principal, self.connection)

    @cached_property
    def _transform(self) -> Transform | None:
        return self.policies.compiled(TRANSFORM, self.principal, self.connection)

    @cached_property
    def _compatibilities(self) -> Compatibilities:
        return self.policies.compiled(COMPATIBILITY, self.principal, self.connection)


@frozen(eq=False)
class KindPolicies(Generic[D, S]):
    """The policies of one kind in a folder, sorted by name, and what they mean for sessions."""

    kind: PolicyKind[D, S]
    documents: tuple[D, ...]
    default_access: DefaultAccess
    _selector: Selector = attrs.field(init=False)
    #: Of each document, its mode and the share of sessions for which it is enforced in mode shadow.
    _modes: tuple[tuple[str, float], ...] = attrs.field(init=False)
    #: Whether a document is enforced for some sessions of a principal, and not for others.
    _chooses_sessions: bool = attrs.field(init=False)
    #: Of each document, the variables in it.
    _variables: tuple[frozenset[str], ...] = attrs.field(init=False, default=())
    _kept: dict[_Key, S] = attrs.field(factory=dict, init=False, repr=False)
    #: Of those who log in: a login asks several times, and their next one again.
    _keys: dict[tuple[Principal, str], _Key] = attrs.field(factory=dict, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        subjects = [[subject for _, subject in self.kind.subjects(one)] for one in self.documents]
        object.__setattr__(self, "_selector", Selector(subjects))
        object.__setattr__(self, "_modes", tuple([mode_of(one) for one in self.documents]))
        object.__setattr__(self, "_chooses_sessions", any(0 < percent < 100 for _, percent in self._modes))
        if self.kind.variables is not None:
            object.__setattr__(
                self, "_variables", tuple([self.kind.variables(one) for one in self.documents])
            )

    @property
    def chooses_sessions(self) -> bool:
        """Whether a document is enforced for some sessions of a principal, and not for others."""
        return self._chooses_sessions

    @property
    def is_shared(self) -> bool:
        """Whether sessions share what is compiled, so that ``compiled`` may take long."""
        return bool(self.documents) and self.kind.variables is not None

    def selecting(self, principal: Principal) -> list[D]:
        """Those that select the principal or may do so, whatever their mode."""
        return [self.documents[index] for index, _ in self._selector.select(principal)]

    def is_ready(self, principal: Principal, connection: str) -> bool:
        """Whether ``compiled`` does not take long."""
        return self._key(principal, connection) in self._kept

    def compiled(self, principal: Principal, connection: str) -> S:
        """What the policies that select a session mean for it."""
        key = self._key(principal, connection) if self.documents else _NONE
        # Other threads may add to it meanwhile, and drop the oldest.
        try:
            return self._kept[key]
        except KeyError:
            selections = tuple(
                [Selection(self.documents[index], is_sure, enforced) for index, is_sure, enforced in key[0]]
            )
        made = self.kind.compile(SessionSelection(selections, principal, connection, self.default_access))
        if selections and self.kind.variables is None:
            return made
        if len(self._kept) >= KEPT_SETS:
            self._kept.pop(list(self._kept)[0], None)  # noqa: RUF015 - a copy is one step of the interpreter's
        self._kept[key] = made
        return made

    def _key(self, principal: Principal, connection: str) -> _Key:
        if not self._chooses_sessions:
            # It is the same for all of the principal's sessions.
            connection = ""
        known = self._keys.get((principal, connection))
        if known is not None:
            return known
        selected = []
        for index, is_sure in self._selector.select(principal):
            mode, percent = self._modes[index]
            name = self.documents[index].metadata.name
            enforced = is_enforced(mode, percent, name, connection)
            if enforced is not None:
                selected.append((index, is_sure, enforced))
        names = {name for index, _, _ in selected if self._variables for name in self._variables[index]}
        values = principal.values if names else {}
        key = tuple(selected), tuple([(name, values[name]) for name in sorted(names)])
        if len(self._keys) >= KEPT_KEYS:
            self._keys.clear()
        self._keys[principal, connection] = key
        return key


class Selector:
    """Which of many policies select a principal, without asking each one of a thousand."""

    def __init__(self, subjects: Sequence[Sequence[Subject]]) -> None:
        self._by_user: dict[str, list[tuple[int, Subject]]] = {}
        self._others: list[tuple[int, Subject]] = []
        for index, of_one in enumerate(subjects):
            for subject in of_one:
                if subject.user.is_prefix:
                    self._others.append((index, subject))
                else:
                    self._by_user.setdefault(subject.user.text, []).append((index, subject))

    def select(self, principal: Principal) -> list[tuple[int, bool]]:
        """The index of each that selects, and whether it surely does; in order."""
        found: dict[int, bool] = {}
        if principal.user is None:
            named = [entry for entries in self._by_user.values() for entry in entries]
        else:
            named = self._by_user.get(principal.user, [])
        for index, subject in (*named, *self._others):
            answer = subject.selects(principal)
            if answer is not None:
                found[index] = found.get(index, False) or answer
        return sorted(found.items())
