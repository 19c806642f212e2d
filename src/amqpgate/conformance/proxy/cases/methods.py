"""Methods and their answers, byte for byte."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.peer import METHOD, frame
from amqpgate.conformance.proxy.between import ProxyConversation, ProxySection, ProxyTalk
from amqpgate.conformance.versions import ALL, OF_RABBITMQ, said_in
from amqpgate.wire.generated import v0_9_1
from amqpgate.wire.method import Method

METHODS: Final = ProxySection("proxy.methods", "Methods")

#: A name as long as one may be, of letters of two bytes.
_LONG: Final = "é" * 100


def _pair(said: Method, answer: Method, *by: str) -> ProxyConversation:
    """A method and its answer; ``by`` are the fields that tell it from others."""

    async def conversation(at: ProxyTalk) -> str:
        channel = await at.channel()
        made, back = said_in(at.talk.version, said), said_in(at.talk.version, answer)
        if hasattr(made, "arguments"):
            made = type(made)(
                **{name: getattr(made, name) for name in made.__match_args__} | {"arguments": at.types}
            )
        return await at.passes(channel, made, back, **{name: getattr(said, name) for name in by})

    return conversation


for _path, _title, _section, _said, _answer, _by in (
    (
        "queue.declare",
        "queue.declare with arguments of all types, and its counts",
        "1.7.2.1",
        v0_9_1.QueueDeclare(queue=f"q{_LONG}", durable=True, auto_delete=True),
        v0_9_1.QueueDeclareOk(queue=f"q{_LONG}", message_count=2**32 - 1, consumer_count=2**31),
        "queue",
    ),
    (
        "exchange.declare",
        "exchange.declare of an unknown type with arguments of all types",
        "1.6.2.1",
        v0_9_1.ExchangeDeclare(exchange=f"e{_LONG}", type="x-probe", internal=True),
        v0_9_1.ExchangeDeclareOk(),
        "exchange",
    ),
    (
        "queue.bind",
        "queue.bind with arguments of all types",
        "1.7.2.3",
        v0_9_1.QueueBind(queue="b", exchange="amq.topic", routing_key=f"k{_LONG}"),
        v0_9_1.QueueBindOk(),
        "routing_key",
    ),
    (
        "queue.unbind",
        "queue.unbind with arguments",
        "1.7.2.5",
        v0_9_1.QueueUnbind(queue="b", exchange="amq.topic", routing_key=f"u{_LONG}"),
        v0_9_1.QueueUnbindOk(),
        "routing_key",
    ),
    (
        "exchange.bind",
        "exchange.bind with arguments",
        "exchange.bind",
        v0_9_1.ExchangeBind(destination="d", source="s", routing_key=f"x{_LONG}"),
        v0_9_1.ExchangeBindOk(),
        "routing_key",
    ),
    (
        "queue.purge",
        "queue.purge, and its count",
        "1.7.2.7",
        v0_9_1.QueuePurge(queue=f"p{_LONG}"),
        v0_9_1.QueuePurgeOk(message_count=4_000_000_000),
        "queue",
    ),
    (
        "queue.delete",
        "queue.delete with its flags, and its count",
        "1.7.2.9",
        v0_9_1.QueueDelete(queue=f"d{_LONG}", if_unused=True, if_empty=True),
        v0_9_1.QueueDeleteOk(message_count=3),
        "queue",
    ),
    (
        "exchange.delete",
        "exchange.delete",
        "1.6.2.3",
        v0_9_1.ExchangeDelete(exchange=f"x{_LONG}", if_unused=True),
        v0_9_1.ExchangeDeleteOk(),
        "exchange",
    ),
    ("tx.select", "tx.select", "1.9.2.1", v0_9_1.TxSelect(), v0_9_1.TxSelectOk(), ""),
):
    METHODS.rule(
        _path,
        f"{_title}, pass in both directions byte for byte",
        section=_section,
        versions=OF_RABBITMQ if _path == "exchange.bind" else ALL,
    )(_pair(_said, _answer, *filter(None, (_by,))))


@METHODS.rule(
    "method.order",
    "what a client says in one piece on a channel comes in its order",
    section="2.2.4",
    obeys="in order",
)
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    name = at.name()
    said = [
        at.amqp.QueueBind(queue=name, exchange="e", routing_key=str(number), no_wait=True)
        for number in range(300)
    ]
    await channel.say(*said)
    keys = [await at.hears("queue.bind", queue=name) for _ in said]
    found = [getattr(one.method, "routing_key", "") for one in keys]
    return "in order" if found == [one.routing_key for one in said] else "in another order"


@METHODS.rule(
    "method.unknown.client",
    "a method of the client's that nobody knows passes, or the client is told",
    section="4.2.4",
    obeys=("it passes", "connection.close 5??", "channel.close *"),
)
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    payload = b"\x01\x02\x03\x04" + at.name().encode()
    await channel.peer.send(frame(METHOD, channel.number, payload))

    def found() -> bool | None:
        return any(one.payload == payload for one in at.inner.noted) or None

    return await at.either(channel, found, "it passes")


@METHODS.rule(
    "method.unknown.broker",
    "a method of the broker's that nobody knows passes, or the client is told",
    section="4.2.4",
    obeys=("it passes", "connection.close *", "channel.close *"),
)
async def _(at: ProxyTalk) -> str:
    channel = await at.channel()
    payload = b"\x01\x02\x03\x04" + at.name().encode()
    await channel.end.send(frame(METHOD, channel.inner_number, payload))
    found = await channel.peer.frame()
    if found is None:
        return "hangs up"
    if found.payload == payload:
        return "it passes"
    return await channel.peer.told(found.channel, channel.peer.decoded(found))
