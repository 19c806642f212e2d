"""Credit (AMQP 0-10, message.set-flow-mode, flow, flush and stop)."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.v0_10.session import INFINITE, TestedSession
from amqpgate.conformance.v0_10.talk import SessionTalk, saying, section
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.sequences import ids_of
from amqpgate.wire.v0_10.structs import Command

FLOW: Final = section("flow", "Credit")

_MESSAGES: Final = 0
_BYTES: Final = 1
_CREDIT: Final = 0
_WINDOW: Final = 1


def _flow(unit: int, value: int) -> amqp.MessageFlow:
    return amqp.MessageFlow(destination=b"d", unit=unit, value=value)


async def _with_messages(
    talk: SessionTalk, count: int, *commands: Command, mode: int | None = _CREDIT, size: int = 1
) -> TestedSession:
    """A session with a subscription to a queue of so many messages, after these commands."""
    session = await talk.session()
    queue = await talk.queue(session)
    for _ in range(count):
        await session.publish(queue, bytes(size))
    subscribe = amqp.MessageSubscribe(queue=queue, destination=b"d", accept_mode=0, acquire_mode=0)
    await session.do(subscribe)
    if mode is not None:
        await session.do(amqp.MessageSetFlowMode(destination=b"d", flow_mode=mode))
    await session.do(*commands)
    return session


async def _delivered(session: TestedSession, count: int) -> str:
    """How many deliveries there are, of which so many have to come."""
    await session.until(lambda: len(session.heard) >= count)
    # What would follow has come when these are completed.
    await session.do(amqp.ExecutionSync(), amqp.ExecutionSync())
    return f"{len(session.heard)} delivered"


@FLOW.rule(
    "message.subscribe.initial-credit",
    "a new subscription has no credit",
    section="message.subscribe, initial-credit",
    obeys="0 delivered",
)
async def _(talk: SessionTalk) -> str:
    return await _delivered(await _with_messages(talk, 3), 0)


#: Credit that is given for five messages of a hundred bytes, and how many it is enough for.
_GIVEN: Final = (
    ("message", "credit for two messages is for two", (_flow(_BYTES, INFINITE), _flow(_MESSAGES, 2)), 2),
    ("sums", "credit adds up", (_flow(_BYTES, INFINITE), _flow(_MESSAGES, 1), _flow(_MESSAGES, 2)), 3),
    ("infinite", "credit may be without end", (_flow(_BYTES, INFINITE), _flow(_MESSAGES, INFINITE)), 5),
    (
        "infinite.more",
        "credit without end stays so when more is given",
        (_flow(_BYTES, INFINITE), _flow(_MESSAGES, INFINITE), _flow(_MESSAGES, 1)),
        5,
    ),
    ("message.alone", "credit for messages alone is not enough", (_flow(_MESSAGES, 5),), 0),
    ("byte.alone", "credit for bytes alone is not enough", (_flow(_BYTES, INFINITE),), 0),
    ("zero", "credit for no messages is none", (_flow(_BYTES, INFINITE), _flow(_MESSAGES, 0)), 0),
    (
        "byte.few",
        "no message is delivered that has more bytes than the credit",
        (_flow(_MESSAGES, 5), _flow(_BYTES, 50)),
        0,
    ),
)
for _name, _title, _commands, _count in _GIVEN:

    async def _given(
        talk: SessionTalk, commands: tuple[amqp.MessageFlow, ...] = _commands, count: int = _count
    ) -> str:
        return await _delivered(await _with_messages(talk, 5, *commands, size=100), count)

    FLOW.rule(f"message.flow.{_name}", _title, section="message.flow", obeys=f"{_count} delivered")(_given)


@FLOW.rule(
    "message.set-flow-mode.byte-accounting",
    "bytes of header and body are counted",
    section="message.set-flow-mode, byte-accounting",
    obeys="2 delivered",
)
async def _(talk: SessionTalk) -> str:
    # Two bodies and their headers fit, and not three.
    session = await _with_messages(talk, 5, _flow(_MESSAGES, 5), _flow(_BYTES, 25_000), size=10_000)
    return await _delivered(session, 2)


@FLOW.rule(
    "message.flow.later",
    "credit that is given later counts",
    section="message.flow",
    obeys="1 delivered, then 3 delivered",
)
async def _(talk: SessionTalk) -> str:
    session = await _with_messages(talk, 5, _flow(_BYTES, INFINITE), _flow(_MESSAGES, 1))
    first = await _delivered(session, 1)
    await session.do(_flow(_MESSAGES, 2))
    return f"{first}, then {await _delivered(session, 3)}"


@FLOW.rule(
    "message.flow.waiting",
    "credit that is not used yet is for messages that come later",
    section="message.flow",
    obeys="1 delivered",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.subscribe(queue, credit=1)
    for _ in range(2):
        await session.publish(queue)
    return await _delivered(session, 1)


for _id in ("message.subscribe.default-flow-mode", "message.set-flow-mode.window"):

    async def _window(talk: SessionTalk, mode: int | None = None if "default" in _id else _WINDOW) -> str:
        session = await _with_messages(talk, 3, _flow(_BYTES, INFINITE), _flow(_MESSAGES, 1), mode=mode)
        first = await _delivered(session, 1)
        await session.finish(session.heard[0].id)
        return f"{first}, then {await _delivered(session, 2)}"

    FLOW.rule(
        _id,
        "a new subscription's credit is a window: what is completed gives it back"
        if "default" in _id
        else "the credit of a window comes back when a delivery is completed",
        section="message.subscribe, default-flow-mode" if "default" in _id else "message.set-flow-mode",
        obeys="1 delivered, then 2 delivered",
    )(_window)


@FLOW.rule(
    "message.set-flow-mode.credit",
    "the credit of credit mode does not come back",
    section="message.set-flow-mode",
    obeys="1 delivered",
)
async def _(talk: SessionTalk) -> str:
    session = await _with_messages(talk, 3, _flow(_BYTES, INFINITE), _flow(_MESSAGES, 1))
    await _delivered(session, 1)
    number = session.heard[0].id
    await session.finish(number)
    await session.do(amqp.MessageAccept(transfers=ids_of([number])))
    return await _delivered(session, 1)


@FLOW.rule(
    "message.set-flow-mode.window.accept",
    "accepting gives no window back, completing does",
    section="message.set-flow-mode",
    obeys="1 delivered",
)
async def _(talk: SessionTalk) -> str:
    session = await _with_messages(talk, 3, _flow(_BYTES, INFINITE), _flow(_MESSAGES, 1), mode=_WINDOW)
    await _delivered(session, 1)
    await session.do(amqp.MessageAccept(transfers=ids_of([session.heard[0].id])))
    return await _delivered(session, 1)


@FLOW.rule(
    "message.set-flow-mode.mode-switching",
    "the mode is changed while there is no credit",
    section="message.set-flow-mode, mode-switching",
    obeys="1 delivered, then 2 delivered",
)
async def _(talk: SessionTalk) -> str:
    session = await _with_messages(talk, 3, _flow(_BYTES, INFINITE), _flow(_MESSAGES, 1))
    first = await _delivered(session, 1)
    window = amqp.MessageSetFlowMode(destination=b"d", flow_mode=_WINDOW)
    await session.do(amqp.MessageStop(destination=b"d"), window)
    await session.do(_flow(_BYTES, INFINITE), _flow(_MESSAGES, 1))
    return f"{first}, then {await _delivered(session, 2)}"


@FLOW.rule(
    "message.flush.completes",
    "flush is completed once all is delivered that there is credit for",
    section="message.flush",
    obeys="3 delivered",
)
async def _(talk: SessionTalk) -> str:
    session = await _with_messages(talk, 3, _flow(_BYTES, INFINITE), _flow(_MESSAGES, 5))
    return f"{len(await session.drained())} delivered"


@FLOW.rule(
    "message.flush.empties",
    "there is no credit behind flush",
    section="message.flush",
    obeys="0 delivered",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.subscribe(queue, credit=5)
    await session.drained()
    await session.publish(queue)
    return await _delivered(session, 0)


@FLOW.rule(
    "message.flush.infinite",
    "infinite credit is none behind flush, too",
    section="message.flush",
    obeys="0 delivered",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.subscribe(queue)
    await session.drained()
    await session.publish(queue)
    return await _delivered(session, 0)


@FLOW.rule(
    "message.flush.no-credit",
    "flush without credit delivers nothing",
    section="message.flush",
    obeys="0 delivered",
)
async def _(talk: SessionTalk) -> str:
    session = await _with_messages(talk, 3)
    return f"{len(await session.drained())} delivered"


@FLOW.rule(
    "message.flush.many",
    "flush delivers a thousand messages, in order, and each once",
    section="message.flush",
    obeys="in order",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    transfer = amqp.MessageTransfer(destination=b"", accept_mode=1, acquire_mode=0)
    bodies = [b"%d" % number for number in range(1000)]
    for body in bodies:
        await session.say(transfer, [amqp.DeliveryProperties(routing_key=queue)], body)
    await session.do(amqp.ExecutionSync())
    await session.subscribe(queue, accept=1)
    return "in order" if [one.body for one in await session.drained()] == bodies else "otherwise"


@FLOW.rule(
    "message.stop.ends",
    "nothing is delivered after stop is completed",
    section="message.stop",
    obeys="0 delivered",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.subscribe(queue)
    await session.do(amqp.MessageStop(destination=b"d"))
    await session.publish(queue)
    return await _delivered(session, 0)


@FLOW.rule(
    "message.stop.begins-again",
    "what was stopped begins again with new credit",
    section="message.stop",
    obeys="1 delivered",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.subscribe(queue)
    await session.do(amqp.MessageStop(destination=b"d"))
    await session.publish(queue)
    await session.credit(1)
    return await _delivered(session, 1)


for _name, _command in (
    ("set-flow-mode", amqp.MessageSetFlowMode(destination=b"no-such-destination", flow_mode=0)),
    ("flow", amqp.MessageFlow(destination=b"no-such-destination", unit=0, value=1)),
    ("flush", amqp.MessageFlush(destination=b"no-such-destination")),
    ("stop", amqp.MessageStop(destination=b"no-such-destination")),
):
    FLOW.rule(
        f"message.{_name}.destination-not-found",
        f"{_name} of a subscription that is not there is an exception",
        section=f"message.{_name}.destination",
        strength="should",
        obeys="exception 404",
    )(saying(_command))
