"""`amqpgate init` before a real RabbitMQ, as a newcomer goes: settings, a check for real, a first denial."""

from __future__ import annotations

from pathlib import Path

import pika
import pytest
from click.testing import CliRunner
from pika.exceptions import ChannelClosedByBroker

from amqpgate.cli import main
from tests.interop.moving import ManagedBroker
from tests.interop.pair import parameters
from tests.support.inprocess import serving
from tests.support.ports import free_port


@pytest.mark.slow
def test_from_nothing_to_a_first_denial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = ManagedBroker.make()
    broker.node.start()
    try:
        broker.node.add_user("shop", "secret", vhost="/", permissions=("", "^orders$", ""))
        monkeypatch.setenv("AMQPGATE_MANAGEMENT_PASSWORD", "guest")
        port, admin = free_port(), free_port()
        done = CliRunner().invoke(
            main,
            ["init", str(tmp_path / "gate"), "--yes", "--upstream", f"amqp://127.0.0.1:{broker.node.port}"]
            + ["--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}"]
            + ["--management", broker.management, "--enforce"],
        )
        assert done.exit_code == 0, done.output
        assert "broker: RabbitMQ" in done.output
        config = tmp_path / "gate/amqpgate.yaml"
        for verb in (
            ["policy", "check", "--strict", str(config.parent / "policies")],
            ["doctor", "-c", str(config)],
        ):
            assert CliRunner().invoke(main, verb).exit_code == 0
        with serving(config.read_text(), folder=config.parent) as running:
            login = parameters(port, user="shop", password="secret")
            with pika.BlockingConnection(login) as connection, pytest.raises(ChannelClosedByBroker):
                connection.channel().queue_declare("mine")
            registry = running.gateway.metrics.registry
            denied = [metric for metric in registry.collect() if metric.name == "amqpgate_denials"]
            assert {one.labels["policy"] for one in denied[0].samples if one.value == 1} == {""}
    finally:
        broker.node.destroy()
