"""txAMQP with the XML of one version: AMQP 0-8, 0-9 or 0-9-1, the last two with the header `AMQP 1 1 0 9`.

The XML's path is in the environment. See `../steps.py` for the steps.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Awaitable, Callable

from conversation import (
    ADDRESS,
    BIG_BODY,
    ENV,
    HEADERS,
    PASSWORD,
    PROPERTIES,
    ROUND_TRIPS,
    USER,
    VHOST,
    ask,
    digest,
    say_failed,
    say_saw,
)
from twisted.internet import defer, endpoints, protocol, reactor, task
from twisted.python.failure import Failure
from txamqp.client import Closed, TwistedDelegate
from txamqp.content import Content
from txamqp.message import Message
from txamqp.protocol import AMQChannel, AMQClient
from txamqp.spec import load, pythonize

SPEC = load(ENV["AMQP_XML"])
#: Basic's properties, by the names that the rest of the world uses.
NAMES = {
    {"reserved": "cluster_id"}.get(name, name): field.name
    for field in SPEC.classes.byname["basic"].fields
    for name in [pythonize(field.name)]
}
ANSWERS_RECOVER = "recover-ok" in SPEC.classes.byname["basic"].methods.byname


class Delegate(TwistedDelegate):
    """Keeps connection.start, and takes basic.recover-ok: the XML of 0-9-1 does not call it an answer."""

    def connection_start(self, ch: AMQChannel, msg: Message) -> None:
        self.start = msg
        super().connection_start(ch, msg)

    def basic_recover_ok(self, ch: AMQChannel, msg: Message) -> None:
        self.recovered.callback(None)


class Connected:
    """A connection for the time of a `with`, closed in good order if the step did not fail."""

    def __init__(self, vhost: str = VHOST, password: str = PASSWORD) -> None:
        self.delegate = Delegate()
        self.vhost, self.password = vhost, password
        self.numbers = itertools.count(1)

    async def __aenter__(self) -> Connected:
        factory = protocol.Factory()
        factory.protocol = lambda: AMQClient(self.delegate, self.vhost, SPEC)
        host, _, port = ADDRESS.partition(":")
        self.client = await endpoints.TCP4ClientEndpoint(reactor, host, int(port)).connect(factory)
        self.open_ok = await self.client.start({"LOGIN": USER, "PASSWORD": self.password}, "AMQPLAIN")
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.client.transport.abortConnection()
        else:
            # A close that came first may not yet have been taken in by the whole library.
            with contextlib.suppress(Closed):
                await self.client.close(within=20)

    async def channel(self) -> AMQChannel:
        ch = await self.client.channel(next(self.numbers))
        await ch.channel_open()
        return ch


async def own_queue(ch: AMQChannel, **arguments: object) -> str:
    return (await ch.queue_declare(exclusive=True, arguments=arguments)).queue


def send(ch: AMQChannel, key: str, body: str | bytes = b"", exchange: str = "", **properties: object) -> None:
    content = Content(body, properties={NAMES[name]: value for name, value in properties.items()})
    ch.basic_publish(routing_key=key, exchange=exchange, content=content)


def told(error: Closed) -> list[object]:
    reason = error.args[0]
    if not isinstance(reason, Message):
        raise error
    return [reason.reply_code, reason.reply_text, [reason.class_id, reason.method_id]]


async def server() -> object:
    async with Connected() as it:
        start = it.delegate.start
        return {
            "version": [start.version_major, start.version_minor],
            "product": start.server_properties["product"],
            "mechanisms": sorted(start.mechanisms.split()),
            "known_hosts": it.open_ok[0],
        }


async def declare() -> object:
    async with Connected() as it:
        ch = await it.channel()
        named = await ch.queue_declare(queue="declare", durable=True, arguments={"x-max-length": 10})
        passive = await ch.queue_declare(queue="declare", passive=True)
        own = await own_queue(ch)
        send(ch, "declare", "x")
        return {
            "named": list(named.fields),
            "passive": list(passive.fields),
            "server_named": own.startswith("amq.gen-"),
            "purged": (await ch.queue_purge(queue="declare")).message_count,
            "deleted": (await ch.queue_delete(queue="declare")).message_count,
        }


async def bindings() -> object:
    seen: dict[str, object] = {}
    async with Connected() as it:
        ch = await it.channel()
        for queue in ("red", "blue"):
            await ch.queue_declare(queue=queue, exclusive=True)

        async def count(name: str) -> None:
            seen[name] = [(await ch.queue_purge(queue=queue)).message_count for queue in ("red", "blue")]

        for kind in ("direct", "fanout", "topic", "headers"):
            await ch.exchange_declare(exchange=f"x.{kind}", type=kind)
        for queue in ("red", "blue"):
            await ch.queue_bind(queue=queue, exchange="x.direct", routing_key=queue)
            await ch.queue_bind(queue=queue, exchange="x.fanout")
        await ch.queue_bind(queue="red", exchange="x.topic", routing_key="*.fast.#")
        await ch.queue_bind(queue="blue", exchange="x.topic", routing_key="slow.*")
        both, either = {"x-match": "all", "a": 1, "b": "x"}, {"x-match": "any", "a": 1, "c": "y"}
        await ch.queue_bind(queue="red", exchange="x.headers", arguments=both)
        await ch.queue_bind(queue="blue", exchange="x.headers", arguments=either)

        send(ch, "red", exchange="x.direct")
        await count("direct")
        send(ch, "anything", exchange="x.fanout")
        await count("fanout")
        for key in ("car.fast.now", "slow.car", "car.fast"):
            send(ch, key, exchange="x.topic")
        await count("topic")
        for headers in ({"a": 1, "b": "x"}, {"a": 1}):
            send(ch, "", exchange="x.headers", headers=headers)
        await count("headers")
        # The XML of 0-8 has no queue.unbind.
        if hasattr(ch, "queue_unbind"):
            await ch.queue_unbind(queue="red", exchange="x.fanout")
            send(ch, "", exchange="x.fanout")
            await count("unbind")
        for kind in ("direct", "fanout", "topic", "headers"):
            await ch.exchange_delete(exchange=f"x.{kind}")
        try:
            await ch.exchange_declare(exchange="x.topic", type="topic", passive=True)
        except Closed as error:
            seen["deleted"] = told(error)[0]
    return seen


async def properties() -> object:
    async with Connected() as it:
        ch = await it.channel()
        queue = await own_queue(ch)
        send(ch, queue, headers=dict(HEADERS), **PROPERTIES)
        got = (await ch.basic_get(queue=queue, no_ack=True)).content.properties
    shown = {name: got[field] for name, field in NAMES.items() if field in got}
    return {"headers": shown.pop("headers"), "properties": shown}


async def bodies() -> object:
    seen = []
    async with Connected() as it:
        ch = await it.channel()
        queue = await own_queue(ch)
        for body in (BIG_BODY, b""):
            send(ch, queue, body)
            got = (await ch.basic_get(queue=queue, no_ack=True)).content.body
            seen.append(digest(got or b""))
    return seen


async def returns() -> object:
    async with Connected() as it:
        ch = await it.channel()
        ch.basic_publish(routing_key="nowhere", mandatory=True, content=Content("lost"))
        got = await it.client.basic_return_queue.get(20)
        return [got.reply_code, got.reply_text, got.exchange, got.routing_key, got.content.body]


async def acks() -> object:
    seen: list[list[object]] = []
    async with Connected() as it:
        ch = await it.channel()
        dead = await own_queue(ch)
        queue = await own_queue(ch, **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
        for body in ("one", "two", "three"):
            send(ch, queue, body)
        await ch.basic_qos(prefetch_count=1)
        tag = (await ch.basic_consume(queue=queue)).consumer_tag
        deliveries = await it.client.queue(tag)
        for _ in range(4):
            message = await deliveries.get(20)
            seen.append([message.content.body, message.redelivered])
            if len(seen) == 1:
                ch.basic_reject(delivery_tag=message.delivery_tag, requeue=True)
            elif seen[-1][0] == "two":
                ch.basic_reject(delivery_tag=message.delivery_tag, requeue=False)
            else:
                ch.basic_ack(delivery_tag=message.delivery_tag)
        await ch.basic_cancel(consumer_tag=tag)
        left = [(await ch.queue_purge(queue=name)).message_count for name in (dead, queue)]
    return {"deliveries": seen, "dead": left[0], "left": left[1]}


async def recover() -> object:
    async with Connected() as it:
        ch = await it.channel()
        queue = await own_queue(ch)
        send(ch, queue, "x")
        first = (await ch.basic_get(queue=queue)).redelivered
        it.delegate.recovered = defer.Deferred()
        ch.basic_recover(requeue=True)
        if ANSWERS_RECOVER:
            await it.delegate.recovered
        return [first, (await ch.basic_get(queue=queue)).redelivered]


async def get() -> object:
    async with Connected() as it:
        ch = await it.channel()
        queue = await own_queue(ch)
        empty = await ch.basic_get(queue=queue)
        for body in ("one", "two"):
            send(ch, queue, body)
        full = await ch.basic_get(queue=queue, no_ack=True)
        return {
            "empty": None if empty.method.name == "get-empty" else str(empty),
            "full": [full.content.body, full.redelivered, full.message_count],
        }


async def consume() -> object:
    seen: list[str] = []
    async with Connected() as it:
        ch = await it.channel()
        queue = await own_queue(ch)
        for number in range(10):
            send(ch, queue, f"m{number}")
        tag = (await ch.basic_consume(queue=queue, consumer_tag="reader")).consumer_tag
        deliveries = await it.client.queue(tag)
        for _ in range(10):
            message = await deliveries.get(20)
            seen.append(message.content.body)
            ch.basic_ack(delivery_tag=message.delivery_tag)
        await ch.basic_cancel(consumer_tag=tag)
        left = await ch.queue_declare(queue=queue, passive=True)
        return {"tag": tag, "bodies": seen, "left": left.message_count + left.consumer_count}


async def qos() -> object:
    async with Connected() as it:
        ch = await it.channel()
        queue = await own_queue(ch)
        for number in range(5):
            send(ch, queue, f"m{number}")
        await ch.basic_qos(prefetch_count=2)
        deliveries = await it.client.queue((await ch.basic_consume(queue=queue)).consumer_tag)
        seen = [await deliveries.get(20) for _ in range(2)]
        ready = (await ch.queue_declare(queue=queue, passive=True)).message_count
        ch.basic_ack(delivery_tag=seen[-1].delivery_tag, multiple=True)
        seen += [await deliveries.get(20) for _ in range(2)]
        return {"ready": ready, "then": [message.content.body for message in seen]}


async def tx() -> object:
    async with Connected() as it:
        ch = await it.channel()
        queue = await own_queue(ch)
        await ch.tx_select()
        send(ch, queue, "x")
        await ch.tx_rollback()
        rolled_back = (await ch.queue_purge(queue=queue)).message_count
        for body in ("y", "z"):
            send(ch, queue, body)
        await ch.tx_commit()
        return {"rolled_back": rolled_back, "committed": (await ch.queue_purge(queue=queue)).message_count}


async def access() -> object:
    async with Connected() as it:
        ch = await it.channel()
        rights = {"active": True, "write": True, "read": True}
        ticket = (await ch.access_request(realm="/data", **rights)).ticket
        queue = (await ch.queue_declare(ticket=ticket, exclusive=True)).queue
        ch.basic_publish(ticket=ticket, routing_key=queue, content=Content("ticket"))
        got = await ch.basic_get(ticket=ticket, queue=queue, no_ack=True)
        return [ticket, got.content.body]


async def errors() -> object:
    seen: dict[str, object] = {}
    async with Connected() as it:
        await (await it.channel()).queue_declare(queue="errors", durable=True)
        acts: list[Callable[[AMQChannel], Awaitable[object]]] = [
            lambda ch: ch.queue_declare(queue="nothing", passive=True),
            lambda ch: ch.queue_declare(queue="errors", durable=False),
            lambda ch: ch.exchange_declare(exchange="amq.mine", type="direct"),
        ]
        for act in acts:
            try:
                await act(await it.channel())
            except Closed as error:
                code, *rest = told(error)
                seen[str(code)] = rest
        deleted = await (await it.channel()).queue_delete(queue="errors")
        seen["usable"] = deleted.message_count == 0
    return seen


async def connection_error() -> object:
    async with Connected() as it:
        ch = await it.channel()
        queue = await own_queue(ch)
        await ch.basic_consume(queue=queue, consumer_tag="reader")
        try:
            await ch.basic_consume(queue=queue, consumer_tag="reader")
        except Closed as error:
            return told(error)
    return None


async def unknown_vhost() -> object:
    try:
        async with Connected(vhost="nowhere"):
            return None
    except Closed as error:
        return told(error)


async def wrong_password() -> object:
    try:
        async with Connected(password="wrong"):
            return None
    except Closed as error:
        return told(error) if isinstance(error.args[0], Message) else "no word"


async def operator_close() -> object:
    async with Connected() as it:
        ch = await it.channel()
        ask("close")
        await it.client.disconnected.wait()
        try:
            await ch.queue_declare(exclusive=True)
        except Closed as error:
            return told(error)
    return None


async def close() -> object:
    async with Connected() as it:
        await (await it.channel()).channel_close()
        channel0 = await it.client.channel(0)
        answer = await channel0.connection_close()
        return answer.method.name == "close-ok"


async def flow() -> object:
    seen: list[str] = []
    async with Connected() as it:
        ch = await it.channel()
        queue = await own_queue(ch)
        deliveries = await it.client.queue((await ch.basic_consume(queue=queue)).consumer_tag)
        off = (await ch.channel_flow(active=False)).active
        send(ch, queue, "later")
        for _ in range(ROUND_TRIPS):
            await ch.basic_qos(prefetch_count=10)
        meanwhile = len(deliveries.pending)
        on = (await ch.channel_flow(active=True)).active
        seen.append((await deliveries.get(20)).content.body)
    return {"off": off, "meanwhile": ["?"] * meanwhile, "on": on, "then": seen}


async def prefetch_size() -> object:
    async with Connected() as it:
        ch = await it.channel()
        queue = await own_queue(ch)
        await ch.basic_qos(prefetch_size=1_000_000)
        send(ch, queue, "x")
        return (await ch.basic_get(queue=queue, no_ack=True)).content.body


async def foreign() -> object:
    async with Connected() as it:
        ch = await it.channel()
        await ch.queue_declare(queue="foreign")
        ask("foreign")
        # A frame that the library cannot read ends its connection: any answer tells that.
        message = await ch.basic_get(queue="foreign", no_ack=True)
        return [message.content.body, sorted(message.content.properties["headers"])]


STEPS = (
    *(server, declare, bindings, properties, bodies, returns, acks, recover, get, consume, qos, tx, access),
    *(errors, connection_error, unknown_vhost, wrong_password, operator_close, close),
    *(flow, prefetch_size, foreign),
)


async def main() -> None:
    steps = {step.__name__: step for step in STEPS}
    for name in sys.argv[1:]:
        print("step", name, flush=True)
        try:
            say_saw(await steps[name]())
        except Closed as error:
            (reason,) = error.args
            say_failed(reason.value if isinstance(reason, Failure) else error)
        except Exception as error:
            say_failed(error)


task.react(lambda _: defer.ensureDeferred(main()))
