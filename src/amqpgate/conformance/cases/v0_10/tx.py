"""Transactions of one session (AMQP 0-10, class tx)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.v0_10.dtx import dtx_session
from amqpgate.conformance.v0_10.session import TestedSession
from amqpgate.conformance.v0_10.talk import SessionTalk, saying, section
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.sequences import ids_of
from amqpgate.wire.v0_10.structs import Command

TX: Final = section("tx", "Transactions")

_DONE: Final = "completed"
_STATE: Final = "exception 409"


async def _queue(talk: SessionTalk, session: TestedSession) -> bytes:
    """One that others may look at."""
    return await talk.queue(session, exclusive=False, auto_delete=False)


async def _count(talk: SessionTalk, queue: bytes) -> int | None:
    found = await (await talk.session()).result(amqp.QueueQuery(queue=queue), amqp.QueueQueryResult)
    return found.message_count


async def _left(talk: SessionTalk, session: TestedSession, queue: bytes) -> str:
    """How many messages there are when the session is over."""
    await session.control(amqp.SessionDetach(name=session.name))
    await session.answer(amqp.SessionDetached)
    return f"{await _count(talk, queue)} left"


TX.rule("tx.select", "a session may be transactional", section="tx.select", obeys=_DONE)(
    saying(amqp.TxSelect())
)
TX.rule(
    "tx.select.exactly-once",
    "a session is not made transactional again",
    section="tx.select, exactly-once",
    obeys=_STATE,
    qpid=_DONE,
)(saying(amqp.TxSelect(), amqp.TxSelect()))

for _name, _command in (("commit", amqp.TxCommit()), ("rollback", amqp.TxRollback())):
    TX.rule(
        f"tx.{_name}.select-required",
        f"{_name} without select is an exception",
        section=f"tx.{_name}, select-required",
        obeys=_STATE,
        qpid="exception 503",
    )(saying(_command))
    TX.rule(
        f"tx.{_name}.empty",
        f"{_name} of nothing is completed",
        section=f"tx.{_name}",
        obeys=_DONE,
    )(saying(amqp.TxSelect(), _command))


@TX.rule(
    "tx.select.no-dtx",
    "a session of distributed transactions is not made transactional",
    section="tx.select, no-dtx",
    obeys=_STATE,
    qpid=_DONE,
)
async def _(talk: SessionTalk) -> str:
    session = await dtx_session(talk)
    return await session.tried(amqp.TxSelect())


@TX.rule(
    "tx.select.explicit-accepts",
    "a session that has deliveries without accepts is not made transactional",
    section="tx.select, explicit-accepts",
    obeys="exception 530",
    qpid=_DONE,
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.subscribe(queue, accept=1)
    return await session.tried(amqp.TxSelect())


@TX.rule(
    "tx.commit.transfer",
    "what was published in a transaction is there once it is committed, and not before",
    section="message.transfer, transactional-publish",
    obeys="0, then 3",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await _queue(talk, session)
    await session.do(amqp.TxSelect())
    for _ in range(3):
        await session.publish(queue)
    before = await _count(talk, queue)
    await session.do(amqp.TxCommit())
    return f"{before}, then {await _count(talk, queue)}"


@TX.rule(
    "tx.rollback.transfer",
    "what was published in a transaction that is rolled back is not there",
    section="tx.rollback",
    obeys="0",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await _queue(talk, session)
    await session.do(amqp.TxSelect())
    await session.publish(queue)
    await session.do(amqp.TxRollback())
    return f"{await _count(talk, queue)}"


@TX.rule(
    "tx.commit.order",
    "messages of a transaction keep their order",
    section="tx.commit",
    obeys="0 1 2 3 4",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.do(amqp.TxSelect())
    for number in range(5):
        await session.publish(queue, b"%d" % number)
    await session.do(amqp.TxCommit())
    await session.subscribe(queue)
    return " ".join(one.body.decode() for one in await session.drained())


@TX.rule(
    "tx.commit.next",
    "the next transaction begins with the end of one",
    section="tx.commit",
    obeys="1",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await _queue(talk, session)
    await session.do(amqp.TxSelect())
    await session.publish(queue)
    await session.do(amqp.TxCommit())
    await session.publish(queue)
    await session.do(amqp.TxRollback())
    return f"{await _count(talk, queue)}"


@TX.rule(
    "tx.session-ends",
    "a transaction is rolled back where its session ends",
    section="class tx",
    obeys="0 left",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await _queue(talk, session)
    await session.do(amqp.TxSelect())
    await session.publish(queue)
    return await _left(talk, session, queue)


@TX.rule(
    "tx.exception",
    "a transaction is rolled back where an exception ends its session",
    section="class tx",
    obeys="0",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await _queue(talk, session)
    await session.do(amqp.TxSelect())
    await session.publish(queue)
    await session.tried(amqp.QueueDelete(queue=talk.bytes_name()))
    return f"{await _count(talk, queue)}"


for _name, _title, _commands, _obeys in (
    ("commit.accept", "what was accepted is gone once it is committed", (amqp.TxCommit(),), "0 left"),
    (
        "rollback.accept",
        "what was accepted is not gone where it is rolled back",
        (amqp.TxRollback(),),
        "2 left",
    ),
    ("accept.not-committed", "what was accepted is not gone before it is committed", (), "2 left"),
):

    async def _accepted(talk: SessionTalk, commands: tuple[Command, ...] = _commands) -> str:
        session = await talk.session()
        queue = await _queue(talk, session)
        for _ in range(2):
            await session.publish(queue)
        await session.do(amqp.TxSelect())
        await session.subscribe(queue)
        await session.until(lambda: len(session.heard) == 2)
        accept = amqp.MessageAccept(transfers=ids_of(one.id for one in session.heard))
        await session.do(accept, *commands)
        return await _left(talk, session, queue)

    TX.rule(f"tx.{_name}", _title, section=f"tx.{_name.partition('.')[0]}", obeys=_obeys)(_accepted)


@TX.rule(
    "tx.rollback.acquired",
    "what was accepted is still this session's after rollback: it can be accepted again",
    section="tx.rollback",
    obeys="0 left",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await _queue(talk, session)
    await session.publish(queue)
    await session.do(amqp.TxSelect())
    await session.subscribe(queue)
    await session.until(lambda: bool(session.heard))
    accept = amqp.MessageAccept(transfers=ids_of([session.heard[0].id]))
    await session.do(accept, amqp.TxRollback(), accept, amqp.TxCommit())
    return await _left(talk, session, queue)


@TX.rule(
    "tx.rollback.release",
    "what was accepted can be released after rollback",
    section="tx.rollback",
    obeys="m",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await _queue(talk, session)
    await session.publish(queue)
    await session.do(amqp.TxSelect())
    await session.subscribe(queue)
    await session.until(lambda: bool(session.heard))
    ids = ids_of([session.heard[0].id])
    accept, release = amqp.MessageAccept(transfers=ids), amqp.MessageRelease(transfers=ids)
    await session.do(
        amqp.MessageCancel(destination=b"d"), accept, amqp.TxRollback(), release, amqp.TxCommit()
    )
    other = await talk.session()
    await other.subscribe(queue)
    return (await other.message()).body.decode()


@TX.rule(
    "tx.commit.both",
    "what is received and sent in one transaction is both done, or neither",
    section="class tx",
    obeys="1 and 0, then 0 and 1",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    source, target = await _queue(talk, session), await _queue(talk, session)
    await session.publish(source)
    await session.do(amqp.TxSelect())
    told = []
    for end in (amqp.TxRollback(), amqp.TxCommit()):
        worker = await talk.session()
        await worker.do(amqp.TxSelect())
        await worker.subscribe(source)
        message = await worker.message()
        await worker.publish(target)
        await worker.do(amqp.MessageAccept(transfers=ids_of([message.id])), end)
        await worker.control(amqp.SessionDetach(name=worker.name))
        await worker.answer(amqp.SessionDetached)
        told.append(f"{await _count(talk, source)} and {await _count(talk, target)}")
    return ", then ".join(told)
