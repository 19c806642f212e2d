"""Sessions: attach, detach, and which commands are done (AMQP 0-10, class session)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.endings import Unexpected, Untestable
from amqpgate.conformance.v0_10.peer import command_frame
from amqpgate.conformance.v0_10.session import TestedSession
from amqpgate.conformance.v0_10.talk import SessionTalk, section
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.sequences import SequenceSet

SESSION: Final = section("session", "Sessions")

_EMPTY: Final = SequenceSet()


async def _attached(session: TestedSession, *, force: bool = False) -> str:
    """``attached``, or what came in its place."""
    await session.control(amqp.SessionAttach(name=session.name, force=force))
    try:
        await session.answer(amqp.SessionAttached)
    except Unexpected as what:
        return str(what)
    return "attached"


@SESSION.rule(
    "session.attach.answered",
    "attach is answered with attached, which has the name",
    section="session.attach",
    obeys="the same name",
)
async def _(talk: SessionTalk) -> str:
    session = talk.attachable(await talk.connected(), 0)
    await session.control(amqp.SessionAttach(name=session.name))
    said = await session.answer(amqp.SessionAttached)
    return "the same name" if said.name == session.name else f"{said.name!r}"


@SESSION.rule(
    "session.attach.one-transport-per-session",
    "a session that is attached elsewhere is busy",
    section="session.attach, one-transport-per-session",
    obeys="detached 1",
)
async def _(talk: SessionTalk) -> str:
    name = talk.bytes_name()
    await talk.session(name=name)
    return await _attached(talk.attachable(await talk.connected(), 0, name))


@SESSION.rule(
    "session.attach.one-transport-per-session.channels",
    "a session that is attached to another channel of the connection is busy",
    section="session.attach, one-transport-per-session",
    obeys="detached 1",
)
async def _(talk: SessionTalk) -> str:
    name = talk.bytes_name()
    session = await talk.session(name=name)
    return await _attached(talk.attachable(session.peer, 1, name))


@SESSION.rule(
    "session.attach.one-session-per-transport",
    "a channel that has a session is busy",
    section="session.attach, one-session-per-transport",
    obeys="detached 2",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    other = talk.attachable(session.peer, 0)
    return await _attached(other)


@SESSION.rule(
    "session.attach.idempotence",
    "to attach what is attached already changes nothing",
    section="session.attach, idempotence",
    obeys="attached, goes on",
    # It says nothing to that.
    qpid="silence",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.do(amqp.ExecutionSync())
    said = await _attached(session)
    return f"{said}, {await session.outcome()}" if said == "attached" else said


@SESSION.rule(
    "session.attach.force",
    "force attaches a session that is attached elsewhere",
    section="session.attach.force",
    obeys="attached",
)
async def _(talk: SessionTalk) -> str:
    name = talk.bytes_name()
    await talk.session(name=name)
    return await _attached(talk.attachable(await talk.connected(), 0, name), force=True)


@SESSION.rule(
    "session.attach.force.channels",
    "force takes a session from another channel, which is told that it is detached",
    section="session.attach.force",
    obeys=("attached; detached *", "attached; detach"),
    qpid="attached; goes on",
)
async def _(talk: SessionTalk) -> str:
    name = talk.bytes_name()
    first = await talk.session(name=name)
    second = talk.attachable(first.peer, 1, name)
    said = await _attached(second, force=True)
    return f"{said}; {await first.outcome()}"


@SESSION.rule(
    "session.attach.name.bytes",
    "a name may be any bytes",
    section="session.attach.name",
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    return await (await talk.session(name=talk.bytes_name() + bytes(range(0, 256, 2)))).outcome()


@SESSION.rule(
    "session.attach.name.again",
    "the name of a session that was detached may be attached again",
    section="session.attach",
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.control(amqp.SessionDetach(name=session.name))
    await session.answer(amqp.SessionDetached)
    return await (await talk.session(session.peer, 0, session.name)).outcome()


@SESSION.rule(
    "session.attach.again.fresh",
    "what is attached again without a granted timeout is a new session: its queues are gone",
    section="session.expected, commands-empty-means-new-session",
    obeys="exception 404",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.control(amqp.SessionDetach(name=session.name))
    await session.answer(amqp.SessionDetached)
    again = await talk.session(session.peer, 0, session.name)
    return await again.tried(amqp.QueueDeclare(queue=queue, passive=True))


@SESSION.rule(
    "session.detach.answered",
    "detach is answered with detached, normal",
    section="session.detach",
    obeys="detached 0",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.control(amqp.SessionDetach(name=session.name))
    return f"detached {(await session.answer(amqp.SessionDetached)).code}"


@SESSION.rule(
    "session.detach.not-attached",
    "to detach what is not attached is answered with not-attached",
    section="session.detach",
    obeys="detached 3",
)
async def _(talk: SessionTalk) -> str:
    session = talk.attachable(await talk.connected(), 0)
    await session.control(amqp.SessionDetach(name=session.name))
    return f"detached {(await session.answer(amqp.SessionDetached)).code}"


@SESSION.rule(
    "session.detach.others",
    "other sessions of the connection go on",
    section="session.detach",
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    first = await talk.session()
    second = await talk.session(first.peer, 1)
    await first.control(amqp.SessionDetach(name=first.name))
    await first.answer(amqp.SessionDetached)
    return await second.outcome()


@SESSION.rule(
    "session.attachment.control",
    "a control of a session that is not attached is answered with not-attached",
    section="session, attachment",
    obeys="detached 3",
)
async def _(talk: SessionTalk) -> str:
    session = talk.attachable(await talk.connected(), 0)
    await session.control(amqp.SessionFlush(completed=True))
    return f"detached {(await session.answer(amqp.SessionDetached)).code}"


@SESSION.rule(
    "session.attachment.command",
    "a command on a channel without a session is answered with not-attached",
    section="session, attachment",
    obeys="detached 3",
    # It drops such commands.
    qpid="silence",
)
async def _(talk: SessionTalk) -> str:
    session = talk.attachable(await talk.connected(), 0)
    return await session.outcome()


@SESSION.rule(
    "session.attachment.command.not-done",
    "a command on a channel without a session is not carried out",
    section="session, attachment",
    obeys="exception 404",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    name = talk.bytes_name()
    talk.leaves(amqp.QueueDelete(queue=name))
    await session.peer.send(command_frame(amqp.QueueDeclare(queue=name), channel=7))
    await session.do(amqp.ExecutionSync())
    return await session.tried(amqp.QueueDeclare(queue=name, passive=True))


@SESSION.rule(
    "session.request-timeout.answered",
    "request-timeout is answered with the timeout that is granted, no longer than was asked for",
    section="session.request-timeout, maximum-granted-timeout",
    obeys="within",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.control(amqp.SessionRequestTimeout(timeout=3))
    granted = (await session.answer(amqp.SessionTimeout)).timeout
    return "within" if granted is not None and granted <= 3 else f"{granted}"


@SESSION.rule(
    "session.request-timeout.zero",
    "a timeout of 0 is granted",
    section="session.request-timeout",
    obeys="0",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.control(amqp.SessionRequestTimeout(timeout=0))
    return f"{(await session.answer(amqp.SessionTimeout)).timeout}"


@SESSION.rule(
    "session.request-timeout.kept",
    "a session whose timeout was granted is there after its connection has ended",
    section="session.timeout",
    obeys="attached, expects 1",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.control(amqp.SessionRequestTimeout(timeout=60))
    if not (await session.answer(amqp.SessionTimeout)).timeout:
        raise Untestable("it grants no timeout")
    await session.do(amqp.ExecutionSync())
    await session.peer.aclose()
    again = talk.attachable(await talk.connected(), 0, session.name)
    said = await _attached(again)
    await again.control(amqp.SessionFlush(expected=True))
    expected = (await again.answer(amqp.SessionExpected)).commands or _EMPTY
    return f"{said}, expects {expected.ranges[0][0] if expected.ranges else 'nothing'}"


@SESSION.rule(
    "session.control.unknown-name",
    "to detach another name than the channel's is answered with not-attached",
    section="session.detach.name",
    strength="should",
    obeys="detached 3",
    qpid="exception 542",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.control(amqp.SessionDetach(name=talk.bytes_name()))
    return f"detached {(await session.answer(amqp.SessionDetached)).code}"
