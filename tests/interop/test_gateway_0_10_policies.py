"""Policies, limits and transforms hold for clients of AMQP 0-10 as for others, in their own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.types import Map, Value
from tests.interop.clients_0_10 import ACCESS, RATE, TRANSFORM, Make, make, opened, queue, write
from tests.support.client_0_10 import ClientSession, Closed, Refused, headers, text
from tests.support.inprocess import InProcess, eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

__all__ = ["make", "queue"]

RULES = ACCESS + "  rules: [%s]\n"
ANY = RULES % '{id: any, effect: allow, operations: ["*"]}'
LIMIT = RATE + "  limits: [{id: l, per: [connection], %s}]\n"


def publish(session: ClientSession, queue: str, count: int) -> None:
    for _ in range(count):
        session.publish(b"x", queue)


def do_much(running: InProcess, queue: str) -> None:
    """More of everything than is allowed."""
    with opened(running) as (client, session):
        for number in range(1, 10):
            with opened(running):
                pass
            session.declare(queue, auto_delete=True)
            session.subscribe(queue, f"d{number}")
            session.ask(amqp.ExecutionSync())
            client.session(number).declare(queue, auto_delete=True)


# -- access ----------------------------------------------------------------------------------------


def test_a_denial_ends_its_session_and_no_other(make: Make, queue: str) -> None:
    """A denied transfer's body never leaves; who waits hears 403 and the broker's own sentence."""
    own = "effect: allow, operations: [queue.declare, queue.delete, basic.consume]"
    rule = f"{{id: own, {own}, queue: {queue}}}"
    publish = f"{{id: p, effect: allow, operations: [basic.publish], exchange: '', routingKey: {queue}}}"
    running = make(RULES % f"{rule}, {publish}")
    with opened(running) as (client, quiet):
        quiet.declare(queue, auto_delete=True)
        denied = [
            amqp.QueueDeclare(queue=b"theirs"),
            amqp.QueueQuery(queue=b"theirs"),
            amqp.QueueDelete(queue=b"theirs"),
            amqp.QueuePurge(queue=b"theirs"),
            amqp.MessageSubscribe(queue=b"theirs", destination=b"d"),
            amqp.ExchangeDeclare(exchange=b"x", type=b"direct"),
            amqp.ExchangeQuery(name=b"x"),
            amqp.ExchangeBind(exchange=b"amq.topic", queue=queue.encode(), binding_key=b"k"),
        ]
        for number, command in enumerate(denied):
            with pytest.raises(Refused) as refused:
                client.session(1, f"s{number}").ask(command)
            assert refused.value.code == 403
            assert refused.value.text.startswith("ACCESS_REFUSED - ")
            client.sessions[1].refused()
        with pytest.raises(Refused) as refused:
            client.session(1).publish(b"secret", "theirs")
        assert refused.value.code == 403
        client.sessions[1].refused()
        quiet.publish(b"mine", queue)
        quiet.subscribe(queue)
        assert quiet.get().body == b"mine"


@pytest.mark.parametrize(
    ("mode", "code"), [("channel-close", 403), ("nack", 506), ("return", 403), ("drop", None)]
)
@pytest.mark.parametrize("transacts", [False, True])
def test_what_a_denied_publish_comes_to(
    make: Make, queue: str, mode: str, code: int | None, transacts: bool
) -> None:
    """The session ends, unless the policy has it dropped; what was published before is there. A part of a
    transaction is not dropped.
    """
    rules = (
        f"{{id: p, effect: allow, operations: [basic.publish], exchange: '', routingKey: {queue}}}, "
        "{id: q, effect: allow, operations: ['queue.*', basic.consume]}"
    )
    running = make(ACCESS + f"  onDeny: {{publish: {mode}}}\n  rules: [{rules}]\n")
    with opened(running) as (client, session):
        session.declare(queue, auto_delete=True)
        if transacts:
            session.ask(amqp.TxSelect())
        for _ in range(10):
            session.publish(b"x", queue, sync=False)
        denied = session.publish(b"secret", "theirs", sync=False)
        if code is None and not transacts:
            session.wait(session.publish(b"y", queue))
            assert denied in session.completed
            return
        refused = session.refused()
        # Without confirms there is no nack.
        assert refused.code == (403 if transacts else code)
        # Of several that are not confirmed a close does not say which one it is about.
        assert refused.command_id in ((None,) if transacts else (None, denied))
        other = client.session(1)

        def count() -> int:
            found = other.ask(amqp.QueueQuery(queue=queue.encode()))
            assert isinstance(found, amqp.QueueQueryResult)
            return found.message_count or 0

        # What one channel has published the broker may still take when another one asks.
        eventually(lambda: count() == (0 if transacts else 10))


def test_headers_and_sizes_are_judged(make: Make, queue: str) -> None:
    running = make(
        RULES
        % (
            "{id: queues, effect: allow, operations: ['queue.*']}, {id: p, effect: allow, "
            "operations: [basic.publish], properties: {maxBodyBytes: 10, headers: {deny: [secret]}}}"
        )
    )
    with opened(running) as (client, session):
        session.declare(queue, auto_delete=True)
        session.publish(b"x" * 10, queue, properties=headers(other="x"))
        with pytest.raises(Refused):
            session.publish(b"x" * 11, queue)
        session.refused()
        with pytest.raises(Refused) as refused:
            client.session(1).publish(b"x", queue, properties=headers(secret="x"))
        assert refused.value.code == 403


def test_who_a_client_says_it_is(make: Make, queue: str) -> None:
    """Its client-properties are what policies select it by."""
    running = make((RULES % "").replace("{user: guest}", '{user: guest, client: {product: "qpid*"}}'))
    with opened(running, properties={"product": "other"}) as (_, session):
        session.declare(queue, auto_delete=True)
    with opened(running, properties={"product": "qpid python client"}) as (_, session):
        with pytest.raises(Refused) as refused:
            session.declare(queue, auto_delete=True)
        assert refused.value.code == 403


def test_a_reload_ends_the_sessions_that_do_what_is_denied_now(
    make: Make, queue: str, tmp_path: Path
) -> None:
    running = make(ANY)
    with opened(running) as (client, consumer):
        consumer.declare(queue)
        consumer.subscribe(queue)
        publisher = client.session(1)
        publisher.publish(b"one", queue)
        assert consumer.get().body == b"one"
        write(tmp_path, RULES % "{id: p, effect: allow, operations: [basic.publish]}")
        assert running.ask(running.gateway.reload_policies).status == "done"
        refused = consumer.refused()
        assert refused.code == 408
        assert "denied" in refused.text
        # What it had not accepted is there again, and the other session goes on.
        publisher.publish(b"two", queue)
        write(tmp_path, ANY)
        running.ask(running.gateway.reload_policies)
        again = client.session(2)
        again.subscribe(queue)
        assert [again.get().body, again.get().body] == [b"one", b"two"]
        again.ask(amqp.MessageCancel(destination=b"d"))
        again.ask(amqp.QueueDelete(queue=queue.encode()))


# -- transforms ------------------------------------------------------------------------------------


def test_what_is_renamed_reaches_both_sides_truly(make: Make, queue: str, rabbitmq: RabbitMQ) -> None:
    running = make(
        TRANSFORM + "  names: {both: {prefix: 't1.'}}\n  headers: {set: {tenant: t1}, strip: [secret]}\n"
    )
    exchange = f"x-{queue}"
    with opened(running) as (client, session), Talker.dial(rabbitmq.port) as other:
        session.declare(queue, auto_delete=True)
        session.ask(amqp.ExchangeDeclare(exchange=exchange.encode(), type=b"topic"))
        session.ask(amqp.ExchangeBind(exchange=exchange.encode(), queue=queue.encode(), binding_key=b"a.#"))
        session.publish(b"one", "a.b", exchange=exchange)
        session.publish(b"two", queue, properties=headers(secret="s", other="o"))
        session.subscribe(queue)
        one, two = session.get(), session.get()
        assert (one.delivery.exchange, one.delivery.routing_key) == (exchange.encode(), b"a.b")
        assert (two.delivery.exchange, two.delivery.routing_key) == (b"", queue.encode())
        assert two.headers == {"other": b"o", "tenant": b"t1"}
        found = session.ask(amqp.QueueQuery(queue=queue.encode()))
        assert isinstance(found, amqp.QueueQueryResult)
        assert found.queue == queue.encode()
        bound = session.ask(amqp.ExchangeBound(exchange=exchange.encode(), queue=queue.encode()))
        assert bound == amqp.ExchangeBoundResult()
        reply_to = amqp.ReplyTo(routing_key=queue.encode())
        session.publish(b"asks", queue, properties=amqp.MessageProperties(reply_to=reply_to))
        answered = session.get().properties
        assert answered is not None
        assert answered.reply_to == reply_to
        # The broker knows it by the other name, and the client hears its own in errors.
        other.open()
        other.publish(b"three", f"t1.{queue}")
        assert session.get().body == b"three"
        other.bye()
        with pytest.raises(Refused, match="no queue 'none' in vhost"):
            session.ask(amqp.QueueDelete(queue=b"none"))
        client.session(1).ask(amqp.ExchangeDelete(exchange=exchange.encode()))


# -- limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "code"),
    [("action: reject", 506), ("action: close", 320)],
)
def test_too_many_messages(make: Make, queue: str, limit: str, code: int) -> None:
    running = make(LIMIT % f"messages: 2/s, {limit}")
    with opened(running) as (_, session):
        session.declare(queue, auto_delete=True)
        with pytest.raises((Refused, Closed)) as refused:
            publish(session, queue, 10)
        assert refused.value.code == code


def test_too_many_messages_wait(make: Make, queue: str) -> None:
    """Each of them is complete in the end, and in order."""
    running = make(LIMIT % "messages: 50/s, burst: 100ms")
    with opened(running) as (_, session):
        session.declare(queue, auto_delete=True)
        for number in range(30):
            session.publish(b"%d" % number, queue, sync=False)
        session.ask(amqp.ExecutionSync())
        assert running.call(lambda: running.gateway.pump.counters.throttled) > 0
        session.subscribe(queue)
        assert [session.get().body for _ in range(30)] == [b"%d" % number for number in range(30)]


@pytest.mark.parametrize(
    ("limit", "code", "said"),
    [
        ("queueDeclares: 2/m, action: reject", 406, "rate limit reached by 'queue.declare'"),
        ("queueDeclares: 2/m, action: close", 320, "rate limit reached by 'queue.declare'"),
        ("consumers: 2/m, action: reject", 406, "rate limit reached by 'basic.consume'"),
        ("channels: 2/m, action: reject", 320, "number of channels opened"),
        ("concurrent: 1, action: reject", 530, "connection limit (1) is reached"),
    ],
)
def test_too_much_else(make: Make, queue: str, limit: str, code: int, said: str) -> None:
    running = make(RATE + f"  limits: [{{id: l, per: [user], {limit}}}]\n")
    with pytest.raises((Refused, Closed)) as refused:
        do_much(running, queue)
    assert refused.value.code == code
    assert said in refused.value.text


def test_a_message_that_is_too_large(make: Make, queue: str) -> None:
    running = make(limits=", maxMessageBytes: 1Ki")
    with opened(running) as (client, session):
        session.declare(queue, auto_delete=True)
        session.publish(b"x" * 1024, queue)
        with pytest.raises(Refused) as refused:
            session.publish(b"x" * 1025, queue)
        assert refused.value.code == 406
        assert refused.value.text.endswith("message size 1025 is larger than configured max size 1024")
        client.session(1).publish(b"x", queue)


def test_a_session_has_as_many_channels_as_the_listener_grants(make: Make) -> None:
    running = make(listener=", channelMax: 7")
    with opened(running) as (client, _):
        assert client.connection.tune is not None
        assert client.connection.tune.channel_max == 2


def test_a_user_id_is_validated(make: Make, queue: str) -> None:
    running = make(TRANSFORM + "  properties: {userId: validate}\n")
    with opened(running) as (_, session):
        session.declare(queue, auto_delete=True)
        session.publish(b"x", queue, properties=amqp.MessageProperties(user_id=b"guest"))
        session.publish(b"x", queue, properties=amqp.MessageProperties(user_id=b"guest@QPID"))
        # What is not the login's is left out, so the broker has nothing to refuse.
        session.publish(b"x", queue, properties=amqp.MessageProperties(user_id=b"another"))
        session.subscribe(queue)
        users = [(session.get().properties or amqp.MessageProperties()).user_id for _ in range(3)]
        assert users == [b"guest", b"guest", None]


def test_arguments_are_capped(make: Make, queue: str) -> None:
    running = make(
        TRANSFORM + "  arguments: [{id: a, operations: [queue.declare], ceilings: {x-max-length: 2}}]\n"
    )
    with opened(running) as (_, session):
        arguments = Map(
            ((b"qpid.max_count", Value(TypeCode.UINT32, 100)), (b"qpid.policy_type", text("ring")))
        )
        session.declare(queue, auto_delete=True, arguments=arguments)
        for number in range(5):
            session.publish(b"%d" % number, queue)
        found = session.ask(amqp.QueueQuery(queue=queue.encode()))
        assert isinstance(found, amqp.QueueQueryResult)
        assert found.message_count == 2
