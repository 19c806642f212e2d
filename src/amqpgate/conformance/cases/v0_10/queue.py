"""Queues (AMQP 0-10, class queue)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import Conversation
from amqpgate.conformance.v0_10.session import TestedSession
from amqpgate.conformance.v0_10.talk import Making, SessionTalk, saying, section
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.sequences import ids_of
from amqpgate.wire.v0_10.types import Map, Value

QUEUE: Final = section("queue", "Queues")

_DONE: Final = "completed"
_UNKNOWN: Final = Map(((b"no-such-argument", Value(TypeCode.STR16, b"1")),))


#: What qpidd does: it reserves no names, ignores unknown arguments, and has other codes for empty names.
_AS_QPID: Final = {
    "declare.queue.reserved-prefix": _DONE,
    "declare.arguments.unknown-argument": _DONE,
    "delete.empty-name": "exception 404",
    "purge.empty-name": "exception 531",
}


async def _query(session: TestedSession, queue: bytes) -> amqp.QueueQueryResult:
    return await session.result(amqp.QueueQuery(queue=queue), amqp.QueueQueryResult)


_REFUSED: Final[tuple[tuple[str, str, int, Making], ...]] = (
    (
        "declare.passive",
        "a passive declare of what is not there is an exception",
        404,
        lambda talk: amqp.QueueDeclare(queue=talk.bytes_name(), passive=True),
    ),
    (
        "declare.queue.reserved-prefix",
        "a name that begins with amq. is refused",
        530,
        lambda _: amqp.QueueDeclare(queue=b"amq.conformance", exclusive=True, auto_delete=True),
    ),
    (
        "declare.alternate-exchange.unknown-exchange",
        "an alternate exchange has to be there",
        404,
        lambda talk: amqp.QueueDeclare(
            queue=talk.bytes_name(), exclusive=True, auto_delete=True, alternate_exchange=talk.bytes_name()
        ),
    ),
    (
        "declare.arguments.unknown-argument",
        "an argument that the broker does not know is an exception",
        540,
        lambda talk: amqp.QueueDeclare(
            queue=talk.bytes_name(), exclusive=True, auto_delete=True, arguments=_UNKNOWN
        ),
    ),
    (
        "delete.empty-name",
        "a queue without a name cannot be deleted",
        542,
        lambda _: amqp.QueueDelete(queue=b""),
    ),
    (
        "delete.queue-exists",
        "a queue that is not there cannot be deleted",
        404,
        lambda talk: amqp.QueueDelete(queue=talk.bytes_name()),
    ),
    (
        "purge.empty-name",
        "a queue without a name cannot be purged",
        542,
        lambda _: amqp.QueuePurge(queue=b""),
    ),
    (
        "purge.queue-exists",
        "a queue that is not there cannot be purged",
        404,
        lambda talk: amqp.QueuePurge(queue=talk.bytes_name()),
    ),
)
for _id, _title, _code, _command in _REFUSED:
    QUEUE.rule(
        f"queue.{_id}",
        _title,
        section=f"queue.{_id.rpartition('.')[0]}, {_id.rpartition('.')[2]}",
        obeys=f"exception {_code}",
        qpid=_AS_QPID.get(_id, ()),
    )(saying(_command))

QUEUE.rule(
    "queue.declare.queue.empty",
    "a queue needs a name",
    section="queue.declare.queue",
    obeys=("exception 542", "exception 531"),
    # It makes a queue whose name is empty.
    qpid=_DONE,
)(saying(lambda _: amqp.QueueDeclare(queue=b"", exclusive=True, auto_delete=True)))


def _again(first: dict[str, object], second: dict[str, object]) -> Conversation[SessionTalk]:
    """A queue that is declared twice."""

    async def conversation(talk: SessionTalk) -> str:
        session = await talk.session()
        said = {"exclusive": False, "auto_delete": False} | first
        queue = await talk.queue(session, **said)  # type: ignore[arg-type]
        return await session.tried(amqp.QueueDeclare(queue=queue, **second))  # type: ignore[arg-type]

    return conversation


for _id, _title, _first, _second, _obeys in (
    ("same", "to declare a queue again changes nothing", {}, {}, _DONE),
    ("passive", "a queue that is there is declared passively", {}, {"passive": True}, _DONE),
    ("durable.pre-existence", "durable is ignored where the queue is there", {}, {"durable": True}, _DONE),
    (
        "auto-delete.pre-existence",
        "auto-delete is ignored where the queue is there",
        {},
        {"auto_delete": True},
        _DONE,
    ),
    (
        "alternate-exchange.same",
        "a queue can be declared again with its alternate exchange",
        {"alternate_exchange": b"amq.fanout"},
        {"alternate_exchange": b"amq.fanout"},
        _DONE,
    ),
    (
        "alternate-exchange.pre-existing-exchange",
        "a queue cannot be declared again with another alternate exchange",
        {"alternate_exchange": b"amq.fanout"},
        {"alternate_exchange": b"amq.direct"},
        "exception 530",
    ),
):
    QUEUE.rule(
        f"queue.declare.again.{_id}",
        _title,
        section=f"queue.declare, {_id.rpartition('.')[2]}",
        obeys=_obeys,
        qpid=_DONE,
    )(_again(dict(_first), dict(_second)))

for _name, _flags in (
    ("durable", {"durable": True}),
    ("transient", {"durable": False}),
    ("exclusive", {"exclusive": True}),
    ("auto-delete", {"exclusive": True, "auto_delete": True}),
):

    async def _declared(talk: SessionTalk, flags: dict[str, bool] = _flags) -> str:
        session = await talk.session()
        said = {"durable": False, "exclusive": False, "auto_delete": False} | flags
        name = await talk.queue(session, **said)  # type: ignore[arg-type]
        if said["exclusive"]:
            talk.leaves(amqp.QueueDelete(queue=name))
        found = await _query(session, name)
        told = {flag: getattr(found, flag) for flag in said}
        lies = [flag.replace("_", "-") for flag in said if told[flag] != said[flag]]
        return f"otherwise: {', '.join(lies)}" if lies else "as declared"

    QUEUE.rule(
        f"queue.declare.types.{_name}",
        f"a queue may be {_name}, and is asked for as that",
        section="queue.declare, types",
        obeys="as declared",
    )(_declared)


@QUEUE.rule(
    "queue.declare.minimum-queues",
    "a session may declare 256 queues",
    section="queue.declare, minimum-queues",
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    for number in range(256):
        await session.say(amqp.QueueDeclare(queue=talk.bytes_name(), exclusive=True, auto_delete=True))
        # A slow broker has its time for each 32.
        if number % 32 == 31 and (said := await session.outcome()) != "goes on":
            return said
    return "goes on"


@QUEUE.rule(
    "queue.declare.queue.long-name",
    "a name may have 255 bytes",
    section="queue.name",
    obeys=_DONE,
)
async def _(talk: SessionTalk) -> str:
    name = talk.bytes_name().ljust(255, b"x")
    session = await talk.session()
    return await session.tried(amqp.QueueDeclare(queue=name, exclusive=True, auto_delete=True))


@QUEUE.rule(
    "queue.declare.alternate-exchange.deleted",
    "messages of a queue that is deleted go to its alternate exchange",
    section="queue.declare.alternate-exchange",
    obeys="2 messages",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    alternate, dead = await talk.exchange(session, b"fanout"), await talk.queue(session)
    await session.do(amqp.ExchangeBind(queue=dead, exchange=alternate, binding_key=b""))
    queue = talk.bytes_name()
    await session.do(amqp.QueueDeclare(queue=queue, alternate_exchange=alternate))
    for _ in range(2):
        await session.publish(queue)
    await session.do(amqp.QueueDelete(queue=queue))
    return f"{(await _query(session, dead)).message_count} messages"


@QUEUE.rule(
    "queue.delete.done",
    "a queue that was deleted is gone, with its bindings",
    section="queue.delete",
    obeys="0 messages",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    exchange, queue = await talk.exchange(session), await talk.queue(session)
    await session.do(
        amqp.ExchangeBind(queue=queue, exchange=exchange, binding_key=b"k"), amqp.QueueDelete(queue=queue)
    )
    await talk.queue(session, queue)
    await session.publish(b"k", exchange=exchange)
    return f"{(await _query(session, queue)).message_count} messages"


@QUEUE.rule(
    "queue.delete.if-unused-flag",
    "a queue with a subscription is not deleted if-unused",
    section="queue.delete.if-unused, if-unused-flag",
    obeys="exception 406",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.subscribe(queue)
    return await session.tried(amqp.QueueDelete(queue=queue, if_unused=True))


@QUEUE.rule(
    "queue.delete.if-unused.unused",
    "a queue without a subscription is deleted if-unused",
    section="queue.delete.if-unused",
    obeys=_DONE,
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    return await session.tried(amqp.QueueDelete(queue=queue, if_unused=True))


@QUEUE.rule(
    "queue.delete.if-empty.not-empty",
    "a queue with messages is not deleted if-empty",
    section="queue.delete.if-empty, not-empty",
    obeys="exception 406",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.publish(queue)
    return await session.tried(amqp.QueueDelete(queue=queue, if_empty=True))


@QUEUE.rule(
    "queue.delete.if-empty.empty",
    "a queue without messages is deleted if-empty",
    section="queue.delete.if-empty",
    obeys=_DONE,
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    return await session.tried(amqp.QueueDelete(queue=queue, if_empty=True))


@QUEUE.rule(
    "queue.purge.empty",
    "a queue is empty after it was purged",
    section="queue.purge, empty",
    obeys="3, then 0",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    for _ in range(3):
        await session.publish(queue)
    before = (await _query(session, queue)).message_count
    await session.do(amqp.QueuePurge(queue=queue))
    return f"{before}, then {(await _query(session, queue)).message_count}"


@QUEUE.rule(
    "queue.purge.pending-messages",
    "what was sent and not accepted yet is not purged",
    section="queue.purge, pending-messages",
    obeys="comes back",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.publish(queue)
    await session.subscribe(queue, credit=1)
    message = await session.message()
    await session.do(amqp.QueuePurge(queue=queue), amqp.MessageRelease(transfers=ids_of([message.id])))
    await session.credit(1)
    await session.message()
    return "comes back"


@QUEUE.rule(
    "queue.query.not-found",
    "a queue that is not there is asked for without an exception, and has no name",
    section="queue.query",
    obeys="no name, goes on",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    found = await _query(session, talk.bytes_name())
    return f"{'no name' if not found.queue else 'a name'}, {await session.outcome()}"


@QUEUE.rule(
    "queue.query.counts",
    "messages and subscriptions are counted",
    section="queue.query-result.message-count",
    obeys="2 messages, 1 subscriptions",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    for _ in range(2):
        await session.publish(queue)
    await session.subscribe(queue, credit=None)
    found = await _query(session, queue)
    return f"{found.message_count} messages, {found.subscriber_count} subscriptions"


@QUEUE.rule(
    "queue.query.alternate-exchange",
    "the alternate exchange is told",
    section="queue.query-result.alternate-exchange",
    obeys="amq.fanout",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session, alternate_exchange=b"amq.fanout")
    found = await _query(session, queue)
    return (found.alternate_exchange or b"none").decode()


@QUEUE.rule(
    "queue.any-content",
    "messages with any content go into a queue, in their order",
    section="queue, any-content",
    obeys="in order",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    bodies = [b"", b"\0", bytes(range(256)), b"x" * 1000]
    for body in bodies:
        await session.publish(queue, body)
    await session.subscribe(queue)
    return "in order" if [one.body for one in await session.drained()] == bodies else "otherwise"
