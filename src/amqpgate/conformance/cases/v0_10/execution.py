"""Execution: sync, results, exceptions (AMQP 0-10, class execution)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.v0_10.session import TestedSession
from amqpgate.conformance.v0_10.talk import SessionTalk, section
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.structs import Command

EXECUTION: Final = section("execution", "Execution")

_MISSING: Final = amqp.QueueDelete(queue=b"amqpgate-conformance-no-such-queue")


async def _failed(talk: SessionTalk, *before: Command) -> TestedSession:
    """A session that has ended by an exception."""
    session = await talk.session()
    await session.do(*before)
    await session.tried(_MISSING)
    return session


@EXECUTION.rule(
    "execution.sync.completes",
    "sync is completed",
    section="execution.sync",
    obeys="completed",
)
async def _(talk: SessionTalk) -> str:
    return await (await talk.session()).tried(amqp.ExecutionSync())


@EXECUTION.rule(
    "execution.sync.barrier",
    "sync is completed after all before it",
    section="execution.sync",
    obeys="all of 101",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    first = session.next_id
    transfer = amqp.MessageTransfer(destination=b"", accept_mode=1, acquire_mode=0)
    structs = [amqp.DeliveryProperties(routing_key=queue)]
    for _ in range(100):
        await session.say(transfer, structs, b"m")
    last = await session.say(amqp.ExecutionSync(), sync=True)
    await session.completes(last)
    count = sum(number in session.done for number in range(first, last + 1))
    return f"all of {count}" if count == last + 1 - first else f"{count} of {last + 1 - first}"


@EXECUTION.rule(
    "execution.sync.order",
    "what is behind a sync finds all that was before it",
    section="execution.sync",
    obeys="50 messages",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    transfer = amqp.MessageTransfer(destination=b"", accept_mode=1, acquire_mode=0)
    for _ in range(50):
        await session.say(transfer, [amqp.DeliveryProperties(routing_key=queue)], b"m")
    await session.say(amqp.ExecutionSync())
    found = await session.result(amqp.QueueQuery(queue=queue), amqp.QueueQueryResult)
    return f"{found.message_count} messages"


@EXECUTION.rule(
    "execution.result.command-id",
    "a result has the id of the command that asked",
    section="execution.result.command-id",
    obeys="two results",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    query = amqp.ExchangeQuery(name=b"amq.direct")
    ids = [await session.say(query), await session.say(query, sync=True)]
    await session.until(lambda: all(number in session.results for number in ids))
    return "two results" if sorted(session.results) == ids else f"results {sorted(session.results)}"


@EXECUTION.rule(
    "execution.result.before-completion",
    "a command with a result is completed once its result was said",
    section="execution.result",
    strength="should",
    obeys="result first",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    number = await session.say(amqp.ExchangeQuery(name=b"amq.direct"), sync=True)
    await session.completes(number)
    return "result first" if number in session.results else "completed first"


@EXECUTION.rule(
    "execution.exception.error-code",
    "a command that cannot be carried out is an exception",
    section="execution.exception.error-code",
    obeys="exception 404",
)
async def _(talk: SessionTalk) -> str:
    return str((await _failed(talk)).ended)


@EXECUTION.rule(
    "execution.exception.command-id",
    "an exception has the id of the command that failed",
    section="execution.exception.command-id",
    obeys="the same",
)
async def _(talk: SessionTalk) -> str:
    session = await _failed(talk, amqp.ExecutionSync(), amqp.ExecutionSync())
    said = session.exception.command_id if session.exception is not None else None
    return "the same" if said == 2 else f"{said} in the place of 2"


@EXECUTION.rule(
    "execution.exception.class-code",
    "an exception may say which command failed, by its codes",
    section="execution.exception.class-code",
    strength="should",
    obeys=("8, 2", "None, None"),
)
async def _(talk: SessionTalk) -> str:
    said = (await _failed(talk)).exception
    return f"{said.class_code}, {said.command_code}" if said is not None else "none"


@EXECUTION.rule(
    "execution.exception.description",
    "an exception says why",
    section="execution.exception.description",
    strength="should",
    obeys="says why",
)
async def _(talk: SessionTalk) -> str:
    said = (await _failed(talk)).exception
    return "says why" if said is not None and said.description else "no word"


@EXECUTION.rule(
    "execution.exception.detach",
    "the session of an exception is detached",
    section="execution.exception",
    obeys="detached",
)
async def _(talk: SessionTalk) -> str:
    session = await _failed(talk)
    await session.peer.until(
        lambda: any(isinstance(one, amqp.SessionDetach | amqp.SessionDetached) for one in session.controls)
    )
    return "detached"


@EXECUTION.rule(
    "execution.exception.others",
    "other sessions of the connection go on after an exception",
    section="execution.exception",
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    other = await talk.session(session.peer, 1)
    await session.tried(_MISSING)
    return await other.outcome()


@EXECUTION.rule(
    "execution.exception.behind",
    "commands behind the one that failed are not carried out",
    section="execution.exception",
    obeys="exception 404",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    name = talk.bytes_name()
    talk.leaves(amqp.QueueDelete(queue=name))
    await session.say(_MISSING)
    await session.say(amqp.QueueDeclare(queue=name), sync=True)
    await session.peer.until(lambda: session.ended is not None)
    other = await talk.session()
    return await other.tried(amqp.QueueDeclare(queue=name, passive=True))


@EXECUTION.rule(
    "execution.exception.again",
    "a channel takes another session after an exception",
    section="execution.exception",
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    session = await _failed(talk)
    await session.peer.until(
        lambda: any(isinstance(one, amqp.SessionDetach | amqp.SessionDetached) for one in session.controls)
    )
    return await (await talk.session(session.peer)).outcome()


@EXECUTION.rule(
    "execution.exception.client",
    "a client may end its session by an exception",
    section="execution.exception",
    strength="should",
    obeys=("exception *", "detach*", "goes on"),
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.say(amqp.ExecutionException(error_code=404, command_id=0))
    return await session.outcome()


for _name, _title, _command in (
    (
        "file",
        "commands of the class file are carried out, or not implemented",
        amqp.FileQos(prefetch_count=1),
    ),
    ("stream", "commands of the class stream are carried out, or not implemented", amqp.StreamQos()),
):

    async def _class(talk: SessionTalk, command: Command = _command) -> str:
        return await (await talk.session()).tried(command)

    EXECUTION.rule(
        f"execution.exception.not-implemented.{_name}",
        _title,
        section=_name,
        obeys=("completed", "exception 540"),
        # It knows neither class.
        qpid=("exception 503", "hangs up", "connection.close *"),
    )(_class)
