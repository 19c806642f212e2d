"""The holes of a naive access list: each is used on RabbitMQ with ordinary permissions, then refused here.

The user `mallory` has permissions as people write them: expressions that start with the prefixes of her own
things and of shared ones, and with what the broker needs for server-named queues and replies. The policy
means the same, and closes what the expressions leave open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.support.frames import content_frames
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

VHOST = "attacked"
PERMISSIONS = (
    r"^(mine|shared|amq\\.gen).*",
    r"^(mine|shared|amq\\.gen|amq\\.default).*",
    r"^(mine|shared|amq\\.gen|amq\\.rabbitmq\\.reply-to).*",
)

POLICY = r"""
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: mallory}
spec:
  subjects: [{user: mallory, vhosts: [attacked]}]
  rules:
  - id: queues
    effect: allow
    operations: [queue.declare, queue.delete, queue.purge, basic.consume, basic.get]
    queue: {prefix: mine.}
  - id: shared-queues
    effect: allow
    operations: [queue.declare, queue.delete, queue.purge]
    queue: {prefix: shared.}
  - {id: secret, effect: deny, operations: ["queue.*", "basic.*"], queue: {literal: shared.secret}}
  - {id: exchanges, effect: allow, operations: ["exchange.*"], exchange: {prefix: mine.}}
  - id: bindings
    effect: allow
    operations: [queue.bind]
    queue: {prefix: mine.}
    bindTo: [{exchange: {prefix: mine.}}, {exchange: shared.bus, routingKey: {within: "public.#"}}]
  - {id: publish, effect: allow, operations: [basic.publish], exchange: {prefix: mine.}}
  - id: announce
    effect: allow
    operations: [basic.publish]
    exchange: {literal: shared.bus}
    routingKey: {within: "public.#"}
  - id: send
    effect: allow
    operations: [basic.publish]
    exchange: {literal: ""}
    routingKey: {prefix: mine.}
  - id: ask
    effect: allow
    operations: [basic.publish]
    exchange: {literal: ""}
    routingKey: {literal: shared.service}
    properties: {replyTo: {regex: "amq[.](gen-|rabbitmq[.]reply-to).*"}}
  - id: replies
    effect: allow
    operations: [queue.declare, queue.delete, basic.consume, basic.get]
    queue: {prefix: amq.gen-}
"""


@attrs.define
class Scene:
    """Whoever owns what is attacked, on RabbitMQ itself, and what they have."""

    owner: Talker
    #: A server-named queue of theirs, with one message.
    reply_queue: str
    #: The address of a requester who waits for a direct reply.
    direct_reply: str = ""

    def count(self, queue: str) -> int:
        """Messages in a queue."""
        return self.owner.ask(
            amqp.QueueDeclare(queue=queue, passive=True), amqp.QueueDeclareOk, 1
        ).message_count

    def serve(self) -> None:
        """The shared service answers one request where it is told to."""
        self.owner.say(amqp.BasicGet(queue="shared.service", no_ack=True), 1)
        request = self.owner.expect_content(amqp.BasicGetOk)
        properties = request.header.properties
        assert isinstance(properties, amqp.BasicProperties)
        assert properties.reply_to is not None
        self.owner.publish(b"an answer", properties.reply_to)


@attrs.frozen
class Attack:
    """One request that goes beyond what was meant."""

    crime: Callable[[Scene], Method]
    #: What the broker answers to it; None for a publish.
    answer: type[Method] | None
    #: What is done before and afterwards, all of which is allowed.
    before: tuple[tuple[Method, type[Method]], ...] = ()
    after: Callable[[Talker, Scene], None] = lambda talker, scene: None
    #: Whether it has had its effect, which it has not at first.
    works: Callable[[Scene], bool] = lambda scene: scene.count("payroll") == 1
    properties: amqp.BasicProperties = attrs.field(factory=amqp.BasicProperties)

    def commit(self, talker: Talker, scene: Scene, channel: int = 1) -> Method:
        method = self.crime(scene)
        if self.answer is None:
            talker.raw(content_frames(channel, method, self.properties, b"forged", 131072))
        else:
            talker.raw(method_frame(channel, method))
        return method


def queue(name: str, **arguments: str | int) -> tuple[Method, type[Method]]:
    return amqp.QueueDeclare(queue=name, arguments=Table.of(arguments)), amqp.QueueDeclareOk


def exchange(name: str, kind: str) -> tuple[Method, type[Method]]:
    return amqp.ExchangeDeclare(exchange=name, type=kind), amqp.ExchangeDeclareOk


def sends(exchange: str, key: str) -> Callable[[Talker, Scene], None]:
    return lambda talker, scene: talker.publish(b"forged", key, exchange=exchange)


def to_payroll(name: str = "", key: str = "payroll") -> Callable[[Scene], Method]:
    return lambda scene: amqp.BasicPublish(exchange=name, routing_key=key)


def headers(**values: object) -> amqp.BasicProperties:
    return amqp.BasicProperties(headers=Table.of(values))  # type: ignore[arg-type]


def overhears(talker: Talker, scene: Scene) -> None:
    """Somebody says what is not for her; it must come into her queue."""
    scene.owner.publish(b"not for you", "secret.salaries", exchange="shared.bus")


ATTACKS: dict[str, Attack] = {
    "the default exchange leads to any queue": Attack(to_payroll(), None),
    "CC adds a routing key": Attack(
        to_payroll(key="mine.box"), None, (queue("mine.box"),), properties=headers(CC=["payroll"])
    ),
    "BCC adds a routing key": Attack(
        to_payroll(key="mine.box"), None, (queue("mine.box"),), properties=headers(BCC=["mine.x", "payroll"])
    ),
    "dead letters go to any queue": Attack(
        lambda scene: amqp.QueueDeclare(
            queue="mine.dying",
            arguments=Table.of(
                {
                    "x-dead-letter-exchange": "",
                    "x-dead-letter-routing-key": "payroll",
                    "x-message-ttl": 0,
                }
            ),
        ),
        amqp.QueueDeclareOk,
        after=sends("", "mine.dying"),
    ),
    "dead letters go to an exchange with any key": Attack(
        lambda scene: amqp.QueueDeclare(
            queue="mine.dying",
            arguments=Table.of({"x-dead-letter-exchange": "shared.bus", "x-message-ttl": 0}),
        ),
        amqp.QueueDeclareOk,
        (exchange("mine.any", "topic"),),
        after=lambda talker, scene: (
            talker.ask(
                amqp.QueueBind(queue="mine.dying", exchange="mine.any", routing_key="#"), amqp.QueueBindOk, 1
            ),
            talker.publish(b"forged", "secret.salaries", exchange="mine.any"),
        )[-1],
        works=lambda scene: scene.count("secrets") == 1,
    ),
    "an alternate exchange takes any key": Attack(
        lambda scene: amqp.ExchangeDeclare(
            exchange="mine.leak", type="fanout", arguments=Table.of({"alternate-exchange": "shared.bus"})
        ),
        amqp.ExchangeDeclareOk,
        after=sends("mine.leak", "secret.salaries"),
        works=lambda scene: scene.count("secrets") == 1,
    ),
    "an exchange feeds another with any key": Attack(
        lambda scene: amqp.ExchangeBind(destination="shared.bus", source="mine.all"),
        amqp.ExchangeBindOk,
        (exchange("mine.all", "fanout"),),
        after=sends("mine.all", "secret.salaries"),
        works=lambda scene: scene.count("secrets") == 1,
    ),
    "an exchange taps another": Attack(
        lambda scene: amqp.ExchangeBind(destination="mine.tap", source="shared.bus", routing_key="#"),
        amqp.ExchangeBindOk,
        (
            exchange("mine.tap", "fanout"),
            queue("mine.box"),
            (amqp.QueueBind(queue="mine.box", exchange="mine.tap"), amqp.QueueBindOk),
        ),
        after=overhears,
        works=lambda scene: scene.count("mine.box") == 1,
    ),
    "a binding key catches more than it should": Attack(
        lambda scene: amqp.QueueBind(queue="mine.box", exchange="shared.bus", routing_key="#"),
        amqp.QueueBindOk,
        (queue("mine.box"),),
        after=overhears,
        works=lambda scene: scene.count("mine.box") == 1,
    ),
    "a binding key with wildcards in it does": Attack(
        lambda scene: amqp.QueueBind(queue="mine.box", exchange="shared.bus", routing_key="*.salaries"),
        amqp.QueueBindOk,
        (queue("mine.box"),),
        after=overhears,
        works=lambda scene: scene.count("mine.box") == 1,
    ),
    "a server-named queue of others is emptied": Attack(
        lambda scene: amqp.QueueDelete(queue=scene.reply_queue),
        amqp.QueueDeleteOk,
        works=lambda scene: not exists(scene, scene.reply_queue),
    ),
    "a server-named queue of others is read": Attack(
        lambda scene: amqp.BasicConsume(queue=scene.reply_queue, no_ack=True),
        amqp.BasicConsumeOk,
        works=lambda scene: scene.count(scene.reply_queue) == 0,
    ),
    "a service answers into any queue": Attack(
        to_payroll(key="shared.service"),
        None,
        after=lambda talker, scene: (eventually(lambda: scene.count("shared.service") == 1), scene.serve())[
            -1
        ],
        properties=amqp.BasicProperties(reply_to="payroll"),
    ),
    "somebody who waits for a direct reply gets a forged one": Attack(
        lambda scene: amqp.BasicPublish(routing_key=scene.direct_reply),
        None,
        works=lambda scene: scene.owner.expect_content(amqp.BasicDeliver, 2).body == b"forged",
    ),
    "a passive declare tells that a queue exists, and what is in it": Attack(
        lambda scene: amqp.QueueDeclare(queue="payroll", passive=True),
        amqp.QueueDeclareOk,
        works=lambda scene: True,
    ),
    "a passive declare tells that an exchange exists": Attack(
        lambda scene: amqp.ExchangeDeclare(exchange="hidden", passive=True),
        amqp.ExchangeDeclareOk,
        works=lambda scene: True,
    ),
    "a name with a line feed is another one": Attack(
        lambda scene: amqp.QueueDelete(queue="shared.se\r\ncret"),
        amqp.QueueDeleteOk,
        works=lambda scene: not exists(scene, "shared.secret"),
    ),
}
#: Nothing changes by looking, so that there is nothing to see when it was refused.
PROBES = {name for name in ATTACKS if name.startswith("a passive")}


def exists(scene: Scene, name: str) -> bool:
    scene.owner.say(amqp.QueueDeclare(queue=name, passive=True), 3)
    _, answer = scene.owner.hear()
    if isinstance(answer, amqp.QueueDeclareOk):
        return True
    scene.owner.say(amqp.ChannelCloseOk(), 3)
    scene.owner.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 3)
    return False


@pytest.fixture(scope="module")
def guarded(rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("attacks")
    (folder / "mallory.yaml").write_text(POLICY)
    gateway = Gateway(f"amqp://{rabbitmq.address}", policies=folder)
    with gateway.serving():
        yield gateway


@pytest.fixture
def scene(rabbitmq: RabbitMQ) -> Iterator[Scene]:
    rabbitmq.fresh_vhost(VHOST)
    configure, write, read = (f'<<"{permission}">>' for permission in PERMISSIONS)
    rabbitmq.eval(
        'rabbit_auth_backend_internal:put_user(#{name => <<"mallory">>, password => <<"m">>,'
        ' tags => <<>>}, <<"test">>),'
        f' rabbit_auth_backend_internal:set_permissions(<<"mallory">>, <<"{VHOST}">>,'
        f' {configure}, {write}, {read}, <<"test">>).'
    )
    with Talker.dial(rabbitmq.port) as owner:
        owner.open(vhost=VHOST, channels=3)
        for name in ("payroll", "secrets", "shared.secret", "shared.service"):
            owner.ask(amqp.QueueDeclare(queue=name), amqp.QueueDeclareOk, 1)
        owner.ask(amqp.ExchangeDeclare(exchange="shared.bus", type="topic"), amqp.ExchangeDeclareOk, 1)
        owner.ask(amqp.ExchangeDeclare(exchange="hidden", type="topic"), amqp.ExchangeDeclareOk, 1)
        owner.ask(
            amqp.QueueBind(queue="secrets", exchange="shared.bus", routing_key="secret.#"),
            amqp.QueueBindOk,
            1,
        )
        reply_queue = owner.ask(amqp.QueueDeclare(), amqp.QueueDeclareOk, 1).queue
        owner.publish(b"a reply", reply_queue)
        owner.ask(amqp.BasicConsume(queue="amq.rabbitmq.reply-to", no_ack=True), amqp.BasicConsumeOk, 2)
        # Whoever serves requests gets such an address.
        owner.publish(
            b"ask",
            "shared.service",
            channel=2,
            properties=amqp.BasicProperties(reply_to="amq.rabbitmq.reply-to"),
        )
        found = Scene(owner, reply_queue)
        eventually(lambda: found.count("shared.service") == 1)
        owner.say(amqp.BasicGet(queue="shared.service", no_ack=True), 1)
        properties = owner.expect_content(amqp.BasicGetOk).header.properties
        assert isinstance(properties, amqp.BasicProperties)
        found.direct_reply = properties.reply_to or ""
        assert found.direct_reply.startswith("amq.rabbitmq.reply-to.")
        yield found
        owner.bye()


def prepared(attack: Attack, port: int) -> Talker:
    talker = Talker.dial(port)
    talker.open(vhost=VHOST, user="mallory", password="m", channels=2)
    for method, answer in attack.before:
        talker.ask(method, answer, 1)
    return talker


@pytest.mark.parametrize("name", ATTACKS)
def test_it_works_on_the_broker_with_ordinary_permissions(
    rabbitmq: RabbitMQ, scene: Scene, name: str
) -> None:
    attack = ATTACKS[name]
    with prepared(attack, rabbitmq.port) as talker:
        attack.commit(talker, scene)
        if attack.answer is not None:
            talker.expect(attack.answer, 1)
        attack.after(talker, scene)
        eventually(lambda: attack.works(scene))
        talker.close()


@pytest.mark.parametrize("name", ATTACKS)
def test_it_is_refused_by_the_policy(guarded: Gateway, scene: Scene, name: str) -> None:
    attack = ATTACKS[name]
    with prepared(attack, guarded.port) as talker:
        method = attack.commit(talker, scene)
        # As RabbitMQ refuses: 403, of this method, and of this channel alone.
        close = talker.expect(amqp.ChannelClose, 1)
        assert (close.reply_code, close.class_id, close.method_id) == (
            403,
            method.CLASS_ID,
            method.METHOD_ID,
        )
        assert close.reply_text.startswith("ACCESS_REFUSED - access to ")
        assert close.reply_text.endswith("refused for user 'mallory'")
        talker.say(amqp.ChannelCloseOk(), 1)
        still_works(talker)
        if name not in PROBES and "direct reply" not in name:
            assert not attack.works(scene)
        if "direct reply" in name:
            # The next that comes is the true one.
            scene.owner.publish(b"true", scene.direct_reply)
            assert scene.owner.expect_content(amqp.BasicDeliver, 2).body == b"true"
        talker.bye()


def still_works(talker: Talker) -> None:
    """What is allowed, on the other channel of the same connection."""
    talker.ask(*queue("mine.other"), 2)
    talker.ask(
        amqp.QueueBind(queue="mine.other", exchange="shared.bus", routing_key="public.*"), amqp.QueueBindOk, 2
    )
    talker.publish(b"hello", "public.news", exchange="shared.bus", channel=2)
    talker.ask(amqp.BasicConsume(queue="mine.other", no_ack=True), amqp.BasicConsumeOk, 2)
    assert talker.expect_content(amqp.BasicDeliver, 2).body == b"hello"
    # A server-named queue of one's own, and a request with an address for the answer.
    own = talker.ask(amqp.QueueDeclare(exclusive=True), amqp.QueueDeclareOk, 2).queue
    talker.ask(amqp.BasicConsume(queue=own), amqp.BasicConsumeOk, 2)
    talker.publish(b"ask", "shared.service", properties=amqp.BasicProperties(reply_to=own), channel=2)
    talker.ask(amqp.QueueDelete(queue=own), amqp.QueueDeleteOk, 2)


def test_a_probe_does_not_tell_what_exists(guarded: Gateway, scene: Scene) -> None:
    texts = []
    for name in ("payroll", "nothing"):
        with Talker.dial(guarded.port) as talker:
            talker.open(vhost=VHOST, user="mallory", password="m")
            talker.say(amqp.QueueDeclare(queue=name, passive=True), 1)
            close = talker.expect(amqp.ChannelClose, 1)
            texts.append((close.reply_code, close.reply_text.replace(name, "-")))
            talker.say(amqp.ChannelCloseOk(), 1)
            talker.bye()
    assert texts[0] == texts[1]


IMPERSONATED = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbit, url: "amqp://gate:g@{address}"}}]
policies: {policies}
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
"""
USER_ID = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: gate}
spec:
  subjects: [{user: "*"}]
  rules:
  - {id: publish, effect: allow, operations: [basic.publish]%s}
"""


@pytest.mark.parametrize("is_checked", [False, True], ids=["broker", "policy"])
def test_user_ids_are_not_forged(
    rabbitmq: RabbitMQ, scene: Scene, tmp_path: Path, *, is_checked: bool
) -> None:
    """A gateway that logs in with a user who may impersonate: the broker would take any user-id."""
    rabbitmq.eval(
        'rabbit_auth_backend_internal:put_user(#{name => <<"gate">>, password => <<"g">>,'
        ' tags => <<"impersonator">>}, <<"test">>),'
        f' rabbit_auth_backend_internal:set_permissions(<<"gate">>, <<"{VHOST}">>,'
        ' <<".*">>, <<".*">>, <<".*">>, <<"test">>).'
    )
    (tmp_path / "p.yaml").write_text(USER_ID % (', properties: {userId: "{user}"}' if is_checked else ""))
    gateway = Gateway(config=IMPERSONATED.format(address=rabbitmq.address, policies=tmp_path))
    gateway.start()
    try:
        with Talker.dial(gateway.port) as talker:
            talker.open(vhost=VHOST, user="mallory", password="m", channels=2)
            talker.publish(b"forged", "payroll", properties=amqp.BasicProperties(user_id="payroll-service"))
            if is_checked:
                close = talker.expect(amqp.ChannelClose, 1)
                assert (close.reply_code, close.class_id, close.method_id) == (403, 60, 40)
                talker.say(amqp.ChannelCloseOk(), 1)
                assert scene.count("payroll") == 0
                talker.publish(b"true", "payroll", properties=amqp.BasicProperties(user_id="gate"), channel=2)
            eventually(lambda: scene.count("payroll") == 1)
            talker.bye()
    finally:
        assert gateway.stop().code == 0
