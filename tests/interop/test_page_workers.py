"""The page and its questions of a gateway with two workers, whose clients have names that are no good."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from typing import Any

import pika
import pytest
from pika.exceptions import AMQPError
from playwright.sync_api import expect

from tests.interop.pair import parameters
from tests.interop.test_gateway_workers import workers
from tests.support.browser import browser
from tests.support.gateway import Gateway, watched
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ

pytestmark = pytest.mark.interop

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: pace}
spec: {subjects: [{user: guest}], limits: [{id: each, per: [clientProduct], messages: 1k/s, action: delay}]}
"""
#: Markup, controls, letters from right to left that turn round what follows, and as long as they come.
HOSTILE = [
    "<img src=x onerror=window.ran=1>",
    "new\nline\ttab\x00\x1b[31mred\x7f",
    "right\u202eot tfel\u2066",
    "\u05d0\u05d1\u05d2 / 1,000 of 5",
    "l" * 255,
    "\u0301" * 100,
    "\ufeffa\u200bb",
    "__proto__",
    "a', 'b",
]


@pytest.fixture(scope="module")
def pair(rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("workers")
    (folder / "pace.yaml").write_text(POLICY)
    gateway = watched(rabbitmq.address, folder, workers=2)
    with gateway.serving():
        yield gateway


def told(gateway: Gateway, path: str) -> Any:
    status, text = gateway.get(path)
    assert status == 200, text
    return json.loads(text)


def test_names_of_limits_are_text(pair: Gateway) -> None:
    with ExitStack() as stack:
        for name in HOSTILE:
            # Of both workers, most likely.
            for _ in range(6):
                connection = pika.BlockingConnection(parameters(pair.port, product=name))
                stack.enter_context(closing(connection))
        rows = told(pair, "/limits")["limits"]
        # A bucket is one row, whoever has its sessions.
        assert {row["key"][0]: row["sessions"] for row in rows} == dict.fromkeys(HOSTILE, 6)
        assert told(pair, "/limits?limit=2")["left_out"] == len(HOSTILE) - 2
        chromium = stack.enter_context(browser())
        for width in (1280, 360):
            page = chromium.new_context(viewport={"width": width, "height": 900}).new_page()
            wrong: list[str] = []
            page.on("pageerror", lambda error, wrong=wrong: wrong.append(str(error)))  # type: ignore[misc]
            page.goto(f"http://127.0.0.1:{pair.admin_port}/")
            limits = page.locator("#limits li")
            # The fullest of them; which these are is open.
            expect(limits).to_have_count(9)
            expect(page.locator("#upstreams li")).to_have_count(1)
            expect(page.locator("#upstreams li")).to_contain_text(f"{6 * len(HOSTILE)} sessions")
            for text in limits.all_inner_texts():
                assert not set(text) & set("\x00\x1b\x7f\u202e\u2066\u200b\ufeff")
            assert page.locator("#limits img").count() == 0
            assert page.evaluate("window.ran") is None
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            # What is no view is the overview.
            for name in ("constructor", "__proto__", "toString"):
                page.goto(f"http://127.0.0.1:{pair.admin_port}/#{name}")
                expect(page.locator("[data-view=overview]")).to_be_visible()
            assert wrong == []


@pytest.mark.slow
def test_the_hour_is_of_both_and_of_one_that_died(pair: Gateway) -> None:
    with ExitStack() as stack:
        channels = []
        for _ in range(16):
            connection = pika.BlockingConnection(parameters(pair.port))
            # Half of them end with their worker.
            stack.enter_context(suppress(AMQPError))
            stack.callback(connection.close)
            channels.append(connection.channel())
        for channel in channels:
            channel.confirm_delivery()
            for _ in range(50):
                channel.basic_publish("amq.topic", "k", b"12345")

        def published() -> float:
            hour = told(pair, "/history")
            return sum(value or 0 for value in hour["published"]) * hour["step"]

        # A row has the rate of four to six seconds.
        eventually(lambda: published() == pytest.approx(16 * 50, rel=0.3), timeout=60, every=0.5)
        hour = told(pair, "/history")
        assert hour["workers"][-1] == 2
        assert hour["sessions"][-1] == 16
        assert any(hour["confirm_p99"])
        before, many = published(), len(hour["at"])
        victim = min(workers(pair))
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: victim not in workers(pair) and len(workers(pair)) == 2, timeout=60, every=0.5)
        # What the one that died had passed is there, and both write again.
        eventually(lambda: told(pair, "/history")["workers"][many + 1 :].count(2) > 1, timeout=60, every=0.5)
        assert published() >= 0.99 * before
        assert all(value is None or value >= 0 for value in told(pair, "/history")["published"])
