"""A client that stops reading stops only itself, and costs a bounded amount of memory."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.missing import missing
from tests.support.rabbitmq import RabbitMQ, script_folder
from tests.support.talker import Talker

BODY = 64 * 1024
#: What the gateway may need for the sleeper: its buffers, and what the allocator keeps.
ROOM = 16 << 20


def resident(gateway: Gateway) -> int:
    """Bytes of memory of the gateway and its children."""
    pages = 0
    for process in family(gateway.child.pid):
        pages += int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(process for child in children for process in family(int(child)))]


@pytest.fixture
def patient() -> Iterator[tuple[RabbitMQ, Gateway]]:
    """RabbitMQ drops a client that takes nothing for 30 seconds; this one waits for two minutes."""
    if script_folder() is None:
        missing("RabbitMQ is not installed (Debian: apt-get install rabbitmq-server)")
    node = RabbitMQ(config=["tcp_listen_options.send_timeout = 120000"])
    try:
        node.start()
        gateway = Gateway(f"amqp://{node.address}")
        gateway.start()
        yield node, gateway
        assert gateway.stop().code == 0
    finally:
        node.destroy()


def test_a_consumer_that_stops_reading(rabbitmq: RabbitMQ, gateway: Gateway) -> None:
    stop_reading(rabbitmq, gateway, seconds=2, messages=1000)


@pytest.mark.slow
def test_a_consumer_that_stops_reading_for_a_minute(patient: tuple[RabbitMQ, Gateway]) -> None:
    stop_reading(*patient, seconds=60, messages=8000)


def stop_reading(rabbitmq: RabbitMQ, gateway: Gateway, *, seconds: int, messages: int) -> None:
    queue = f"pressure-{secrets.token_hex(4)}"
    with (
        Talker.dial(gateway.port) as sleeper,
        Talker.dial(gateway.port) as worker,
        Talker.dial(rabbitmq.port) as witness,
    ):
        sleeper.open()
        worker.open()
        witness.open()
        lazy = Table.of({"x-queue-mode": "lazy"})
        witness.ask(amqp.QueueDeclare(queue=queue, arguments=lazy), amqp.QueueDeclareOk, 1)
        for number in range(messages):
            witness.publish(number.to_bytes(4, "big") + bytes(BODY - 4), queue)
        passive = amqp.QueueDeclare(queue=queue, passive=True)

        def left() -> int:
            return witness.ask(passive, amqp.QueueDeclareOk, 1).message_count

        eventually(lambda: left() == messages)
        before = resident(gateway)
        sleeper.ask(amqp.BasicConsume(queue=queue, no_ack=True), amqp.BasicConsumeOk, 1)
        # The other one works on, on the same gateway, all the while.
        own = worker.ask(amqp.QueueDeclare(exclusive=True), amqp.QueueDeclareOk, 1).queue
        worker.ask(amqp.BasicConsume(queue=own, no_ack=True), amqp.BasicConsumeOk, 1)
        peak, rounds = before, 0
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            body = rounds.to_bytes(4, "big") * 5000
            worker.publish(body, own)
            assert worker.expect_content(amqp.BasicDeliver).body == body
            rounds += 1
            if rounds % 50 == 0:
                peak = max(peak, resident(gateway))
        print(f"{rounds} round trips beside it; memory grew by {(peak - before) >> 10} KiB at most")
        assert rounds > 10 * seconds
        assert peak - before < ROOM, f"{peak - before} bytes for one client that does not read"
        # The broker has stopped, too: most is still in the queue, and stays there.
        waiting = left()
        assert waiting > messages // 2
        time.sleep(0.5)
        assert left() == waiting
        for number in range(messages):
            assert sleeper.expect_content(amqp.BasicDeliver).body[:4] == number.to_bytes(4, "big")
        assert left() == 0
        witness.ask(amqp.QueueDelete(queue=queue), amqp.QueueDeleteOk, 1)
        for talker in (sleeper, worker, witness):
            talker.bye()


def all_confirmed(client: Talker, messages: int) -> None:
    """So many, each once and in order."""
    confirmed = 0
    while confirmed < messages:
        ack = client.expect(amqp.BasicAck, 1)
        assert ack.delivery_tag > confirmed
        assert ack.multiple or ack.delivery_tag == confirmed + 1
        confirmed = ack.delivery_tag


def test_a_publisher_that_does_not_read_its_confirms(rabbitmq: RabbitMQ, gateway: Gateway) -> None:
    """Confirms wait for it; nothing is lost, and it may go on publishing meanwhile."""
    queue = f"confirms-{secrets.token_hex(4)}"
    messages = 30_000
    with Talker.dial(gateway.port, read_buffer=1 << 16) as client, Talker.dial(rabbitmq.port) as witness:
        client.open()
        witness.open()
        arguments = Table.of({"x-max-length": 10})
        client.ask(
            amqp.QueueDeclare(queue=queue, exclusive=True, arguments=arguments), amqp.QueueDeclareOk, 1
        )
        client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)

        def publish() -> None:
            for _ in range(messages):
                client.publish(b"x" * 100, queue)

        publisher = threading.Thread(target=publish)
        publisher.start()
        # On a busy machine confirms come one by one. Linux has room for some hundred such segments, and where
        # it is full it passes nothing in either direction until the client reads.
        publisher.join(5)
        all_confirmed(client, messages)
        publisher.join()
        client.bye()
