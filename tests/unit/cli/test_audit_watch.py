"""Alerts as a person follows them: to a web hook, an exchange, a table and files, over a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pika
import pyarrow.parquet as pq
import pytest

from amqpgate.pipeline.lake.address import address_of
from amqpgate.pipeline.lake.opening import open_lake
from tests.support.audit_records import event, table_of, write
from tests.support.embedded import embedded_broker

HOUR = timedelta(hours=1)


class Hook:
    """A server that refuses the first request, and keeps what came."""

    def __init__(self) -> None:
        self.refuse = 1
        self.got: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.came = threading.Event()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if hook.refuse:
                    hook.refuse -= 1
                    self.send_error(503)
                    return
                hook.got += body
                hook.headers.append(dict(self.headers))
                self.send_response(204)
                self.end_headers()
                hook.came.set()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/alerts"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    made.thread.start()
    yield made
    made.server.shutdown()
    made.thread.join()
    made.server.server_close()


def follow(*words: object, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "amqpgate", "audit", *map(str, words), "--every", "0.1"]
    return subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.timeout(300)
def test_denials_go_to_all_who_want_them(tmp_path: Path, hook: Hook) -> None:
    raw, state, out = tmp_path / "raw", tmp_path / "state", tmp_path / "out"
    then = datetime.now(UTC) - 2 * HOUR
    given = {"user": "alice", "vhost": "/", "operation": "basic.publish", "exchange": "x"}
    write(raw, "events", table_of("events", [event("e", "denied", then, **given)]))
    with embedded_broker() as (host, port):
        connection = pika.BlockingConnection(pika.ConnectionParameters(host, port))
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, "amq.topic", "denied.#")
        words = ("denials", raw, "--follow", "--state", state, "--late", 0, "--output", out)
        words += ("--since", (then - HOUR).isoformat(), "--webhook", hook.url)
        words += ("--publish", f"amqp://guest@{host}:{port}/%2f", "--to", f"delta:{tmp_path}/table")
        process = follow(*words, AMQPGATE_PUBLISH_PASSWORD="guest", AMQPGATE_WEBHOOK_TOKEN="a-token")
        try:
            assert hook.came.wait(240)
            method, properties, body = None, None, b""
            while method is None:
                method, properties, body = channel.basic_get(queue, auto_ack=True)
            process.kill()
            _, said = process.communicate()
        finally:
            process.kill()
        connection.close()
        (event_,) = hook.got
        assert "the web hook answers 503; trying again in 1 s" in said
        assert hook.headers[0]["Authorization"] == "Bearer a-token"
        assert hook.headers[0]["Content-Type"] == "application/cloudevents-batch+json"
        assert (event_["type"], event_["data"]["user"], event_["data"]["value"]) == (
            "io.amqpgate.audit.denied",
            "alice",
            1,
        )
        assert json.loads(body) == event_
        assert properties is not None
        assert (properties.message_id, properties.delivery_mode) == (event_["id"], 2)
        assert method.routing_key == "denied./"
        # Whoever goes on tells what is new; then a signal ends it quietly.
        given["user"] = "bob"
        write(raw, "events", table_of("events", [event("f", "denied", then, **given)]), gateway="other")
        hook.came.clear()
        process = follow(*words, AMQPGATE_PUBLISH_PASSWORD="guest")
        while not any(one["data"]["user"] == "bob" for one in hook.got):
            assert hook.came.wait(240)
            hook.came.clear()
        while "bob" not in "".join(path.read_text() for path in out.iterdir()):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate()
        assert (process.returncode, said) == (0, "")
    told = {one["id"]: one for one in hook.got}
    assert sorted(one["data"]["user"] for one in told.values()) == ["alice", "bob"]
    lines = [json.loads(line) for path in out.iterdir() for line in path.read_text().splitlines()]
    assert sorted(lines, key=str) == sorted(told.values(), key=str)
    address = address_of(f"delta:{tmp_path}/table")
    assert address is not None
    table = open_lake(address).load("denials_alerts")
    assert table is not None
    ids = [id_ for file in table.files() for id_ in pq.read_table(table.open(file.path))["id"].to_pylist()]
    assert sorted(ids) == sorted(told)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--follow needs --state DIR"),
        (("--state", "STATE", "--master", "local"), "alerts are made without Spark"),
        (("--state", "STATE", "--webhook", "ftp://x"), "--webhook takes http:// and https:// only"),
        (("--state", "STATE", "--webhook", "https://me:secret@x/"), "no password in a URL"),
        (("--state", "STATE", "--publish", "amqp://me:secret@x/"), "no password in a URL"),
        (("--state", "STATE", "--publish", "http://x"), "--publish: expected amqp://"),
        (("--state", "STATE", "--to", "/srv/x"), "--to /srv/x is no table"),
    ],
)
def test_what_makes_no_sense_is_told(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    from click.testing import CliRunner

    from amqpgate.cli import main
    from amqpgate.pipeline import frames

    (tmp_path / "raw").mkdir()
    given = [word.replace("STATE", str(tmp_path / "state")) for word in words]
    done = CliRunner().invoke(main, ["audit", "denials", str(tmp_path / "raw"), "--follow", *given])
    assert done.exit_code == 2, done.output
    assert said in done.stderr
    assert "secret" not in done.output + done.stderr
    assert frames.current() == "spark"
