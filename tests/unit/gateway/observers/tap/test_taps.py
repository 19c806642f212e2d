"""What a tap is shown of sessions whose client and broker are the test itself, and what it leaves behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio

from amqpgate.datapath.scanner import Flow
from amqpgate.gateway.limits.sampler import Sampler
from amqpgate.gateway.observers.tap import flows
from amqpgate.gateway.observers.tap.flows import Watched
from amqpgate.gateway.observers.tap.session import TapObserver
from amqpgate.gateway.session.observer import find
from amqpgate.policy import Operation, Principal
from amqpgate.policy.kinds.audit import NOT_AUDITED
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.frames import content_frames
from tests.support.inprocess import eventually
from tests.unit.gateway.audited import ACCESS, audited, confirming, told
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.tapped import AUDIT, RATE, MakeStage, frames_in, of, pass_on, tap, upcalls

__all__ = ["audited"]


def test_a_publish_is_shown_and_nothing_of_its_content(stage: Stage) -> None:
    client, broker = stage.opened()
    watch = tap(stage, "exchange=orders and user=guest and vhost='/'")
    client.publish(b"other", "k", exchange="elsewhere")
    broker.expect_content(amqp.BasicPublish)
    properties = amqp.BasicProperties("text/plain", headers=Table.of({"h": 1}))
    for size in (0, 5, 300_000):
        client.publish(b"s" * size, "order.eu", exchange="orders", properties=properties)
        message = broker.expect_content(amqp.BasicPublish)
        assert (message.body, message.header.properties) == (b"s" * size, properties)
    items = watch.items()
    assert [of(item, "operation", "exchange", "routing_key", "body_size") for item in items] == [
        ("basic.publish", "orders", "order.eu", size) for size in (0, 5, 300_000)
    ]
    assert of(items[0], "user", "vhost", "client", "verdict", "channel") == (
        "guest",
        "/",
        "127.0.0.1",
        "allow",
        1,
    )
    assert set(items[0]).isdisjoint({"properties", "headers", "body", "frames"})
    assert watch.counts == (3, 3)


def test_when_it_ends_messages_are_hits_again(stage: Stage) -> None:
    client, broker = stage.opened()
    before = upcalls(stage)
    pass_on(client, broker, 20)
    assert upcalls(stage) == before
    session = next(iter(stage.running.gateway.sessions.values()))
    watch = tap(stage)
    assert session.relay.up.flows is not None
    pass_on(client, broker, 20)
    assert upcalls(stage) > before
    watch.close()
    assert (find(session.observers, TapObserver), session.relay.up.flows, session.relay.down.flows) == (
        None,
        None,
        None,
    )
    before = upcalls(stage)
    pass_on(client, broker, 20)
    assert upcalls(stage) == before
    assert watch.counts == (20, 20)
    assert stage.running.gateway.observers.taps.taps == ()


def test_whoever_cannot_match_is_left_alone(stage: Stage) -> None:
    client, broker = stage.opened()
    for match in ("user=other", "vhost=v", "client=10.0.0.0/8", "user=guest and vhost=v"):
        tap(stage, match)
    session = next(iter(stage.running.gateway.sessions.values()))
    assert (find(session.observers, TapObserver), session.relay.up.flows) == (None, None)
    tap(stage, "operation=queue.*")
    assert find(session.observers, TapObserver) is not None
    assert (session.relay.up.flows, session.relay.down.flows) == (None, None)
    pass_on(client, broker, 1)


def test_a_client_that_comes_later_is_tapped_from_its_first_word(stage: Stage) -> None:
    watch = tap(stage)
    client, broker = stage.opened()
    pass_on(client, broker, 1)
    names = [item["operation"] for item in watch.items()]
    assert names == ["connection.open", "channel.open", "basic.publish"]
    client.close()
    stage.running.wait_idle()
    assert watch.counts == (3, 3)


@pytest.mark.parametrize("ceiling", [10, 40, 1000])
def test_what_is_not_shown_is_counted(stage: Stage, ceiling: int) -> None:
    """The ceiling, and the queue: 256 at once."""
    client, broker = stage.opened()
    watch = tap(stage, ceiling=ceiling)
    before, seen = upcalls(stage), 0
    for _ in range(5):
        pass_on(client, broker, 200)
        seen += len(watch.items())
    matched, shown = watch.counts
    assert matched == 1000
    assert 0 < shown == seen
    assert shown < 1000 or ceiling == 1000
    # Two for each that is shown; beyond the ceiling they are hits.
    if ceiling == 10:
        assert upcalls(stage) - before < 1000


def test_a_full_queue_stops_nothing(stage: Stage) -> None:
    client, broker = stage.opened()
    watch = tap(stage)
    pass_on(client, broker, 1000)
    matched, shown = watch.counts
    assert matched == 1000
    assert shown <= 256
    # There is room again, and flows show again.
    assert len(watch.items()) == shown
    eventually(lambda: pass_on(client, broker, 1) or bool(watch.items()))


def test_one_in_so_many(stage: Stage) -> None:
    client, broker = stage.opened()
    watch = tap(stage, every=10)
    before = upcalls(stage)
    pass_on(client, broker, 1000)
    assert watch.counts == (1000, 100)
    # A miss, and two for each that is shown.
    assert upcalls(stage) - before == 201


def test_two_taps_at_once(stage: Stage) -> None:
    client, broker = stage.opened()
    some, all_of_them = tap(stage, every=10), tap(stage, "routing_key=k")
    pass_on(client, broker, 100)
    assert (some.counts, all_of_them.counts) == ((100, 10), (100, 100))
    all_of_them.close()
    pass_on(client, broker, 100)
    assert (some.counts, all_of_them.counts) == ((200, 20), (100, 100))


def test_more_flows_than_are_watched_lose_no_count(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "MOST_WATCHED", 7)
    client, broker = stage.opened()
    watch = tap(stage, ceiling=100)
    for number in range(100):
        pass_on(client, broker, 1 + number % 3, f"key.{number}")
    assert watch.counts[0] == sum(1 + number % 3 for number in range(100))
    session = next(iter(stage.running.gateway.sessions.values()))
    tapper = find(session.observers, TapObserver)
    assert tapper is not None
    assert len(tapper.watches) <= 7


def test_a_message_under_way_is_counted_though_its_flow_is_forgotten(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flows, "MOST_WATCHED", 4)
    client, broker = stage.opened(channels=2)
    watch = tap(stage, every=1000)
    frames = content_frames(2, amqp.BasicPublish(), amqp.BasicProperties(), b"late", 131072)
    method = method_frame(2, amqp.BasicPublish())
    header = frames[len(method) : frames.index(b"late") - 7]
    client.octets(method + header)
    broker.expect(amqp.BasicPublish, 2)
    assert broker.frame().type == amqp.FRAME_HEADER
    for number in range(6):
        pass_on(client, broker, 1, f"key.{number}")
    client.octets(frames[len(method) + len(header) :])
    assert broker.frame().payload == b"late"
    assert watch.counts[0] == 7


def test_deliveries_are_shown_with_their_queue(stage: Stage) -> None:
    client, broker = stage.opened()
    watch = tap(stage, "queue=q")
    client.say(amqp.BasicConsume(queue="q", consumer_tag="c"), 1)
    broker.expect(amqp.BasicConsume, 1)
    broker.say(amqp.BasicConsumeOk("c"), 1)
    client.expect(amqp.BasicConsumeOk, 1)
    properties = amqp.BasicProperties("text/plain")
    for tag in range(1, 4):
        broker.content(amqp.BasicDeliver("c", tag, False, "x", "a"), b"12345", properties=properties)
        message = client.expect_content(amqp.BasicDeliver)
        assert (message.body, message.header.properties) == (b"12345", properties)
    items = watch.items()
    assert [of(item, "operation", "exchange", "routing_key", "queue", "body_size") for item in items] == [
        ("basic.consume", None, None, "q", None),
        *[("basic.deliver", "x", "a", "q", 5)] * 3,
    ]
    watch.close()
    session = next(iter(stage.running.gateway.sessions.values()))
    assert session.relay.down.flows is None


def test_methods_and_denials(make_stage: MakeStage) -> None:
    stage = make_stage(policies=ACCESS % "nack")
    client, broker = stage.opened()
    confirming(client, broker)
    watch = tap(stage, frames=True)
    client.say(amqp.QueueDeclare(queue="q", durable=True, arguments=Table.of({"x-max-length": 3})), 1)
    broker.expect(amqp.QueueDeclare, 1)
    broker.say(amqp.QueueDeclareOk("q", 0, 0), 1)
    client.expect(amqp.QueueDeclareOk, 1)
    # Refused at its method, at its header, and allowed.
    for exchange, key, size in (("y", "a", 1), ("x", "a", 21), ("x", "a", 3), ("x", "a", 3)):
        client.publish(b"b" * size, key, exchange=exchange)
    for _ in range(2):
        assert client.expect(amqp.BasicNack, 1)
        assert broker.expect_content(amqp.BasicPublish).body == b"bbb"
    client.say(amqp.ExchangeDeclare(exchange="e"), 1)
    broker.expect(amqp.ChannelClose, 1)
    items = watch.items()
    columns = ("operation", "exchange", "verdict", "policy", "rule", "body_size")
    assert [of(item, *columns) for item in items] == [
        ("queue.declare", None, "allow", "access", "queues", None),
        ("basic.publish", "y", "deny", None, "default", None),
        ("basic.publish", "x", "deny", None, "default", 21),
        ("basic.publish", "x", "allow", "access", "small", 3),
        ("basic.publish", "x", "allow", "access", "small", 3),
        ("exchange.declare", "e", "deny", None, "default", None),
    ]
    assert json.loads(str(items[0]["arguments"])) == {"x-max-length": 3}
    assert watch.counts == (6, 6)
    methods = [decode_method(frames_in(item)[0]) for item in items]
    assert methods[0] == amqp.QueueDeclare(queue="q", durable=True, arguments=Table.of({"x-max-length": 3}))
    assert methods[2] == amqp.BasicPublish(exchange="x", routing_key="a")
    denied = tap(stage, "verdict=deny")
    assert denied.counts == (0, 0)


def test_beside_a_limit_that_judges_each_message(make_stage: MakeStage) -> None:
    """Flows that show every message to a policy are not muted, and the tap's ceiling still holds."""
    stage = make_stage(policies=RATE % ("enforce", "messages: 100000/s, action: reject"))
    client, broker = stage.opened()
    watch = tap(stage, ceiling=20)
    pass_on(client, broker, 300)
    matched, shown = watch.counts
    assert (matched, 0 < shown < 300) == (300, True)


def test_a_policy_that_judges_each_message_goes_on_when_nothing_may_be_shown(make_stage: MakeStage) -> None:
    stage = make_stage(policies=RATE % ("enforce", "messages: 1/h, action: reject"))
    client, broker = stage.opened()
    confirming(client, broker)
    watch = tap(stage, "operation=basic.publish", ceiling=10)
    for _ in range(20):
        client.publish(b"x", "k", exchange="orders")
    broker.expect_content(amqp.BasicPublish)
    for _ in range(19):
        client.expect(amqp.BasicNack, 1)
    assert watch.counts[0] == 20


def test_who_else_chooses_goes_on_when_nothing_may_be_shown() -> None:
    """Mirrors and traces see as many as without the tap; a policy sees all."""

    def watched(*, is_always: bool) -> Watched:
        operation = Operation(Principal("guest", "/"), "basic.publish")
        return Watched(Flow(sample_every=1), operation, (), NOT_AUDITED, is_always)

    shared, judged = watched(is_always=False), watched(is_always=True)
    for samplers, every in (([Sampler(0.1), Sampler(0.5)], 2), ([], 0)):
        shared.hide(samplers)
        judged.hide(samplers)
        assert (shared.flow.sample_every, judged.flow.sample_every) == (every, 1)


def test_who_taps_what_is_in_the_records(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited()
    client, broker = stage.opened()
    watch = tap(stage, "exchange=orders")
    pass_on(client, broker, 3)
    watch.close()
    events = told(stage, tmp_path, "events", kind="admin")
    assert [json.loads(str(one["detail"])) for one in events] == [
        {"action": "tap", "by": "test", "match": "exchange = orders"},
        {"action": "untap", "by": "test", "match": "exchange = orders", "matched": "3", "shown": "3"},
    ]


def test_other_policies_hold_for_the_tap_at_once(make_stage: MakeStage, tmp_path: Path) -> None:
    stage = make_stage(policies=AUDIT % "{id: r, operations: [basic.publish], level: headers}")
    client, broker = stage.opened()
    watch = tap(stage, "operation=basic.publish")
    pass_on(client, broker, 1)
    (tmp_path / "policies" / "policy.yaml").write_text(
        AUDIT % "{id: r, operations: [basic.publish], level: metadata}"
    )
    state = trio.from_thread.run(stage.running.gateway.reloading.reload, trio_token=stage.running._token)
    assert state.status == "done"
    pass_on(client, broker, 1)
    before, after = watch.items()
    assert "headers" in before
    assert "headers" not in after
    assert watch.counts == (2, 2)
