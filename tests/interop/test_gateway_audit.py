"""Audit records of real traffic: their sums are what passed, whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.audit import Record, records, setting, sums
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbit, url: "amqp://{address}"{more}}}]
policies: {policies}
watchPolicies: false
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 2s}}
"""
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: %s}
spec:
  subjects: [{user: guest}]
  onDeny: {publish: nack}
  rules:
  - {id: exchanges, effect: allow, operations: ["exchange.*"], exchange: {prefix: ""}}
  - {id: queues, effect: allow, operations: ["queue.*", basic.consume, basic.get], queue: {prefix: ""}}
  - {id: small, effect: allow, operations: [basic.publish], properties: {maxBodyBytes: 1000}}
  - {id: secret, effect: deny, operations: [basic.publish], routingKey: {topic: "secret.#"}}
"""
KEYS = 3000

Made = Callable[..., Gateway]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "audit"


@pytest.fixture
def make(rabbitmq: RabbitMQ, tmp_path: Path, folder: Path) -> Iterator[Made]:
    running: list[Gateway] = []
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "policy.yaml").write_text(POLICY % "first")

    def made(more: str = "", **audit: object) -> Gateway:
        rabbitmq.fresh_vhost("audited")
        text = CONFIG.format(address=rabbitmq.address, policies=tmp_path / "policies", more=more)
        gateway = Gateway(config=text + setting(folder, 1, **audit))
        gateway.start()
        running.append(gateway)
        return gateway

    yield made
    for gateway in running:
        if gateway._child is not None:
            gateway.stop()


def connect(gateway: Gateway) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(gateway.url + "audited"))


def of(usage: list[Record], operation: str, *columns: str) -> dict[tuple[object, ...], tuple[int, int]]:
    return sums((one for one in usage if one["operation"] == operation), *columns)


def digests(gateway: Gateway) -> str:
    return gateway.get("/readyz")[1]


def reload(gateway: Gateway) -> None:
    """Read the policies again, which are other ones."""
    before = digests(gateway)
    gateway.child.signal(signal.SIGHUP)
    eventually(lambda: digests(gateway) != before)


@pytest.mark.parametrize(
    "more", ["", ", connections: pooled", ", connections: pooled, pool: {consumers: shared}"]
)
def test_sums_are_what_passed(make: Made, folder: Path, tmp_path: Path, more: str) -> None:
    """Publishes, deliveries, gets, returns and refusals, with other policies in the middle."""
    gateway = make(more)
    connection = connect(gateway)
    channel = connection.channel()
    channel.exchange_declare("t", "topic")
    channel.queue_declare("all")
    channel.queue_bind("all", "t", "order.#")
    channel.queue_declare("pulled")
    channel.queue_bind("pulled", "t", "pulled")
    channel.confirm_delivery()
    delivered: Counter[str] = Counter()
    byte_count: Counter[str] = Counter()

    def take(_channel: object, method: pika.spec.Basic.Deliver, _properties: object, body: bytes) -> None:
        delivered[method.routing_key] += 1
        byte_count[method.routing_key] += len(body)

    consuming = connect(gateway)
    consumer = consuming.channel()
    consumer.basic_consume("all", take, auto_ack=True)

    sent: Counter[str] = Counter()
    size: Counter[str] = Counter()
    nacked = returned = 0
    for number in range(600):
        if number == 300:
            (tmp_path / "policies" / "policy.yaml").write_text(POLICY % "second")
            reload(gateway)
        key = ("order.a", "order.b", "pulled", "secret.x", "nowhere")[number % 5]
        body = b"x" * (number % 7)
        if number % 11 == 0:
            body = b"x" * 2000
        try:
            channel.basic_publish("t", key, body, mandatory=True)
        except pika.exceptions.NackError:
            nacked += 1
            continue
        except pika.exceptions.UnroutableError:
            returned += 1
        sent[key] += 1
        size[key] += len(body)
    got = 0
    while (answer := channel.basic_get("pulled", auto_ack=True))[0] is not None:
        got += len(answer[2])
    while sum(delivered.values()) < sent["order.a"] + sent["order.b"]:
        consuming.process_data_events(1)
    consuming.close()
    connection.close()
    ended = gateway.stop()
    assert ended.code == 0
    assert "Traceback" not in ended.log

    usage = records(folder, "usage")
    assert len({one["record_id"] for one in usage}) == len(usage)
    assert {one["user"] for one in usage} == {"guest"}
    assert {one["vhost"] for one in usage} == {"audited"}
    passed = of(usage, "basic.publish", "verdict", "exchange", "routing_key")
    assert {key[2]: count for key, count in passed.items() if key[0] == "allow"} == {
        key: (sent[key], size[key]) for key in sent
    }
    assert sum(count for key, (count, _) in passed.items() if key[0] == "deny") == nacked
    assert of(usage, "basic.deliver", "queue", "routing_key") == {
        ("all", key): (delivered[key], byte_count[key]) for key in delivered
    }
    assert delivered["order.a"] == sent["order.a"]
    assert of(usage, "basic.get-ok", "queue", "routing_key") == {("pulled", "pulled"): (sent["pulled"], got)}
    assert of(usage, "basic.return", "routing_key") == {("nowhere",): (sent["nowhere"], size["nowhere"])}
    assert returned == sent["nowhere"]
    assert of(usage, "basic.get", "queue") == {("pulled",): (sent["pulled"] + 1, 0)}
    policies = {one["policy"] for one in usage if one["rule"] == "small"}
    assert policies == {"first", "second"}
    assert len({one["policy_digest"] for one in usage}) == 2

    events = records(folder, "events")
    kinds = Counter(one["kind"] for one in events)
    assert (kinds["session.open"], kinds["session.close"], kinds["denied"]) == (2, 2, nacked)
    assert {one["outcome"] for one in events if one["kind"] == "session.close"} == {"closed"}
    assert [(one["outcome"], one["policy_digest"] != "") for one in events if one["kind"] == "policies"] == [
        ("done", True)
    ] * 2
    assert [json.loads(str(one["detail"])) for one in events if one["kind"] == "admin"] == [
        {"action": "reload", "by": "signal", "result": "done"}
    ]
    made = [(one["operation"], one["exchange"], one["queue"]) for one in events if one["kind"] == "topology"]
    assert sorted(made, key=str) == sorted(
        [
            ("exchange.declare", "t", None),
            ("queue.declare", None, "all"),
            ("queue.declare", None, "pulled"),
            ("queue.bind", "t", "all"),
            ("queue.bind", "t", "pulled"),
            ("basic.consume", None, "all"),
            # So pika does at the end.
            ("basic.cancel", None, "all"),
        ],
        key=str,
    )


def test_more_keys_than_are_kept_one_by_one(make: Made, folder: Path) -> None:
    gateway = make()
    connection = connect(gateway)
    channel = connection.channel()
    channel.queue_declare("q")
    channel.exchange_declare("t", "topic")
    channel.queue_bind("q", "t", "#")
    for number in range(KEYS):
        channel.basic_publish("t", f"order.{number}.created", b"12")
    seen = sum(1 for _ in zip(range(KEYS), channel.consume("q", auto_ack=True), strict=False))
    connection.close()
    gateway.stop()
    assert seen == KEYS
    usage = [one for one in records(folder, "usage") if one["messages"]]
    for operation, queue in (("basic.publish", None), ("basic.deliver", "q")):
        mine = [one for one in usage if one["operation"] == operation]
        assert sums(mine, "exchange", "queue") == {("t", queue): (KEYS, 2 * KEYS)}
        folded = {one["routing_key"] for one in mine if one["routing_key_is_template"]}
        assert folded == {"order.*.created"}
        exact = of([one for one in mine if not one["routing_key_is_template"]], operation, "routing_key")
        assert set(exact.values()) <= {(1, 2)}
    assert len({(one["operation"], one["routing_key"]) for one in usage}) <= 1024 + 2


def test_a_crash_loses_no_more_than_what_was_not_read_out(make: Made, folder: Path) -> None:
    gateway = make()
    connection = connect(gateway)
    channel = connection.channel()
    channel.queue_declare("q")
    channel.confirm_delivery()

    def written() -> int:
        return of(records(folder, "usage"), "basic.publish", "routing_key").get(("q",), (0, 0))[0]

    for _ in range(500):
        channel.basic_publish("", "q", b"1")
    eventually(lambda: written() == 500)
    for _ in range(300):
        channel.basic_publish("", "q", b"1")
    gateway.kill()
    with contextlib.suppress(pika.exceptions.AMQPError):
        connection.close()
    again = make()
    again.stop()
    usage = records(folder, "usage")
    assert len({one["record_id"] for one in usage}) == len(usage)
    assert 500 <= written() <= 800


def test_policies_that_are_wrong_and_who_goes_without_a_word(
    make: Made, folder: Path, tmp_path: Path
) -> None:
    gateway = make()
    client = Talker.dial(gateway.port)
    client.open(vhost="audited")
    (tmp_path / "policies" / "policy.yaml").write_text("kind: Nonsense")
    gateway.child.signal(signal.SIGHUP)
    eventually(lambda: "policy.yaml" in digests(gateway))
    client.reset()
    eventually(lambda: any(one["kind"] == "session.close" for one in records(folder, "events")))
    gateway.stop()
    events = records(folder, "events")
    [wrong] = [one for one in events if one["kind"] == "policies" and one["outcome"] == "refused"]
    assert wrong["reason"]
    [close] = [one for one in events if one["kind"] == "session.close"]
    assert close["outcome"] == "client_gone"


def test_who_causes_events_waits_for_a_disk_that_is_gone(make: Made, folder: Path, tmp_path: Path) -> None:
    """More than fits the queue: nothing is lost, and whoever waited goes on when there is room."""
    denied = 1000
    gateway = make(maxQueue="64Ki")
    folder.rename(tmp_path / "away")
    folder.write_text("in the way")
    client = Talker.dial(gateway.port)
    client.open(vhost="audited")
    client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
    for _ in range(denied):
        client.publish(b"1", "secret.x", exchange="amq.topic")
    # So many fit; the log says by then that it cannot be written.
    for _ in range(20):
        client.expect(amqp.BasicNack, 1)
    eventually(lambda: "audit" in gateway.child.output())
    folder.unlink()
    (tmp_path / "away").rename(folder)
    for _ in range(denied - 20):
        client.expect(amqp.BasicNack, 1)
    client.bye()
    client.close()
    assert gateway.stop().code == 0
    events = [one for one in records(folder, "events") if one["kind"] == "denied"]
    assert len(events) == len({one["record_id"] for one in events}) == denied
