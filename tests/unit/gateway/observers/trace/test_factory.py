"""Which sessions are traced."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from amqpgate.policy import PolicySet, Source, build
from tests.support.otlp import Collector
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.traced import ALL, SAMPLED, MakeStage, carried, publish


def test_sessions_follow_other_policies(traced: Callable[..., Stage], collector: Collector) -> None:
    stage = traced()
    client, broker = stage.opened()
    publish(client)
    assert carried(broker)[0] is not None
    stage.running.call(lambda: stage.running.gateway.use(PolicySet.empty()))
    publish(client)
    assert carried(broker)[0] is None
    stage.running.call(lambda: stage.running.gateway.use(build([Source("p.yaml", ALL.encode())])))
    publish(client)
    assert carried(broker)[0] is not None


def test_without_tracing_in_the_settings_nothing_is_made(make_stage: MakeStage) -> None:
    stage = make_stage(policies=ALL)
    client, broker = stage.opened()
    publish(client, {"traceparent": SAMPLED})
    assert carried(broker) == (SAMPLED, b"x")
    publish(client)
    assert carried(broker) == (None, b"x")
    [session] = stage.running.gateway.sessions.values()
    assert all(observer.part != "traces" for observer in session.session_policies.observers)
    assert session.relay.up.flows is None


def test_who_traces_nothing_does_not_load_what_it_takes() -> None:
    found = "[name for name in sys.modules if name.startswith('opentelemetry')]"
    script = f"import sys, amqpgate.app.wiring; print({found})"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout == b"[]\n"
