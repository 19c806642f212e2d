"""What `helm test` does, done to a gateway here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import trustme

from tests.support.inprocess import Doorway, serving
from tests.unit.chart.rendering import documents, render

SETTINGS = """
listeners: [{{name: main, bind: "127.0.0.1:0"{more}}}]
upstreams: [{{name: rabbit, host: 127.0.0.1, port: {port}}}]
"""
TLS = ", tls: {cert: gate.pem, key: gate.key}"


def greet(more: Mapping[str, object], port: int) -> subprocess.CompletedProcess[str]:
    """The test's own command, with the address of a gateway here."""
    listener = {"name": "a", "bind": "0.0.0.0:5671", **more}
    values = {"config": {"listeners": [listener], "upstreams": [{"name": "rabbit", "host": "rabbit"}]}}
    (pod,) = (found for found in documents(render(values)) if found["kind"] == "Pod")
    assert isinstance(pod["spec"], dict)
    (container,) = pod["spec"]["containers"]
    assert container["args"][:2] == ["shop-amqpgate.mq.svc", "5671"]
    _, *command = container["command"]
    return subprocess.run(
        [sys.executable, *command, "127.0.0.1", str(port), *container["args"][2:]],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize("tls", [False, True], ids=["clear", "tls"])
@pytest.mark.parametrize("proxy", ["none", "v1", "v2", "any"])
def test_it_greets_a_gateway(tmp_path: Path, tls: bool, proxy: str) -> None:
    issued = trustme.CA().issue_cert("localhost")
    issued.private_key_and_cert_chain_pem.write_to_path(tmp_path / "gate.pem")
    issued.private_key_pem.write_to_path(tmp_path / "gate.key")
    text = SETTINGS.format(port=1, more=f", proxyProtocol: {proxy}{TLS if tls else ''}")
    asked: dict[str, object] = {"proxyProtocol": proxy}
    if tls:
        asked["tls"] = {"cert": "/etc/amqpgate/secrets/a", "key": "/etc/amqpgate/secrets/b"}
    with serving(text, folder=tmp_path) as running:
        port = running.port()
        done = greet(asked, port)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"127.0.0.1:{port} speaks AMQP 0-9-1\n", "")


def test_it_fails_where_nothing_speaks_amqp() -> None:
    door = Doorway()
    door.close()
    assert greet({}, door.port).returncode == 1
