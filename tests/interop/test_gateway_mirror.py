"""A copy of what is published goes to a second real broker, and the first one's clients notice nothing.

Blue is the primary, green the mirror.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import attrs
import pika
import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.interop.brokers import running, value
from tests.interop.pair import CONFIG, parameters, write
from tests.interop.test_gateway_pressure import resident
from tests.support.frames import content_frames
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

#: Publishes whose confirms a publisher waits for at most.
WINDOW = 200


@pytest.fixture(scope="module")
def green(rabbitmq: RabbitMQ) -> Iterator[RabbitMQ]:
    """A second broker, which tests may stop and kill as long as they start it again."""
    node = RabbitMQ()
    try:
        node.start()
        yield node
    finally:
        node.destroy()


@attrs.frozen
class Scene:
    """Both brokers have an empty vhost `shop` with the exchange `e` and a queue `q` that gets it all."""

    gateway: Gateway
    blue: RabbitMQ
    green: RabbitMQ
    policies: Path

    def count(self, name: str, **labels: str) -> float:
        return value(self.gateway, f"amqpgate_mirror_{name}", **labels)

    def dropped(self, *reasons: str) -> float:
        return sum(self.count("dropped_messages_total", reason=reason) for reason in reasons)

    def settle(self, sampled: float, *, about: float = 0) -> None:
        """Wait until every sampled message is accounted for, and nothing is held; give or take ``about``."""

        def done() -> bool:
            ended = self.count("messages_total") + self.count("dropped_messages_total")
            return self.count("sampled_messages_total") == ended and self.count("queue_bytes") == 0

        eventually(done, timeout=60, every=0.05)
        assert abs(self.count("sampled_messages_total") - sampled) <= about

    def open(self, *, channels: int = 1) -> Talker:
        client = Talker.dial(self.gateway.port, timeout=60)
        client.open(vhost="shop", channels=channels)
        return client


def declare(node: RabbitMQ, vhost: str = "shop") -> None:
    node.fresh_vhost(vhost)
    with contextlib.closing(pika.BlockingConnection(parameters(node.port, vhost=vhost))) as connection:
        channel = connection.channel()
        channel.exchange_declare("e", "topic")
        channel.queue_declare("q")
        channel.queue_bind("q", "e", "#")


Got = tuple[str, str, bytes, pika.BasicProperties]


def drain(node: RabbitMQ) -> list[Got]:
    """All messages in `q`, in order."""
    found: list[Got] = []
    with contextlib.closing(pika.BlockingConnection(parameters(node.port, vhost="shop"))) as connection:
        channel = connection.channel()
        while True:
            method, properties, body = channel.basic_get("q", auto_ack=True)
            if method is None:
                return found
            found.append((method.exchange, method.routing_key, body, properties))


def waiting(node: RabbitMQ) -> int:
    with contextlib.closing(pika.BlockingConnection(parameters(node.port, vhost="shop"))) as connection:
        return int(connection.channel().queue_declare("q", passive=True).method.message_count)


@contextlib.contextmanager
def mirrored(
    rabbitmq: RabbitMQ,
    green: RabbitMQ,
    folder: Path,
    more: str = "",
    *,
    password: str = "guest",
    others: str = "",
    limits: str = "",
) -> Iterator[Scene]:
    """A gateway whose only route leads to blue, with green as its mirror."""
    (folder / "secret").write_text(password)
    policies = folder / "policies"
    policies.mkdir()
    write(policies, mirror_to_green(more))
    if others:
        (policies / "others.yaml").write_text(others)
    for node in (rabbitmq, green):
        declare(node)
    config = CONFIG.replace("main, bind", "main, upstream: blue, bind").format(
        blue=rabbitmq.address,
        greens=f'{{address: "{green.address}"}}',
        policies=policies,
        admin="",
        limits=limits,
    )
    with running(config) as gateway:
        yield Scene(gateway, rabbitmq, green, policies)


def mirror_to_green(more: str = "") -> str:
    mirror = f"cluster: green, user: guest, passwordFile: ../secret{', ' + more if more else ''}"
    return f"upstream: {{cluster: blue, mirror: {{{mirror}}}}}"


def confirmed(client: Talker, messages: list[tuple[str, bytes]], *, exchange: str = "e") -> None:
    """Publish (routing key, body) on a new channel, and wait until the primary has confirmed each one."""
    client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 2)
    client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 2)
    missing: set[int] = set()
    for number, (key, body) in enumerate(messages, 1):
        while len(missing) >= WINDOW:
            hear_ack(client, missing)
        missing.add(number)
        client.publish(body, key, exchange=exchange, channel=2)
    while missing:
        hear_ack(client, missing)
    client.ask(amqp.ChannelClose(200, "done"), amqp.ChannelCloseOk, 2)


def hear_ack(client: Talker, missing: set[int]) -> None:
    ack = client.expect(amqp.BasicAck, 2)
    if ack.multiple:
        missing.difference_update([tag for tag in missing if tag <= ack.delivery_tag])
    else:
        missing.remove(ack.delivery_tag)


def test_everything_is_copied_as_it_is(rabbitmq: RabbitMQ, green: RabbitMQ, tmp_path: Path) -> None:
    """All properties, an empty body, and bodies of one frame and of many."""
    properties = amqp.BasicProperties(
        content_type="text/plain",
        headers=Table.of({"n": 7, "CC": ["other"], "nested": {"a": [1, "b", None]}}),
        delivery_mode=2,
        priority=3,
        correlation_id="c",
        reply_to="r",
        expiration="600000",
        message_id="m",
        timestamp=1_700_000_000,
        type="t",
        app_id="a",
    )
    with mirrored(rabbitmq, green, tmp_path, "maxBodyBytes: 4Mi") as it, it.open() as client:
        for number, size in enumerate([0, 1, 1000, 131064, 131065, 3_000_000, 5, 0]):
            client.publish(bytes([number]) * size, f"k.{number}", exchange="e", properties=properties)
        client.publish(b"plain", "q", mandatory=True)
        it.settle(9)
        assert it.count("messages_total") == 9
        assert it.count("bytes_total") == 1000 + 1 + 131064 + 131065 + 3_000_000 + 5 + 5
        ours, theirs = drain(rabbitmq), drain(green)
        assert len(ours) == 9
        # Order holds within an exchange.
        assert sorted(theirs, key=lambda got: got[0] == "") == sorted(ours, key=lambda got: got[0] == "")


def test_ten_thousand_of_which_a_quarter_is_copied(
    rabbitmq: RabbitMQ, green: RabbitMQ, tmp_path: Path
) -> None:
    with mirrored(rabbitmq, green, tmp_path, "percent: 25") as it, it.open() as client:
        before = value(it.gateway, "amqpgate_upcalls_total")
        frames = [
            content_frames(1, amqp.BasicPublish(exchange="e", routing_key="k"), amqp.BasicProperties(), body)
            for body in (b"%d" % number for number in range(10_000))
        ]
        client.raw(b"".join(frames))
        client.ask(amqp.QueueDeclare(queue="q", passive=True), amqp.QueueDeclareOk, 1)
        it.settle(2500)
        assert it.count("messages_total") == waiting(green) == 2500
        assert waiting(rabbitmq) == 10_000
        # Of those that are not copied none was an upcall: three for each copy, and a few for the rest.
        assert value(it.gateway, "amqpgate_upcalls_total") - before < 3 * 2500 + 20
        copies = [int(got[2]) for got in drain(green)]
        assert copies == sorted(copies)
        rabbitmq.fresh_vhost("shop")


def test_routing_keys_that_never_come_twice_and_connections_of_one_message(
    rabbitmq: RabbitMQ, green: RabbitMQ, tmp_path: Path
) -> None:
    with mirrored(rabbitmq, green, tmp_path, "percent: 10") as it:
        with it.open() as client:
            confirmed(client, [(f"k.{number}", b"x") for number in range(1000)])
        for _ in range(40):
            with it.open() as client:
                confirmed(client, [("k", b"x")])
        it.settle(104, about=4)
        assert waiting(green) == it.count("messages_total") == it.count("sampled_messages_total")


def test_exchanges_are_chosen_and_a_missing_one_harms_no_other(
    rabbitmq: RabbitMQ, green: RabbitMQ, tmp_path: Path
) -> None:
    with mirrored(rabbitmq, green, tmp_path, "exchanges: [e, 'only*']") as it, it.open() as client:
        client.ask(amqp.ExchangeDeclare(exchange="only-blue", type="fanout"), amqp.ExchangeDeclareOk, 1)
        confirmed(client, [("k", b"x")] * 50)
        for number in range(300):
            client.publish(b"%d" % number, "k", exchange="e" if number % 3 else "only-blue")
            client.publish(b"not meant", "q")
        it.settle(350)
        assert it.count("messages_total") == 250
        assert it.dropped("refused") == 100
        assert [got[2] for got in drain(green)][50:] == [b"%d" % n for n in range(300) if n % 3]


def test_a_wrong_password(rabbitmq: RabbitMQ, green: RabbitMQ, tmp_path: Path) -> None:
    with mirrored(rabbitmq, green, tmp_path, password="wrong") as it, it.open() as client:
        confirmed(client, [("k", b"x")] * 2000)
        it.settle(2000)
        assert it.dropped("unavailable") == 2000
        assert waiting(rabbitmq) == 2000
        # Once it is right, all goes well again.
        (tmp_path / "secret").write_text("guest")

        def arrives() -> bool:
            client.publish(b"again", "k", exchange="e")
            return it.count("messages_total") > 0

        eventually(arrives, timeout=60, every=0.2)
        ended = it.gateway.child.output()
        assert ended.count("is away") == 1, "one line per change"
        assert "ACCESS_REFUSED" in ended


def test_it_is_killed_and_comes_back(rabbitmq: RabbitMQ, green: RabbitMQ, tmp_path: Path) -> None:
    """All confirms come; every sampled message is mirrored or dropped, and none is there twice."""
    with mirrored(rabbitmq, green, tmp_path) as it, it.open() as client:
        confirmed(client, [("k", b"%d" % number) for number in range(1000)])
        eventually(lambda: it.count("messages_total") > 0)
        green.kill()
        confirmed(client, [("k", b"%d" % number) for number in range(1000, 4000)])
        it.settle(4000)
        assert waiting(rabbitmq) == 4000
        assert it.dropped("unavailable", "lost") == it.count("dropped_messages_total") >= 2000
        green.start()
        declare(green)
        mirrored_before = it.count("messages_total")

        def arrives() -> bool:
            client.publish(b"again", "k", exchange="e")
            return it.count("messages_total") > mirrored_before

        eventually(arrives, timeout=60, every=0.2)
        eventually(lambda: it.count("queue_bytes") == 0)
        eventually(lambda: waiting(green) == it.count("messages_total") - mirrored_before)


def test_it_is_paused_and_memory_is_bounded(rabbitmq: RabbitMQ, green: RabbitMQ, tmp_path: Path) -> None:
    """200 MB to a mirror that takes nothing, of which 1 MiB waits."""
    body = bytes(100_000)
    with mirrored(rabbitmq, green, tmp_path, "buffer: 1Mi") as it, it.open() as client:
        client.ask(amqp.QueueUnbind(queue="q", exchange="e", routing_key="#"), amqp.QueueUnbindOk, 1)
        confirmed(client, [("k", body)] * 20)
        it.settle(20)
        green.pause()
        try:
            before = resident(it.gateway)
            for _ in range(4):
                confirmed(client, [("k", body)] * 500)
                assert it.count("queue_bytes") <= 1 << 20
            assert resident(it.gateway) - before < 12 << 20
            # The kernel has some 10 MB between the two.
            assert it.dropped("full") > 1800
            assert it.count("sampled_messages_total") == 2020
        finally:
            green.resume()
        it.settle(2020)
        assert it.count("messages_total") + it.dropped("full") == 2020
        assert it.count("messages_total") == waiting(green)


def test_a_mirror_that_blocks_publishers(rabbitmq: RabbitMQ, green: RabbitMQ, tmp_path: Path) -> None:
    with mirrored(rabbitmq, green, tmp_path, "buffer: 64Ki, maxBodyBytes: 10k") as it, it.open() as client:
        confirmed(client, [("k", b"x")] * 10)
        it.settle(10)
        with green.memory_alarm():
            # 20 MB: far more than Linux keeps for two ends of which one does not read.
            for _ in range(4):
                confirmed(client, [("k", bytes(10_000))] * 500)
            assert it.count("sampled_messages_total") == 2010
            assert it.dropped("full") > 500
            assert waiting(rabbitmq) == 2010
        it.settle(2010)
        assert waiting(green) == it.count("messages_total") > 10


def test_transactions_user_ids_and_what_is_too_large(
    rabbitmq: RabbitMQ, green: RabbitMQ, tmp_path: Path
) -> None:
    green.ctl("add_user", "copycat", "guest")
    green.fresh_vhost("shop")
    more = "maxBodyBytes: 1k"
    with mirrored(rabbitmq, green, tmp_path, more) as it, it.open() as client:
        green.ctl("set_permissions", "-p", "shop", "copycat", ".*", ".*", ".*")
        write(it.policies, mirror_to_green(more).replace("user: guest", "user: copycat"))
        it.gateway.child.signal(signal.SIGHUP)
        eventually(lambda: value(it.gateway, "amqpgate_policy_reloads_total", outcome="done") == 1)
        mine = amqp.BasicProperties(user_id="guest", message_id="m")
        client.publish(b"mine", "k", exchange="e", properties=mine)
        client.publish(bytes(1001), "k", exchange="e")
        client.ask(amqp.TxSelect(), amqp.TxSelectOk, 1)
        client.publish(b"in a transaction", "k", exchange="e")
        client.ask(amqp.TxCommit(), amqp.TxCommitOk, 1)
        it.settle(3)
        assert (it.dropped("too_large"), it.dropped("transaction")) == (1, 1)
        ((_, _, body, properties),) = drain(green)
        assert (body, properties.user_id, properties.message_id) == (b"mine", None, "m")
        assert drain(rabbitmq)[0][3].user_id == "guest"


def test_a_client_that_leaves_within_a_message(rabbitmq: RabbitMQ, green: RabbitMQ, tmp_path: Path) -> None:
    with mirrored(rabbitmq, green, tmp_path) as it:
        with it.open(channels=2) as client:
            publish = amqp.BasicPublish(exchange="e", routing_key="k")
            for channel in (1, 2):
                frames = content_frames(channel, publish, amqp.BasicProperties(), bytes(300_000), 131072)
                head = content_frames(channel, publish, amqp.BasicProperties(), b"")
                client.raw(frames[: len(head) + 131072])
            # What has come of both, and not what they declare.
            eventually(lambda: 2 * 131_000 < it.count("queue_bytes") < 2 * 140_000)
        it.settle(2)
        assert it.dropped("unfinished") == 2
        with it.open() as client:
            confirmed(client, [("k", bytes(300_000))])
            it.settle(3)
        assert waiting(rabbitmq) == waiting(green) == 1


OTHERS = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: a}
spec:
  subjects: [{user: "*"}]
  rules:
  - {id: no, effect: deny, operations: [basic.publish], exchange: e, routingKey: no}
  - {id: clean, effect: allow, operations: [basic.publish], properties: {headers: {deny: [secret]}}}
  onDeny: {publish: drop}
---
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: t}
spec:
  subjects: [{user: "*"}]
  headers: {set: {marked: "for sure"}}
"""


def test_what_is_refused_is_not_copied_and_what_is_changed_is_copied_so(
    rabbitmq: RabbitMQ, green: RabbitMQ, tmp_path: Path
) -> None:
    with mirrored(rabbitmq, green, tmp_path, others=OTHERS) as it, it.open() as client:
        secret = amqp.BasicProperties(headers=Table.of({"secret": 1}))
        for number in range(30):
            client.publish(b"refused", "no", exchange="e")
            client.publish(b"refused", "k", exchange="e", properties=secret)
            client.publish(b"%d" % number, "k", exchange="e")
        it.settle(30)
        got = drain(green)
        assert [one[2] for one in got] == [b"%d" % number for number in range(30)]
        assert {one[3].headers["marked"] for one in got} == {"for sure"}
        assert drain(rabbitmq) == got


def test_open_sessions_follow_their_routes_mirror(
    rabbitmq: RabbitMQ, green: RabbitMQ, tmp_path: Path
) -> None:
    with mirrored(rabbitmq, green, tmp_path) as it, it.open() as client:

        def reload(route: str, times: int) -> None:
            write(it.policies, route)
            it.gateway.child.signal(signal.SIGHUP)
            done = "amqpgate_policy_reloads_total"
            eventually(lambda: value(it.gateway, done, outcome="done") == times)

        confirmed(client, [("k", b"1")] * 100)
        reload("upstream: {cluster: blue}", 1)
        confirmed(client, [("k", b"1")] * 100)
        it.settle(100)
        reload(mirror_to_green("percent: 50"), 2)
        confirmed(client, [("k", b"1")] * 100)
        it.settle(150)
        assert waiting(green) == 150
        assert waiting(rabbitmq) == 300


def test_a_drain_sends_what_waits(rabbitmq: RabbitMQ, green: RabbitMQ, tmp_path: Path) -> None:
    """A thousand messages, the client gone, and SIGTERM at once: they wait, and arrive."""
    with mirrored(rabbitmq, green, tmp_path, limits=", closeTimeout: 1s") as it:
        with it.open() as client:
            confirmed(client, [("k", bytes(2000))] * 1000)
            client.ask(amqp.ConnectionClose(200, "bye"), amqp.ConnectionCloseOk)
        it.gateway.child.signal(signal.SIGTERM)
        eventually(lambda: not it.gateway.child.running)
        assert waiting(green) == 1000


def test_a_drain_does_not_wait_for_ever(rabbitmq: RabbitMQ, green: RabbitMQ, tmp_path: Path) -> None:
    with mirrored(rabbitmq, green, tmp_path) as it, it.open() as client:
        confirmed(client, [("k", b"x")] * 10)
        it.settle(10)
        green.pause()
        try:
            confirmed(client, [("k", b"x")] * 200)
            client.ask(amqp.ConnectionClose(200, "bye"), amqp.ConnectionCloseOk)
            it.gateway.child.signal(signal.SIGTERM)
            eventually(lambda: not it.gateway.child.running, timeout=10)
        finally:
            green.resume()
