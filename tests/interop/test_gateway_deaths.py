"""Retry counters: clients that publish their dead letters again, and read `x-death`.

What a client of RabbitMQ 3 sees, directly on 3.10 and on 4 through a compatibility policy.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.interop.test_gateway_compatibility import CONFIG, PROFILE, connected
from tests.support.inprocess import InProcess, serving
from tests.support.rabbitmq import RabbitMQ

pytestmark = pytest.mark.slow

#: How a client tries again: by the time, whether it publishes the message anew, or else rejects it.
WAYS: Mapping[str, Callable[[int], bool]] = {
    "publishes": lambda _: True,
    "rejects": lambda _: False,
    "does both": lambda turn: turn % 2 == 0,
}
TURNS = 5


@pytest.fixture(scope="module", params=["own", "pooled"])
def gate(
    rabbitmq4: RabbitMQ, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("deaths")
    (folder / "policies").mkdir()
    (folder / "policies" / "three.yaml").write_text(PROFILE)
    text = CONFIG.format(port=rabbitmq4.port, connections=request.param)
    with serving(text, folder=folder) as running:
        yield running


def declared(channel: BlockingChannel, kind: str, mark: str) -> tuple[str, str, str]:
    """Two queues that lead to each other, and the exchange between them."""
    work, retry, exchange = (f"{name}-{mark}" for name in ("work", "retry", "again"))
    typed = {"x-queue-type": kind}
    channel.exchange_declare(exchange, durable=True)
    to_retry = {"x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": "back"}
    channel.queue_declare(work, durable=True, arguments=typed | to_retry)
    to_work = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": work, "x-message-ttl": 20}
    channel.queue_declare(retry, durable=True, arguments=typed | to_work)
    channel.queue_bind(retry, exchange, "back")
    channel.confirm_delivery()
    return work, retry, exchange


def retried(port: int, kind: str, publishes: Callable[[int], bool], *, gets: bool = False) -> list[object]:
    """The headers that a client sees, each time: but for times, and for what RabbitMQ 3 does not say."""
    mark = secrets.token_hex(4)
    seen: list[object] = []
    with connected(port) as connection:
        channel = connection.channel()
        work, retry, exchange = declared(channel, kind, mark)
        channel.basic_publish("", work, b"body", pika.BasicProperties(headers={"mine": 1}))
        for method, properties, _ in arriving(channel, work, gets=gets):
            headers = dict(properties.headers)
            seen.append(shown(headers, mark))
            if len(seen) > TURNS:
                channel.basic_ack(method.delivery_tag)
                break
            if publishes(len(seen)):
                channel.basic_publish("", retry, b"body", pika.BasicProperties(headers=headers))
                channel.basic_ack(method.delivery_tag)
            else:
                channel.basic_nack(method.delivery_tag, requeue=False)
        channel.cancel()
        for queue in (work, retry):
            channel.queue_delete(queue)
        channel.exchange_delete(exchange)
    return seen


def arriving(
    channel: BlockingChannel, queue: str, *, gets: bool
) -> Iterator[tuple[pika.spec.Basic.GetOk, pika.BasicProperties, bytes]]:
    if not gets:
        channel.basic_qos(prefetch_count=1)
        for method, properties, body in channel.consume(queue, inactivity_timeout=30):
            assert method is not None, "nothing came"
            yield method, properties, body
    while True:
        got = channel.basic_get(queue)
        if got[0] is not None:
            yield got
        channel.connection.sleep(0.01)


def shown(headers: dict[str, object], mark: str) -> object:
    def plain(value: object) -> object:
        if isinstance(value, str):
            return value.replace(mark, "MARK")
        if isinstance(value, dict):
            return {name: plain(one) for name, one in value.items() if name != "time"}
        if isinstance(value, list):
            return [plain(one) for one in value]
        return int(value) if isinstance(value, int) else value

    return {name: plain(value) for name, value in headers.items() if not name.startswith("x-last-death")}


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("way", WAYS)
def test_the_counts_are_those_of_rabbitmq_3(rabbitmq: RabbitMQ, gate: InProcess, way: str, kind: str) -> None:
    on_three = retried(rabbitmq.port, kind, WAYS[way])
    assert len(on_three) == TURNS + 1
    assert retried(gate.port(), kind, WAYS[way]) == on_three


def test_they_are_those_of_basic_get(rabbitmq: RabbitMQ, gate: InProcess) -> None:
    way = WAYS["publishes"]
    assert retried(gate.port(), "classic", way, gets=True) == retried(rabbitmq.port, "classic", way)


def test_directly_they_stay_at_one(rabbitmq4: RabbitMQ) -> None:
    (*_, last) = retried(rabbitmq4.port, "classic", WAYS["publishes"])
    assert isinstance(last, dict)
    assert [death["count"] for death in last["x-death"]] == [1]
