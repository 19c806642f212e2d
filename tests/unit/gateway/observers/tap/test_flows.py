"""Which flows a tap watches, what they count, and what becomes of those that others look at."""

from __future__ import annotations

import pytest

from amqpgate.datapath.scanner import Flow
from amqpgate.gateway.limits.sampler import Sampler
from amqpgate.gateway.observers.tap import flows
from amqpgate.gateway.observers.tap.flows import Watched
from amqpgate.gateway.observers.tap.session import TapObserver
from amqpgate.gateway.session.observer import find
from amqpgate.policy import Operation, Principal
from amqpgate.policy.engine.verdicts import UNRESTRICTED
from amqpgate.policy.kinds.audit import NOT_AUDITED
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames
from tests.unit.gateway.audited import confirming
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.tapped import RATE, MakeStage, pass_on, tap


def test_more_flows_than_are_watched_lose_no_count(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "MOST_WATCHED", 7)
    client, broker = stage.opened()
    watch = tap(stage, ceiling=100)
    for number in range(100):
        pass_on(client, broker, 1 + number % 3, f"key.{number}")
    assert watch.counts[0] == sum(1 + number % 3 for number in range(100))
    session = next(iter(stage.running.gateway.sessions.values()))
    tapper = find(session.session_policies.observers, TapObserver)
    assert tapper is not None
    assert len(tapper.watches) <= 7


def test_a_message_under_way_is_counted_though_its_flow_is_forgotten(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flows, "MOST_WATCHED", 4)
    client, broker = stage.opened(channels=2)
    watch = tap(stage, every=1000)
    frames = content_frames(2, amqp.BasicPublish(), amqp.BasicProperties(), b"late", 131072)
    method = method_frame(2, amqp.BasicPublish())
    header = frames[len(method) : frames.index(b"late") - 7]
    client.raw(method + header)
    broker.expect(amqp.BasicPublish, 2)
    assert broker.frame().type == amqp.FRAME_HEADER
    for number in range(6):
        pass_on(client, broker, 1, f"key.{number}")
    client.raw(frames[len(method) + len(header) :])
    assert broker.frame().payload == b"late"
    assert watch.counts[0] == 7


def test_beside_a_limit_that_judges_each_message(make_stage: MakeStage) -> None:
    """Flows that show every message to a policy are not muted, and the tap's ceiling still holds."""
    stage = make_stage(policies=RATE % ("enforce", "messages: 100000/s, action: reject"))
    client, broker = stage.opened()
    watch = tap(stage, ceiling=20)
    pass_on(client, broker, 300)
    matched, shown = watch.counts
    assert (matched, 0 < shown < 300) == (300, True)


def test_a_policy_that_judges_each_message_goes_on_when_nothing_may_be_shown(make_stage: MakeStage) -> None:
    stage = make_stage(policies=RATE % ("enforce", "messages: 1/h, action: reject"))
    client, broker = stage.opened()
    confirming(client, broker)
    watch = tap(stage, "operation=basic.publish", ceiling=10)
    for _ in range(20):
        client.publish(b"x", "k", exchange="orders")
    broker.expect_content(amqp.BasicPublish)
    for _ in range(19):
        client.expect(amqp.BasicNack, 1)
    assert watch.counts[0] == 20


def test_who_else_chooses_goes_on_when_nothing_may_be_shown() -> None:
    """Mirrors and traces see as many as without the tap; a policy sees all."""

    def watched(*, is_always: bool) -> Watched:
        operation = Operation(Principal("guest", "/"), "basic.publish")
        return Watched(
            Flow(sample_every=1), operation, (), NOT_AUDITED, UNRESTRICTED, amqp.BasicPublish(), is_always
        )

    shared, judged = watched(is_always=False), watched(is_always=True)
    for samplers, every in (([Sampler(0.1), Sampler(0.5)], 2), ([], 0)):
        shared.hide(samplers)
        judged.hide(samplers)
        assert (shared.flow.sample_every, judged.flow.sample_every) == (every, 1)
