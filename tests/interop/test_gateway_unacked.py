"""The admin interface's `unacked` of a channel is what RabbitMQ says of it, whatever the client does."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.test_gateway_admin import Window
from tests.support.audit import setting
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.otlp import Collector
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

VHOST = "unacked"
COUNT = 200

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbit, url: "amqp://{address}"{upstream}}}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 1s}}
"""
#: Every message is shown to the control plane, and every ack.
WATCHED = """
policies: {policies}
tracing: {{endpoint: '{endpoint}', interval: 50ms}}
"""
TRACES = """
apiVersion: amqpgate.io/v1alpha1
kind: TracePolicy
metadata: {name: all}
spec:
  subjects: [{user: guest}]
  rules: [{id: all, operations: ['*'], ratio: 1}]
"""
SHARED = ", connections: pooled, pool: {consumers: shared}"


@pytest.fixture(scope="module", params=["plain", "watched", "pooled"])
def gateway(
    request: pytest.FixtureRequest, rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    folder: Path = tmp_path_factory.mktemp("unacked")
    with Collector() as collector:
        text = CONFIG.format(address=rabbitmq.address, upstream=SHARED if request.param == "pooled" else "")
        if request.param == "watched":
            (folder / "policies").mkdir()
            (folder / "policies" / "traces.yaml").write_text(TRACES)
            text += WATCHED.format(policies=folder / "policies", endpoint=collector.endpoint)
            text += setting(folder / "audit", 1)
        gateway = Gateway(config=text)
        gateway.start()
        yield gateway
        gateway.stop()


class Told:
    """One client, and what gateway and broker say of its channels."""

    def __init__(self, gateway: Gateway, rabbitmq: RabbitMQ, client: Talker) -> None:
        self.window, self.rabbitmq, self.client = Window(gateway), rabbitmq, client
        #: Of the session.
        self.row: dict[str, object] = {}

    def channels(self) -> list[dict[str, object]]:
        (row,) = self.window.sessions(f"?vhost={VHOST}")
        self.row = row
        channels: list[dict[str, object]] = self.window.get(f"/sessions/{row['id']}")["open_channels"]
        return channels

    def broker(self) -> Counter[int]:
        """By the broker's number of the channel; on links without this client there are none."""
        text = self.rabbitmq.eval(
            "[{Number, Count} || [{vhost, Vhost}, {number, Number}, {messages_unacknowledged, Count}] <-"
            " rabbit_channel:info_all([vhost, number, messages_unacknowledged]),"
            f' Vhost =:= <<"{VHOST}">>].'
        )
        counts: Counter[int] = Counter()
        for number, count in re.findall(r"{(\d+),(\d+)}", text):
            counts[int(number)] += int(count)
        return counts

    def are(self, *expected: int | None) -> None:
        """Both say so, channel by channel; what the gateway does not know is None."""

        def agree() -> bool:
            channels, broker = self.channels(), self.broker()
            pairs = [(one["unacked"], broker[one["upstream_number"]]) for one in channels]  # type: ignore[index]
            self.last = pairs
            known = [here for here, _ in pairs if isinstance(here, int)]
            if len(known) == len(pairs) and self.row["unacked"] != sum(known):
                return False
            return [here for here, _ in pairs] == [*expected] and all(
                here in (None, there) for here, there in pairs
            )

        with contextlib.suppress(AssertionError):
            eventually(agree, timeout=10)
        assert agree(), f"{self.last} instead of {expected}"


@pytest.fixture
def client(gateway: Gateway, rabbitmq: RabbitMQ) -> Iterator[Talker]:
    """With two channels, and a queue that is full."""
    rabbitmq.fresh_vhost(VHOST)
    with Talker.dial(gateway.port) as client:
        client.open(vhost=VHOST, channels=2)
        client.ask(amqp.QueueDeclare(queue="work"), amqp.QueueDeclareOk, 1)
        for _ in range(COUNT):
            client.publish(b"job", "work")
        yield client
        client.bye()


@pytest.fixture
def told(gateway: Gateway, rabbitmq: RabbitMQ, client: Talker) -> Told:
    return Told(gateway, rabbitmq, client)


def consume(
    client: Talker, channel: int, prefetch: int, *, tag: str = "worker", no_ack: bool = False
) -> None:
    client.ask(amqp.BasicQos(prefetch_count=prefetch), amqp.BasicQosOk, channel)
    client.ask(amqp.BasicConsume(queue="work", consumer_tag=tag, no_ack=no_ack), amqp.BasicConsumeOk, channel)


def take(client: Talker, channel: int, count: int) -> list[int]:
    """So many deliveries; their tags."""
    tags = []
    for _ in range(count):
        method = client.expect_content(amqp.BasicDeliver, channel).method
        assert isinstance(method, amqp.BasicDeliver)
        tags.append(method.delivery_tag)
    return tags


def get(client: Talker, channel: int, *, no_ack: bool = False) -> int:
    client.say(amqp.BasicGet(queue="work", no_ack=no_ack), channel)
    method = client.expect_content(amqp.BasicGetOk, channel).method
    assert isinstance(method, amqp.BasicGetOk)
    return method.delivery_tag


def cancel(client: Talker, channel: int, tag: str = "worker") -> None:
    client.ask(amqp.BasicCancel(tag), amqp.BasicCancelOk, channel)


def test_acks_of_every_kind(told: Told, client: Talker) -> None:
    told.are(0, 0)
    consume(client, 1, 10)
    assert take(client, 1, 10) == [*range(1, 11)]
    consume(client, 2, 30)
    assert take(client, 2, 30) == [*range(1, 31)]
    told.are(10, 30)
    # Others come for them.
    client.say(amqp.BasicAck(1), 1)
    client.say(amqp.BasicAck(4, multiple=True), 1)
    take(client, 1, 4)
    told.are(10, 30)
    cancel(client, 1)
    cancel(client, 2)
    told.are(10, 30)
    client.say(amqp.BasicAck(7), 1)
    told.are(9, 30)
    client.say(amqp.BasicNack(9, multiple=True, requeue=False), 1)
    client.say(amqp.BasicReject(11, requeue=True), 1)
    told.are(4, 30)
    for tag in range(30, 10, -2):
        client.say(amqp.BasicNack(tag, requeue=False), 2)
    told.are(4, 20)
    client.say(amqp.BasicAck(19, multiple=True), 2)
    told.are(4, 5)
    client.say(amqp.BasicAck(0, multiple=True), 1)
    told.are(0, 5)
    client.ask(amqp.ChannelClose(), amqp.ChannelCloseOk, 2)
    client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 2)
    told.are(0, 0)


def test_gets(told: Told, client: Talker) -> None:
    first, _, third = get(client, 1), get(client, 1, no_ack=True), get(client, 1)
    get(client, 2, no_ack=True)
    assert (first, third) == (1, 3)
    told.are(2, 0)
    client.say(amqp.BasicAck(third), 1)
    told.are(1, 0)
    # Several at once; nothing is in the other queue.
    client.ask(amqp.QueueDeclare(queue="empty"), amqp.QueueDeclareOk, 1)
    for queue, no_ack in (
        ("work", True),
        ("empty", False),
        ("work", False),
        ("empty", True),
        ("work", False),
    ):
        client.say(amqp.BasicGet(queue=queue, no_ack=no_ack), 1)
    for kind in (amqp.BasicGetOk, None, amqp.BasicGetOk, None, amqp.BasicGetOk):
        if kind is None:
            client.expect(amqp.BasicGetEmpty, 1)
        else:
            client.expect_content(kind, 1)
    told.are(3, 0)


def test_recovering(told: Told, client: Talker) -> None:
    consume(client, 1, 20)
    take(client, 1, 20)
    consume(client, 2, 20)
    take(client, 2, 20)
    client.say(amqp.BasicAck(8, multiple=True), 2)
    take(client, 2, 8)
    cancel(client, 2)
    told.are(20, 20)
    # With new tags they come again, here; there, nobody consumes.
    client.ask(amqp.BasicRecover(requeue=True), amqp.BasicRecoverOk, 1)
    assert take(client, 1, 20)[0] == 21
    client.ask(amqp.BasicRecover(requeue=True), amqp.BasicRecoverOk, 2)
    told.are(20, 0)
    # It is not said when that has been done.
    client.say(amqp.BasicRecoverAsync(requeue=True), 1)
    assert take(client, 1, 20)[0] == 41
    told.are(None, 0)
    client.say(amqp.BasicAck(60, multiple=True), 1)
    take(client, 1, 20)
    told.are(20, 0)


def test_transactions(told: Told, client: Talker) -> None:
    client.ask(amqp.TxSelect(), amqp.TxSelectOk, 1)
    for _ in range(10):
        get(client, 1)
    client.say(amqp.BasicAck(2, multiple=True), 1)
    client.say(amqp.BasicReject(9, requeue=False), 1)
    told.are(7, 0)
    client.ask(amqp.TxRollback(), amqp.TxRollbackOk, 1)
    told.are(10, 0)
    client.say(amqp.BasicAck(3), 1)
    client.ask(amqp.TxCommit(), amqp.TxCommitOk, 1)
    client.ask(amqp.TxRollback(), amqp.TxRollbackOk, 1)
    told.are(9, 0)
    client.say(amqp.BasicAck(5, multiple=True), 1)
    told.are(None, 0)
    client.say(amqp.BasicAck(0, multiple=True), 1)
    told.are(0, 0)


def test_consumers_that_do_not_ack(told: Told, client: Talker, request: pytest.FixtureRequest) -> None:
    if "pooled" in request.node.name:
        pytest.skip("such a consumer has a connection of its own, which the plain way has")
    client.ask(amqp.QueueDeclare(queue="quiet"), amqp.QueueDeclareOk, 1)
    quiet = amqp.BasicConsume(queue="quiet", consumer_tag="quiet", no_ack=True)
    client.ask(quiet, amqp.BasicConsumeOk, 1)
    for _ in range(5):
        client.publish(b"news", "quiet")
    take(client, 1, 5)
    told.are(0, 0)
    # Beside one that acks, on the same channel; and there in the other order.
    consume(client, 1, 7)
    assert take(client, 1, 7)[0] == 6
    consume(client, 2, 9)
    take(client, 2, 9)
    cancel(client, 1, "quiet")
    client.ask(quiet, amqp.BasicConsumeOk, 2)
    for _ in range(5):
        client.publish(b"news", "quiet")
    take(client, 2, 5)
    told.are(7, 9)
    # And where nobody can know whose deliveries are to be acknowledged.
    client.say(amqp.BasicConsume(queue="quiet", no_ack=True, no_wait=True), 1)
    told.are(None, 9)
