"""aio-pika: publishes all at once with confirms, consumes on two channels at once, gets, and leaves."""

from __future__ import annotations

import asyncio
import os

import aio_pika

BODIES = [b"", b"small", b"x" * 300_000, b"four", b"five"]


async def main() -> None:
    connection = await aio_pika.connect(os.environ["AMQP_URL"])
    publisher, consumer, other = [await connection.channel() for _ in range(3)]
    queues = [await one.declare_queue("", exclusive=True) for one in (consumer, other)]
    exchange = publisher.default_exchange
    for queue in queues:
        messages = [aio_pika.Message(body, headers={"n": 1}, priority=3) for body in BODIES]
        await asyncio.gather(*(exchange.publish(message, queue.name) for message in messages))
    try:
        await exchange.publish(aio_pika.Message(b"lost"), "nowhere", mandatory=True)
    except aio_pika.exceptions.DeliveryError as error:
        if error.message.body != b"lost":
            raise
    got: list[list[bytes]] = [[], []]
    is_all = asyncio.Event()

    def taker(number: int):
        async def take(message: aio_pika.IncomingMessage) -> None:
            await message.ack()
            got[number].append(message.body)
            if sum(map(len, got)) == 2 * len(BODIES):
                is_all.set()

        return take

    tags = [await queue.consume(taker(number)) for number, queue in enumerate(queues)]
    await is_all.wait()
    assert [sorted(bodies) for bodies in got] == [sorted(BODIES)] * 2
    for queue, tag in zip(queues, tags, strict=True):
        await queue.cancel(tag)
    assert await queues[0].get(fail=False) is None
    await other.close()
    await connection.close()


asyncio.run(main())
