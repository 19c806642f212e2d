"""The doctor: what it tries, what it says of each, and what helps."""

from __future__ import annotations

import errno
import gc
import json
import os
import resource
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from click.testing import CliRunner, Result

from amqpgate.cli import doctor_machine, main
from amqpgate.config import parse
from amqpgate.yamldoc import FolderPath
from tests.support.embedded import embedded_broker
from tests.support.oidc import AUDIENCE, oidc_provider
from tests.support.otlp import Collector
from tests.support.ports import free_port
from tests.support.raw_answers import http as answer
from tests.support.raw_answers import saying
from tests.support.redis import RedisServer

#: coredis leaves streams to the garbage collector where a connection breaks.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What coredis leaves is gone before another test runs, which takes the warning for an error."""
    yield
    gc.collect()


SETTINGS = "listeners: [{name: a, bind: '127.0.0.1:0'}]\nupstreams: [{name: b, host: b}]\n"


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


def test_who_speaks_no_amqp_is_shown_as_he_begins(tmp_path: Path) -> None:
    with saying(b"SSH-2.0-OpenSSH_9.2\x1b[31m\xff\r\n" + b"x" * 100) as address:
        _, found = looked(settings_of(tmp_path, f"amqp://{address}"))
    one = found[f"upstream rabbit {address}: broker"]
    begin = r"SSH-2.0-OpenSSH_9.2\x1b[31m\xff\r\nxxxxxxxxxxxxx"
    assert (one["state"], one["text"]) == ("bad", f"it speaks no AMQP: it begins with '{begin}'")
    assert "5672 is AMQP" in one["remedy"]


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


def test_issuers_of_tokens_are_asked_for_their_keys(tmp_path: Path) -> None:
    """Once each, and only those whose tokens a listener takes."""
    with embedded_broker() as (host, port), oidc_provider(tmp_path) as issuer:
        url = f"amqp://{host}:{port}"
        oauth = {"issuer": issuer.issuer, "audience": [AUDIENCE]}
        what = f"issuer {issuer.issuer}"
        listeners = [{"name": name, "bind": f"127.0.0.1:{free_port()}"} for name in ("a", "b")]
        done, found = looked(settings_of(tmp_path, url, listeners=listeners, identity={"oauth": oauth}))
        assert done.exit_code == 0, done.output
        assert [one for one in found if one.startswith("issuer")] == [what]
        assert found[what]["text"].startswith("keys for signatures: 1")
        other = oauth | {"jwks": f"{issuer.issuer}/none"}
        done, found = looked(settings_of(tmp_path, url, identity={"oauth": other}))
        assert done.exit_code == 1
        assert found[what]["text"] == f"{issuer.issuer}/none: answers with status 404"
        assert "identity.oauth: jwks" in found[what]["remedy"]
        issuer.stop()
        done, found = looked(settings_of(tmp_path, url, identity={"oauth": oauth}))
        assert found[what]["state"] == "bad"
        other = oauth | {"jwksFile": str(tmp_path / "keys.json")}
        (tmp_path / "keys.json").write_text("{}")
        done, found = looked(settings_of(tmp_path, url, identity={"oauth": other}))
        assert "jwksFile" in found[what]["remedy"]


def test_who_takes_metrics_and_log_lines_is_asked(tmp_path: Path) -> None:
    with embedded_broker() as (host, port), Collector() as collector:
        otlp = {"metrics": collector.of("metrics"), "logs": f"http://127.0.0.1:{free_port()}/v1/logs"}
        done, found = looked(settings_of(tmp_path, f"amqp://{host}:{port}", otlp=otlp))
        # Without a collector the gateway serves.
        assert done.exit_code == 0, done.output
        assert found[f"metrics {otlp['metrics']}"]["state"] == "ok"
        assert found[f"logs {otlp['logs']}"]["state"] == "note"
        assert len(collector.requests) == 1


_NOT_OTLP = {
    "a broker": (b"AMQP\0\0\x09\x01", "no HTTP is spoken there: it says 'AMQP\\x00\\x00\\t\\x01'"),
    "a terminal's": (b"\x1b[2J\r\n", "no HTTP is spoken there: it says '\\x1b[2J'"),
    "headers": (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200, "got more than 100 headers"),
}


@pytest.mark.parametrize("peer", _NOT_OTLP)
def test_a_collector_that_speaks_no_http_is_told_and_what_comes_after_it(tmp_path: Path, peer: str) -> None:
    said, told = _NOT_OTLP[peer]
    with embedded_broker() as (host, port), saying(said, hangs_up=True) as address:
        url = f"http://{address}"
        path = settings_of(
            tmp_path, f"amqp://{host}:{port}", tracing={"endpoint": url}, otlp={"metrics": url, "logs": url}
        )
        done, found = looked(path)
    assert done.exit_code == 1, done.output
    traces, *others = (found[f"{name} {url}"] for name in ("traces", "metrics", "logs"))
    assert (traces["state"], traces["text"]) == ("bad", told)
    assert traces["remedy"] == (
        "correct tracing.endpoint: OTLP over HTTP is port 4318, with /v1/traces; 4317 is gRPC"
    )
    assert [(one["state"], one["text"]) for one in others] == [("note", told)] * 2
    assert "port 4318, with /v1/logs" in others[1]["remedy"]


def test_a_collector_that_wants_a_login_or_another_path(tmp_path: Path) -> None:
    for status, remedy in ((401, "tracing.headersFile has its login"), (404, "correct tracing.endpoint")):
        with (
            embedded_broker() as (host, port),
            saying(answer(b"", status=b"%d No" % status)) as address,
        ):
            url = f"http://{address}/v1/traces"
            _, found = looked(settings_of(tmp_path, f"amqp://{host}:{port}", tracing={"endpoint": url}))
        one = found[f"traces {url}"]
        assert (one["state"], one["text"], one["remedy"]) == ("bad", f"HTTP {status} No", remedy)


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
    # So few that the first crowd stands before the door.
    monkeypatch.setattr(resource, "getrlimit", lambda _: (128, 128))
    found = doctor_machine._descriptors(parse(SETTINGS, {}))
    assert (found.state, found.text) == ("bad", "128 at most; 10000 connections take 20064")


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


@contextmanager
def secured(leaf: trustme.LeafCert) -> Iterator[int]:
    """A port that makes TLS handshakes, and says no more."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    leaf.configure_cert(context)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    raw, _ = listening.accept()
                except OSError:
                    return
                with raw, suppress(OSError), context.wrap_socket(raw, server_side=True) as tls:
                    tls.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


PAST = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("names", "expires", "is_known", "text", "remedy"),
    [
        (["127.0.0.1"], PAST, True, "certificate has expired", "renew the broker's certificate"),
        (["rabbit.mq"], None, True, "IP address mismatch", "say in tls.serverName a name"),
        (["127.0.0.1"], None, False, "unable to get local issuer", "name the authority that signed it"),
    ],
    ids=["expired", "name", "authority"],
)
def test_a_certificate_that_is_not_trusted_is_told_once_with_what_helps(
    tmp_path: Path, names: list[str], expires: datetime | None, is_known: bool, text: str, remedy: str
) -> None:
    ca, other = trustme.CA(), trustme.CA()
    (ca if is_known else other).cert_pem.write_to_path(tmp_path / "ca.pem")
    with secured(ca.issue_cert(*names, not_after=expires)) as port:
        path = settings_of(tmp_path, f"amqps://127.0.0.1:{port}")
        settings = yaml.safe_load(path.read_text())
        settings["upstreams"][0]["tls"] = {"ca": str(tmp_path / "ca.pem")}
        path.write_text(yaml.safe_dump(settings))
        done, found = looked(path)
    assert done.exit_code == 1
    (told,) = (finding for finding in found.values() if finding["state"] == "bad")
    assert told["what"].endswith(": TLS")
    assert text in told["text"]
    assert told["remedy"].startswith(remedy)


def test_tls_where_there_is_none_and_none_where_there_is(tmp_path: Path) -> None:
    with embedded_broker() as (host, port):
        _, found = looked(settings_of(tmp_path, f"amqps://{host}:{port}"))
    told = found[f"upstream rabbit {host}:{port}: TLS"]
    assert (told["text"], told["remedy"]) == (
        "it does not speak TLS there",
        "correct the port, or write amqp://",
    )
    with secured(trustme.CA().issue_cert("127.0.0.1")) as port:
        _, found = looked(settings_of(tmp_path, f"amqp://127.0.0.1:{port}"))
    assert found[f"upstream rabbit 127.0.0.1:{port}: broker"]["remedy"].endswith("; amqps:// for TLS")
    _, found = looked(settings_of(tmp_path, f"amqps://127.0.0.1:{free_port()}"))
    (told,) = (finding for finding in found.values() if finding["state"] == "bad")
    assert (told["text"], told["remedy"]) == (
        "Connection refused",
        "start the broker, or correct the upstream's url",
    )


def test_a_full_folder_and_one_that_is_somebody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, remedy in ((errno.ENOSPC, "make room there"), (errno.EACCES, "let the gateway's user write")):

        def fails(_file: int, number: int = number) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", fails)
        (told,) = doctor_machine._folder("audit", FolderPath(tmp_path))
        assert told.state == "bad"
        assert os.strerror(number) in told.text
        assert told.remedy.startswith(remedy)
