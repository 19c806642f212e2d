"""Queues that are quorum queues though their clients never asked for it: RabbitMQ 4 through a compatibility
policy, beside RabbitMQ 3 with the classic queues that clients were written for.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.interop.test_gateway_compatibility import CONFIG, connected, outcome, with_arguments
from tests.support.inprocess import InProcess, serving
from tests.support.rabbitmq import RabbitMQ

pytestmark = pytest.mark.slow

PROFILE = """
apiVersion: amqpgate.io/v1alpha1
kind: CompatibilityPolicy
metadata: {name: three}
spec:
  subjects: [{}]
  as: rabbitmq-3.13
  quorumQueues:
  - {queue: {prefix: quorum-classic-}, become: classic}
  - {queue: {prefix: quorum-expire-}, autoDeleteAfter: 1h}
  - {queue: {prefix: quorum-ten-}, maxPriority: 10}
  - {queue: {prefix: quorum-}}
"""

Step: TypeAlias = Callable[[BlockingChannel, str], object]


@pytest.fixture(scope="module", params=["own", "pooled"])
def gate(
    rabbitmq4: RabbitMQ, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("quorum")
    (folder / "policies").mkdir()
    (folder / "policies" / "three.yaml").write_text(PROFILE)
    with serving(CONFIG.format(port=rabbitmq4.port, connections=request.param), folder=folder) as running:
        yield running


def declares(**options: object) -> Step:
    """The queue, twice, and a message through it."""

    def step(channel: BlockingChannel, queue: str) -> object:
        for _ in range(2):
            channel.queue_declare(queue, **options)  # type: ignore[arg-type]
        channel.confirm_delivery()
        channel.basic_publish("", queue, b"one")
        method, _, body = channel.basic_get(queue, auto_ack=True)
        assert (method is not None, body) == (True, b"one")
        return "ok"

    return step


def redeclares(first: str | None, second: str | None) -> Step:
    """By two clients, which say different types, or none."""

    def step(channel: BlockingChannel, queue: str) -> object:
        for kind in (first, second):
            arguments = {} if kind is None else with_arguments(x_queue_type=kind)
            channel.queue_declare(queue, durable=True, arguments=arguments)
        return "ok"

    return step


def deletes(*, messages: int = 0, consumers: int = 0, exists: bool = True, **conditions: bool) -> Step:
    """What comes of it, and whether the queue is there then."""

    def step(channel: BlockingChannel, queue: str) -> object:
        if exists:
            channel.queue_declare(queue, durable=True)
        other = channel.connection.channel()
        other.confirm_delivery()
        for _ in range(messages):
            other.basic_publish("", queue, b"")
        for _ in range(consumers):
            other.basic_consume(queue, lambda *_: None)
        try:
            told: object = channel.queue_delete(queue, **conditions).method.message_count
        except pika.exceptions.ChannelClosedByBroker as closed:
            told = closed.reply_code, closed.reply_text.replace(queue, "Q")
        try:
            channel.connection.channel().queue_declare(queue, passive=True)
        except pika.exceptions.ChannelClosedByBroker as closed:
            return told, closed.reply_code
        return told, "there"

    return step


def global_qos(channel: BlockingChannel, queue: str) -> object:
    channel.queue_declare(queue, durable=True)
    channel.basic_qos(prefetch_count=2, global_qos=True)
    channel.basic_consume(queue, lambda *_: None)
    return "ok"


ROWS: dict[str, tuple[Step, str | None]] = {
    # What is done, and the type of the queue then on 4; empty: there is none; None: it goes with its client.
    "durable": (declares(durable=True), "quorum"),
    "classic": (declares(durable=True, arguments=with_arguments(x_queue_type="classic")), "quorum"),
    "ways of classic queues": (
        declares(
            durable=True,
            arguments=with_arguments(
                x_queue_mode="lazy",
                x_ha_policy="all",
                x_queue_version=1,
                x_queue_master_locator="min-masters",
                x_message_ttl=60_000,
                x_max_length=5,
            ),
        ),
        "quorum",
    ),
    "auto-delete": (declares(durable=True, auto_delete=True), "classic"),
    "exclusive": (declares(durable=True, exclusive=True), None),
    "neither durable nor exclusive": (declares(), "classic"),
    "priorities": (declares(durable=True, arguments=with_arguments(x_max_priority=10)), "classic"),
    "reject-publish-dlx": (
        declares(durable=True, arguments=with_arguments(x_overflow="reject-publish-dlx", x_max_length=3)),
        "classic",
    ),
    "nothing, then classic": (redeclares(None, "classic"), "quorum"),
    "classic, then nothing": (redeclares("classic", None), "quorum"),
    "if empty, and it is": (deletes(if_empty=True), ""),
    "if empty, and it is not": (deletes(if_empty=True, messages=2), "quorum"),
    "if unused, and it is": (deletes(if_unused=True, messages=2), ""),
    "if unused, and it is not": (deletes(if_unused=True, consumers=1), "quorum"),
    "if both, and neither": (deletes(if_unused=True, if_empty=True, messages=1), "quorum"),
    "if both, and both": (deletes(if_unused=True, if_empty=True), ""),
    "if empty, and there is none": (deletes(if_empty=True, exists=False), ""),
    "global qos": (global_qos, "quorum"),
}


def type_of(node: RabbitMQ, queue: str) -> str:
    told = node.eval(
        f'case rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"{queue}">>)) of'
        " {ok, Q} -> amqqueue:get_type(Q); _ -> none end."
    )
    return next((kind for kind in ("quorum", "classic") if f"rabbit_{kind}_queue" in told), "")


@pytest.fixture(scope="module")
def on_three(rabbitmq: RabbitMQ) -> Callable[[str], object]:
    known: dict[str, object] = {}

    def told(row: str) -> object:
        if row not in known:
            known[row] = outcome(rabbitmq.port, ROWS[row][0], f"quorum-{secrets.token_hex(4)}")
        return known[row]

    return told


@pytest.mark.parametrize("row", ROWS)
def test_it_is_on_four_as_on_three(
    on_three: Callable[[str], object], rabbitmq4: RabbitMQ, gate: InProcess, row: str
) -> None:
    queue = f"quorum-{secrets.token_hex(4)}"
    step, kind = ROWS[row]
    assert outcome(gate.port(), step, queue) == on_three(row)
    if kind is not None:
        assert type_of(rabbitmq4, queue) == kind


def test_a_rule_says_what_becomes_of_others(rabbitmq4: RabbitMQ, gate: InProcess) -> None:
    """Auto-delete and priorities, by rules; and the other way about."""
    mark = secrets.token_hex(4)
    said: dict[str, Step] = {
        f"quorum-expire-{mark}": declares(durable=True, auto_delete=True),
        f"quorum-ten-{mark}": declares(durable=True, arguments=with_arguments(x_max_priority=10)),
        f"quorum-classic-{mark}": redeclares("quorum", None),
    }
    kinds = {}
    for queue, step in said.items():
        assert outcome(gate.port(), step, queue) == "ok"
        kinds[queue.rpartition("-")[0]] = type_of(rabbitmq4, queue)
    assert kinds == {"quorum-expire": "quorum", "quorum-ten": "quorum", "quorum-classic": "classic"}


def test_what_asks_before_it_deletes_is_540_directly(rabbitmq4: RabbitMQ) -> None:
    queue = f"quorum-{secrets.token_hex(4)}"
    arguments = with_arguments(x_queue_type="quorum")
    with connected(rabbitmq4.port) as connection:
        connection.channel().queue_declare(queue, durable=True, arguments=arguments)
    assert (
        outcome(rabbitmq4.port, lambda channel, name: channel.queue_delete(name, if_empty=True), queue) == 540
    )


def test_a_rejected_message_comes_for_ever(gate: InProcess) -> None:
    """Who never asked for a quorum queue has no delivery limit."""
    queue = f"quorum-{secrets.token_hex(4)}"
    with connected(gate.port()) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True)
        channel.confirm_delivery()
        channel.basic_publish("", queue, b"poison")
        for number, (method, _, body) in enumerate(channel.consume(queue, inactivity_timeout=30)):
            assert body == b"poison", f"gone after {number} deliveries"
            assert method is not None
            if number == 30:
                channel.basic_ack(method.delivery_tag)
                break
            channel.basic_reject(method.delivery_tag, requeue=True)
        channel.cancel()
        channel.queue_delete(queue)


def test_its_channel_is_not_seen_and_free_again(gate: InProcess) -> None:
    """Deletes on several channels, among a client's work on others."""
    mark = secrets.token_hex(4)
    with connected(gate.port()) as connection:
        channels = [connection.channel() for _ in range(4)]
        for channel in channels:
            channel.confirm_delivery()
        for turn in range(3):
            for index, channel in enumerate(channels):
                queue = f"quorum-{mark}-{turn}-{index}"
                channel.queue_declare(queue, durable=True)
                channel.basic_publish("", queue, b"x" * 10_000)
                assert channel.queue_delete(queue, if_unused=True).method.message_count == 1
        with connected(gate.port()) as other:
            assert other.channel().queue_declare("").method.queue


def test_a_client_that_does_not_wait(gate: InProcess) -> None:
    """What it says behind a delete is done behind it."""
    queue = f"quorum-{secrets.token_hex(4)}"
    with connected(gate.port()) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True)
        channel.confirm_delivery()
        channel.basic_publish("", queue, b"x")
        frames = [
            pika.spec.Queue.Delete(queue=queue, if_unused=True, nowait=True),
            pika.spec.Queue.Declare(queue=queue, durable=True, nowait=True, arguments={}),
        ]
        for frame in frames:
            channel._impl._send_method(frame)
        assert channel.queue_declare(queue, passive=True).method.message_count == 0
        channel.queue_delete(queue)
