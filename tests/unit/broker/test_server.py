"""The broker on streams and sockets."""

from __future__ import annotations

import logging

import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair, memory_stream_pair, wait_all_tasks_blocked

from amqpgate.broker import EmbeddedBroker
from amqpgate.broker.amqp.connection import Connection
from amqpgate.broker.amqp.events import ContentReceived, Event, HeartbeatReceived, MethodReceived
from amqpgate.protocol.sasl import plain_response
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

_PROPERTIES = Table.of({"capabilities": {"authentication_failure_close": True}})


class TrioClient:
    """Just enough of a client."""

    def __init__(self, stream: trio.abc.HalfCloseableStream) -> None:
        self.stream = stream
        self.connection = Connection("client")

    async def open(self, heartbeat: int = 0, frame_max: int = 131_072) -> None:
        await self.stream.send_all(self.connection.send_header())
        assert isinstance(await self.answer(), amqp.ConnectionStart)
        response = plain_response("guest", "guest")
        await self.send(amqp.ConnectionStartOk(_PROPERTIES, "PLAIN", response, "en_US"), 0)
        assert isinstance(await self.answer(), amqp.ConnectionTune)
        await self.send(amqp.ConnectionTuneOk(2047, frame_max, heartbeat), 0)
        await self.send(amqp.ConnectionOpen("/"), 0)
        assert await self.answer() == amqp.ConnectionOpenOk()
        await self.send(amqp.ChannelOpen())
        assert await self.answer() == amqp.ChannelOpenOk()

    async def send(self, method: Method, channel: int = 1) -> None:
        await self.stream.send_all(self.connection.send(channel, method))

    async def ask(self, method: Method, channel: int = 1) -> Method:
        await self.send(method, channel)
        return await self.answer()

    async def publish(self, key: str, body: bytes, properties: amqp.BasicProperties | None = None) -> None:
        method = amqp.BasicPublish(routing_key=key)
        data = self.connection.send_content(1, method, properties or amqp.BasicProperties(), body)
        await self.stream.send_all(data)

    async def event(self) -> Event | None:
        """The next event; None if the broker has hung up."""
        while True:
            event = self.connection.next_event()
            if event is not None:
                return event
            data = await self.stream.receive_some()
            if not data:
                return None
            self.connection.receive(data)

    async def answer(self) -> Method:
        event = await self.event()
        assert isinstance(event, MethodReceived | ContentReceived)
        return event.method


async def _connected(
    nursery: trio.Nursery, broker: EmbeddedBroker, heartbeat: int = 0, frame_max: int = 131_072
) -> TrioClient:
    ours, theirs = memory_stream_pair()
    nursery.start_soon(broker.serve_stream, theirs)
    client = TrioClient(ours)
    await client.open(heartbeat, frame_max)
    return client


async def test_serves_on_a_socket_and_says_what_it_is(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    broker = EmbeddedBroker()
    async with trio.open_nursery() as nursery:
        port = await nursery.start(broker.serve, "127.0.0.1", 0)
        assert f"port {port}: in memory, for demonstrations and tests only" in caplog.text
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            client = TrioClient(stream)
            await client.open()
            assert await client.ask(amqp.QueueDeclare(queue="q")) == amqp.QueueDeclareOk("q", 0, 0)
            await client.publish("q", b"hello")
            assert isinstance(await client.ask(amqp.BasicGet(queue="q")), amqp.BasicGetOk)
            assert await client.ask(amqp.ConnectionClose(200, "bye"), 0) == amqp.ConnectionCloseOk()
            assert await client.event() is None
        nursery.cancel_scope.cancel()
    with pytest.raises(OSError, match="connect"):
        await trio.open_tcp_stream("127.0.0.1", port)


async def test_cancelling_tells_the_clients_and_closes_the_sockets() -> None:
    broker = EmbeddedBroker()
    async with trio.open_nursery() as nursery:
        port = await nursery.start(broker.serve)
        opened = TrioClient(await trio.open_tcp_stream("127.0.0.1", port))
        await opened.open()
        silent = TrioClient(await trio.open_tcp_stream("127.0.0.1", port))
        await silent.stream.send_all(silent.connection.send_header())
        await silent.answer()
        nursery.cancel_scope.cancel()
    async with opened.stream, silent.stream:
        close = await opened.answer()
        assert isinstance(close, amqp.ConnectionClose)
        assert close.reply_code == 320
        assert await opened.event() is None
        assert await silent.event() is None


async def test_queues_outlive_the_listener() -> None:
    broker = EmbeddedBroker()
    for expected in (1, 2):
        async with trio.open_nursery() as nursery:
            client = await _connected(nursery, broker)
            await client.ask(amqp.QueueDeclare(queue="q"))
            await client.publish("q", b"")
            answer = await client.ask(amqp.QueueDeclare(queue="q", passive=True))
            assert answer == amqp.QueueDeclareOk("q", expected, 0)
            nursery.cancel_scope.cancel()


async def test_a_client_that_vanishes_leaves_nothing_behind() -> None:
    broker = EmbeddedBroker()
    async with trio.open_nursery() as nursery:
        leaving, staying = await _connected(nursery, broker), await _connected(nursery, broker)
        await leaving.ask(amqp.QueueDeclare(queue="mine", exclusive=True))
        await staying.ask(amqp.QueueDeclare(queue="q"))
        await staying.publish("q", b"1")
        await leaving.send(amqp.BasicConsume(queue="q", consumer_tag="t"))
        assert isinstance(await leaving.answer(), amqp.BasicConsumeOk)
        assert isinstance(await leaving.answer(), amqp.BasicDeliver)
        await leaving.stream.aclose()
        await wait_all_tasks_blocked()
        answer = await staying.ask(amqp.QueueDeclare(queue="q", passive=True))
        assert answer == amqp.QueueDeclareOk("q", 1, 0)
        assert len(nursery.child_tasks) == 1
        assert isinstance(await staying.ask(amqp.QueueDeclare(queue="mine", passive=True)), amqp.ChannelClose)
        nursery.cancel_scope.cancel()


async def test_heartbeats(autojump_clock: MockClock) -> None:
    """One is sent per half interval of silence; two intervals without any, and the client is given up."""
    async with trio.open_nursery() as nursery:
        client = await _connected(nursery, EmbeddedBroker(), heartbeat=10)
        start = trio.current_time()
        times = []
        for _ in range(3):
            assert isinstance(await client.event(), HeartbeatReceived)
            times.append(trio.current_time() - start)
        assert times == [5, 10, 15]
        await client.stream.send_all(client.connection.send_heartbeat())
        while await client.event() is not None:
            pass
        assert trio.current_time() - start == 15 + 20


async def test_no_heartbeats_if_none_were_agreed(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        client = await _connected(nursery, EmbeddedBroker(), heartbeat=0)
        with trio.move_on_after(10_000) as patience:
            await client.event()
        assert patience.cancelled_caught
        nursery.cancel_scope.cancel()


async def test_a_handshake_takes_ten_seconds_at_most(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(EmbeddedBroker().serve_stream, theirs)
        client = TrioClient(ours)
        await ours.send_all(client.connection.send_header())
        await client.answer()
        assert await client.event() is None
    assert trio.current_time() - start == 10


async def test_a_client_that_does_not_answer_a_close_is_hung_up_on(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        client = await _connected(nursery, EmbeddedBroker())
        start = trio.current_time()
        assert isinstance(await client.ask(amqp.ChannelFlow(active=False)), amqp.ConnectionClose)
        assert await client.event() is None
        assert trio.current_time() - start == 5


async def test_a_refused_client_reads_the_whole_answer() -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(EmbeddedBroker().serve_stream, theirs)
        await ours.send_all(b"GET / HTTP/1.1\r\n\r\n")
        assert await ours.receive_some() == b"AMQP\x00\x00\x09\x01"
        assert await ours.receive_some() == b""
        await ours.aclose()


async def test_a_client_that_does_not_read_is_not_read_from(autojump_clock: MockClock) -> None:
    """It is not taken for dead either, and goes on once it reads."""
    ours, theirs = lockstep_stream_pair()
    broker = EmbeddedBroker()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.serve_stream, theirs)
        client = TrioClient(ours)
        await client.open(heartbeat=10)
        await client.ask(amqp.QueueDeclare(queue="q"))
        body = b"x" * 100_000
        for _ in range(10):
            await client.publish("q", body)
        sent = 0

        async def get_all() -> None:
            nonlocal sent
            for _ in range(10):
                await client.send(amqp.BasicGet(queue="q", no_ack=True))
                sent += 1

        nursery.start_soon(get_all)
        await trio.sleep(1000)
        # Six answers fill the outbox.
        assert 6 <= sent < 10
        for _ in range(10):
            assert isinstance(await client.answer(), amqp.BasicGetOk)
        await wait_all_tasks_blocked()
        assert sent == 10
        assert await client.ask(amqp.BasicQos()) == amqp.BasicQosOk()
        nursery.cancel_scope.cancel()


async def test_a_client_whose_frames_are_too_small_is_told_by_its_own_task(
    autojump_clock: MockClock,
) -> None:
    broker = EmbeddedBroker()
    async with trio.open_nursery() as nursery:
        small = await _connected(nursery, broker, heartbeat=2, frame_max=4096)
        other = await _connected(nursery, broker)
        await small.ask(amqp.QueueDeclare(queue="q"))
        await small.ask(amqp.BasicConsume(queue="q", consumer_tag="t"))
        headers = Table.of({"long": "x" * 5000})
        await other.publish("q", b"", amqp.BasicProperties(headers=headers))
        close = await small.answer()
        assert isinstance(close, amqp.ConnectionClose)
        assert close.reply_code == 501
        # It is told once, and hung up on if it has no answer; heartbeats fall due meanwhile.
        start = trio.current_time()
        assert await small.event() is None
        assert trio.current_time() - start == 4
        await other.stream.aclose()


async def test_a_client_in_a_hurry_is_not_told_half_a_frame() -> None:
    """Cancelled in the middle of sending: the socket is closed without a frame inside of a frame."""
    ours, theirs = lockstep_stream_pair()
    broker = EmbeddedBroker()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.serve_stream, theirs)
        client = TrioClient(ours)
        await client.open()
        await client.ask(amqp.QueueDeclare(queue="q"))
        await client.publish("q", b"x" * 10_000)
        await client.send(amqp.BasicGet(queue="q"))
        # The broker now sends the message, of which we take a part.
        client.connection.receive(await ours.receive_some(5000))
        nursery.cancel_scope.cancel()
    data = bytearray()
    while more := await ours.receive_some():
        data += more
    assert b"shutdown" not in data


def test_frame_max_has_a_minimum() -> None:
    with pytest.raises(ValueError, match="at least 4096"):
        EmbeddedBroker(frame_max=4095)
