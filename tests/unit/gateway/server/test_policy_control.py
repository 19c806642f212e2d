"""Other policies in the place of those in force: all at once, or not at all."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from amqpgate.policy import PolicySet, Source, build
from amqpgate.telemetry.faults import FAULTS
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.guarded import POLICIES, through
from tests.unit.policy.build_set import document, policies
from tests.unit.policy.routes import document as routes
from tests.unit.policy.routes import to

RULE = "effect: allow, operations: ['queue.*'], queue: {prefix: mine}"
MINE = policies(document(RULE, subjects="{user: guest}"))
TRACES = """
apiVersion: amqpgate.io/v1alpha1
kind: TracePolicy
metadata: {name: t}
spec:
  subjects: [{user: "*"}]
  rules: [{id: all, operations: [basic.publish], ratio: 1}]
"""


def use(stage: Stage, given: PolicySet) -> None:
    stage.running.call(lambda: stage.running.gateway.use(given))


def declares(pair: tuple[Talker, Talker], queue: str) -> None:
    through(*pair, amqp.QueueDeclare(queue=queue), amqp.QueueDeclareOk(queue, 0, 0))


def test_they_hold_for_open_sessions_and_for_those_that_come(stage: Stage) -> None:
    before = stage.opened()
    declares(before, "x")
    use(stage, MINE)
    for pair in (before, stage.opened()):
        declares(pair, "mine")
        pair[0].say(amqp.QueueDeclare(queue="x"), 1)
        assert pair[1].expect(amqp.ChannelClose, 1).reply_code == 403
    gateway = stage.running.gateway
    assert gateway.policies is MINE
    digest = f'digest="sha256:{MINE.digest[:16]}"'
    assert digest in stage.running.ask(gateway.metrics_text).decode()


def test_what_fails_fails_before_anything_has_changed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = stage.opened()
    gateway = stage.running.gateway
    before = gateway.policies, gateway.router.table

    def fails(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(PolicySet, "access_of", fails)
        with pytest.raises(ZeroDivisionError):
            use(stage, MINE)
    assert (gateway.policies, gateway.router.table) == before
    declares(pair, "x")


def test_routes_and_decisions_follow(stage: Stage) -> None:
    gateway = stage.running.gateway
    assert list(gateway.router.table.routes) == []
    given = build([Source("p.yaml", routes("id: r, " + to("broker")).encode())])
    use(stage, given)
    assert [route.id for _, route in gateway.router.table.routes] == ["r"]


def test_that_nobody_traces_is_said_once_for_each_set(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    given = build([Source("p.yaml", TRACES.encode())])
    use(stage, given)
    said = [record for record in caplog.records if "trace policies, and no spans" in record.getMessage()]
    assert [record.levelno for record in said] == [logging.WARNING]


def test_whom_they_select_is_counted_anew(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(policies=POLICIES)
    stage.opened()
    stage.opened(user=b"other")
    selected = stage.running.gateway.observers.selected
    use(stage, MINE)
    eventually(lambda: stage.running.call(lambda: selected.sessions.copy()) == {("AccessPolicy", "p"): 1})


def test_a_count_that_fails_ends_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made when nobody waits for it, in a task of its own."""
    monkeypatch.setattr(FAULTS, "counts", {})
    pair = stage.opened()

    def fails(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(PolicySet, "selecting", fails)
        use(stage, MINE)
        eventually(lambda: FAULTS.counts == {"metrics": 1})
    declares(pair, "mine")
    stage.opened()
