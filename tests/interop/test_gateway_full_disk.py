"""A disk without room for audit records, and no memory: sessions go on, and operators are told."""

from __future__ import annotations

import contextlib
import errno
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.brokers import running, value
from tests.interop.test_gateway_memory import assert_serves, use_memory_up
from tests.support.audit import records, setting
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Gone, Talker

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: broker, url: "amqp://{address}"}}]
policies: {policies}
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 1s, maxConnections: 12000}}
"""
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: p}
spec:
  subjects: [{user: guest}]
  onDeny: {publish: nack}
  rules:
  - {id: all, effect: allow, operations: ["*"]}
  - {id: secret, effect: deny, operations: [basic.publish], routingKey: {literal: secret}}
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path / "audit"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True)
    if done.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path) -> Path:
    """A file that takes all the room that there is."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
    return ballast


def passes(client: Talker, body: bytes) -> bool:
    """A message goes to the broker and back."""
    client.publish(body, "kept")
    client.expect(amqp.BasicAck, 1)
    client.say(amqp.BasicGet(queue="kept", no_ack=True), 1)
    return client.expect_content(amqp.BasicGetOk).body == body


def test_neither_disk_nor_memory(rabbitmq: RabbitMQ, disk: Path, tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/p.yaml").write_text(POLICY)
    config = CONFIG.format(address=rabbitmq.address, policies=tmp_path / "policies")
    with running(config + setting(disk, 1, maxQueue="1Mi")) as gateway:
        with Talker.dial(gateway.port, timeout=30) as kept:
            kept.open()
            kept.ask(amqp.QueueDeclare(queue="kept", exclusive=True), amqp.QueueDeclareOk, 1)
            kept.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
            ballast = fill(disk)
            kept.publish(b"", "secret")
            kept.expect(amqp.BasicNack, 1)
            denied = 1
            eventually(lambda: "No space left on device" in gateway.child.output(), timeout=30)
            assert gateway.get("/readyz")[0] == 200, "records wait, and there is room for more of them"
            use_memory_up(gateway)
            # What they took is given back as they end; until then it is lacking for whoever asks.
            eventually(lambda: value(gateway, "amqpgate_sessions_by_version") == 1, timeout=30, every=0.2)
            assert_serves(gateway)
            assert passes(kept, b"x" * 1000)

            # Nothing is written, and no more can wait.
            kept.sock.settimeout(2)
            with contextlib.suppress(TimeoutError, Gone):
                for _ in range(10_000):
                    kept.publish(b"", "secret")
                    denied += 1
                    kept.expect(amqp.BasicNack, 1)
            eventually(lambda: gateway.get("/readyz")[0] == 503, timeout=10)
            assert "audit records are not written" in gateway.get("/readyz")[1]
            assert gateway.get("/livez")[0] == 200
            assert value(gateway, "amqpgate_audit_write_failures_total") > 0

            ballast.unlink()
            kept.sock.settimeout(30)
            kept.expect(amqp.BasicNack, 1)
            assert passes(kept, b"y" * 1000)
            eventually(gateway.ready, timeout=30)
        assert "audit records are written again" in gateway.child.output()
        assert_serves(gateway)
    found = [one for one in records(disk, "events") if one["kind"] == "denied"]
    assert len(found) == denied, "none is lost, and none is written twice"
