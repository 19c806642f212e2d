"""A connection to a mirror at work: what goes out is confirmed or lost, and its room is given back."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest
import trio
from prometheus_client import CollectorRegistry

from amqpgate.errors import AmqpgateError
from amqpgate.gateway.observers.mirror.line import MirrorLine
from amqpgate.gateway.observers.mirror.pipe import MirrorPipe
from amqpgate.gateway.observers.mirror.queue import MirroredMessage, MirrorQueue
from amqpgate.gateway.transport.method_stream import MethodStream
from amqpgate.protocol.methods import Role
from amqpgate.telemetry.mirrors import MirrorMetrics
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import PATIENCE
from tests.support.metrics import sample_value
from tests.support.talker import Talker


class Stand:
    """A pipe with three messages before it, and the broker at its end."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.broker = Talker(theirs)
        self.registry = CollectorRegistry()
        account = MirrorMetrics(self.registry).account("m")
        self.queue = MirrorQueue(1 << 20, account, lambda: None)
        self.hop = MethodStream(ours, frame_max=4096, peer=Role.SERVER)
        self.finishing = trio.Event()
        line = MirrorLine("m", "me", 4096, 10, account)
        self.pipe = MirrorPipe(self.hop, line, self.queue, 0, self.finishing)
        for _ in range(3):
            header = encode_header(ContentHeader(60, 4, amqp.BasicProperties()))
            message = MirroredMessage("e", "k", header, 4, None)
            assert self.queue.reserve(message)
            assert self.queue.extend(message, b"body")
            self.queue.put(message)

    def count(self, name: str, **labels: str) -> int:
        name = f"amqpgate_mirror_{name}messages_total"
        return int(sample_value(self.registry, name, {"upstream": "m"} | labels) or 0)

    async def run(self, plays: Callable[[Talker], None]) -> AmqpgateError | None:
        """Why it ended, while the broker plays its part."""
        found: AmqpgateError | None = None
        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.to_thread.run_sync, plays, self.broker)
                found = await self.pipe.run()
        assert self.hop.sock.fileno() == -1
        assert (self.queue.held, len(self.queue)) == (0, 0)
        return found


@pytest.fixture
def stand() -> Iterator[Stand]:
    stand = Stand()
    with stand.broker:
        yield stand
    stand.hop.close()


def takes(broker: Talker) -> None:
    broker.expect(amqp.ChannelOpen, 1)
    broker.expect(amqp.ConfirmSelect, 1)
    for _ in range(3):
        assert broker.expect_content(amqp.BasicPublish).body == b"body"


async def test_at_the_end_it_waits_for_confirms_and_says_that_it_closes(stand: Stand) -> None:
    def plays(broker: Talker) -> None:
        takes(broker)
        broker.say(amqp.ChannelOpenOk(), 1)
        broker.say(amqp.ConfirmSelectOk(), 1)
        broker.say(amqp.BasicAck(2, True), 1)
        broker.hear_nothing(0.05)
        broker.say(amqp.BasicNack(3), 1)
        assert broker.expect(amqp.ConnectionClose).reply_code == 200
        broker.say(amqp.ConnectionCloseOk())
        broker.expect_end()

    stand.finishing.set()
    assert await stand.run(plays) is None
    assert (stand.count(""), stand.count("dropped_", reason="refused")) == (2, 1)


@pytest.mark.parametrize("word", [None, amqp.ConnectionClose(320, "CONNECTION_FORCED - bye", 0, 0)])
async def test_what_was_not_confirmed_when_it_ends_is_lost(
    stand: Stand, word: amqp.ConnectionClose | None
) -> None:
    def plays(broker: Talker) -> None:
        takes(broker)
        broker.say(amqp.BasicAck(1), 1)
        if word is not None:
            broker.say(word)
        broker.close()

    fault = await stand.run(plays)
    assert ("without a word" in str(fault), "320" in str(fault)) == (word is None, word is not None)
    assert (stand.count(""), stand.count("dropped_", reason="lost")) == (1, 2)


async def test_a_broker_that_breaks_the_protocol_is_left(stand: Stand) -> None:
    def plays(broker: Talker) -> None:
        takes(broker)
        broker.raw(b"HTTP/1.1 400 Bad Request\r\n")
        broker.expect_end()

    assert await stand.run(plays) is not None
    assert stand.count("dropped_", reason="lost") == 3
