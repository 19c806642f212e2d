"""What documents of several kinds have in common: their name, their mode, the ids in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import attrs

from amqpgate.values import frozen
from amqpgate.yamldoc import Invalid, doc, not_empty

API_VERSION = "amqpgate.io/v1alpha1"

#: Whether a policy holds: really, only for show, or not at all.
Mode: TypeAlias = Literal["enforce", "shadow", "off"]

#: What a session may do that no access policy selects.
DefaultAccess: TypeAlias = Literal["allow", "deny"]


@frozen(kw_only=True)
class Metadata:
    """What a document is called."""

    name: str = attrs.field(validator=not_empty(), metadata=doc("unique among documents of its kind"))


def check_ids(ids: Sequence[str], what: str) -> None:
    """Raise `Invalid` where two ``what``s of a policy, listed under ``<what>s``, have the same id."""
    seen = set()
    for index, name in enumerate(ids):
        if name in seen:
            raise Invalid(f"two {what}s of this policy have the id '{name}'", f"{what}s", index, "id")
        seen.add(name)


def check_mode(mode: Mode, enforce_percent: float) -> None:
    """Raise `Invalid` where a share to enforce makes no sense."""
    if enforce_percent and mode != "shadow":
        raise Invalid(f"belongs to mode shadow; mode {mode} is the same for all sessions", "enforce_percent")
