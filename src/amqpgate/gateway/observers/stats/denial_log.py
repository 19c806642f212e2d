"""Denials in the log: the first ones of a rule and a user each, then how many.

A client chooses how many there are: of those that close nothing, as many as it has messages. All are counted,
and recorded where there are audit records.
"""

from __future__ import annotations

import logging
import math
from typing import Final, TypeAlias

import attrs

from amqpgate.logs import about
from amqpgate.values import define

log = logging.getLogger(__name__)

#: Seconds.
INTERVAL: Final = 10.0
#: So many have a line of their own in each interval.
SAMPLE: Final = 10
#: Rules and users that are told apart in an interval; others are one.
MOST: Final = 1024

#: What denies, and whom.
_Key: TypeAlias = "tuple[str, str | None]"
_OTHERS: Final[_Key] = ("others", None)


@define(eq=False)
class DenialLog:
    """Of one gateway. Times are seconds of a clock that never goes back."""

    _until: float = attrs.field(default=math.inf, init=False)
    _counts: dict[_Key, int] = attrs.field(factory=dict, init=False)

    def has_line(self, now: float, rule: str, user: str | None) -> bool:
        """There is one more. Whether it has a line of its own."""
        if now >= self._until:
            self.tick(now)
        counts, key = self._counts, (rule, user)
        count = counts.get(key, 0)
        if not count:
            if not counts:
                self._until = now + INTERVAL
            elif len(counts) >= MOST:
                key = _OTHERS
                count = counts.get(key, 0)
        counts[key] = count + 1
        return count < SAMPLE

    def tick(self, now: float) -> None:
        """Once a second or so: what had no line of its own is told as a number."""
        if now < self._until or not self._counts:
            return
        counts, self._counts, self._until = self._counts, {}, math.inf
        for (rule, user), count in counts.items():
            if count > SAMPLE:
                log.info(
                    "%d more denied by %s within %g s: user %r",
                    count - SAMPLE,
                    rule,
                    INTERVAL,
                    user,
                    extra=about(user=user, rule=rule),
                )
