"""Events of audit records, of sessions whose client and broker are the test itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.audit import records, setting, sums
from tests.support.inprocess import eventually
from tests.unit.gateway.audited import ACCESS, MakeStage, audited, confirming, told
from tests.unit.gateway.conftest import SETTINGS
from tests.unit.gateway.guarded import refused
from tests.unit.gateway.tapped import upcalls
from tests.unit.policy.kinds.test_compatibility import document

__all__ = ["audited"]

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


def test_the_metrics_tell_what_was_written(audited: MakeStage) -> None:
    stage = audited()
    stage.opened()

    def text() -> str:
        return stage.running.ask(stage.running.gateway.metrics_text).decode()

    # The policies in force, and the session.
    eventually(lambda: 'amqpgate_audit_records_total{sort="events"} 2.0' in text())
    assert "amqpgate_audit_queue 0.0" in text()


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


def test_what_is_recorded_of_messages_is_captured_on_the_data_path(
    audited: MakeStage, tmp_path: Path
) -> None:
    stage = audited(policies=(ACCESS % "nack").replace("maxBodyBytes: 10", "maxBodyBytes: 1Mi") + AUDIT)
    client, broker = stage.opened()
    bodies = [b"ab1", b"", b"ab12345678901234567890"] * 20
    content = amqp.BasicProperties(message_id="m", headers=Table.of({"secret": "s"}))

    def pass_on() -> None:
        for body in bodies:
            client.publish(body, "w", exchange="x", properties=content)
            assert broker.expect_content(amqp.BasicPublish).body == body

    pass_on()
    before = upcalls(stage)
    pass_on()
    # Bytes may come in any pieces, but nothing of it is ever shown.
    assert upcalls(stage) == before
    events = told(stage, tmp_path, "events", kind="message")
    assert [(one["body"], one["body_size"], one["body_cut"]) for one in events] == [
        (b"ab#" if body else b"", len(body), len(body) > 8) for body in bodies * 2
    ]
    assert {one["properties"] for one in events} == {'{"message_id":"m"}'}
    assert {one["verdict"] for one in events} == {"allow"}
    usage = [one for one in records(tmp_path / "audit", "usage") if one["operation"] == "basic.publish"]
    assert sums(usage, "routing_key") == {("w",): (len(bodies) * 2, sum(map(len, bodies)) * 2)}


ALL = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: all}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: publish, effect: allow, operations: [basic.publish], exchange: x, routingKey: {topic: "a.#"}}
"""


@pytest.mark.parametrize("policies", ["", AUDIT, ALL, ALL + AUDIT], ids=["none", "audit", "access", "both"])
def test_further_routing_keys_are_recorded_without_upcalls_for_others(
    audited: MakeStage, tmp_path: Path, policies: str
) -> None:
    stage = audited(policies=policies)
    client, broker = stage.opened()
    plain = amqp.BasicProperties(headers=Table.of({"h": 1, "cc": ["no"]}))
    more = [
        amqp.BasicProperties(headers=Table.of({"CC": ["a.b", "a.c"], "h": 1})),
        amqp.BasicProperties(headers=Table.of({"BCC": ["a.c"]})),
        amqp.BasicProperties(headers=Table.of({"CC": ["a.c"], "BCC": ["a.b"]})),
    ]

    def pass_on(contents: list[amqp.BasicProperties]) -> None:
        for content in contents:
            client.publish(b"ab1", "a", exchange="x", properties=content)
            assert broker.expect_content(amqp.BasicPublish).body == b"ab1"

    pass_on([plain])
    before = upcalls(stage)
    pass_on([plain] * 20)
    assert upcalls(stage) == before
    pass_on(more * 2)
    pass_on([plain])
    events = told(stage, tmp_path, "events", kind="message")
    assert len(events) == ("AuditPolicy" in policies) * (1 + 20 + 6 + 1)
    usage = [one for one in records(tmp_path / "audit", "usage") if one["operation"] == "basic.publish"]
    assert sums(usage, "routing_key", "more_keys") == {
        ("a", None): (22, 66),
        ("a", '["a.b","a.c"]'): (4, 12),
        ("a", '["a.c"]'): (2, 6),
    }
    assert {one["more_keys"] for one in events} <= {None, '["a.b","a.c"]', '["a.c"]'}


def test_a_denial_for_a_further_key_says_so(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited(policies=ALL)
    client, broker = stage.opened()
    client.publish(
        b"1", "a.b", exchange="x", properties=amqp.BasicProperties(headers=Table.of({"CC": ["z"]}))
    )
    assert "topic 'z'" in refused(client, broker, (60, 40))
    [denied] = told(stage, tmp_path, "events", kind="denied")
    assert (denied["routing_key"], denied["more_keys"]) == ("a.b", '["z"]')


def test_a_header_that_cannot_be_decoded_ends_the_connection(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited(policies=AUDIT)
    client, _broker = stage.opened()
    # Headers are flagged, and there are none.
    payload = b"\0\x3c\0\0" + (3).to_bytes(8, "big") + b"\x20\0"
    client.raw(
        method_frame(1, amqp.BasicPublish(exchange="x", routing_key="w"))
        + encode_frame(amqp.FRAME_HEADER, 1, payload)
        + encode_frame(amqp.FRAME_BODY, 1, b"a12")
    )
    assert client.expect(amqp.ConnectionClose).reply_code == 541
    assert told(stage, tmp_path, "events", kind="message") == []


def test_whose_bodies_are_recorded_waits_while_the_log_is_full(make_stage: MakeStage, tmp_path: Path) -> None:
    folder, away = tmp_path / "audit", tmp_path / "away"
    text = SETTINGS + setting(folder, 3600, maxQueue="64Ki")
    stage = make_stage(text=text, policies=AUDIT)
    client, broker = stage.opened()
    folder.rename(away)
    folder.write_text("in the way")
    auditing = stage.running.gateway.observers.audit
    assert auditing is not None
    log = auditing.log
    for number in range(400):
        client.publish(b"%d" % number, "w", exchange="x")
    eventually(lambda: not stage.running.call(lambda: log.has_room))
    # A batch at most goes beyond.
    assert stage.running.call(log.counts).queued_bytes < (64 << 10) + 256 * 2048
    folder.unlink()
    away.rename(folder)
    for number in range(400):
        assert broker.expect_content(amqp.BasicPublish).body == b"%d" % number
    assert len(told(stage, tmp_path, "events", kind="message")) == 400


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


@pytest.mark.parametrize(("frame_max", "detail"), [(4096, '{"frame_max":4096}'), (8192, None)])
def test_a_client_of_small_frames_is_told(
    audited: MakeStage, tmp_path: Path, frame_max: int, detail: str | None
) -> None:
    stage = audited()
    stage.opened(tune_ok=amqp.ConnectionTuneOk(2047, frame_max, 0))
    (opened,) = told(stage, tmp_path, "events", kind="session.open")
    assert opened["detail"] == detail


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


def test_what_is_asked_without_waiting_is_told_unless_the_broker_refuses_it(
    audited: MakeStage, tmp_path: Path
) -> None:
    stage = audited()
    client, broker = stage.opened(channels=2)
    for channel, queue in ((1, "there"), (2, "mine")):
        client.say(amqp.QueueDeclare(queue=queue, no_wait=True), channel)
        broker.expect(amqp.QueueDeclare, channel)
    broker.say(amqp.ChannelClose(406, "PRECONDITION_FAILED", 50, 10), 1)
    client.expect(amqp.ChannelClose, 1)
    client.say(amqp.ChannelCloseOk(), 1)
    broker.expect(amqp.ChannelCloseOk, 1)
    # The session ends without another word on the second channel.
    events = told(stage, tmp_path, "events", kind="topology")
    assert [(one["operation"], one["queue"]) for one in events] == [("queue.declare", "mine")]


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
    auditing = stage.running.gateway.observers.audit
    assert auditing is not None
    log = auditing.log
    for _ in range(400):
        client.publish(b"1", "a", exchange="y")
    eventually(lambda: not stage.running.call(lambda: log.has_room))
    stage.forget()
    late = stage.client()
    late.raw(amqp.PROTOCOL_HEADER)
    eventually(lambda: stage.running.call(lambda: auditing._room.statistics().tasks_waiting) == 1)
    # What needs no decision goes on.
    other.publish(b"2", "big", exchange="x")
    assert its_broker.expect_content(amqp.BasicPublish).body == b"2"
    assert stage.running.call(lambda: log.counts()).queued_bytes < 80 << 10
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
    refused = {("deny", "few", "one"): (2, 0)} if mode == "enforce" else {}
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


def test_what_a_compatibility_policy_changes_is_an_event(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited(policies=document("three"))
    client, broker = stage.opened()
    client.say(amqp.QueueDeclare(queue="q", arguments=Table.of({"x-queue-version": 1})), 1)
    broker.expect(amqp.QueueDeclare, 1)
    (one,) = told(stage, tmp_path, "events", kind="adapted")
    # The columns are the client's request, the detail is what the broker got.
    assert (one["operation"], one["queue"], one["arguments"]) == (
        "queue.declare",
        "q",
        '{"x-queue-version":1}',
    )
    assert json.loads(str(one["detail"])) == {
        "policy": "three",
        "items": ["retired-argument", "transient-queue"],
        "durable": True,
        "auto_delete": False,
        "arguments": {"x-queue-type": "classic", "x-expires": 86_400_000},
    }


def test_a_limit_of_a_whole_channel_is_told_apart(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited()
    client, broker = stage.opened()
    for is_global in (True, False):
        client.say(amqp.BasicQos(prefetch_count=1, global_=is_global), 1)
        broker.expect(amqp.BasicQos, 1)
    found = told(stage, tmp_path, "usage", operation="basic.qos")
    assert sorted(str(one["arguments"]) for one in found) == ["None", '{"global":true}']
