"""Refusals on real traffic: what the client hears, what the broker never sees, and what goes on."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

VHOST = "policed"

#: What guest may do through the gateway. The user `narrow` may do nearly the same by RabbitMQ's permissions.
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: narrow}
spec:
  subjects: [{user: "*", vhosts: [policed]}]
  rules:
  - {id: publish, effect: allow, operations: [basic.publish], exchange: {prefix: mine}}
  - id: default-exchange
    effect: allow
    operations: [basic.publish]
    exchange: {literal: ""}
    routingKey: {prefix: mine}
  - id: queues
    effect: allow
    operations: [queue.declare, queue.delete, queue.purge, basic.consume, basic.get]
    queue: {prefix: mine}
  - id: bind
    effect: allow
    operations: [queue.bind, queue.unbind]
    queue: {prefix: mine}
    exchange: {prefix: mine}
  - {id: exchanges, effect: allow, operations: ["exchange.*"], exchange: {prefix: mine}}
"""


@pytest.fixture(scope="module")
def policed(rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with that policy, in front of a vhost with the queue and exchange `theirs`, which count."""
    rabbitmq.fresh_vhost(VHOST)
    rabbitmq.eval(
        'rabbit_auth_backend_internal:put_user(#{name => <<"narrow">>, password => <<"guest">>,'
        ' tags => <<>>}, <<"test">>),'
        f' rabbit_auth_backend_internal:set_permissions(<<"narrow">>, <<"{VHOST}">>,'
        ' <<"^mine">>, <<"^mine">>, <<"^mine">>, <<"test">>).'
    )
    folder = tmp_path_factory.mktemp("policies")
    (folder / "narrow.yaml").write_text(POLICY)
    gateway = Gateway(f"amqp://{rabbitmq.address}", policies=folder)
    with Talker.dial(rabbitmq.port) as owner:
        owner.open(vhost=VHOST)
        owner.ask(amqp.ExchangeDeclare(exchange="theirs", type="fanout"), amqp.ExchangeDeclareOk, 1)
        owner.ask(amqp.QueueDeclare(queue="theirs"), amqp.QueueDeclareOk, 1)
        owner.ask(amqp.QueueBind(queue="theirs", exchange="theirs"), amqp.QueueBindOk, 1)
        owner.publish(b"the only one", "theirs")
        owner.bye()
    with gateway.serving():
        yield gateway


@pytest.fixture
def witness(rabbitmq: RabbitMQ, policed: Gateway) -> Iterator[Talker]:
    with Talker.dial(rabbitmq.port) as talker:
        talker.open(vhost=VHOST)
        yield talker
        talker.bye()


@pytest.fixture
def client(policed: Gateway) -> Iterator[Talker]:
    with Talker.dial(policed.port) as talker:
        talker.open(vhost=VHOST, channels=2)
        yield talker
        talker.bye()


def untouched(witness: Talker) -> bool:
    """The queue of others has its one message and no consumer."""
    theirs = witness.ask(amqp.QueueDeclare(queue="theirs", passive=True), amqp.QueueDeclareOk, 1)
    return (theirs.message_count, theirs.consumer_count) == (1, 0)


def reopened(client: Talker, channel: int = 1) -> amqp.ChannelClose:
    """The refusal that comes next; the channel is there again afterwards."""
    close = client.expect(amqp.ChannelClose, channel)
    client.say(amqp.ChannelCloseOk(), channel)
    client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, channel)
    return close


REFUSED: dict[str, Method] = {
    "declare a queue": amqp.QueueDeclare(queue="theirs"),
    "declare another queue": amqp.QueueDeclare(queue="other"),
    "delete a queue": amqp.QueueDelete(queue="theirs"),
    "purge a queue": amqp.QueuePurge(queue="theirs"),
    "consume": amqp.BasicConsume(queue="theirs"),
    "get": amqp.BasicGet(queue="theirs"),
    "declare an exchange": amqp.ExchangeDeclare(exchange="theirs", type="fanout"),
    "delete an exchange": amqp.ExchangeDelete(exchange="theirs"),
    "bind their queue": amqp.QueueBind(queue="theirs", exchange="mine", routing_key="k"),
    "bind to their exchange": amqp.QueueBind(queue="mine", exchange="theirs", routing_key="k"),
    "unbind": amqp.QueueUnbind(queue="theirs", exchange="theirs"),
    "bind their exchange to mine": amqp.ExchangeBind(destination="mine", source="theirs"),
    "publish": amqp.BasicPublish(exchange="theirs", routing_key="k"),
}


@pytest.fixture(scope="module")
def mine(rabbitmq: RabbitMQ, policed: Gateway) -> None:
    with Talker.dial(rabbitmq.port) as owner:
        owner.open(vhost=VHOST)
        owner.ask(amqp.ExchangeDeclare(exchange="mine", type="fanout"), amqp.ExchangeDeclareOk, 1)
        owner.ask(amqp.QueueDeclare(queue="mine"), amqp.QueueDeclareOk, 1)
        owner.bye()


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_reads_like_rabbitmqs_own(
    rabbitmq: RabbitMQ, client: Talker, witness: Talker, mine: None, name: str
) -> None:
    """The same user, and RabbitMQ's own permissions instead of the policy: the same close, to the letter."""
    method = REFUSED[name]
    heard = []
    with Talker.dial(rabbitmq.port) as direct:
        direct.open(vhost=VHOST, user="narrow")
        for talker in (direct, client):
            if isinstance(method, amqp.BasicPublish):
                talker.content(method, b"x" * 300_000)
            else:
                talker.say(method, 1)
            heard.append(reopened(talker))
        direct.bye()
    own, ours = heard
    assert own.reply_text.endswith("refused for user 'narrow'")
    assert ours.reply_text == own.reply_text.replace("'narrow'", "'guest'")
    assert (ours.reply_code, ours.class_id, ours.method_id) == (own.reply_code, own.class_id, own.method_id)
    assert untouched(witness)


def test_two_hundred_refusals_on_one_channel_number(client: Talker, witness: Talker) -> None:
    """Whatever the size, and while another channel goes on; nothing of them reaches the broker."""
    queue = f"mine-{secrets.token_hex(4)}"
    client.ask(amqp.QueueDeclare(queue=queue, exclusive=True), amqp.QueueDeclareOk, 2)
    client.ask(amqp.BasicConsume(queue=queue, no_ack=True), amqp.BasicConsumeOk, 2)
    sizes = [0, 1, 4088, 131_064, 131_065, 400_000]
    for round_ in range(200):
        client.publish(b"x" * sizes[round_ % len(sizes)], "k", exchange="theirs", channel=1)
        # What the client says behind it, before it knows, is dropped, too.
        client.publish(b"allowed, but too late", queue, channel=1)
        client.publish(b"%d" % round_, queue, channel=2)
        close, delivered = None, None
        while close is None or delivered is None:
            channel, method = client.hear()
            if channel == 1:
                assert isinstance(method, amqp.ChannelClose)
                close = method
            else:
                delivered = client.content_of(method, 2)
        assert (close.reply_code, close.class_id, close.method_id) == (403, 60, 40)
        assert delivered.body == b"%d" % round_
        client.say(amqp.ChannelCloseOk(), 1)
        client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
    assert untouched(witness)
    # Nothing that was dropped came later.
    assert client.ask(amqp.QueuePurge(queue=queue), amqp.QueuePurgeOk, 2).message_count == 0


def test_a_refusal_on_a_channel_with_confirms_and_consumers(client: Talker, witness: Talker) -> None:
    queue = f"mine-{secrets.token_hex(4)}"
    witness.ask(amqp.QueueDeclare(queue=queue), amqp.QueueDeclareOk, 1)
    client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
    client.ask(amqp.BasicConsume(queue=queue), amqp.BasicConsumeOk, 1)
    for number in range(20):
        client.publish(b"%d" % number, queue)
    client.publish(b"no", "k", exchange="theirs")
    client.publish(b"too late", queue)
    confirmed, delivered, close = 0, 0, None
    while close is None:
        _, method = client.hear()
        if isinstance(method, amqp.BasicAck):
            confirmed = method.delivery_tag
        elif isinstance(method, amqp.BasicDeliver):
            assert client.content_of(method).body == b"%d" % delivered
            delivered += 1
        else:
            assert isinstance(method, amqp.ChannelClose)
            close = method
    assert close.reply_code == 403
    assert confirmed <= 20
    client.say(amqp.ChannelCloseOk(), 1)
    # What it had not acknowledged is back, all that came before the refusal is there, and nothing else.
    passive = amqp.QueueDeclare(queue=queue, passive=True)

    def all_there() -> bool:
        now = witness.ask(passive, amqp.QueueDeclareOk, 1)
        return (now.message_count, now.consumer_count) == (20, 0)

    eventually(all_there)
    client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
    # Confirms are counted from one again.
    client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
    client.publish(b"again", queue)
    assert client.expect(amqp.BasicAck, 1).delivery_tag == 1
    witness.ask(amqp.QueueDelete(queue=queue), amqp.QueueDeleteOk, 1)


def test_other_sessions_and_vhosts_are_free(policed: Gateway, rabbitmq: RabbitMQ) -> None:
    with Talker.dial(policed.port) as client:
        client.open(vhost="/")
        name = f"any-{secrets.token_hex(4)}"
        client.ask(amqp.QueueDeclare(queue=name, exclusive=True), amqp.QueueDeclareOk, 1)
        client.bye()


def test_refusals_are_counted(policed: Gateway, client: Talker) -> None:
    def count() -> float:
        lines = policed.get("/metrics")[1].splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("amqpgate_denials_total{"))

    before = count()
    client.say(amqp.QueueDelete(queue="theirs"), 1)
    reopened(client)
    assert count() == before + 1
