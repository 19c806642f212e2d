"""The sessions of tokens that the gateway has verified, and when each ends.

A session ends with its token (`exp`, and ``clockSkew`` and ``expiryGrace`` after it) by connection.close 320,
as in RabbitMQ, unless its client has renewed the token by then (`session_token`).
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import attrs

from amqpgate.errors import Forced, ProtocolViolation
from amqpgate.gateway.session.policies_in_force import PoliciesInForce
from amqpgate.gateway.session.policy_compiling import PolicyCompiler
from amqpgate.gateway.session.registry import SessionRegistry
from amqpgate.logs import about
from amqpgate.policy import Operation, Principal, denial_text
from amqpgate.values import define
from amqpgate.wire.method import Method

log = logging.getLogger(__name__)

#: Ends that are kept of sessions which are gone, beyond as many as there are others.
_SLACK: Final = 64


@define(eq=False)
class TokenSessions:
    """Of one gateway."""

    registry: SessionRegistry
    in_force: PoliciesInForce
    compiler: PolicyCompiler
    #: When each ends, in seconds since 1970, and its id. A session may be in there twice, or gone.
    _ends: list[tuple[float, str]] = attrs.field(factory=list, init=False)

    def watch(self, session: str, ends: float) -> None:
        """End a session at this time, in seconds since 1970, unless its token is renewed by then."""
        heapq.heappush(self._ends, (ends, session))

    def look(self, now: float) -> None:
        """End those whose tokens have. To be called once a second; ``now``: seconds since 1970."""
        live = self.registry.live
        while self._ends and self._ends[0][0] <= now:
            _, name = heapq.heappop(self._ends)
            session = live.get(name)
            if session is not None and session.token is not None and session.token.ends <= now:
                user = session.principal.user
                how = about(session=session.id, user=user, reply_code=320)
                log.info("session %s of user %r: its token has expired", session.id, user, extra=how)
                self.registry.dismiss(session, Forced("credential expired"), now=False)
        if len(self._ends) > 2 * len(live) + _SLACK:
            self._ends = [
                (session.token.ends, name) for name, session in live.items() if session.token is not None
            ]
            heapq.heapify(self._ends)

    def start(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run a task beside all else."""
        self.registry.start(task)

    async def prepare(self, principal: Principal, session: str) -> None:
        """Compile the policies that hold for a principal, off the data path's thread."""
        policies = self.in_force.now
        if not policies.is_prepared(principal, session):
            await self.compiler.run(partial(policies.prepare, principal, session))

    def judge_anew(self, session: str, principal: Principal, method: Method) -> None:
        """The session is this principal's from now on. Raises `ProtocolViolation` where a policy denies it
        its virtual host."""
        found, policies = self.registry.live[session], self.in_force.now
        if principal == found.principal:
            return
        access = policies.access_of(principal, session)
        operation = Operation(principal, "connection.open")
        verdict = access.enforced.decide(operation)
        if not verdict.allowed:
            raise ProtocolViolation(
                530,
                denial_text(operation, verdict),
                class_id=method.CLASS_ID,
                method_id=method.METHOD_ID,
            )
        self.registry.judge_anew(found, principal, policies, access)
