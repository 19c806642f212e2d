"""Asking for bindings: each field of the result (AMQP 0-10, exchange.bound)."""

from __future__ import annotations

from typing import Final

import attrs

from amqpgate.conformance.v0_10.session import TestedSession
from amqpgate.conformance.v0_10.talk import SessionTalk, section
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.types import Map, Value

BOUND: Final = section("bound", "Asking for bindings")

_ARGUMENTS: Final = Map(((b"x-match", Value(TypeCode.STR16, b"all")), (b"a", Value(TypeCode.STR16, b"1"))))
_OTHERS: Final = Map(((b"x-match", Value(TypeCode.STR16, b"all")), (b"a", Value(TypeCode.STR16, b"2"))))


async def _asked(session: TestedSession, question: amqp.ExchangeBound) -> str:
    """The flags that are set, by their names."""
    found = await session.result(question, amqp.ExchangeBoundResult)
    names = [name for name, is_set in attrs.asdict(found).items() if is_set]
    return ", ".join(name.replace("_", "-") for name in names) or "bound"


@BOUND.rule(
    "exchange.bound.exchange-not-found",
    "an exchange that is not there",
    section="exchange.bound-result.exchange-not-found",
    obeys=("exchange-not-found", "exchange-not-found, queue-not-matched"),
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    return await _asked(session, amqp.ExchangeBound(exchange=talk.bytes_name(), queue=queue))


@BOUND.rule(
    "exchange.bound.queue-not-found",
    "a queue that is not there",
    section="exchange.bound-result.queue-not-found",
    obeys=("queue-not-found", "queue-not-found, queue-not-matched"),
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    exchange = await talk.exchange(session)
    return await _asked(session, amqp.ExchangeBound(exchange=exchange, queue=talk.bytes_name()))


@BOUND.rule(
    "exchange.bound.neither",
    "neither exchange nor queue is there",
    section="exchange.bound-result",
    obeys="exchange-not-found, queue-not-found*",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    return await _asked(session, amqp.ExchangeBound(exchange=talk.bytes_name(), queue=talk.bytes_name()))


#: What is asked beside the exchange, and the answer.
_QUESTIONS: Final[tuple[tuple[str, dict[str, bool | bytes], str | tuple[str, ...]], ...]] = (
    ("queue", {"queue": True}, "bound"),
    ("queue-not-matched", {"queue": False}, "queue-not-matched"),
    ("key", {"binding_key": b"k"}, "bound"),
    ("key-not-matched", {"binding_key": b"other"}, "key-not-matched"),
    ("queue.key", {"queue": True, "binding_key": b"k"}, "bound"),
    ("queue.key-not-matched", {"queue": True, "binding_key": b"other"}, "key-not-matched"),
    (
        "queue-not-matched.key",
        {"queue": False, "binding_key": b"k"},
        ("queue-not-matched", "key-not-matched"),
    ),
    (
        "nothing-matched",
        {"queue": False, "binding_key": b"other"},
        ("queue-not-matched", "key-not-matched", "queue-not-matched, key-not-matched"),
    ),
)
for _name, _said, _obeys in _QUESTIONS:

    async def _bound(talk: SessionTalk, said: dict[str, bool | bytes] = _said) -> str:
        session = await talk.session()
        queue, other = await talk.queue(session), await talk.queue(session)
        exchange = await talk.exchange(session)
        await session.do(amqp.ExchangeBind(queue=queue, exchange=exchange, binding_key=b"k"))
        fields: dict[str, object] = dict(said)
        if "queue" in said:
            fields["queue"] = queue if said["queue"] else other
        return await _asked(session, amqp.ExchangeBound(exchange=exchange, **fields))  # type: ignore[arg-type]

    BOUND.rule(
        f"exchange.bound.{_name}",
        f"a binding is asked for by {' and '.join(_said)}: {_obeys if isinstance(_obeys, str) else 'no'}",
        section="exchange.bound-result",
        obeys=_obeys,
    )(_bound)

for _name, _asks, _obeys in (
    ("args", _ARGUMENTS, "bound"),
    ("args-not-matched", _OTHERS, "args-not-matched"),
):

    async def _by_arguments(talk: SessionTalk, asks: Map = _asks) -> str:
        session = await talk.session()
        queue, exchange = await talk.queue(session), await talk.exchange(session, b"headers")
        bind = amqp.ExchangeBind(queue=queue, exchange=exchange, binding_key=b"k", arguments=_ARGUMENTS)
        await session.do(bind)
        return await _asked(session, amqp.ExchangeBound(exchange=exchange, queue=queue, arguments=asks))

    BOUND.rule(
        f"exchange.bound.{_name}",
        f"a binding is asked for by its arguments: {_obeys}",
        section="exchange.bound-result.args-not-matched",
        strength="should",
        obeys=_obeys,
    )(_by_arguments)


@BOUND.rule(
    "exchange.bound.unbound",
    "a binding that was taken away is not there any more",
    section="exchange.bound-result",
    obeys=("queue-not-matched", "key-not-matched", "queue-not-matched, key-not-matched"),
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue, exchange = await talk.queue(session), await talk.exchange(session)
    await session.do(
        amqp.ExchangeBind(queue=queue, exchange=exchange, binding_key=b"k"),
        amqp.ExchangeUnbind(queue=queue, exchange=exchange, binding_key=b"k"),
    )
    return await _asked(session, amqp.ExchangeBound(exchange=exchange, queue=queue, binding_key=b"k"))


@BOUND.rule(
    "exchange.bound.default-exchange",
    "a queue's binding to the default exchange is its name",
    section="exchange, default-exchange",
    obeys="bound",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    return await _asked(session, amqp.ExchangeBound(exchange=b"", queue=queue, binding_key=queue))


@BOUND.rule(
    "exchange.bound.default-exchange.key-not-matched",
    "another key than a queue's name is not bound to the default exchange",
    section="exchange, default-exchange",
    obeys="key-not-matched",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    return await _asked(session, amqp.ExchangeBound(exchange=b"", queue=queue, binding_key=b"no-such-key"))


@BOUND.rule(
    "exchange.bound.goes-on",
    "asking for what is not there is no exception",
    section="exchange.bound",
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await _asked(session, amqp.ExchangeBound(exchange=talk.bytes_name(), queue=talk.bytes_name()))
    return await session.outcome()
