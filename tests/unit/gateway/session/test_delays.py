"""Delayed messages of a session; client and broker are both the test itself."""

from __future__ import annotations

import time
from collections.abc import Callable

import attrs
import pytest

from amqpgate.gateway.session.channel_ladder import MOST_ENDS, ChannelLadder
from amqpgate.gateway.session.delay_ladder import ANSWERED, DONE, TARGET, end, end_of, foot, rung, way_to
from amqpgate.gateway.session.delays import MOST_EXCHANGES, Delays
from amqpgate.gateway.session.observer import Sent
from amqpgate.gateway.session.publish import PublishHandler
from amqpgate.gateway.session.session import Session
from amqpgate.policy import Source, build
from amqpgate.wire.dialects import RABBITMQ_0_9_1, STANDARD_0_9
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Field, Table
from tests.support.frames import content_frames
from tests.support.inprocess import eventually
from tests.support.metrics import sample_value
from tests.support.talker import Message, Talker, relayed
from tests.unit.gateway.conftest import Opens, Stage
from tests.unit.gateway.pool.pooled import pooled
from tests.unit.policy.kinds.test_compatibility import document

MakeStage = Callable[..., Stage]

LATER = document("three", "delayedExchanges: [{exchange: {prefix: later}}]")
NAMES = """
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: names}
spec: {subjects: [{}], names: {both: {prefix: later.}}}
---
"""
#: Rules on headers that the data path asks.
ACCESS = """
---
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: rules}
spec:
  subjects: [{}]
  onDeny: {publish: nack}
  rules:
  - {id: small, effect: allow, operations: [basic.publish], properties: {headers: {deny: [secret]}}}
"""
DELAYED = Table.of({"x-delayed-type": "topic", "k": 1})


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    return make_stage(policies=LATER)


def hears(broker: Talker, *methods: Method, channel: int = 1) -> None:
    """The broker gets exactly these."""
    for method in methods:
        assert broker.expect(type(method), channel) == method


def publishes(
    client: Talker, delay: object = 100, exchange: str = "later", channel: int = 1, **said: object
) -> None:
    properties = amqp.BasicProperties(headers=Table.of({"x-delay": delay, **said}))
    client.publish(b"body", "a.b", exchange=exchange, properties=properties, channel=channel)


def published(broker: Talker, channel: int = 1) -> tuple[str, str, dict[str, object]]:
    """Exchange, routing key and headers of the next message."""
    return shown(broker.expect_content(amqp.BasicPublish, channel))


def shown(message: Message) -> tuple[str, str, dict[str, object]]:
    method = message.method
    assert isinstance(method, amqp.BasicPublish | amqp.BasicDeliver | amqp.BasicGetOk)
    properties = message.header.properties
    assert isinstance(properties, amqp.BasicProperties)
    headers = properties.headers
    return method.exchange, method.routing_key, {} if headers is None else dict(headers.to_python())


def ladder(highest: int = 7, exchange: str = "later") -> list[Method]:
    """All that a session declares before its first message."""
    rungs = [method for k in range(6, highest + 1) for method in rung(k)]
    return [*foot(), *rungs, ANSWERED, way_to(exchange), *end(exchange), ANSWERED]


def test_an_exchange_is_declared_with_the_way_to_it(stage: Stage) -> None:
    client, broker = stage.opened()
    asked = amqp.ExchangeDeclare(exchange="later", type="x-delayed-message", durable=True, arguments=DELAYED)
    client.say(asked, 1)
    given = attrs.evolve(asked, type="topic", arguments=Table.of({"k": 1}))
    hears(broker, *foot(), ANSWERED, given, way_to("later"))
    broker.say(amqp.ExchangeDeclareOk(), 1)
    client.expect(amqp.ExchangeDeclareOk, 1)
    # Again, for somebody may have deleted it; what has no part in that is there.
    client.say(asked, 1)
    hears(broker, given, way_to("later"))
    labels = {"policy": "three", "item": "delayed-exchange"}
    registry = stage.running.gateway.metrics.registry
    assert sample_value(registry, "amqpgate_compatibility_changes_total", labels) == 2


@pytest.mark.parametrize(
    "asked",
    [
        amqp.ExchangeDeclare(exchange="other", type="x-delayed-message", arguments=DELAYED),
        amqp.ExchangeDeclare(exchange="later", type="topic"),
        amqp.ExchangeDeclare(exchange="later", type="x-delayed-message", passive=True),
        amqp.ExchangeDelete(exchange="later"),
    ],
)
def test_all_else_is_the_clients(stage: Stage, asked: Method) -> None:
    client, broker = stage.opened()
    client.say(asked, 1)
    hears(broker, asked)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "'x-delayed-type' must be an existing exchange type"),
        ({"x-delayed-type": 5}, "'x-delayed-type' must be an existing exchange type"),
        (
            {"x-delayed-type": "x-delayed-message"},
            "'x-delayed-message' can't be used for 'x-delayed-type'",
        ),
    ],
)
def test_a_type_that_the_plugin_refuses(stage: Stage, arguments: dict[str, object], text: str) -> None:
    client, broker = stage.opened()
    client.say(
        amqp.ExchangeDeclare(exchange="later", type="x-delayed-message", arguments=Table.of(arguments)), 1
    )
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    close = client.expect(amqp.ChannelClose, 1)
    assert (close.reply_code, close.reply_text) == (406, f"PRECONDITION_FAILED - Invalid argument, {text}")


def test_a_message_goes_behind_what_is_missing_of_the_ladder(stage: Stage) -> None:
    client, broker = stage.opened(channels=2)
    relayed(client, broker, amqp.ConfirmSelect(), amqp.ConfirmSelectOk(), 1)
    publishes(client, CC=["c"])
    hears(broker, *ladder())
    exchange, key, headers = published(broker)
    number = headers.pop("amqpgate-delay-id")
    assert isinstance(number, int)
    at = headers.pop("amqpgate-delay-at")
    assert isinstance(at, int)
    assert 0 <= time.time() - at / 1000 < 60
    assert (exchange, key, headers) == (
        "amqpgate.delay.07",
        "a.b",
        {"CC": ["c"], "x-delay": -100, TARGET: "later", "amqpgate-delay-07": True},
    )
    broker.say(amqp.BasicAck(1), 1)
    assert client.expect(amqp.BasicAck, 1).delivery_tag == 1
    # The next one needs nothing more, a longer one the rungs above, another exchange its own end.
    publishes(client, 65)
    assert published(broker)[0] == "amqpgate.delay.07"
    publishes(client, 300)
    hears(broker, *rung(8), ANSWERED)
    assert published(broker)[0] == "amqpgate.delay.08"
    publishes(client, 64, "later.2")
    hears(broker, way_to("later.2"), *end("later.2"), ANSWERED)
    assert published(broker)[0] == "amqpgate.delay.06"


@pytest.mark.parametrize("delay", [0, -5, 2**32, "-1", None, True])
def test_a_message_that_the_plugin_does_not_delay(stage: Stage, delay: object) -> None:
    client, broker = stage.opened()
    publishes(client, delay)
    assert published(broker) == ("later", "a.b", {"x-delay": delay})


def test_messages_that_say_no_delay_are_not_shown(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    shown_to_it = []
    hold = PublishHandler.hold

    def counted(handler: PublishHandler, channel: int, method: amqp.BasicPublish, *rest: object) -> None:
        shown_to_it.append(method.exchange)
        hold(handler, channel, method, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(PublishHandler, "hold", counted)
    client, broker = stage.opened()
    for _ in range(3):
        client.publish(b"body", "a.b", exchange="later")
        assert published(broker) == ("later", "a.b", {})
        publishes(client, 100, "another")
        assert published(broker) == ("another", "a.b", {"x-delay": 100})
    publishes(client, -5)
    published(broker)
    assert shown_to_it == ["later"]


def test_a_text_that_is_no_number_costs_the_channel(stage: Stage) -> None:
    client, broker = stage.opened()
    publishes(client, "soon")
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    close = client.expect(amqp.ChannelClose, 1)
    assert (close.reply_code, close.class_id, close.method_id) == (406, 60, 40)
    assert "x-delay" in close.reply_text


def test_each_channel_declares_the_ladder_until_the_broker_has_done_it(stage: Stage) -> None:
    """RabbitMQ does what two channels say in any order."""
    client, broker = stage.opened(channels=3)
    for channel in (1, 2):
        publishes(client, channel=channel)
        hears(broker, *ladder(), channel=channel)
        assert published(broker, channel)[0] == "amqpgate.delay.07"
    # What the channel itself has said comes before what it says next.
    publishes(client, 300)
    hears(broker, *rung(8), ANSWERED)
    published(broker)
    sink = amqp.QueueDeclareOk(ANSWERED.queue, 0, 0)
    for channel, answers in ((2, 2), (1, 2)):
        for _ in range(answers):
            broker.say(sink, channel)
    # The client hears none of these.
    relayed(client, broker, amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk("q", 0, 0), 3)
    publishes(client, channel=3)
    assert published(broker, 3)[0] == "amqpgate.delay.07"
    # Rung 8 is under way on channel 1.
    publishes(client, 300, channel=3)
    hears(broker, *rung(8), ANSWERED, channel=3)
    published(broker, 3)
    broker.say(sink, 1)
    relayed(client, broker, amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk("q", 0, 0), 1)
    publishes(client, 300, channel=2)
    assert published(broker, 2)[0] == "amqpgate.delay.08"


def test_an_exchange_that_is_not_there_costs_no_ladder(stage: Stage) -> None:
    """Or each such message would have the broker declare all of it anew."""
    client, broker = stage.opened(channels=2)
    publishes(client)
    hears(broker, *ladder())
    published(broker)
    broker.say(amqp.QueueDeclareOk(ANSWERED.queue, 0, 0), 1)
    broker.say(amqp.ChannelClose(404, "NOT_FOUND - no exchange 'later' in vhost '/'", 40, 30), 1)
    assert client.expect(amqp.ChannelClose, 1).reply_code == 404
    client.say(amqp.ChannelCloseOk(), 1)
    broker.expect(amqp.ChannelCloseOk, 1)
    # The rungs are there, and the broker has said so.
    publishes(client, exchange="later.2", channel=2)
    hears(broker, way_to("later.2"), *end("later.2"), ANSWERED, channel=2)
    published(broker, 2)
    broker.say(amqp.QueueDeclareOk(ANSWERED.queue, 0, 0), 2)
    relayed(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), 1)
    publishes(client, exchange="later.3")
    hears(broker, way_to("later.3"), *end("later.3"), ANSWERED)
    published(broker)
    broker.say(amqp.ChannelClose(404, "NOT_FOUND - no exchange 'later.3' in vhost '/'", 40, 30), 1)
    client.expect(amqp.ChannelClose, 1)
    publishes(client, exchange="later.2", channel=2)
    assert published(broker, 2)[0] == "amqpgate.delay.07"


def test_a_queue_that_the_broker_names_is_not_one_of_the_ladder(stage: Stage) -> None:
    client, broker = stage.opened()
    client.say(amqp.QueueDeclare(), 1)
    broker.expect(amqp.QueueDeclare, 1)
    publishes(client)
    hears(broker, *ladder())
    published(broker)
    for name in ("amq.gen-1", ANSWERED.queue, ANSWERED.queue):
        broker.say(amqp.QueueDeclareOk(name, 0, 0), 1)
    assert client.expect(amqp.QueueDeclareOk, 1).queue == "amq.gen-1"
    client.say(amqp.QueueBind(exchange="x"), 1)
    hears(broker, amqp.QueueBind(queue="amq.gen-1", exchange="x", routing_key="amq.gen-1"))


def test_what_the_broker_refused_is_declared_again(stage: Stage) -> None:
    client, broker = stage.opened()
    publishes(client)
    hears(broker, *ladder())
    published(broker)
    broker.say(amqp.ChannelClose(403, "ACCESS_REFUSED - to amqpgate.delay.07", 50, 10), 1)
    assert client.expect(amqp.ChannelClose, 1).reply_code == 403
    client.say(amqp.ChannelCloseOk(), 1)
    broker.expect(amqp.ChannelCloseOk, 1)
    relayed(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), 1)
    publishes(client)
    hears(broker, *ladder())


def test_queues_of_the_ladder_are_not_the_last_that_the_client_declared(stage: Stage) -> None:
    client, broker = stage.opened()
    relayed(client, broker, amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk("q", 0, 0), 1)
    publishes(client)
    hears(broker, *ladder())
    published(broker)
    client.say(amqp.QueueBind(exchange="x"), 1)
    hears(broker, amqp.QueueBind(queue="q", exchange="x", routing_key="q"))


def test_a_channel_that_declared_no_queue_has_no_last_one(stage: Stage) -> None:
    client, broker = stage.opened()
    publishes(client)
    hears(broker, *ladder())
    published(broker)
    client.say(amqp.BasicConsume(), 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    close = client.expect(amqp.ChannelClose, 1)
    assert (close.reply_code, close.reply_text) == (404, "NOT_FOUND - no previously declared queue")


# -- to the client -------------------------------------------------------------------------------------------


def comes(broker: Talker, method: Method, *, number: int = 5, exchange: str = "later", late: int = 0) -> None:
    """A message that was in the ladder, as RabbitMQ 4.3 has it. It left a queue so many seconds ``late``."""
    death = {"queue": end_of(exchange), "reason": "expired", "exchange": "amqpgate.delay.due", "count": 1}
    death["time"] = Field("T", 1000 + late)
    headers = {
        "k": 1,
        "x-delay": -100,
        TARGET: exchange,
        "amqpgate-delay-id": number,
        "amqpgate-delay-at": 1_000_000,
        "amqpgate-delay-07": True,
        "x-death": [death],
        "x-first-death-queue": end_of(exchange),
    }
    broker.content(method, b"body", properties=amqp.BasicProperties(headers=Table.of(headers)))


def consumes(client: Talker, broker: Talker) -> None:
    asked = amqp.BasicConsume(queue="q", consumer_tag="t")
    relayed(client, broker, asked, amqp.BasicConsumeOk("t"), 1)


def deliver(tag: int, exchange: str = DONE) -> Method:
    return amqp.BasicDeliver("t", tag, exchange=exchange, routing_key="a.b")


SEEN = ("later", "a.b", {"k": 1, "x-delay": -100})


def test_a_delivery_is_as_it_was_published(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    held = []
    hold = Delays.hold

    def counted(delays: Delays, channel: int, method: Sent, queue: str | None) -> None:
        held.append(method.exchange)
        hold(delays, channel, method, queue)

    monkeypatch.setattr(Delays, "hold", counted)
    client, broker = stage.opened()
    consumes(client, broker)
    for number in range(3):
        comes(broker, deliver(number + 1), number=number)
        message = client.expect_content(amqp.BasicDeliver)
        assert (shown(message), message.body) == (SEEN, b"body")
        properties = amqp.BasicProperties(headers=Table.of({"x-delay": 1}))
        broker.content(deliver(9, "other"), b"b", properties=properties)
        assert shown(client.expect_content(amqp.BasicDeliver)) == ("other", "a.b", {"x-delay": 1})
    # All others stay on the data path.
    assert held == [DONE] * 3


def test_what_is_got_is_as_it_was_published(stage: Stage) -> None:
    client, broker = stage.opened()
    for number in range(2):
        client.say(amqp.BasicGet(queue="q"), 1)
        broker.expect(amqp.BasicGet, 1)
        comes(broker, amqp.BasicGetOk(1, exchange=DONE, routing_key="a.b"), number=number + 10)
        assert shown(client.expect_content(amqp.BasicGetOk)) == SEEN


def test_a_message_that_comes_twice_from_one_queue_is_marked(stage: Stage) -> None:
    """RabbitMQ dead-letters at least once, and says of neither copy that there is another."""
    client, broker = stage.opened()
    consumes(client, broker)
    marks = []
    for number in (70, 71, 70):
        comes(broker, deliver(1), number=number)
        method = client.expect_content(amqp.BasicDeliver).method
        assert isinstance(method, amqp.BasicDeliver)
        marks.append(method.redelivered)
    assert marks == [False, False, True]
    # Another queue has a copy of its own.
    client.say(amqp.BasicGet(queue="another"), 1)
    broker.expect(amqp.BasicGet, 1)
    comes(broker, amqp.BasicGetOk(1, exchange=DONE, routing_key="a.b"), number=70)
    method = client.expect_content(amqp.BasicGetOk).method
    assert isinstance(method, amqp.BasicGetOk)
    assert not method.redelivered


def test_what_left_the_ladder_late_is_marked(stage: Stage) -> None:
    """A gateway that is gone may have delivered the other copy."""
    client, broker = stage.opened()
    consumes(client, broker)
    for number, late in ((80, 0), (81, 200)):
        comes(broker, deliver(1), number=number, late=late)
        message = client.expect_content(amqp.BasicDeliver)
        assert isinstance(message.method, amqp.BasicDeliver)
        assert (shown(message), message.method.redelivered) == (SEEN, late > 0)
    client.say(amqp.BasicGet(queue="q"), 1)
    broker.expect(amqp.BasicGet, 1)
    comes(broker, amqp.BasicGetOk(1, exchange=DONE, routing_key="a.b"), number=82, late=200)
    method = client.expect_content(amqp.BasicGetOk).method
    assert isinstance(method, amqp.BasicGetOk)
    assert method.redelivered


# -- together with others ------------------------------------------------------------------------------------


def test_names_are_mapped_before_and_after(make_stage: MakeStage) -> None:
    client, broker = make_stage(policies=NAMES + LATER).opened()
    publishes(client, exchange="x")
    hears(broker, *ladder(exchange="later.x"))
    assert published(broker)[2][TARGET] == "later.x"
    consumes_as = amqp.BasicConsume(queue="q", consumer_tag="t")
    client.say(consumes_as, 1)
    hears(broker, attrs.evolve(consumes_as, queue="later.q"))
    broker.say(amqp.BasicConsumeOk("t"), 1)
    client.expect(amqp.BasicConsumeOk, 1)
    comes(broker, deliver(1), exchange="later.x", number=80)
    assert shown(client.expect_content(amqp.BasicDeliver)) == ("x", "a.b", {"k": 1, "x-delay": -100})


def test_access_is_judged_by_what_the_client_says(make_stage: MakeStage) -> None:
    """Also where those that pass the rules would not be shown."""
    client, broker = make_stage(policies=LATER + ACCESS).opened()
    relayed(client, broker, amqp.ConfirmSelect(), amqp.ConfirmSelectOk(), 1)
    publishes(client, secret="s")
    assert client.expect(amqp.BasicNack, 1).delivery_tag == 1
    publishes(client)
    hears(broker, *ladder())
    assert published(broker)[0] == "amqpgate.delay.07"


def test_a_session_that_shares_its_connection_stays_there(make_stage: MakeStage) -> None:
    client, broker = pooled(
        make_stage(policies=LATER, upstream="connections: pooled, pool: {spareChannels: 0}")
    )
    asked = amqp.ExchangeDeclare(exchange="later", type="x-delayed-message", arguments=DELAYED)
    client.say(asked, 1)
    given = attrs.evolve(asked, type="topic", arguments=Table.of({"k": 1}))
    hears(broker, *foot(), ANSWERED, given, way_to("later"))
    broker.say(amqp.ExchangeDeclareOk(), 1)
    client.expect(amqp.ExchangeDeclareOk, 1)
    publishes(client)
    hears(broker, *rung(6), *rung(7), ANSWERED, way_to("later"), *end("later"), ANSWERED)
    assert published(broker)[0] == "amqpgate.delay.07"


def test_an_old_client_delays(make_stage: MakeStage, opens: Opens) -> None:
    client, broker = opens(make_stage(policies=LATER), STANDARD_0_9, RABBITMQ_0_9_1)
    publishes(client)
    hears(broker, *ladder())
    assert published(broker)[0] == "amqpgate.delay.07"


def test_other_policies_hold_from_the_next_message_on(make_stage: MakeStage) -> None:
    stage = make_stage()
    client, broker = stage.opened()
    publishes(client)
    assert published(broker)[0] == "later"
    others = build([Source("p.yaml", LATER.encode())])
    stage.running.call(lambda: stage.running.gateway.use(others))
    publishes(client)
    hears(broker, *ladder())
    assert published(broker)[0] == "amqpgate.delay.07"
    consumes(client, broker)
    comes(broker, deliver(1), number=90)
    assert shown(client.expect_content(amqp.BasicDeliver)) == SEEN
    none = build([Source("p.yaml", document("three").encode())])
    stage.running.call(lambda: stage.running.gateway.use(none))
    publishes(client)
    assert published(broker)[0] == "later"


@pytest.mark.parametrize("after", [document("three"), LATER])
def test_a_message_under_way_ends_as_it_began(stage: Stage, after: str) -> None:
    """Other policies come between its method and its header."""
    client, broker = stage.opened()
    client.say(amqp.BasicGet(queue="q"), 1)
    broker.expect(amqp.BasicGet, 1)
    properties = amqp.BasicProperties(headers=Table.of({TARGET: "later", "x-delay": -100}))
    got = amqp.BasicGetOk(1, exchange=DONE, routing_key="a.b")
    frames = content_frames(1, got, properties, b"body", 131072)
    at = 8 + int.from_bytes(frames[3:7], "big")
    broker.raw(frames[:at])
    (session,) = stage.running.call(lambda: list(stage.running.gateway.sessions.values()))
    eventually(lambda: stage.running.call(lambda: is_holding(session)))
    stage.running.call(lambda: stage.running.gateway.use(build([Source("p.yaml", after.encode())])))
    broker.raw(frames[at:])
    message = client.expect_content(amqp.BasicGetOk)
    assert (shown(message), message.body) == (("later", "a.b", {"x-delay": -100}), b"body")


def is_holding(session: Session) -> bool:
    delays = session.session_policies.delays
    return delays is not None and delays.is_holding


def test_what_is_remembered_of_exchanges_is_bounded() -> None:
    delays, ladder = Delays(None), ChannelLadder()
    for number in range(3 * MOST_EXCHANGES):
        list(delays._missing(ladder, f"later.{number}", 6))
        assert len(ladder.ends) <= MOST_ENDS
        while ladder.highest is not None or ladder.ends:
            delays.answered(ladder.answered())
        assert len(delays._ends) <= MOST_EXCHANGES
