"""Drain, pause and take-over, as operators and clients see them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest
from click.testing import CliRunner, Result

from amqpgate.cli import main
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.rolling import QUEUE, Tally, at_work, knocking
from tests.support.gateway import Ended, Gateway
from tests.support.inprocess import eventually
from tests.support.ports import refuses
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

CONFIG = """
workers: {workers}
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbit, url: "amqp://{address}"{pool}}}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: {drain}, closeTimeout: 2s}}
"""


#: Several workers take long to start.
ONE_AND_TWO = [1, pytest.param(2, marks=pytest.mark.slow)]


class Place:
    """Gateways that follow one another on the same ports."""

    def __init__(self, config: str) -> None:
        self.now = Gateway(config=config)
        self._config = config.replace("{port}", str(self.now.port)).replace(
            "{admin_port}", str(self.now.admin_port)
        )

    def start_again(self) -> None:
        """The last one has ended, and another one comes."""
        self.now = self._another()
        self.now.start()

    def _another(self, *args: str) -> Gateway:
        another = Gateway(config=self._config, args=args)
        another.port, another.admin_port = self.now.port, self.now.admin_port
        return another

    def take_over(self) -> Gateway:
        """The old one, which drains; `now` is another."""
        old, heir = self.now, self._another("--take-over")
        heir.start_child()
        self.now = heir
        heir.child.wait_until(
            lambda: "new connections come here" in heir.child.output() and heir.ready(),
            timeout=60,
            what="the heir",
        )
        return old


@contextlib.contextmanager
def place(rabbitmq: RabbitMQ, *, workers: int = 1, drain: str = "2s", pool: str = "") -> Iterator[Place]:
    made = Place(CONFIG.format(address=rabbitmq.address, workers=workers, drain=drain, pool=pool))
    made.now.start()
    try:
        yield made
    finally:
        if made.now._child is not None:
            made.now.kill()


@pytest.fixture
def queue(rabbitmq: RabbitMQ) -> Iterator[None]:
    with contextlib.closing(pika.BlockingConnection(pika.URLParameters(rabbitmq.url))) as connection:
        channel = connection.channel()
        channel.queue_declare(QUEUE, durable=True)
        yield
        channel.queue_delete(QUEUE)


def amqpgate(gateway: Gateway, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--admin", f"{gateway.host}:{gateway.admin_port}"])


def standing(gateway: Gateway) -> dict[str, object]:
    said: dict[str, object] = json.loads(gateway.get("/lifecycle")[1])
    return said


def over(gateway: Gateway) -> Ended:
    """Wait for its own end."""
    gateway.child.wait(60)
    return gateway.stop()


def workers_of(gateway: Gateway) -> set[int]:
    lists = Path(f"/proc/{gateway.child.pid}/task").glob("*/children")
    return {int(pid) for one in lists for pid in one.read_text().split()}


@pytest.mark.parametrize("workers", ONE_AND_TWO)
def test_drain_shows_how_many_are_left_and_waits(rabbitmq: RabbitMQ, workers: int) -> None:
    with place(rabbitmq, workers=workers) as here:
        gateway = here.now
        eventually(lambda: standing(gateway)["workers"] == workers)
        clients = [Talker.dial(gateway.port) for _ in range(4)]
        for client in clients:
            client.open()
        assert standing(gateway) == {
            "state": "ready",
            "sessions": 4,
            "connections": 4,
            "seconds_left": None,
            "workers": workers,
        }
        said = amqpgate(gateway, "drain", "--no-wait", "--window", "3")
        assert (said.exit_code, said.stdout) == (
            0,
            "draining: 4 connections left, 4 of them sessions\n",
        )
        assert gateway.get("/readyz")[0] == 503
        assert gateway.get("/readyz")[1].startswith("not ready: draining\n")
        eventually(lambda: refuses(gateway.port))
        for client in clients:
            assert client.expect(amqp.ConnectionClose).reply_code == 320
            client.say(amqp.ConnectionCloseOk())
            client.close()
        assert over(gateway).code == 0


def test_drain_returns_when_the_gateway_has_ended(rabbitmq: RabbitMQ) -> None:
    with place(rabbitmq) as here, Talker.dial(here.now.port) as client:
        client.open()
        said = amqpgate(here.now, "drain")
        assert said.exit_code == 0
        assert said.stdout.startswith("draining: 1 connections left, 1 of them sessions\n")
        assert said.stdout.endswith("drained\n")
        assert client.expect(amqp.ConnectionClose).reply_code == 320
        assert over(here.now).code == 0


@pytest.mark.parametrize("workers", ONE_AND_TWO)
def test_a_pause_and_its_end(rabbitmq: RabbitMQ, workers: int) -> None:
    with place(rabbitmq, workers=workers) as here, Talker.dial(here.now.port) as client:
        gateway = here.now
        client.open()
        assert amqpgate(gateway, "pause").stdout == "paused\n"
        eventually(lambda: refuses(gateway.port))
        assert gateway.get("/readyz")[1].startswith("not ready: paused\n")
        client.ask(amqp.QueueDeclare(exclusive=True), amqp.QueueDeclareOk, 1)
        if workers > 1:
            # One that is born meanwhile does as the others do.
            before = workers_of(gateway)
            os.kill(min(before), signal.SIGKILL)
            eventually(lambda: len(workers_of(gateway) - before) == 1)
            eventually(lambda: gateway.get("/lifecycle")[0] == 200 and standing(gateway)["workers"] == 2)
            assert standing(gateway)["state"] == "paused"
            assert refuses(gateway.port)
        assert amqpgate(gateway, "resume").stdout == "resumed\n"
        eventually(gateway.ready)
        with Talker.dial(gateway.port) as another:
            another.open()
            another.bye()


@pytest.mark.parametrize("workers", ONE_AND_TWO)
def test_nobody_is_refused_while_another_takes_over(rabbitmq: RabbitMQ, workers: int) -> None:
    """And the new one has the admin address while the old one still has clients."""
    with (
        place(rabbitmq, workers=workers, drain="60s") as here,
        Talker.dial(here.now.port) as client,
        knocking(here.now.port) as knockers,
    ):
        client.open()
        eventually(lambda: all(knocker.count for knocker in knockers))
        old = here.take_over()
        assert old.child.running
        client.ask(amqp.QueueDeclare(exclusive=True), amqp.QueueDeclareOk, 1)
        client.bye()
        assert over(old).code == 0
        before = [knocker.count for knocker in knockers]
        eventually(lambda: all(knocker.count > was for knocker, was in zip(knockers, before, strict=True)))
    assert [knocker.errors for knocker in knockers] == [[]] * 4


def test_without_a_gateway_there_is_nothing_to_take_over(rabbitmq: RabbitMQ) -> None:
    config = CONFIG.format(address=rabbitmq.address, workers=1, drain="1s", pool="")
    gateway = Gateway(config=config, args=("--take-over",))
    gateway.start()
    assert gateway.stop().code == 0


def test_a_gateway_that_is_not_to_be_taken_over_keeps_its_port(rabbitmq: RabbitMQ) -> None:
    with place(rabbitmq) as here:
        config = CONFIG.format(address=rabbitmq.address, workers=1, drain="1s", pool="")
        config = config.replace("{port}", str(here.now.port), 1).replace("{{", "{").replace("}}", "}")
        second = Gateway(config=config)
        second.start_child()
        assert second.child.wait() == 1
        assert "cannot listen on" in second.child.output()
        second.kill()


def check(tally: Tally, restarts: int) -> None:
    """All that was confirmed has arrived, and nothing twice but what is marked as redelivered."""
    assert tally.failures == []
    assert tally.confirmed - tally.arrived == set(), "lost"
    assert {body: count for body, count in tally.delivered.items() if count > 1} == {}, "duplicates"
    # Whoever is sent away is told so. (One that has just been accepted may hear it instead of open-ok.)
    assert set(tally.ends) <= {"320"}, tally.ends
    assert tally.ends["320"] >= restarts


@pytest.mark.parametrize("pool", ["", pytest.param(", pool: {}", marks=pytest.mark.slow)])
def test_a_restart_under_load(rabbitmq: RabbitMQ, queue: None, pool: str) -> None:
    with place(rabbitmq, drain="3s", pool=pool) as here:
        with at_work(here.now.port, 4, 4) as tally:
            eventually(lambda: len(tally.arrived) > 20)
            assert over(here.take_over()).code == 0
            count = len(tally.arrived)
            eventually(lambda: len(tally.arrived) > count + 20)
        check(tally, 8)


@pytest.mark.slow
def test_three_restarts_with_a_hundred_clients(
    rabbitmq: RabbitMQ, queue: None, record_property: pytest.RecordProperty
) -> None:
    with place(rabbitmq, drain="10s") as here:
        with at_work(here.now.port, 50, 50, pace=0.2) as tally:
            eventually(lambda: len(tally.arrived) > 500, timeout=60)
            for _ in range(3):
                assert over(here.take_over()).code == 0
                count = len(tally.arrived)
                eventually(lambda count=count: len(tally.arrived) > count + 200, timeout=60)
        check(tally, 300)
    figures = {
        "confirmed": len(tally.confirmed),
        "redelivered": sum(tally.redelivered.values()),
        "sent away": dict(tally.ends),
        "longest pause of a client, s": round(tally.longest_pause, 2),
    }
    record_property("figures", figures)
    print(figures)
