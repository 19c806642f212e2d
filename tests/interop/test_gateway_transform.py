"""Names, arguments and messages that are changed on the way: what clients and RabbitMQ see of it."""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.support.inprocess import InProcess, eventually, serving
from tests.support.metrics import sample_value
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Message, Talker

VHOST = "tenants"
#: The same vhost for those who go to it directly: what they make must not be in the way.
DIRECT = "tenantx"

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:0"}}]
upstreams: [{{name: rabbit, host: 127.0.0.1, port: {port}}}]
policies: policies
"""

TENANTS = """
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: tenants}
spec:
  subjects: [{user: alice}, {user: bob}]
  names:
    both: {prefix: "{user}:"}
"""

CHANGES = """
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: changes}
spec:
  subjects: [{user: guest}]
  arguments:
  - {id: quorum, operations: [queue.declare], queue: {prefix: work.}, force: {x-queue-type: quorum}}
  - id: bounded
    operations: [queue.declare]
    queue: {prefix: short.}
    strip: ["x-max-*"]
    ceilings: {x-message-ttl: 60000, x-expires: 600000, x-max-length: 100}
  properties:
    userId: validate
    set: {deliveryMode: 2, appId: "gate of {user}"}
    strip: [clusterId]
  headers: {strip: ["x-internal-*"], set: {x-by: "{user}", x-n: {number: 7}}}
  ceilings: {maxBodyBytes: 100000, maxTtl: 2s}
""".replace("strip: [clusterId]", "strip: [type]")


@pytest.fixture(scope="module")
def tenancy(rabbitmq: RabbitMQ) -> RabbitMQ:
    """RabbitMQ with the users alice and bob in both vhosts."""
    for vhost in (VHOST, DIRECT):
        rabbitmq.fresh_vhost(vhost)
        for user in ("alice", "bob"):
            rabbitmq.eval(
                f'rabbit_auth_backend_internal:put_user(#{{name => <<"{user}">>, password => <<"guest">>,'
                ' tags => <<>>}, <<"test">>),'
                f' rabbit_auth_backend_internal:set_permissions(<<"{user}">>, <<"{vhost}">>,'
                ' <<".*">>, <<".*">>, <<".*">>, <<"test">>).'
            )
    return rabbitmq


@pytest.fixture(scope="module")
def gate(tenancy: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("transform")
    (folder / "policies").mkdir()
    (folder / "policies" / "tenants.yaml").write_text(TENANTS)
    (folder / "policies" / "changes.yaml").write_text(CHANGES)
    with serving(CONFIG.format(port=tenancy.port), folder=folder) as running:
        yield running
        running.wait_idle()


def connect(port: int, user: str, vhost: str = VHOST) -> pika.BlockingConnection:
    credentials = pika.PlainCredentials(user, "guest")
    return pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", port, vhost, credentials, heartbeat=0)
    )


@pytest.fixture
def alice(gate: InProcess) -> Iterator[pika.BlockingConnection]:
    connection = connect(gate.port(), "alice")
    yield connection
    if connection.is_open:
        connection.close()


@pytest.fixture
def bob(gate: InProcess) -> Iterator[pika.BlockingConnection]:
    connection = connect(gate.port(), "bob")
    yield connection
    if connection.is_open:
        connection.close()


@pytest.fixture
def guest(gate: InProcess) -> Iterator[pika.BlockingConnection]:
    connection = connect(gate.port(), "guest")
    yield connection
    if connection.is_open:
        connection.close()


def got(channel: pika.adapters.blocking_connection.BlockingChannel, queue: str) -> list[bytes]:
    """All that is in a queue now."""
    found = []
    while True:
        method, _, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return found
        assert body is not None
        found.append(body)


# -- a client cannot tell ------------------------------------------------------------------------------------


def conversation(talker: Talker) -> Iterator[Method | Message]:
    """One of everything that has a name in it, and what is heard."""

    def ask(method: Method, answer: type[Method]) -> Method:
        return talker.ask(method, answer, 1)

    def failing(method: Method) -> Method:
        close = talker.ask(method, amqp.ChannelClose, 1)
        talker.say(amqp.ChannelCloseOk(), 1)
        talker.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
        return close

    x, q, other = amqp.ExchangeDeclare, amqp.QueueDeclare, "other"
    yield failing(q(queue="orders", passive=True))
    yield failing(x(exchange="orders", passive=True))
    yield failing(amqp.BasicConsume(queue="orders"))
    yield failing(amqp.QueueBind(queue="orders", exchange="nowhere", routing_key="k"))
    yield failing(q(queue="amq.mine"))
    yield failing(x(exchange="amq.mine", type="fanout"))
    yield ask(x(exchange="dead", type="fanout"), amqp.ExchangeDeclareOk)
    yield ask(
        x(exchange="orders", type="topic", arguments=Table.of({"alternate-exchange": "dead"})),
        amqp.ExchangeDeclareOk,
    )
    yield ask(x(exchange=other, type="topic"), amqp.ExchangeDeclareOk)
    yield failing(x(exchange="orders", type="fanout"))
    arguments = Table.of({"x-dead-letter-exchange": "dead", "x-message-ttl": 600_000})
    yield ask(q(queue="orders", arguments=arguments), amqp.QueueDeclareOk)
    wrong = Table.of({"x-dead-letter-exchange": other, "x-message-ttl": 600_000})
    yield failing(q(queue="orders", arguments=wrong))
    yield failing(q(queue="orders"))
    yield ask(q(queue="graves"), amqp.QueueDeclareOk)
    yield ask(amqp.QueueBind(queue="graves", exchange="dead"), amqp.QueueBindOk)
    # What an empty name stands for, and the key that goes with it.
    yield ask(q(queue="orders", passive=True), amqp.QueueDeclareOk)
    yield ask(amqp.QueueBind(exchange="amq.direct"), amqp.QueueBindOk)
    talker.publish(b"by its own name", "orders", exchange="amq.direct")
    yield talker.ask(amqp.BasicGet(no_ack=True), amqp.BasicGetOk, 1)
    yield talker.content_of(amqp.BasicGetOk())
    yield ask(amqp.QueueUnbind(exchange="amq.direct"), amqp.QueueUnbindOk)
    yield ask(amqp.QueueBind(queue="orders", exchange="orders", routing_key="o.#"), amqp.QueueBindOk)
    yield ask(amqp.ExchangeBind(destination="orders", source=other, routing_key="o.*"), amqp.ExchangeBindOk)
    # Publish, get, consume; from the default exchange, from one's own, by a binding.
    rich = amqp.BasicProperties(
        reply_to="graves", headers=Table.of({"CC": ["graves"], "BCC": ["no-such"], "k": "orders"})
    )
    for exchange, key, properties in (
        ("", "orders", None),
        ("orders", "o.1", rich),
        (other, "o.2", None),
        ("", "orders", rich),
        ("amq.topic", "none", rich),
    ):
        talker.publish(b"body", key, exchange=exchange, properties=properties)
    for _ in range(3):
        yield talker.ask(amqp.BasicGet(queue="orders"), amqp.BasicGetOk, 1)
        yield talker.content_of(amqp.BasicGetOk())
    yield ask(amqp.BasicConsume(queue="graves", consumer_tag="c", no_ack=True), amqp.BasicConsumeOk)
    yield talker.expect_content(amqp.BasicDeliver)
    # What nothing is bound for goes to the alternate exchange.
    talker.publish(b"lost", "none", exchange="orders")
    yield talker.expect_content(amqp.BasicDeliver)
    # What is rejected dies, and tells its history; that of a message by its queue's name, too.
    talker.say(amqp.BasicNack(delivery_tag=4, multiple=True, requeue=False), 1)
    for _ in range(3):
        yield talker.expect_content(amqp.BasicDeliver)
    for exchange, key in (("", "no-such"), ("orders-2", ""), (other, "nobody")):
        talker.publish(b"back", key, exchange=exchange, properties=rich, mandatory=True)
        if exchange == "orders-2":
            yield talker.expect(amqp.ChannelClose, 1)
            talker.say(amqp.ChannelCloseOk(), 1)
            yield talker.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
            yield ask(amqp.BasicConsume(queue="graves", consumer_tag="c", no_ack=True), amqp.BasicConsumeOk)
        elif not exchange:
            yield talker.expect_content(amqp.BasicDeliver)  # by its CC
        else:
            yield talker.expect_content(amqp.BasicReturn)
    yield ask(amqp.QueuePurge(queue="orders"), amqp.QueuePurgeOk)
    yield ask(amqp.QueueUnbind(queue="orders", exchange="orders", routing_key="o.#"), amqp.QueueUnbindOk)
    yield ask(
        amqp.ExchangeUnbind(destination="orders", source=other, routing_key="o.*"), amqp.ExchangeUnbindOk
    )
    # A consumer whose queue goes is told.
    talker.say(amqp.QueueDelete(queue="graves"), 1)
    yield from sorted((talker.hear()[1] for _ in range(2)), key=lambda method: method.NAME)
    yield ask(q(queue="mine", exclusive=True), amqp.QueueDeclareOk)
    named = talker.ask(q(exclusive=True), amqp.QueueDeclareOk, 1)
    assert re.fullmatch(r"amq\.gen-[\w-]{22}", named.queue)
    yield ask(
        amqp.BasicConsume(queue="amq.rabbitmq.reply-to", no_ack=True, consumer_tag="r"), amqp.BasicConsumeOk
    )
    talker.publish(b"q", named.queue, properties=amqp.BasicProperties(reply_to="amq.rabbitmq.reply-to"))
    talker.say(amqp.BasicGet(queue=named.queue, no_ack=True), 1)
    request = talker.expect_content(amqp.BasicGetOk)
    assert isinstance(request.header.properties, amqp.BasicProperties)
    reply_to = request.header.properties.reply_to
    assert reply_to is not None
    assert reply_to.startswith("amq.rabbitmq.reply-to.")
    talker.publish(b"a", reply_to)
    answer = talker.expect_content(amqp.BasicDeliver)
    assert answer.body == b"a"
    yield ask(amqp.QueueDelete(queue="orders"), amqp.QueueDeleteOk)
    for exchange in ("orders", other, "dead"):
        yield ask(amqp.ExchangeDelete(exchange=exchange), amqp.ExchangeDeleteOk)


def plain(heard: Method | Message, vhost: str) -> object:
    """What is compared: not the clock, and not the vhost's name."""
    text = repr(heard).replace(vhost, "VHOST")
    return re.sub(r"T:\d+", "T:0", text)


def test_a_client_with_a_prefix_hears_what_one_without_hears(gate: InProcess, tenancy: RabbitMQ) -> None:
    heard = []
    for port, vhost in ((tenancy.port, DIRECT), (gate.port(), VHOST)):
        with Talker.dial(port) as talker:
            talker.open(vhost=vhost, user="alice")
            heard.append([plain(each, vhost) for each in conversation(talker)])
            talker.bye()
    direct, through = heard
    assert len(direct) >= 50
    for one, other in zip(direct, through, strict=True):
        assert one == other
    assert "alice:" not in "".join(map(str, through))


# -- what the broker has -------------------------------------------------------------------------------------


def test_the_broker_has_the_names_with_their_prefix(
    alice: pika.BlockingConnection, tenancy: RabbitMQ
) -> None:
    channel = alice.channel()
    channel.exchange_declare("prefixed", "topic")
    channel.queue_declare(
        "prefixed",
        exclusive=True,
        arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"},
    )
    channel.queue_bind("prefixed", "prefixed", "key")
    with Talker.dial(tenancy.port) as witness:
        witness.open(vhost=VHOST)
        passive = amqp.ExchangeDeclare(exchange="alice:prefixed", type="topic", passive=True)
        witness.ask(passive, amqp.ExchangeDeclareOk, 1)
        witness.publish(b"raw", "key", exchange="alice:prefixed")
        witness.bye()
    eventually(lambda: got(channel, "prefixed") == [b"raw"])
    rows = tenancy.rows("list_queues", "name", "arguments", vhost=VHOST)
    (arguments,) = [row["arguments"] for row in rows if row["name"] == "alice:prefixed"]
    assert "alice:dlq" in str(arguments)
    channel.exchange_delete("prefixed")


def test_two_tenants_with_the_same_names_never_meet(
    alice: pika.BlockingConnection, bob: pika.BlockingConnection
) -> None:
    channels = {"alice": alice.channel(), "bob": bob.channel()}
    seen: dict[str, list[bytes]] = {"alice": [], "bob": []}
    for name, channel in channels.items():
        channel.confirm_delivery()
        channel.exchange_declare("shared", "topic")
        channel.queue_declare("shared", arguments={"x-max-length": 1000})
        channel.queue_bind("shared", "shared", "#")
        channel.queue_declare("by-cc")

        def deliver(_: object, method: object, __: object, body: bytes, name: str = name) -> None:
            seen[name].append(body)

        channel.basic_consume("shared", deliver, auto_ack=True)
    rng = random.Random(7)
    for number in range(200):
        name = rng.choice(["alice", "bob"])
        body = f"{name} {number}".encode()
        exchange, key = rng.choice([("shared", "a.b"), ("", "shared"), ("shared", "")])
        headers = {"CC": ["by-cc"]} if not exchange and rng.random() < 0.5 else None
        channels[name].basic_publish(exchange, key, body, pika.BasicProperties(headers=headers))
    for connection in (alice, bob):
        connection.process_data_events(time_limit=0.5)
    for name, channel in channels.items():
        assert seen[name]
        copies = got(channel, "by-cc")
        assert copies
        assert all(body.startswith(name.encode()) for body in seen[name] + copies)
        channel.queue_delete("shared")
        channel.queue_delete("by-cc")
        channel.exchange_delete("shared")
    assert len(seen["alice"]) + len(seen["bob"]) == 200


@pytest.mark.parametrize(
    ("method", "code", "text"),
    [
        # Messages would go on to the queues that their routing keys name, whosever these are.
        (
            amqp.QueueDeclare(queue="leak", arguments=Table.of({"x-dead-letter-exchange": ""})),
            406,
            "x-dead-letter-exchange '' (the default exchange) needs x-dead-letter-routing-key here",
        ),
        (
            amqp.ExchangeDeclare(
                exchange="leak", type="fanout", arguments=Table.of({"alternate-exchange": ""})
            ),
            406,
            "alternate-exchange '' (the default exchange) is not available",
        ),
        (amqp.QueueDeclare(queue="x" * 250), 406, "queue name is longer than 249 bytes"),
        (amqp.BasicPublish(routing_key="x" * 250), 406, "queue name is longer than 249 bytes"),
        (amqp.BasicGet(queue="li\nne"), 403, "queue name 'li\nne' is not available"),
    ],
    ids=["dead letters", "alternate", "long", "long key", "line"],
)
def test_what_would_leave_the_prefix_is_refused(
    gate: InProcess, method: Method, code: int, text: str
) -> None:
    def refused() -> float:
        labels = {"operation": method.NAME}
        return sample_value(gate.gateway.metrics.registry, "amqpgate_transform_refusals_total", labels) or 0

    before = refused()
    with Talker.dial(gate.port()) as talker:
        talker.open(vhost=VHOST, user="alice")
        if isinstance(method, amqp.BasicPublish):
            talker.content(method, b"x" * 300_000)
        else:
            talker.say(method, 1)
        close = talker.expect(amqp.ChannelClose, 1)
        assert (close.reply_code, close.class_id, close.method_id) == (
            code,
            method.CLASS_ID,
            method.METHOD_ID,
        )
        assert close.reply_text.endswith(text)
        talker.say(amqp.ChannelCloseOk(), 1)
        talker.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
        talker.bye()
    assert refused() == before + 1


def leak(talker: Talker, prefix: str) -> type[Method]:
    """Try to put a message into the queue `bob:secret` by a dead letter's routing key: what was answered."""
    arguments = Table.of({"x-dead-letter-exchange": "", "x-message-ttl": 0})
    talker.say(amqp.QueueDeclare(queue=f"{prefix}tomb", exclusive=True, arguments=arguments), 1)
    answer = talker.hear()[1]
    if isinstance(answer, amqp.QueueDeclareOk):
        declare = amqp.ExchangeDeclare(exchange=f"{prefix}x", type="fanout", auto_delete=True)
        talker.ask(declare, amqp.ExchangeDeclareOk, 1)
        talker.ask(amqp.QueueBind(queue=f"{prefix}tomb", exchange=f"{prefix}x"), amqp.QueueBindOk, 1)
        talker.publish(b"leaked", "bob:secret", exchange=f"{prefix}x")
    else:
        talker.say(amqp.ChannelCloseOk(), 1)
    return type(answer)


def test_a_dead_letter_leaves_rabbitmqs_permissions_but_not_the_prefix(
    gate: InProcess, tenancy: RabbitMQ
) -> None:
    tenancy.eval(
        'rabbit_auth_backend_internal:put_user(#{name => <<"fenced">>, password => <<"guest">>,'
        ' tags => <<>>}, <<"test">>),'
        f' rabbit_auth_backend_internal:set_permissions(<<"fenced">>, <<"{VHOST}">>, <<"^fenced:">>,'
        ' <<"^(fenced:|amq.default$)">>, <<"^fenced:">>, <<"test">>).'
    )
    with Talker.dial(tenancy.port) as owner, Talker.dial(tenancy.port) as fenced:
        owner.open(vhost=VHOST)
        owner.ask(amqp.QueueDeclare(queue="bob:secret", exclusive=True), amqp.QueueDeclareOk, 1)
        fenced.open(vhost=VHOST, user="fenced")
        fenced.say(amqp.BasicGet(queue="bob:secret"), 1)
        assert fenced.expect(amqp.ChannelClose, 1).reply_code in (403, 405)
        fenced.say(amqp.ChannelCloseOk(), 1)
        fenced.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
        assert leak(fenced, "fenced:") is amqp.QueueDeclareOk
        passive = amqp.QueueDeclare(queue="bob:secret", passive=True)
        eventually(lambda: owner.ask(passive, amqp.QueueDeclareOk, 1).message_count == 1)
        fenced.bye()
        with Talker.dial(gate.port()) as alice:
            alice.open(vhost=VHOST, user="alice")
            assert leak(alice, "") is amqp.ChannelClose
            alice.bye()
        assert owner.ask(passive, amqp.QueueDeclareOk, 1).message_count == 1
        owner.bye()


def test_confirms_and_bodies_of_all_sizes(gate: InProcess) -> None:
    sizes = [0, 1, 4087, 4088, 4089, 8176, 131_064, 131_065, 400_000, 1 << 20]
    data = random.Random(1).randbytes(1 << 20)
    queue = f"sizes-{secrets.token_hex(4)}"
    with Talker.dial(gate.port()) as talker:
        talker.open(vhost=VHOST, user="alice", frame_max=8192)
        talker.ask(amqp.QueueDeclare(queue=queue, exclusive=True), amqp.QueueDeclareOk, 1)
        talker.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        talker.ask(amqp.BasicConsume(queue=queue, no_ack=True), amqp.BasicConsumeOk, 1)
        for number, size in enumerate(sizes * 2, start=1):
            properties = amqp.BasicProperties(
                reply_to="replies", headers=Table.of({"h": "x" * (7000 if number % 2 else 1)})
            )
            talker.publish(data[:size], queue, properties=properties)
            confirmed, message = 0, None
            while not confirmed or message is None:
                _, method = talker.hear()
                if isinstance(method, amqp.BasicAck):
                    confirmed = method.delivery_tag
                else:
                    message = talker.content_of(method)
            assert confirmed == number
            assert message.body == data[:size]
            assert message.header.properties == properties
            assert isinstance(message.method, amqp.BasicDeliver)
            assert (message.method.exchange, message.method.routing_key) == ("", queue)
        talker.bye()


def test_names_that_do_not_change_stay_on_the_data_path(gate: InProcess) -> None:
    def upcalls() -> int:
        return gate.call(lambda: gate.gateway.pump.counters.upcalls)

    with Talker.dial(gate.port()) as talker:
        talker.open(vhost=VHOST, user="alice")
        named = talker.ask(amqp.QueueDeclare(exclusive=True), amqp.QueueDeclareOk, 1).queue
        talker.ask(amqp.QueueBind(exchange="amq.topic", routing_key="plain"), amqp.QueueBindOk, 1)
        talker.ask(amqp.BasicConsume(queue=named, no_ack=True), amqp.BasicConsumeOk, 1)

        def rounds(properties: amqp.BasicProperties) -> int:
            before = upcalls()
            for _ in range(20):
                talker.publish(b"b", "plain", exchange="amq.topic", properties=properties)
                talker.expect_content(amqp.BasicDeliver)
            return upcalls() - before

        assert rounds(amqp.BasicProperties()) == 2, "one miss in each direction"
        assert rounds(amqp.BasicProperties(headers=Table.of({"a": "b"}), app_id="x")) == 0
        assert rounds(amqp.BasicProperties(reply_to="mine")) == 80, "method and header, both ways"
        talker.bye()


# -- arguments and messages ----------------------------------------------------------------------------------


def test_forced_arguments_and_ceilings(guest: pika.BlockingConnection, tenancy: RabbitMQ) -> None:
    channel = guest.channel()
    for _ in range(2):  # declared again, it is the same
        channel.queue_declare("work.1", durable=True)
        channel.queue_declare("work.2", durable=True, arguments={"x-queue-type": "classic"})
        channel.queue_declare("plain.1", durable=True)
        channel.queue_declare("short.1", arguments={"x-message-ttl": 3_600_000, "x-max-priority": 5})
        channel.queue_declare("short.2", arguments={"x-message-ttl": 1000, "x-expires": 5_000_000_000})
    try:
        rows = tenancy.rows("list_queues", "name", "type", "arguments", vhost=VHOST)
        types = {row["name"]: row["type"] for row in rows}
        assert types["work.1"] == types["work.2"] == "quorum"
        assert types["plain.1"] == "classic"
        given = {str(row["name"]): str(row["arguments"]) for row in rows}
        for name, ttl in (("short.1", 60000), ("short.2", 1000)):
            assert f"{ttl}" in given[name]
            assert "600000" in given[name]
            assert "x-max-length" in given[name]
            assert "x-max-priority" not in given[name]
    finally:
        for name in ("work.1", "work.2", "plain.1", "short.1", "short.2"):
            channel.queue_delete(name)


@pytest.fixture
def queue(guest: pika.BlockingConnection) -> str:
    name = f"q-{secrets.token_hex(4)}"
    guest.channel().queue_declare(name, exclusive=True)
    return name


def test_properties_and_headers(guest: pika.BlockingConnection, queue: str) -> None:
    channel = guest.channel()
    headers = {"x-internal-secret": "s", "x-by": "mallory", "mine": 1}
    said = pika.BasicProperties(
        headers=headers, type="t", app_id="mine", user_id="guest", content_type="text/plain"
    )
    channel.basic_publish("", queue, b"b", said)
    _, properties, _ = channel.basic_get(queue, auto_ack=True)
    assert properties is not None
    assert properties.headers == {"x-by": "guest", "mine": 1, "x-n": 7}
    assert (properties.type, properties.app_id, properties.user_id) == (None, "gate of guest", "guest")
    assert (properties.delivery_mode, properties.content_type) == (2, "text/plain")


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (None, "2000"),
        ("0", "0"),
        ("1999", "1999"),
        ("2001", "2000"),
        ("3600000", "2000"),
        ("+3600000", "2000"),
        ("00000000000000003600000", "2000"),
    ],
)
def test_no_message_lives_longer_than_the_ceiling(
    guest: pika.BlockingConnection, said: str | None, kept: str
) -> None:
    channel = guest.channel()
    name = channel.queue_declare("", exclusive=True).method.queue
    seen: list[str | None] = []
    channel.basic_consume(name, lambda _, __, properties, ___: seen.append(properties.expiration), True)
    channel.basic_publish("", name, b"b", pika.BasicProperties(expiration=said))
    eventually(lambda: guest.process_data_events(time_limit=0.02) or seen == [kept])


@pytest.mark.parametrize("said", ["-1", "soon", " 3600000", "3600000 ", "3_600_000", "1e9", "٣٦٠٠٠٠٠", ""])
def test_what_is_no_time_is_refused_by_the_broker(
    guest: pika.BlockingConnection, queue: str, said: str
) -> None:
    """Or a time that only the broker can read would pass by the ceiling."""
    channel = guest.channel()
    channel.confirm_delivery()
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="invalid expiration"):
        channel.basic_publish("", queue, b"b", pika.BasicProperties(expiration=said))


def test_refusals_of_messages_read_like_rabbitmqs_own(gate: InProcess, tenancy: RabbitMQ) -> None:
    """Too large a body, and a forged user: the same close from both, to the letter."""
    before = tenancy.eval("application:get_env(rabbit, max_message_size, 134217728).")
    tenancy.eval("application:set_env(rabbit, max_message_size, 100000).")
    forged = amqp.BasicProperties(user_id="mallory")
    heard = []
    try:
        for port in (tenancy.port, gate.port()):
            with Talker.dial(port) as talker:
                talker.open(vhost=VHOST, channels=2)
                queue = talker.ask(amqp.QueueDeclare(exclusive=True), amqp.QueueDeclareOk, 2).queue
                talker.ask(amqp.BasicConsume(queue=queue, no_ack=True), amqp.BasicConsumeOk, 2)
                for body, properties in ((b"x" * 100_001, None), (b"x" * 400_000, None), (b"x", forged)):
                    talker.publish(body, queue, properties=properties)
                    talker.publish(b"behind it", queue)
                    heard.append(talker.expect(amqp.ChannelClose, 1))
                    talker.say(amqp.ChannelCloseOk(), 1)
                    talker.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
                talker.publish(b"x" * 100_000, queue)
                message = talker.expect_content(amqp.BasicDeliver, 2)
                assert message.body == b"x" * 100_000
                talker.bye()
    finally:
        tenancy.eval(f"application:set_env(rabbit, max_message_size, {before}).")
    assert heard[:3] == heard[3:]
    assert heard[3].reply_text.endswith("message size 100001 is larger than configured max size 100000")
    assert "user_id property set to 'mallory' but authenticated user was 'guest'" in heard[5].reply_text


# -- who is refused, and what a reload changes ---------------------------------------------------------------


def test_other_policies_hold_from_the_next_message_on_but_names_stay(
    tenancy: RabbitMQ, tmp_path: Path
) -> None:
    file = tmp_path / "policies" / "p.yaml"
    file.parent.mkdir()
    file.write_text(TENANTS + "  headers: {set: {x-v: one}}\n")
    with serving(CONFIG.format(port=tenancy.port), folder=tmp_path) as running:
        connection = connect(running.port(), "alice")
        channel = connection.channel()
        channel.queue_declare("reloaded", exclusive=True)

        def version() -> object:
            channel.basic_publish("", "reloaded", b"b")
            method, properties, _ = channel.basic_get("reloaded", auto_ack=True)
            assert method is not None
            assert method.routing_key == "reloaded"
            assert properties is not None
            return (properties.headers or {}).get("x-v")

        def use() -> None:
            from amqpgate.app import wiring

            policies = wiring.load_policies(running.settings)
            running.call(lambda: running.gateway.use(policies))

        assert version() == "one"
        file.write_text(TENANTS.replace("{user}:", "other:") + "  headers: {set: {x-v: two}}\n")
        use()
        assert version() == "two"
        file.write_text(TENANTS.replace("alice", "nobody"))
        use()
        assert version() is None
        file.write_text(
            TENANTS + "---" + TENANTS.replace("tenants", "again") + "  headers: {set: {x-v: no}}\n"
        )
        use()
        assert version() is None
        # Whoever comes now is refused: there are two prefixes for the same names.
        text = "530.*access to vhost 'tenants' refused for user 'alice'\"$"
        with pytest.raises(pika.exceptions.ProbableAccessDeniedError, match=text):
            connect(running.port(), "alice")
        connection.close()
        running.wait_idle()
