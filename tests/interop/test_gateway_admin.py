"""The admin interface of a gateway that works: what it says of sessions, policies and events is so."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from tests.support.audit import records, setting
from tests.support.gateway import Gateway, watched
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ

pytestmark = pytest.mark.interop


POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: orders}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: publish, effect: allow, operations: [basic.publish], exchange: {literal: ""}}
  - {id: queues, effect: allow, operations: ["queue.*", basic.consume, basic.get]}
  - {id: no-fanout, effect: deny, operations: [basic.publish], exchange: {literal: amq.fanout}}
---
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: tighter}
spec:
  subjects: [{user: guest}]
  mode: shadow
  rules:
  - {id: not-there, effect: deny, operations: [queue.purge]}
"""


class Window:
    """The admin interface."""

    def __init__(self, gateway: Gateway, workers: int = 1, audit: Path = Path()) -> None:
        self.gateway, self.workers, self.audit = gateway, workers, audit

    def ask(
        self, path: str, method: str = "GET", body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Status, and what the JSON says, or the text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.admin_port, timeout=10)
        try:
            sent = {} if headers is None else dict(headers)
            if body is not None:
                sent["Content-Type"] = "application/json"
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            text = answer.read().decode()
            kind = answer.getheader("content-type", "")
            return answer.status, json.loads(text) if kind == "application/json" else text
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        status, told = self.ask(path)
        assert status == 200, told
        return told

    def sessions(self, query: str = "") -> list[dict[str, Any]]:
        return self.get(f"/sessions{query}")["sessions"]


class Events:
    """An open event stream."""

    def __init__(self, window: Window, query: str = "") -> None:
        self.socket = socket.create_connection(("127.0.0.1", window.gateway.admin_port), timeout=10)
        self.socket.sendall(f"GET /events{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self._file = self.socket.makefile("rb")
        while self._line() != ": here":
            pass

    def _line(self) -> str | None:
        line = self._file.readline()
        return line.decode().strip() if line else None

    def next(self, name: str) -> dict[str, Any]:
        """The next event of that name."""
        while (line := self._line()) is not None:
            if line == f"event: {name}":
                data = self._line()
                assert data is not None
                return json.loads(data.removeprefix("data: "))
        raise EOFError(name)

    def close(self) -> None:
        self._file.close()
        self.socket.close()


def connect(gateway: Gateway, name: str = "orders-service") -> pika.BlockingConnection:
    parameters = pika.URLParameters(gateway.url)
    parameters.client_properties = {"connection_name": name}
    return pika.BlockingConnection(parameters)


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "two workers"])
def window(
    request: pytest.FixtureRequest, rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Window]:
    folder = tmp_path_factory.mktemp("policies")
    (folder / "orders.yaml").write_text(POLICY)
    audit = tmp_path_factory.mktemp("audit")
    gateway = watched(rabbitmq.address, folder, workers=request.param, more=setting(audit, 3600))
    gateway.start()
    it = Window(gateway, request.param, audit)
    eventually(lambda: it.ask("/readyz")[1].startswith("ready\npolicies: digest"))
    yield it
    if gateway._child is not None:
        assert gateway.stop().code == 0


def test_a_session_in_the_list_and_alone(window: Window) -> None:
    with connect(window.gateway, "one") as client, connect(window.gateway, "two") as other:
        channel = client.channel()
        channel.confirm_delivery()
        queue = channel.queue_declare("", exclusive=True).method.queue
        second = client.channel(7)
        second.basic_consume(queue, lambda *_: None, auto_ack=True, consumer_tag="mine")
        for _ in range(3):
            channel.basic_publish("", queue, b"12345")
        client.process_data_events(0.2)
        assert {row["name"] for row in window.sessions()} >= {"one", "two"}
        (row,) = window.sessions("?name=one")
        address = "{}:{}".format(*client._impl._transport._sock.getsockname())
        expected = {
            "user": "guest",
            "vhost": "/",
            "client": address,
            "listener": "main",
            "product": "Pika Python Client Library",
            "tls": False,
            "version": "0-9-1",
            "upstream_version": "0-9-1",
            "upstream": "rabbit",
            "route": None,
            "pooled": False,
            "channels": 2,
            "consumers": 1,
            "unacked": 0,
            "flow": "running",
            "published": 3,
            "published_bytes": 15,
            "delivered": 3,
            "delivered_bytes": 15,
            "refused": 0,
        }
        assert {name: row[name] for name in expected} == expected
        assert row["endpoint"].startswith("127.0.0.1:")
        detail = window.get(f"/sessions/{row['id']}")
        assert {name: detail[name] for name in expected} == expected
        assert detail["worker"] == row["worker"]
        assert detail["policies"] == ["orders"]
        assert detail["shadow_policies"] == ["tighter"]
        assert detail["client_properties"]["connection_name"] == "one"
        assert detail["frame_max"] == {"client": 131072, "upstream": 131072}
        first, seventh = detail["open_channels"]
        assert (first["number"], first["upstream_number"], first["state"]) == (1, 1, "open")
        assert (first["published"], first["confirms"], first["consumers"]) == (3, True, [])
        assert (seventh["number"], seventh["delivered"], seventh["confirms"]) == (7, 3, False)
        assert seventh["consumers"] == [{"tag": "mine", "queue": queue, "no_ack": True}]
        (flow,) = detail["flows"]["publish"]
        assert flow == {"exchange": "", "routing_key": queue, "messages": 3, "bytes": 15}
        assert (other.is_open, window.ask("/sessions/none")[0]) == (True, 404)
    eventually(lambda: window.get("/sessions")["total"] == 0)


def test_choosing_sorting_and_leafing_through(window: Window) -> None:
    clients = [connect(window.gateway, f"app-{number}") for number in range(7)]
    try:
        for number, client in enumerate(clients):
            channel = client.channel()
            for _ in range(number):
                channel.basic_publish("", "nowhere", b"x")
            # An answer, so that all of it has passed.
            channel.queue_declare("", exclusive=True)
        page = window.get("/sessions?name=app-*&sort=-published&limit=3&offset=2")
        assert (page["total"], page["matched"], page["offset"], page["limit"]) == (7, 7, 2, 3)
        assert [row["published"] for row in page["sessions"]] == [4, 3, 2]
        ids = [row["id"] for row in window.sessions()]
        assert (len(ids), ids) == (7, sorted(ids))
        assert window.get("/sessions?user=nobody")["matched"] == 0
        assert window.get("/sessions?user=gue*&flow=running&version=0-9-1")["matched"] == 7
        assert len(window.sessions("?limit=1&offset=6")) == 1
        for query in (
            "limit=0",
            "limit=1001",
            "limit=x",
            "offset=-1",
            "sort=none",
            "sort=--id",
            "colour=red",
        ):
            assert window.ask(f"/sessions?{query}")[0] == 400, query
        for query, words in {
            "sort=-publishd": "sort: no such column: 'publishd' (did you mean 'published'?); there are id,",
            "usr=a": "no such parameter: 'usr' (did you mean 'user'?); there are user, vhost,",
            "flow=waiting": "flow: no such one: 'waiting'; there are running, throttled,",
            "version=0-91": "version: no such one: '0-91' (did you mean '0-9-1'?); there are 0-10, ",
        }.items():
            status, answer = window.ask(f"/sessions?{query}")
            assert (status, words in str(answer)) == (400, True), answer
    finally:
        for client in clients:
            client.close()
    eventually(lambda: window.get("/sessions")["total"] == 0)


def test_rates_are_the_difference_of_two_looks(window: Window) -> None:
    with connect(window.gateway, "rated") as client:
        channel = client.channel()
        eventually(lambda: window.sessions("?name=rated")[0]["published_rate"] == 0.0)
        began = time.monotonic()
        for _ in range(100):
            channel.basic_publish("", "nowhere", b"1234567890")
        channel.queue_declare("", exclusive=True)

        def rates() -> tuple[float, float]:
            (row,) = window.sessions("?name=rated")
            return row["published_rate"], row["published_bytes_rate"]

        eventually(lambda: rates()[0] > 0)
        messages, byte_count = rates()
        assert messages <= 100
        assert messages >= 100 / (time.monotonic() - began + 30)
        assert byte_count == pytest.approx(10 * messages, abs=0.02)


def test_an_operator_closes_a_session(window: Window) -> None:
    client = connect(window.gateway, "unloved")
    (row,) = window.sessions("?name=unloved")
    events = Events(window, "?only=session.closed")
    path = f"/sessions/{row['id']}/close"
    # No page in a browser of this machine can do it.
    assert window.ask(path, "POST")[0] == 403
    assert window.ask(path, "POST", {}, {"Origin": "http://evil.example"})[0] == 403
    assert window.ask(path, "POST", {}, {"Host": "evil.example:80"})[0] == 421
    for wrong in ("a\nb", "x" * 201, "\ud800", 1, None):
        assert window.ask(path, "POST", {"reason": wrong})[0] == 400, wrong
    assert window.ask(path, "POST", {"now": "yes"})[0] == 400
    assert window.ask(path, "POST", {"colour": "red"})[0] == 400
    assert window.ask(path)[0] == 405
    assert client.is_open
    assert window.ask(path, "POST", {"reason": "moved house"}) == (202, {"closing": row["id"]})
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        client.process_data_events(10)
    assert (closed.value.reply_code, closed.value.reply_text) == (320, "CONNECTION_FORCED - moved house")
    told = events.next("session.closed")
    assert (told["session"], told["why"], told["user"]) == (row["id"], "forced", "guest")
    events.close()
    assert window.ask(path, "POST", {}) == (404, "there is no session of that id\n")


def test_a_close_and_a_tap_are_told_with_who_asked(window: Window) -> None:
    client = connect(window.gateway, "audited")
    (row,) = window.sessions("?name=audited")
    tap = "/tap?match=exchange%3Daudited&seconds=0.1"
    status, lines = window.ask(tap, headers={"X-Amqpgate": "1"})
    assert (status, lines.count('"event":"end"')) == (200, 1)
    path = f"/sessions/{row['id']}/close"
    assert window.ask(path, "POST", {"reason": "audited"}, {"Origin": "http://evil.example"})[0] == 403
    assert window.ask(path, "POST", {"reason": "audited"})[0] == 202
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker):
        client.process_data_events(10)

    def told() -> list[dict[str, str]]:
        found = [one for one in records(window.audit, "events") if one["kind"] == "admin"]
        details = [json.loads(str(one["detail"])) for one in found]
        return [one for one in details if "audited" in str(one)]

    # Each worker taps, and one has the session.
    eventually(lambda: len(told()) == 2 * window.workers + 1)
    who = {"by": "anyone", "address": "127.0.0.1"}
    (close,) = [one for one in told() if one["action"] == "close"]
    assert close == {"action": "close", "session": row["id"], "reason": "audited", "how": "drain", **who}
    for action in ("tap", "untap"):
        taps = [one for one in told() if one["action"] == action]
        assert len(taps) == window.workers
        for one in taps:
            assert one.items() >= {"match": "exchange = audited", **who}.items()


def test_decisions_and_hits(window: Window) -> None:
    before = {rule["id"]: rule["hits"] for rule in window.get("/policies")["policies"][0]["rules"]}
    events = Events(window)
    with connect(window.gateway, "denied") as client:
        session = events.next("session.opened")["session"]
        queue = client.channel().queue_declare("", exclusive=True).method.queue
        client.channel().queue_purge(queue)
        channel = client.channel()
        for _ in range(20):
            channel.basic_publish("", "nowhere", b"x")
        channel.basic_publish("amq.fanout", "k", b"x")
        denied = events.next("decision")
        while denied["kind"] != "denied":
            denied = events.next("decision")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            channel.queue_declare("", exclusive=True)
    expected = {
        "kind": "denied",
        "session": session,
        "user": "guest",
        "vhost": "/",
        "client": "127.0.0.1",
        "operation": "basic.publish",
        "exchange": "amq.fanout",
        "policy": "orders",
        "rule": "no-fanout",
        "effect": "deny",
    }
    assert {name: denied[name] for name in expected} == expected
    (kept, *_) = window.get("/decisions?kind=denied")["decisions"]
    assert kept == denied
    (shadow, *_) = window.get("/decisions?kind=shadow")["decisions"]
    assert (shadow["policy"], shadow["rule"], shadow["operation"]) == ("tighter", "not-there", "queue.purge")
    assert [one["at"] for one in window.get("/decisions?limit=2")["decisions"]] == sorted(
        (denied["at"], shadow["at"]), reverse=True
    )
    assert window.ask("/decisions?kind=none")[0] == 400
    told = window.get("/policies")
    orders, tighter = told["policies"]
    assert (told["status"], len(told["digest"]), orders["kind"]) == ("done", 64, "AccessPolicy")
    assert (tighter["name"], tighter["mode"]) == ("tighter", "shadow")
    hits = {rule["id"]: rule["hits"] - before[rule["id"]] for rule in orders["rules"]}
    # One decision for all publishes with the same arguments; declare and purge, one each.
    assert hits == {"publish": 1, "queues": 2, "no-fanout": 1}
    assert all(rule["last_hit"] >= told["since"] for rule in orders["rules"])
    assert [(one["policy"], one["rule"], one["effect"]) for one in told["shadow"]] == [
        ("tighter", "not-there", "deny")
    ]
    events.close()


def test_upstreams_config_and_the_log_level(window: Window) -> None:
    with connect(window.gateway):
        (upstream,) = window.get("/upstreams")["upstreams"]
    assert (upstream["name"], upstream["sessions"], upstream["checked"]) == ("rabbit", 1, False)
    assert {one["up"] for one in upstream["endpoints"]} == {True}
    config = window.get("/config")["config"]
    assert (config["listeners"][0]["name"], config["limits"]["drainTimeout"]) == ("main", 1.0)
    assert window.get("/log-level") == {"level": "info"}
    assert window.ask("/log-level", "POST", {"level": "debug"}) == (200, {"level": "debug"})
    assert window.get("/log-level") == {"level": "debug"}
    assert window.ask("/log-level", "POST", {"level": "loud"})[0] == 400
    assert window.ask("/log-level", "POST", {"level": "info"})[0] == 200
    assert window.get("/startupz") == "started\n"


def test_the_interface_keeps_to_its_document(window: Window) -> None:
    """Schemathesis asks all that the document allows, and more, for some seconds."""
    if window.workers > 1:
        # It asks the same.
        return
    import schemathesis
    from hypothesis import HealthCheck, Phase, settings
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{window.gateway.admin_port}/openapi.json")
    seen = set()
    with connect(window.gateway):
        for result in schema.get_all_operations():
            operation = result.ok()
            if operation.path in ("/events", "/tap", "/drain"):
                # Two do not end, and the third ends the gateway.
                continue
            seen.add((operation.method.upper(), operation.path))

            # Of each operation a few, the same ones each time: there are many operations.
            @settings(
                max_examples=5,
                phases=[Phase.generate],
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            )
            @schema_test(operation)
            def ask(case: Any) -> None:
                # What a request for an operation may have, the document does not say.
                left_out = [positive_data_acceptance] if case.operation.path == "/explain" else []
                case.call_and_validate(headers={"X-Amqpgate": "1"}, excluded_checks=left_out)

            ask()
    assert {("GET", "/sessions"), ("POST", "/sessions/{id}/close"), ("GET", "/metrics")} <= seen


def schema_test(operation: Any) -> Any:
    """The test function as a Hypothesis test of one operation."""
    from hypothesis import given

    return given(case=operation.as_strategy())


def test_a_session_that_shares_a_link(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").write_text(POLICY)
    gateway = watched(rabbitmq.address, tmp_path, upstream="connections: pooled")
    gateway.start()
    window = Window(gateway)
    with connect(gateway, "one"), connect(gateway, "two") as client:
        assert [(row["pooled"], row["endpoint"]) for row in window.sessions("?name=two")] == [(True, None)]
        channel = client.channel(5)
        channel.confirm_delivery()
        for _ in range(3):
            channel.basic_publish("", "nowhere", b"x")
        (row,) = window.sessions("?name=two")
        assert (row["pooled"], row["channels"], row["published"]) == (True, 1, 3)
        assert row["endpoint"] == rabbitmq.address
        detail = window.get(f"/sessions/{row['id']}")
        (told,) = detail["open_channels"]
        (pool,) = window.get("/pools")["pools"]
        (seat,) = (one["channels"] for one in pool["sessions"] if one["session"] == row["id"])
        assert (told["number"], told["upstream_number"]) == (5, seat["5"])
        assert detail["link"] == pool["links"][0]["link"]
        assert detail["silent"].keys() == {"client"}
    assert gateway.stop().code == 0


def test_who_listens_does_not_delay_the_end(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    for workers in (1, 2):
        (tmp_path / "orders.yaml").write_text(POLICY)
        gateway = watched(rabbitmq.address, tmp_path, workers=workers)
        gateway.start()
        window = Window(gateway)
        events, gone = Events(window), Events(window)
        # One that does not take what it is told, and one that has left.
        gone.close()
        assert gateway.stop().code == 0
        assert events.next("end") == {}
        events.close()


KINDS = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: rates}
spec:
  subjects: [{user: guest}]
  limits:
  - {id: slow, per: [connection], messages: 5000/s, burst: 0.001s}
  - {id: channels, channels: 100/s, burst: 1s, action: reject}
---
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: routes}
spec:
  routes:
  - {id: main, upstream: {cluster: rabbit}}
---
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: transforms}
spec:
  subjects: [{user: guest}]
  arguments:
  - {id: lazy, operations: [queue.declare], force: {x-queue-mode: lazy}}
---
apiVersion: amqpgate.io/v1alpha1
kind: AuditPolicy
metadata: {name: records}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: all, operations: [basic.publish, "queue.*"], level: metadata}
---
apiVersion: amqpgate.io/v1alpha1
kind: CompatibilityPolicy
metadata: {name: old}
spec: {subjects: [{user: guest}], as: rabbitmq-3.13}
"""


def test_rules_of_every_kind_tell_what_they_did(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    (tmp_path / "audit").mkdir()
    (folder / "all.yaml").write_text(f"{POLICY}---{KINDS}")
    gateway = watched(
        rabbitmq.address, folder, admin=f"}}\naudit: {{format: parquet, folder: {tmp_path / 'audit'}"
    )
    gateway.start()
    try:
        window = Window(gateway)
        told = rules_of(window)
        assert {rule["hits"] for rule in told.values()} == {0}
        with connect(gateway) as client:
            channel = client.channel()
            queue = channel.queue_declare("", exclusive=False, durable=False).method.queue
            channel.confirm_delivery()
            for _ in range(200):
                channel.basic_publish("", queue, b"x")
            told = rules_of(window)
            # One decision for all of them, which have passed by that.
            assert (told["orders/publish"]["hits"], told["orders/publish"]["messages"]) == (1, 200)
            assert (told["records/all"]["hits"], told["records/all"]["messages"]) == (2, 200)
            assert (told["routes/main"]["hits"], told["routes/main"]["messages"]) == (1, 200)
            assert (told["transforms/lazy"]["hits"], told["transforms/lazy"]["messages"]) == (1, 0)
            assert told["rates/slow"]["messages"] == 200
            assert (told["rates/channels"]["hits"], told["rates/channels"]["messages"]) == (0, 0)
            assert told["old/transient-queue"]["hits"] == 1
            last = told["orders/publish"]["last_hit"]
            channel.basic_publish("", queue, b"x")
            assert rules_of(window)["orders/publish"]["last_hit"] > last
            channel.queue_delete(queue)
        # What a session has passed stays when it is over, and is told once.
        eventually(lambda: not window.sessions())
        for _ in range(2):
            told = rules_of(window)
            assert (told["orders/publish"]["messages"], told["routes/main"]["messages"]) == (201, 201)
        assert all(rule["line"] for name, rule in told.items() if not name.startswith("old/"))
    finally:
        gateway.stop()


def rules_of(window: Window) -> dict[str, dict[str, Any]]:
    return {
        f"{policy['name']}/{rule['id']}": rule
        for policy in window.get("/policies")["policies"]
        for rule in policy["rules"]
    }
