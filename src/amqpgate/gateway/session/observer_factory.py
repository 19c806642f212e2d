"""Who makes the observers of a gateway's sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from amqpgate.gateway.session.observer import SessionObserver
from amqpgate.gateway.session.session import Session
from amqpgate.policy import PolicySet
from amqpgate.telemetry.faults import FAULTS


class ObserverFactory(Protocol):
    """One per gateway and kind of observer."""

    @property
    def part(self) -> str:
        """That of its observers."""

    def observer_for(
        self, session: Session, policies: PolicySet, before: SessionObserver | None
    ) -> SessionObserver | None:
        """The observer of a session, which is on the data path, under these policies; None: none.

        Called when the session begins, when other policies come into force, and when the factory asks for it.
        ``before`` is the observer that it has given the session: it may be given again.
        """


def observers_for(
    session: Session, policies: PolicySet, factories: Sequence[ObserverFactory], part: str = ""
) -> tuple[SessionObserver, ...]:
    """In the order of the factories. Where one of them raises, the session has no observer of its part.

    Where ``part`` is given, the observers of other parts stay.
    """
    known = {observer.part: observer for observer in session.observers}
    found = []
    for factory in factories:
        before = observer = known.get(factory.part)
        try:
            if part in ("", factory.part):
                observer = factory.observer_for(session, policies, before)
        except Exception:
            # What other policies keep from it must not be shown to it.
            observer = None
            FAULTS.caught(factory.part, f"{type(factory).__name__}.observer_for")
        if observer is not None:
            found.append(observer)
        if before is not None and before is not observer:
            before.ended()
    return tuple(found)
