"""From one broker to another, as ``docs/routing.md`` has it, under load."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from click.testing import CliRunner, Result

from amqpgate.cli import main
from tests.interop.pair import GREEN, Pair, make_pair, parameters, routed, write
from tests.interop.rolling import QUEUE, at_work
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ

BLUE = "match: {vhosts: [/]}, upstream: {cluster: blue}"


@pytest.fixture(scope="module")
def pair(rabbitmq: RabbitMQ) -> Iterator[Pair]:
    yield from make_pair(rabbitmq)


@contextlib.contextmanager
def queue(node: RabbitMQ) -> Iterator[pika.adapters.blocking_connection.BlockingChannel]:
    with contextlib.closing(pika.BlockingConnection(parameters(node.port))) as connection:
        channel = connection.channel()
        channel.queue_declare(QUEUE, durable=True)
        yield channel
        channel.queue_delete(QUEUE)


@pytest.mark.slow
def test_nothing_is_lost_on_the_way(pair: Pair, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("open sesame\n")
    with (
        queue(pair.blue) as blue,
        queue(pair.green) as green,
        routed(pair, tmp_path, BLUE, admin=f", tokenFile: {token}") as gateway,
    ):

        def amqpgate(*words: str) -> Result:
            admin = f"{gateway.host}:{gateway.admin_port}"
            return CliRunner().invoke(main, [*words, "--admin", admin, "--token-file", str(token)])

        def on_blue() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = json.loads(
                amqpgate("sessions", "--upstream", "blue", "--json").stdout
            )["sessions"]
            return found

        def send_away(*, publishers_only: bool) -> None:
            """Until there are none: who has just connected has no consumer yet."""
            ids = [one["id"] for one in on_blue() if not (publishers_only and one["consumers"])]
            if ids:
                amqpgate("close", *ids, "--reason", "moving")

        def left(channel: pika.adapters.blocking_connection.BlockingChannel) -> int:
            count: int = channel.queue_declare(QUEUE, passive=True).method.message_count
            return count

        with at_work(gateway.port, publishers=10, consumers=5) as tally:
            eventually(lambda: len(tally.confirmed) > 200)
            eventually(lambda: sum(one["consumers"] for one in on_blue()) == 5)
            assert amqpgate("route", "pause", "r0").exit_code == 0
            send_away(publishers_only=True)
            eventually(lambda: len(on_blue()) == 5)
            eventually(lambda: left(blue) == 0)
            send_away(publishers_only=False)
            eventually(lambda: not on_blue())
            write(tmp_path / "policies", f"match: {{vhosts: [/]}}, {GREEN}")
            gateway.child.signal(signal.SIGHUP)
            eventually(lambda: "green" in amqpgate("route", "list").stdout)
            before = len(tally.confirmed)
            assert amqpgate("route", "resume", "r0").exit_code == 0
            eventually(lambda: len(tally.confirmed) > before + 200)
        assert not tally.failures
        assert tally.confirmed <= tally.arrived, "nothing is lost"
        assert max(tally.delivered.values()) == 1, "and nobody had to publish anything twice"
        assert (left(blue), left(green)) == (0, 0)
