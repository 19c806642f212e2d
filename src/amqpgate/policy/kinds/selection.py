"""Which policies select a session, and what they mean for it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, Generic, TypeAlias

import attrs

from amqpgate.policy.engine.operations import Principal
from amqpgate.policy.engine.subjects import Subject
from amqpgate.policy.kinds.common import DefaultAccess
from amqpgate.policy.kinds.kind import D, PolicyKind, S, Selection, SessionSelection, mode_of

#: How many different sets of selected policies are kept ready, of each kind; beyond that the oldest go.
KEPT_SETS = 1024

#: How many clients that log in are remembered, with the policies that select each.
KEPT_KEYS = 64

#: Fractions of a percent by which sessions are chosen.
_SLICES = 10_000

#: Of each policy that selects: its index, whether it surely does, whether it is enforced; and the values of
#: the variables in it.
_Key: TypeAlias = "tuple[tuple[tuple[int, bool, bool], ...], tuple[tuple[str, str | None], ...]]"

#: The key of those whom no policy selects.
_NONE: Final[_Key] = ((), ())


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


@attrs.frozen(eq=False)
class KindPolicies(Generic[D, S]):
    """The policies of one kind in a folder, sorted by name, and what they mean for sessions."""

    kind: PolicyKind[D, S]
    documents: tuple[D, ...]
    default_access: DefaultAccess
    _selector: Selector = attrs.field(init=False)
    #: Of each document, its mode and the share of sessions for which it is enforced in mode shadow.
    _modes: tuple[tuple[str, float], ...] = attrs.field(init=False)
    #: Of each document, the variables in it.
    _variables: tuple[frozenset[str], ...] = attrs.field(init=False, default=())
    _kept: dict[_Key, S] = attrs.field(factory=dict, init=False, repr=False)
    #: Of those who log in: a login asks several times.
    _keys: dict[tuple[Principal, str], _Key] = attrs.field(factory=dict, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        subjects = [[subject for _, subject in self.kind.subjects(one)] for one in self.documents]
        object.__setattr__(self, "_selector", Selector(subjects))
        object.__setattr__(self, "_modes", tuple(map(mode_of, self.documents)))
        if self.kind.variables is not None:
            object.__setattr__(self, "_variables", tuple(map(self.kind.variables, self.documents)))

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
                Selection(self.documents[index], is_sure, enforced) for index, is_sure, enforced in key[0]
            )
        made = self.kind.compile(SessionSelection(selections, principal, connection, self.default_access))
        if selections and self.kind.variables is None:
            return made
        if len(self._kept) >= KEPT_SETS:
            self._kept.pop(list(self._kept)[0], None)  # noqa: RUF015 - a copy is one step of the interpreter's
        self._kept[key] = made
        return made

    def _key(self, principal: Principal, connection: str) -> _Key:
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
        key = tuple(selected), tuple((name, values[name]) for name in sorted(names))
        if len(self._keys) >= KEPT_KEYS:
            self._keys.clear()
        self._keys[principal, connection] = key
        return key


def is_enforced(mode: str, percent: float, policy: str, connection: str) -> bool | None:
    """Whether a policy is enforced for a session, or only counts what it would do; None where it is off.

    Which sessions ``spec.enforcePercent`` means is the same at every moment and in every process.
    """
    if mode == "off":
        return None
    if mode == "enforce":
        return True
    digest = hashlib.blake2b(f"{policy}\0{connection}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % _SLICES < percent * (_SLICES / 100)
