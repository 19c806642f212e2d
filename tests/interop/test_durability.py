"""Confirmed messages survive whatever happens to clients and broker, with the gateway in between."""

from __future__ import annotations

import collections
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.interop.durable_publisher import RECORD, body_of, confirmed
from tests.interop.mortal import running_node
from tests.support.gateway import Gateway
from tests.support.processes import Child
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

VHOST = "durable"


@attrs.define(eq=False)
class Publishers:
    """One process per lane; a lane is a connection, a queue and a file of what was confirmed."""

    port: int
    folder: Path
    count: int
    lanes: list[str]
    children: dict[str, Child] = attrs.field(factory=dict)
    kills: int = 0

    def file(self, lane: str) -> Path:
        return self.folder / f"{lane}.confirmed"

    def start(self, lane: str) -> None:
        command = [sys.executable, "-m", "tests.interop.durable_publisher"]
        self.children[lane] = Child(
            [*command, str(self.port), VHOST, lane, str(self.count), self.file(lane)],
            log=self.folder / f"{lane}.log",
            cwd=Path(__file__).parents[2],
        )

    def kill(self, lanes: list[str]) -> None:
        for lane in lanes:
            if self.children[lane].running:
                self.children[lane].kill()
                self.kills += 1
                self.start(lane)

    def progress(self) -> int:
        """How many confirms have been written down."""
        files = [self.file(lane) for lane in self.lanes]
        return sum(file.stat().st_size // RECORD.size for file in files if file.exists())

    @property
    def running(self) -> bool:
        return any(child.running for child in self.children.values())


@attrs.define
class Drained:
    """What a queue held, in the order in which it was delivered first."""

    #: (epoch, number) of every copy.
    copies: list[tuple[int, int]] = attrs.field(factory=list)
    redelivered: int = 0


def drain(port: int, lane: str, dice: random.Random, resets: int, drained: Drained | None = None) -> Drained:
    """Consume a queue to its end with acks, and lose the connection so often on the way; go on from
    `drained` if that is given.
    """
    drained = drained or Drained()
    seen = set(drained.copies)
    lost = 0
    while True:
        with Talker.dial(port, timeout=120) as client:
            client.open(vhost=VHOST)
            passive = amqp.QueueDeclare(queue=lane, passive=True)
            told = client.ask(passive, amqp.QueueDeclareOk, 1)
            left = told.message_count
            if not left and told.consumer_count:
                # The broker holds what a consumer that was reset has not acked, until it notices.
                client.bye()
                time.sleep(0.05)
                continue
            if not left:
                client.bye()
                return drained
            client.ask(amqp.BasicQos(prefetch_count=50), amqp.BasicQosOk, 1)
            client.ask(amqp.BasicConsume(queue=lane), amqp.BasicConsumeOk, 1)
            until = dice.randrange(left) if lost < resets else left
            for _ in range(until):
                message = client.expect_content(amqp.BasicDeliver)
                deliver = message.method
                assert isinstance(deliver, amqp.BasicDeliver)
                properties = message.header.properties
                assert isinstance(properties, amqp.BasicProperties)
                name, epoch, number = str(properties.message_id).split(".")
                assert name == lane
                assert properties.delivery_mode == 2
                copy = (int(epoch), int(number))
                assert message.body == body_of(copy[1])
                if copy in seen:
                    assert deliver.redelivered, f"{copy} twice"
                    drained.redelivered += 1
                else:
                    seen.add(copy)
                    drained.copies.append(copy)
                client.say(amqp.BasicAck(deliver.delivery_tag), 1)
            if until < left:
                lost += 1
                client.reset()
            else:
                client.bye()


def in_order(copies: list[tuple[int, int]]) -> bool:
    """Whether each epoch, which is one channel's life, has its messages in the order of publishing."""
    last: dict[int, int] = {}
    for epoch, number in copies:
        if number <= last.get(epoch, -1):
            return False
        last[epoch] = number
    return True


def schedule(events: int) -> list[tuple[float, str]]:
    """After which part of the work what is killed, or restarted in good order."""
    kinds = ["clients", "broker", "clients", "clients", "broker", "clients", "graceful"]
    return [((number + 1) / (events + 1), kinds[number % len(kinds)]) for number in range(events)]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("lanes", "count", "events"),
    [(6, 300, 2), pytest.param(20, 5000, 21, marks=pytest.mark.slow)],
    ids=["quick", "full"],
)
def test_confirmed_messages_survive(
    tmp_path: Path,
    lanes: int,
    count: int,
    events: int,
    record_property: Callable[[str, object], None],
) -> None:
    node: RabbitMQ = running_node()
    node.fresh_vhost(VHOST)
    gateway = Gateway(f"amqp://{node.address}")
    gateway.start()
    dice = random.Random(1)
    publishers = Publishers(gateway.port, tmp_path, count, [f"lane{number}" for number in range(lanes)])
    with Talker.dial(node.port) as owner:
        owner.open(vhost=VHOST)
        for lane in publishers.lanes:
            lazy = Table.of({"x-queue-mode": "lazy"})
            owner.ask(amqp.QueueDeclare(queue=lane, durable=True, arguments=lazy), amqp.QueueDeclareOk, 1)
        owner.bye()
    # A node that is killed forgets the queues that Mnesia has not written yet.
    node.eval("mnesia:sync_log().")
    since = time.monotonic()
    happened: collections.Counter[str] = collections.Counter()
    try:
        for lane in publishers.lanes:
            publishers.start(lane)
        for part, kind in schedule(events):
            while publishers.progress() < part * lanes * count and publishers.running:
                time.sleep(0.05)
            assert publishers.running, "all is published before everything has happened"
            happened[kind] += 1
            if kind == "clients":
                publishers.kill(dice.sample(publishers.lanes, max(2, lanes // 4)))
            else:
                node.restart(graceful=kind == "graceful")
        for child in publishers.children.values():
            assert child.wait(1800) == 0
        published_in = time.monotonic() - since

        since = time.monotonic()
        drained: dict[str, Drained] = {}
        failures: list[BaseException] = []

        def empty(lane: str) -> None:
            try:
                drained[lane] = drain(gateway.port, lane, random.Random(lane), resets=2)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=empty, args=(lane,)) for lane in publishers.lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        drained_in = time.monotonic() - since
    finally:
        for child in publishers.children.values():
            child.kill()
        ended = gateway.stop()
    assert ended.code == 0
    assert "Traceback" not in ended.log

    lost = again = redelivered = byte_count = 0
    for lane in publishers.lanes:
        copies = drained[lane].copies
        assert in_order(copies)
        lost += len(set(confirmed(publishers.file(lane))) - set(copies))
        assert {number for _, number in copies} == set(range(count))
        again += len(copies) - count
        redelivered += drained[lane].redelivered
        byte_count += sum(len(body_of(number)) for _, number in copies)
    numbers = {
        "messages": lanes * count,
        "octets": byte_count,
        "connections": lanes,
        "broker killed": happened["broker"],
        "broker restarted in good order": happened["graceful"],
        "clients killed": publishers.kills,
        "confirmed and lost": lost,
        "published again and there twice": again,
        "redelivered": redelivered,
        "seconds to publish": round(published_in, 1),
        "seconds to consume": round(drained_in, 1),
    }
    for name, value in numbers.items():
        record_property(name, value)
    print(", ".join(f"{name}: {value}" for name, value in numbers.items()))
    assert lost == 0
