"""All policies of one folder, and what they mean for one session."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeAlias, TypeVar

import attrs

from amqpgate.policy.engine.operations import Operation, Principal
from amqpgate.policy.engine.rules import Verdict
from amqpgate.policy.engine.subjects import Subject
from amqpgate.policy.engine.verdicts import SessionPolicy, session_policy
from amqpgate.policy.kinds.access import AccessPolicy, DefaultAccess, Mode
from amqpgate.policy.kinds.audit import AuditPolicy, SessionAudit, session_audit
from amqpgate.policy.kinds.rate import RatePolicy, SharedLimit, shared_limit
from amqpgate.policy.kinds.route import RoutePolicy
from amqpgate.policy.kinds.trace import SessionTraces, TracePolicy, session_traces
from amqpgate.policy.kinds.transform import TransformPolicy
from amqpgate.policy.kinds.transform_set import Transform, transform_of

#: How many different sets of selected policies are kept ready, of each kind; beyond that the oldest go.
SESSION_POLICIES = 1024

#: Fractions of a percent by which sessions are chosen.
_SLICES = 10_000

#: Of each policy that selects: its index, whether its allow rules count, whether it is enforced; and the
#: values of the variables in it.
_Key: TypeAlias = "tuple[tuple[tuple[int, bool, bool], ...], tuple[tuple[str, str | None], ...]]"
_T = TypeVar("_T")


class _Selecting(Protocol):
    @property
    def subjects(self) -> tuple[Subject, ...]: ...


#: Documents that select by subjects; and all, with routes.
_ByUser: TypeAlias = AccessPolicy | RatePolicy | TransformPolicy | AuditPolicy | TracePolicy
Policy: TypeAlias = _ByUser | RoutePolicy


@attrs.frozen(eq=False)
class Judges:
    """The policies of one session."""

    #: What holds.
    enforced: SessionPolicy
    #: What would hold if every policy were enforced; None where they all are.
    shadow: SessionPolicy | None = None


@attrs.frozen(eq=False)
class PolicySet:
    """All policies of one folder; replaced whole, never changed."""

    policies: tuple[AccessPolicy, ...]
    #: SHA-256 of what was read, in hexadecimal: the same digest means the same policies.
    digest: str
    rates: tuple[RatePolicy, ...] = ()
    audits: tuple[AuditPolicy, ...] = ()
    routes: tuple[RoutePolicy, ...] = ()
    transforms: tuple[TransformPolicy, ...] = ()
    traces: tuple[TracePolicy, ...] = ()
    #: What becomes of sessions that no access policy selects.
    default_access: DefaultAccess = "allow"
    _sessions: dict[_Key, Judges] = attrs.field(factory=dict, init=False, repr=False)
    _audits: dict[_Key, SessionAudit] = attrs.field(factory=dict, init=False, repr=False)
    _traces: dict[_Key, SessionTraces | None] = attrs.field(factory=dict, init=False, repr=False)
    _selector: Selector = attrs.field(init=False, repr=False)
    _rate_selector: Selector = attrs.field(init=False, repr=False)
    _transform_selector: Selector = attrs.field(init=False, repr=False)
    #: Of all kinds but routes.
    _subjects: Selector = attrs.field(init=False, repr=False)
    _audit_selector: Selector = attrs.field(init=False, repr=False)
    _trace_selector: Selector = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_selector", Selector([policy.spec for policy in self.policies]))
        object.__setattr__(self, "_rate_selector", Selector([policy.spec for policy in self.rates]))
        object.__setattr__(self, "_audit_selector", Selector([policy.spec for policy in self.audits]))
        object.__setattr__(self, "_trace_selector", Selector([policy.spec for policy in self.traces]))
        transforming = Selector([policy.spec for policy in self.transforms])
        object.__setattr__(self, "_transform_selector", transforming)
        object.__setattr__(self, "_subjects", Selector([policy.spec for policy in self._selecting]))

    @classmethod
    def empty(cls, default_access: DefaultAccess = "allow") -> PolicySet:
        """No policies: everything is allowed, or nothing."""
        return cls((), "", default_access=default_access)

    @property
    def all(self) -> Iterator[Policy]:
        """Every document."""
        yield from self._selecting
        yield from self.routes

    @property
    def _selecting(self) -> tuple[_ByUser, ...]:
        return (*self.policies, *self.rates, *self.transforms, *self.audits, *self.traces)

    def selecting(self, principal: Principal) -> list[Policy]:
        """The policies, but for routes, one of whose subjects may mean the principal, whatever their mode."""
        documents = self._selecting
        return [documents[index] for index, _ in self._subjects.select(principal)]

    def judges_of(self, principal: Principal, connection: str = "") -> Judges:
        """What holds for the session that is called ``connection``; ask once, when it is opened.

        It takes long where there are many rules: see ``prepare``.
        """
        key = self._access_key(principal, connection)
        judges = self._sessions.get(key)
        if judges is None:
            values = values_of(principal)
            everything = [(self.policies[index], may_allow) for index, may_allow, _ in key[0]]
            held = [(self.policies[index], may_allow) for index, may_allow, enforced in key[0] if enforced]
            judges = Judges(
                session_policy(held, values, self.default_access),
                session_policy(everything, values, self.default_access)
                if len(held) < len(everything)
                else None,
            )
            _keep(self._sessions, key, judges)
        return judges

    def _access_key(self, principal: Principal, connection: str) -> _Key:
        selected = []
        for index, may_allow in self._selector.select(principal):
            policy = self.policies[index]
            enforced = is_enforced(
                policy.spec.mode, policy.spec.enforce_percent, policy.metadata.name, connection
            )
            if enforced is not None:
                selected.append((index, may_allow, enforced))
        return _key(selected, self._selector, principal)

    def _audit_key(self, principal: Principal) -> _Key:
        selected = [(index, is_sure, True) for index, is_sure in self._audit_selector.select(principal)]
        return _key(selected, self._audit_selector, principal)

    def _trace_key(self, principal: Principal) -> _Key:
        told = self._trace_selector.select(principal)
        selected = [(index, True, True) for index, is_sure in told if is_sure]
        return _key(selected, self._trace_selector, principal)

    def is_prepared(self, principal: Principal, connection: str) -> bool:
        """Whether the session's policies are compiled."""
        return (
            self._access_key(principal, connection) in self._sessions
            and self._audit_key(principal) in self._audits
            and self._trace_key(principal) in self._traces
        )

    def prepare(self, principal: Principal, connection: str) -> Judges:
        """Compile the session's policies: for a thread that nobody waits for. It may be several at once."""
        self.audit_of(principal)
        self.traces_of(principal)
        return self.judges_of(principal, connection)

    def for_principal(self, principal: Principal, connection: str = "") -> SessionPolicy:
        """What is enforced for a session."""
        return self.judges_of(principal, connection).enforced

    def limits_for(self, principal: Principal, connection: str) -> tuple[SharedLimit, ...]:
        """The limits that hold for the session that is called ``connection``.

        Those that might hold for a user whom the gateway does not know do.
        """
        found = []
        for index, _ in self._rate_selector.select(principal):
            policy = self.rates[index]
            enforced = is_enforced(
                policy.spec.mode, policy.spec.enforce_percent, policy.metadata.name, connection
            )
            if enforced is not None:
                found += [
                    shared_limit(policy, limit, principal, connection, enforced=enforced)
                    for limit in policy.spec.limits
                ]
        return tuple(found)

    def audit_of(self, principal: Principal) -> SessionAudit:
        """What is written down of a session's requests; ask once, when it is opened."""
        key = self._audit_key(principal)
        audit = self._audits.get(key)
        if audit is None:
            selected = [(self.audits[index], is_sure) for index, is_sure, _ in key[0]]
            audit = session_audit(selected, values_of(principal))
            _keep(self._audits, key, audit)
        return audit

    def traces_of(self, principal: Principal) -> SessionTraces | None:
        """What is traced of a session's requests; ask once, when it is opened. None: nothing.

        A policy that only may select it does not.
        """
        key = self._trace_key(principal)
        if key not in self._traces:
            selected = [self.traces[index] for index, _, _ in key[0]]
            _keep(self._traces, key, session_traces(selected, values_of(principal)) if selected else None)
        return self._traces[key]

    def transform_for(self, principal: Principal) -> Transform | None:
        """What is changed for a session, or None. Raises `SessionRefusedError`."""
        selected = [
            (self.transforms[index], is_sure)
            for index, is_sure in self._transform_selector.select(principal)
            if self.transforms[index].spec.mode == "enforce"
        ]
        return transform_of(selected, principal.user, values_of(principal))

    def decide(self, operation: Operation) -> Verdict:
        """One decision from scratch; a session keeps its `SessionPolicy` instead."""
        return self.for_principal(operation.principal).decide(operation)


def _key(selected: list[tuple[int, bool, bool]], selector: Selector, principal: Principal) -> _Key:
    if not selected:
        return (), ()
    variables = frozenset[str]().union(*[selector.variables[index] for index, _, _ in selected])
    if not variables:
        return tuple(selected), ()
    values = values_of(principal)
    return tuple(selected), tuple([(name, values[name]) for name in sorted(variables)])


def _keep(kept: dict[_Key, _T], key: _Key, value: _T) -> None:
    if len(kept) >= SESSION_POLICIES:
        # Other threads may add to it meanwhile: the copy is one step of the interpreter's.
        keys = list(kept)
        kept.pop(keys[0], None)
    kept[key] = value


class Selector:
    """Which of many policies select a principal, without asking each one of a thousand."""

    def __init__(self, specs: Sequence[_Selecting]) -> None:
        self._by_user: dict[str, list[tuple[int, Subject]]] = {}
        self._others: list[tuple[int, Subject]] = []
        #: Of each policy, the variables in its rules.
        self.variables = [
            frozenset(name for rule in getattr(spec, "rules", ()) for name in getattr(rule, "variables", ()))
            for spec in specs
        ]
        for index, spec in enumerate(specs):
            for subject in spec.subjects:
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


def values_of(principal: Principal) -> dict[str, str | None]:
    """What the variables stand for."""
    return {
        "user": principal.user,
        "vhost": principal.vhost,
        "listener": principal.listener,
        "sourceIP": principal.source,
    }


def is_enforced(mode: Mode, percent: float, policy: str, connection: str) -> bool | None:
    """Whether a policy holds for a session, or only for show; None where it is off.

    Which sessions a share of a hundred means is the same at every moment and in every process.
    """
    if mode == "off":
        return None
    if mode == "enforce":
        return True
    digest = hashlib.blake2b(f"{policy}\0{connection}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % _SLICES < percent * (_SLICES / 100)
