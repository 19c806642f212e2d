"""Which commands there are, and which are done (AMQP 0-10, class session)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.v0_10.talk import SessionTalk, section
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.sequences import SequenceSet, ids_of
from amqpgate.wire.v0_10.structs import Control

COMPLETION: Final = section("completion", "Ids and completion of commands")

_EMPTY: Final = SequenceSet()


@COMPLETION.rule(
    "session.command-point.newly-attached-transports",
    "a command without a command-point before it ends the session",
    section="session.command-point, newly-attached-transports",
    obeys=("detached 4", "exception 409", "detach", "exception 503"),
)
async def _(talk: SessionTalk) -> str:
    session = talk.attachable(await talk.connected(), 0)
    await session.control(amqp.SessionAttach(name=session.name))
    await session.answer(amqp.SessionAttached)
    return await session.outcome()


@COMPLETION.rule(
    "session.command-point.sent",
    "a peer says a command-point before its first command",
    section="session.command-point, newly-attached-transports",
    obeys="0, 0",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.result(amqp.QueueQuery(queue=b"no-such-queue"), amqp.QueueQueryResult)
    said = await session.answer(amqp.SessionCommandPoint)
    return f"{said.command_id}, {said.command_offset}"


for _name, _title, _first in (
    ("any", "commands may begin with any id", 1000),
    ("wraps", "ids of commands go on with 0 behind the last one", 0xFFFFFFFE),
):

    async def _numbered(talk: SessionTalk, first: int = _first) -> str:
        session = talk.attachable(await talk.connected(), 0)
        await session.attach(first=first)
        for _ in range(4):
            await session.do(amqp.ExecutionSync())
        query = amqp.QueueQuery(queue=b"no-such-queue")
        await session.result(query, amqp.QueueQueryResult)
        return await session.outcome()

    COMPLETION.rule(
        f"session.command-point.command-id.{_name}",
        _title,
        section="session.command-point.command-id",
        obeys="goes on",
        # Of ids before the last one it completes none until they begin with 0 again.
        qpid="silence" if _name == "wraps" else (),
    )(_numbered)


@COMPLETION.rule(
    "session.command-point.replay",
    "a command whose id was done already is not done again",
    section="session.command-point",
    obeys="1 message",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    number = session.next_id
    await session.publish(queue)
    await session.control(amqp.SessionCommandPoint(command_id=number, command_offset=0))
    transfer = amqp.MessageTransfer(destination=b"", accept_mode=1, acquire_mode=0)
    structs = [amqp.DeliveryProperties(routing_key=queue)]
    await session.peer.send(session.peer.encoded(0, transfer, structs, b"m"))
    found = await session.result(amqp.QueueQuery(queue=queue), amqp.QueueQueryResult)
    return f"{found.message_count} message"


@COMPLETION.rule(
    "session.command-point.ahead",
    "ids are not skipped by a command-point",
    section="session.command-point",
    obeys=("exception *", "detached 4"),
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.do(amqp.ExecutionSync())
    await session.control(amqp.SessionCommandPoint(command_id=100, command_offset=0))
    return await session.outcome()


@COMPLETION.rule(
    "session.completed.sync",
    "a command whose sync bit is set is completed at once",
    section="session.header.sync",
    obeys="completed",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    return await session.tried(amqp.QueueDeclare(queue=talk.bytes_name(), exclusive=True, auto_delete=True))


@COMPLETION.rule(
    "session.flush.completed",
    "flush(completed) is answered with all commands that are done",
    section="session.flush.completed",
    obeys="0 to 4",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    for _ in range(5):
        await session.say(amqp.ExecutionSync())
    await session.control(amqp.SessionFlush(completed=True))
    await session.completes(4)
    return "0 to 4" if all(number in session.done for number in range(5)) else "fewer"


@COMPLETION.rule(
    "session.flush.expected",
    "flush(expected) is answered with the id of the next command",
    section="session.expected, include-next-command",
    obeys="3",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    for _ in range(3):
        await session.do(amqp.ExecutionSync())
    await session.control(amqp.SessionFlush(expected=True))
    commands = (await session.answer(amqp.SessionExpected)).commands or _EMPTY
    return f"{commands.ranges[0][0]}" if len(commands.ranges) == 1 else f"{commands.ranges}"


@COMPLETION.rule(
    "session.flush.confirmed",
    "flush(confirmed) is answered",
    section="session.confirmed",
    obeys="answered",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.do(amqp.ExecutionSync())
    await session.control(amqp.SessionFlush(confirmed=True))
    await session.answer(amqp.SessionConfirmed)
    return "answered"


@COMPLETION.rule(
    "session.flush.nothing",
    "flush of nothing is taken",
    section="session.flush",
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.control(amqp.SessionFlush())
    return await session.outcome()


@COMPLETION.rule(
    "session.completed.known-completed-reply",
    "completed with timely-reply is answered with known-completed",
    section="session.completed, known-completed-reply",
    obeys="0 to 0",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.result(amqp.QueueQuery(queue=b"no-such-queue"), amqp.QueueQueryResult)
    await session.control(amqp.SessionCompleted(commands=ids_of([0]), timely_reply=True))
    known = (await session.answer(amqp.SessionKnownCompleted)).commands or _EMPTY
    return ", ".join(f"{lower} to {upper}" for lower, upper in known.ranges)


@COMPLETION.rule(
    "session.completed.exclude-known-complete",
    "what is known to be completed is not told again",
    section="session.completed.commands, exclude-known-complete",
    obeys="not again",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    for _ in range(3):
        await session.do(amqp.ExecutionSync())
    await session.control(amqp.SessionKnownCompleted(commands=ids_of([0, 1, 2])))
    await session.do(amqp.ExecutionSync())
    last = [one for one in session.controls if isinstance(one, amqp.SessionCompleted)][-1]
    told = (last.commands or _EMPTY).ranges
    return "not again" if all(lower >= 3 for lower, _ in told) else f"{told}"


for _name, _title, _control in (
    (
        "completed.never-sent",
        "completed for commands that were never said ends the session",
        amqp.SessionCompleted(commands=ids_of(range(100, 200))),
    ),
    (
        "known-completed.ahead",
        "known-completed for commands that are not done ends the session",
        amqp.SessionKnownCompleted(commands=ids_of(range(100, 200))),
    ),
):

    async def _ahead(talk: SessionTalk, control: Control = _control) -> str:
        session = await talk.session()
        await session.control(control)
        return await session.outcome()

    COMPLETION.rule(
        f"session.{_name}",
        _title,
        section=f"session.{_name.partition('.')[0]}.commands",
        obeys=("exception *", "detach*"),
    )(_ahead)


@COMPLETION.rule(
    "session.gap.unused",
    "a gap of commands that were not said is taken, or not implemented",
    section="session.gap",
    strength="should",
    obeys=("goes on", "exception 540"),
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.control(amqp.SessionGap(commands=ids_of([session.counted()])))
    return await session.outcome()
