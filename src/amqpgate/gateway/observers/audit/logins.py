"""Logins that were refused: an event each; in a window that has many, one for those that are alike.

Whoever tries passwords is in the records, and fills no disk.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final

import attrs

from amqpgate.gateway.observers.audit.columns import json_of
from amqpgate.gateway.observers.audit.limits import Occurrences
from amqpgate.records import Origin
from amqpgate.telemetry.audit.log import AuditLog
from amqpgate.values import frozen

#: In one window: those that have an event each, and kinds of others that have one.
EACH: Final = 50
KINDS: Final = 200
#: Letters of a reason.
_MOST: Final = 512


@frozen
class RefusedLogin:
    """How one was refused. Alike are those that say the same."""

    #: The cluster's name; None: none had been chosen.
    upstream: str | None
    #: None: the client was told none.
    reply_code: int | None
    reason: str


@attrs.define(eq=False)
class RefusedLogins:
    """Of one gateway, in the window that is open."""

    #: Those that had an event each.
    _told: int = attrs.field(default=0, init=False)
    #: By how, and of whom: user, virtual host, address, listener. None: of whom there was no room for.
    _others: dict[tuple[object, ...] | None, tuple[RefusedLogin | None, Origin | None, Occurrences]] = (
        attrs.field(factory=dict, init=False)
    )

    def note(self, log: AuditLog, digest: str, origin: Origin, refused: RefusedLogin) -> None:
        """One more."""
        now = time.time()
        how = attrs.evolve(refused, reason=refused.reason[:_MOST])
        if self._told < EACH:
            self._told += 1
            _write(log, digest, how, origin, Occurrences(now, now, 1))
            return
        key: tuple[object, ...] | None = (how, origin.user, origin.vhost, origin.source, origin.listener)
        if key not in self._others and len(self._others) >= KINDS:
            key = None
        if key not in self._others:
            # What a client says of itself is long.
            first = None if key is None else attrs.evolve(origin, client=None, tls=None)
            self._others[key] = None if key is None else how, first, Occurrences(now, now)
        self._others[key][2].add(now)

    def tell(self, log: AuditLog, digest: str) -> None:
        """The window is over."""
        for how, origin, times in self._others.values():
            _write(log, digest, how, origin, times)
        self._others.clear()
        self._told = 0


def _write(
    log: AuditLog, digest: str, how: RefusedLogin | None, origin: Origin | None, times: Occurrences
) -> None:
    detail: dict[str, object] = {"times": times.count}
    if times.count > 1:
        detail["last"] = datetime.fromtimestamp(times.last, UTC).isoformat()
    if how is not None and how.upstream is not None:
        detail["upstream"] = how.upstream
    log.event(
        origin,
        "session.refused",
        times.first,
        outcome="refused",
        reply_code=None if how is None else how.reply_code,
        reason="others, of too many" if how is None else how.reason,
        policy_digest=digest,
        detail=json_of(detail),
    )
