"""Transactions that others coordinate (AMQP 0-10, class dtx). No broker has to have them."""

from __future__ import annotations

from typing import Final, TypeAlias

from amqpgate.conformance.endings import Unexpected
from amqpgate.conformance.v0_10.dtx import dtx_session, xid
from amqpgate.conformance.v0_10.session import TestedSession
from amqpgate.conformance.v0_10.talk import SessionTalk, section
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.sequences import ids_of
from amqpgate.wire.v0_10.structs import Command

DTX: Final = section("dtx", "Distributed transactions")

_STATE: Final = "exception 409"
_NOT_ALLOWED: Final = "exception 530"
_UNKNOWN: Final = "exception 404"
_OK: Final = "xa-ok"


async def _xa(session: TestedSession, *commands: Command) -> str:
    """The status of the last command, or how the session ended."""
    said = ""
    for command in commands:
        try:
            found = await session.result(command, amqp.XaResult)
        except Unexpected as what:
            return str(what)
        status = amqp.XaStatus(found.status or 0)
        said = status.name.lower().replace("_", "-")
    return said


async def _played(talk: SessionTalk, *made: type[Command], **last: bool) -> str:
    """These commands on a branch of its own; the flags are the last one's."""
    session = await dtx_session(talk)
    branch = xid(talk)
    commands: list[Command] = [kind(xid=branch) for kind in made[:-1]]  # type: ignore[call-arg]
    commands.append(made[-1](xid=branch, **last))  # type: ignore[call-arg]
    said = await _xa(session, *commands)
    if not session.ended:
        # Nothing of it stays.
        await session.tried(amqp.DtxEnd(xid=branch, fail=True))
        cleaner = await dtx_session(talk)
        await cleaner.tried(amqp.DtxRollback(xid=branch))
    return said


_START, _END, _PREPARE = amqp.DtxStart, amqp.DtxEnd, amqp.DtxPrepare
_COMMIT, _ROLLBACK = amqp.DtxCommit, amqp.DtxRollback

_Played: TypeAlias = tuple[str, str, tuple[type[Command], ...], dict[str, bool], str | tuple[str, ...]]

#: The commands, the flags of the last one, and its status or exception.
_PLAYED: Final[tuple[_Played, ...]] = (
    ("start", "a branch begins", (_START,), {}, _OK),
    ("end", "a branch ends", (_START, _END), {}, _OK),
    (
        "end.fail",
        "a branch that fails can only be rolled back",
        (_START, _END),
        {"fail": True},
        "xa-rbrollback",
    ),
    ("end.suspend", "a branch is suspended", (_START, _END), {"suspend": True}, _OK),
    ("prepare", "a branch is prepared", (_START, _END, _PREPARE), {}, (_OK, "xa-rdonly")),
    (
        "commit.one-phase",
        "a branch is committed in one phase",
        (_START, _END, _COMMIT),
        {"one_phase": True},
        _OK,
    ),
    ("commit.two-phase", "a branch is committed in two phases", (_START, _END, _PREPARE, _COMMIT), {}, _OK),
    ("rollback", "a branch is rolled back", (_START, _END, _ROLLBACK), {}, _OK),
    ("rollback.prepared", "a prepared branch is rolled back", (_START, _END, _PREPARE, _ROLLBACK), {}, _OK),
    ("start.already-known", "a branch is not begun again", (_START, _END, _START), {}, _NOT_ALLOWED),
    (
        "start.join-and-resume",
        "a branch is not joined and resumed at once",
        (_START,),
        {"join": True, "resume": True},
        _NOT_ALLOWED,
    ),
    (
        "start.join.unknown-xid",
        "nobody joins a branch that nobody began",
        (_START,),
        {"join": True},
        _NOT_ALLOWED,
    ),
    (
        "start.resume.unknown-xid",
        "nobody resumes a branch that nobody began",
        (_START,),
        {"resume": True},
        _NOT_ALLOWED,
    ),
    (
        "end.suspend-and-fail",
        "a branch is not suspended and failed at once",
        (_START, _END),
        {"suspend": True, "fail": True},
        _NOT_ALLOWED,
    ),
    (
        "end.not-associated",
        "a branch of no session does not end",
        (_END,),
        {},
        (_STATE, _UNKNOWN, _NOT_ALLOWED),
    ),
    ("commit.unknown-xid", "a branch that nobody began is not committed", (_COMMIT,), {}, _UNKNOWN),
    ("rollback.unknown-xid", "a branch that nobody began is not rolled back", (_ROLLBACK,), {}, _UNKNOWN),
    ("prepare.unknown-xid", "a branch that nobody began is not prepared", (_PREPARE,), {}, _UNKNOWN),
    ("forget.unknown-xid", "a branch that nobody began is not forgotten", (amqp.DtxForget,), {}, _UNKNOWN),
    (
        "commit.not-disassociated",
        "a branch that has not ended is not committed",
        (_START, _COMMIT),
        {"one_phase": True},
        _STATE,
    ),
    (
        "prepare.not-disassociated",
        "a branch that has not ended is not prepared",
        (_START, _PREPARE),
        {},
        _STATE,
    ),
    (
        "rollback.not-disassociated",
        "a branch that has not ended is not rolled back",
        (_START, _ROLLBACK),
        {},
        _STATE,
    ),
    (
        "commit.one-phase.prepared",
        "a prepared branch is not committed in one phase",
        (_START, _END, _PREPARE, _COMMIT),
        {"one_phase": True},
        _STATE,
    ),
    (
        "commit.two-phase.not-prepared",
        "a branch that was not prepared is not committed in two phases",
        (_START, _END, _COMMIT),
        {},
        _STATE,
    ),
)
#: What qpidd does: its codes are others, and it forgets nothing.
_AS_QPID: Final = {
    "start.join-and-resume": "exception 503",
    "start.join.unknown-xid": _UNKNOWN,
    "start.resume.unknown-xid": "exception 503",
    "end.suspend-and-fail": "exception 503",
    "forget.unknown-xid": "exception 540",
}
for _name, _title, _made, _flags, _obeys in _PLAYED:

    async def _branch(
        talk: SessionTalk, made: tuple[type[Command], ...] = _made, flags: dict[str, bool] = _flags
    ) -> str:
        return await _played(talk, *made, **flags)

    _path = _name.split(".")
    DTX.rule(
        f"dtx.{_name}",
        _title,
        section=f"dtx.{_path[0]}, {_path[-1]}" if len(_path) > 1 else f"dtx.{_path[0]}",
        obeys=_obeys,
        qpid=_AS_QPID.get(_name, ()),
    )(_branch)

for _kind in (_START, _END, _PREPARE, _COMMIT, _ROLLBACK):
    _name = _kind.NAME.partition(".")[2]

    async def _unselected(talk: SessionTalk, kind: type[Command] = _kind) -> str:
        await dtx_session(talk)
        session = await talk.session()
        return await _xa(session, kind(xid=xid(talk)))  # type: ignore[call-arg]

    DTX.rule(
        f"dtx.{_name}.select-required",
        f"{_name} without select is an exception",
        section=f"dtx.{_name}, illegal-state",
        # Those that need no branch of the session's own may be done by any session.
        obeys=(_STATE, "exception 503") if _kind in (_START, _END) else (_STATE, "exception 503", _UNKNOWN),
    )(_unselected)


async def _branch_with_message(talk: SessionTalk, *ends: Command, branch: amqp.Xid) -> str:
    """How many messages there are before and after these commands behind a branch that published one."""
    session = await dtx_session(talk)
    queue = await talk.queue(session, exclusive=False, auto_delete=False)
    await _xa(session, amqp.DtxStart(xid=branch))
    await session.publish(queue)
    await _xa(session, amqp.DtxEnd(xid=branch))
    query = amqp.QueueQuery(queue=queue)
    before = (await session.result(query, amqp.QueueQueryResult)).message_count
    await _xa(session, *ends)
    return f"{before}, then {(await session.result(query, amqp.QueueQueryResult)).message_count}"


@DTX.rule(
    "dtx.commit.one-phase.transfer",
    "what a branch published is there once it is committed",
    section="dtx, transactionality",
    obeys="0, then 1",
)
async def _(talk: SessionTalk) -> str:
    branch = xid(talk)
    return await _branch_with_message(talk, amqp.DtxCommit(xid=branch, one_phase=True), branch=branch)


@DTX.rule(
    "dtx.commit.two-phase.transfer",
    "what a prepared branch published is there once it is committed",
    section="dtx.prepare, obligation-1",
    obeys="0, then 1",
)
async def _(talk: SessionTalk) -> str:
    branch = xid(talk)
    ends = amqp.DtxPrepare(xid=branch), amqp.DtxCommit(xid=branch)
    return await _branch_with_message(talk, *ends, branch=branch)


@DTX.rule(
    "dtx.prepare.transfer",
    "what a prepared branch published is not there before it is committed",
    section="dtx.prepare",
    obeys="0, then 0",
)
async def _(talk: SessionTalk) -> str:
    branch = xid(talk)
    said = await _branch_with_message(talk, amqp.DtxPrepare(xid=branch), branch=branch)
    await (await dtx_session(talk)).tried(amqp.DtxRollback(xid=branch))
    return said


@DTX.rule(
    "dtx.rollback.transfer",
    "what a branch published is not there where it is rolled back",
    section="dtx.rollback",
    obeys="0, then 0",
)
async def _(talk: SessionTalk) -> str:
    branch = xid(talk)
    return await _branch_with_message(talk, amqp.DtxRollback(xid=branch), branch=branch)


@DTX.rule(
    "dtx.rollback.accept",
    "what a branch accepted is not gone where it is rolled back",
    section="dtx.rollback",
    obeys="1 left",
)
async def _(talk: SessionTalk) -> str:
    session, branch = await dtx_session(talk), xid(talk)
    queue = await talk.queue(session, exclusive=False, auto_delete=False)
    await session.publish(queue)
    await _xa(session, amqp.DtxStart(xid=branch))
    await session.subscribe(queue)
    message = await session.message()
    await session.do(amqp.MessageAccept(transfers=ids_of([message.id])))
    await _xa(session, amqp.DtxEnd(xid=branch), amqp.DtxRollback(xid=branch))
    await session.control(amqp.SessionDetach(name=session.name))
    await session.answer(amqp.SessionDetached)
    other = await talk.session()
    found = await other.result(amqp.QueueQuery(queue=queue), amqp.QueueQueryResult)
    return f"{found.message_count} left"


@DTX.rule(
    "dtx.start.join",
    "another session joins a branch, and what both did is committed",
    section="dtx.start.join",
    obeys="2 messages",
)
async def _(talk: SessionTalk) -> str:
    one, branch = await dtx_session(talk), xid(talk)
    two = await dtx_session(talk)
    queue = await talk.queue(one, exclusive=False, auto_delete=False)
    await _xa(one, amqp.DtxStart(xid=branch))
    await _xa(two, amqp.DtxStart(xid=branch, join=True))
    for session in (one, two):
        await session.publish(queue)
        await _xa(session, amqp.DtxEnd(xid=branch))
    await _xa(one, amqp.DtxCommit(xid=branch, one_phase=True))
    found = await one.result(amqp.QueueQuery(queue=queue), amqp.QueueQueryResult)
    return f"{found.message_count} messages"


@DTX.rule(
    "dtx.start.resume",
    "a suspended branch is resumed",
    section="dtx.end.suspend, resume",
    obeys=_OK,
)
async def _(talk: SessionTalk) -> str:
    session, branch = await dtx_session(talk), xid(talk)
    suspended = amqp.DtxStart(xid=branch), amqp.DtxEnd(xid=branch, suspend=True)
    said = await _xa(session, *suspended, amqp.DtxStart(xid=branch, resume=True))
    await session.tried(amqp.DtxEnd(xid=branch), amqp.DtxRollback(xid=branch))
    return said


@DTX.rule(
    "dtx.end.session-closed",
    "a branch whose session ends is rolled back",
    section="dtx.end, session-closed",
    obeys=("xa-rbrollback", _UNKNOWN, "0 messages"),
)
async def _(talk: SessionTalk) -> str:
    session, branch = await dtx_session(talk), xid(talk)
    await _xa(session, amqp.DtxStart(xid=branch))
    await session.control(amqp.SessionDetach(name=session.name))
    await session.answer(amqp.SessionDetached)
    return await _xa(await dtx_session(talk), amqp.DtxPrepare(xid=branch))


@DTX.rule(
    "dtx.recover.in-doubt",
    "prepared branches are told by recover, and others are not",
    section="dtx.recover",
    obeys="the prepared one",
)
async def _(talk: SessionTalk) -> str:
    session, prepared, other = await dtx_session(talk), xid(talk), xid(talk)
    await _xa(session, amqp.DtxStart(xid=prepared), amqp.DtxEnd(xid=prepared), amqp.DtxPrepare(xid=prepared))
    await _xa(session, amqp.DtxStart(xid=other), amqp.DtxEnd(xid=other))
    found = await session.result(amqp.DtxRecover(), amqp.RecoverResult)
    items = found.in_doubt.items if found.in_doubt is not None else ()
    told = [
        branch
        for branch in (prepared, other)
        if any(isinstance(one, bytes) and (branch.global_id or b"") in one for one in items)
    ]
    await session.tried(amqp.DtxRollback(xid=prepared), amqp.DtxRollback(xid=other))
    return "the prepared one" if told == [prepared] else f"{len(told)} of them"


@DTX.rule(
    "dtx.set-timeout.effective",
    "a timeout that was set is told",
    section="dtx.set-timeout, effective",
    obeys="77",
)
async def _(talk: SessionTalk) -> str:
    session, branch = await dtx_session(talk), xid(talk)
    await _xa(session, amqp.DtxStart(xid=branch))
    await session.do(amqp.DtxSetTimeout(xid=branch, timeout=77))
    found = await session.result(amqp.DtxGetTimeout(xid=branch), amqp.GetTimeoutResult)
    await session.tried(amqp.DtxEnd(xid=branch, fail=True))
    return f"{found.timeout}"


for _timeout in (amqp.DtxGetTimeout, amqp.DtxSetTimeout):
    _name = _timeout.NAME.partition(".")[2]

    async def _no_branch(talk: SessionTalk, kind: type[Command] = _timeout) -> str:
        session = await dtx_session(talk)
        return await session.tried(kind(xid=xid(talk)))  # type: ignore[call-arg]

    DTX.rule(
        f"dtx.{_name}.unknown-xid",
        "a branch that nobody began has no timeout",
        section=f"dtx.{_name}, unknown-xid",
        obeys=_UNKNOWN,
    )(_no_branch)
