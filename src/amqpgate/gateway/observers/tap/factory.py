"""Makes the observers of sessions that are tapped. What they take is loaded with the first tap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqpgate.gateway.observers.tap.taps import PART, TapRegistry
from amqpgate.gateway.session.observer import SessionObserver, find
from amqpgate.gateway.session.session import Session
from amqpgate.policy import PolicySet
from amqpgate.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amqpgate.gateway.observers.tap.session import TapObserver


@frozen
class TapFactory:
    """Makes those of one gateway."""

    part = PART

    tapping: TapRegistry

    def looks_on(self, policies: PolicySet) -> bool:
        """Whether anybody taps anything."""
        return bool(self.tapping.taps)

    def observer_for(
        self, session: Session, policies: PolicySet, before: SessionObserver | None
    ) -> SessionObserver | None:
        """None: nobody taps what its client may do."""
        if not self.tapping.taps:
            return None
        from amqpgate.gateway.observers.tap.scope import known_of
        from amqpgate.gateway.observers.tap.session import TapObserver

        known = known_of(session.principal)
        taps = tuple([tap for tap in self.tapping.taps if tap.order.match.holds(known) is not False])
        if not taps:
            return None
        observer = before if isinstance(before, TapObserver) else TapObserver.of(self.tapping, session)
        # For messages that are not under way.
        observer.watches.forget()
        observer.scope.follow(taps, policies)
        return observer


def tappers(sessions: Iterable[Session]) -> list[TapObserver]:
    """The observers of those that are tapped."""
    from amqpgate.gateway.observers.tap.session import TapObserver

    found = (find(session.session_policies.observers, TapObserver) for session in sessions)
    return [tapper for tapper in found if tapper is not None]
