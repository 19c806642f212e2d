"""Makes the observers of sessions that are traced. What they take is loaded with the `Tracer` alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqpgate.gateway.session.observer import SessionObserver
from amqpgate.gateway.session.session import Session
from amqpgate.policy import PolicySet
from amqpgate.values import frozen

if TYPE_CHECKING:
    from amqpgate.gateway.observers.trace.tracer import Tracer


@frozen
class TraceFactory:
    """Makes those of one gateway."""

    part = "traces"

    tracer: Tracer

    def looks_on(self, policies: PolicySet) -> bool:
        """Whether anything is traced."""
        return bool(policies.traces)

    def observer_for(
        self, session: Session, policies: PolicySet, before: SessionObserver | None
    ) -> SessionObserver | None:
        """None: nothing of the session has been traced yet."""
        from amqpgate.gateway.observers.trace.session import TraceObserver

        rules = policies.traces_of(session.principal)
        if isinstance(before, TraceObserver):
            before.follow(rules)
            return before
        return None if rules is None else TraceObserver.of(self.tracer, session, rules)
