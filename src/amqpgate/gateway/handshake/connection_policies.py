"""What policies say of connections that are not sessions yet: whether a virtual host may be opened.

Policies are compiled for a principal before they decide, in a thread, so that the data path does not wait.
"""

from __future__ import annotations

import logging
from functools import partial

import attrs

from amqpgate.gateway.handshake.pending import source_of
from amqpgate.gateway.observers.audit.audit import AuditTrail
from amqpgate.gateway.observers.stats.reports import Reports
from amqpgate.gateway.observers.stats.selected import Selected
from amqpgate.gateway.session.policies_in_force import PoliciesInForce
from amqpgate.gateway.session.policy_compiling import PolicyCompiler
from amqpgate.policy import Operation, Principal, SelectedPolicies, SessionDeniedError, denial_text

log = logging.getLogger(__name__)


@attrs.frozen(eq=False)
class ConnectionPolicies:
    """The policies in force, for the connections of one gateway."""

    in_force: PoliciesInForce
    compiler: PolicyCompiler
    reports: Reports
    selected: Selected
    #: None: there are no audit records.
    audit: AuditTrail | None

    def of_stranger(self, principal: Principal, session: str) -> SelectedPolicies:
        """Those that select a connection which has not said all of itself. Nothing is compiled for it."""
        return SelectedPolicies(self.in_force.now, principal, session)

    async def prepared(self, principal: Principal, session: str) -> SelectedPolicies:
        """The policies in force that select the session, compiled."""
        while True:
            policies = self.in_force.now
            if not policies.is_prepared(principal, session):
                source = source_of(principal.source or "")
                await self.compiler.run_for(source, partial(policies.prepare, principal, session))
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
        operation = Operation(principal, "connection.open")
        verdict = access.enforced.decide(operation)
        if verdict.allowed:
            self.reports.allowed(verdict)
            try:
                _ = selected.transform
            except SessionDeniedError as error:
                # The client is not told which policies there are.
                log.warning("refused: user %r, vhost %r: %s", principal.user, principal.vhost, error)
                verdict = attrs.evolve(verdict, effect="deny")
            else:
                return None
        else:
            self.reports.denied(verdict, operation, session, denial_text(operation, verdict))
        self.selected.note(principal, access)
        if self.audit is not None:
            self.audit.denied(session, principal, selected.policies, verdict, operation)
        return denial_text(operation, verdict)
