"""Exchanges (AMQP 0-10, class exchange)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import Conversation
from amqpgate.conformance.v0_10.talk import Making, SessionTalk, saying, section
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.types import Map, Value

EXCHANGE: Final = section("exchange", "Exchanges")

_DECLARE: Final = "exchange.declare"
_DONE: Final = "completed"
_TYPES: Final = ("direct", "fanout", "topic", "headers")


def _redeclared(first: dict[str, object], second: dict[str, object]) -> Conversation[SessionTalk]:
    """An exchange that is declared twice."""

    async def conversation(talk: SessionTalk) -> str:
        session = await talk.session()
        name = await talk.exchange(session, **first)  # type: ignore[arg-type]
        said: dict[str, object] = {"exchange": name, "type": b"direct"} | second
        return await session.tried(amqp.ExchangeDeclare(**said))  # type: ignore[arg-type]

    return conversation


for _type in _TYPES:

    async def _declared(talk: SessionTalk, kind: str = _type) -> str:
        session = await talk.session()
        name = await talk.exchange(session, kind.encode())
        found = await session.result(amqp.ExchangeQuery(name=name), amqp.ExchangeQueryResult)
        return "no type" if found.type is None else found.type.decode()

    EXCHANGE.rule(
        f"exchange.declare.type.{_type}",
        f"an exchange of type {_type} can be declared, and is asked for by its type",
        section="exchange, required-types"
        if _type in ("direct", "fanout")
        else "exchange, recommended-types",
        obeys=_type,
        strength="must" if _type in ("direct", "fanout") else "should",
    )(_declared)

for _name in ("direct", "fanout", "topic", "match"):
    EXCHANGE.rule(
        f"exchange.required-instances.amq.{_name}",
        f"amq.{_name} is there",
        section="exchange, required-instances",
        obeys=_DONE,
        strength="must" if _name in ("direct", "fanout") else "should",
    )(saying(amqp.ExchangeDeclare(exchange=f"amq.{_name}".encode(), passive=True)))

_NOT_DECLARED: Final[tuple[tuple[str, str, int, Making], ...]] = (
    (
        "type.exchange-type-not-found",
        "a type that the broker does not have is an exception",
        404,
        lambda talk: amqp.ExchangeDeclare(exchange=talk.bytes_name(), type=b"no-such-type"),
    ),
    (
        "exchange.reserved-names",
        "a name that begins with amq. is refused",
        530,
        lambda _: amqp.ExchangeDeclare(exchange=b"amq.conformance", type=b"direct"),
    ),
    (
        "exchange.exchange-name-required",
        "an exchange without a name is refused",
        542,
        lambda _: amqp.ExchangeDeclare(exchange=b"", type=b"direct"),
    ),
    (
        "exchange.absent",
        "an exchange whose name is left out is refused",
        542,
        lambda _: amqp.ExchangeDeclare(type=b"direct"),
    ),
    (
        "passive.not-found",
        "a passive declare of what is not there is an exception",
        404,
        lambda talk: amqp.ExchangeDeclare(exchange=talk.bytes_name(), type=b"direct", passive=True),
    ),
    (
        "alternate-exchange.not-found",
        "an alternate exchange has to be there",
        404,
        lambda talk: amqp.ExchangeDeclare(
            exchange=talk.bytes_name(), type=b"direct", alternate_exchange=talk.bytes_name()
        ),
    ),
)
for _id, _title, _code, _command in _NOT_DECLARED:
    EXCHANGE.rule(
        f"exchange.declare.{_id}",
        _title,
        section=f"{_DECLARE}, {_id.rpartition('.')[2]}",
        obeys=f"exception {_code}",
        # It takes the default exchange for one that was declared before.
        qpid=_DONE if _id in ("exchange.exchange-name-required", "exchange.absent") else (),
    )(saying(_command))

EXCHANGE.rule(
    "exchange.declare.arguments.unknown-argument",
    "an argument that the broker does not know is an exception",
    section="exchange.declare.arguments, unknown-argument",
    obeys="exception 540",
    # It ignores them.
    qpid=_DONE,
)(
    saying(
        lambda talk: amqp.ExchangeDeclare(
            exchange=_leaving(talk),
            type=b"direct",
            arguments=Map(((b"no-such-argument", Value(TypeCode.STR16, b"1")),)),
        )
    )
)


def _leaving(talk: SessionTalk) -> bytes:
    name = talk.bytes_name()
    talk.leaves(amqp.ExchangeDelete(exchange=name))
    return name


for _id, _title, _first, _second, _obeys in (
    ("same", "to declare an exchange again changes nothing", {}, {}, _DONE),
    ("passive", "an exchange that is there is declared passively", {}, {"passive": True}, _DONE),
    ("passive.no-type", "a passive declare needs no type", {}, {"passive": True, "type": b""}, _DONE),
    (
        "type.typed",
        "an exchange cannot be declared again with another type",
        {},
        {"type": b"fanout"},
        "exception 530",
    ),
    ("durable.sticky", "durable is ignored where the exchange is there", {}, {"durable": True}, _DONE),
    (
        "auto-delete.sticky",
        "auto-delete is ignored where the exchange is there",
        {},
        {"auto_delete": True},
        _DONE,
    ),
    (
        "alternate-exchange.pre-existing-exchange",
        "an exchange cannot be declared again with another alternate exchange",
        {"alternate_exchange": b"amq.fanout"},
        {"alternate_exchange": b"amq.direct"},
        "exception 530",
    ),
    (
        "alternate-exchange.same",
        "an exchange can be declared again with its alternate exchange",
        {"alternate_exchange": b"amq.fanout"},
        {"alternate_exchange": b"amq.fanout"},
        _DONE,
    ),
):
    EXCHANGE.rule(
        f"exchange.declare.again.{_id}",
        _title,
        section=f"{_DECLARE}, {_id.rpartition('.')[2]}",
        obeys=_obeys,
    )(_redeclared(dict(_first), dict(_second)))

EXCHANGE.rule(
    "exchange.declare.durable.support",
    "an exchange may be durable",
    section="exchange.declare.durable, support",
    obeys="durable",
)(lambda talk: _durable(talk, durable=True))
EXCHANGE.rule(
    "exchange.declare.durable.not",
    "an exchange need not be durable",
    section="exchange.declare.durable, support",
    obeys="transient",
)(lambda talk: _durable(talk, durable=False))


async def _durable(talk: SessionTalk, *, durable: bool) -> str:
    session = await talk.session()
    name = await talk.exchange(session, durable=durable)
    found = await session.result(amqp.ExchangeQuery(name=name), amqp.ExchangeQueryResult)
    return "durable" if found.durable else "transient"


@EXCHANGE.rule(
    "exchange.declare.minimum",
    "a session may declare sixteen exchanges",
    section="exchange.declare, minimum",
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    for _ in range(16):
        await talk.exchange(session)
    return await session.outcome()


@EXCHANGE.rule(
    "exchange.declare.auto-delete.unused",
    "an auto-delete exchange goes with its last binding",
    section="exchange.declare.auto-delete",
    obeys="gone",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    name = await talk.exchange(session, auto_delete=True)
    queue = await talk.queue(session)
    await session.do(
        amqp.ExchangeBind(queue=queue, exchange=name, binding_key=b"k"),
        amqp.ExchangeUnbind(queue=queue, exchange=name, binding_key=b"k"),
    )
    found = await session.result(amqp.ExchangeQuery(name=name), amqp.ExchangeQueryResult)
    return "gone" if found.not_found else "there"


@EXCHANGE.rule(
    "exchange.declare.auto-delete.in-use",
    "an auto-delete exchange stays while it has a binding",
    section="exchange.declare.auto-delete",
    obeys="there",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    name = await talk.exchange(session, auto_delete=True)
    queue = await talk.queue(session)
    for key in (b"a", b"b"):
        await session.do(amqp.ExchangeBind(queue=queue, exchange=name, binding_key=key))
    await session.do(amqp.ExchangeUnbind(queue=queue, exchange=name, binding_key=b"a"))
    found = await session.result(amqp.ExchangeQuery(name=name), amqp.ExchangeQueryResult)
    return "gone" if found.not_found else "there"


_NOT_DELETED: Final[tuple[tuple[str, str, int, Making], ...]] = (
    (
        "exists",
        "an exchange that is not there cannot be deleted",
        404,
        lambda talk: amqp.ExchangeDelete(exchange=talk.bytes_name()),
    ),
    (
        "exchange-name-required",
        "an exchange without a name cannot be deleted",
        542,
        lambda _: amqp.ExchangeDelete(exchange=b""),
    ),
)
for _id, _title, _code, _command in _NOT_DELETED:
    EXCHANGE.rule(
        f"exchange.delete.{_id}",
        _title,
        section=f"exchange.delete, {_id}",
        obeys=f"exception {_code}",
    )(saying(_command))

EXCHANGE.rule(
    "exchange.delete.reserved",
    "an exchange of the broker's own is not deleted",
    section="exchange, required-instances",
    obeys=("exception 530", "exception 403", "exception 542"),
)(saying(lambda _: amqp.ExchangeDelete(exchange=b"amq.direct")))


@EXCHANGE.rule(
    "exchange.delete.done",
    "an exchange that was deleted is gone",
    section="exchange.delete",
    obeys="gone",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    name = talk.bytes_name()
    await session.do(amqp.ExchangeDeclare(exchange=name, type=b"direct"), amqp.ExchangeDelete(exchange=name))
    found = await session.result(amqp.ExchangeQuery(name=name), amqp.ExchangeQueryResult)
    return "gone" if found.not_found else "there"


@EXCHANGE.rule(
    "exchange.delete.if-unused.exchange-in-use",
    "an exchange with bindings is not deleted if-unused",
    section="exchange.delete.if-unused, exchange-in-use",
    obeys="exception 406",
    # It ignores the flag.
    qpid=_DONE,
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    name = await talk.exchange(session)
    queue = await talk.queue(session)
    await session.do(amqp.ExchangeBind(queue=queue, exchange=name, binding_key=b"k"))
    return await session.tried(amqp.ExchangeDelete(exchange=name, if_unused=True))


@EXCHANGE.rule(
    "exchange.delete.if-unused.unused",
    "an exchange without bindings is deleted if-unused",
    section="exchange.delete.if-unused",
    obeys=_DONE,
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    name = await talk.exchange(session)
    return await session.tried(amqp.ExchangeDelete(exchange=name, if_unused=True))


@EXCHANGE.rule(
    "exchange.delete.bindings",
    "the bindings of an exchange go with it",
    section="exchange.delete",
    obeys="0 messages",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    name, queue = await talk.exchange(session), await talk.queue(session)
    declare = amqp.ExchangeDeclare(exchange=name, type=b"direct")
    bind = amqp.ExchangeBind(queue=queue, exchange=name, binding_key=b"k")
    await session.do(bind, amqp.ExchangeDelete(exchange=name), declare)
    await session.publish(b"k", exchange=name)
    found = await session.result(amqp.QueueQuery(queue=queue), amqp.QueueQueryResult)
    return f"{found.message_count} messages"


@EXCHANGE.rule(
    "exchange.query.not-found",
    "an exchange that is not there is asked for without an exception",
    section="exchange.query",
    obeys="not found, goes on",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    found = await session.result(amqp.ExchangeQuery(name=talk.bytes_name()), amqp.ExchangeQueryResult)
    return f"{'not found' if found.not_found else 'found'}, {await session.outcome()}"


for _query, _name in ((b"amq.topic", "topic"), (b"", "default")):

    async def _queried(talk: SessionTalk, name: bytes = _query) -> str:
        session = await talk.session()
        found = await session.result(amqp.ExchangeQuery(name=name), amqp.ExchangeQueryResult)
        kind = "no type" if found.type is None else found.type.decode()
        return "not found" if found.not_found else kind

    EXCHANGE.rule(
        f"exchange.query.type.{_name}",
        f"the type of the {_name} exchange is told",
        section="exchange.query-result.type",
        obeys="topic" if _query else "direct",
    )(_queried)
