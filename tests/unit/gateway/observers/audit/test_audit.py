"""Usage in audit records, of sessions whose client and broker are the test itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amqpgate.bridge import interpreter_for
from amqpgate.policy import load_folder
from amqpgate.protocol.frames import encode_frame
from amqpgate.protocol.methods import Role
from amqpgate.wire.dialects import LEGACY_CLIENT, RABBITMQ_0_9_1
from amqpgate.wire.generated import v0_8
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.support.audit import records, sums
from tests.unit.gateway.audited import ACCESS, MakeStage, audited, confirming, told
from tests.unit.gateway.conftest import Opens

__all__ = ["audited"]


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
        ("x", "a", "deny", None, "default"): (2, 0),
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


@pytest.mark.parametrize(
    ("how", "confirms", "code"),
    [("nack", True, None), ("drop", True, None), ("return", True, 403), ("nack", False, 403)],
)
def test_a_line_of_the_log_has_what_the_client_was_told(
    make_stage: MakeStage, caplog: pytest.LogCaptureFixture, how: str, confirms: bool, code: int | None
) -> None:
    stage = make_stage(policies=ACCESS % how)
    client, broker = stage.opened()
    if confirms:
        confirming(client, broker)
    with caplog.at_level("INFO", "amqpgate"):
        client.publish(b"b" * 21, "a", exchange="x")
        if not confirms:
            broker.expect(amqp.ChannelClose, 1)
            broker.say(amqp.ChannelCloseOk(), 1)
            assert client.expect(amqp.ChannelClose, 1).reply_code == code
        elif how == "return":
            assert client.expect_content(amqp.BasicReturn).method.reply_code == code
        else:
            client.expect(amqp.BasicAck if how == "drop" else amqp.BasicNack, 1)
        stage.running.stop()
    denied, over = (
        next(one.__dict__["about"] for one in caplog.records if one.getMessage().startswith(what))
        for what in ("denied: ", "session ")
    )
    assert (denied["upstream"], denied.get("reply_code")) == ("broker", code)
    assert over["upstream"] == "broker"


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
    assert sums(usage, "operation", "queue") == {("basic.publish", None): (1, 0), ("basic.get", "q"): (1, 0)}


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


def test_old_clients_are_audited_by_canonical_names(audited: MakeStage, tmp_path: Path, opens: Opens) -> None:
    stage = audited()
    client, broker = opens(stage, LEGACY_CLIENT, RABBITMQ_0_9_1)
    words = interpreter_for(LEGACY_CLIENT)

    def passes(question: Method, answer: Method) -> None:
        client.raw(encode_frame(1, 1, words.from_canonical(question)))
        broker.expect(type(question), 1)
        broker.say(answer, 1)
        assert words.to_canonical(client.frame().payload, Role.SERVER) == answer

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
