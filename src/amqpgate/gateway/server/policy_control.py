"""The policies in force, and how others take their place while sessions go on."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from amqpgate.config import Settings
from amqpgate.gateway.observers.services import GatewayObservers
from amqpgate.gateway.session.policies_in_force import PoliciesInForce
from amqpgate.gateway.session.policy_compiling import PolicyCompiler
from amqpgate.gateway.session.registry import SessionRegistry
from amqpgate.gateway.upstream.router import Router
from amqpgate.policy import PolicySet, SessionAccess
from amqpgate.values import define

log = logging.getLogger(__name__)

#: No session's policies are compiled ahead.
_NOBODY: Final[Mapping[str, SessionAccess]] = MappingProxyType({})


@define(eq=False)
class PolicyControl:
    """The policies of one gateway."""

    in_force: PoliciesInForce
    settings: Settings
    compiler: PolicyCompiler
    router: Router
    sessions: SessionRegistry
    observers: GatewayObservers

    def __attrs_post_init__(self) -> None:
        self._tell()

    async def put_in_force(self, policies: PolicySet) -> None:
        """As ``use``, with all that takes long done before in a thread."""
        self.use(policies, await self.sessions.prepare(policies, self.compiler))

    def use(self, policies: PolicySet, prepared: Mapping[str, SessionAccess] = _NOBODY) -> None:
        """Put other policies in the place of those in force, for open sessions, too, and at once."""
        # What may fail fails here, before anything has changed.
        access = self.sessions.judges_under(policies, prepared)
        self.in_force.replace(policies)
        if self.observers.tracer is not None:
            self.observers.tracer.use()
        self._tell()
        self.sessions.use(policies, access)
        changed = self.observers.selected.use(policies)
        if self.sessions.tasks is not None:
            live = [
                (session.principal, None if session.facts.choice is None else session.facts.choice.policy)
                for session in self.sessions.live.values()
            ]
            self.sessions.start(partial(self.observers.selected.take_stock, changed, live))

    def _tell(self) -> None:
        policies = self.in_force.now
        if policies.traces and self.settings.tracing is None:
            log.warning("there are trace policies, and no spans: the configuration does not have `tracing`")
        self.router.use(policies)
        self.observers.metrics.policies.in_force(policies.digest)
        self.observers.decisions.use(policies.digest)
