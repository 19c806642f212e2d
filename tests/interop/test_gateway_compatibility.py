"""Clients of RabbitMQ 3 on RabbitMQ 4: requests directly on both, and on 4 through a compatibility policy.

The node of version 4 denies what later versions deny. What works on 4 as on 3 without help is told, too: a
row whose outcome changes with a version fails.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.inprocess import InProcess, serving
from tests.support.metrics import sample_value
from tests.support.rabbitmq import RabbitMQ

pytestmark = pytest.mark.slow

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:0"}}]
upstreams: [{{name: four, host: 127.0.0.1, port: {port}, connections: {connections}}}]
policies: policies
"""

PROFILE = """
apiVersion: amqpgate.io/v1alpha1
kind: CompatibilityPolicy
metadata: {name: three}
spec:
  subjects: [{}]
  as: rabbitmq-3.13
  deliveryLimits: [{queue: {prefix: poison}, limit: -1}]
"""

#: What a client does on a channel, with a queue's name that is not used yet.
Step: TypeAlias = Callable[[BlockingChannel, str], object]


def declares(**options: object) -> Step:
    """The queue, twice: what is declared again must be the same."""

    def step(channel: BlockingChannel, queue: str) -> object:
        for _ in range(2):
            channel.queue_declare(queue, **options)  # type: ignore[arg-type]
        return channel.queue_declare(queue, passive=True).method.queue == queue

    return step


def with_arguments(**arguments: object) -> dict[str, object]:
    return {name.replace("_", "-"): value for name, value in arguments.items()}


def names_one(channel: BlockingChannel, _: str) -> object:
    return channel.queue_declare("").method.queue.startswith("amq.gen-")


def as_durable(channel: BlockingChannel, queue: str) -> object:
    """Declared as transient by one, and as durable by another client."""
    channel.queue_declare(queue)
    channel.queue_declare(queue, durable=True)
    return "agreed"


ROWS: dict[str, tuple[Step, object, object]] = {
    # What is done, what comes of it on 3.10, and on 4.3.
    "transient": (declares(), True, 541),
    "transient, auto-delete": (declares(auto_delete=True), True, 541),
    "transient, server-named": (names_one, True, 541),
    "transient with x-expires": (declares(arguments=with_arguments(x_expires=60_000)), True, 541),
    "transient, then durable": (as_durable, 406, 541),
    "exclusive": (declares(exclusive=True), True, True),
    "master locator": (
        declares(durable=True, arguments=with_arguments(x_queue_master_locator="min-masters")),
        True,
        541,
    ),
    "version 1": (declares(durable=True, arguments=with_arguments(x_queue_version=1)), True, 406),
    "lazy": (declares(durable=True, arguments=with_arguments(x_queue_mode="lazy")), True, True),
    "mirrored": (declares(durable=True, arguments=with_arguments(x_ha_policy="all")), True, True),
    "all of those": (
        declares(
            arguments=with_arguments(
                x_queue_version=1, x_queue_mode="lazy", x_ha_policy="all", x_queue_master_locator="random"
            )
        ),
        True,
        406,
    ),
    "transient quorum": (declares(arguments=with_arguments(x_queue_type="quorum")), 406, 541),
    "quorum with a master locator": (
        declares(
            durable=True,
            arguments=with_arguments(x_queue_type="quorum", x_queue_master_locator="random"),
        ),
        406,
        406,
    ),
}


@pytest.fixture(scope="module", params=["own", "pooled"])
def gate(
    rabbitmq4: RabbitMQ, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("compatibility")
    (folder / "policies").mkdir()
    (folder / "policies" / "three.yaml").write_text(PROFILE)
    with serving(CONFIG.format(port=rabbitmq4.port, connections=request.param), folder=folder) as running:
        yield running


@pytest.fixture
def queue() -> str:
    return f"compat-{secrets.token_hex(4)}"


def connected(port: int) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, heartbeat=0))


def outcome(port: int, step: Step, queue: str) -> object:
    """What comes of it: what the step gives, or the reply code."""
    connection = connected(port)
    try:
        return step(connection.channel(), queue)
    except (pika.exceptions.ChannelClosedByBroker, pika.exceptions.ConnectionClosedByBroker) as closed:
        return closed.reply_code
    finally:
        if connection.is_open:
            connection.close()


@pytest.mark.parametrize("row", ROWS)
def test_what_comes_of_it_directly(rabbitmq: RabbitMQ, rabbitmq4: RabbitMQ, row: str, queue: str) -> None:
    step, on_three, on_four = ROWS[row]
    assert (outcome(rabbitmq.port, step, queue), outcome(rabbitmq4.port, step, queue)) == (
        on_three,
        on_four,
    )


@pytest.mark.parametrize("row", ROWS)
def test_it_is_on_four_as_on_three(gate: InProcess, row: str, queue: str) -> None:
    step, on_three, _ = ROWS[row]
    assert outcome(gate.port(), step, queue) == on_three


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_durable_queue_is_not_transient_in_the_words_of_three(
    rabbitmq: RabbitMQ, gate: InProcess, queue: str, kind: str
) -> None:
    heard = []
    for port in (rabbitmq.port, gate.port()):
        with connected(port) as connection:
            channel = connection.channel()
            channel.queue_declare(queue, durable=True, arguments={"x-queue-type": kind})
            with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
                channel.queue_declare(queue)
            heard.append(closed.value.reply_text)
            connection.channel().queue_delete(queue)
    assert (
        heard
        == [
            f"PRECONDITION_FAILED - inequivalent arg 'durable' for queue '{queue}' in vhost '/': "
            "received 'false' but current is 'true'"
        ]
        * 2
    )


def test_a_transient_queue_ends_when_nobody_uses_it(rabbitmq4: RabbitMQ, gate: InProcess, queue: str) -> None:
    assert outcome(gate.port(), declares(), queue) is True
    told = rabbitmq4.eval(
        f'{{ok, Q}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"{queue}">>)),'
        " {amqqueue:is_durable(Q), amqqueue:get_type(Q), rabbit_misc:table_lookup(amqqueue:get_arguments(Q),"
        ' <<"x-expires">>)}.'
    )
    assert "true,rabbit_classic_queue,{" in told.replace(" ", "").replace("\n", "")
    assert str(24 * 3600 * 1000) in told


def test_poison_is_delivered_for_ever_as_on_three(gate: InProcess) -> None:
    """RabbitMQ 4 drops what was given back twenty times; not where a rule says that nothing is dropped."""
    queue = f"poison-{secrets.token_hex(4)}"
    with connected(gate.port()) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "quorum"})
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


def test_what_was_changed_is_counted(gate: InProcess, queue: str) -> None:
    def count() -> float:
        labels = {"policy": "three", "item": "transient-queue"}
        registry = gate.gateway.metrics.registry
        return sample_value(registry, "amqpgate_compatibility_changes_total", labels) or 0

    before = count()
    assert outcome(gate.port(), declares(), queue) is True
    assert count() == before + 2


def test_a_client_without_a_profile_ends_nobody_elses_connection(rabbitmq4: RabbitMQ, queue: str) -> None:
    """What RabbitMQ 4 ends a connection for is not said on one that is shared."""
    config = CONFIG.format(port=rabbitmq4.port, connections="pooled").replace("policies: policies", "")
    with serving(config) as gate, connected(gate.port()) as other:
        channel = other.channel()
        channel.queue_declare(queue, durable=True)
        assert outcome(gate.port(), declares(), f"{queue}-t") == 541
        channel.queue_delete(queue)
