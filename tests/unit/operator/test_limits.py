"""Limits, each with what passes under it: of one process, and of several as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
import trio

from amqpgate.admin.limits import combine
from amqpgate.gateway.observers.stats import rates as module
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.operator.limits import limits
from amqpgate.telemetry.answers import JSON, Answers
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.unit.gateway.conftest import Stage, make_stage
from tests.unit.gateway.rated import rates

__all__ = ["make_stage"]

ROW: dict[str, JSON] = {
    "policy": "p",
    "limit": "l",
    "quantity": "messages",
    "action": "delay",
    "enforced": True,
    "most": 10.0,
}


def asked(stage: Stage, most: int = 100) -> dict[str, JSON]:
    gateway: Gateway = stage.running.gateway

    async def ask() -> JSON:
        return await limits(gateway, {"most": most})

    return cast("dict[str, JSON]", stage.running.ask(ask))


def test_two_sessions_share_a_limit(
    make_stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_APART", 0.0)
    stage = make_stage(policies=rates("messages: 1/m, bytes: 1G/s, action: delay, channels: 5/s"))
    (client, broker), _ = stage.opened(), stage.opened()
    asked(stage)
    for _ in range(5):
        client.publish(b"12345", "key")
    for _ in range(2):
        broker.expect_content(amqp.BasicPublish)

    def rows() -> list[dict[str, JSON]]:
        return cast("list[dict[str, JSON]]", asked(stage)["limits"])

    eventually(lambda: sum(cast("int", row["waiting"]) for row in rows()) > 0)
    found = {row["quantity"]: row for row in rows()}
    # Channels are not counted where messages pass.
    assert set(found) == {"messages", "bytes"}
    messages = found["messages"]
    assert (messages["key"], messages["sessions"], messages["waiting"]) == (["guest"], 2, 1)
    assert messages["most"] == pytest.approx(1 / 60)
    # What is used up furthest is first, and the rest is counted.
    assert rows()[0]["quantity"] == "messages"
    short = asked(stage, most=1)
    assert (len(cast("list[JSON]", short["limits"])), short["left_out"]) == (1, 1)


def test_rows_of_workers_for_one_bucket_are_one() -> None:
    def row(key: str, rate: float, waiting: int = 0) -> dict[str, JSON]:
        return {**ROW, "key": [key], "rate": rate, "sessions": 1, "waiting": waiting}

    answers = Answers(
        {
            0: {"limits": [row("a", 4), row("b", 1)], "left_out": 2},
            1: {"limits": [row("a", 5.5), row("c", 0, 1)], "left_out": 0},
        }
    )
    found = trio.run(combine, answers, 2)
    assert found["limits"] == [row("c", 0, 1), {**row("a", 9.5), "sessions": 2}]
    assert found["left_out"] == 3
