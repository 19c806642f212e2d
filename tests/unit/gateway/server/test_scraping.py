"""The text of a gateway's metrics, and what it is where something cannot be read."""

from __future__ import annotations

import pytest

from amqpgate.gateway.server import scrape
from amqpgate.telemetry.faults import FAULTS
from amqpgate.telemetry.readings import PUBLISHED, Traffic
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.gateway.conftest import Stage


def text(stage: Stage) -> str:
    return stage.running.ask(stage.running.gateway.scraper.text).decode()


def published(stage: Stage) -> list[str]:
    return [line for line in text(stage).splitlines() if line.startswith("amqpgate_messages_total{")]


def test_each_scrape_reads_anew(stage: Stage) -> None:
    scraper = stage.running.gateway.scraper
    assert scraper.latest is None
    client, broker = stage.opened()
    before = published(stage)
    client.publish(b"x" * 10, "k")
    broker.expect_content(amqp.BasicPublish)
    assert published(stage) != before
    assert scraper.latest is not None
    assert scraper.latest.traffic[PUBLISHED] == Traffic(1, 10)


def test_what_was_read_last_is_told_where_nothing_can_be_read(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FAULTS, "counts", {})
    client, broker = stage.opened()
    client.publish(b"x" * 10, "k")
    broker.expect_content(amqp.BasicPublish)
    before = published(stage)

    async def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(scrape, "totals", fails)
    client.publish(b"x" * 10, "k")
    broker.expect_content(amqp.BasicPublish)
    assert published(stage) == before
    assert FAULTS.counts == {"metrics": 1}


def test_what_cannot_be_read_at_the_first_scrape_is_left_out(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(scrape, "totals", fails)
    found = text(stage)
    assert "amqpgate_ready" in found
    assert stage.running.gateway.scraper.latest is None
