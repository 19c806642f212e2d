"""How many may come in: limits of connections, of logins, and of connections at once.

A connection knocks three times::

    ARRIVAL   PROXY header and TLS are done, the broker has not been dialled    connections, of strangers
    LOGIN     the client has sent start-ok, which the broker has not seen       logins
    OPEN      user, vhost and client properties are known                       other connections; concurrent

Who must wait waits here, with its place in the queue kept, as one of ``limits.maxHandshakes``; who would wait
beyond ``limits.handshakeTimeout`` is turned away at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum

import attrs
import trio

from amqpgate.errors import OverLimit
from amqpgate.gateway.rations import Happened, Report
from amqpgate.gateway.throttles import Share, Throttle, Throttles
from amqpgate.policy import PolicySet, Principal, Quantity, SharedLimit


class Stage(Enum):
    """When a connection knocks."""

    ARRIVAL = "arrival"
    LOGIN = "login"
    OPEN = "open"


@attrs.define(eq=False)
class Door:
    """Of one gateway."""

    policies: Callable[[], PolicySet]
    throttles: Throttles
    report: Report
    #: Seconds that one may wait at most.
    patience: float
    #: Connections that have their place among those at once, and are not sessions yet.
    _inside: dict[str, Throttle] = attrs.field(factory=dict, init=False)

    async def enter(self, stage: Stage, principal: Principal, connection: str) -> OverLimit | None:
        """Return when it may come in: None; or why it may not."""
        limits = self.policies().limits_for(principal, connection)
        if not limits:
            return None
        now = time.monotonic()
        throttle = self.throttles.take(limits, now)
        kept = False
        try:
            shares = _asked(stage, throttle)
            why_not = self._refusal(stage, principal, shares, throttle, now)
            if why_not is not None:
                return why_not
            if stage is Stage.OPEN:
                self._inside[connection], kept = throttle, True
            await self._wait(shares, now)
        finally:
            if not kept:
                self.throttles.give_back(throttle)
        return None

    def leave(self, connection: str) -> None:
        """It has become a session, which has a place of its own, or it has failed. Idempotent."""
        throttle = self._inside.pop(connection, None)
        if throttle is not None:
            self.throttles.give_back(throttle)

    def _refusal(
        self,
        stage: Stage,
        principal: Principal,
        shares: list[tuple[Share, Quantity]],
        throttle: Throttle,
        now: float,
    ) -> OverLimit | None:
        """Nothing is debited where there is one."""
        for share in throttle.shares if stage is Stage.OPEN else ():
            most = share.limit.concurrent
            if most is not None and share.sessions > most:
                self.report(share.limit, Happened.REFUSED)
                if share.limit.enforced:
                    return _turned_away(share.limit, principal, f"connection limit ({most}) is reached")
        for share, quantity in shares:
            if share.limit.enforced and self._is_over(share, quantity, now):
                self.report(share.limit, Happened.REFUSED)
                return _turned_away(share.limit, principal, f"rate limit of {quantity} is reached")
        return None

    def _is_over(self, share: Share, quantity: Quantity, now: float) -> bool:
        ready = share.ready_at(quantity, now)
        if share.limit.action != "delay":
            return ready > now
        return share.wait(quantity) > self.patience

    async def _wait(self, shares: list[tuple[Share, Quantity]], now: float) -> None:
        """Take the tokens, and wait for them."""
        longest = 0.0
        held = []
        for share, quantity in shares:
            bucket = share.buckets[quantity]
            delays = share.limit.action == "delay"
            if not share.limit.enforced and share.ready_at(quantity, now) > now:
                self.report(share.limit, Happened.DELAYED if delays else Happened.REFUSED)
                continue
            bucket.tokens -= 1
            held.append(bucket)
            wait = share.wait(quantity)
            if share.limit.enforced and delays and wait:
                self.report(share.limit, Happened.DELAYED)
                longest = max(longest, wait)
        if longest:
            try:
                await trio.sleep(longest)
            except trio.Cancelled:
                for bucket in held:
                    bucket.tokens += 1
                raise


def _asked(stage: Stage, throttle: Throttle) -> list[tuple[Share, Quantity]]:
    """The buckets that a connection draws from at this stage."""
    found: list[tuple[Share, Quantity]] = []
    for share in throttle.shares:
        if stage is Stage.LOGIN:
            if "logins" in share.buckets:
                found.append((share, "logins"))
        elif "connections" in share.buckets and share.limit.is_early is (stage is Stage.ARRIVAL):
            found.append((share, "connections"))
    return found


def _turned_away(limit: SharedLimit, principal: Principal, why: str) -> OverLimit:
    """In RabbitMQ's words, and with its code, for the limits that it has itself."""
    if limit.action == "close":
        return OverLimit(506, why)
    return OverLimit(530, f"connection refused for user '{principal.user or ''}': {why}")
