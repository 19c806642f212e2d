"""Policies are read again: by every worker, for open sessions too; what is wrong changes nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pika
import pika.exceptions
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ

CONFIG = """
workers: {workers}
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbit, url: "amqp://{address}"}}]
policies: {policies}
watchPolicies: {watch}
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 2s}}
"""
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: reloaded}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: publish, effect: allow, operations: [basic.publish], routingKey: {literal: %s}}
"""


def make(rabbitmq: RabbitMQ, policies: Path, *, workers: int = 1, watch: bool = True) -> Gateway:
    watching = "true" if watch else "false"
    return Gateway(
        config=CONFIG.format(workers=workers, address=rabbitmq.address, policies=policies, watch=watching)
    )


def reloads(gateway: Gateway) -> dict[str, float]:
    return {
        sample.labels["outcome"]: sample.value
        for family in text_string_to_metric_families(gateway.get("/metrics")[1])
        for sample in family.samples
        if sample.name == "amqpgate_policy_reloads_total"
    }


def publishes(connection: pika.BlockingConnection, key: str) -> bool:
    channel = connection.channel()
    channel.confirm_delivery()
    try:
        channel.basic_publish("", key, b"x")
    except pika.exceptions.ChannelClosedByBroker:
        return False
    return True


@pytest.mark.parametrize("workers", [1, 2])
def test_policies_are_read_again(rabbitmq: RabbitMQ, tmp_path: Path, workers: int) -> None:
    file = tmp_path / "policies" / "policy.yaml"
    file.parent.mkdir()
    file.write_text(POLICY % "one")
    gateway = make(rabbitmq, file.parent, workers=workers, watch=False)
    gateway.start()
    try:
        eventually(lambda: reloads(gateway) == {"done": 0, "refused": 0})
        # Enough that each worker has some.
        connections = [pika.BlockingConnection(pika.URLParameters(gateway.url)) for _ in range(4 * workers)]
        assert all(publishes(one, "one") and not publishes(one, "two") for one in connections)

        file.write_text(POLICY % "two")
        gateway.child.signal(signal.SIGHUP)
        eventually(lambda: reloads(gateway) == {"done": workers, "refused": 0})
        assert all(publishes(one, "two") and not publishes(one, "one") for one in connections)

        file.write_text(POLICY.replace("literal", "litteral") % "three")
        gateway.child.signal(signal.SIGHUP)
        eventually(lambda: reloads(gateway) == {"done": workers, "refused": workers})
        assert all(publishes(one, "two") for one in connections)
        assert gateway.get("/readyz")[0] == 200
        for one in connections:
            one.close()
    finally:
        ended = gateway.stop()
    assert ended.code == 0
    assert ended.log.count("policies not reloaded, those from before stay in force") == workers
    assert "did you mean 'literal'?" in ended.log


def sample(gateway: Gateway, name: str) -> dict[str, float]:
    """The values of a metric by its label's value, or ``""``."""
    return {
        next(iter(sample.labels.values()), ""): sample.value
        for family in text_string_to_metric_families(gateway.get("/metrics")[1])
        for sample in family.samples
        if sample.name == name
    }


def swap(mount: Path, name: str, text: str) -> None:
    """As kubelet changes a mounted ConfigMap: a new hidden folder, and the link to it in one step."""
    (mount / f"..{name}").mkdir()
    (mount / f"..{name}" / "policy.yaml").write_text(text)
    link = mount / "..data_tmp"
    link.symlink_to(f"..{name}")
    link.rename(mount / "..data")


def test_a_config_map_that_is_swapped_is_read_by_every_worker(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    swap(tmp_path, "one", POLICY % "one")
    (tmp_path / "policy.yaml").symlink_to("..data/policy.yaml")
    gateway = make(rabbitmq, tmp_path, workers=2)
    gateway.start()
    try:
        eventually(lambda: list(sample(gateway, "amqpgate_policy_info").values()) == [2])
        (digest,) = sample(gateway, "amqpgate_policy_info")
        connections = [pika.BlockingConnection(pika.URLParameters(gateway.url)) for _ in range(8)]
        assert all(publishes(one, "one") and not publishes(one, "two") for one in connections)

        swap(tmp_path, "two", POLICY % "two")
        eventually(lambda: reloads(gateway)["done"] == 2)
        assert all(publishes(one, "two") and not publishes(one, "one") for one in connections)
        assert list(sample(gateway, "amqpgate_policy_info").values()) == [2]
        assert digest not in sample(gateway, "amqpgate_policy_info")
        assert sample(gateway, "amqpgate_policy_last_reload_successful") == {"": 1}

        swap(tmp_path, "three", POLICY.replace("rules", "rulez") % "three")
        eventually(lambda: reloads(gateway)["refused"] == 2)
        assert all(publishes(one, "two") for one in connections)
        assert sample(gateway, "amqpgate_policy_last_reload_successful") == {"": 0}
        status, text = gateway.get("/readyz")
        assert status == 200
        assert f"{tmp_path / 'policy.yaml'}:7:3: unknown key 'rulez' (did you mean 'rules'?)" in text
        for one in connections:
            one.close()
    finally:
        ended = gateway.stop()
    assert ended.code == 0


def test_an_operator_has_every_worker_read_again(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    file = tmp_path / "policies" / "policy.yaml"
    file.parent.mkdir()
    file.write_text(POLICY % "one")
    gateway = make(rabbitmq, file.parent, workers=2, watch=False)
    gateway.start()
    try:
        eventually(lambda: reloads(gateway) == {"done": 0, "refused": 0})
        eventually(lambda: list(sample(gateway, "amqpgate_policy_info").values()) == [2])
        connections = [pika.BlockingConnection(pika.URLParameters(gateway.url)) for _ in range(8)]
        file.write_text(POLICY % "two")
        code, out = ask_for_reload(gateway)
        assert code == 0
        assert out.startswith("policies reloaded, digest sha256:")
        # It answers when it is done.
        assert all(publishes(one, "two") and not publishes(one, "one") for one in connections)
        assert reloads(gateway) == {"done": 2, "refused": 0}

        file.write_text("kind: AccessPolicy\n" * 2)
        code, out = ask_for_reload(gateway)
        assert code == 2
        assert out.startswith(f"{file}:2:1: key 'kind' is given twice")
        assert all(publishes(one, "two") for one in connections)
        for one in connections:
            one.close()
    finally:
        assert gateway.stop().code == 0
    assert ask_for_reload(gateway)[0] == 1


def ask_for_reload(gateway: Gateway) -> tuple[int, str]:
    """`amqpgate reload`: exit code and all that it wrote."""
    done = subprocess.run(
        [sys.executable, "-m", "amqpgate", "reload", "--admin", f"127.0.0.1:{gateway.admin_port}"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr
