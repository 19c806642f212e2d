"""Imported permissions answer as RabbitMQ does: the same requests, by both, and what is there afterwards.

Each scenario is a user with random permissions and topic permissions. RabbitMQ enforces them first, and the
gateway then, with the policies that were imported, while RabbitMQ allows the user everything.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

from amqpgate.cli import main
from amqpgate.protocol.sasl import plain_response
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.support.gateway import Gateway
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import CAPABILITIES, Talker

VHOST = "imported"
#: The last two are about what RabbitMQ refuses before it looks at topics.
SEEDS = (*range(22), 99, 105)

#: Which of them the quick tests leave out.
_SLOW = range(8, 22)
REQUESTS = 40

PERMISSIONS = [
    "", ".*", ".*", "^a", r"^b\.", "q$", "amq", r"^(a|amq\.default)", "^$", "^(d|t)", r"^amq\.gen-",
    r"^amq\.gen-$", "(?i)^A", "^[^a]", "x{user}|^b", r"\.", "^(a|b)?$", r"^amq\.gen-.{22}$",
    r"^(amq\.gen.*|amq\.default)$",
]  # fmt: skip
TOPICS = ["", ".*", "^a", r"^{username}\.", "b$", r"\*", "^[^#]*$", r"^{vhost}|#", r"(^|\.)a(\.|$)"]

QUEUES = ["q", "a.q", "b.q", "a", "xq", "", "amq.gen-x", "amq.taken"]
EXCHANGES = ["d", "a.d", "b.d", "t", "a.t", "", "amq.topic", "amq.direct", "none"]
KEYS = ["a", "a.b", "b", "#", "a.*", "", "a.q", "scenario-1.x", "scenario-2.x", "imported", "x.#"]
#: Their types do not change, so that the import knows them.
TOPIC_EXCHANGES = ["t", "a.t", "amq.topic"]


@attrs.frozen
class Scenario:
    user: str
    permissions: tuple[str, str, str]
    #: exchange: write, read
    topics: dict[str, tuple[str, str]]
    requests: list[Method]


def scenario(number: int) -> Scenario:
    dice = random.Random(number)
    topics = {
        exchange: (dice.choice(TOPICS), dice.choice(TOPICS))
        for exchange in [*TOPIC_EXCHANGES, "d"]
        if dice.random() < 0.5
    }
    configure, write, read = (dice.choice(PERMISSIONS) for _ in range(3))
    return Scenario(
        f"scenario-{number}", (configure, write, read), topics, [request(dice, n) for n in range(REQUESTS)]
    )


def request(dice: random.Random, number: int) -> Method:
    queue, exchange, other = dice.choice(QUEUES), dice.choice(EXCHANGES), dice.choice(EXCHANGES)
    key = dice.choice(KEYS)
    fresh = f"{dice.choice(['a.', 'b.', '', 'x'])}new{number}{dice.choice(['', '.q'])}"
    leads = dice.choice(["d", "a.d", "b.d", "", "none"])
    return dice.choice(
        [
            amqp.QueueDeclare(queue=queue),
            amqp.QueueDeclare(queue=queue, passive=True),
            amqp.QueueDeclare(queue=fresh, arguments=Table.of({"x-dead-letter-exchange": leads})),
            amqp.QueueDelete(queue=dice.choice(["a.q", "xq", ""])),
            amqp.QueuePurge(queue=queue),
            amqp.QueueBind(queue=queue, exchange=exchange, routing_key=key),
            amqp.QueueBind(queue=queue, exchange=exchange, routing_key=key),
            amqp.QueueUnbind(queue=queue, exchange=exchange, routing_key=key),
            amqp.ExchangeDeclare(exchange=dice.choice(["a.x", "b.x", "", "amq.x"]), type="fanout"),
            amqp.ExchangeDeclare(exchange=exchange, type="direct", passive=True),
            amqp.ExchangeDeclare(
                exchange=fresh, type="fanout", arguments=Table.of({"alternate-exchange": leads})
            ),
            amqp.ExchangeDelete(exchange=dice.choice(["a.x", "b.x", "", "amq.x"])),
            amqp.ExchangeBind(destination=other, source=exchange, routing_key=key),
            amqp.ExchangeUnbind(destination=other, source=exchange, routing_key=key),
            amqp.BasicPublish(exchange=exchange, routing_key=key),
            amqp.BasicPublish(exchange=exchange, routing_key=key),
            amqp.BasicGet(queue=queue, no_ack=True),
            amqp.BasicConsume(queue=queue),
            amqp.BasicConsume(queue="amq.rabbitmq.reply-to", no_ack=True),
        ]
    )


def text(value: str) -> str:
    return '<<"' + value.replace("\\", "\\\\").replace('"', '\\"') + '">>'


def permit(rabbitmq: RabbitMQ, one: Scenario, *, everything: bool = False) -> None:
    """Give the user its permissions, or all."""
    configure, write, read = (".*",) * 3 if everything else one.permissions
    module, user, vhost = "rabbit_auth_backend_internal", text(one.user), text(VHOST)
    calls = [
        f"{module}:set_permissions({user}, {vhost}, {text(configure)}, {text(write)}, {text(read)}, {user})"
    ]
    for exchange, (sending, catching) in {} if everything else one.topics.items():  # type: ignore[attr-defined]
        calls.append(
            f"{module}:set_topic_permissions({user}, {vhost}, {text(exchange)}, {text(sending)},"
            f" {text(catching)}, {user})"
        )
    rabbitmq.eval(", ".join(calls) + ".")


def furnish(rabbitmq: RabbitMQ) -> None:
    """The vhost, anew, with queues and exchanges."""
    rabbitmq.fresh_vhost(VHOST)
    with Talker.dial(rabbitmq.port) as owner:
        owner.open(vhost=VHOST)
        for exchange, kind in {
            "d": "direct",
            "a.d": "direct",
            "b.d": "fanout",
            "t": "topic",
            "a.t": "topic",
        }.items():
            owner.ask(amqp.ExchangeDeclare(exchange=exchange, type=kind), amqp.ExchangeDeclareOk, 1)
        for queue in ("q", "a.q", "b.q"):
            owner.ask(amqp.QueueDeclare(queue=queue), amqp.QueueDeclareOk, 1)
            owner.ask(amqp.QueueBind(queue=queue, exchange="t", routing_key="#"), amqp.QueueBindOk, 1)
            owner.publish(b"one", queue)
        owner.bye()


def remains(rabbitmq: RabbitMQ) -> str:
    """Queues with their messages, exchanges, bindings."""
    vhost = text(VHOST)
    told = rabbitmq.eval(
        f"{{lists:sort(rabbit_amqqueue:info_all({vhost}, [name, messages])),"
        f" lists:sort(rabbit_exchange:info_all({vhost}, [name, type])),"
        f" lists:sort(rabbit_binding:info_all({vhost},"
        " [source_name, destination_kind, destination_name, routing_key]))}."
    )
    return nameless(told)


def nameless(told: str) -> str:
    """Without the names that the server makes up; a refusal of the gateway's names none."""
    return re.sub(r"amq\.gen-([A-Za-z0-9_-]{22})?(?![A-Za-z0-9_-])", "amq.gen-MADE-UP", told)


class Client:
    """Says one thing after the other, on a new channel after each close."""

    def __init__(self, port: int, user: str) -> None:
        self.talker = Talker.dial(port)
        self.talker.open(vhost=VHOST, user=user, password="secret")
        self.prepare()

    def prepare(self) -> None:
        self.talker.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)

    def reopen(self) -> None:
        self.talker.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
        self.prepare()

    def next_method(self) -> Method:
        while True:
            frame = self.talker.frame()
            if frame.type == amqp.FRAME_METHOD:
                method = decode_method(frame.payload)
                if not isinstance(method, amqp.BasicDeliver):
                    return method

    def ask(self, method: Method) -> str:
        if isinstance(method, amqp.BasicPublish):
            self.talker.content(method, b"body")
        else:
            self.talker.say(method, 1)
        answer = self.next_method()
        if isinstance(answer, amqp.ChannelClose):
            self.talker.say(amqp.ChannelCloseOk(), 1)
            self.reopen()
        elif isinstance(answer, amqp.BasicConsumeOk):
            self.talker.say(amqp.ChannelClose(200, "", 0, 0), 1)
            while not isinstance(self.next_method(), amqp.ChannelCloseOk):
                pass
            self.reopen()
            return type(answer).__name__
        elif isinstance(answer, amqp.BasicAck):
            return "published"
        elif isinstance(answer, amqp.BasicGetOk):
            return f"got one of {answer.exchange}/{answer.routing_key}"
        return nameless(str(answer))

    def bye(self) -> None:
        self.talker.bye()
        self.talker.close()


#: A dot is no line feed to RabbitMQ's expressions.
LINES = Scenario(
    "scenario-lines",
    (".*", ".*", ".*"),
    {"t": ("^a.b$", "^a.b$")},
    [
        request
        for key in ("a.b", "a\nb", "a\rb", "a\n", "a\nb.c")
        for request in (
            amqp.BasicPublish(exchange="t", routing_key=key),
            amqp.QueueBind(queue="q", exchange="t", routing_key=key),
        )
    ],
)


@pytest.fixture(scope="module")
def scenarios() -> list[Scenario]:
    return [*map(scenario, SEEDS), LINES]


@pytest.fixture(scope="module")
def gateway(
    rabbitmq: RabbitMQ, scenarios: list[Scenario], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    """With the policies that the node's own export of everybody's permissions makes."""
    furnish(rabbitmq)
    for user in [*(one.user for one in scenarios), "nobody"]:
        rabbitmq.eval(
            f'rabbit_auth_backend_internal:put_user(#{{name => {text(user)}, password => <<"secret">>,'
            ' tags => <<>>}, <<"test">>).'
        )
    for one in scenarios:
        permit(rabbitmq, one)
    folder = tmp_path_factory.mktemp("imported")
    rabbitmq.ctl("export_definitions", str(folder / "definitions.json"))
    made = CliRunner().invoke(
        main, ["policy", "import", str(folder / "definitions.json"), "--out", str(folder / "policies")]
    )
    assert made.exit_code == 0, made.output
    gateway = Gateway(f"amqp://{rabbitmq.address}", policies=Path(folder / "policies"))
    with gateway.serving():
        yield gateway


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, id=str(seed), marks=[pytest.mark.slow] if seed in _SLOW else [])
        for number, seed in enumerate((*SEEDS, "lines"))
    ],
)
def test_the_same_answers_and_the_same_remains(
    rabbitmq: RabbitMQ, gateway: Gateway, scenarios: list[Scenario], number: int
) -> None:
    one = scenarios[number]
    seen = []
    for port, everything in ((rabbitmq.port, False), (gateway.port, True)):
        furnish(rabbitmq)
        permit(rabbitmq, one, everything=everything)
        client = Client(port, one.user)
        answers = [(str(request), client.ask(request)) for request in one.requests]
        client.bye()
        seen.append((answers, remains(rabbitmq)))
    direct, ours = seen
    different = [(mine, theirs) for mine, theirs in zip(ours[0], direct[0], strict=True) if mine != theirs]
    assert not different, (one.permissions, one.topics)
    assert ours[1] == direct[1], (one.permissions, one.topics)


def opening(port: int, user: str) -> Method:
    """The answer to connection.open."""
    with Talker.dial(port) as talker:
        talker.raw(amqp.PROTOCOL_HEADER)
        talker.expect(amqp.ConnectionStart)
        tune = talker.ask(
            amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", plain_response(user, "secret"), "en_US"),
            amqp.ConnectionTune,
        )
        talker.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
        talker.say(amqp.ConnectionOpen(virtual_host=VHOST))
        return talker.hear()[1]


def test_whoever_has_no_permission_cannot_open_the_vhost(rabbitmq: RabbitMQ, gateway: Gateway) -> None:
    direct = opening(rabbitmq.port, "nobody")
    assert isinstance(direct, amqp.ConnectionClose)
    rabbitmq.eval(
        'rabbit_auth_backend_internal:set_permissions(<<"nobody">>, '
        f'{text(VHOST)}, <<".*">>, <<".*">>, <<".*">>, <<"test">>).'
    )
    assert isinstance(opening(rabbitmq.port, "nobody"), amqp.ConnectionOpenOk)
    assert opening(gateway.port, "nobody") == direct


def test_the_scenarios_have_both_answers(scenarios: list[Scenario]) -> None:
    kinds = {type(request).__name__ for one in scenarios for request in one.requests}
    assert len(kinds) == 12
