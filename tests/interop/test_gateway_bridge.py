"""Clients of AMQP 0-8, 0-9 and 0-9-1 on upstreams of each: round trips on a RabbitMQ that speaks all three.

What a client of 0-9-1 sees of RabbitMQ directly is what every other one must see in its own words.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import attrs
import pytest

from amqpgate.bridge import Interpreter, interpreter_for
from amqpgate.protocol.frames import encode_frame
from amqpgate.protocol.methods import Role
from amqpgate.wire.generated import v0_8, v0_9
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Field, Table
from tests.support.inprocess import InProcess, serving
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Message, Talker
from tests.support.versions import SPOKEN, Spoken, bye, open_up

SETTINGS = """
listeners: [{{name: main, bind: 127.0.0.1:0, channelFlow: gateway}}]
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}, version: {far}}}]
"""

#: Every type that all old clients read, but for decimals.
HEADERS = Table(
    (
        ("text", Field("S", "x")),
        ("number", Field("I", -7)),
        ("time", Field("T", 1_700_000_000)),
        ("table", Field("F", Table((("deep", Field("I", 1)),)))),
    )
)
EVERY_PROPERTY = (
    *("text/plain", "utf-8", HEADERS, 2, 5, "correlation", "reply", "60000", "message", 1_700_000_000),
    *("type", "guest", "app"),
)


@pytest.fixture(scope="module", params=SPOKEN)
def running(request: pytest.FixtureRequest, rabbitmq: RabbitMQ) -> Iterator[InProcess]:
    """A gateway that speaks this version with the broker."""
    with serving(SETTINGS.format(port=rabbitmq.port, far=request.param)) as running:
        yield running


@attrs.define
class Client:
    """A talker that is told what to say in the canonical model."""

    talker: Talker
    spoken: Spoken
    interpreter: Interpreter = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.interpreter = interpreter_for(self.spoken.dialect)

    def say(self, method: Method, channel: int = 1) -> None:
        self.talker.raw(encode_frame(1, channel, self.interpreter.from_canonical(method)))

    def hear(self, channel: int = 1) -> Method:
        frame = self.talker.frame()
        assert (frame.type, frame.channel) == (1, channel)
        return self.interpreter.to_canonical(frame.payload, Role.SERVER)

    def ask(self, method: Method, channel: int = 1) -> Method:
        self.say(method, channel)
        return self.hear(channel)

    def publish(self, method: amqp.BasicPublish, body: bytes, *properties: object) -> None:
        words = self.spoken.words
        values = [getattr(method, name) for name in method.__match_args__]
        made = words.BasicProperties(*properties)
        self.talker.content(words.BasicPublish(*values), body, properties=made)

    def ask_0(self, method: Method) -> Method:
        """Ask on channel 1 what is answered on channel 0."""
        self.say(method)
        return self.hear(0)

    def message_of(self, queue: str) -> tuple[Method, Message]:
        """The next message of a queue, by basic.get, once it is there."""
        while not isinstance(got := self.ask(amqp.BasicGet(queue=queue)), amqp.BasicGetOk):
            pass
        return got, self.talker.content_of(got)

    def message(self, kind: type[Method]) -> tuple[Method, Message]:
        method = self.hear()
        assert isinstance(method, kind), method
        return method, self.talker.content_of(method)


@pytest.fixture(params=SPOKEN)
def client(request: pytest.FixtureRequest, running: InProcess) -> Iterator[Client]:
    """A client of this version with an open channel."""
    spoken = SPOKEN[request.param]
    with running.dial() as talker:
        open_up(talker, spoken)
        client = Client(talker, spoken)
        client.say(amqp.ChannelOpen())
        assert isinstance(client.hear(), amqp.ChannelOpenOk)
        yield client


@pytest.fixture
def queue(client: Client) -> str:
    """A queue of the client's own."""
    name = f"bridge-{secrets.token_hex(4)}"
    arguments = Table.of({"x-max-length": 1000, "x-overflow": "drop-head"})
    told = client.ask(amqp.QueueDeclare(queue=name, exclusive=True, arguments=arguments))
    assert told == amqp.QueueDeclareOk(name, 0, 0)
    return name


def properties_of(message: Message) -> tuple[object, ...]:
    """All thirteen, in order."""
    return tuple(
        getattr(message.header.properties, name) for name in amqp.BasicProperties.__match_args__[:13]
    )


def test_every_property_and_table_type_comes_back(client: Client, queue: str) -> None:
    body = secrets.token_bytes(400_000)
    client.publish(amqp.BasicPublish(exchange="", routing_key=queue), body, *EVERY_PROPERTY)
    client.publish(amqp.BasicPublish(exchange="", routing_key=queue), b"")
    got, message = client.message_of(queue)
    assert message.body == body
    assert properties_of(message) == EVERY_PROPERTY
    assert isinstance(got, amqp.BasicGetOk)
    client.say(amqp.BasicAck(got.delivery_tag))
    assert client.message_of(queue)[1].body == b""
    assert isinstance(client.ask(amqp.BasicGet(queue=queue)), amqp.BasicGetEmpty)


def test_declare_bind_route_and_unbind(client: Client, queue: str) -> None:
    name = f"exchange-{queue}"
    declared = client.ask(amqp.ExchangeDeclare(exchange=name, type="topic", auto_delete=True))
    assert isinstance(declared, amqp.ExchangeDeclareOk)
    bound = amqp.QueueBind(queue=queue, exchange=name, routing_key="a.#")
    assert isinstance(client.ask(bound), amqp.QueueBindOk)
    client.publish(amqp.BasicPublish(exchange=name, routing_key="a.b"), b"routed")
    assert client.message_of(queue)[1].body == b"routed"
    unbound = client.ask(amqp.QueueUnbind(queue=queue, exchange=name, routing_key="a.#"))
    assert isinstance(unbound, amqp.QueueUnbindOk)
    again = client.ask(amqp.ExchangeDeclare(exchange=name, type="topic", auto_delete=True))
    assert isinstance(again, amqp.ExchangeDeclareOk)
    client.publish(amqp.BasicPublish(exchange=name, routing_key="a.b", mandatory=True), b"lost")
    returned, message = client.message(amqp.BasicReturn)
    assert isinstance(returned, amqp.BasicReturn)
    assert (returned.reply_code, message.body) == (312, b"lost")
    assert isinstance(client.ask(amqp.ExchangeDelete(exchange=name)), amqp.ExchangeDeleteOk)


def test_consume_ack_reject_and_cancel(client: Client, queue: str) -> None:
    assert isinstance(client.ask(amqp.BasicQos(prefetch_count=2)), amqp.BasicQosOk)
    assert client.ask(amqp.BasicConsume(queue=queue, consumer_tag="c")) == amqp.BasicConsumeOk("c")
    for body in (b"one", b"two", b"three"):
        client.publish(amqp.BasicPublish(exchange="", routing_key=queue), body)
    one, message = client.message(amqp.BasicDeliver)
    assert isinstance(one, amqp.BasicDeliver)
    assert message.body == b"one"
    two, _ = client.message(amqp.BasicDeliver)
    assert isinstance(two, amqp.BasicDeliver)
    client.say(amqp.BasicReject(two.delivery_tag, requeue=True))
    again, message = client.message(amqp.BasicDeliver)
    assert isinstance(again, amqp.BasicDeliver)
    assert (message.body, again.redelivered) == (b"two", True)
    client.say(amqp.BasicAck(again.delivery_tag, multiple=True))
    assert client.message(amqp.BasicDeliver)[1].body == b"three"
    assert client.ask(amqp.BasicCancel("c")) == amqp.BasicCancelOk("c")


def test_recover_without_an_answer(client: Client, queue: str) -> None:
    client.publish(amqp.BasicPublish(exchange="", routing_key=queue), b"again")
    client.message_of(queue)
    client.say(amqp.BasicRecoverAsync(requeue=True))
    while not isinstance(got := client.ask(amqp.BasicGet(queue=queue)), amqp.BasicGetOk):
        pass
    assert client.talker.content_of(got).body == b"again"
    assert got.redelivered


def test_recover_with_the_answer_that_the_client_waits_for(client: Client, queue: str) -> None:
    """60,110 and 60,111; Qpid's 0-9: 60,102 and 60,101; Qpid's 0-8: 60,100 and 60,101."""
    client.publish(amqp.BasicPublish(exchange="", routing_key=queue), b"again")
    client.message_of(queue)
    match client.spoken.name:
        case "0-8":
            client.talker.say(v0_8.BasicConsume(queue=queue, consumer_tag="c", arguments=Table()), 1)
            client.hear()
            client.talker.say(v0_8.BasicRecoverAsync(requeue=True), 1)
            answer: type[Method] = v0_8.BasicRecoverSyncOk
        case "0-9":
            client.talker.say(v0_9.BasicConsume(queue=queue, consumer_tag="c"), 1)
            client.hear()
            client.talker.say(v0_9.BasicRecoverSync(requeue=True), 1)
            answer = v0_9.BasicRecoverSyncOk
        case _:
            client.talker.say(amqp.BasicConsume(queue=queue, consumer_tag="c"), 1)
            client.hear()
            client.talker.say(amqp.BasicRecover(requeue=True), 1)
            answer = amqp.BasicRecoverOk
    assert isinstance(client.talker.hear()[1], answer)
    delivered, message = client.message(amqp.BasicDeliver)
    assert isinstance(delivered, amqp.BasicDeliver)
    assert (message.body, delivered.redelivered) == (b"again", True)


def test_transactions(client: Client, queue: str) -> None:
    assert isinstance(client.ask(amqp.TxSelect()), amqp.TxSelectOk)
    for body, end in ((b"no", amqp.TxRollback()), (b"yes", amqp.TxCommit())):
        client.publish(amqp.BasicPublish(exchange="", routing_key=queue), body)
        client.ask(end)
    assert client.message_of(queue)[1].body == b"yes"


def test_access_tickets(client: Client) -> None:
    request = amqp.AccessRequest("/data", active=True, write=True, read=True)
    assert client.ask(request) == amqp.AccessRequestOk(1)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (amqp.QueueDeclare(queue="nobody's", passive=True), 404),
        (amqp.QueueDeclare(queue="amq.mine"), 403),
        (amqp.ExchangeDeclare(exchange="amq.topic", type="fanout"), 406),
    ],
    ids=["404", "403", "406"],
)
def test_errors_of_a_channel_tell_code_ids_and_text(client: Client, wrong: Method, code: int) -> None:
    close = client.ask(wrong)
    assert isinstance(close, amqp.ChannelClose)
    assert (close.reply_code, close.class_id, close.method_id) == (code, wrong.CLASS_ID, wrong.METHOD_ID)
    assert "'" in close.reply_text
    client.say(amqp.ChannelCloseOk())
    assert isinstance(client.ask(amqp.ChannelOpen()), amqp.ChannelOpenOk)
    bye(client.talker, client.spoken)


def test_errors_of_the_connection_have_the_versions_close(client: Client) -> None:
    client.say(amqp.QueueDeclareOk())
    close = client.hear(0)
    assert isinstance(close, amqp.ConnectionClose)
    assert (close.reply_code, close.class_id, close.method_id) == (503, 50, 11)
    client.say(amqp.ConnectionCloseOk(), 0)
    client.talker.expect_end()


def test_the_flow_of_deliveries_is_the_clients(client: Client, queue: str) -> None:
    """RabbitMQ itself says 540 to that, and so does the gateway to clients of 0-9-1 if it is not told."""
    client.ask(amqp.BasicConsume(queue=queue, consumer_tag="c"))
    assert client.ask(amqp.ChannelFlow(active=False)) == amqp.ChannelFlowOk(active=False)
    for number in range(50):
        client.publish(amqp.BasicPublish(exchange="", routing_key=queue), b"%d" % number, None, None, HEADERS)
    # No answer has a delivery before it.
    while True:
        told = client.ask(amqp.QueueDeclare(queue=queue, passive=True))
        assert isinstance(told, amqp.QueueDeclareOk)
        if not told.message_count:
            break
    client.say(amqp.ChannelFlow(active=True))
    flows, numbers = [], []
    while len(numbers) < 50 or not flows:
        method = client.hear()
        if isinstance(method, amqp.ChannelFlowOk):
            flows.append(method)
            continue
        assert isinstance(method, amqp.BasicDeliver)
        message = client.talker.content_of(method)
        assert message.body == b"%d" % len(numbers)
        assert message.header.properties.headers == HEADERS  # type: ignore[attr-defined]
        numbers.append(method.delivery_tag)
    assert numbers == list(range(1, 51))
    assert flows == [amqp.ChannelFlowOk(active=True)]
    client.say(amqp.BasicAck(50, multiple=True))
    assert client.ask(amqp.QueueDelete(queue=queue)) == amqp.QueueDeleteOk(0)


# -- what RabbitMQ does not do for old clients ---------------------------------------------------------------

OLD = [SPOKEN["0-8"], SPOKEN["0-9"]]


@pytest.fixture(params=OLD, ids=lambda spoken: spoken.name)
def pair(
    request: pytest.FixtureRequest, running: InProcess, rabbitmq: RabbitMQ
) -> Iterator[tuple[Client, Client]]:
    """An old client of the gateway, and the same one directly."""
    with running.dial() as here, Talker.dial(rabbitmq.port) as there:
        clients = Client(here, request.param), Client(there, request.param)
        for client in clients:
            open_up(client.talker, request.param)
            client.ask(amqp.ChannelOpen())
        yield clients


def test_a_prefetch_size(pair: tuple[Client, Client]) -> None:
    here, there = pair
    qos = amqp.BasicQos(prefetch_size=65536)
    refused = there.ask_0(qos)
    assert isinstance(refused, amqp.ConnectionClose)
    assert refused.reply_code == 540
    assert isinstance(here.ask(qos), amqp.BasicQosOk)


def test_immediate(pair: tuple[Client, Client]) -> None:
    here, there = pair
    for client in pair:
        client.publish(amqp.BasicPublish(routing_key="nowhere", immediate=True), b"now")
    refused = there.hear(0)
    assert isinstance(refused, amqp.ConnectionClose)
    assert refused.reply_code == 540
    close = here.hear()
    assert isinstance(close, amqp.ChannelClose)
    assert (close.reply_code, close.class_id, close.method_id) == (406, 60, 40)
    here.say(amqp.ChannelCloseOk())
    assert isinstance(here.ask(amqp.ChannelOpen()), amqp.ChannelOpenOk)


def test_delivery_mode_0_is_1(pair: tuple[Client, Client]) -> None:
    here, there = pair
    queues = []
    for client in pair:
        declared = client.ask(amqp.QueueDeclare(queue="", exclusive=True))
        assert isinstance(declared, amqp.QueueDeclareOk)
        queues.append(declared.queue)
        client.publish(amqp.BasicPublish(routing_key=declared.queue), b"", None, None, None, 0)
    refused = there.hear()
    assert isinstance(refused, amqp.ChannelClose)
    assert refused.reply_code == 406
    _, message = here.message_of(queues[0])
    assert message.header.properties == here.spoken.words.BasicProperties(delivery_mode=1)


def test_a_client_of_0_9_1_hears_what_it_would_hear_directly(rabbitmq: RabbitMQ) -> None:
    spoken = SPOKEN["0-9-1"]
    settings = SETTINGS.replace(", channelFlow: gateway", "").format(port=rabbitmq.port, far="0-9-1")
    heard = []
    with serving(settings) as running, running.dial() as here, Talker.dial(rabbitmq.port) as there:
        for talker in (here, there):
            open_up(talker, spoken)
            client = Client(talker, spoken)
            client.ask(amqp.ChannelOpen())
            heard.append(client.ask_0(amqp.ChannelFlow(active=False)))
    assert heard[0] == heard[1] == amqp.ConnectionClose(540, "NOT_IMPLEMENTED - active=false", 20, 20)


def test_the_flow_directly(pair: tuple[Client, Client]) -> None:
    refused = pair[1].ask_0(amqp.ChannelFlow(active=False))
    assert isinstance(refused, amqp.ConnectionClose)
    assert refused.reply_code == 540


def test_what_a_broker_of_0_8_does_not_have(rabbitmq: RabbitMQ) -> None:
    """540 from the gateway with the ids of the method."""
    near = SPOKEN["0-9-1"]
    with serving(SETTINGS.format(port=rabbitmq.port, far="0-8")) as running:
        for refused in (
            amqp.ConfirmSelect(),
            amqp.ExchangeBind(destination="amq.topic", source="amq.direct"),
            amqp.BasicConsume(queue="q", arguments=Table.of({"x-priority": 1})),
            amqp.BasicNack(1, multiple=True),
        ):
            with running.dial() as talker:
                open_up(talker, near)
                client = Client(talker, near)
                client.ask(amqp.ChannelOpen())
                close = client.ask_0(refused)
                assert isinstance(close, amqp.ConnectionClose)
                assert (close.reply_code, close.class_id, close.method_id) == (
                    540,
                    refused.CLASS_ID,
                    refused.METHOD_ID,
                )
