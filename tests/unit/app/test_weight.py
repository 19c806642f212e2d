"""What processes do not import: by the names of modules, after each has done what it is for.

`python -m tests.bench.weight` measures what that is worth.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from amqpgate.datapath.build import COMPILED
from tests.support.embedded import embedded_broker
from tests.support.ports import free_port
from tests.support.processes import Child
from tests.support.talker import Talker

#: As `python -m amqpgate`, and at the end it writes what it has imported into a file of its own.
SCRIPT = """
import atexit, json, os, pathlib, sys

def tell():
    (pathlib.Path(os.environ["TOLD"]) / str(os.getpid())).write_text(json.dumps(sorted(sys.modules)))

atexit.register(tell)
from amqpgate.cli import main

main(prog_name="amqpgate")
"""
SETTINGS = """
listeners: [{{name: main, bind: "127.0.0.1:{port}"}}]
upstreams: [{{name: broker, host: {host}, port: {broker}}}]
policies: policies
admin: {{bind: "127.0.0.1:{admin}", probes: "127.0.0.1:{probes}"}}
"""
POLICIES = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: all}
spec:
  subjects: [{user: "*"}]
  rules: [{id: all, effect: allow, operations: ["*"], queue: {topic: "#"}}]
---
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: all}
spec: {subjects: [{user: "*"}], limits: [{id: per-user, per: [user], messages: 1M/s}]}
"""

#: Nobody needs them who is a sidecar with what most have: policies, limits, metrics and probes.
HEAVY = frozenset(
    {
        # The web framework, which whoever asks for more than probes and the lifecycle needs.
        "starlette", "hypercorn", "h11", "h2", "wsproto", "anyio", "amqpgate.admin.application",
        # Shared limits, tracing, Parquet, regular expressions.
        "coredis", "beartype", "opentelemetry", "google", "requests", "pyarrow", "numpy", "pandas", "re2",
        # Terminals, and libraries that are ours now, or for tests.
        "rich", "pygments", "cattrs", "hypothesis", "jsonschema", "typing_extensions",
        # OpenSSL, which who speaks no TLS asks nothing of; servers and clients of HTTP.
        "_ssl", "_hashlib", "http.server", "http.client", "urllib.request", "wsgiref", "socketserver",
        "email",
        # For names that are not ASCII, files for a while, answers that are packed.
        "idna.core", "encodings.idna", "_bz2", "_lzma", "zlib",
        # Of Python's own.
        "asyncio", "multiprocessing", "importlib.metadata", "xml",
        # Other versions of AMQP, the embedded broker, what only the command line shows.
        "amqpgate.wire.generated.v0_8", "amqpgate.wire.generated.v0_9", "amqpgate.wire.generated.v0_10",
        "amqpgate.bridge.v0_10", "amqpgate.broker", "amqpgate.inject", "amqpgate.pipeline",
        "amqpgate.cli.demo", "amqpgate.cli.policy", "amqpgate.policy.tools", "difflib",
        # Shared connections, taps and mirrors.
        "amqpgate.gateway.pool.pool", "amqpgate.gateway.pool.plan", "amqpgate.gateway.pool.pooled_upstream",
        "amqpgate.gateway.observers.tap.session", "amqpgate.gateway.observers.mirror.session",
        "amqpgate.gateway.observers.mirror.line",
    }
)  # fmt: skip
#: The plain engine, where there is the compiled one.
PLAIN = (
    {"amqpgate.datapath.pump", "amqpgate.datapath.reference", "amqpgate.datapath.endpoint"}
    if COMPILED
    else set()
)
#: The supervisor relays, decides and knows nothing.
RELAYS = frozenset(
    {
        "amqpgate.datapath", "amqpgate.policy", "amqpgate.wire", "amqpgate.protocol", "amqpgate.bridge",
        "amqpgate.gateway.session", "amqpgate.gateway.handshake", "amqpgate.gateway.pool",
        "amqpgate.gateway.observers", "amqpgate.gateway.upstream", "amqpgate.gateway.server.gateway",
        "amqpgate.operator.queries", "amqpgate.telemetry.metrics", "amqpgate.app.wiring",
    }
)  # fmt: skip


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Callable[[str, str], set[str]]]:
    """Runs a gateway with more settings, has a session served and a path asked, and ends it: what its process
    had imported. Workers are other processes."""
    with embedded_broker() as (host, broker):

        def run(more: str, path: str) -> set[str]:
            (tmp_path / "policies").mkdir(exist_ok=True)
            (tmp_path / "policies" / "all.yaml").write_text(POLICIES)
            (tmp_path / "told").mkdir()
            port, admin, probes = free_port(), free_port(), free_port()
            file = tmp_path / "amqpgate.yaml"
            file.write_text(
                SETTINGS.format(port=port, host=host, broker=broker, admin=admin, probes=probes) + more
            )
            command = [sys.executable, "-c", SCRIPT, "run", "--config", file, "--log-format", "json"]
            child = Child(command, log=tmp_path / "log", env={**os.environ, "TOLD": str(tmp_path / "told")})

            def asked(at: int, path: str) -> bool:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{at}{path}", timeout=20) as answer:
                        return bool(answer.read())
                except urllib.error.HTTPError as error:
                    error.close()
                    return False
                except OSError:
                    return False

            child.wait_until(lambda: asked(probes, "/readyz"), timeout=60, what="amqpgate")
            with Talker.dial(port) as client:
                client.open()
                client.publish(b"x", "key")
                client.bye()
            assert asked(probes, "/metrics")
            assert asked(admin, path)
            assert child.stop() == 0, child.output()
            modules = json.loads((tmp_path / "told" / str(child.pid)).read_text())
            return set(modules)

        yield run


def found(modules: set[str], names: frozenset[str]) -> set[str]:
    """Which of these it has, or something of them."""
    return {name for name in names if any(f"{one}.".startswith(f"{name}.") for one in modules)}


def test_a_sidecar_imports_what_it_uses(told: Callable[[str, str], set[str]]) -> None:
    process = told("", "/lifecycle")
    assert found(process, HEAVY | PLAIN) == set()
    # What it is to find is there: names that nobody has would never be found.
    assert found(process, RELAYS) == RELAYS


#: What writes audit records.
AUDIT = frozenset({"amqpgate.gateway.observers.audit", "amqpgate.telemetry.audit.log"})


def test_a_sidecar_without_audit_has_nothing_of_it(told: Callable[[str, str], set[str]]) -> None:
    assert found(told("", "/lifecycle"), AUDIT) == set()


def test_who_is_asked_for_more_imports_the_framework(told: Callable[[str, str], set[str]]) -> None:
    process = told("", "/sessions")
    assert {"starlette", "hypercorn"} <= found(process, HEAVY)


def test_a_supervisor_imports_nothing_that_relays(told: Callable[[str, str], set[str]]) -> None:
    supervisor = told("workers: 2\n", "/lifecycle")
    assert found(supervisor, HEAVY | RELAYS) == set()


def test_audit_as_json_takes_no_arrow(told: Callable[[str, str], set[str]]) -> None:
    process = told("audit: {format: json}\n", "/lifecycle")
    assert found(process, HEAVY | PLAIN) == set()
    assert found(process, AUDIT) == AUDIT


def test_audit_as_parquet_takes_no_more_than_arrow(
    told: Callable[[str, str], set[str]], tmp_path: Path
) -> None:
    process = told(f"audit: {{format: parquet, folder: {tmp_path}}}\n", "/lifecycle")
    assert found(process, HEAVY) <= {"pyarrow", "_hashlib", "_ssl", "email"}
