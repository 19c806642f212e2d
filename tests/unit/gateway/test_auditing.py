"""Audit records of sessions whose client and broker are the test itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from amqpgate.bridge import interpreter_for
from amqpgate.policy import load_folder
from amqpgate.protocol.frames import encode_frame
from amqpgate.protocol.methods import Side
from amqpgate.records import Sort
from amqpgate.wire.dialects import LEGACY_CLIENT, RABBITMQ_0_9_1
from amqpgate.wire.generated import v0_8
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.support.audit import Record, records, setting, sums
from tests.support.inprocess import eventually
from tests.support.talker import Talker

from .conftest import SETTINGS, Stage
from .test_bridging import Opens, opens

__all__ = ["opens"]

MakeStage = Callable[..., Stage]


@pytest.fixture
def audited(make_stage: MakeStage, tmp_path: Path) -> Callable[..., Stage]:
    def make(**options: object) -> Stage:
        return make_stage(text=SETTINGS + setting(tmp_path / "audit", 3600), **options)

    return make


def told(stage: Stage, folder: Path, sort: Sort, **columns: object) -> list[Record]:
    """What was written until the end, which this brings about."""
    stage.running.stop()
    found = records(folder / "audit", sort)
    return [one for one in found if all(one[name] == value for name, value in columns.items())]


def test_what_passes_is_counted_by_where_it_goes(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited()
    client, broker = stage.opened()
    for key, body in (("a", b"123"), ("b", b""), ("a", b"x" * 70_000)):
        client.publish(body, key, exchange="x")
        assert broker.expect_content(amqp.BasicPublish).body == body
    client.say(amqp.BasicConsume(queue="q", consumer_tag="c"), 1)
    broker.expect(amqp.BasicConsume, 1)
    broker.say(amqp.BasicConsumeOk("c"), 1)
    client.expect(amqp.BasicConsumeOk, 1)
    for tag in range(1, 4):
        broker.content(amqp.BasicDeliver("c", tag, False, "x", "a"), b"12345")
        client.expect_content(amqp.BasicDeliver)
    for queue in ("empty", "r"):
        client.say(amqp.BasicGet(queue=queue), 1)
        broker.expect(amqp.BasicGet, 1)
    broker.say(amqp.BasicGetEmpty(), 1)
    client.expect(amqp.BasicGetEmpty, 1)
    broker.content(amqp.BasicGetOk(9, False, "x", "b", 0), b"1234")
    client.expect_content(amqp.BasicGetOk)
    broker.content(amqp.BasicReturn(312, "NO_ROUTE", "x", "b"), b"12")
    client.expect_content(amqp.BasicReturn)
    usage = told(stage, tmp_path, "usage", user="guest", vhost="/", listener="main")
    assert sums(usage, "operation", "exchange", "routing_key", "queue", "verdict") == {
        ("connection.open", None, None, None, "allow"): (1, 0),
        ("channel.open", None, None, None, "allow"): (1, 0),
        ("basic.publish", "x", "a", None, "allow"): (2, 70_003),
        ("basic.publish", "x", "b", None, "allow"): (1, 0),
        ("basic.consume", None, None, "q", "allow"): (1, 0),
        ("basic.get", None, None, "empty", "allow"): (1, 0),
        ("basic.get", None, None, "r", "allow"): (1, 0),
        ("basic.deliver", "x", "a", "q", None): (3, 15),
        ("basic.get-ok", "x", "b", "r", None): (1, 4),
        ("basic.return", "x", "b", None, None): (1, 2),
    }
    events = records(tmp_path / "audit", "events")
    assert [one["kind"] for one in events] == ["policies", "session.open", "topology", "session.close"]
    assert events[1]["session"] == events[3]["session"] == usage[0]["session"]
    assert events[3]["outcome"] == "drained"
    assert json.loads(str(events[2]["detail"]))["consumer_tag"] == "c"


ACCESS = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: access}
spec:
  subjects: [{user: guest}]
  onDeny: {publish: %s}
  rules:
  - {id: small, effect: allow, operations: [basic.publish], exchange: x, properties: {maxBodyBytes: 10}}
  - {id: any, effect: allow, operations: [basic.publish], exchange: x, routingKey: big}
  - id: medium
    effect: allow
    operations: [basic.publish]
    exchange: x
    routingKey: a
    properties: {maxBodyBytes: 20, headers: {deny: [h]}}
  - {id: queues, effect: allow, operations: ["queue.*", basic.consume], queue: {prefix: ""}}
  - {id: bind, effect: allow, operations: [queue.bind], queue: {prefix: ""}, exchange: x}
"""
AUDIT = """
---
apiVersion: amqpgate.io/v1alpha1
kind: AuditPolicy
metadata: {name: audit}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: quiet, operations: [basic.publish], routingKey: quiet, level: none}
  - {id: heads, operations: [basic.publish], routingKey: heads, level: headers, redact: {headers: [secret]}}
  - id: whole
    operations: [basic.publish]
    level: body
    maxBodyBytes: 8
    redact: {bodyPatterns: [{regex: "[0-9]+", replacement: "#"}]}
"""


def confirming(client: Talker, broker: Talker) -> None:
    client.say(amqp.ConfirmSelect(), 1)
    broker.expect(amqp.ConfirmSelect, 1)
    broker.say(amqp.ConfirmSelectOk(), 1)
    client.expect(amqp.ConfirmSelectOk, 1)


PUBLISHED = ("exchange", "routing_key", "verdict", "policy", "rule")


@pytest.mark.parametrize("how", ["nack", "return", "drop"])
def test_each_refusal_is_an_event_and_counted_apart(audited: MakeStage, tmp_path: Path, how: str) -> None:
    stage = audited(policies=ACCESS % how)
    client, broker = stage.opened()
    confirming(client, broker)
    sent = [("x", "a", 3), ("x", "a", 21), ("y", "a", 5), ("x", "big", 99), ("x", "a", 14), ("x", "a", 22)]
    for exchange, key, size in sent:
        client.publish(b"b" * size, key, exchange=exchange)
    for size in (3, 99, 14):
        assert len(broker.expect_content(amqp.BasicPublish).body) == size
    for _ in range(3):
        if how == "return":
            client.expect_content(amqp.BasicReturn)
        client.expect(amqp.BasicAck if how == "drop" else amqp.BasicNack, 1)
    usage = told(stage, tmp_path, "usage", operation="basic.publish")
    assert sums(usage, *PUBLISHED) == {
        # The rule that the first message was allowed by does not allow the other one.
        ("x", "a", "allow", "access", "small"): (1, 3),
        ("x", "a", "allow", "access", "medium"): (1, 14),
        ("x", "big", "allow", "access", "any"): (1, 99),
        ("x", "a", "deny", None, "default"): (2, 43),
        # It was refused at its method.
        ("y", "a", "deny", None, "default"): (1, 0),
    }
    denied = [one for one in records(tmp_path / "audit", "events") if one["kind"] == "denied"]
    assert sorted((one["exchange"], one["body_size"]) for one in denied) == [
        ("x", 21),
        ("x", 22),
        ("y", None),
    ]
    assert {one["policy_digest"] for one in denied} == {one["policy_digest"] for one in usage} != {""}
    assert all(str(one["reason"]).startswith("access to ") for one in denied)


def test_a_refusal_that_closes_the_channel_says_so(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited(policies=ACCESS % "channel-close")
    client, broker = stage.opened(channels=2)
    client.publish(b"b" * 21, "a", exchange="x", channel=1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    assert client.expect(amqp.ChannelClose, 1).reply_code == 403
    client.say(amqp.BasicGet(queue="q"), 2)
    broker.expect(amqp.ChannelClose, 2)
    events = [one for one in told(stage, tmp_path, "events") if one["kind"] == "denied"]
    assert [(one["operation"], one["queue"], one["reply_code"]) for one in events] == [
        ("basic.publish", None, 403),
        ("basic.get", "q", 403),
    ]
    usage = [one for one in records(tmp_path / "audit", "usage") if one["verdict"] == "deny"]
    assert sums(usage, "operation", "queue") == {("basic.publish", None): (1, 21), ("basic.get", "q"): (1, 0)}


def test_other_policies_begin_other_rows(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited(policies=ACCESS % "nack")
    client, broker = stage.opened()
    folder = tmp_path / "policies"
    first = load_folder(folder)

    def publish() -> None:
        client.publish(b"b" * 20, "big", exchange="x")
        broker.expect_content(amqp.BasicPublish)

    publish()
    publish()
    (folder / "policy.yaml").write_text((ACCESS % "nack").replace("id: any", "id: large"))
    second = load_folder(folder)
    stage.running.call(lambda: stage.running.gateway.use(second))
    publish()
    publish()
    usage = told(stage, tmp_path, "usage", operation="basic.publish")
    assert sums(usage, "rule", "policy_digest") == {
        ("any", first.digest): (2, 40),
        ("large", second.digest): (2, 40),
    }


def test_an_audit_policy_says_how_much(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited(policies=(ACCESS % "nack").replace("maxBodyBytes: 10", "maxBodyBytes: 1Mi") + AUDIT)
    client, broker = stage.opened(channels=2)
    heads = amqp.BasicProperties(message_id="m", headers=Table.of({"secret": "s", "h": 1}))
    big = b"ab1234567890" + b"x" * 200_000
    for key, body, channel in (("quiet", b"1", 1), ("heads", b"12", 1), ("w", big, 2), ("w", b"", 1)):
        client.publish(body, key, exchange="x", properties=heads, channel=channel)
        assert broker.expect_content(amqp.BasicPublish, channel).body == body
    events = told(stage, tmp_path, "events", kind="message")
    told_of = [
        (one["audit_rule"], one["routing_key"], one["body_size"], one["body"], one["body_cut"])
        for one in events
    ]
    assert told_of == [
        ("heads", "heads", 2, None, False),
        ("whole", "w", len(big), b"ab#", True),
        ("whole", "w", 0, b"", False),
    ]
    assert json.loads(str(events[0]["headers"])) == {"secret": "[redacted]", "h": 1}
    assert json.loads(str(events[0]["properties"])) == {"message_id": "m"}
    usage = [one for one in records(tmp_path / "audit", "usage") if one["operation"] == "basic.publish"]
    assert sums(usage, "routing_key") == {("heads",): (1, 2), ("w",): (2, len(big))}


def test_nobody_hears_of_what_is_silent(audited: MakeStage, tmp_path: Path) -> None:
    audit = AUDIT.replace("operations: [basic.publish], routingKey: quiet", 'operations: ["*"]')
    stage = audited(policies=ACCESS % "nack" + audit)
    client, broker = stage.opened()
    confirming(client, broker)
    client.publish(b"1", "a", exchange="y")
    client.expect(amqp.BasicNack, 1)
    client.say(amqp.QueueDeclare(queue="q"), 1)
    broker.expect(amqp.QueueDeclare, 1)
    broker.say(amqp.QueueDeclareOk("q", 0, 0), 1)
    client.expect(amqp.QueueDeclareOk, 1)
    assert told(stage, tmp_path, "usage") == []
    kinds = [one["kind"] for one in records(tmp_path / "audit", "events")]
    assert kinds == ["policies", "session.open", "session.close"]


def test_the_topology_is_told_when_the_broker_says_so(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited()
    client, broker = stage.opened()
    declares = [
        amqp.QueueDeclare(passive=True, queue="there"),
        amqp.QueueDeclare(exclusive=True),
        amqp.QueueDeclare(queue="mine", durable=True, arguments=Table.of({"x-max-length": 5})),
    ]
    for declare in declares:
        client.say(declare, 1)
        broker.expect(amqp.QueueDeclare, 1)
    for name in ("there", "amq.gen-1", "mine"):
        broker.say(amqp.QueueDeclareOk(name, 0, 0), 1)
        client.expect(amqp.QueueDeclareOk, 1)
    client.say(amqp.QueueBind(queue="", exchange="x", routing_key="k", no_wait=True), 1)
    broker.expect(amqp.QueueBind, 1)
    for queue, tag in (("mine", "one"), ("mine", "two")):
        client.say(amqp.BasicConsume(queue=queue, consumer_tag=tag), 1)
        broker.expect(amqp.BasicConsume, 1)
        broker.say(amqp.BasicConsumeOk(tag), 1)
        client.expect(amqp.BasicConsumeOk, 1)
    broker.say(amqp.BasicCancel("two", True), 1)
    client.expect(amqp.BasicCancel, 1)
    client.say(amqp.BasicCancel("one"), 1)
    broker.expect(amqp.BasicCancel, 1)
    broker.say(amqp.BasicCancelOk("one"), 1)
    client.expect(amqp.BasicCancelOk, 1)
    # The broker does not answer this one: there is none.
    client.say(amqp.ExchangeDelete(exchange="gone"), 1)
    broker.expect(amqp.ExchangeDelete, 1)
    events = told(stage, tmp_path, "events", kind="topology")
    assert [(one["operation"], one["queue"], one["exchange"]) for one in events] == [
        ("queue.declare", "amq.gen-1", None),
        ("queue.declare", "mine", None),
        ("queue.bind", "mine", "x"),
        ("basic.consume", "mine", None),
        ("basic.consume", "mine", None),
        ("basic.cancel", "mine", None),
        ("basic.cancel", "mine", None),
    ]
    assert events[1]["arguments"] == '{"x-max-length":5}'
    assert json.loads(str(events[1]["detail"])) == {"durable": True, "exclusive": False, "auto_delete": False}
    assert [json.loads(str(one["detail"])).get("by") for one in events[-2:]] == ["broker", None]


def test_consumer_tags_are_a_channels(audited: MakeStage, tmp_path: Path) -> None:
    """The same tag on two channels, and again on one for another queue."""
    stage = audited()
    client, broker = stage.opened(channels=2)

    def consume(channel: int, queue: str) -> None:
        client.say(amqp.BasicConsume(queue=queue, consumer_tag="c"), channel)
        broker.expect(amqp.BasicConsume, channel)
        broker.say(amqp.BasicConsumeOk("c"), channel)
        client.expect(amqp.BasicConsumeOk, channel)

    def deliver(channel: int, body: bytes) -> None:
        broker.content(amqp.BasicDeliver("c", 1, False, "x", "k"), body, channel=channel)
        client.expect_content(amqp.BasicDeliver, channel)

    consume(1, "one")
    consume(2, "two")
    deliver(1, b"1")
    deliver(2, b"22")
    client.say(amqp.BasicCancel("c"), 1)
    broker.expect(amqp.BasicCancel, 1)
    broker.say(amqp.BasicCancelOk("c"), 1)
    client.expect(amqp.BasicCancelOk, 1)
    consume(1, "three")
    deliver(1, b"333")
    usage = told(stage, tmp_path, "usage", operation="basic.deliver")
    assert sums(usage, "queue") == {("one",): (1, 1), ("two",): (1, 2), ("three",): (1, 3)}


def test_who_causes_an_event_waits_while_the_log_is_full(make_stage: MakeStage, tmp_path: Path) -> None:
    folder, away = tmp_path / "audit", tmp_path / "away"
    text = SETTINGS + setting(folder, 3600, maxQueue="64Ki")
    stage = make_stage(text=text, policies=ACCESS % "nack")
    client, broker = stage.opened()
    other, its_broker = stage.opened()
    other.publish(b"1", "big", exchange="x")
    its_broker.expect_content(amqp.BasicPublish)
    confirming(client, broker)
    folder.rename(away)
    folder.write_text("in the way")
    auditing = stage.running.gateway.auditing
    assert auditing is not None
    log = auditing.log
    for _ in range(400):
        client.publish(b"1", "a", exchange="y")
    eventually(lambda: not stage.running.call(lambda: log.has_room))
    late = stage.client()
    late.octets(amqp.PROTOCOL_HEADER)
    eventually(lambda: stage.running.call(lambda: auditing._room.statistics().tasks_waiting) == 1)
    # What needs no decision goes on.
    other.publish(b"2", "big", exchange="x")
    assert its_broker.expect_content(amqp.BasicPublish).body == b"2"
    assert stage.running.call(lambda: log.counts()).queued_octets < 80 << 10
    folder.unlink()
    away.rename(folder)
    for _ in range(400):
        client.expect(amqp.BasicNack, 1)
    stage.broker().greet()
    late.expect(amqp.ConnectionStart)
    late.close()
    denied = told(stage, tmp_path, "events", kind="denied")
    assert len(denied) == len({one["record_id"] for one in denied}) == 400
    assert log.counts().waits
    assert log.counts().dropped == (0, 0)


NAMES = """
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: names}
spec:
  subjects: [{user: guest}]
  names: {both: {prefix: "a."}}
"""


def test_names_are_those_of_the_client(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited(policies=NAMES)
    client, broker = stage.opened()
    client.publish(b"12", "k", exchange="x")
    assert broker.expect_content(amqp.BasicPublish).method.exchange == "a.x"
    client.say(amqp.QueueDeclare(queue="q"), 1)
    broker.expect(amqp.QueueDeclare, 1)
    broker.say(amqp.QueueDeclareOk("a.q", 0, 0), 1)
    client.expect(amqp.QueueDeclareOk, 1)
    client.say(amqp.BasicConsume(queue="q", consumer_tag="c"), 1)
    broker.expect(amqp.BasicConsume, 1)
    for method in (
        amqp.BasicDeliver("c", 1, False, "a.x", "k"),
        amqp.BasicDeliver("c", 2, False, "", "a.q"),
        amqp.BasicReturn(312, "NO_ROUTE", "a.x", "k"),
    ):
        broker.content(method, b"123")
        client.expect_content(type(method))
    client.publish(b"1", "k", exchange="a.x\n")
    broker.expect(amqp.ChannelClose, 1)
    usage = told(stage, tmp_path, "usage")
    assert sums((one for one in usage if one["messages"]), *PUBLISHED[:3], "operation", "queue") == {
        ("x", "k", "allow", "basic.publish", None): (1, 2),
        ("x", "k", None, "basic.deliver", "q"): (1, 3),
        ("", "q", None, "basic.deliver", "q"): (1, 3),
        ("x", "k", None, "basic.return", None): (1, 3),
        ("a.x\n", "k", "deny", "basic.publish", None): (1, 0),
    }
    events = records(tmp_path / "audit", "events")
    assert [one["queue"] for one in events if one["kind"] == "topology"] == ["q"]
    assert [one["reply_code"] for one in events if one["kind"] == "denied"] == [403]


def test_what_a_transform_refuses_at_its_header_has_not_passed(audited: MakeStage, tmp_path: Path) -> None:
    limit = NAMES.replace('names: {both: {prefix: "a."}}', "ceilings: {maxBodyBytes: 5}")
    stage = audited(policies=limit)
    client, broker = stage.opened()
    client.publish(b"12", "k", exchange="x")
    broker.expect_content(amqp.BasicPublish)
    client.publish(b"123456", "k", exchange="x")
    broker.expect(amqp.ChannelClose, 1)
    usage = told(stage, tmp_path, "usage", operation="basic.publish")
    assert sums(usage, "verdict") == {("allow",): (1, 2), ("deny",): (1, 0)}


RATES = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: few}
spec:
  mode: %s
  subjects: [{user: guest}]
  limits: [{id: one, per: [user], messages: 1/m, burst: 60s, action: reject}]
"""


@pytest.mark.parametrize("mode", ["enforce", "shadow"])
def test_what_limits_do_is_told_once_a_window_with_how_often(
    audited: MakeStage, tmp_path: Path, mode: str
) -> None:
    stage = audited(policies=RATES % mode)
    client, broker = stage.opened()
    confirming(client, broker)
    for _ in range(3):
        client.publish(b"1", "a")
    for _ in range(1 if mode == "enforce" else 3):
        broker.expect_content(amqp.BasicPublish)
    for _ in range(2 if mode == "enforce" else 0):
        client.expect(amqp.BasicNack, 1)
    usage = told(stage, tmp_path, "usage", operation="basic.publish")
    passed = {("allow", None, "default"): (1 if mode == "enforce" else 3,) * 2}
    refused = {("deny", "few", "one"): (2, 2)} if mode == "enforce" else {}
    assert sums(usage, "verdict", "policy", "rule") == passed | refused
    [event] = [one for one in records(tmp_path / "audit", "events") if one["kind"] == "throttled"]
    detail = json.loads(str(event["detail"]))
    del detail["last"]
    enforced = mode == "enforce"
    assert detail == {"limit": "few/one", "happened": "refused", "enforced": enforced, "times": 2}
    assert event["session"] == usage[0]["session"]


def test_what_a_policy_in_mode_shadow_would_refuse_is_told(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited(policies=(ACCESS % "nack").replace("  subjects", "  mode: shadow\n  subjects"))
    client, broker = stage.opened()
    for size in (1, 21, 22):
        client.publish(b"b" * size, "a", exchange="x")
        broker.expect_content(amqp.BasicPublish)
    events = [one for one in told(stage, tmp_path, "events", exchange="x") if one["kind"] == "shadow"]
    assert [(one["verdict"], one["rule"]) for one in events] == [("deny", "default")] * 2
    usage = records(tmp_path / "audit", "usage")
    assert sums(usage, "operation", "verdict")["basic.publish", "allow"] == (3, 44)


CLOSED = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: closed}
spec:
  subjects: [{user: guest}]
  rules: [{id: nobody, effect: deny, operations: [connection.open]}]
"""


def test_a_connection_that_is_refused_is_told_of(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited(policies=CLOSED)
    client, broker = stage.greeted()
    client.say(amqp.ConnectionStartOk(Table.of({"product": "p"}), "PLAIN", b"\0guest\0guest", "en_US"))
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(2047, 131072, 0))
    client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(2047, 131072, 0))
    client.say(amqp.ConnectionOpen("/"))
    assert client.expect(amqp.ConnectionClose).reply_code == 530
    client.say(amqp.ConnectionCloseOk())
    client.close()
    broker.close()
    stage.running.wait_idle()
    [event] = told(stage, tmp_path, "events", kind="denied")
    said = ("operation", "rule", "reply_code", "user", "vhost", "source", "client")
    assert [event[name] for name in said] == [
        "connection.open",
        "nobody",
        530,
        "guest",
        "/",
        "127.0.0.1",
        '{"product":"p"}',
    ]
    usage = records(tmp_path / "audit", "usage")
    assert sums(usage, "operation", "verdict", "session") == {
        ("connection.open", "deny", event["session"]): (1, 0)
    }


def test_old_clients_are_audited_in_the_words_of_the_house(
    audited: MakeStage, tmp_path: Path, opens: Opens
) -> None:
    stage = audited()
    client, broker = opens(stage, LEGACY_CLIENT, RABBITMQ_0_9_1)
    words = interpreter_for(LEGACY_CLIENT)

    def passes(question: Method, answer: Method) -> None:
        client.octets(encode_frame(1, 1, words.from_house(question)))
        broker.expect(type(question), 1)
        broker.say(answer, 1)
        assert words.to_house(client.frame().payload, Side.SERVER) == answer

    passes(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk("q", 0, 0))
    passes(amqp.BasicConsume(queue="q", consumer_tag="c"), amqp.BasicConsumeOk("c"))
    passes(amqp.BasicGet(queue="q"), amqp.BasicGetEmpty())
    for headers, size in ((None, 4), (Table.of({"h": 1}), 70_000)):
        properties = v0_8.BasicProperties(headers=headers)
        client.content(v0_8.BasicPublish(exchange="x", routing_key="k"), b"b" * size, properties=properties)
        assert len(broker.expect_content(amqp.BasicPublish).body) == size
        told_so = amqp.BasicProperties(headers=headers)
        broker.content(amqp.BasicDeliver("c", 1, False, "x", "k"), b"d" * size, properties=told_so)
        assert len(client.expect_content(v0_8.BasicDeliver).body) == size
    usage = told(stage, tmp_path, "usage")
    assert sums(
        (one for one in usage if one["messages"]), "operation", "exchange", "routing_key", "queue"
    ) == {
        ("basic.publish", "x", "k", None): (2, 70_004),
        ("basic.deliver", "x", "k", "q"): (2, 70_004),
    }
    events = [one for one in records(tmp_path / "audit", "events") if one["kind"] == "topology"]
    assert [(one["operation"], one["queue"]) for one in events] == [
        ("queue.declare", "q"),
        ("basic.consume", "q"),
    ]
