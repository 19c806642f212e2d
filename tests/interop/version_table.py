"""Requests of RabbitMQ 3's clients on several versions, directly and through a gateway with a policy.

    AMQPGATE_MORE_RABBITMQ=1 tools/test-tools.sh
    python -m tests.interop.version_table 3.8 machine 4.0 4.3

prints a table in Markdown; `machine` is the RabbitMQ that is installed. The others are those that the first
line gets, each 250 MB; `3.9=FOLDER` is one elsewhere (`tests.support.rabbitmq_root`). Nodes of version 4 deny
what later ones deny. Where there is no object store, the policy does not mend messages of 17 MiB.
"""

from __future__ import annotations

import argparse
import contextlib
import secrets
import socket
import tempfile
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path

import pika
import pika.exceptions
from pika.adapters.blocking_connection import BlockingChannel

from tests.interop.test_gateway_compatibility import CONFIG, ROWS, Step, connected, declares, with_arguments
from tests.interop.upgrade import object_store
from tests.support.inprocess import serving
from tests.support.rabbitmq import RabbitMQ
from tests.support.rabbitmq_root import DENYING, root_of_4

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: CompatibilityPolicy
metadata: {name: three}
spec:
  subjects: [{}]
  as: rabbitmq-3.13
  deliveryLimits: [{limit: -1}]
  nacks: count
  delayedExchanges: [{exchange: {prefix: row-}}]
"""

QUORUM = {"x-queue-type": "quorum"}


def quorum(**options: object) -> Step:
    more = options.pop("arguments", {})
    assert isinstance(more, dict)
    return declares(**{"durable": True, "arguments": QUORUM | more, **options})


def limited(kind: str) -> Step:
    """How many messages two consumers have under a limit of 2 for the channel."""

    def step(channel: BlockingChannel, queue: str) -> object:
        arguments = {"x-queue-type": kind}
        for name in (queue, f"{queue}-2"):
            channel.queue_declare(name, durable=True, arguments=arguments)
            for number in range(5):
                channel.basic_publish("", name, b"%d" % number)
        channel.basic_qos(prefetch_count=2, global_qos=True)
        got: list[int] = []
        for name in (queue, f"{queue}-2"):
            channel.basic_consume(name, lambda _, method, __, ___: got.append(method.delivery_tag))
        channel.connection.process_data_events(time_limit=5)
        return f"{len(got)} messages"

    return step


def given_back(kind: str, by: str) -> Step:
    """How often a message comes that is given back again and again, 30 times at most."""

    def step(channel: BlockingChannel, queue: str) -> object:
        channel.queue_declare(queue, durable=True, arguments={"x-queue-type": kind})
        channel.confirm_delivery()
        channel.basic_publish("", queue, b"poison")
        count = 0
        for method, _, body in channel.consume(queue, inactivity_timeout=8):
            if body is None or method is None:
                break
            count += 1
            if count == 30:
                channel.basic_ack(method.delivery_tag)
                break
            (channel.basic_reject if by == "reject" else channel.basic_nack)(
                method.delivery_tag, requeue=True
            )
        return "for ever" if count == 30 else f"gone after {count}"

    return step


def counted(channel: BlockingChannel, queue: str) -> object:
    """The `x-delivery-count` of a message that is given back twice."""
    channel.queue_declare(queue, durable=True, arguments=QUORUM)
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"b")
    counts: list[str] = []
    for method, properties, _ in channel.consume(queue, inactivity_timeout=20):
        assert method is not None
        headers = properties.headers or {}
        counts.append(str(headers.get("x-delivery-count", "none")))
        if len(counts) == 3:
            channel.basic_ack(method.delivery_tag)
            break
        channel.basic_nack(method.delivery_tag, requeue=True)
    return ", ".join(counts)


def deletes(channel: BlockingChannel, queue: str) -> object:
    channel.queue_declare(queue, durable=True, arguments=QUORUM)
    channel.queue_delete(queue, if_unused=True)
    return True


def names_none(channel: BlockingChannel, _: str) -> object:
    channel.queue_declare("", durable=True, arguments=QUORUM)
    return True


def redeclares(first: str, then: str) -> Step:
    def step(channel: BlockingChannel, queue: str) -> object:
        for kind in (first, then):
            channel.queue_declare(queue, durable=True, arguments={"x-queue-type": kind})
        return True

    return step


def large(channel: BlockingChannel, queue: str) -> object:
    """A message of 17 MiB, there and back."""
    body = secrets.token_bytes(17 << 20)
    channel.queue_declare(queue, durable=True)
    channel.confirm_delivery()
    channel.basic_publish("", queue, body)
    return channel.basic_get(queue, auto_ack=True)[2] == body


def delays(channel: BlockingChannel, queue: str) -> object:
    arguments = {"x-delayed-type": "topic"}
    channel.exchange_declare(f"row-{queue}", "x-delayed-message", durable=True, arguments=arguments)
    return True


def publishes_again(channel: BlockingChannel, queue: str) -> object:
    """The count in `x-death` of a message that its consumer publishes again with its headers."""
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{queue}-d"}
    channel.queue_declare(queue, durable=True, arguments=arguments)
    channel.queue_declare(f"{queue}-d", durable=True)
    headers, counts = {}, []
    for _ in range(3):
        channel.basic_publish("", queue, b"b", pika.BasicProperties(headers=headers))
        for method, _, _ in channel.consume(queue, inactivity_timeout=20):
            assert method is not None
            channel.basic_reject(method.delivery_tag, requeue=False)
            break
        channel.cancel()
        for _, properties, _ in channel.consume(f"{queue}-d", auto_ack=True, inactivity_timeout=20):
            headers = properties.headers
            break
        channel.cancel()
        counts.append(str(headers["x-death"][0]["count"]))
    return ", ".join(counts)


MORE: dict[str, Step] = {
    "quorum": quorum(),
    "quorum, auto-delete": quorum(auto_delete=True),
    "quorum, exclusive": quorum(exclusive=True),
    "quorum, x-max-priority": quorum(arguments=with_arguments(x_max_priority=5)),
    "quorum, x-queue-mode": quorum(arguments=with_arguments(x_queue_mode="lazy")),
    "quorum, deleted if unused": deletes,
    "quorum, server-named": names_none,
    "a classic queue, then quorum": redeclares("classic", "quorum"),
    "a quorum queue, then classic": redeclares("quorum", "classic"),
    "a message of 17 MiB": large,
    "a limit of 2 for the channel, two consumers": limited("classic"),
    "the same, of quorum queues": limited("quorum"),
    "exchange x-delayed-message": delays,
    "quorum, rejected with requeue": given_back("quorum", "reject"),
    "quorum, nacked with requeue": given_back("quorum", "nack"),
    "x-delivery-count of what is nacked": counted,
    "x-death of a message that is published again": publishes_again,
}


def old_header(port: int) -> str:
    """AMQP 0-8: whether connection.start comes."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as broker:
        broker.sendall(b"AMQP\x01\x01\x08\x00")
        # A method, on channel 0.
        return "ok" if broker.recv(3) == b"\x01\x00\x00" else "lost"


def small_frames(port: int) -> str:
    """Whether a connection with frames of 4,096 bytes is opened."""
    try:
        pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, frame_max=4096)).close()
    except pika.exceptions.AMQPError:
        return "lost"
    return "ok"


#: How whole connections fare.
OPENS: dict[str, Callable[[int], str]] = {
    "a greeting of AMQP 0-8": old_header,
    "frames of 4,096 bytes": small_frames,
}


def outcome(port: int, step: Step) -> str:
    queue = f"table-{secrets.token_hex(4)}"
    connection = connected(port)
    try:
        found = step(connection.channel(), queue)
    except (pika.exceptions.ChannelClosedByBroker, pika.exceptions.ConnectionClosedByBroker) as closed:
        return str(closed.reply_code)
    except pika.exceptions.AMQPError as error:
        return type(error).__name__
    finally:
        if connection.is_open:
            connection.close()
    return "ok" if found is True else str(found)


@contextlib.contextmanager
def node_of(version: str, folder: str) -> Iterator[RabbitMQ]:
    is_4 = version.startswith("4")
    root = Path(folder or f".tools/rabbitmq-{version}").resolve()
    if version == "4.3" and not folder:
        root = root_of_4()
    node = RabbitMQ(root=None if version == "machine" else root, config=DENYING if is_4 else ())
    try:
        node.start()
        yield node
    finally:
        node.destroy()


def column(port: int, wanted: Collection[str]) -> dict[str, str]:
    """By row, of these alone if there are some."""
    steps = {name: step for name, (step, _, _) in ROWS.items()} | MORE
    plays = OPENS | {name: partial(outcome, step=step) for name, step in steps.items()}
    return {name: play(port) for name, play in plays.items() if not wanted or name in wanted}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("versions", nargs="+", metavar="VERSION[=FOLDER]")
    parser.add_argument("--row", action="append", default=[], help="only this one (default: all)")
    options = parser.parse_args()
    columns: dict[str, dict[str, str]] = {}
    for named in options.versions:
        version, _, root = named.partition("=")
        with node_of(version, root) as node, tempfile.TemporaryDirectory() as made, object_store() as claims:
            columns[version] = column(node.port, options.row)
            if version.startswith("4"):
                policies = Path(made) / "policies"
                policies.mkdir()
                (policies / "three.yaml").write_text(POLICY + claims)
                config = CONFIG.format(port=node.port, connections="own")
                with serving(config, folder=Path(made)) as gate:
                    columns[f"{version} with the policy"] = column(gate.port(), options.row)
    print(f"| | {' | '.join(columns)} |")
    print(f"|---|{'---|' * len(columns)}")
    for name in next(iter(columns.values())):
        print(f"| {name} | {' | '.join(found[name] for found in columns.values())} |")


if __name__ == "__main__":
    main()
