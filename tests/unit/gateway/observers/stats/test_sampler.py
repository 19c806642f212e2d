"""A look at all sessions: who waits for a limit, who is told so, and how long brokers take to confirm."""

from __future__ import annotations

import time

import attrs
import pytest

from amqpgate.datapath.tables import Side
from amqpgate.gateway.observers.stats import sampler
from amqpgate.gateway.server import housekeeping
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.session.session_policies import SessionPolicies
from amqpgate.policy import SharedLimit
from amqpgate.telemetry.faults import FAULTS
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.unit.gateway.audited import confirming
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.tapped import RATE, MakeStage

SLOW = RATE % ("enforce", "messages: 1/h, burst: 1s, action: delay, notify: true")


@attrs.define
class Looks:
    """The gateway's own are too far apart for a test."""

    stage: Stage
    confirmed: list[float] = attrs.field(factory=list)

    def wait(self, clients: int) -> None:
        """Until so many wait for their limit."""
        live = self.stage.running.gateway.sessions
        eventually(
            lambda: sum(one.relay.endpoints[Side.CLIENT].throttled for one in live.values()) == clients
        )

    def look(self, times: int = 1) -> None:
        running = self.stage.running

        async def do() -> None:
            for _ in range(times):
                live: list[Session] = list(running.gateway.sessions.values())
                await sampler.look(live, time.monotonic(), self.confirmed.append)

        running.ask(do)


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Limits that sessions were found waiting for."""
    found: list[str] = []
    tell = SessionPolicies.limited

    def limited(self: SessionPolicies, limit: SharedLimit, happened: object) -> None:
        found.append(f"{limit.name} {getattr(happened, 'value', happened)}")
        tell(self, limit, happened)  # type: ignore[arg-type]

    monkeypatch.setattr(SessionPolicies, "limited", limited)
    return found


@pytest.fixture
def looks(make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch) -> Looks:
    monkeypatch.setattr(housekeeping, "INTERVAL", 3600.0)
    return Looks(make_stage(policies=SLOW, limits="closeTimeout: 100ms"))


def test_who_waits_is_counted_and_told_once_two_looks_agree(looks: Looks, waited: list[str]) -> None:
    client, _ = looks.stage.opened()
    for _ in range(3):
        client.publish(b"x", "k")
    looks.wait(1)
    waited.clear()
    looks.look()
    assert waited == ["r/l waited"]
    client.hear_nothing(0.05)
    looks.look()
    client.expect(amqp.ConnectionBlocked)
    looks.look(3)
    assert waited == ["r/l waited"] * 5
    client.hear_nothing(0.05)


def test_a_client_that_has_gone_keeps_no_other_from_being_looked_at(looks: Looks, waited: list[str]) -> None:
    """It is found out by the data path, which does not read from who waits."""
    pairs = [looks.stage.opened() for _ in range(2)]
    for client, _ in pairs:
        for _ in range(3):
            client.publish(b"x", "k")
    looks.wait(2)
    faults = sum(FAULTS.counts.values())
    pairs[0][0].reset()
    looks.look(2)
    pairs[1][0].expect(amqp.ConnectionBlocked)
    assert sum(FAULTS.counts.values()) == faults


def test_confirms_are_timed_and_told(looks: Looks) -> None:
    client, broker = looks.stage.opened()
    confirming(client, broker)
    looks.look()
    client.publish(b"x", "k")
    broker.expect_content(amqp.BasicPublish)
    looks.look()
    assert looks.confirmed == []
    broker.say(amqp.BasicAck(1), 1)
    client.expect(amqp.BasicAck, 1)
    looks.look()
    [took] = looks.confirmed
    assert took >= 0
    looks.look()
    assert looks.confirmed == [took]
