"""What becomes of deliveries (AMQP 0-10, message.accept, reject, release and acquire)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from amqpgate.conformance.endings import Unexpected, Untestable
from amqpgate.conformance.v0_10.peer import HeardCommand, frame
from amqpgate.conformance.v0_10.session import TestedSession
from amqpgate.conformance.v0_10.talk import SessionTalk, section
from amqpgate.protocol.v0_10.frames import ALONE, COMMAND
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.sequences import SequenceSet, ids_of

SETTLEMENT: Final = section("settlement", "Accept, reject, release, acquire")


async def _delivered(
    talk: SessionTalk, count: int, *, accept: int = 0, **queue: object
) -> tuple[TestedSession, bytes, list[HeardCommand]]:
    """A session that has so many deliveries, numbered, of a queue that outlives it."""
    session = await talk.session()
    said = {"exclusive": False, "auto_delete": False} | queue
    name = await talk.queue(session, **said)  # type: ignore[arg-type]
    for number in range(count):
        await session.publish(name, b"%d" % number)
    await session.subscribe(name, accept=accept, credit=count)
    await session.until(lambda: len(session.heard) == count)
    return session, name, session.heard


async def _left(talk: SessionTalk, session: TestedSession, queue: bytes) -> str:
    """What is in the queue when the session is over."""
    await session.control(amqp.SessionDetach(name=session.name))
    await session.answer(amqp.SessionDetached)
    other = await talk.session()
    await other.subscribe(queue, accept=1)
    return _bodies(await other.drained())


def _bodies(messages: Iterable[HeardCommand]) -> str:
    return " ".join(one.body.decode() for one in messages) or "nothing"


def _is_redelivered(message: HeardCommand) -> bool:
    return any(isinstance(one, amqp.DeliveryProperties) and one.redelivered for one in message.structs)


def _ids(messages: Iterable[HeardCommand]) -> SequenceSet:
    return ids_of(one.id for one in messages)


@SETTLEMENT.rule(
    "message.accept.all",
    "what is accepted is gone",
    section="message.accept",
    obeys="nothing",
)
async def _(talk: SessionTalk) -> str:
    session, queue, found = await _delivered(talk, 3)
    await session.do(amqp.MessageAccept(transfers=_ids(found)))
    return await _left(talk, session, queue)


@SETTLEMENT.rule(
    "message.accept.some",
    "what is not accepted is not gone",
    section="message.accept",
    obeys="0 2",
)
async def _(talk: SessionTalk) -> str:
    session, queue, found = await _delivered(talk, 3)
    await session.do(amqp.MessageAccept(transfers=_ids(found[1:2])))
    return await _left(talk, session, queue)


@SETTLEMENT.rule(
    "message.accept.ranges",
    "a set may have several ranges",
    section="Types: sequence-set",
    obeys="1 3",
)
async def _(talk: SessionTalk) -> str:
    session, queue, found = await _delivered(talk, 5)
    await session.do(amqp.MessageAccept(transfers=_ids(found[::2])))
    return await _left(talk, session, queue)


@SETTLEMENT.rule(
    "message.accept.none",
    "deliveries whose accept-mode is none are gone when they are sent",
    section="message.accept-mode",
    obeys="nothing",
)
async def _(talk: SessionTalk) -> str:
    session, queue, _ = await _delivered(talk, 3, accept=1)
    return await _left(talk, session, queue)


@SETTLEMENT.rule(
    "message.accept.completed-only",
    "to complete a delivery is not to accept it",
    section="message.accept",
    obeys="0 1 2",
)
async def _(talk: SessionTalk) -> str:
    session, queue, found = await _delivered(talk, 3)
    await session.finish(*(one.id for one in found))
    await session.do(amqp.ExecutionSync())
    return await _left(talk, session, queue)


for _name, _title, _ranges in (
    ("unknown", "ids of no delivery are ignored, or an exception", ((5000, 6000),)),
    ("huge", "a range of two thousand million ids is taken in no time, or an exception", ((0, 0x7FFF_FFF0),)),
    ("empty", "an empty set is taken", ()),
):

    async def _accepted(talk: SessionTalk, ranges: tuple[tuple[int, int], ...] = _ranges) -> str:
        session, _, _ = await _delivered(talk, 1)
        await session.say(amqp.MessageAccept(transfers=SequenceSet(ranges)))
        return await session.outcome()

    SETTLEMENT.rule(
        f"message.accept.{_name}",
        _title,
        section="message.accept.transfers",
        strength="should",
        obeys=("goes on", "exception *") if _ranges else "goes on",
    )(_accepted)

for _name, _title, _payload in (
    ("descending", "a range whose end is before its beginning is malformed", b"\0\x08\0\0\0\x09\0\0\0\x01"),
    ("cut-short", "a set whose length is no multiple of eight is malformed", b"\0\x04\0\0\0\x01"),
):

    async def _malformed(talk: SessionTalk, payload: bytes = _payload) -> str:
        session = await talk.session()
        # message.accept, its session header, and packing flags for one field.
        await session.peer.send(frame(ALONE, COMMAND, b"\x04\x02\x01\0\x01\0" + payload))
        return await session.outcome()

    SETTLEMENT.rule(
        f"message.accept.transfers.{_name}",
        _title,
        section="Types: sequence-set",
        obeys=("exception 503", "exception 531", "exception 542", "connection.close 501"),
        qpid="hangs up",
    )(_malformed)


@SETTLEMENT.rule(
    "message.reject.gone",
    "what is rejected does not come back",
    section="message.reject",
    obeys="nothing",
)
async def _(talk: SessionTalk) -> str:
    session, queue, found = await _delivered(talk, 2)
    await session.do(amqp.MessageReject(transfers=_ids(found), code=0, text=b""))
    return await _left(talk, session, queue)


@SETTLEMENT.rule(
    "message.reject.alternate-exchange",
    "what is rejected goes to the alternate exchange of its queue",
    section="message.reject, alternate-exchange",
    obeys="0 1",
)
async def _(talk: SessionTalk) -> str:
    owner = await talk.session()
    alternate, dead = await talk.exchange(owner, b"fanout"), await talk.queue(owner)
    await owner.do(amqp.ExchangeBind(queue=dead, exchange=alternate, binding_key=b""))
    session, _, found = await _delivered(talk, 2, alternate_exchange=alternate)
    await session.do(amqp.MessageReject(transfers=_ids(found), code=0, text=b""))
    await owner.subscribe(dead)
    await owner.until(lambda: len(owner.heard) == 2)
    return _bodies(owner.heard)


@SETTLEMENT.rule(
    "message.reject.code.absent",
    "a reject needs neither code nor text",
    section="message.reject.code",
    strength="should",
    obeys="nothing",
)
async def _(talk: SessionTalk) -> str:
    session, queue, found = await _delivered(talk, 1)
    await session.do(amqp.MessageReject(transfers=_ids(found)))
    return await _left(talk, session, queue)


@SETTLEMENT.rule(
    "message.release.back",
    "what is released can be delivered again",
    section="message.release",
    obeys="0 1 2",
)
async def _(talk: SessionTalk) -> str:
    session, _, found = await _delivered(talk, 3)
    ids = _ids(found)
    session.heard.clear()
    await session.do(amqp.MessageRelease(transfers=ids))
    await session.credit(3)
    await session.until(lambda: len(session.heard) == 3)
    return _bodies(sorted(session.heard, key=lambda one: one.body))


@SETTLEMENT.rule(
    "message.release.ordering",
    "what is released keeps its place",
    section="message.release, ordering",
    strength="should",
    obeys="0 1 2 3",
)
async def _(talk: SessionTalk) -> str:
    session, queue, found = await _delivered(talk, 3)
    ids = _ids(found)
    session.heard.clear()
    await session.publish(queue, b"3")
    await session.do(amqp.MessageRelease(transfers=ids))
    await session.credit(4)
    await session.until(lambda: len(session.heard) == 4)
    return _bodies(session.heard)


for _name, _title, _flag in (
    ("set", "a release with set-redelivered marks the message", True),
    ("not-set", "a release without set-redelivered leaves the message unmarked", False),
):

    async def _released(talk: SessionTalk, flag: bool = _flag) -> str:
        session, _, found = await _delivered(talk, 1)
        ids = _ids(found)
        session.heard.clear()
        await session.do(amqp.MessageRelease(transfers=ids, set_redelivered=flag))
        await session.credit(1)
        return "redelivered" if _is_redelivered(await session.message()) else "new"

    SETTLEMENT.rule(
        f"message.release.set-redelivered.{_name}",
        _title,
        section="message.release.set-redelivered",
        obeys="redelivered" if _flag else "new",
        strength="must" if _flag else "should",
    )(_released)


@SETTLEMENT.rule(
    "message.release.others",
    "what is released can be delivered to others",
    section="message.release",
    obeys="0",
)
async def _(talk: SessionTalk) -> str:
    session, queue, found = await _delivered(talk, 1)
    await session.do(amqp.MessageRelease(transfers=_ids(found)))
    other = await talk.session()
    await other.subscribe(queue)
    return (await other.message()).body.decode()


async def _looking(talk: SessionTalk, count: int, queue: bytes | None = None) -> tuple[TestedSession, bytes]:
    """A session whose deliveries are not acquired."""
    session = await talk.session()
    name = await talk.queue(session, exclusive=False, auto_delete=False) if queue is None else queue
    for number in range(count if queue is None else 0):
        await session.publish(name, b"%d" % number)
    try:
        await session.subscribe(name, acquire=1)
    except Unexpected as what:
        if str(what) == "exception 540":
            raise Untestable("all deliveries are acquired") from None
        raise
    await session.until(lambda: len(session.heard) == count)
    return session, name


async def _acquired(session: TestedSession, messages: Iterable[HeardCommand]) -> int:
    """How many of these the session has got."""
    found = await session.result(amqp.MessageAcquire(transfers=_ids(messages)), amqp.Acquired)
    return sum(upper - lower + 1 for lower, upper in (found.transfers or SequenceSet()).ranges)


@SETTLEMENT.rule(
    "message.acquire.done",
    "what was delivered without being acquired can be acquired, and accepted",
    section="message.acquire",
    obeys="1 acquired, left 0 2",
)
async def _(talk: SessionTalk) -> str:
    session, queue = await _looking(talk, 3)
    chosen = session.heard[1:2]
    count = await _acquired(session, chosen)
    await session.do(amqp.MessageAccept(transfers=_ids(chosen)))
    return f"{count} acquired, left {await _left(talk, session, queue)}"


@SETTLEMENT.rule(
    "message.acquire.one-to-one",
    "a message is acquired by one",
    section="message.acquire, one-to-one",
    obeys="1, then 0",
)
async def _(talk: SessionTalk) -> str:
    one, queue = await _looking(talk, 1)
    two, _ = await _looking(talk, 1, queue)
    first = await _acquired(one, one.heard)
    return f"{first}, then {await _acquired(two, two.heard)}"


@SETTLEMENT.rule(
    "message.acquire.not-acquired",
    "what nobody has acquired stays when the session ends",
    section="message.acquire",
    obeys="0 1",
)
async def _(talk: SessionTalk) -> str:
    session, queue = await _looking(talk, 2)
    return await _left(talk, session, queue)


@SETTLEMENT.rule(
    "message.acquire.released",
    "what was acquired can be released",
    section="message.release",
    obeys="0",
)
async def _(talk: SessionTalk) -> str:
    session, queue = await _looking(talk, 1)
    await _acquired(session, session.heard)
    await session.do(amqp.MessageRelease(transfers=_ids(session.heard)))
    other = await talk.session()
    await other.subscribe(queue)
    return (await other.message()).body.decode()


@SETTLEMENT.rule(
    "message.accept.acquisition",
    "what was not acquired cannot be accepted away",
    section="message.accept, acquisition",
    obeys=("0", "exception *"),
)
async def _(talk: SessionTalk) -> str:
    session, queue = await _looking(talk, 1)
    await session.do(amqp.MessageAccept(transfers=_ids(session.heard)))
    return await _left(talk, session, queue)


@SETTLEMENT.rule(
    "message.acquire.acquired-already",
    "to acquire what the session has already is no exception",
    section="message.acquire",
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    session, _, found = await _delivered(talk, 1)
    await _acquired(session, found)
    return await session.outcome()
