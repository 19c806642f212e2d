"""Which policies are in force in one process, and in several as one."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Literal, Self, TypeAlias

import attrs

from amqpgate.values import frozen

#: ``done``: what was read is in force. ``refused``: it is wrong. ``nothing``: there is no folder.
#: ``unknown``: several workers, and they do not all say the same.
Status: TypeAlias = Literal["done", "refused", "nothing", "unknown"]


@frozen
class PolicyState:
    """What is in force, and what the last reading found."""

    status: Status
    #: Of what is in force: SHA-256, in hexadecimal; empty without policies.
    digest: str
    #: When that was read, in seconds since 1970.
    read_at: float
    #: What was wrong with what was read last, and where.
    error: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None

    @property
    def shown(self) -> str:
        """The digest for people, and the time."""
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.read_at))
        return f"digest sha256:{self.digest[:16]}, read at {when}"

    def as_json(self) -> str:
        """One line of JSON."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        return cls(**json.loads(text))


def combine(states: Sequence[PolicyState | None]) -> PolicyState:
    """What several workers say, as one. None is a worker that did not answer."""
    said = [state for state in states if state is not None]
    if not said:
        return PolicyState("unknown", "", 0.0, "no worker answers; ask again when they run")
    oldest = min(said, key=lambda state: state.read_at)
    for state in said:
        if state.status == "refused":
            return state
    if len(said) < len(states):
        why = f"{len(states) - len(said)} of {len(states)} workers do not answer; ask again"
        return attrs.evolve(oldest, status="unknown", error=why)
    if len({state.digest for state in said}) > 1:
        return attrs.evolve(oldest, status="unknown", error="the workers' policies differ; reload again")
    return oldest
