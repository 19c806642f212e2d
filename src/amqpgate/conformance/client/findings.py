"""What a connection has shown of each rule: kept so far, or how it was broken first."""

from __future__ import annotations

from typing import Final

import attrs

#: The outcome of a rule that was tried and never broken.
KEPT: Final = "kept"


@attrs.define(eq=False)
class ClientFindings:
    """Outcomes by rule."""

    outcomes: dict[str, str] = attrs.field(factory=dict)

    def check(self, rule: str, is_kept: bool, what: str = "") -> bool:
        """A rule was tried; ``what`` was seen where it is broken. Says whether it was kept."""
        if not is_kept and self.outcomes.get(rule, KEPT) == KEPT:
            self.outcomes[rule] = what
        self.outcomes.setdefault(rule, KEPT)
        return is_kept
