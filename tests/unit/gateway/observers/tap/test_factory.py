"""Which sessions have an observer for taps: those that one may be about, while it is there."""

from __future__ import annotations

from amqpgate.gateway.observers.tap.factory import TapFactory, tappers
from amqpgate.gateway.observers.tap.session import TapObserver
from amqpgate.gateway.session.observer import find
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.tapped import tap


def test_sessions_are_tapped_while_a_tap_may_be_about_them(stage: Stage) -> None:
    stage.opened()
    gateway = stage.running.gateway
    (session,) = gateway.sessions.values()
    factory, policies = TapFactory(gateway.observers.taps), gateway.policies
    assert factory.observer_for(session, policies, None) is None
    other = tap(stage, "user = other")
    assert factory.observer_for(session, policies, None) is None
    assert tappers([session]) == []
    watch = tap(stage, "user = guest")
    (observer,) = tappers([session])
    assert observer is find(session.session_policies.observers, TapObserver)
    assert factory.observer_for(session, policies, observer) is observer
    assert isinstance(factory.observer_for(session, policies, None), TapObserver)
    watch.close()
    other.close()
    assert tappers([session]) == []
