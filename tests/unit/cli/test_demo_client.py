"""The demonstration client against a scripted server."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
import trio.testing

from amqpgate.broker.amqp.connection import Connection
from amqpgate.broker.amqp.events import ContentReceived, HeaderReceived, MethodReceived
from amqpgate.cli.demo_client import EXCHANGE, STEPS, TRIES, ClosedError, DemoClient, DemoLogin, Sight
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

LOGIN = DemoLogin("guest", "hunter2", "/")

#: What is said to a question that always has the same answer.
ANSWERS: dict[type[Method], Method] = {
    amqp.ConnectionStartOk: amqp.ConnectionTune(channel_max=10, frame_max=4096, heartbeat=0),
    amqp.ConnectionOpen: amqp.ConnectionOpenOk(),
    amqp.ConnectionClose: amqp.ConnectionCloseOk(),
    amqp.ChannelOpen: amqp.ChannelOpenOk(),
    amqp.ConfirmSelect: amqp.ConfirmSelectOk(),
    amqp.ExchangeDeclare: amqp.ExchangeDeclareOk(),
    amqp.QueueDeclare: amqp.QueueDeclareOk(queue="demo.shop"),
    amqp.QueueBind: amqp.QueueBindOk(),
    amqp.BasicConsume: amqp.BasicConsumeOk(consumer_tag="c"),
}


class Server:
    """Answers like a broker; ``refuses(method)`` says what closes the channel, ``ends(method)`` all."""

    def __init__(
        self,
        stream: trio.abc.Stream,
        *,
        refuses: Callable[[Method], bool] = lambda method: False,
        ends: Callable[[Method], bool] = lambda method: False,
    ) -> None:
        self.stream = stream
        self.refuses, self.ends = refuses, ends
        self.connection = Connection("server")
        self.heard: list[Method] = []
        self.tag = 0

    async def run(self) -> None:
        while data := await self.stream.receive_some():
            for event in self.connection.receive(data):
                for raw in self.answers(event):
                    await self.stream.send_all(raw)
            if self.connection.is_closed:
                await self.stream.aclose()
                return

    def answers(self, event: object) -> list[bytes]:
        connection = self.connection
        if isinstance(event, HeaderReceived):
            start = amqp.ConnectionStart(
                version_major=0, version_minor=9, mechanisms=b"PLAIN", locales=b"en_US"
            )
            return [connection.send(0, start)]
        assert isinstance(event, MethodReceived | ContentReceived)
        channel, method = event.channel, event.method
        self.heard.append(method)
        if self.ends(method):
            return [connection.send(0, amqp.ConnectionClose(reply_code=320, reply_text="FORCED - bye"))]
        if self.refuses(method):
            self.tag = 0
            close = amqp.ChannelClose(reply_code=403, reply_text=f"ACCESS_REFUSED - {method.NAME}")
            return [connection.send(channel, close)]
        if isinstance(event, ContentReceived):
            assert isinstance(method, amqp.BasicPublish)
            self.tag += 1
            deliver = amqp.BasicDeliver(
                consumer_tag="c",
                delivery_tag=self.tag,
                exchange=method.exchange,
                routing_key=method.routing_key,
            )
            # A broker may deliver first and confirm then.
            return [
                connection.send_content(2, deliver, amqp.BasicProperties(), event.body),
                connection.send(channel, amqp.BasicAck(delivery_tag=self.tag)),
            ]
        if isinstance(method, amqp.BasicGet):
            return [connection.send(channel, amqp.BasicGetEmpty())]
        answer = ANSWERS.get(type(method))
        return [connection.send(channel, answer)] if answer is not None else []


async def converse(
    nursery: trio.Nursery,
    refuses: Callable[[Method], bool] = lambda method: False,
    ends: Callable[[Method], bool] = lambda method: False,
) -> tuple[DemoClient, Server, list[Sight]]:
    ours, theirs = trio.testing.memory_stream_pair()
    server = Server(theirs, refuses=refuses, ends=ends)
    sights: list[Sight] = []
    nursery.start_soon(server.run)
    return DemoClient(ours, sights.append, "test"), server, sights


async def test_an_allowed_publish_is_told_before_what_came_of_it(nursery: trio.Nursery) -> None:
    client, _, sights = await converse(nursery)
    await client.open(LOGIN)
    await client.attempt((EXCHANGE, "order.eu.created"), 7)
    assert sights == [
        Sight("basic.publish", EXCHANGE, "order.eu.created", True, "basic.ack"),
        Sight("basic.deliver", EXCHANGE, "order.eu.created", None, "message 7"),
    ]


async def test_a_refusal_is_told_with_its_text_and_the_next_attempt_goes_on(nursery: trio.Nursery) -> None:
    def refuses(method: Method) -> bool:
        return isinstance(method, amqp.BasicPublish) and method.routing_key == "payroll"

    client, server, sights = await converse(nursery, refuses)
    await client.open(LOGIN)
    await client.attempt(("", "payroll"), 1)
    await client.attempt((EXCHANGE, "order.eu.created"), 2)
    assert sights[0] == Sight("basic.publish", "", "payroll", False, "403 ACCESS_REFUSED - basic.publish")
    assert sights[1].allowed is True
    assert amqp.ChannelCloseOk() in server.heard
    assert TRIES in server.connection.open_channels


async def test_a_queue_is_read_from(nursery: trio.Nursery) -> None:
    client, _, sights = await converse(nursery)
    await client.open(LOGIN)
    await client.attempt("payroll", 1)
    assert sights == [Sight("basic.get", "", "payroll", True, "basic.get-empty")]


async def test_it_says_who_it_is_and_leaves_nothing_behind(nursery: trio.Nursery) -> None:
    client, server, _ = await converse(nursery)
    await client.open(LOGIN)
    (start_ok,) = [method for method in server.heard if isinstance(method, amqp.ConnectionStartOk)]
    assert start_ok.client_properties.get("product") == "amqpgate demo"
    assert start_ok.response == b"\0guest\0hunter2"
    (exchange,) = [method for method in server.heard if isinstance(method, amqp.ExchangeDeclare)]
    (queue,) = [method for method in server.heard if isinstance(method, amqp.QueueDeclare)]
    assert exchange.auto_delete
    assert queue.exclusive
    await client.close()
    assert server.connection.is_closed


async def test_a_refused_preparation_is_told_with_its_text(nursery: trio.Nursery) -> None:
    client, _, _ = await converse(nursery, lambda method: isinstance(method, amqp.QueueDeclare))
    with pytest.raises(ClosedError, match=r"^403 ACCESS_REFUSED - queue\.declare$"):
        await client.open(LOGIN)


async def test_a_closed_connection_is_told_with_its_text(nursery: trio.Nursery) -> None:
    client, server, _ = await converse(nursery, ends=lambda method: isinstance(method, amqp.BasicPublish))
    await client.open(LOGIN)
    with pytest.raises(ClosedError, match=r"^320 FORCED - bye$"):
        await client.attempt((EXCHANGE, "order.eu.created"), 1)
    await trio.testing.wait_all_tasks_blocked()
    assert server.connection.is_closed


async def test_a_connection_that_just_ends_is_told(nursery: trio.Nursery) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    await theirs.aclose()
    client = DemoClient(ours, lambda sight: None, "test")
    with pytest.raises((ClosedError, trio.BrokenResourceError)):
        await client.open(LOGIN)


async def test_another_protocol_is_told(nursery: trio.Nursery) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    await theirs.send_all(b"AMQP\x00\x01\x00\x00")
    client = DemoClient(ours, lambda sight: None, "test")
    with pytest.raises(ClosedError, match=r"does not speak AMQP 0-9-1"):
        await client.open(LOGIN)


async def test_listening_tells_what_comes_in_that_time(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    client, server, sights = await converse(nursery)
    await client.open(LOGIN)

    async def deliver_late() -> None:
        await trio.sleep(0.5)
        deliver = amqp.BasicDeliver(
            consumer_tag="c", delivery_tag=9, exchange=EXCHANGE, routing_key="order.x"
        )
        properties = amqp.BasicProperties()
        await server.stream.send_all(server.connection.send_content(2, deliver, properties, b"of another"))

    nursery.start_soon(deliver_late)
    started = trio.current_time()
    await client.listen(1.0)
    assert trio.current_time() - started == 1.0
    assert sights == [Sight("basic.deliver", EXCHANGE, "order.x", None, "of another")]


def test_the_steps_hold_what_is_allowed_and_what_is_not() -> None:
    keys = [step[1] for step in STEPS if isinstance(step, tuple)]
    assert any(key.endswith(".created") for key in keys)
    assert any(key.endswith(".refunded") for key in keys)
