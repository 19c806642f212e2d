"""Which users belong together: the groups that subjects of every kind of policy can name.

They are loaded with the policies and replaced with them, and so are the same for all that policies decide at
one moment. A token may name further groups of its bearer (``identity.oauth.groupsClaim`` in the settings).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import attrs

from amqpgate.policy.engine.operations import Principal
from amqpgate.policy.engine.subjects import NamePattern
from amqpgate.policy.kinds.common import Metadata
from amqpgate.policy.kinds.kind import DocumentKind
from amqpgate.values import frozen
from amqpgate.yamldoc import Invalid, doc


@frozen(kw_only=True)
class UserGroupsSpec:
    """Who is in which group."""

    groups: Mapping[str, tuple[NamePattern, ...]] = attrs.field(
        metadata=doc("by the group's name, the users who are in it")
    )

    def __attrs_post_init__(self) -> None:
        for name, users in self.groups.items():
            if not name:
                raise Invalid("a group needs a name", "groups", name)
            for index, user in enumerate(users):
                if not user.text:
                    raise Invalid("name a user, or the start of a name and *", "groups", name, index)


@frozen(kw_only=True)
class UserGroups:
    """Groups of users, for the subjects of policies. Several documents add up."""

    api_version: Literal["amqpgate.io/v1alpha1"] = attrs.field(
        metadata=doc("version of the document's format")
    )
    kind: Literal["UserGroups"] = attrs.field(metadata=doc("kind of document"))
    metadata: Metadata = attrs.field(metadata=doc("what the document is called"))
    spec: UserGroupsSpec = attrs.field(metadata=doc("what the document says"))


USER_GROUPS: Final = DocumentKind(document=UserGroups)


@frozen(eq=False)
class Membership:
    """The groups of a folder, by user."""

    documents: tuple[UserGroups, ...] = ()
    _by_user: Mapping[str, frozenset[str]] = attrs.field(init=False, repr=False)
    _by_prefix: tuple[tuple[NamePattern, str], ...] = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        by_user: dict[str, set[str]] = {}
        by_prefix = []
        for document in self.documents:
            for group, users in document.spec.groups.items():
                for user in users:
                    if user.is_prefix:
                        by_prefix.append((user, group))
                    else:
                        by_user.setdefault(user.text, set()).add(group)
        object.__setattr__(self, "_by_user", {name: frozenset(found) for name, found in by_user.items()})
        object.__setattr__(self, "_by_prefix", tuple(by_prefix))

    @classmethod
    def of(cls, documents: Iterable[object]) -> Membership:
        """Those of the documents that name groups."""
        return cls(tuple(one for one in documents if isinstance(one, UserGroups)))

    @property
    def names(self) -> frozenset[str]:
        """All groups that there are."""
        return frozenset(name for document in self.documents for name in document.spec.groups)

    def of_user(self, user: str) -> frozenset[str]:
        """The groups that a user is in."""
        found = self._by_user.get(user, frozenset())
        return found.union(group for pattern, group in self._by_prefix if pattern.matches(user))

    def applied(self, principal: Principal) -> Principal:
        """The principal with the groups that it is in, beside those that its token names."""
        if not self.documents or principal.user is None:
            return principal
        groups = self.of_user(principal.user)
        if groups <= principal.groups:
            return principal
        return attrs.evolve(principal, groups=principal.groups | groups)
