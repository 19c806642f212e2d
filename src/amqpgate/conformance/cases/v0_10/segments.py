"""Segments and assemblies (AMQP 0-10, chapter "Transport", "Assemblies, Segments, and Frames")."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import Conversation
from amqpgate.conformance.v0_10.peer import control_frame, frame
from amqpgate.conformance.v0_10.session import TestedSession
from amqpgate.conformance.v0_10.talk import SessionTalk, section
from amqpgate.protocol.v0_10.frames import (
    ALONE,
    BODY,
    COMMAND,
    CONTROL,
    FIRST_FRAME,
    FIRST_SEGMENT,
    HEADER,
    LAST_FRAME,
    LAST_SEGMENT,
)
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.codec import encode_command, encode_control, encode_header

SEGMENTS: Final = section("segments", "Segments and assemblies")

_ASSEMBLIES: Final = "Transport: Assemblies, Segments, and Frames"
_ERROR: Final = "connection.close 501"
#: How a proxy tells that its broker has hung up.
_RELAYED: Final = "connection.close 320"
_WHOLE: Final = FIRST_FRAME | LAST_FRAME
_TRANSFER: Final = encode_command(amqp.MessageTransfer(destination=b"", accept_mode=1, acquire_mode=0))


def _header(queue: bytes) -> bytes:
    return encode_header([amqp.DeliveryProperties(routing_key=queue)])


async def _arrived(session: TestedSession, queue: bytes) -> str:
    """What is in the queue after one transfer that was sent as frames."""
    session.counted()
    await session.do(amqp.ExecutionSync())
    await session.subscribe(queue, accept=1)
    return " and ".join(repr(one.body.decode()) for one in await session.drained()) or "nothing"


@SEGMENTS.rule(
    "segments.command.frames",
    "a command may come in several frames",
    section=_ASSEMBLIES,
    obeys="goes on",
    qpid=("hangs up", "silence"),
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    sync = encode_command(amqp.ExecutionSync())
    await session.peer.send(
        frame(FIRST_SEGMENT | LAST_SEGMENT | FIRST_FRAME, COMMAND, sync[:3]),
        frame(FIRST_SEGMENT | LAST_SEGMENT | LAST_FRAME, COMMAND, sync[3:]),
    )
    session.counted()
    return await session.outcome()


@SEGMENTS.rule(
    "segments.control.frames",
    "a control may come in several frames",
    section=_ASSEMBLIES,
    obeys="goes on",
    qpid=("hangs up", "silence"),
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    payload = encode_control(amqp.SessionFlush(completed=True))
    await session.peer.send(
        frame(FIRST_SEGMENT | LAST_SEGMENT | FIRST_FRAME, CONTROL, payload[:3]),
        frame(FIRST_SEGMENT | LAST_SEGMENT | LAST_FRAME, CONTROL, payload[3:]),
    )
    return await session.outcome()


@SEGMENTS.rule(
    "segments.header.frames",
    "a header may come in several frames",
    section=_ASSEMBLIES,
    obeys="'body'",
    qpid=("hangs up", _RELAYED),
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    header = _header(queue)
    await session.peer.send(
        frame(FIRST_SEGMENT | _WHOLE, COMMAND, _TRANSFER),
        frame(FIRST_FRAME, HEADER, header[:5]),
        frame(LAST_FRAME, HEADER, header[5:]),
        frame(LAST_SEGMENT | _WHOLE, BODY, b"body"),
    )
    return await _arrived(session, queue)


@SEGMENTS.rule(
    "segments.body.frames",
    "a body may come in several frames",
    section=_ASSEMBLIES,
    obeys="'body'",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.peer.send(
        frame(FIRST_SEGMENT | _WHOLE, COMMAND, _TRANSFER),
        frame(_WHOLE, HEADER, _header(queue)),
        frame(LAST_SEGMENT | FIRST_FRAME, BODY, b"b"),
        frame(LAST_SEGMENT, BODY, b"o"),
        frame(LAST_SEGMENT, BODY, b"d"),
        frame(LAST_SEGMENT | LAST_FRAME, BODY, b"y"),
    )
    return await _arrived(session, queue)


@SEGMENTS.rule(
    "segments.body.empty-frames",
    "frames of a body may be empty",
    section=_ASSEMBLIES,
    obeys="'body'",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.peer.send(
        frame(FIRST_SEGMENT | _WHOLE, COMMAND, _TRANSFER),
        frame(_WHOLE, HEADER, _header(queue)),
        frame(LAST_SEGMENT | FIRST_FRAME, BODY),
        frame(LAST_SEGMENT, BODY, b"body"),
        frame(LAST_SEGMENT | LAST_FRAME, BODY),
    )
    return await _arrived(session, queue)


@SEGMENTS.rule(
    "segments.header.alone",
    "a message may have a header and no body",
    section=_ASSEMBLIES,
    obeys="''",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    await session.peer.send(
        frame(FIRST_SEGMENT | _WHOLE, COMMAND, _TRANSFER),
        frame(LAST_SEGMENT | _WHOLE, HEADER, _header(queue)),
    )
    return await _arrived(session, queue)


async def _without_header(talk: SessionTalk, *frames: bytes) -> str:
    """A transfer without a routing key, to an exchange that sends it to a queue."""
    session = await talk.session()
    queue = await talk.queue(session)
    exchange = await talk.exchange(session, b"fanout")
    await session.do(amqp.ExchangeBind(queue=queue, exchange=exchange, binding_key=b""))
    transfer = amqp.MessageTransfer(destination=exchange, accept_mode=1, acquire_mode=0)
    first = FIRST_SEGMENT | _WHOLE if frames else ALONE
    await session.peer.send(frame(first, COMMAND, encode_command(transfer)), *frames)
    return await _arrived(session, queue)


@SEGMENTS.rule(
    "segments.body.alone",
    "a message may have a body and no header",
    section=_ASSEMBLIES,
    obeys="'body'",
)
async def _(talk: SessionTalk) -> str:
    return await _without_header(talk, frame(LAST_SEGMENT | _WHOLE, BODY, b"body"))


@SEGMENTS.rule(
    "segments.content.none",
    "a message may have neither header nor body",
    section=_ASSEMBLIES,
    obeys="''",
    # It completes the transfer, and drops it.
    qpid="nothing",
)
async def _(talk: SessionTalk) -> str:
    return await _without_header(talk)


@SEGMENTS.rule(
    "segments.assembly.controls-between",
    "controls of the same channel may come amid a command",
    section=_ASSEMBLIES,
    obeys="'body'",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    flush = control_frame(amqp.SessionFlush(completed=True))
    await session.peer.send(
        frame(FIRST_SEGMENT | _WHOLE, COMMAND, _TRANSFER),
        flush,
        frame(_WHOLE, HEADER, _header(queue)),
        flush,
        frame(LAST_SEGMENT | FIRST_FRAME, BODY, b"bo"),
        flush,
        frame(LAST_SEGMENT | LAST_FRAME, BODY, b"dy"),
    )
    return await _arrived(session, queue)


@SEGMENTS.rule(
    "segments.assembly.channels-between",
    "commands of other channels may come amid a command",
    section=_ASSEMBLIES,
    obeys="'one' and 'two'",
)
async def _(talk: SessionTalk) -> str:
    one = await talk.session()
    two = await talk.session(one.peer, channel=1)
    queues = [await talk.queue(session) for session in (one, two)]
    pieces = [
        (
            frame(FIRST_SEGMENT | _WHOLE, COMMAND, _TRANSFER, channel=channel),
            frame(_WHOLE, HEADER, _header(queue), channel=channel),
            frame(LAST_SEGMENT | _WHOLE, BODY, body, channel=channel),
        )
        for channel, queue, body in ((0, queues[0], b"one"), (1, queues[1], b"two"))
    ]
    await one.peer.send(*(piece for pair in zip(*pieces, strict=True) for piece in pair))
    return f"{await _arrived(one, queues[0])} and {await _arrived(two, queues[1])}"


def _out_of_place(*frames: bytes) -> Conversation[SessionTalk]:
    async def conversation(talk: SessionTalk) -> str:
        session = await talk.session()
        await session.peer.send(*frames)
        return await session.outcome()

    return conversation


for _name, _title, _frames in (
    ("header-first", "a header without a command before it", (frame(LAST_SEGMENT | _WHOLE, HEADER),)),
    ("body-first", "a body without a command before it", (frame(LAST_SEGMENT | _WHOLE, BODY, b"b"),)),
    (
        "no-first-frame",
        "a frame that goes on with a segment which has not begun",
        (frame(FIRST_SEGMENT | LAST_SEGMENT | LAST_FRAME, COMMAND, _TRANSFER),),
    ),
    (
        "command-amid-command",
        "a command amid another one's segments on the same channel",
        (
            frame(FIRST_SEGMENT | _WHOLE, COMMAND, _TRANSFER),
            frame(ALONE, COMMAND, encode_command(amqp.ExecutionSync())),
        ),
    ),
    (
        "header-behind-body",
        "a header behind a body",
        (
            frame(FIRST_SEGMENT | _WHOLE, COMMAND, _TRANSFER),
            frame(_WHOLE, BODY, b"b"),
            frame(LAST_SEGMENT | _WHOLE, HEADER),
        ),
    ),
    (
        "two-headers",
        "two header segments",
        (
            frame(FIRST_SEGMENT | _WHOLE, COMMAND, _TRANSFER),
            frame(_WHOLE, HEADER, _header(b"a")),
            frame(LAST_SEGMENT | _WHOLE, HEADER, _header(b"b")),
        ),
    ),
):
    SEGMENTS.rule(
        f"segments.assembly.{_name}",
        f"{_title} ends the connection",
        section=_ASSEMBLIES,
        obeys=(_ERROR, "hangs up"),
        qpid=("exception *", "goes on"),
    )(_out_of_place(*_frames))


@SEGMENTS.rule(
    "segments.command.content",
    "content behind a command that has none is an exception",
    section="Formal Notation: segments",
    obeys=("exception 503", _ERROR),
    # It has not implemented commands of several segments.
    qpid="exception 541",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.peer.send(
        frame(FIRST_SEGMENT | _WHOLE, COMMAND, encode_command(amqp.ExecutionSync())),
        frame(LAST_SEGMENT | _WHOLE, BODY, b"body"),
    )
    return await session.outcome()


@SEGMENTS.rule(
    "segments.header.order",
    "structs of a header may stand in any order",
    section="message.transfer, header",
    obeys="text/plain",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    structs = [
        amqp.MessageProperties(content_type=b"text/plain"),
        amqp.DeliveryProperties(routing_key=queue),
    ]
    transfer = amqp.MessageTransfer(destination=b"", accept_mode=1, acquire_mode=0)
    await session.completes(await session.say(transfer, structs, b"m", sync=True))
    await session.subscribe(queue)
    for struct in (await session.message()).structs:
        if isinstance(struct, amqp.MessageProperties):
            return (struct.content_type or b"nothing").decode()
    return "no message-properties"


@SEGMENTS.rule(
    "segments.header.unknown-struct",
    "a struct that nobody knows is carried, or refused",
    section="message.transfer, header",
    strength="should",
    obeys=("goes on", "exception *", _ERROR),
    qpid=("hangs up", _RELAYED),
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    queue = await talk.queue(session)
    header = _header(queue) + b"\0\0\0\x04\x7f\x7f\0\0"
    await session.peer.send(
        frame(FIRST_SEGMENT | _WHOLE, COMMAND, _TRANSFER),
        frame(LAST_SEGMENT | _WHOLE, HEADER, header),
    )
    session.counted()
    return await session.outcome()


SEGMENTS.rule(
    "segments.header.cut-short",
    "a header that is cut short is malformed",
    section="message.transfer, header",
    obeys=("exception 503", "exception 531", "exception 542", _ERROR),
    qpid=("hangs up", "goes on"),
)(
    _out_of_place(
        frame(FIRST_SEGMENT | _WHOLE, COMMAND, _TRANSFER),
        frame(LAST_SEGMENT | _WHOLE, HEADER, b"\0\0\0\x20\x04\x01\0\0"),
    )
)
