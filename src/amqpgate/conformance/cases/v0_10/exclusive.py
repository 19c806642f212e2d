"""Queues of one session alone, and queues that go by themselves (AMQP 0-10, queue.declare)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from amqpgate.conformance.v0_10.session import TestedSession
from amqpgate.conformance.v0_10.talk import SessionTalk, section
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.structs import Command

EXCLUSIVE: Final = section("exclusive", "Exclusive queues")

_DONE: Final = "completed"


async def _query(session: TestedSession, queue: bytes) -> amqp.QueueQueryResult:
    return await session.result(amqp.QueueQuery(queue=queue), amqp.QueueQueryResult)


_OF_ANOTHER: Final[tuple[tuple[str, str, str, Callable[[bytes], Command]], ...]] = (
    (
        "declare.exclusive.in-use",
        "another session's exclusive queue cannot be declared",
        "exception 405",
        lambda queue: amqp.QueueDeclare(queue=queue),
    ),
    (
        "delete.exclusive.in-use",
        "another session's exclusive queue cannot be deleted",
        "exception 405",
        lambda queue: amqp.QueueDelete(queue=queue),
    ),
    (
        "purge.exclusive.in-use",
        "another session's exclusive queue cannot be purged",
        "exception 405",
        lambda queue: amqp.QueuePurge(queue=queue),
    ),
    (
        "bind.exclusive.in-use",
        "another session's exclusive queue cannot be bound",
        "exception 405",
        lambda queue: amqp.ExchangeBind(queue=queue, exchange=b"amq.direct", binding_key=queue),
    ),
    (
        "subscribe.exclusive.in-use",
        "nobody subscribes to another session's exclusive queue",
        "exception 405",
        lambda queue: amqp.MessageSubscribe(queue=queue, destination=b"d", accept_mode=0, acquire_mode=0),
    ),
)
for _id, _title, _obeys, _made in _OF_ANOTHER:

    async def _of_another(talk: SessionTalk, made: Callable[[bytes], Command] = _made) -> str:
        owner = await talk.session()
        queue = await talk.queue(owner)
        return await (await talk.session()).tried(made(queue))

    EXCLUSIVE.rule(
        f"queue.{_id}",
        _title,
        section="queue.declare.exclusive, in-use",
        obeys=_obeys,
        # Who declares it without asking for it to be exclusive, or purges it, may.
        qpid=_DONE if _id in ("declare.exclusive.in-use", "purge.exclusive.in-use") else (),
    )(_of_another)


@EXCLUSIVE.rule(
    "queue.declare.exclusive.sessions",
    "an exclusive queue is of its session: another one of the connection has no access",
    section="queue.declare.exclusive",
    obeys="exception 405",
    qpid=_DONE,
)
async def _(talk: SessionTalk) -> str:
    owner = await talk.session()
    queue = await talk.queue(owner)
    other = await talk.session(owner.peer, 1)
    return await other.tried(amqp.QueueDeclare(queue=queue))


@EXCLUSIVE.rule(
    "queue.declare.exclusive.ends",
    "an exclusive, auto-delete queue goes with its session",
    section="queue.declare.exclusive",
    obeys="exception 404",
)
async def _(talk: SessionTalk) -> str:
    owner = await talk.session()
    queue = await talk.queue(owner)
    await owner.control(amqp.SessionDetach(name=owner.name))
    await owner.answer(amqp.SessionDetached)
    return await (await talk.session()).tried(amqp.QueueDeclare(queue=queue, passive=True))


@EXCLUSIVE.rule(
    "queue.declare.auto-delete.last-subscription",
    "an auto-delete queue goes with its last subscription",
    section="queue.declare.auto-delete",
    obeys="gone",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session, exclusive=False)
    await session.subscribe(queue)
    await session.do(amqp.MessageCancel(destination=b"d"))
    return "gone" if (await _query(session, queue)).queue is None else "there"


@EXCLUSIVE.rule(
    "queue.declare.auto-delete.unused",
    "an auto-delete queue that nobody has subscribed to yet stays",
    section="queue.declare.auto-delete",
    obeys="there",
)
async def _(talk: SessionTalk) -> str:
    owner = await talk.session()
    queue = await talk.queue(owner, exclusive=False)
    await owner.control(amqp.SessionDetach(name=owner.name))
    await owner.answer(amqp.SessionDetached)
    return "gone" if (await _query(await talk.session(), queue)).queue is None else "there"
