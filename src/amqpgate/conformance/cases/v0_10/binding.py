"""Bindings, and what they route (AMQP 0-10, exchange.bind and unbind)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.v0_10.session import TestedSession
from amqpgate.conformance.v0_10.talk import SessionTalk, saying, section
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.types import Content, Map, Value

BINDING: Final = section("binding", "Bindings")


async def _count(session: TestedSession, queue: bytes) -> int:
    found = await session.result(amqp.QueueQuery(queue=queue), amqp.QueueQueryResult)
    return found.message_count or 0


for _id, _title, _code, _command in (
    (
        "bind.empty-queue",
        "a queue without a name cannot be bound",
        542,
        lambda _: amqp.ExchangeBind(queue=b"", exchange=b"amq.direct", binding_key=b"k"),
    ),
    (
        "bind.queue-existence",
        "a queue that is not there cannot be bound",
        404,
        lambda talk: amqp.ExchangeBind(queue=talk.bytes_name(), exchange=b"amq.direct", binding_key=b"k"),
    ),
    (
        "unbind.non-existent-queue",
        "a queue that is not there cannot be unbound",
        404,
        lambda talk: amqp.ExchangeUnbind(queue=talk.bytes_name(), exchange=b"amq.direct", binding_key=b"k"),
    ),
):
    BINDING.rule(
        f"exchange.{_id}",
        _title,
        section=f"exchange.{_id.replace('.', ', ')}",
        obeys=f"exception {_code}",
        # To it that is a queue which is not there.
        qpid="exception 404" if _id == "bind.empty-queue" else (),
    )(saying(_command))

for _id, _title, _code, _kind, _exchange in (
    (
        "bind.exchange-existence",
        "nothing is bound to an exchange that is not there",
        404,
        amqp.ExchangeBind,
        b"amqpgate-conformance-no-such-exchange",
    ),
    ("bind.exchange-name-required", "nothing is bound to the default exchange", 542, amqp.ExchangeBind, b""),
    (
        "unbind.non-existent-exchange",
        "nothing is unbound from an exchange that is not there",
        404,
        amqp.ExchangeUnbind,
        b"amqpgate-conformance-no-such-exchange",
    ),
    (
        "unbind.exchange-name-required",
        "nothing is unbound from the default exchange",
        542,
        amqp.ExchangeUnbind,
        b"",
    ),
    (
        "unbind.non-existent-binding-key",
        "a binding that is not there cannot be taken away",
        404,
        amqp.ExchangeUnbind,
        b"amq.direct",
    ),
):

    async def _of_queue(
        talk: SessionTalk,
        kind: type[amqp.ExchangeBind] | type[amqp.ExchangeUnbind] = _kind,
        exchange: bytes = _exchange,
    ) -> str:
        session = await talk.session()
        queue = await talk.queue(session)
        return await session.tried(kind(queue=queue, exchange=exchange, binding_key=b"no-such-key"))

    BINDING.rule(
        f"exchange.{_id}",
        _title,
        section=f"exchange.{_id.replace('.', ', ')}",
        obeys=f"exception {_code}",
        # It takes away nothing, without a word.
        qpid="completed" if _id.endswith("binding-key") else (),
    )(_of_queue)


@BINDING.rule(
    "exchange.bind.duplicates",
    "a binding that is there already is ignored",
    section="exchange.bind, duplicates",
    obeys="1 message",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue, exchange = await talk.queue(session), await talk.exchange(session)
    bind = amqp.ExchangeBind(queue=queue, exchange=exchange, binding_key=b"k")
    await session.do(bind, bind)
    await session.publish(b"k", exchange=exchange)
    return f"{await _count(session, queue)} message"


@BINDING.rule(
    "exchange.bind.multiple-bindings",
    "a message comes to a queue once, however many of its bindings match",
    section="exchange.bind, multiple-bindings",
    obeys="1 message",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue, exchange = await talk.queue(session), await talk.exchange(session, b"topic")
    for key in (b"a.*", b"*.b", b"#"):
        await session.do(amqp.ExchangeBind(queue=queue, exchange=exchange, binding_key=key))
    await session.publish(b"a.b", exchange=exchange)
    return f"{await _count(session, queue)} message"


@BINDING.rule(
    "exchange.bind.binding-count",
    "a queue may have many bindings",
    section="exchange.bind, binding-count",
    obeys="2 messages",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue, exchange = await talk.queue(session), await talk.exchange(session)
    keys = [f"key-{number}".encode() for number in range(100)]
    await session.do(*(amqp.ExchangeBind(queue=queue, exchange=exchange, binding_key=key) for key in keys))
    for key in (keys[0], keys[-1]):
        await session.publish(key, exchange=exchange)
    return f"{await _count(session, queue)} messages"


@BINDING.rule(
    "exchange.bind.durable-exchange",
    "a queue that is not durable may be bound to an exchange that is",
    section="exchange.bind, durable-exchange",
    obeys="completed",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue, exchange = await talk.queue(session), await talk.exchange(session, durable=True)
    return await session.tried(amqp.ExchangeBind(queue=queue, exchange=exchange, binding_key=b"k"))


@BINDING.rule(
    "exchange.unbind.done",
    "nothing is routed by a binding that was taken away",
    section="exchange.unbind",
    obeys="1 message",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue, exchange = await talk.queue(session), await talk.exchange(session)
    for key in (b"a", b"b"):
        await session.do(amqp.ExchangeBind(queue=queue, exchange=exchange, binding_key=key))
    await session.do(amqp.ExchangeUnbind(queue=queue, exchange=exchange, binding_key=b"a"))
    for key in (b"a", b"b"):
        await session.publish(key, exchange=exchange)
    return f"{await _count(session, queue)} message"


@BINDING.rule(
    "exchange.default-exchange",
    "every queue is bound to the default exchange by its name",
    section="queue.declare, default-binding",
    obeys="1 message",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.publish(queue)
    return f"{await _count(session, queue)} message"


#: What is bound, what is published, and whether it is routed.
_ROUTES: Final = (
    ("direct", "same", b"a.b", b"a.b", True),
    ("direct", "other", b"a.b", b"a.c", False),
    ("direct", "no-pattern", b"a.*", b"a.b", False),
    ("fanout", "any", b"a", b"b", True),
    ("topic", "same", b"a.b", b"a.b", True),
    ("topic", "star", b"a.*", b"a.b", True),
    ("topic", "star-one-word", b"a.*", b"a.b.c", False),
    ("topic", "star-not-none", b"a.*", b"a", False),
    ("topic", "hash", b"a.#", b"a.b.c", True),
    ("topic", "hash-none", b"a.#", b"a", True),
    ("topic", "hash-amid", b"a.#.z", b"a.b.c.z", True),
    ("topic", "hash-all", b"#", b"", True),
    ("topic", "star-part", b"a.b*", b"a.bc", False),
)
for _type, _name, _bound, _key, _is_routed in _ROUTES:

    async def _routed(talk: SessionTalk, kind: str = _type, bound: bytes = _bound, key: bytes = _key) -> str:
        session = await talk.session()
        queue, exchange = await talk.queue(session), await talk.exchange(session, kind.encode())
        await session.do(amqp.ExchangeBind(queue=queue, exchange=exchange, binding_key=bound))
        await session.publish(key, exchange=exchange)
        return "routed" if await _count(session, queue) else "not routed"

    BINDING.rule(
        f"exchange.type.{_type}.{_name}",
        f"{_key.decode() or 'no key'} is {'' if _is_routed else 'not '}routed by {_bound.decode()} ({_type})",
        section="exchange: types",
        obeys="routed" if _is_routed else "not routed",
        strength="must" if _type in ("direct", "fanout") else "should",
    )(_routed)


def _map(**values: tuple[int, Content]) -> Map:
    return Map(tuple((key.replace("_", "-").encode(), Value(*value)) for key, value in values.items()))


_ALL: Final = (TypeCode.STR16, b"all")
_ANY: Final = (TypeCode.STR16, b"any")
_ONE: Final = (TypeCode.STR16, b"one")
_TWO: Final = (TypeCode.STR16, b"two")
_NUMBER: Final = (TypeCode.INT32, 7)

_HEADERS: Final = (
    ("all", _map(x_match=_ALL, a=_ONE, b=_TWO), _map(a=_ONE, b=_TWO, c=_ONE), True),
    ("all-one-missing", _map(x_match=_ALL, a=_ONE, b=_TWO), _map(a=_ONE), False),
    ("all-one-other", _map(x_match=_ALL, a=_ONE, b=_TWO), _map(a=_ONE, b=_ONE), False),
    ("any", _map(x_match=_ANY, a=_ONE, b=_TWO), _map(a=_ONE), True),
    ("any-none", _map(x_match=_ANY, a=_ONE, b=_TWO), _map(c=_ONE), False),
    ("number", _map(x_match=_ALL, a=_NUMBER), _map(a=_NUMBER), True),
    ("presence", _map(x_match=_ALL, a=(TypeCode.VOID, None)), _map(a=_TWO), True),
)
for _name, _arguments, _headers, _is_routed in _HEADERS:

    async def _by_headers(talk: SessionTalk, arguments: Map = _arguments, headers: Map = _headers) -> str:
        session = await talk.session()
        queue, exchange = await talk.queue(session), await talk.exchange(session, b"headers")
        bind = amqp.ExchangeBind(queue=queue, exchange=exchange, binding_key=b"k", arguments=arguments)
        await session.do(bind)
        message = amqp.MessageProperties(application_headers=headers)
        await session.publish(b"", exchange=exchange, message=message)
        return "routed" if await _count(session, queue) else "not routed"

    BINDING.rule(
        f"exchange.type.headers.{_name}",
        f"a headers exchange {'routes' if _is_routed else 'does not route'} what it should ({_name})",
        section="exchange: types",
        strength="should",
        obeys="routed" if _is_routed else "not routed",
    )(_by_headers)
