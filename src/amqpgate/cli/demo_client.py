"""The demonstration client: publishes what is allowed and what is not, and consumes what comes through.

It is an ordinary AMQP 0-9-1 client, made of ``protocol.Connection`` and one trio stream. One task does
everything, in order: say something, read until it is answered, listen for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import attrs
import trio

from amqpgate.broker.amqp.connection import Connection
from amqpgate.broker.amqp.events import ContentReceived, Event, HeaderRefused, MethodReceived
from amqpgate.errors import AmqpgateError
from amqpgate.protocol.sasl import plain_response
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

EXCHANGE = "demo.orders"
QUEUE = "demo.shop"

#: What is tried, again and again: (exchange, routing key) of a publish, or a queue to read from.
STEPS: tuple[tuple[str, str] | str, ...] = (
    (EXCHANGE, "order.eu.created"),
    (EXCHANGE, "order.us.created"),
    (EXCHANGE, "order.eu.refunded"),
    (EXCHANGE, "order.jp.created"),
    # The hole in many an ACL: the default exchange delivers to any queue whose name is the routing key.
    ("", "payroll"),
    "payroll",
)

#: Channels: one to try things on, which a refusal closes; one to consume on, which stays open.
TRIES, CONSUMES = 1, 2

_READ = 64 * 1024
#: Seconds for the answer to a close.
_PATIENCE = 1.0

M = TypeVar("M", bound=Method)


@attrs.frozen
class Sight:
    """One thing that happened, as the client saw it."""

    operation: str
    exchange: str = ""
    #: Of a basic.get: the queue.
    routing_key: str = ""
    #: None: nothing was asked for, it came by itself.
    allowed: bool | None = None
    #: What the client really got.
    answer: str = ""


class ClosedError(AmqpgateError):
    """The other side ended the connection; the text is its reason."""


@attrs.frozen
class DemoLogin:
    """How the demonstration client introduces itself."""

    user: str
    password: str = attrs.field(repr=False)
    vhost: str


@attrs.define(eq=False)
class DemoClient:
    """One connection. ``tell`` is called for every sight, ``name`` tells two clients' queues apart."""

    stream: trio.abc.Stream
    tell: Callable[[Sight], None]
    name: str
    _connection: Connection = attrs.field(factory=lambda: Connection("client"), init=False)
    #: Consumed while an attempt was not answered yet.
    _deliveries: list[Sight] = attrs.field(factory=list, init=False)

    async def open(self, login: DemoLogin) -> None:
        """Log in and make what the demonstration needs. Raises ``ClosedError`` where that is refused."""
        await self.stream.send_all(self._connection.send_header())
        await self._expect(amqp.ConnectionStart)
        capabilities = {
            "publisher_confirms": True,
            "consumer_cancel_notify": True,
            "authentication_failure_close": True,
        }
        await self._send(
            0,
            amqp.ConnectionStartOk(
                client_properties=Table.of(
                    {"product": "amqpgate demo", "connection_name": self.name, "capabilities": capabilities}
                ),
                mechanism="PLAIN",
                response=plain_response(login.user, login.password),
                locale="en_US",
            ),
        )
        tune = await self._expect(amqp.ConnectionTune)
        await self._send(
            0,
            amqp.ConnectionTuneOk(
                channel_max=tune.channel_max, frame_max=tune.frame_max, heartbeat=tune.heartbeat
            ),
        )
        await self._ask(0, amqp.ConnectionOpen(virtual_host=login.vhost), amqp.ConnectionOpenOk)
        await self._open_tries()
        await self._prepare()

    async def _open_tries(self) -> None:
        await self._ask(TRIES, amqp.ChannelOpen(), amqp.ChannelOpenOk)
        await self._ask(TRIES, amqp.ConfirmSelect(), amqp.ConfirmSelectOk)

    async def _prepare(self) -> None:
        """A queue that gets all orders. Both it and the exchange vanish with this connection."""
        queue = f"{QUEUE}.{self.name}"
        await self._ask(CONSUMES, amqp.ChannelOpen(), amqp.ChannelOpenOk)
        await self._ask(
            CONSUMES,
            amqp.ExchangeDeclare(exchange=EXCHANGE, type="topic", auto_delete=True),
            amqp.ExchangeDeclareOk,
        )
        await self._ask(CONSUMES, amqp.QueueDeclare(queue=queue, exclusive=True), amqp.QueueDeclareOk)
        await self._ask(
            CONSUMES,
            amqp.QueueBind(queue=queue, exchange=EXCHANGE, routing_key="order.#"),
            amqp.QueueBindOk,
        )
        await self._ask(CONSUMES, amqp.BasicConsume(queue=queue, no_ack=True), amqp.BasicConsumeOk)

    async def attempt(self, step: tuple[str, str] | str, number: int) -> None:
        """Publish or get, and tell what came of it."""
        if isinstance(step, str):
            await self._send(TRIES, amqp.BasicGet(queue=step, no_ack=True))
            await self._conclude("basic.get", "", step)
            return
        exchange, routing_key = step
        await self.stream.send_all(
            self._connection.send_content(
                TRIES,
                amqp.BasicPublish(exchange=exchange, routing_key=routing_key),
                amqp.BasicProperties(content_type="text/plain"),
                f"message {number}".encode(),
            )
        )
        await self._conclude("basic.publish", exchange, routing_key)

    async def _conclude(self, operation: str, exchange: str, routing_key: str) -> None:
        while True:
            event = await self._next()
            if isinstance(event, ContentReceived) and event.channel == TRIES:
                answer, allowed = event.method.NAME, True
                break
            if not isinstance(event, MethodReceived) or event.channel != TRIES:
                continue
            method = event.method
            if isinstance(method, amqp.ChannelClose):
                answer, allowed = f"{method.reply_code} {method.reply_text}", False
                await self._send(TRIES, amqp.ChannelCloseOk())
                break
            answer, allowed = method.NAME, not isinstance(method, amqp.BasicNack)
            break
        self.tell(Sight(operation, exchange, routing_key, allowed, answer))
        self._release()
        if TRIES not in self._connection.open_channels:
            await self._open_tries()

    async def listen(self, seconds: float) -> None:
        """Tell what comes within that time."""
        with trio.move_on_after(seconds):
            while True:
                await self._next()
                self._release()

    async def close(self) -> None:
        """Agree with the other side on the end."""
        await self._ask(0, amqp.ConnectionClose(reply_code=200, reply_text="bye"), amqp.ConnectionCloseOk)

    # -- one method, one event ---------------------------------------------------------------

    async def _send(self, channel: int, method: Method) -> None:
        await self.stream.send_all(self._connection.send(channel, method))

    async def _ask(self, channel: int, question: Method, answer: type[M]) -> M:
        await self._send(channel, question)
        return await self._expect(answer)

    async def _expect(self, answer: type[M]) -> M:
        while True:
            event = await self._next()
            if isinstance(event, MethodReceived):
                if isinstance(event.method, answer):
                    return event.method
                if isinstance(event.method, amqp.ChannelClose):
                    raise ClosedError(f"{event.method.reply_code} {event.method.reply_text}")

    async def _next(self) -> Event:
        while (event := self._connection.next_event()) is None:
            data = await self.stream.receive_some(_READ)
            if not data:
                raise ClosedError("the connection was closed without a word")
            self._connection.receive(data)
        if isinstance(event, HeaderRefused):
            raise ClosedError("what answers there does not speak AMQP 0-9-1")
        if isinstance(event, MethodReceived) and isinstance(event.method, amqp.ConnectionClose):
            # Whoever waits for a while only must hear of this: it is said once.
            with trio.move_on_after(_PATIENCE, shield=True):
                await self._send(0, amqp.ConnectionCloseOk())
            raise ClosedError(f"{event.method.reply_code} {event.method.reply_text}")
        if isinstance(event, ContentReceived) and isinstance(event.method, amqp.BasicDeliver):
            deliver = event.method
            body = event.body.decode("utf-8", "replace")
            self._deliveries.append(Sight("basic.deliver", deliver.exchange, deliver.routing_key, None, body))
        return event

    def _release(self) -> None:
        """Tell what was consumed meanwhile. A broker may deliver a message before it confirms it."""
        for sight in self._deliveries:
            self.tell(sight)
        self._deliveries.clear()


async def demonstrate(
    host: str,
    port: int,
    login: DemoLogin,
    steps: Iterator[tuple[int, tuple[str, str] | str]],
    *,
    name: str,
    interval: float,
    tell: Callable[[Sight], None],
    opened: Callable[[], None],
) -> None:
    """One connection, on which as many of ``steps`` are tried as there are, one every ``interval`` seconds.

    ``opened`` is called when the login has succeeded. Raises ``ClosedError`` when the other side ends it,
    and ``OSError`` or ``trio.BrokenResourceError`` when the connection breaks.
    """
    stream = await trio.open_tcp_stream(host, port)
    async with stream:
        client = DemoClient(stream, tell, name)
        await client.open(login)
        opened()
        for number, step in steps:
            await client.attempt(step, number)
            await client.listen(interval)
        await client.close()
