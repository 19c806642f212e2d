"""How one gateway stands with new connections, and several workers as one."""

from __future__ import annotations

from enum import IntFlag
from typing import Final, Literal, TypeAlias

from amqpgate.values import frozen

Phase: TypeAlias = Literal["starting", "ready", "paused", "draining"]

#: Of several workers the one that says most about the whole comes first.
_MOST: Final[tuple[Phase, ...]] = ("draining", "starting", "paused", "ready")


class Impairment(IntFlag):
    """Why a gateway takes no new connections although it serves."""

    AUDIT = 1
    MEMORY = 2

    @property
    def shown(self) -> str:
        """For people, such as ``memory is short``; empty where there is none."""
        return " and ".join(text for one, text in _IMPAIRMENTS.items() if one in self)


_IMPAIRMENTS: Final = {
    Impairment.AUDIT: "audit records are not written",
    Impairment.MEMORY: "memory is short",
}


@frozen
class Standing:
    """What operators are told."""

    state: Phase
    sessions: int
    #: Those included, and who is not logged in yet, or not gone yet.
    connections: int
    #: Seconds until a drain is over at the latest; None: there is none.
    seconds_left: float | None = None
    workers: int = 1


def combine(standings: list[Standing]) -> Standing:
    """Several workers as one."""
    left = [one.seconds_left for one in standings if one.seconds_left is not None]
    return Standing(
        min((one.state for one in standings), key=_MOST.index, default="starting"),
        sum(one.sessions for one in standings),
        sum(one.connections for one in standings),
        max(left, default=None),
        len(standings),
    )
