"""How long a store that fails again and again is left alone."""

from __future__ import annotations

from typing import Final

import attrs

from amqpgate.values import define

#: Failures in a row, and seconds that are waited then.
MOST: Final = 5
REST: Final = 10.0


@define
class Circuit:
    """Of one store. Times are in seconds, on any clock that only goes forward."""

    _failures: int = attrs.field(default=0, init=False)
    _until: float = attrs.field(default=0.0, init=False)

    def is_open(self, now: float) -> bool:
        """Whether the store is not asked now."""
        return self._failures >= MOST and now < self._until

    def failed(self, now: float) -> None:
        """It did not do what it was asked."""
        self._failures += 1
        self._until = now + REST

    def worked(self) -> None:
        """It did."""
        self._failures = 0
