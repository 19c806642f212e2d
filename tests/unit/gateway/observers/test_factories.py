"""A new observer is a class and a line: this one writes down what it is told of real sessions."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from amqpgate.gateway.observers import factories
from amqpgate.gateway.session.observer import Denial, Message, Release, Sees, SessionObserver, find
from amqpgate.gateway.session.session import Session
from amqpgate.policy import Operation, Peek, PolicySet, Verdict
from amqpgate.telemetry.faults import FAULTS, PARTS
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.inprocess import eventually
from tests.unit.gateway.audited import ACCESS, confirming
from tests.unit.gateway.conftest import Stage

MakeStage = Callable[..., Stage]


@attrs.define(eq=False)
class Diary(SessionObserver):
    """One session's."""

    part = "diary"
    may_hold_up = True

    session: Session
    told: list[str]

    def sees(self) -> Sees:
        return Sees.PUBLISHES

    def opened(self) -> None:
        self.told.append(f"opened {self.session.principal.user}")

    def allowed(self, operation: Operation, verdict: Verdict) -> None:
        self.told.append(f"allowed {operation.name} {verdict.rule}")

    def denied(self, denial: Denial) -> None:
        self.told.append(f"denied {denial.operation.name} {denial.operation.exchange}")

    def admits(self, message: Message) -> Peek | None:
        return Peek(always=True)

    def released(self, release: Release, frames: bytes) -> bytes:
        self.told.append(f"released {release.held.method.routing_key}")
        return frames

    def passed(self, channel: int, method: Method) -> None:
        self.told.append(f"passed {method.NAME}")

    def answered(self, channel: int, method: Method) -> None:
        self.told.append(f"answered {method.NAME}")

    def closed(self, outcome: str) -> None:
        self.told.append(f"closed {outcome}")


@attrs.frozen
class Diaries:
    """Makes those of a gateway."""

    told: list[str]
    part: str = "diary"

    def looks_on(self, policies: PolicySet) -> bool:
        return True

    def observer_for(self, session: Session, policies: PolicySet, before: SessionObserver | None) -> Diary:
        return Diary(session, self.told)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the diaries of all sessions say."""
    told: list[str] = []
    monkeypatch.setattr(factories, "OBSERVERS", (*factories.OBSERVERS, lambda _: Diaries(told)))
    return told


def test_it_is_told_what_becomes_of_a_session(make_stage: MakeStage, told: list[str]) -> None:
    stage = make_stage(policies=ACCESS % "nack")
    client, broker = stage.opened()
    confirming(client, broker)
    told.clear()
    client.publish(b"x", "big", exchange="x")
    assert broker.expect_content(amqp.BasicPublish).body == b"x"
    client.publish(b"x", "k", exchange="y")
    assert client.expect(amqp.BasicNack, 1).delivery_tag == 2
    client.say(amqp.QueueDeclare(queue="q"), 1)
    broker.expect(amqp.QueueDeclare, 1)
    broker.say(amqp.QueueDeclareOk("q", 0, 0), 1)
    client.expect(amqp.QueueDeclareOk, 1)
    client.close()
    stage.running.wait_idle()
    assert told == [
        "allowed basic.publish any",
        "allowed basic.publish small",
        "released big",
        "denied basic.publish y",
        "allowed queue.declare queues",
        "passed queue.declare",
        "answered queue.declare-ok",
        "closed client_gone",
    ]


def test_a_client_is_answered_before_observers_are_told(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    def denied(self: Diary, denial: Denial) -> None:
        self.told.append(f"closing: {self.session.channels.states[denial.channel].close is not None}")

    monkeypatch.setattr(Diary, "denied", denied)
    client, broker = make_stage(policies=ACCESS % "channel-close").opened()
    count = len(told)
    client.publish(b"x", "k", exchange="y")
    assert broker.expect(amqp.ChannelClose, 1).reply_code == 403
    eventually(lambda: len(told) > count)
    assert told[-1] == "closing: True"


def test_it_follows_other_policies(make_stage: MakeStage, told: list[str]) -> None:
    stage = make_stage()
    client, broker = stage.opened()
    gateway = stage.running.gateway
    [session] = gateway.sessions.values()
    before = find(session.session_policies.observers, Diary)
    assert before is not None
    stage.running.call(lambda: gateway.use(gateway.policies))
    after = find(session.session_policies.observers, Diary)
    assert after is not None
    assert after is not before
    client.say(amqp.QueueDeclare(queue="q"), 1)
    broker.expect(amqp.QueueDeclare, 1)
    assert told.count("passed queue.declare") == 1


HOOKS = [
    name for name, method in vars(SessionObserver).items() if callable(method) and not name.startswith("_")
]


def test_whatever_raises_in_it_harms_no_session(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    monkeypatch.setattr(FAULTS, "counts", dict.fromkeys(PARTS, 0))
    asked: set[str] = set()

    def failing(name: str) -> Callable[..., None]:
        def raises(*_: object, **__: object) -> None:
            asked.add(name)
            raise ZeroDivisionError(name)

        return raises

    hooks: dict[str, object] = {name: failing(name) for name in HOOKS if name != "sees"}
    hooks |= {"part": "failing", "may_hold_up": True, "sees": lambda _: Sees.PUBLISHES}
    kind = type("Failing", (SessionObserver,), hooks)

    class Factory:
        part = "failing"

        def looks_on(self, *_: object) -> bool:
            return True

        def observer_for(self, *_: object) -> SessionObserver:
            made = kind()
            assert isinstance(made, SessionObserver)
            return made

    monkeypatch.setattr(factories, "OBSERVERS", (*factories.OBSERVERS, lambda _: Factory()))
    stage = make_stage(policies=ACCESS % "nack")
    client, broker = stage.opened()
    confirming(client, broker)
    client.publish(b"12345678901", "a", exchange="x")
    assert broker.expect_content(amqp.BasicPublish).body == b"12345678901"
    client.publish(b"x", "k", exchange="y")
    assert client.expect(amqp.BasicNack, 1).delivery_tag == 2
    client.close()
    stage.running.wait_idle()
    assert {"opened", "holds_up", "allowed", "denied", "admits", "meters"} <= asked
    assert {"samplers", "shows", "released", "passed", "asked", "answered", "ended", "closed"} <= asked
    assert FAULTS.counts["failing"] >= len(asked)
    assert told[-1] == "closed client_gone"


def test_who_cannot_be_made_is_missing_alone(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    monkeypatch.setattr(FAULTS, "counts", dict.fromkeys(PARTS, 0))

    class Factory:
        part = "failing"

        def looks_on(self, *_: object) -> bool:
            raise ZeroDivisionError

        def observer_for(self, *_: object) -> None:
            raise ZeroDivisionError

    monkeypatch.setattr(factories, "OBSERVERS", (lambda _: Factory(), *factories.OBSERVERS))
    stage = make_stage()
    stage.opened()
    assert FAULTS.counts["failing"] == 2
    assert told[0] == "opened guest"


def test_one_that_looks_on_at_nobody_is_asked_once_for_all_sessions(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    asked: list[str] = []

    class Idle:
        part = "idle"

        def looks_on(self, policies: PolicySet) -> bool:
            asked.append("looks_on")
            return len(asked) > 1

        def observer_for(self, *_: object) -> None:
            asked.append("observer_for")

    monkeypatch.setattr(factories, "OBSERVERS", (lambda _: Idle(), *factories.OBSERVERS))
    stage = make_stage()
    stage.opened()
    stage.opened()
    assert asked == ["looks_on"]
    # The factory of a part has others than before: all are asked again.
    gateway = stage.running.gateway
    stage.running.call(lambda: gateway.registry.observe("taps", gateway.policies))
    stage.opened()
    assert asked == ["looks_on", "looks_on", "observer_for"]
    assert told.count("opened guest") == 3
