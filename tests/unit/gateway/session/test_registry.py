"""The sessions of a gateway: other policies for all of them, and what one that ends does to the others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial

import pytest

from amqpgate.errors import Forced
from amqpgate.gateway.pool.pooled_upstream import PooledUpstream
from amqpgate.gateway.session import teardown
from amqpgate.gateway.session.upstream import OwnUpstream
from amqpgate.policy import PolicySet, Principal, Source, build
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames
from tests.support.inprocess import eventually
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.guarded import through
from tests.unit.gateway.leaving import close_heard
from tests.unit.gateway.pool.pooled import pooled
from tests.unit.policy.transforms import NAMES, transforms

MakeStage = Callable[..., Stage]

PUBLISH = content_frames(1, amqp.BasicPublish(routing_key="q"), amqp.BasicProperties(), b"x" * 99, 4096)
DELIVER = content_frames(1, amqp.BasicDeliver("c"), amqp.BasicProperties(), b"x" * 99, 4096)


def allowing(prefix: str) -> PolicySet:
    """Everything is allowed with queues of these names."""
    return build(
        [
            Source(
                "p.yaml",
                f"""
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {{name: p}}
spec:
  subjects: [{{user: "*"}}]
  rules: [{{id: all, effect: allow, operations: ["*"], queue: {{prefix: {prefix}}}}}]
""".encode(),
            )
        ]
    )


def declares(pair: tuple[Talker, Talker], queue: str) -> None:
    through(*pair, amqp.QueueDeclare(queue=queue), amqp.QueueDeclareOk(queue, 0, 0))


# -- other policies


def test_who_comes_while_policies_are_compiled_is_compiled_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = stage.opened(user=b"alice")
    begun, goes_on, prepare = threading.Event(), threading.Event(), PolicySet.prepare
    asked: list[str | None] = []

    def slowly(self: PolicySet, principal: Principal, connection: str) -> object:
        asked.append(principal.user)
        begun.set()
        goes_on.wait(20)
        return prepare(self, principal, connection)

    monkeypatch.setattr(PolicySet, "prepare", slowly)
    gateway = stage.running.gateway
    changing = threading.Thread(
        target=partial(stage.running.ask, partial(gateway.policy_control.put_in_force, allowing("mine")))
    )
    changing.start()
    begun.wait(20)
    # The data path does not wait for it, and those in force are still the others.
    declares(first, "x")
    second = stage.opened(user=b"bob")
    goes_on.set()
    changing.join(20)
    assert asked == ["alice", "bob"]
    for session in (first, second):
        declares(session, "mine")
        session[0].say(amqp.QueueDeclare(queue="x"), 1)
        assert session[1].expect(amqp.ChannelClose, 1).reply_code == 403


def test_a_session_whose_names_cannot_be_told_any_more_keeps_those_it_has(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    running = stage.running
    running.call(lambda: running.gateway.use(transforms(NAMES % "a.")))
    client, broker = stage.opened()
    others = stage.opened(user=b"other")
    running.call(lambda: running.gateway.use(transforms(NAMES % "b.", NAMES % "c.")))
    for talkers in ((client, broker), others):
        talkers[0].say(amqp.QueuePurge(queue="q"), 1)
        assert talkers[1].expect(amqp.QueuePurge, 1).queue == "a.q"
    kept = [record for record in caplog.records if "keeps its transform" in record.getMessage()]
    assert [record.levelno for record in kept] == [logging.WARNING] * 2


# -- the end


def test_who_is_over_already_is_not_ended_by_an_operator(stage: Stage) -> None:
    client, broker = stage.opened()
    running = stage.running
    (session,) = running.gateway.sessions.values()
    client.close()
    broker.expect(amqp.ConnectionClose)
    for now in (False, True):
        running.call(partial(running.gateway.registry.dismiss, session, Forced("x"), now=now))
    broker.close()
    running.wait_idle()
    assert running.outcomes() == {"client_gone": 1}


def test_a_farewell_that_fails_is_that_sessions(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client, broker = stage.opened()
    others = stage.opened()

    async def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(teardown, "leave", fails)
    client.close()
    broker.expect_end()
    eventually(lambda: stage.running.outcomes() == {"client_gone": 1})
    assert any("did not end well" in record.getMessage() for record in caplog.records)
    declares(others, "q")


@pytest.mark.parametrize("kind", [OwnUpstream, PooledUpstream])
def test_a_way_to_the_broker_that_cannot_be_left_is_that_sessions(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch, kind: type
) -> None:
    # Without channels opened ahead, which this broker would have to answer, too.
    upstream = "connections: pooled, pool: {spareChannels: 0}" if kind is PooledUpstream else ""
    stage = make_stage(upstream=upstream)
    client, broker = pooled(stage) if kind is PooledUpstream else stage.opened()

    def fails(_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(kind, "leave", fails)
        client.close()
        eventually(lambda: stage.running.outcomes() == {"client_gone": 1})
    broker.close()
    with stage.client() as another:
        another.raw(amqp.PROTOCOL_HEADER)
        another.expect(amqp.ConnectionStart)


def test_nothing_is_left_of_a_session(stage: Stage) -> None:
    before = stage.running.tasks()
    for number in range(10):
        client, broker = stage.opened()
        leaving, rest = (client, broker) if number % 2 else (broker, client)
        leaving.raw((PUBLISH if number % 2 else DELIVER)[: 5 * number])
        leaving.close()
        close_heard(rest)
        rest.say(amqp.ConnectionCloseOk())
        rest.expect_end()
        rest.close()
    stage.running.wait_idle()
    eventually(lambda: stage.running.tasks() == before)
    pump = stage.running.gateway.pump
    assert (len(pump), pump.deadlines) == (0, 0)
