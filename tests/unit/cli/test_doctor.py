"""The doctor: what it tries, what it says of each, and what helps."""

from __future__ import annotations

import gc
import json
import resource
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from amqpgate.cli import doctor_machine, main
from tests.support.embedded import embedded_broker
from tests.support.otlp import Collector
from tests.support.ports import free_port
from tests.support.redis import RedisServer

#: coredis leaves streams to the garbage collector where a connection breaks.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What coredis leaves is gone before another test runs, which takes the warning for an error."""
    yield
    gc.collect()


def settings_of(folder: Path, url: str, **more: object) -> Path:
    path = folder / "amqpgate.yaml"
    settings: Mapping[str, object] = {
        "listeners": [{"name": "clients", "bind": f"127.0.0.1:{free_port()}"}],
        "upstreams": [{"name": "rabbit", "url": url}],
        **more,
    }
    path.write_text(yaml.safe_dump(settings))
    return path


def looked(path: Path) -> tuple[Result, dict[str, dict[str, Any]]]:
    done = CliRunner().invoke(main, ["doctor", "--config", str(path), "--json"])
    return done, {finding["what"]: finding for finding in json.loads(done.output)}


def test_all_is_well_before_a_broker_with_its_login(tmp_path: Path) -> None:
    with embedded_broker() as (host, port):
        done, found = looked(settings_of(tmp_path, f"amqp://guest:guest@{host}:{port}"))
    assert done.exit_code == 0
    what = f"upstream rabbit {host}:{port}"
    assert found[f"{what}: broker"]["text"].startswith("amqpgate embedded broker")
    assert found[f"{what}: login"]["text"] == "user 'guest' is let in"
    assert {finding["state"] for finding in found.values()} <= {"ok", "note"}


def test_a_login_that_is_wrong_is_in_the_way_and_not_shown(tmp_path: Path) -> None:
    with embedded_broker() as (host, port):
        done, found = looked(settings_of(tmp_path, f"amqp://guest:hunter2@{host}:{port}"))
    assert done.exit_code == 1
    assert found[f"upstream rabbit {host}:{port}: login"]["state"] == "bad"
    assert "hunter2" not in done.output


def test_whom_nobody_answers_is_told_with_a_remedy(tmp_path: Path) -> None:
    redis = {"redis": f"redis://127.0.0.1:{free_port()}", "replicas": 1}
    tracing = {"endpoint": f"http://127.0.0.1:{free_port()}/v1/traces"}
    path = settings_of(
        tmp_path, f"amqp://127.0.0.1:{free_port()}", sharedLimits=redis, tracing=tracing, admin={}
    )
    done, found = looked(path)
    assert done.exit_code == 1
    states = {what.partition(" ")[0]: finding["state"] for what, finding in found.items()}
    # Without a collector the gateway serves; without its Redis and its broker it does not do what it is for.
    assert (states["redis"], states["traces"]) == ("bad", "note")
    assert [
        what for what, finding in found.items() if finding["state"] != "ok" and not finding["remedy"]
    ] == []
    text = CliRunner().invoke(main, ["doctor", "--config", str(path)]).output
    assert "2 in the way" in text
    assert "Connection refused" in text


def test_a_name_that_nobody_knows(tmp_path: Path) -> None:
    _, found = looked(settings_of(tmp_path, "amqp://rabbit.invalid"))
    assert found["upstream rabbit rabbit.invalid:5672: name"]["state"] == "bad"
    assert "upstream rabbit rabbit.invalid:5672: broker" not in found


def test_redis_and_the_collector_are_asked(tmp_path: Path) -> None:
    server = RedisServer()
    server.start()
    try:
        with embedded_broker() as (host, port), Collector() as collector:
            shared = {"redis": f"redis://127.0.0.1:{server.port}", "replicas": 1, "password": server.password}
            tracing = {"endpoint": collector.endpoint}
            path = settings_of(tmp_path, f"amqp://{host}:{port}", sharedLimits=shared, tracing=tracing)
            done, found = looked(path)
            assert done.exit_code == 0, done.output
            assert [what.partition(" ")[0] for what in found if what.startswith(("redis", "traces"))] == [
                "redis",
                "traces",
            ]
            shared["password"] = "wrong"
            done, _ = looked(settings_of(tmp_path, f"amqp://{host}:{port}", sharedLimits=shared))
            assert done.exit_code == 1
    finally:
        server.destroy()


def test_who_takes_metrics_and_log_lines_is_asked(tmp_path: Path) -> None:
    with embedded_broker() as (host, port), Collector() as collector:
        otlp = {"metrics": collector.of("metrics"), "logs": f"http://127.0.0.1:{free_port()}/v1/logs"}
        done, found = looked(settings_of(tmp_path, f"amqp://{host}:{port}", otlp=otlp))
        # Without a collector the gateway serves.
        assert done.exit_code == 0, done.output
        assert found[f"metrics {otlp['metrics']}"]["state"] == "ok"
        assert found[f"logs {otlp['logs']}"]["state"] == "note"
        assert len(collector.requests) == 1


def test_a_port_that_is_taken_may_be_the_gateways_own(tmp_path: Path) -> None:
    with embedded_broker() as (host, port):
        path = settings_of(tmp_path, f"amqp://{host}:{port}")
        path.write_text(path.read_text().replace("bind: 127.0.0.1:", f"bind: 127.0.0.1:{port} #"))
        done, found = looked(path)
    assert done.exit_code == 0
    assert found[f"listener clients 127.0.0.1:{port}"]["state"] == "note"


@pytest.mark.parametrize(("days", "state"), [(-1, "bad"), (1, "note"), (29, "note"), (31, "ok")], ids=str)
def test_how_long_a_certificate_is_good(days: int, state: str) -> None:
    found = doctor_machine.lasting("a", time.time() + days * 86400 + 60, "renew it")
    assert found.state == state


def test_limits_of_the_system_are_held_beside_those_of_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1024))
    with embedded_broker() as (host, port):
        _, few = looked(settings_of(tmp_path, f"amqp://{host}:{port}", limits={"maxConnections": 480}))
        _, many = looked(settings_of(tmp_path, f"amqp://{host}:{port}", limits={"maxConnections": 481}))
    assert (few["open files"]["state"], many["open files"]["state"]) == ("ok", "note")
    assert "LimitNOFILE=1026" in many["open files"]["remedy"]


def test_settings_that_are_wrong_are_told_as_by_check(tmp_path: Path) -> None:
    path = settings_of(tmp_path, "amqp://127.0.0.1", limit={})
    done = CliRunner().invoke(main, ["doctor", "--config", str(path)])
    assert done.exit_code == 2
    assert "amqpgate.yaml:" in done.output


def test_who_gets_audit_records_is_asked(tmp_path: Path) -> None:
    with embedded_broker() as (host, port), Collector() as collector:
        broker, closed = f"amqp://{host}:{port}", f"http://127.0.0.1:{free_port()}"
        audit = {
            "otlp": {"url": collector.of("logs")},
            "openSearch": {"url": closed, "whenFull": "drop", "user": "u", "password": "hunter2"},
            "amqp": {"url": f"amqp://guest:guest@{host}:{port}", "exchange": "amq.topic"},
        }
        done, found = looked(settings_of(tmp_path, broker, audit=audit))
        audit["amqp"]["exchange"] = "none"
        audit["openSearch"]["url"] = collector.endpoint.removesuffix("/v1/traces")
        _, others = looked(settings_of(tmp_path, broker, audit=audit))
    assert done.exit_code != 0
    states = {name: one for name, one in found.items() if name.startswith("audit.")}
    otlp, search, amqp = states.values()
    assert otlp["text"].startswith("takes log records")
    assert search["state"] == "bad"
    assert "in the end records are dropped" in search["remedy"]
    assert amqp["text"].startswith("lets the gateway in, and has the exchange")
    (no_exchange,) = [one for name, one in others.items() if name.startswith("audit.amqp")]
    assert "no exchange 'none'" in no_exchange["text"]
    assert "in the end clients that cause events wait" in no_exchange["remedy"]
    assert not collector.logs
    assert "hunter2" not in done.output
