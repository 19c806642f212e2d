"""All policies of one folder, and what they mean for one session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import cast

import attrs

from amqpgate.policy.engine.operations import Operation, Principal
from amqpgate.policy.engine.rules import Verdict
from amqpgate.policy.engine.verdicts import SessionPolicy
from amqpgate.policy.kinds.access import ACCESS, SessionAccess
from amqpgate.policy.kinds.access_document import AccessPolicy
from amqpgate.policy.kinds.audit import AUDIT, SessionAudit
from amqpgate.policy.kinds.audit_document import AuditPolicy
from amqpgate.policy.kinds.common import DefaultAccess
from amqpgate.policy.kinds.kind import AnyPolicyKind, D, Document, PolicyKind, Row, S, row_of
from amqpgate.policy.kinds.rate import RATE, RatePolicy, SharedLimit, limits_strangers
from amqpgate.policy.kinds.registry import POLICY_KINDS
from amqpgate.policy.kinds.route import ROUTE
from amqpgate.policy.kinds.route_document import RoutePolicy
from amqpgate.policy.kinds.route_table import Chosen
from amqpgate.policy.kinds.selection import KindPolicies
from amqpgate.policy.kinds.trace import TRACE, SessionTraces, TracePolicy
from amqpgate.policy.kinds.transform import TRANSFORM
from amqpgate.policy.kinds.transform_set import Transform


@attrs.frozen(eq=False)
class PolicySet:
    """All policies of one folder; replaced whole, never changed.

    ``documents_of`` and ``compiled`` serve any kind; the other methods are short for the kinds that the
    gateway asks for.
    """

    #: The policies, sorted by kind and name.
    documents: tuple[Document, ...]
    #: SHA-256 of what was read, in hexadecimal: the same digest means the same policies.
    digest: str
    #: What becomes of sessions that no access policy selects.
    default_access: DefaultAccess = "allow"
    kinds: tuple[AnyPolicyKind, ...] = POLICY_KINDS
    _by_kind: Mapping[str, KindPolicies[Document, object]] = attrs.field(init=False, repr=False)
    #: Those kinds that are compiled before a session needs them.
    _prepared: tuple[KindPolicies[Document, object], ...] = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        held = {
            kind.name: KindPolicies(
                kind, tuple(one for one in self.documents if one.kind == kind.name), self.default_access
            )
            for kind in self.kinds
        }
        object.__setattr__(self, "_by_kind", held)
        object.__setattr__(self, "_prepared", tuple(one for one in held.values() if one.is_shared))

    @classmethod
    def empty(cls, default_access: DefaultAccess = "allow") -> PolicySet:
        """No policies: everything is allowed, or nothing."""
        return cls((), "", default_access)

    def documents_of(self, kind: PolicyKind[D, S]) -> tuple[D, ...]:
        """The documents of one kind, sorted by name."""
        return cast("tuple[D, ...]", self._by_kind[kind.name].documents)

    def compiled(self, kind: PolicyKind[D, S], principal: Principal, connection: str = "") -> S:
        """What the policies of one kind mean for the session that is called ``connection``.

        Ask once, when the session is opened. It may take long: see ``prepare``. Raises what the kind raises.
        """
        return cast("S", self._by_kind[kind.name].compiled(principal, connection))

    def rows(self) -> Iterator[Row]:
        """What operators see of each document."""
        for kind in self.kinds:
            for document in self._by_kind[kind.name].documents:
                yield row_of(kind, document)

    def selecting(self, principal: Principal) -> list[Document]:
        """The policies that select the principal or may do so, whatever their mode, but for kinds of which
        only one policy holds."""
        return [
            document
            for held in self._by_kind.values()
            if held.documents and not held.kind.takes_one
            for document in held.selecting(principal)
        ]

    def is_prepared(self, principal: Principal, connection: str) -> bool:
        """Whether the session's policies are compiled."""
        return all(held.is_ready(principal, connection) for held in self._prepared)

    def prepare(self, principal: Principal, connection: str) -> SessionAccess:
        """Compile the session's policies: for a thread that nobody waits for. It may be several at once."""
        for held in self._prepared:
            held.compiled(principal, connection)
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

    def decide(self, operation: Operation) -> Verdict:
        """One decision from scratch; a session keeps its `SessionPolicy` instead."""
        return self.for_principal(operation.principal).decide(operation)


@attrs.frozen(eq=False, slots=False)
class SelectedPolicies:
    """What the policies of a set mean for one session that is about to begin: each kind is asked once."""

    policies: PolicySet
    principal: Principal
    connection: str

    @cached_property
    def access(self) -> SessionAccess:
        """What the session may do."""
        return self.policies.compiled(ACCESS, self.principal, self.connection)

    @cached_property
    def limits(self) -> tuple[SharedLimit, ...]:
        """The limits that hold for it."""
        return self.policies.compiled(RATE, self.principal, self.connection)

    @cached_property
    def transform(self) -> Transform | None:
        """What is changed for it, or None. Raises `SessionDeniedError`."""
        return self.policies.compiled(TRANSFORM, self.principal, self.connection)
