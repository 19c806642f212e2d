"""References that come for a client, with a broker that is played."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import attrs
import pytest

from amqpgate.gateway.session import deaths
from amqpgate.gateway.session.claim_reference import BODY, CLAIM, VARIABLE, ClaimKeys, Reference, new_key
from amqpgate.gateway.session.delay_ladder import DONE, TARGET, end_of
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import EMPTY_TABLE, Field, Table
from tests.support.frames import content_frames
from tests.support.inprocess import eventually
from tests.support.talker import Talker
from tests.unit.gateway.claiming import LARGE, ClaimStage, make
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.memory import in_memory, uncollected

__all__ = ["uncollected"]

DELIVER = amqp.BasicDeliver("tag", 1, False, "e", "k")


@pytest.fixture
def claims(make_stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch) -> ClaimStage:
    return make(make_stage, monkeypatch)


def refer(
    claims: ClaimStage, body: bytes = LARGE, headers: Table = EMPTY_TABLE, **changed: object
) -> amqp.BasicProperties:
    """The properties of a reference to a body that is in the store."""
    key = new_key("/")
    claims.store.objects[key] = body
    reference = Reference(key, len(LARGE), hashlib.sha256(LARGE).hexdigest(), False)
    value = ClaimKeys.of({VARIABLE: "k" * 32}).sign(reference, str(changed.get("vhost", "/")))
    return amqp.BasicProperties(type="t", headers=headers.with_(CLAIM, value))


def consuming(client: Talker, broker: Talker, *, no_ack: bool = False) -> None:
    client.say(amqp.BasicConsume(queue="q", consumer_tag="tag", no_ack=no_ack), 1)
    broker.expect(amqp.BasicConsume, 1)
    broker.say(amqp.BasicConsumeOk("tag"), 1)
    client.expect(amqp.BasicConsumeOk, 1)


@pytest.mark.parametrize(
    "method", [DELIVER, amqp.BasicGetOk(1, False, "e", "k", 0), amqp.BasicReturn(312, "NO_ROUTE", "e", "k")]
)
def test_the_client_gets_the_body(claims: ClaimStage, method: Method) -> None:
    client, broker = claims.stage.opened()
    broker.content(method, BODY, properties=refer(claims))
    message = client.expect_content(type(method))
    assert (message.method, message.body) == (method, LARGE)
    assert message.header.properties == amqp.BasicProperties(type="t")


def test_others_pass_as_they_are(claims: ClaimStage) -> None:
    client, broker = claims.stage.opened()
    properties = amqp.BasicProperties(headers=Table.of({"x": "y"}))
    for method in (DELIVER, amqp.BasicGetOk(1, False, "e", "k", 0)):
        broker.content(method, b"body", properties=properties)
        message = client.expect_content(type(method))
        assert (message.method, message.body, message.header.properties) == (method, b"body", properties)
    assert claims.store.asked == []


def test_the_order_of_a_channel_stays_and_others_do_not_wait(claims: ClaimStage) -> None:
    client, broker = claims.stage.opened(2)
    claims.store.gate.clear()
    broker.content(DELIVER, BODY, properties=refer(claims))
    broker.content(DELIVER, b"second")
    broker.say(amqp.BasicAck(5), 1)
    broker.content(DELIVER, b"other", channel=2)
    assert client.expect_content(amqp.BasicDeliver, 2).body == b"other"
    claims.store.gate.set()
    assert client.expect_content(amqp.BasicDeliver).body == LARGE
    assert client.expect_content(amqp.BasicDeliver).body == b"second"
    assert client.expect(amqp.BasicAck, 1) == amqp.BasicAck(5)


@pytest.mark.parametrize("no_ack", [False, True])
@pytest.mark.parametrize("wrong", ["changed", "missing", "other vhost", "forged"])
def test_a_body_that_is_lost_is_not_delivered(claims: ClaimStage, wrong: str, no_ack: bool) -> None:
    client, broker = claims.stage.opened()
    consuming(client, broker, no_ack=no_ack)
    properties = refer(claims, b"!" * len(LARGE)) if wrong == "changed" else refer(claims)
    if wrong == "missing":
        claims.store.objects.clear()
    elif wrong == "other vhost":
        properties = refer(claims, vhost="other")
    elif wrong == "forged":
        properties = amqp.BasicProperties(headers=Table.of({CLAIM: "1;x;5;y;0;z"}))
    broker.content(DELIVER, BODY, properties=properties)
    broker.content(DELIVER, b"next")
    assert client.expect_content(amqp.BasicDeliver).body == b"next"
    if not no_ack:
        assert broker.expect(amqp.BasicReject, 1) == amqp.BasicReject(1, requeue=False)


def test_a_channel_is_closed_behind_the_message_that_its_client_publishes(claims: ClaimStage) -> None:
    client, broker = claims.stage.opened(2)
    properties = refer(claims)
    claims.store.objects.clear()
    whole = content_frames(1, amqp.BasicPublish(routing_key="k"), amqp.BasicProperties(), b"a body", 4096)
    client.sock.sendall(whole[:-8])
    assert broker.expect(amqp.BasicPublish, 1)
    broker.content(amqp.BasicGetOk(1, False, "e", "k", 0), BODY, properties=properties)
    while claims.store.asked != ["read"]:
        broker.say(amqp.BasicAck(1), 2)
        client.expect(amqp.BasicAck, 2)
    client.sock.sendall(whole[-8:])
    assert broker.frame().payload[:2] == b"\0\x3c"
    assert broker.frame().payload == b"a body"
    assert broker.expect(amqp.ChannelClose, 1).reply_code == 404


def test_a_lost_body_is_rejected_behind_the_message_that_its_client_publishes(claims: ClaimStage) -> None:
    client, broker = claims.stage.opened(2)
    consuming(client, broker)
    properties = refer(claims)
    claims.store.objects.clear()
    whole = content_frames(1, amqp.BasicPublish(routing_key="k"), amqp.BasicProperties(), b"a body", 4096)
    client.sock.sendall(whole[:-8])
    assert broker.expect(amqp.BasicPublish, 1)
    broker.content(DELIVER, BODY, properties=properties)
    broker.content(amqp.BasicDeliver("tag", 2, False, "e", "k"), b"next")
    while claims.store.asked != ["read"]:
        broker.say(amqp.BasicAck(1), 2)
        client.expect(amqp.BasicAck, 2)
    for _ in range(20):
        broker.say(amqp.BasicAck(1), 2)
        client.expect(amqp.BasicAck, 2)
    client.sock.sendall(whole[-8:])
    assert broker.frame().payload[:2] == b"\0\x3c"
    assert broker.frame().payload == b"a body"
    assert broker.expect(amqp.BasicReject, 1) == amqp.BasicReject(1, requeue=False)
    assert client.expect_content(amqp.BasicDeliver).body == b"next"


def test_a_lost_body_is_got_once(claims: ClaimStage) -> None:
    """Whoever gets messages would get it again and again, and lose a channel each time."""
    client, broker = claims.stage.opened()
    client.say(amqp.BasicGet(queue="q"), 1)
    broker.expect(amqp.BasicGet, 1)
    properties = amqp.BasicProperties(headers=Table.of({CLAIM: "1;x;5;y;0;z"}))
    broker.content(amqp.BasicGetOk(1, False, "e", "k", 0), BODY, properties=properties)
    assert broker.expect(amqp.BasicReject, 1) == amqp.BasicReject(1, requeue=False)
    assert broker.expect(amqp.ChannelClose, 1).reply_code == 404
    broker.say(amqp.ChannelCloseOk(), 1)
    assert client.expect(amqp.ChannelClose, 1).reply_code == 404


@pytest.mark.parametrize("of_all", [amqp.BasicAck(0, True), amqp.BasicNack(0, True, False)])
def test_an_ack_of_all_means_what_the_client_has(
    claims: ClaimStage, of_all: amqp.BasicAck | amqp.BasicNack
) -> None:
    """Not the message whose body is on its way, nor what has come behind it."""
    client, broker = claims.stage.opened(2)
    consuming(client, broker)
    for number in (1, 2):
        broker.content(amqp.BasicDeliver("tag", number, False, "e", "k"), b"small")
        client.expect_content(amqp.BasicDeliver)
    claims.store.gate.clear()
    broker.content(amqp.BasicDeliver("tag", 3, False, "e", "k"), BODY, properties=refer(claims))
    broker.content(amqp.BasicDeliver("tag", 4, False, "e", "k"), b"behind")
    broker.say(amqp.BasicAck(1), 2)
    client.expect(amqp.BasicAck, 2)
    client.say(of_all, 1)
    assert broker.expect(type(of_all), 1) == attrs.evolve(of_all, delivery_tag=2)
    client.say(of_all, 1)
    client.say(amqp.BasicQos(prefetch_count=9), 1)
    assert broker.expect(amqp.BasicQos, 1), "of nothing the broker hears nothing"
    claims.store.gate.set()
    assert client.expect_content(amqp.BasicDeliver).body == LARGE
    assert client.expect_content(amqp.BasicDeliver).body == b"behind"
    client.say(of_all, 1)
    assert broker.expect(type(of_all), 1) == of_all


@pytest.mark.parametrize("small", [1, 2])
def test_an_ack_of_all_beyond_a_limit_means_what_the_client_has(claims: ClaimStage, small: int) -> None:
    """Of two small ones the second waits beyond the limit, in front of the message whose body comes."""
    client, broker = claims.stage.opened(2)
    client.say(amqp.BasicQos(prefetch_count=1, global_=True), 1)
    broker.expect(amqp.BasicQos, 1)
    broker.say(amqp.BasicQosOk(), 1)
    client.expect(amqp.BasicQosOk, 1)
    for tag in ("tag", "other"):
        client.say(amqp.BasicConsume(queue="q", consumer_tag=tag), 1)
        while not isinstance(method := broker.hear()[1], amqp.BasicConsume):
            broker.say(amqp.BasicQosOk(), 1)
        broker.say(amqp.BasicConsumeOk(method.consumer_tag), 1)
        client.expect(amqp.BasicConsumeOk, 1)
    for number in range(1, small + 1):
        tag = ("tag", "other")[number - 1]
        broker.content(amqp.BasicDeliver(tag, number, False, "e", "k"), b"small")
    client.expect_content(amqp.BasicDeliver)
    claims.store.gate.clear()
    broker.content(amqp.BasicDeliver("other", small + 1, False, "e", "k"), BODY, properties=refer(claims))
    broker.say(amqp.BasicAck(1), 2)
    client.expect(amqp.BasicAck, 2)
    client.say(amqp.BasicAck(0, multiple=True), 1)
    while not isinstance(method := broker.hear()[1], amqp.BasicAck):
        pass
    assert method == amqp.BasicAck(1, multiple=True)
    claims.store.gate.set()


@pytest.mark.parametrize("tag", [1, 2])
@pytest.mark.parametrize("kind", [amqp.BasicAck, amqp.BasicReject])
def test_what_the_client_has_not_seen_it_cannot_settle(
    claims: ClaimStage, kind: type[amqp.BasicAck | amqp.BasicReject], tag: int
) -> None:
    client, broker = claims.stage.opened(2)
    consuming(client, broker)
    claims.store.gate.clear()
    broker.content(DELIVER, BODY, properties=refer(claims))
    broker.say(amqp.BasicAck(1), 2)
    client.expect(amqp.BasicAck, 2)
    client.say(kind(tag), 1)
    assert broker.expect(amqp.ChannelClose, 1).reply_code == 406
    broker.say(amqp.ChannelCloseOk(), 1)
    claims.store.gate.set()
    assert (
        client.expect(amqp.ChannelClose, 1).reply_text == f"PRECONDITION_FAILED - unknown delivery tag {tag}"
    )


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_channel_that_closes_gets_no_body_and_rejects_nothing(claims: ClaimStage, is_lost: bool) -> None:
    client, broker = claims.stage.opened()
    consuming(client, broker)
    claims.store.gate.clear()
    broker.content(DELIVER, BODY, properties=refer(claims))
    if is_lost:
        claims.store.objects.clear()
    client.say(amqp.ChannelClose(200, "bye", 0, 0), 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    claims.store.gate.set()
    client.expect(amqp.ChannelCloseOk, 1)
    client.say(amqp.ChannelOpen(), 1)
    broker.expect(amqp.ChannelOpen, 1)


@pytest.mark.parametrize(("fails", "code"), [(False, 404), (True, 406)])
def test_what_was_asked_for_and_is_not_there_closes_the_channel(
    claims: ClaimStage, fails: bool, code: int
) -> None:
    client, broker = claims.stage.opened()
    properties = refer(claims)
    if fails:
        claims.store.fails = {"read"}
    else:
        claims.store.objects.clear()
    broker.content(amqp.BasicGetOk(1, False, "e", "k", 0), BODY, properties=properties)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    close = client.expect(amqp.ChannelClose, 1)
    assert (close.reply_code, close.class_id, close.method_id) == (code, 60, 71)


@pytest.mark.parametrize("no_ack", [False, True])
def test_a_message_of_basic_get_that_is_lost_keeps_nobody_from_the_queue(
    claims: ClaimStage, no_ack: bool
) -> None:
    """Anybody who may publish can make such a reference."""
    client, broker = claims.stage.opened()
    properties = amqp.BasicProperties(headers=Table.of({CLAIM: "1;x;5;y;0;z"}))
    client.say(amqp.BasicGet(queue="q", no_ack=no_ack), 1)
    broker.expect(amqp.BasicGet, 1)
    broker.content(amqp.BasicGetOk(1, False, "e", "k", 0), BODY, properties=properties)
    if not no_ack:
        assert broker.expect(amqp.BasicReject, 1) == amqp.BasicReject(1, requeue=False)
    assert broker.expect(amqp.ChannelClose, 1).reply_code == 404


def test_a_store_that_does_not_answer_closes_the_consumers_channel(claims: ClaimStage) -> None:
    """The broker has the message again."""
    client, broker = claims.stage.opened()
    consuming(client, broker)
    claims.store.fails = {"read"}
    broker.content(DELIVER, BODY, properties=refer(claims))
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    assert client.expect(amqp.ChannelClose, 1).reply_code == 406


def test_small_frames_for_the_client(claims: ClaimStage) -> None:
    client, broker = claims.stage.opened(tune_ok=amqp.ConnectionTuneOk(2047, 4096, 0))
    broker.content(DELIVER, BODY, properties=refer(claims))
    assert client.expect_content(amqp.BasicDeliver).body == LARGE


def test_true_sizes_are_counted(claims: ClaimStage) -> None:
    client, broker = claims.stage.opened()
    broker.content(DELIVER, BODY, properties=refer(claims))
    client.expect_content(amqp.BasicDeliver)
    (session,) = claims.stage.running.gateway.sessions.values()
    assert session.relay.down.body_bytes == len(LARGE)


# -- together with what else the policy gives back -------------------------------------------------------


@pytest.fixture
def delaying(make_stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch) -> ClaimStage:
    return make(make_stage, monkeypatch, items="  delayedExchanges: [{exchange: later}]\n")


def out_of_ladder(number: int) -> Table:
    """The headers of a message that was delayed, with a header that the publisher said."""
    death = {"queue": end_of("later"), "reason": "expired", "exchange": "amqpgate.delay.due", "count": 1}
    return Table.of(
        {"k": 1, "x-delay": -100, TARGET: "later", "amqpgate-delay-id": number, "x-death": [death]}
    )


@pytest.mark.parametrize(
    "method", [amqp.BasicDeliver("tag", 1, False, DONE, "k"), amqp.BasicGetOk(1, False, DONE, "k", 0)]
)
def test_one_that_was_delayed_shows_its_own_exchange(
    delaying: ClaimStage, method: amqp.BasicDeliver | amqp.BasicGetOk
) -> None:
    """And is marked where it comes twice."""
    client, broker = delaying.stage.opened()
    consuming(client, broker)
    marks = []
    for _ in range(2):
        if isinstance(method, amqp.BasicGetOk):
            client.say(amqp.BasicGet(queue="q"), 1)
            broker.expect(amqp.BasicGet, 1)
        number = 1 << 40 | method.INDEX
        broker.content(method, BODY, properties=refer(delaying, headers=out_of_ladder(number)))
        message = client.expect_content(type(method))
        assert isinstance(message.method, amqp.BasicDeliver | amqp.BasicGetOk)
        assert (message.method.exchange, message.method.routing_key) == ("later", "k")
        assert message.header.properties == amqp.BasicProperties(
            type="t", headers=Table((("k", Field("I", 1)), ("x-delay", Field("I", -100))))
        )
        assert message.body == LARGE
        marks.append(message.method.redelivered)
    assert marks == [False, True]


def test_deaths_count_on(claims: ClaimStage) -> None:
    client, broker = claims.stage.opened()
    death = {"queue": "retry", "reason": "rejected", "count": 2}
    headers = Table.of({deaths.SAVED: {"x-death": [death]}, "x-death": [{**death, "count": 1}]})
    broker.content(DELIVER, BODY, properties=refer(claims, headers=headers))
    message = client.expect_content(amqp.BasicDeliver)
    assert isinstance(message.header.properties, amqp.BasicProperties)
    assert message.header.properties.headers is not None
    assert message.header.properties.headers.to_python() == {"x-death": [{**death, "count": 3}]}
    assert message.body == LARGE


@pytest.mark.usefixtures("uncollected")
def test_bodies_that_came_and_went_are_no_cycles(claims: ClaimStage) -> None:
    """Nor are the sessions that had them. Python may not look for those for hours."""
    stage = claims.stage

    def play() -> None:
        client, broker = stage.opened()
        client.publish(LARGE, "q")
        sent = broker.expect_content(amqp.BasicPublish)
        broker.content(DELIVER, sent.body, properties=sent.header.properties)
        assert client.expect_content(amqp.BasicDeliver).body == LARGE
        client.reset()
        broker.expect(amqp.ConnectionClose)
        broker.say(amqp.ConnectionCloseOk())
        stage.forget()

    # Where the last session has gone, the gateway looks for cycles itself.
    for _ in range(8):
        stage.opened()
    play()
    # A thread of the store keeps what it did last.
    kinds = ("Session", "PublishClaim", "Restoring")
    before = in_memory()
    for _ in range(4):
        play()
    eventually(lambda: max(in_memory()[kind] - before[kind] for kind in kinds) < 2)
