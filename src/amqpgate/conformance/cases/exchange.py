"""Exchanges (AMQP 0-9-1, sections 1.6 and 3.1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amqpgate.conformance.case import CaseSection, Conversation
from amqpgate.conformance.talk import Talk, method, saying
from amqpgate.wire.tables import Table

EXCHANGE: Final = CaseSection("exchange", "Exchanges", Talk)

_DECLARE: Final = "1.6.2.1"
_TYPES: Final = "3.1.3"


def _declared(**flags: object) -> Conversation[Talk]:
    return saying(lambda talk: talk.amqp.ExchangeDeclare(exchange=talk.exchange_name(), **flags))


for _type in ("direct", "fanout", "topic", "headers"):
    EXCHANGE.rule(
        f"exchange.declare.type.{_type}",
        f"an exchange of type {_type} can be declared",
        section=_TYPES,
        obeys="exchange.declare-ok",
        strength="must" if _type in ("direct", "fanout") else "should",
    )(_declared(type=_type))

for _name in ("direct", "fanout", "topic", "headers", "match"):
    EXCHANGE.rule(
        f"exchange.declare.pre-declared.amq.{_name}",
        f"amq.{_name} is there",
        section=_TYPES,
        obeys="exchange.declare-ok",
        strength="must" if _name in ("direct", "fanout") else "should",
    )(saying(method("ExchangeDeclare", exchange=f"amq.{_name}", passive=True)))

EXCHANGE.rule(
    "exchange.declare.type.support",
    "a type that the broker does not have ends the connection with 503",
    section=_DECLARE,
    obeys="connection.close 503",
    # 4.3 says 406 for the channel.
    rabbitmq=("connection.close 503", "channel.close 406"),
)(_declared(type="no-such-type"))

EXCHANGE.rule(
    "exchange.declare.exchange.reserved",
    "a name that begins with amq. is refused with 403",
    section=_DECLARE,
    obeys="channel.close 403",
)(saying(lambda talk: talk.amqp.ExchangeDeclare(exchange="amq.conformance", type="direct")))

EXCHANGE.rule(
    "exchange.declare.exchange.required",
    "the default exchange cannot be declared",
    section=_DECLARE,
    obeys=("channel.close 403", "channel.close 404", "channel.close 406", "connection.close 5??"),
)(saying(lambda talk: talk.amqp.ExchangeDeclare(exchange="", type="direct")))

EXCHANGE.rule(
    "exchange.declare.passive.not-found",
    "a passive declare of what is not there is refused with 404",
    section=_DECLARE,
    obeys="channel.close 404",
)(saying(lambda talk: talk.amqp.ExchangeDeclare(exchange=talk.name(), type="direct", passive=True)))


@EXCHANGE.rule(
    "exchange.declare.passive.found",
    "a passive declare of what is there passes, whatever else it says",
    section=_DECLARE,
    obeys="exchange.declare-ok",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.exchange(peer, "fanout")
    await peer.say(1, talk.amqp.ExchangeDeclare(exchange=name, type="fanout", durable=True, passive=True))
    return await peer.outcome()


@EXCHANGE.rule(
    "exchange.declare.type.equivalence",
    "an exchange cannot be declared again with another type: 530, or 406",
    section=_DECLARE,
    obeys=("connection.close 530", "channel.close 406"),
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.exchange(peer, "direct")
    await peer.say(1, talk.amqp.ExchangeDeclare(exchange=name, type="topic"))
    return await peer.outcome()


for _flag in ("durable", "auto_delete", "internal"):

    @EXCHANGE.rule(
        f"exchange.declare.{_flag.replace('_', '-')}.equivalence",
        f"an exchange cannot be declared again with another {_flag.replace('_', '-')}",
        section=_DECLARE,
        strength="should",
        obeys=("channel.close 406", "connection.close 530"),
        versions=("0-9-1",),
    )
    async def _(talk: Talk, flag: str = _flag) -> str:
        peer = await talk.channel()
        name = await talk.exchange(peer, "direct")
        await peer.say(1, talk.amqp.ExchangeDeclare(exchange=name, type="direct", **{flag: True}))
        return await peer.outcome()


@EXCHANGE.rule(
    "exchange.declare.again",
    "an exchange can be declared again with the same properties",
    section=_DECLARE,
    obeys="exchange.declare-ok",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.exchange(peer, "topic")
    await peer.say(1, talk.amqp.ExchangeDeclare(exchange=name, type="topic"))
    return await peer.outcome()


@EXCHANGE.rule(
    "exchange.declare.no-wait", "with no-wait there is no answer", section=_DECLARE, obeys="goes on"
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = talk.exchange_name()
    await peer.say(1, talk.amqp.ExchangeDeclare(exchange=name, type="direct", auto_delete=True, no_wait=True))
    return await peer.goes_on(1)


@EXCHANGE.rule(
    "exchange.declare.exchange.longest",
    "a name of 255 bytes is taken",
    section="4.2.5.3",
    obeys="exchange.declare-ok",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    await talk.exchange(peer, exchange=talk.name().ljust(255, "x"))
    return "exchange.declare-ok"


@EXCHANGE.rule(
    "exchange.delete.ok", "an exchange can be deleted", section="1.6.2.3", obeys="channel.close 404"
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.exchange(peer)
    await peer.say(1, talk.amqp.ExchangeDelete(exchange=name))
    await peer.expect(talk.amqp.ExchangeDeleteOk, 1)
    await peer.say(1, talk.amqp.ExchangeDeclare(exchange=name, type="direct", passive=True))
    return await peer.outcome()


EXCHANGE.rule(
    "exchange.delete.exchange.exists",
    "deleting what is not there is refused with 404",
    section="1.6.2.3",
    obeys="channel.close 404",
    rabbitmq="exchange.delete-ok",
)(saying(lambda talk: talk.amqp.ExchangeDelete(exchange=talk.name())))

for _name in ("", "amq.direct", "amq.topic"):
    EXCHANGE.rule(
        f"exchange.delete.reserved.{_name or 'default'}",
        f"{_name or 'the default exchange'} cannot be deleted",
        section="1.6.2.3",
        obeys=("channel.close 403", "channel.close 404", "connection.close 530"),
    )(saying(method("ExchangeDelete", exchange=_name)))


@EXCHANGE.rule(
    "exchange.delete.if-unused.bound",
    "if-unused leaves an exchange that has bindings: 406",
    section="1.6.2.3",
    obeys="channel.close 406",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.exchange(peer)
    await talk.bind(peer, await talk.queue(peer), name, "k")
    await peer.say(1, talk.amqp.ExchangeDelete(exchange=name, if_unused=True))
    return await peer.outcome()


@EXCHANGE.rule(
    "exchange.delete.if-unused.free",
    "if-unused deletes an exchange that has no bindings",
    section="1.6.2.3",
    obeys="exchange.delete-ok",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.exchange(peer)
    await peer.say(1, talk.amqp.ExchangeDelete(exchange=name, if_unused=True))
    return await peer.outcome()


@EXCHANGE.rule(
    "exchange.declare.auto-delete",
    "an auto-delete exchange goes with its last binding",
    section=_DECLARE,
    strength="should",
    obeys="channel.close 404",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.exchange(peer, auto_delete=True)
    queue = await talk.queue(peer)
    await talk.bind(peer, queue, name, "k")
    await peer.say(1, talk.amqp.QueueDelete(queue=queue))
    await peer.expect(talk.amqp.QueueDeleteOk, 1)
    await peer.say(1, talk.amqp.ExchangeDeclare(exchange=name, type="direct", passive=True))
    return await peer.outcome()


@EXCHANGE.rule(
    "exchange.declare.internal",
    "clients cannot publish to an internal exchange: 403",
    section=_DECLARE,
    versions=("0-9-1",),
    obeys="channel.close 403",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    name = await talk.exchange(peer, internal=True)
    await talk.publish(peer, "k", exchange=name)
    return await peer.goes_on(1)


async def _routed(talk: Talk, kind: str, bound: dict[str, str], keys: list[str]) -> str:
    """Queues by name that are bound with a key; which of them each published key comes to."""
    peer = await talk.channel()
    exchange = await talk.exchange(peer, kind)
    queues = {name: await talk.queue(peer) for name in bound}
    for name, key in bound.items():
        await talk.bind(peer, queues[name], exchange, key)
    for key in keys:
        await talk.publish(peer, key, key.encode(), exchange=exchange)
    await peer.goes_on(1)
    found = []
    for name, queue in queues.items():
        bodies = []
        while (message := await talk.get(peer, queue)) is not None:
            bodies.append(message.body.decode())
        found.append(f"{name}={','.join(bodies)}")
    return " ".join(found)


@EXCHANGE.rule(
    "exchange.direct.routing",
    "a direct exchange compares keys exactly",
    section="3.1.3.1",
    obeys="a=x b=x.y",
)
async def _(talk: Talk) -> str:
    return await _routed(talk, "direct", {"a": "x", "b": "x.y"}, ["x", "x.y", "X", "x.", "*"])


@EXCHANGE.rule(
    "exchange.fanout.routing",
    "a fanout exchange takes no notice of keys",
    section="3.1.3.2",
    obeys="a=x,y b=x,y",
)
async def _(talk: Talk) -> str:
    return await _routed(talk, "fanout", {"a": "k", "b": ""}, ["x", "y"])


@EXCHANGE.rule(
    "exchange.topic.star",
    "in a topic * is one word",
    section="3.1.3.3",
    obeys="a=x.y b=x.y,y.y c=x.y.z",
)
async def _(talk: Talk) -> str:
    bound = {"a": "x.*", "b": "*.y", "c": "x.*.z"}
    return await _routed(talk, "topic", bound, ["x.y", "x", "y.y", "x.y.z", "y"])


@EXCHANGE.rule(
    "exchange.topic.hash",
    "in a topic # is any number of words, none as well",
    section="3.1.3.3",
    obeys="a=x,x.y,x.y.z b=x,x.y,x.y.z,y c=x.y.z",
)
async def _(talk: Talk) -> str:
    bound = {"a": "x.#", "b": "#", "c": "x.#.z"}
    return await _routed(talk, "topic", bound, ["x", "x.y", "x.y.z", "y"])


@EXCHANGE.rule(
    "exchange.topic.once",
    "a queue that is bound twice gets a message once",
    section="3.1.3",
    obeys="1 message",
)
async def _(talk: Talk) -> str:
    peer = await talk.channel()
    exchange = await talk.exchange(peer, "topic")
    queue = await talk.queue(peer)
    for key in ("x.*", "x.#", "x.y"):
        await talk.bind(peer, queue, exchange, key)
    await talk.publish(peer, "x.y", exchange=exchange)
    count = await talk.count(peer, queue)
    return f"{count} message" + "s" * (count != 1)


async def _by_headers(talk: Talk, match: str, headers: Mapping[str, object]) -> str:
    peer = await talk.channel()
    exchange = await talk.exchange(peer, "headers")
    queue = await talk.queue(peer)
    arguments = Table.of({"x-match": match, "a": 1, "b": "two"})
    await talk.bind(peer, queue, exchange, arguments=arguments)
    properties = talk.amqp.BasicProperties(headers=Table.of(headers))
    await talk.publish(peer, "", exchange=exchange, properties=properties)
    return "routed" if await talk.count(peer, queue) else "not routed"


for _match, _headers, _outcome in (
    ("all", {"a": 1, "b": "two", "c": 3}, "routed"),
    ("all", {"a": 1}, "not routed"),
    ("any", {"a": 1}, "routed"),
    ("any", {"a": 2, "c": "two"}, "not routed"),
):

    @EXCHANGE.rule(
        f"exchange.headers.{_match}.{_outcome.replace(' ', '-')}",
        f"x-match {_match}: {', '.join(_headers)} is {_outcome}",
        section="3.1.3.4",
        strength="should",
        obeys=_outcome,
    )
    async def _(talk: Talk, match: str = _match, headers: Mapping[str, object] = _headers) -> str:
        return await _by_headers(talk, match, headers)
