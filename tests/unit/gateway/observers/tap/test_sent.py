"""What a tap is shown of messages that were got, or came back: each is counted, and told with its queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpgate.gateway.observers.tap import flows
from amqpgate.gateway.observers.tap.session import TapObserver
from amqpgate.gateway.session.observer import find
from amqpgate.gateway.session.session import Session
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.codec import decode_header, decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.support.audit import sums
from tests.support.frames import content_frames
from tests.support.talker import Talker, relayed
from tests.unit.gateway.audited import audited, told
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.tapped import AUDIT, RATE, MakeStage, Watch, frames_in, of, pass_on, tap, upcalls

__all__ = ["audited"]

MESSAGES = "operation=basic.get-ok or operation=basic.return"
COLUMNS = ("operation", "exchange", "routing_key", "queue", "body_size", "verdict")
PROPERTIES = amqp.BasicProperties("text/plain", headers=Table.of({"h": 1}))


def ask(client: Talker, broker: Talker, *queues: str, channel: int = 1) -> None:
    for queue in queues:
        client.say(amqp.BasicGet(queue=queue), channel)
        broker.expect(amqp.BasicGet, channel)


def answer(client: Talker, broker: Talker, method: Method, body: bytes = b"", channel: int = 1) -> None:
    """The broker's message, or that there is none, gets to the client as it is."""
    if isinstance(method, amqp.BasicGetEmpty):
        broker.say(method, channel)
        client.expect(amqp.BasicGetEmpty, channel)
        return
    broker.content(method, body, properties=PROPERTIES, channel=channel)
    message = client.expect_content(type(method), channel)
    assert (message.method, message.body, message.header.properties) == (method, body, PROPERTIES)


def got(key: str = "a", exchange: str = "x", tag: int = 1) -> amqp.BasicGetOk:
    return amqp.BasicGetOk(tag, False, exchange, key, 0)


def returned(key: str = "a", exchange: str = "x") -> amqp.BasicReturn:
    return amqp.BasicReturn(312, "NO_ROUTE", exchange, key)


def session_of(stage: Stage) -> Session:
    return next(iter(stage.running.gateway.sessions.values()))


def queues_of(watch: Watch) -> list[object]:
    return [item.get("queue") for item in watch.items()]


def test_they_are_shown_and_nothing_of_their_content(stage: Stage) -> None:
    client, broker = stage.opened()
    watch = tap(stage, MESSAGES, frames=True)
    ask(client, broker, "q", "empty", "r")
    answer(client, broker, got("a", tag=7), b"12345")
    answer(client, broker, amqp.BasicGetEmpty())
    answer(client, broker, got("b"), b"x" * 300_000)
    answer(client, broker, returned("c"))
    items = watch.items()
    assert [of(item, *COLUMNS) for item in items] == [
        ("basic.get-ok", "x", "a", "q", 5, "allow"),
        ("basic.get-ok", "x", "b", "r", 300_000, "allow"),
        ("basic.return", "x", "c", None, 0, "allow"),
    ]
    assert watch.counts == (3, 3)
    assert [decode_method(frames_in(item)[0]) for item in items] == [got("a", tag=7), got("b"), returned("c")]
    for item in items:
        assert set(item).isdisjoint({"properties", "headers", "body"})
        header = decode_header(frames_in(item)[1])
        assert (header.body_size, header.properties) == (item["body_size"], amqp.BasicProperties())


@pytest.mark.parametrize(
    ("match", "seen"),
    [
        ("queue=q", ["basic.get", "basic.get-ok"]),
        ("operation=basic.get*", ["basic.get", "basic.get", "basic.get-ok", "basic.get-ok"]),
        ("exchange=x and routing_key=a", ["basic.get-ok", "basic.return"]),
        ("operation=basic.return and not queue=q", ["basic.return", "basic.return"]),
        ("verdict=deny", []),
    ],
)
def test_what_matches_is_counted_also_where_nothing_may_be_shown(
    stage: Stage, match: str, seen: list[str]
) -> None:
    client, broker = stage.opened()
    shown, hidden = tap(stage, match), tap(stage, match, every=1_000_000)
    ask(client, broker, "q", "r")
    for method in (got("a"), got("b"), returned("a"), returned("a", exchange="y")):
        answer(client, broker, method, b"1")
    assert [item["operation"] for item in shown.items()] == seen
    assert (shown.counts, hidden.counts[0]) == ((len(seen), len(seen)), len(seen))


@pytest.mark.parametrize(
    ("match", "is_seen"),
    [
        ("", True),
        ("queue=q", True),
        (MESSAGES, True),
        ("operation=basic.publish", False),
        ("verdict=deny", False),
    ],
)
def test_only_where_a_tap_may_be_about_them_they_are_upcalls(stage: Stage, match: str, is_seen: bool) -> None:
    client, broker = stage.opened()

    def cost() -> int:
        before = upcalls(stage)
        for _ in range(20):
            answer(client, broker, returned(), b"1")
        return upcalls(stage) - before

    assert cost() == 0
    watch = tap(stage, match)
    assert bool(session_of(stage).relay.down.shows_content) is is_seen
    assert (cost() > 0) is is_seen
    watch.close()
    assert not session_of(stage).relay.down.shows_content
    assert cost() == 0


@pytest.mark.parametrize(("every", "ceiling"), [(1, 10), (10, 10**6)])
def test_what_is_not_shown_is_counted_at_half_the_cost(stage: Stage, every: int, ceiling: int) -> None:
    client, broker = stage.opened()
    watch = tap(stage, "operation=basic.return", every=every, ceiling=ceiling)
    before = upcalls(stage)
    for number in range(200):
        answer(client, broker, returned(f"k.{number % 3}"), b"1")
    matched, shown = watch.counts
    assert matched == 200
    assert 0 < shown < 200
    assert shown == (20 if every == 10 else shown) == len(watch.items())
    assert upcalls(stage) - before == 200 + shown


def test_channels_do_not_disturb_each_other(stage: Stage) -> None:
    client, broker = stage.opened(channels=2)
    watch = tap(stage, MESSAGES)
    ask(client, broker, "one")
    ask(client, broker, "two", channel=2)
    halves = []
    for channel in (1, 2):
        method = method_frame(channel, got(f"k.{channel}"))
        frames = content_frames(channel, got(f"k.{channel}"), PROPERTIES, b"b" * channel, 131072)
        halves.append((method, frames[len(method) :]))
    (first, first_rest), (second, second_rest) = halves
    for piece in (first, second, second_rest, first_rest):
        broker.raw(piece)
        assert client.exactly(len(piece)) == piece
    assert [of(item, "channel", "queue", "body_size") for item in watch.items()] == [
        (2, "two", 2),
        (1, "one", 1),
    ]
    assert watch.counts == (2, 2)


def test_more_kinds_than_are_watched_lose_no_count(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "MOST_WATCHED", 7)
    client, broker = stage.opened()
    watch = tap(stage, MESSAGES, ceiling=100)
    for number in range(60):
        for _ in range(1 + number % 3):
            answer(client, broker, returned(f"key.{number}"), b"1")
    assert watch.counts[0] == sum(1 + number % 3 for number in range(60))
    tapper = find(session_of(stage).session_policies.observers, TapObserver)
    assert tapper is not None
    assert len(tapper.watches) <= 7
    assert len(tapper.watches._alike) <= 7


# -- which queue -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "asked", "expected"),
    [
        # Nothing was got before, or all from one queue: it is known.
        ((), ("q", "r"), ["q", "r"]),
        (("q",), ("q",), ["q", "q"]),
        # Else it is not known what has been answered, and so not whose answer comes.
        (("q",), ("r",), [None, None]),
        (("q", "r"), ("q",), [None, None, None]),
    ],
)
def test_the_queue_is_told_where_it_is_known(
    stage: Stage, before: tuple[str, ...], asked: tuple[str, ...], expected: list[str | None]
) -> None:
    client, broker = stage.opened()
    ask(client, broker, *before)
    watch = tap(stage, "operation=basic.get-ok")
    ask(client, broker, *asked)
    for _ in expected:
        answer(client, broker, got(), b"1")
    assert queues_of(watch) == expected


def test_a_channel_that_opens_again_has_nothing_of_its_last_use(stage: Stage) -> None:
    client, broker = stage.opened()
    ask(client, broker, "q", "r")
    watch = tap(stage, "operation=basic.get-ok")
    client.say(amqp.ChannelClose(200, "", 0, 0), 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    client.expect(amqp.ChannelCloseOk, 1)
    relayed(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), 1)
    ask(client, broker, "s", "t")
    for _ in range(2):
        answer(client, broker, got(), b"1")
    assert queues_of(watch) == ["s", "t"]


def test_what_was_answered_between_two_taps_is_not_waited_for(stage: Stage) -> None:
    client, broker = stage.opened()
    first = tap(stage, "operation=basic.get-ok")
    ask(client, broker, "q", "r")
    first.close()
    answer(client, broker, got(), b"1")
    second = tap(stage, "operation=basic.get-ok")
    answer(client, broker, got(), b"1")
    ask(client, broker, "s")
    answer(client, broker, got(), b"1")
    assert queues_of(second) == [None, None]


def test_an_empty_name_is_the_queue_that_was_declared_last(stage: Stage) -> None:
    client, broker = stage.opened()
    watch = tap(stage, "operation=basic.get-ok")
    client.say(amqp.QueueDeclare(), 1)
    broker.expect(amqp.QueueDeclare, 1)
    broker.say(amqp.QueueDeclareOk("amq.gen-1", 0, 0), 1)
    client.expect(amqp.QueueDeclareOk, 1)
    ask(client, broker, "")
    answer(client, broker, got(), b"1")
    assert queues_of(watch) == ["amq.gen-1"]


# -- beside policies ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "seen"),
    [
        (
            "operations: [basic.get], queue: q, level: none",
            ["basic.get-ok r", "basic.return a", "basic.return b"],
        ),
        (
            "operations: [basic.publish], routingKey: b, level: none",
            ["basic.get-ok q", "basic.get-ok r", "basic.return a"],
        ),
        (
            "operations: [basic.publish], level: body",
            ["basic.get-ok q", "basic.get-ok r", "basic.return a", "basic.return b"],
        ),
    ],
)
def test_what_audit_leaves_out_is_not_seen(make_stage: MakeStage, rule: str, seen: list[str]) -> None:
    stage = make_stage(policies=AUDIT % f"{{id: r, {rule}}}")
    client, broker = stage.opened()
    watch = tap(stage, MESSAGES)
    ask(client, broker, "q", "r")
    for method in (got(), got(), returned("a"), returned("b")):
        answer(client, broker, method, b"1")
    items = watch.items()
    assert [f"{item['operation']} {item.get('queue') or item['routing_key']}" for item in items] == seen
    assert watch.counts == (len(seen), len(seen))


def test_a_queue_that_is_not_known_may_be_one_that_audit_leaves_out(make_stage: MakeStage) -> None:
    stage = make_stage(policies=AUDIT % "{id: r, operations: [basic.get], queue: secret, level: none}")
    client, broker = stage.opened()
    ask(client, broker, "q", "secret")
    watch = tap(stage, MESSAGES)
    for _ in range(2):
        answer(client, broker, got(), b"1")
    assert (watch.items(), watch.counts) == ([], (0, 0))


def test_names_are_those_of_the_client(make_stage: MakeStage) -> None:
    names = """
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: names}
spec:
  subjects: [{user: guest}]
  names: {both: {prefix: "a."}}
"""
    stage = make_stage(policies=names)
    client, broker = stage.opened()
    watch = tap(stage, "operation=basic.get-ok or exchange=x", frames=True)
    client.say(amqp.BasicGet(queue="q"), 1)
    assert broker.expect(amqp.BasicGet, 1).queue == "a.q"
    for method, named in (
        (got("a.q", exchange=""), got("q", exchange="")),
        (returned("k", exchange="a.x"), returned("k")),
    ):
        broker.content(method, b"123")
        assert client.expect_content(type(method)).method == named
    items = watch.items()
    assert [of(item, *COLUMNS[:5]) for item in items] == [
        ("basic.get-ok", "", "q", "q", 3),
        ("basic.return", "x", "k", None, 3),
    ]
    assert [decode_method(frames_in(item)[0]) for item in items] == [got("q", exchange=""), returned("k")]


def test_audit_and_tap_count_the_same(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited()
    client, broker = stage.opened()
    watch = tap(stage, MESSAGES)
    for number in range(9):
        ask(client, broker, ("q", "r", "empty")[number % 3])
        answer(client, broker, amqp.BasicGetEmpty() if number % 3 == 2 else got(), b"12")
        answer(client, broker, returned(), b"123")
    assert queues_of(watch).count("q") == 3
    watch.close()
    ask(client, broker, "q")
    answer(client, broker, got(), b"12")
    assert watch.counts == (15, 15)
    usage = told(stage, tmp_path, "usage", exchange="x")
    assert sums(usage, "operation", "queue") == {
        ("basic.get-ok", "q"): (4, 8),
        ("basic.get-ok", "r"): (3, 6),
        ("basic.return", None): (9, 27),
    }


def test_a_tap_draws_nothing_from_limits(make_stage: MakeStage) -> None:
    """What is got is counted when it is asked for, and its bytes are not; what came back is not at all."""
    limit = "deliverMessages: 100/h, deliverBytes: 100/h, burst: 1h, action: delay"
    stage = make_stage(policies=RATE % ("shadow", limit))
    client, broker = stage.opened()
    watch = tap(stage, MESSAGES)
    ask(client, broker, "q")
    answer(client, broker, got(), b"12345")
    answer(client, broker, returned(), b"12345")
    assert watch.counts == (2, 2)
    [share] = session_of(stage).limits.shares
    left = {name: round(bucket.tokens) for name, bucket in share.buckets.items()}
    assert left == {"deliver_messages": 99, "deliver_bytes": 100}


def test_publishes_beside_them_are_as_before(stage: Stage) -> None:
    client, broker = stage.opened()
    watch = tap(stage, "operation=basic.return or operation=basic.publish")
    pass_on(client, broker, 2)
    answer(client, broker, returned(), b"1")
    pass_on(client, broker, 1)
    assert [item["operation"] for item in watch.items()] == [
        "basic.publish",
        "basic.publish",
        "basic.return",
        "basic.publish",
    ]
