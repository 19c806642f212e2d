"""What one look of ``amqpgate doctor`` saw."""

from __future__ import annotations

import time
from typing import Literal, TypeAlias

from amqpgate.values import frozen

#: ``note`` is worth knowing; ``bad`` is in the way.
State: TypeAlias = Literal["ok", "note", "bad"]


@frozen
class Diagnosis:
    """One thing that was looked at."""

    what: str
    state: State
    text: str
    #: What helps, for a person; "" where nothing is to be done.
    remedy: str = ""

    def as_json(self) -> dict[str, str]:
        return {"what": self.what, "state": self.state, "text": self.text, "remedy": self.remedy}


def ok(what: str, text: str) -> Diagnosis:
    return Diagnosis(what, "ok", text)


def note(what: str, text: str, remedy: str) -> Diagnosis:
    return Diagnosis(what, "note", text, remedy)


def bad(what: str, text: str, remedy: str) -> Diagnosis:
    return Diagnosis(what, "bad", text, remedy)


def milliseconds(began: float) -> str:
    """How long it has taken since then, by ``time.monotonic()``."""
    return f"{(time.monotonic() - began) * 1000:.0f} ms"
