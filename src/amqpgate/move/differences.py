"""What a broker lacks that another one has, and what it has otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from amqpgate.move.objects import BrokerObject, ObjectKind, is_same

#: What clients would declare: where the other broker has it otherwise, they get 406.
_DECLARED: Final[frozenset[ObjectKind]] = frozenset({"queue", "exchange"})


@attrs.frozen
class Differences:
    """In the order in which objects are made."""

    missing: tuple[BrokerObject, ...]
    #: Those that clients could not declare: what is wanted, and what is there.
    conflicts: tuple[tuple[BrokerObject, BrokerObject], ...]
    #: Those that stay as they are there.
    kept: tuple[BrokerObject, ...]
    #: How many are as they should be.
    same: int


def differences(wanted: Iterable[BrokerObject], there: Iterable[BrokerObject]) -> Differences:
    """What has to be made so that all that is wanted is there. Nothing that is there is changed."""
    known = {one.key: one for one in there}
    missing: list[BrokerObject] = []
    conflicts: list[tuple[BrokerObject, BrokerObject]] = []
    kept: list[BrokerObject] = []
    same = 0
    for one in wanted:
        found = known.get(one.key)
        if found is None:
            missing.append(one)
        elif is_same(one, found):
            same += 1
        elif one.kind in _DECLARED:
            conflicts.append((one, found))
        else:
            kept.append(found)
    return Differences(tuple(missing), tuple(conflicts), tuple(kept), same)
