"""Routing keys and values of every type, directly and through the gateway: what a rule denies reaches nobody.

RabbitMQ is asked each time first, so that what a value means to it is shown and not supposed.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Field, Table
from tests.support.gateway import Gateway
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

VHOST = "peer-values"
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: values}
spec:
  subjects: [{user: "*", vhosts: [peer-values]}]
  rules:
  - {id: queues, effect: allow, operations: [queue.declare, queue.bind, basic.get]}
  - id: public
    effect: allow
    operations: [basic.publish]
    exchange: amq.topic
    routingKey: {topic: "public.#"}
  - {id: headers, effect: allow, operations: [basic.publish], exchange: amq.headers}
  - id: no-secrets
    effect: deny
    operations: [basic.publish]
    exchange: amq.headers
    properties: {headers: {values: {k: secret}}}
  - id: no-high-numbers
    effect: deny
    operations: [basic.publish]
    exchange: amq.headers
    properties: {headers: {values: {n: {min: 5}}}}
"""


def texts(*values: str | bytes) -> Field:
    return Field("A", tuple(Field("S", value) for value in values))


#: Of the headers of a message to ``public.a``: what becomes of it directly, and through the gateway.
KEYS: dict[str, tuple[Table, str, str]] = {
    "text": (Table((("CC", texts("secret.a")),)), "routed", "denied"),
    "bytes": (Table((("CC", texts(b"secret.\xff")),)), "routed", "denied"),
    "blind": (Table((("BCC", texts("public.b", b"secret.\xff")),)), "routed", "denied"),
    "line break": (Table((("CC", texts("secret.\n")),)), "routed", "denied"),
    "longer than a key": (Table((("CC", texts("secret." + "x" * 300)),)), "routed", "denied"),
    "among others": (
        Table((("CC", Field("A", (Field("I", 7), Field("S", "secret.a")))),)),
        "routed",
        "denied",
    ),
    # The first counts to RabbitMQ; but it takes only that BCC off a message, and the next hop has the second.
    "second": (Table((("CC", texts("public.b")), ("CC", texts("secret.a")))), "passed", "denied"),
    "second blind": (Table((("BCC", texts("public.b")), ("BCC", texts("secret.a")))), "passed", "denied"),
    "binary": (Table((("CC", Field("A", (Field("x", b"secret.a"),))),)), "passed", "denied"),
    # What no broker takes for a key passes, and what RabbitMQ refuses is left to it.
    "numbers": (Table((("CC", Field("A", (Field("I", 7), Field("V", None)))),)), "passed", "passed"),
    "array within": (Table((("CC", Field("A", (texts("secret.a"),))),)), "passed", "passed"),
    "other case": (Table((("cc", texts("secret.a")),)), "passed", "passed"),
    "no array": (Table((("CC", Field("S", "secret.a")),)), "406", "406"),
    "table": (Table((("BCC", Field("F", Table.of({"a": "secret.a"}))),)), "406", "406"),
    "allowed": (Table((("CC", texts("public.b", b"public.\xff")),)), "passed", "passed"),
}

#: Of the headers of a message: whether RabbitMQ's headers exchange takes it for one with k = secret, n = 5.
VALUES: dict[str, tuple[Table, bool, str]] = {
    "text": (Table((("k", Field("S", "secret")),)), True, "denied"),
    "bytes": (Table((("k", Field("x", b"secret")),)), True, "denied"),
    "first of two": (Table((("k", Field("S", "secret")), ("k", Field("S", "x")))), True, "denied"),
    "second of two": (Table((("k", Field("S", "x")), ("k", Field("S", "secret")))), False, "denied"),
    "in an array": (Table((("k", texts("x", "secret")),)), False, "denied"),
    "in a table": (Table((("k", Field("F", Table.of({"a": "secret"}))),)), False, "denied"),
    "another text": (Table((("k", texts("x", "secrets")),)), False, "passed"),
    **{
        f"number {tag}": (Table((("n", Field(tag, value)),)), is_equal, "denied")
        for tag, value, is_equal in (
            ("b", 5, True),
            ("I", 5, True),
            ("l", 5, True),
            ("d", 5.0, True),
            ("f", 5.0, True),
            ("T", 5, True),
            ("D", Decimal(5), False),
            ("S", "5", False),
        )
    },
    "low number": (Table((("n", Field("d", 4.5)),)), False, "passed"),
    "no number": (Table((("n", Field("S", "five")),)), False, "passed"),
}


@pytest.fixture(scope="module")
def gateway(rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    rabbitmq.fresh_vhost(VHOST)
    folder: Path = tmp_path_factory.mktemp("policies")
    (folder / "values.yaml").write_text(POLICY)
    gateway = Gateway(f"amqp://{rabbitmq.address}", policies=folder)
    with gateway.serving():
        yield gateway


def outcome(port: int, method: amqp.BasicPublish, headers: Table, *bindings: Method) -> str:
    """What becomes of a message: ``routed`` to a queue with these bindings, ``passed``, or refused how."""
    with Talker.dial(port) as client:
        client.open(vhost=VHOST)
        queue = client.ask(amqp.QueueDeclare(exclusive=True), amqp.QueueDeclareOk, 1).queue
        for binding in bindings:
            client.ask(binding, amqp.QueueBindOk, 1)
        client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        client.content(method, b"body", properties=amqp.BasicProperties(headers=headers))
        _, answer = client.hear()
        if isinstance(answer, amqp.ChannelClose):
            refused = "denied" if answer.reply_code == 403 else str(answer.reply_code)
            client.say(amqp.ChannelCloseOk(), 1)
            client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
        else:
            assert isinstance(answer, amqp.BasicAck)
            refused = ""
        # What a refused message left behind, too.
        passive = client.ask(amqp.QueueDeclare(queue=queue, passive=True), amqp.QueueDeclareOk, 1)
        client.bye()
        return "routed" if passive.message_count else refused or "passed"


@pytest.mark.parametrize("name", KEYS)
def test_more_routing_keys(rabbitmq: RabbitMQ, gateway: Gateway, name: str) -> None:
    headers, direct, ours = KEYS[name]
    publish = amqp.BasicPublish(exchange="amq.topic", routing_key="public.a")
    secrets = amqp.QueueBind(exchange="amq.topic", routing_key="secret.#")
    assert outcome(rabbitmq.port, publish, headers, secrets) == direct
    assert outcome(gateway.port, publish, headers, secrets) == ours


@pytest.mark.parametrize("name", VALUES)
def test_values_of_headers(rabbitmq: RabbitMQ, gateway: Gateway, name: str) -> None:
    headers, is_equal, ours = VALUES[name]
    publish = amqp.BasicPublish(exchange="amq.headers")
    wanted = [
        amqp.QueueBind(exchange="amq.headers", arguments=Table.of({"x-match": "all", key: value}))
        for key, value in (("k", "secret"), ("n", 5))
    ]
    assert (outcome(rabbitmq.port, publish, headers, *wanted) == "routed") is is_equal
    assert outcome(gateway.port, publish, headers, *wanted) == ours


#: Of each, what RabbitMQ answers; the gateway denies them all.
DECLARES: dict[str, tuple[Method, int]] = {
    "dead letters": (
        amqp.QueueDeclare(
            exclusive=True, arguments=Table((("x-dead-letter-exchange", Field("S", b"dlx\xff")),))
        ),
        200,
    ),
    "second dead letters": (
        amqp.QueueDeclare(
            exclusive=True,
            arguments=Table(
                (
                    ("x-dead-letter-routing-key", Field("S", "public.a")),
                    ("x-dead-letter-exchange", Field("S", "amq.topic")),
                    ("x-dead-letter-exchange", Field("S", "dlx")),
                )
            ),
        ),
        200,
    ),
    "dead letters' key": (
        amqp.QueueDeclare(
            exclusive=True,
            arguments=Table(
                (
                    ("x-dead-letter-exchange", Field("S", "amq.topic")),
                    ("x-dead-letter-routing-key", Field("S", b"secret.\xff")),
                )
            ),
        ),
        200,
    ),
    "binary": (
        amqp.QueueDeclare(exclusive=True, arguments=Table((("x-dead-letter-exchange", Field("x", b"dlx")),))),
        406,
    ),
}


@pytest.mark.parametrize("name", DECLARES)
def test_where_declares_lead(rabbitmq: RabbitMQ, gateway: Gateway, name: str) -> None:
    method, direct = DECLARES[name]
    for port, expected in ((rabbitmq.port, direct), (gateway.port, 403)):
        with Talker.dial(port) as client:
            client.open(vhost=VHOST)
            client.say(method, 1)
            _, answer = client.hear()
            code = answer.reply_code if isinstance(answer, amqp.ChannelClose) else 200
            assert code == expected, answer
            client.bye()
