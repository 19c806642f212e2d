"""Who may come in, and how many: policies of virtual hosts, limits of connections and of logins.

`ConnectionPolicies` says whether a virtual host may be opened. Policies are compiled for a principal before
they decide, in a thread, so that the data path does not wait. `AdmissionControl` is asked three times::

    ARRIVAL   PROXY header and TLS are done, the broker has not been dialled    connections, of strangers
    LOGIN     the client has sent start-ok, which the broker has not seen       logins
    OPEN      user, vhost and client properties are known                       other connections; concurrent

Who must wait waits here, with its place in the queue kept, as one of ``limits.maxHandshakes``; who would wait
beyond ``limits.handshakeTimeout`` is rejected at once.
"""

from __future__ import annotations

import logging
import time
from enum import Enum
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

import attrs

from amqpgate.errors import OverLimit
from amqpgate.gateway.handshake.pending import source_of
from amqpgate.gateway.limits.token_buckets import SessionLimits, SharedBucket, TokenBuckets
from amqpgate.gateway.observers.stats.reports import Reports
from amqpgate.gateway.observers.stats.selected import Selected
from amqpgate.gateway.session.operation_limits import Happened, Report
from amqpgate.gateway.session.policies_in_force import PoliciesInForce
from amqpgate.gateway.session.policy_compiling import PolicyCompiler
from amqpgate.gateway.transport.waiting import in_trio, move_on_after, sleep
from amqpgate.logs import RECURRING
from amqpgate.policy import (
    Operation,
    Principal,
    Quantity,
    SelectedPolicies,
    SessionDeniedError,
    SharedLimit,
    denial_text,
)
from amqpgate.values import define, frozen

if TYPE_CHECKING:
    from amqpgate.gateway.observers.audit.audit import AuditTrail

log = logging.getLogger(__name__)

#: Seconds that a connection waits for the first grant of a limit that other processes share (`distributed`).
FIRST_GRANT = 1.0

#: Sets of limits of which it is known whom a connection asks at each stage.
_MOST_KNOWN: Final = 128


class AdmissionStage(Enum):
    """When a connection asks."""

    ARRIVAL = "arrival"
    LOGIN = "login"
    OPEN = "open"

    # There is one of each: an enum's own hashes its name, in Python.
    __hash__ = object.__hash__


@frozen(eq=False)
class ConnectionPolicies:
    """The policies in force, for the connections of one gateway."""

    in_force: PoliciesInForce
    compiler: PolicyCompiler
    reports: Reports
    selected: Selected
    #: None: there are no audit records.
    audit: AuditTrail | None

    @property
    def limit_strangers(self) -> bool:
        """Whether a limit holds for connections that are not open yet."""
        return self.in_force.now.limits_strangers

    @property
    def judges_logins(self) -> bool:
        """Whether anything is decided of connections before they open: `client_side.admit_login`."""
        return self.in_force.now.limits_strangers

    @property
    def are_asked_first(self) -> bool:
        """Whether a client may have to wait, or to be judged, before it is answered."""
        return self.in_force.now.limits_strangers or (self.audit is not None and self.audit.is_full)

    def opens_at_once(self, principal: Principal, session: str) -> SelectedPolicies | None:
        """What has been found out before of a session that may open its virtual host; None: it is to be
        found out, or to be denied (`prepared`, `why_not_open`)."""
        known = self.in_force.now.known(principal, session)
        if known is None or known.opens_freely:
            return known
        verdict = known.access.enforced.decide(Operation(principal, "connection.open"))
        if not verdict.allowed:
            return None
        self.reports.allowed(verdict)
        return known

    def are_in_force(self, selected: SelectedPolicies) -> bool:
        """Whether no others have come since."""
        return selected.policies is self.in_force.now

    def of_stranger(self, principal: Principal, session: str) -> SelectedPolicies | None:
        """Those that limit a connection which has not said all of itself; None: none does.

        Nothing is compiled for it.
        """
        policies = self.in_force.now
        return SelectedPolicies(policies, principal, session) if policies.limits_strangers else None

    async def prepared(self, principal: Principal, session: str) -> SelectedPolicies:
        """The policies in force that select the session, compiled."""
        while True:
            policies = self.in_force.now
            known = policies.known(principal, session)
            if known is not None:
                return known
            if not policies.is_prepared(principal, session):
                source = source_of(principal.source or "")
                await in_trio(self.compiler.run_for, source, partial(policies.prepare, principal, session))
            if policies is self.in_force.now:
                return SelectedPolicies(policies, principal, session)

    async def still(self, selected: SelectedPolicies) -> SelectedPolicies:
        """These, unless others have come into force since: then those."""
        if selected.policies is self.in_force.now:
            return selected
        return await self.prepared(selected.principal, selected.connection)

    def why_not_open(self, selected: SelectedPolicies) -> str | None:
        """Why a policy denies the principal its virtual host, in RabbitMQ's words for it; None: none does."""
        principal, session, access = selected.principal, selected.connection, selected.access
        if selected.opens_freely:
            return None
        operation = Operation(principal, "connection.open")
        verdict = access.enforced.decide(operation)
        if verdict.allowed:
            self.reports.allowed(verdict)
            try:
                selected.policies.keep(selected)
                _ = selected.transform
            except SessionDeniedError as error:
                # The client is not told which policies there are.
                log.warning(
                    "refused: user %r, vhost %r: %s", principal.user, principal.vhost, error, extra=RECURRING
                )
                verdict = attrs.evolve(verdict, effect="deny")
                text = denial_text(operation, verdict)
            else:
                return None
        else:
            text = denial_text(operation, verdict)
            self.reports.denied(verdict, operation, session, text)
        self.selected.note(principal, access)
        if self.audit is not None:
            self.audit.denied(session, principal, selected.policies, verdict, operation)
        return text


@define(eq=False)
class AdmissionControl:
    """The admission of one gateway's connections."""

    buckets: TokenBuckets
    report: Report
    #: Seconds that one may wait at most.
    patience: float
    #: Connections that have their place among those at once, and are not sessions yet.
    _inside: dict[str, SessionLimits] = attrs.field(factory=dict, init=False)

    @staticmethod
    def holds(stage: AdmissionStage, limits: tuple[SharedLimit, ...]) -> bool:
        """Whether `enter` has anything to ask."""
        return bool(_holding(stage, limits))

    async def enter(self, stage: AdmissionStage, selected: SelectedPolicies) -> OverLimit | None:
        """Return when the connection that these policies select may come in: None; or why it may not."""
        limits = _holding(stage, selected.limits)
        if not limits:
            return None
        taken = self.buckets.take(limits, time.monotonic(), counts=False)
        try:
            await self._await_grants(taken)
            now = time.monotonic()
            shares = _asked(stage, taken)
            with self.buckets.alone():
                why_not = self._rejection(stage, selected.principal, shares, taken, now)
                if why_not is not None:
                    return why_not
                if stage is AdmissionStage.OPEN:
                    self._inside[selected.connection] = self.buckets.take(limits, now)
            await self._wait(shares, now)
        finally:
            self.buckets.give_back(taken, time.monotonic(), counts=False)
        return None

    async def _await_grants(self, taken: SessionLimits) -> None:
        """Wait for grants of limits that are shared, or to hear that there is none; but not for long."""
        unsure = [share for share in taken.shares if share.is_unsure]
        if unsure:
            with move_on_after(FIRST_GRANT):
                for share in unsure:
                    await in_trio(share.sure)

    def leave(self, connection: str) -> None:
        """It has become a session, which has a place of its own, or it has failed. Idempotent."""
        taken = self._inside.pop(connection, None)
        if taken is not None:
            self.buckets.give_back(taken, time.monotonic())

    def _rejection(
        self,
        stage: AdmissionStage,
        principal: Principal,
        shares: list[tuple[SharedBucket, Quantity]],
        taken: SessionLimits,
        now: float,
    ) -> OverLimit | None:
        """Nothing is debited where there is one."""
        for share in taken.shares if stage is AdmissionStage.OPEN else ():
            most = share.limit.concurrent
            if most is not None and share.together >= most:
                self.report(share.limit, Happened.REFUSED)
                if share.limit.enforced:
                    return _rejected(share.limit, principal, f"connection limit ({most}) is reached")
        for share, quantity in shares:
            if share.limit.enforced and self._is_over(share, quantity, now):
                self.report(share.limit, Happened.REFUSED)
                return _rejected(share.limit, principal, f"rate limit of {quantity} is reached")
        return None

    def _is_over(self, share: SharedBucket, quantity: Quantity, now: float) -> bool:
        ready = share.ready_at(quantity, now)
        if share.limit.action != "delay":
            return ready > now
        return share.wait(quantity) > self.patience

    async def _wait(self, shares: list[tuple[SharedBucket, Quantity]], now: float) -> None:
        """Take the tokens, and wait for them."""
        longest = 0.0
        held = []
        for share, quantity in shares:
            bucket = share.buckets[quantity]
            delays = share.limit.action == "delay"
            if not share.limit.enforced and share.ready_at(quantity, now) > now:
                self.report(share.limit, Happened.DELAYED if delays else Happened.REFUSED)
                continue
            bucket.take(1)
            held.append(bucket)
            wait = share.wait(quantity)
            if share.limit.enforced and delays and wait:
                self.report(share.limit, Happened.DELAYED)
                longest = max(longest, wait)
        if longest:
            try:
                await sleep(longest)
            except BaseException:
                for bucket in held:
                    bucket.take(-1)
                raise


@lru_cache(maxsize=_MOST_KNOWN)
def _holding(stage: AdmissionStage, limits: tuple[SharedLimit, ...]) -> tuple[SharedLimit, ...]:
    return tuple([limit for limit in limits if _holds(stage, limit)])


def _holds(stage: AdmissionStage, limit: SharedLimit) -> bool:
    """Whether a connection must ask the limit at this stage.

    Before it opens, what else there is may be about somebody else: the client has not said all of itself
    yet. Then it takes its place among those at once, and the grant of what is shared is waited for.
    """
    if stage is AdmissionStage.OPEN and (limit.concurrent is not None or limit.shared):
        return True
    return _quantity(stage, limit) is not None


def _quantity(stage: AdmissionStage, limit: SharedLimit) -> Quantity | None:
    """What a connection draws from the limit at this stage."""
    asked: Quantity = "logins" if stage is AdmissionStage.LOGIN else "connections"
    if asked not in dict(limit.rates):
        return None
    is_now = stage is AdmissionStage.LOGIN or limit.is_early is (stage is AdmissionStage.ARRIVAL)
    return asked if is_now else None


def _asked(stage: AdmissionStage, taken: SessionLimits) -> list[tuple[SharedBucket, Quantity]]:
    """The buckets that a connection draws from at this stage."""
    found = [(share, _quantity(stage, share.limit)) for share in taken.shares]
    return [(share, quantity) for share, quantity in found if quantity is not None]


def _rejected(limit: SharedLimit, principal: Principal, why: str) -> OverLimit:
    """In RabbitMQ's words, and with its code, for the limits that it has itself."""
    if limit.action == "close":
        return OverLimit(506, why)
    return OverLimit(530, f"connection refused for user '{principal.user or ''}': {why}")
