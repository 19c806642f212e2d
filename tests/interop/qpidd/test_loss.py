"""What qpidd has confirmed is delivered, whatever becomes of clients and gateway, twice only if marked."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.durable_publisher import confirmed
from tests.interop.test_durability import VHOST, Drained, Publishers, drain, in_order
from tests.support import qpidd
from tests.support.gateway import Gateway
from tests.support.ports import free_port
from tests.support.talker import Gone, Talker, Unexpected

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

LANES, COUNT, RESETS = 8, 2500, 2
#: What is killed after which part of the publishing, and of the consuming.
PUBLISHING = {0.2: "clients", 0.35: "gateway", 0.5: "clients", 0.65: "gateway", 0.8: "clients"}
CONSUMING = (0.3, 0.7)

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:{port}"}}]
upstreams: [{{name: qpidd, host: 127.0.0.1, port: {broker}, version: 0-10}}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
"""


@attrs.define(eq=False)
class Mortal:
    """A gateway that may be killed; the next one has its port."""

    broker: int
    port: int = attrs.field(factory=free_port)
    gateway: Gateway = attrs.field(init=False)
    log: str = ""

    def start(self) -> None:
        self.gateway = Gateway(config=CONFIG.format(port=self.port, broker=self.broker))
        self.gateway.start()

    def kill(self) -> None:
        self.log += self.gateway.kill().log

    def restart(self) -> None:
        self.kill()
        self.start()


@pytest.fixture
def mortal() -> Iterator[Mortal]:
    # It has no store, so it lives; queues are not limited.
    with qpidd.running("--default-queue-limit", "0") as broker:
        mortal = Mortal(broker.port)
        mortal.start()
        try:
            yield mortal
        finally:
            mortal.kill()
        assert "Traceback" not in mortal.log, mortal.log[-4000:]


def emptied(port: int, lane: str, drained: Drained, count: int) -> None:
    """Consume until all numbers have come, whatever happens to the connections."""
    dice = random.Random(lane)
    until = time.monotonic() + 600
    while {number for _, number in drained.copies} != set(range(count)):
        assert time.monotonic() < until, f"{lane}: {count - len(drained.copies)} of {count} do not come"
        try:
            drain(port, lane, dice, resets=RESETS, drained=drained)
        except (Gone, Unexpected, OSError):
            time.sleep(0.2)


def test_confirmed_messages_survive(
    mortal: Mortal, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    dice = random.Random(1)
    publishers = Publishers(mortal.port, tmp_path, COUNT, [f"lane{number}" for number in range(LANES)])
    with Talker.dial(mortal.port) as owner:
        owner.open(vhost=VHOST)
        for lane in publishers.lanes:
            owner.ask(amqp.QueueDeclare(queue=lane), amqp.QueueDeclareOk, 1)
        owner.bye()
    gateways = 0
    try:
        for lane in publishers.lanes:
            publishers.start(lane)
        for part, kind in PUBLISHING.items():
            while publishers.progress() < part * LANES * COUNT and publishers.running:
                time.sleep(0.05)
            assert publishers.running, "all is published before everything has happened"
            if kind == "clients":
                publishers.kill(dice.sample(publishers.lanes, LANES // 2))
            else:
                gateways += 1
                mortal.restart()
        for child in publishers.children.values():
            assert child.wait(900) == 0
    finally:
        for child in publishers.children.values():
            child.kill()

    drained = {lane: Drained() for lane in publishers.lanes}
    failures: list[BaseException] = []

    def empty(lane: str) -> None:
        try:
            emptied(mortal.port, lane, drained[lane], COUNT)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=empty, args=(lane,)) for lane in publishers.lanes]
    for thread in threads:
        thread.start()
    for part in CONSUMING:
        while sum(len(one.copies) for one in drained.values()) < part * LANES * COUNT and any(
            thread.is_alive() for thread in threads
        ):
            time.sleep(0.05)
        gateways += 1
        mortal.restart()
    for thread in threads:
        thread.join()
    assert failures == []

    for lane in publishers.lanes:
        copies = drained[lane].copies
        assert in_order(copies)
        assert set(confirmed(publishers.file(lane))) <= set(copies), f"{lane}: confirmed, and lost"
    record_property("messages", LANES * COUNT)
    record_property("gateways killed", gateways)
    record_property("clients killed", publishers.kills)
    record_property("redelivered", sum(one.redelivered for one in drained.values()))
