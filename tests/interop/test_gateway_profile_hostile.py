"""Hostile clients of a gateway with a compatibility policy, every item on, before RabbitMQ 4."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from amqpgate.gateway.session.claim_reference import CLAIM
from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Field, Table
from tests.interop.test_gateway_claims import CONFIG, PROFILE, connected
from tests.interop.test_gateway_claims import environment as environment
from tests.interop.test_gateway_claims import swift as swift
from tests.support.inprocess import InProcess, eventually, serving
from tests.support.rabbitmq import RabbitMQ
from tests.support.swift import Swift
from tests.support.talker import Talker
from tests.support.versions import SPOKEN, open_up

pytestmark = pytest.mark.slow

ITEMS = """  delayedExchanges: [{exchange: {prefix: later}}]
  deliveryLimits: [{limit: 5}]
  nacks: count
  quorumQueues: [{queue: {prefix: held}}]
"""


@pytest.fixture(scope="module")
def gate(
    rabbitmq4: RabbitMQ, swift: Swift, environment: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "policies").mkdir()
    (folder / "policies" / "three.yaml").write_text(PROFILE.format(store=swift.port) + ITEMS)
    with serving(CONFIG.format(port=rabbitmq4.port, connections="own"), folder=folder) as running:
        yield running


@pytest.fixture
def channel(gate: InProcess) -> Iterator[BlockingChannel]:
    connection = connected(gate.port())
    try:
        yield connection.channel()
    finally:
        if connection.is_open:
            connection.close()


@pytest.fixture(autouse=True)
def others_go_on(gate: InProcess) -> Iterator[None]:
    """Somebody else's session sees nothing of it all."""
    with connected(gate.port()) as connection:
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.confirm_delivery()
        yield
        channel.basic_publish("", queue, b"still here")
        assert channel.basic_get(queue, auto_ack=True)[2] == b"still here"


def delaying(channel: BlockingChannel, exchange: str) -> str:
    """A queue that is bound to an exchange that delays."""
    channel.exchange_declare(
        exchange, "x-delayed-message", durable=True, arguments={"x-delayed-type": "topic"}
    )
    queue: str = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, exchange, "#")
    return queue


def said(talker: Talker, publish: amqp.BasicPublish, properties: amqp.BasicProperties, body: bytes) -> None:
    header = encode_header(ContentHeader(amqp.BasicProperties.CLASS_ID, len(body), properties))
    talker.raw(method_frame(1, publish) + encode_frame(2, 1, header) + encode_frame(3, 1, body))


@pytest.mark.parametrize(
    "delay",
    [
        Field("l", 2**63 - 1),
        Field("l", -(2**63)),
        Field("I", -1),
        Field("l", 2**32),
        Field("d", 1e300),
        Field("f", -0.5),
        Field("S", "9" * 4096),
        Field("S", "-5"),
        Field("t", True),
        Field("V", None),
        Field("F", Table.of({"x-delay": 1})),
        Field("A", (Field("I", 5),)),
    ],
)
def test_a_delay_that_is_none_is_no_delay(gate: InProcess, channel: BlockingChannel, delay: Field) -> None:
    exchange = f"later.{secrets.token_hex(4)}"
    queue = delaying(channel, exchange)
    with gate.dial() as talker:
        open_up(talker, SPOKEN["0-9-1"])
        talker.say(amqp.ChannelOpen(), 1)
        talker.expect(amqp.ChannelOpenOk, 1)
        talker.say(amqp.ConfirmSelect(), 1)
        talker.expect(amqp.ConfirmSelectOk, 1)
        headers = Table((("x-delay", delay),))
        said(
            talker,
            amqp.BasicPublish(exchange=exchange, routing_key="k"),
            amqp.BasicProperties(headers=headers),
            b"b",
        )
        assert talker.expect(amqp.BasicAck, 1).delivery_tag == 1
    assert channel.basic_get(queue, auto_ack=True)[2] == b"b"
    channel.exchange_delete(exchange)


@pytest.mark.parametrize("delay", ["soon", "", "9" * 5000, "1e3", "٣"])
def test_a_text_that_is_no_number_costs_the_channel(
    channel: BlockingChannel, gate: InProcess, delay: str
) -> None:
    exchange = f"later.{secrets.token_hex(4)}"
    delaying(channel, exchange)
    with connected(gate.port()) as connection:
        mine = connection.channel()
        mine.confirm_delivery()
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="x-delay"):
            mine.basic_publish(exchange, "k", b"b", pika.BasicProperties(headers={"x-delay": delay}))
        assert connection.is_open
    channel.exchange_delete(exchange)


@pytest.mark.parametrize("tail", ["", "\N{LATIN SMALL LETTER E WITH ACUTE}" * 100])
def test_names_of_255_bytes_delay(channel: BlockingChannel, tail: str) -> None:
    name = f"later.{secrets.token_hex(4)}{tail}"
    name += "x" * (255 - len(name.encode()))
    queue = delaying(channel, name)
    channel.confirm_delivery()
    headers = {"x-delay": 50}
    channel.basic_publish(name, "k" * 255, b"b", pika.BasicProperties(headers=headers))
    for method, properties, body in channel.consume(queue, inactivity_timeout=30):
        assert body == b"b"
        assert (method.exchange, method.routing_key) == (name, "k" * 255)
        assert properties.headers == {"x-delay": -50}
        break
    channel.cancel()
    channel.exchange_delete(name)


def test_an_exchange_that_is_not_there_leaves_no_queue(
    gate: InProcess, rabbitmq4: RabbitMQ, channel: BlockingChannel
) -> None:
    """Or whoever may publish would fill the broker with quorum queues."""
    name = f"later.{secrets.token_hex(4)}"
    with connected(gate.port()) as connection:
        mine = connection.channel()
        mine.confirm_delivery()
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
            mine.basic_publish(name, "k", b"b", pika.BasicProperties(headers={"x-delay": 50}))
        assert closed.value.reply_code == 404
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        channel.queue_declare(f"amqpgate.delay.to.{name}", passive=True)
    assert closed.value.reply_code == 404


def test_channels_that_delay_at_once_in_a_virtual_host_without_a_ladder(
    gate: InProcess, rabbitmq4: RabbitMQ
) -> None:
    """RabbitMQ does what two channels say in any order."""
    for _ in range(2):
        vhost, count = f"later-{secrets.token_hex(4)}", 5
        rabbitmq4.fresh_vhost(vhost)
        with gate.dial() as talker:
            talker.open(vhost=vhost, channels=count)
            talker.ask(amqp.ExchangeDeclare(exchange="later", type="fanout"), amqp.ExchangeDeclareOk, 1)
            talker.ask(amqp.QueueDeclare(queue="q", durable=True), amqp.QueueDeclareOk, 1)
            talker.ask(amqp.QueueBind(queue="q", exchange="later"), amqp.QueueBindOk, 1)
            for channel in range(1, count + 1):
                talker.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, channel)
            properties = amqp.BasicProperties(headers=Table.of({"x-delay": 1}))
            for channel in range(1, count + 1):
                talker.publish(b"b", "k", exchange="later", properties=properties, channel=channel)
            heard = [talker.hear() for _ in range(count)]
            assert sorted(heard, key=lambda one: one[0]) == [
                (channel, amqp.BasicAck(1)) for channel in range(1, count + 1)
            ]

            def came(talker: Talker = talker, count: int = count) -> bool:
                told = talker.ask(amqp.QueueDeclare(queue="q", passive=True), amqp.QueueDeclareOk, 1)
                return told.message_count == count

            eventually(came)


def test_many_exchanges_that_delay(channel: BlockingChannel) -> None:
    """More than a session remembers; each delays."""
    prefix, count = f"later.{secrets.token_hex(4)}", 300
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.confirm_delivery()
    for number in range(count):
        exchange = f"{prefix}.{number}"
        channel.exchange_declare(exchange, "x-delayed-message", arguments={"x-delayed-type": "fanout"})
        channel.queue_bind(queue, exchange)
    for number in range(count):
        properties = pika.BasicProperties(headers={"x-delay": 1})
        channel.basic_publish(f"{prefix}.{number}", "k", b"%d" % number, properties)
    got = []
    for _, _, body in channel.consume(queue, auto_ack=True, inactivity_timeout=60):
        assert body is not None
        got.append(int(body))
        if len(got) == count:
            break
    assert sorted(got) == list(range(count))
    channel.cancel()
    for number in range(count):
        channel.exchange_delete(f"{prefix}.{number}")
        channel.queue_delete(f"amqpgate.delay.to.{prefix}.{number}")


@pytest.mark.parametrize(
    "claim",
    [
        "1;../../etc/passwd;5;00;0;00",
        f"1;{'0' * 16}/{'0' * 32};5;{'0' * 64};0;{'0' * 64}",
        "http://127.0.0.1/",
        ";" * 100_000,
        b"\xff\xfe",
        5,
        {"a": 1},
    ],
)
def test_a_reference_that_a_client_makes_up_reads_nothing(channel: BlockingChannel, claim: object) -> None:
    """It is in the dead-letter queue, and what is behind it goes on."""
    dead = channel.queue_declare("", exclusive=True).method.queue
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = channel.queue_declare("", exclusive=True, arguments=arguments).method.queue
    channel.confirm_delivery()
    properties = pika.BasicProperties(headers={CLAIM: claim})
    channel.basic_publish("", queue, b"made up", properties)
    channel.basic_publish("", queue, b"behind")
    for method, _, body in channel.consume(queue, inactivity_timeout=60):
        assert body == b"behind"
        channel.basic_ack(method.delivery_tag)
        break
    channel.cancel()
    # It is on its way there when its consumer has the next one.
    eventually(lambda: channel.queue_declare(dead, passive=True).method.message_count == 1)


def test_headers_of_the_ladder_that_a_client_makes_up(channel: BlockingChannel) -> None:
    """They show its consumer nothing but what it said of itself; the exchange is the true one."""
    queue = channel.queue_declare("", exclusive=True).method.queue
    headers = {
        "amqpgate-delay-to": "somebody.elses",
        "amqpgate-delay-id": 2**62,
        "amqpgate-delay-expiration": "x" * 300,
        "amqpgate-delay-x-death": [{"count": -(2**62)}],
        "amqpgate-delay-07": True,
        "x-death": [{"queue": 5, "count": "many", "reason": []}],
        "x-amqpgate-death": {"x-death": [{"count": 2**62}] * 500},
    }
    channel.basic_publish("", queue, b"b", pika.BasicProperties(headers=headers))
    for method, _, body in channel.consume(queue, auto_ack=True, inactivity_timeout=60):
        assert (method.exchange, method.redelivered, body) == ("", False, b"b")
        break
    channel.cancel()


@pytest.mark.parametrize("limit", [-1, -(2**62), 2**62, "5", [], {}])
def test_delivery_limits_are_the_brokers_to_judge(gate: InProcess, limit: object) -> None:
    name = f"limited.{secrets.token_hex(4)}"
    with connected(gate.port()) as connection:
        channel = connection.channel()
        arguments = {"x-queue-type": "quorum", "x-delivery-limit": limit}
        code = 0
        try:
            channel.queue_declare(name, durable=True, arguments=arguments)
        except pika.exceptions.ChannelClosedByBroker as closed:
            code = closed.reply_code
        assert code in (0, 406)
        assert connection.is_open
        connection.channel().queue_delete(name)


def test_a_flood_of_limits(gate: InProcess) -> None:
    """In both senses, without a wait, over two consumers; the last one holds."""
    queue = f"held.{secrets.token_hex(4)}"
    with gate.dial() as talker:
        open_up(talker, SPOKEN["0-9-1"])
        talker.say(amqp.ChannelOpen(), 1)
        talker.expect(amqp.ChannelOpenOk, 1)
        talker.say(amqp.QueueDeclare(queue=queue, durable=True), 1)
        talker.expect(amqp.QueueDeclareOk, 1)
        for number in range(6):
            said(talker, amqp.BasicPublish(routing_key=queue), amqp.BasicProperties(), b"%d" % number)
        for tag in ("c", "d"):
            talker.say(amqp.BasicConsume(queue=queue, consumer_tag=tag), 1)
        count = 5000
        for number in range(count):
            talker.say(amqp.BasicQos(prefetch_count=1 + number % 7, global_=number % 3 == 0), 1)
        talker.say(amqp.QueueDelete(queue=queue), 1)
        answers = 0
        while not isinstance(method := talker.hear()[1], amqp.QueueDeleteOk):
            if isinstance(method, amqp.BasicDeliver):
                talker.content_of(method)
            answers += isinstance(method, amqp.BasicQosOk)
        assert answers == count
