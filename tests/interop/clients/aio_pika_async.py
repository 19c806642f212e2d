"""aio-pika, on asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from decimal import Decimal

import aio_pika
import aiormq
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage, AbstractQueue
from yarl import URL

from tests.interop.steps import BIG_BODY, HEADERS, PROPERTIES, Setting

#: aiormq does not look into a connection.close that comes instead of open-ok.
OWN = {"unknown_vhost": "Expected one of ['Connection.OpenOk'], got <Connection.Close object>"}


def step(play: Callable[[Setting], Awaitable[object]]) -> Callable[[Setting], object]:
    """Run the step in an event loop of its own, for at most 30 s."""

    @functools.wraps(play)
    def run(at: Setting) -> object:
        async def limited() -> object:
            async with asyncio.timeout(30):
                return await play(at)

        return asyncio.run(limited())

    return run


async def open_connection(at: Setting, **changes: str) -> AbstractConnection:
    where = {"user": at.user, "password": at.password, "vhost": at.vhost} | changes
    url = URL.build(
        scheme="amqp",
        user=where["user"],
        password=where["password"],
        host=at.host,
        port=at.port,
        path=f"/{where['vhost']}",
        query={"name": "interop"},
    )
    return await aio_pika.connect(url)


@contextlib.asynccontextmanager
async def connected(at: Setting) -> AsyncIterator[AbstractConnection]:
    connection = await open_connection(at)
    async with connection:
        yield connection


@contextlib.asynccontextmanager
async def channel(at: Setting, **options: bool) -> AsyncIterator[AbstractChannel]:
    async with connected(at) as connection, connection.channel(**options) as ch:
        yield ch


async def publish(
    ch: AbstractChannel, key: str, body: bytes, exchange: str = "", **options: object
) -> object:
    target = ch.default_exchange if not exchange else await ch.get_exchange(exchange, ensure=False)
    return await target.publish(aio_pika.Message(body, **options), key)


def counts(queue: AbstractQueue) -> list[object]:
    result = queue.declaration_result
    return [result.queue, result.message_count, result.consumer_count]


@step
async def declare(at: Setting) -> object:
    async with channel(at) as ch:
        named = await ch.declare_queue("declare", durable=True, arguments={"x-max-length": 10})
        passive = await ch.declare_queue("declare", passive=True)
        own = await ch.declare_queue(exclusive=True)
        await publish(ch, "declare", b"x")
        purged = await named.purge()
        deleted = await named.delete()
        return {
            "named": counts(named),
            "passive": counts(passive),
            "server_named": own.name.startswith("amq.gen-"),
            "purged": purged.message_count,
            "deleted": deleted.message_count,
        }


@step
async def exchanges(at: Setting) -> object:
    seen: dict[str, list[int]] = {}
    async with channel(at) as ch:
        red = await ch.declare_queue("red", exclusive=True)
        blue = await ch.declare_queue("blue", exclusive=True)

        async def count(name: str) -> None:
            seen[name] = [(await queue.purge()).message_count for queue in (red, blue)]

        async def send(exchange: aio_pika.abc.AbstractExchange, key: str, **headers: object) -> None:
            await exchange.publish(aio_pika.Message(b"", headers=headers), key, mandatory=False)

        x = {
            kind: await ch.declare_exchange(f"x.{kind}", kind, auto_delete=True)
            for kind in ("direct", "fanout", "topic", "headers")
        }
        for queue in (red, blue):
            await queue.bind(x["direct"], queue.name)
            await queue.bind(x["fanout"])
        await red.bind(x["topic"], "*.fast.#")
        await blue.bind(x["topic"], "slow.*")
        await red.bind(x["headers"], "", arguments={"x-match": "all", "a": 1, "b": "x"})
        await blue.bind(x["headers"], "", arguments={"x-match": "any", "a": 1, "c": True})

        await send(x["direct"], "red")
        await count("direct")
        await send(x["fanout"], "anything")
        await count("fanout")
        for key in ("car.fast.now", "slow.car", "car.fast"):
            await send(x["topic"], key)
        await count("topic")
        await send(x["headers"], "", a=1, b="x")
        await send(x["headers"], "", a=1)
        await count("headers")
        source = await ch.declare_exchange("x.source", "fanout")
        await x["direct"].bind(source, "red")
        await send(source, "red")
        await count("exchange_bind")
        await x["direct"].unbind(source, "red")
        await send(source, "red")
        await count("exchange_unbind")
        await source.delete()
        await red.unbind(x["fanout"])
        await send(x["fanout"], "")
        await count("queue_unbind")
    return seen


@step
async def properties(at: Setting) -> object:
    options = dict(PROPERTIES) | {"expiration": 60}
    async with channel(at) as ch:
        queue = await ch.declare_queue(exclusive=True)
        await publish(ch, queue.name, b"", headers=dict(HEADERS), **options)
        got = await queue.get(no_ack=True)
    told = {name: getattr(got, name) for name in PROPERTIES}
    told["expiration"] = str(int(told["expiration"] * 1000))
    told["timestamp"] = int(told["timestamp"].timestamp())
    return {"properties": told, "headers": got.headers}


@step
async def header_types(at: Setting) -> object:
    sent = {
        "float": 0.125,
        "bytes": bytearray(b"\x00\xff"),
        "decimal": Decimal("3.14"),
        "timestamp": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "int8": 5,
        "int16": -300,
        "int32": 70_000,
        "int64": 2**63 - 1,
        "false": False,
        "empty": {},
        "nothing": [],
        "mixed": [1, "x", None, True, {"a": 2}],
        "long": "y" * 70_000,
    }
    async with channel(at) as ch:
        queue = await ch.declare_queue(exclusive=True)
        await publish(ch, queue.name, b"", headers=sent)
        got = await queue.get(no_ack=True)
    return [sent, got.headers]


@step
async def confirms(at: Setting) -> object:
    async with channel(at) as ch:
        queue = await ch.declare_queue(exclusive=True)
        answers = await asyncio.gather(*(publish(ch, queue.name, b"x") for _ in range(100)))
        in_queue = (await ch.declare_queue(queue.name, passive=True)).declaration_result.message_count
    kinds = [type(answer).__name__ for answer in answers]
    return {"acked": kinds.count("Ack"), "nacked": kinds.count("Nack"), "in_queue": in_queue}


@step
async def confirm_nack(at: Setting) -> object:
    seen = []
    async with channel(at) as ch:
        full = {"x-max-length": 1, "x-overflow": "reject-publish"}
        queue = await ch.declare_queue(exclusive=True, arguments=full)
        for _ in range(2):
            try:
                await publish(ch, queue.name, b"x")
                seen.append("ack")
            except aiormq.exceptions.DeliveryError as error:
                seen.append(type(error.frame).__name__.lower())
    return seen


@step
async def returns(at: Setting) -> object:
    async with channel(at, on_return_raises=True) as ch:
        try:
            await publish(ch, "nowhere", b"lost")
        except aiormq.exceptions.PublishError as error:
            method = error.message.delivery
            return [
                method.reply_code,
                method.reply_text,
                method.exchange,
                method.routing_key,
                error.message.body.decode(),
            ]
    return None


@step
async def acks(at: Setting) -> object:
    seen: list[list[object]] = []
    async with channel(at) as ch:
        dead = await ch.declare_queue(exclusive=True)
        letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.name}
        queue = await ch.declare_queue(exclusive=True, arguments=letters)
        for body in (b"one", b"two", b"three"):
            await publish(ch, queue.name, body)
        await ch.set_qos(prefetch_count=1)
        async with queue.iterator() as messages:
            async for message in messages:
                seen.append([message.body.decode(), message.redelivered])
                if len(seen) == 1:
                    await message.nack(requeue=True)
                elif message.body == b"two":
                    await message.reject(requeue=False)
                else:
                    await message.ack()
                if message.body == b"three":
                    break
        letter = await dead.get(no_ack=True)
    return {"deliveries": seen, "dead": [letter.body.decode(), letter.headers["x-death"][0]["reason"]]}


@step
async def recover(at: Setting) -> object:
    async with channel(at) as ch:
        queue = await ch.declare_queue(exclusive=True)
        await publish(ch, queue.name, b"x")
        first = await queue.get()
        await (await ch.get_underlay_channel()).basic_recover(requeue=True)
        second = await queue.get()
        await second.ack()
    return [first.redelivered, second.redelivered]


@step
async def get(at: Setting) -> object:
    async with channel(at) as ch:
        queue = await ch.declare_queue(exclusive=True)
        empty = await queue.get(fail=False)
        for body in (b"one", b"two"):
            await publish(ch, queue.name, body)
        full = await queue.get(no_ack=True)
    return {"empty": empty, "full": [full.body.decode(), full.redelivered, full.message_count]}


@step
async def consume(at: Setting) -> object:
    bodies: list[str] = []
    done = asyncio.Event()
    async with channel(at) as ch:
        queue = await ch.declare_queue(exclusive=True)
        for number in range(10):
            await publish(ch, queue.name, f"m{number}".encode())

        async def on_message(message: AbstractIncomingMessage) -> None:
            async with message.process():
                bodies.append(message.body.decode())
            if len(bodies) == 10:
                done.set()

        tag = await queue.consume(on_message, consumer_tag="reader")
        await done.wait()
        await queue.cancel(tag)
        left = (await ch.declare_queue(queue.name, passive=True)).declaration_result
    return {"tag": tag, "bodies": bodies, "left": left.message_count + left.consumer_count}


@step
async def tx(at: Setting) -> object:
    async with channel(at, publisher_confirms=False) as ch:
        queue = await ch.declare_queue(exclusive=True)
        transaction = ch.transaction()
        await transaction.select()
        await publish(ch, queue.name, b"x")
        await transaction.rollback()
        rolled_back = (await queue.purge()).message_count
        await publish(ch, queue.name, b"y")
        await publish(ch, queue.name, b"z")
        await transaction.commit()
        return {"rolled_back": rolled_back, "committed": (await queue.purge()).message_count}


@step
async def cancel_notify(at: Setting) -> object:
    async with connected(at) as connection, connection.channel() as ch, connection.channel() as other:
        queue = await ch.declare_queue("doomed")
        underlay = await ch.get_underlay_channel()

        async def on_message(_: AbstractIncomingMessage) -> None:
            raise AssertionError("nothing was published")

        tag = await queue.consume(on_message, consumer_tag="watcher")
        await other.queue_delete("doomed")
        while tag in underlay.consumers:  # noqa: ASYNC110 (the library has no event for it)
            await asyncio.sleep(0.01)
    return tag


@step
async def exclusive(at: Setting) -> object:
    async with channel(at) as owner, channel(at) as other:
        await owner.declare_queue("mine", exclusive=True)
        try:
            await other.declare_queue("mine", exclusive=True)
        except aiormq.exceptions.ChannelLockedResource as error:
            return [405, str(error)]
    return None


@step
async def reply_to(at: Setting) -> object:
    answers: asyncio.Queue[str] = asyncio.Queue()
    async with connected(at) as connection, connection.channel() as ch, connection.channel() as other:
        rpc = await ch.declare_queue("rpc", exclusive=True)
        pseudo = await ch.get_queue("amq.rabbitmq.reply-to", ensure=False)

        async def on_answer(answer: AbstractIncomingMessage) -> None:
            await answers.put(answer.body.decode())

        await pseudo.consume(on_answer, no_ack=True)
        await publish(ch, "rpc", b"ping", reply_to="amq.rabbitmq.reply-to")
        request = await rpc.get(no_ack=True)
        await publish(other, request.reply_to, b"pong")
        answer = await answers.get()
    return {"pseudo_queue": request.reply_to.startswith("amq.rabbitmq.reply-to."), "answer": answer}


@step
async def priorities(at: Setting) -> object:
    who: list[str] = []
    done = asyncio.Event()
    async with channel(at) as ch:
        queue = await ch.declare_queue(exclusive=True)
        for name, priority in (("low", 1), ("high", 10)):

            async def on_message(_: AbstractIncomingMessage, name: str = name) -> None:
                who.append(name)
                if len(who) == 5:
                    done.set()

            await queue.consume(on_message, no_ack=True, arguments={"x-priority": priority})
        for _ in range(5):
            await publish(ch, queue.name, b"")
        await done.wait()
    return who


@step
async def quorum(at: Setting) -> object:
    counts: list[object] = []
    async with channel(at) as ch:
        queue = await ch.declare_queue("quorum", durable=True, arguments={"x-queue-type": "quorum"})
        await publish(ch, "quorum", b"x")
        async with queue.iterator() as messages:
            async for message in messages:
                counts.append(message.headers.get("x-delivery-count"))
                await message.reject(requeue=len(counts) == 1)
                if len(counts) == 2:
                    break
        await ch.queue_delete("quorum")
    return counts


@step
async def stream(at: Setting) -> object:
    seen: list[list[object]] = []
    async with channel(at) as ch:
        queue = await ch.declare_queue("stream", durable=True, arguments={"x-queue-type": "stream"})
        for number in range(3):
            await publish(ch, "stream", f"s{number}".encode())
        await ch.set_qos(prefetch_count=10)
        async with queue.iterator(arguments={"x-stream-offset": "first"}) as messages:
            async for message in messages:
                seen.append([message.body.decode(), message.headers["x-stream-offset"]])
                await message.ack()
                if len(seen) == 3:
                    break
        await queue.delete()
    return seen


@step
async def bodies(at: Setting) -> object:
    seen = []
    async with channel(at) as ch:
        queue = await ch.declare_queue(exclusive=True)
        for body in (BIG_BODY, b""):
            await publish(ch, queue.name, body)
            got = (await queue.get(no_ack=True)).body
            seen.append([len(got), hashlib.sha256(got).hexdigest()])
    return seen


@step
async def channel_errors(at: Setting) -> object:
    seen: dict[str, object] = {}
    codes = {
        aiormq.exceptions.ChannelNotFoundEntity: "404",
        aiormq.exceptions.ChannelPreconditionFailed: "406",
        aiormq.exceptions.ChannelAccessRefused: "403",
    }
    acts: list[Callable[[AbstractChannel], Awaitable[object]]] = [
        lambda ch: ch.declare_queue("nothing", passive=True),
        lambda ch: ch.declare_queue("errors", durable=False),
        lambda ch: ch.declare_exchange("amq.mine"),
    ]
    async with connected(at) as connection, connection.channel() as first:
        await first.declare_queue("errors", durable=True)
        for act in acts:
            async with connection.channel() as ch:
                try:
                    await act(ch)
                except tuple(codes) as error:
                    seen[codes[type(error)]] = str(error)
        await first.queue_delete("errors")
        seen["usable"] = not connection.is_closed
    return seen


@step
async def wrong_password(at: Setting) -> object:
    try:
        await open_connection(at, password="wrong")
    except aiormq.exceptions.ProbableAuthenticationError as error:
        return [403, *error.args]
    return None


@step
async def unknown_vhost(at: Setting) -> object:
    try:
        await open_connection(at, vhost="nowhere")
    except aiormq.exceptions.InvalidFrameError as error:
        return re.sub(" at 0x[0-9a-f]+", "", error.args[0])
    return None


@step
async def update_secret(at: Setting) -> object:
    async with connected(at) as connection:
        await connection.update_secret(at.password, reason="interop")
        async with connection.channel() as ch:
            return counts(await ch.declare_queue("update_secret", exclusive=True))


class _Notices(logging.Handler):
    """aiormq tells of connection.blocked in its log only."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[object] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "was blocked by" in str(record.msg):
            self.seen.append(record.args[1])
        elif "was unblocked" in str(record.msg):
            self.seen.append("unblocked")

    async def wait(self, number: int) -> None:
        while len(self.seen) < number:  # noqa: ASYNC110 (the log handler is called from anywhere)
            await asyncio.sleep(0.02)


@step
async def blocked(at: Setting) -> object:
    notices = _Notices()
    log = logging.getLogger("aiormq.connection")
    log.addHandler(notices)
    try:
        async with channel(at, publisher_confirms=False) as ch:
            queue = await ch.declare_queue(exclusive=True)
            await publish(ch, queue.name, b"x")
            await asyncio.to_thread(at.ask, "alarm")
            try:
                await publish(ch, queue.name, b"y")
                await notices.wait(1)
            finally:
                await asyncio.to_thread(at.ask, "clear")
            await notices.wait(2)
    finally:
        log.removeHandler(notices)
    return notices.seen


@step
async def operator_close(at: Setting) -> object:
    closed: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    async with connected(at) as connection:
        connection.close_callbacks.add(lambda _, error: closed.done() or closed.set_result(error))
        await asyncio.to_thread(at.ask, "close")
        error = await closed
    return list(error.args)


@step
async def connection_list(at: Setting) -> object:
    async with connected(at):
        return await asyncio.to_thread(at.ask, "connections")
