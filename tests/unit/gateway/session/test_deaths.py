"""Dead letters that are published again: what is kept, what the client gets, and what passes unseen."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.datapath.tables import ScanResult, Side
from amqpgate.gateway.session.deaths import MOST, SAVED, merged, saved
from amqpgate.gateway.session.upcalls import Upcalls
from amqpgate.policy import Source, build
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Field, Table
from tests.support.metrics import sample_value
from tests.support.talker import Message, Talker
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.pool.pooled import pooled
from tests.unit.policy.kinds.test_compatibility import OFF, document

MakeStage = Callable[..., Stage]
Headers: TypeAlias = "Mapping[str, object]"
THREE = document("three")
THEN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def death(queue: str = "retry", count: int = 1, reason: str = "expired", **more: object) -> dict[str, object]:
    return {
        "count": Field("l", count),
        "reason": reason,
        "queue": queue,
        "time": THEN,
        "exchange": "",
        "routing-keys": [queue],
        **more,
    }


def header(headers: Headers | None) -> ContentHeader:
    table = None if headers is None else Table.of(headers)
    return ContentHeader(60, 3, amqp.BasicProperties(headers=table, priority=4))


def headers_of(one: ContentHeader) -> dict[str, object]:
    assert isinstance(one.properties, amqp.BasicProperties)
    assert one.properties.headers is not None
    assert (one.body_size, one.properties.priority) == (3, 4)
    return dict(one.properties.headers.to_python())


def delivered(published: Headers, **broker: object) -> dict[str, object]:
    """What a client gets of what one has published, where the broker has added this."""
    kept = headers_of(saved(header(published)))
    assert "x-death" not in kept or SAVED not in kept
    raw = saved(header(published)).properties
    assert isinstance(raw, amqp.BasicProperties)
    table = raw.headers or Table(())
    for name, value in broker.items():
        table = table.with_(name.replace("_", "-"), value)
    return headers_of(merged(ContentHeader(60, 3, amqp.BasicProperties(headers=table, priority=4))))


def counts(headers: Headers) -> list[tuple[object, object, object]]:
    deaths = headers["x-death"]
    assert isinstance(deaths, list)
    return [(one["queue"], one["reason"], one["count"]) for one in deaths]


def test_a_count_goes_on() -> None:
    got = delivered({"mine": 1, "x-death": [death(count=2)]}, x_death=[death(time=THEN.replace(day=2))])
    assert got.keys() == {"mine", "x-death"}
    assert counts(got) == [("retry", "expired", 3)]
    (one,) = got["x-death"]  # type: ignore[misc]
    # RabbitMQ 3.10 keeps what it has said first.
    assert one["time"] == THEN  # type: ignore[index]


def test_the_latest_is_the_first() -> None:
    before = [death("a", 2), death("b", 1, "rejected"), death("c", 5)]
    since = [death("b", 3, "rejected"), death("new"), death("b", 1, "expired")]
    assert counts(delivered({"x-death": before}, x_death=since)) == [
        ("b", "rejected", 4),
        ("new", "expired", 1),
        ("b", "expired", 1),
        ("a", "expired", 2),
        ("c", "expired", 5),
    ]


def test_what_did_not_die_again_has_what_was_published() -> None:
    said = {"x-death": [death(count=2)], "x-first-death-queue": "q", "x-last-death-queue": "z", "a": "b"}
    got = delivered(said)
    assert got == header_python(said)


def header_python(headers: Headers) -> dict[str, object]:
    return headers_of(header(headers))


def test_the_first_death_stays_the_first() -> None:
    first = {f"x-first-death-{name}": f"old-{name}" for name in ("queue", "reason", "exchange")}
    new = {name.replace("-", "_"): value.replace("old", "new") for name, value in first.items()}
    got = delivered({"x-death": [death()], **first}, x_death=[death()], **new, x_last_death_queue="last")
    assert {name: got[name] for name in first} == first
    assert got["x-last-death-queue"] == "last"


def test_without_one_of_the_clients_it_is_the_brokers() -> None:
    got = delivered({"x-death": [death()]}, x_death=[death()], x_first_death_queue="retry")
    assert got["x-first-death-queue"] == "retry"


@pytest.mark.parametrize(
    "headers",
    [
        None,
        {},
        {"mine": 1},
        {"x-death": "text"},
        {"x-death": []},
        {"x-death": {"count": 1}},
        {"x-death": [death()] * (MOST + 1)},
    ],
)
def test_what_cannot_be_counted_on_passes(headers: Headers | None) -> None:
    one = header(headers)
    assert saved(one) is one
    assert merged(one) is one


@pytest.mark.parametrize(
    "forged", ["text", {}, {"x-death": "text"}, {"x-death": []}, [1], {"x-death": [death()] * (MOST + 1)}]
)
def test_a_header_that_somebody_made_up_does_nothing(forged: object) -> None:
    one = header({SAVED: forged, "x-death": [death()]})
    assert merged(one) is one
    assert SAVED not in headers_of(saved(header({SAVED: forged, "a": 1})))


def test_what_is_made_up_is_replaced_where_it_is_published() -> None:
    got = delivered({SAVED: {"x-death": [death(count=1000)]}, "x-death": [death(count=2)]}, x_death=[death()])
    assert counts(got) == [("retry", "expired", 3)]


@pytest.mark.parametrize(
    ("made_up", "count"),
    [
        ({"queue": "retry", "reason": "expired"}, 1),
        ({"queue": "retry", "reason": "expired", "count": "many"}, 1),
        ({"queue": "retry", "reason": "expired", "count": True}, 1),
        ({"queue": "retry", "reason": "expired", "count": (1 << 63) - 1}, (1 << 63) - 1),
    ],
)
def test_a_count_that_is_none_begins_anew_and_none_overflows(made_up: Headers, count: int) -> None:
    got = delivered({"x-death": [made_up, 7, {"queue": 5}]}, x_death=[death()])
    deaths = got["x-death"]
    assert isinstance(deaths, list)
    assert [one["count"] for one in deaths if one["queue"] == "retry"] == [count]


def reference(before: Sequence[Headers], since: Sequence[Headers]) -> list[tuple[object, object, object]]:
    """As RabbitMQ 3.10: each death in its turn, oldest first."""
    known = [(one["queue"], one["reason"], one["count"]) for one in before]
    for one in reversed(since):
        same = [each for each in known if each[:2] == (one["queue"], one["reason"])]
        others = [each for each in known if each not in same]
        start = same[0][2] if same else 0
        known = [(one["queue"], one["reason"], start + one["count"]), *others]  # type: ignore[operator]
    return known


_DEATHS = st.lists(
    st.builds(
        lambda queue, reason, count: {"queue": queue, "reason": reason, "count": count},
        st.sampled_from("abc"),
        st.sampled_from(["expired", "rejected"]),
        st.integers(1, 5),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda one: (one["queue"], one["reason"]),
)


@given(_DEATHS, _DEATHS)
def test_it_is_as_if_the_broker_had_counted_on(
    before: list[dict[str, object]], since: list[dict[str, object]]
) -> None:
    got = delivered({"x-death": before}, x_death=since)
    assert counts(got) == reference(before, since)


@given(_DEATHS, _DEATHS)
def test_the_client_never_gets_a_longer_header_than_the_broker_sent(
    before: list[dict[str, object]], since: list[dict[str, object]]
) -> None:
    table = Table.of({SAVED: {"x-death": before}, "x-death": [death(**one) for one in since]})  # type: ignore[arg-type]
    one = ContentHeader(60, 0, amqp.BasicProperties(headers=table))
    assert len(encode_header(merged(one))) <= len(encode_header(one))


# -- in a session --------------------------------------------------------------------------------------------


def published(client: Talker, broker: Talker, headers: Headers | None, body: bytes = b"abc") -> object:
    """The headers that the broker gets."""
    table = None if headers is None else Table.of(headers)
    client.publish(body, "q", properties=amqp.BasicProperties(headers=table))
    return _headers(broker.expect_content(amqp.BasicPublish), body)


def sent(client: Talker, broker: Talker, method: Method, headers: Headers) -> object:
    """The headers that the client gets."""
    broker.content(method, b"abc", properties=amqp.BasicProperties(headers=Table.of(headers)))
    return _headers(client.expect_content(type(method)), b"abc")


def _headers(message: Message, body: bytes) -> object:
    got = message.header.properties
    assert message.body == body
    assert isinstance(got, amqp.BasicProperties)
    return None if got.headers is None else dict(got.headers.to_python())


DIED = [{"queue": "retry", "reason": "expired", "count": 2}]
KEPT = {"a": 1, SAVED: {"x-death": DIED}}
SENT: list[Method] = [
    amqp.BasicDeliver("c", 1, False, "", "q"),
    amqp.BasicGetOk(1, False, "", "q", 0),
    amqp.BasicReturn(312, "NO_ROUTE", "", "q"),
]


def played(client: Talker, broker: Talker) -> None:
    """Messages of both sorts, in both directions."""
    assert published(client, broker, {"x-death": DIED, "a": 1}) == KEPT
    assert published(client, broker, {"a": 1}) == {"a": 1}
    assert published(client, broker, None) is None
    assert published(client, broker, {"x-death": DIED, "a": 1}, b"x" * 300_000) == KEPT
    client.say(amqp.BasicConsume(queue="q", consumer_tag="c"), 1)
    broker.expect(amqp.BasicConsume, 1)
    broker.say(amqp.BasicConsumeOk("c"), 1)
    client.expect(amqp.BasicConsumeOk, 1)
    for method in SENT:
        assert sent(client, broker, method, KEPT) == {"a": 1, "x-death": DIED}
        assert sent(client, broker, method, {**KEPT, "x-death": DIED}) == {
            "a": 1,
            "x-death": [{**DIED[0], "count": 4}],
        }
        assert sent(client, broker, method, {"a": 1}) == {"a": 1}


def test_what_a_client_publishes_again_counts_on(make_stage: MakeStage) -> None:
    stage = make_stage(policies=THREE)
    played(*stage.opened())
    labels = {"policy": "three", "item": "x-death"}
    registry = stage.running.gateway.metrics.registry
    assert sample_value(registry, "amqpgate_compatibility_changes_total", labels) == 2


def test_it_does_so_on_a_connection_that_is_shared(make_stage: MakeStage) -> None:
    stage = make_stage(
        upstream="connections: pooled, pool: {spareChannels: 0, maxLinks: 1, consumers: shared}",
        policies=THREE,
    )
    client, broker = pooled(stage)
    client.say(amqp.BasicQos(0, 5), 1)
    broker.expect(amqp.BasicQos, 1)
    broker.say(amqp.BasicQosOk(), 1)
    client.expect(amqp.BasicQosOk, 1)
    played(client, broker)


def test_other_messages_are_not_looked_at(make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first of each kind, and those with the header, are upcalls."""
    shown: list[Side] = []
    upcall = Upcalls.upcall

    def counting(self: Upcalls, side: Side, result: ScanResult, frame: memoryview) -> bool:
        shown.append(side)
        return upcall(self, side, result, frame)

    monkeypatch.setattr(Upcalls, "upcall", counting)
    client, broker = make_stage(policies=THREE).opened()
    client.say(amqp.BasicConsume(queue="q", consumer_tag="c"), 1)
    broker.expect(amqp.BasicConsume, 1)
    broker.say(amqp.BasicConsumeOk("c"), 1)
    client.expect(amqp.BasicConsumeOk, 1)
    published(client, broker, {"a": 1})
    sent(client, broker, SENT[0], {"a": 1})
    shown.clear()
    for _ in range(3):
        published(client, broker, {"a": 1})
        sent(client, broker, SENT[0], {"a": 1, "x-death": DIED})
    assert shown == []
    published(client, broker, {"x-death": DIED})
    sent(client, broker, SENT[0], KEPT)
    assert set(shown) == {Side.CLIENT, Side.UPSTREAM}


def test_switched_off_it_is_the_brokers(make_stage: MakeStage) -> None:
    client, broker = make_stage(policies=document("three", OFF + "\nquorumQueues: [{}]")).opened()
    assert published(client, broker, {"x-death": DIED}) == {"x-death": DIED}


def test_names_are_mapped_before_and_after(make_stage: MakeStage) -> None:
    names = """
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: names}
spec: {subjects: [{}], names: {both: {prefix: a.}}}
---
"""
    client, broker = make_stage(policies=names + THREE).opened()
    up = [{"queue": "a.retry", "reason": "expired", "count": 2}]
    assert published(client, broker, {"x-death": DIED}) == {SAVED: {"x-death": up}}
    client.say(amqp.BasicConsume(queue="q", consumer_tag="c"), 1)
    broker.expect(amqp.BasicConsume, 1)
    broker.say(amqp.BasicConsumeOk("c"), 1)
    client.expect(amqp.BasicConsumeOk, 1)
    for method in SENT:
        assert sent(client, broker, method, {SAVED: {"x-death": up}, "x-death": up}) == {
            "x-death": [{**DIED[0], "count": 4}]
        }


def test_where_the_broker_has_no_room_it_counts_alone(make_stage: MakeStage) -> None:
    """A header cannot be split."""
    stage = make_stage(policies=THREE, upstream="frameMax: 4096")
    client, broker = stage.opened()
    fits = {"x-death": DIED, "a": ""}
    room = 4096 - len(encode_header(header(fits))) - 8
    table = {"x-death": DIED, "a": "x" * room}
    assert published(client, broker, table) == table


def test_other_policies_hold_from_the_next_message_on(make_stage: MakeStage) -> None:
    stage = make_stage()
    client, broker = stage.opened()
    assert published(client, broker, {"x-death": DIED, "a": 1}) == {"x-death": DIED, "a": 1}
    others = build([Source("p.yaml", THREE.encode())])
    stage.running.call(lambda: stage.running.gateway.use(others))
    assert published(client, broker, {"x-death": DIED, "a": 1}) == KEPT
