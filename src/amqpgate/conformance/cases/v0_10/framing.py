"""Frames (AMQP 0-10, chapter "Transport", "Frame Format")."""

from __future__ import annotations

from typing import Final

from amqpgate.conformance.case import Conversation
from amqpgate.conformance.v0_10.peer import command_frame, control_frame, frame
from amqpgate.conformance.v0_10.talk import SessionTalk, section
from amqpgate.protocol.v0_10.frames import ALONE, COMMAND, CONTROL
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.codec import encode_command, encode_control

FRAMING: Final = section("framing", "Frames")

_FORMAT: Final = "Transport: Frame Format"
_SYNC: Final = encode_command(amqp.ExecutionSync())
#: A framing error, by its code; Qpid's broker closes the socket without a word.
_ERROR: Final = "connection.close 501"
_HANGS_UP: Final = "hangs up"
#: How a proxy tells that its broker has hung up.
_RELAYED: Final = "connection.close 320"


def _sending(*frames: bytes) -> Conversation[SessionTalk]:
    """Frames on the channel of a session."""

    async def conversation(talk: SessionTalk) -> str:
        session = await talk.session()
        await session.peer.send(*frames)
        return await session.outcome()

    return conversation


for _name, _title, _size in (
    ("below-header", "a frame that claims fewer bytes than its header has ends the connection", 11),
    ("zero", "a frame that claims no bytes ends the connection", 0),
):
    FRAMING.rule(
        f"framing.frame.size.{_name}",
        _title,
        section=_FORMAT,
        obeys=_ERROR,
        qpid=_HANGS_UP,
    )(_sending(frame(ALONE, COMMAND, _SYNC, size=_size)))

for _name, _title, _flags in (
    ("version-1", "another version of framing ends the connection", 0x40 | ALONE),
    ("version-3", "the last version of framing that could be said ends the connection", 0xC0 | ALONE),
):
    FRAMING.rule(f"framing.frame.{_name}", _title, section=_FORMAT, obeys=(_ERROR, _HANGS_UP))(
        _sending(frame(_flags, COMMAND, _SYNC))
    )

for _kind in (4, 15, 255):
    FRAMING.rule(
        f"framing.segment-type.{_kind}",
        f"a segment of type {_kind}, which there is not, ends the connection",
        section="domain segment-type",
        obeys=_ERROR,
        qpid=_HANGS_UP,
    )(_sending(frame(ALONE, _kind, _SYNC)))


@FRAMING.rule(
    "framing.frame.reserved.ignored",
    "reserved bytes of a frame's header mean nothing",
    section=_FORMAT,
    strength="should",
    obeys="goes on",
    qpid=(_HANGS_UP, _RELAYED),
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    said = bytearray(command_frame(amqp.ExecutionSync()))
    said[4] = 0xFF
    said[8:12] = b"\xff\xff\xff\xff"
    await session.peer.send(bytes(said))
    session.counted()
    return await session.outcome()


@FRAMING.rule(
    "framing.frame.split",
    "a frame may come byte by byte",
    section=_FORMAT,
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    for byte in command_frame(amqp.ExecutionSync()):
        await session.peer.send(bytes([byte]))
    session.counted()
    return await session.outcome()


@FRAMING.rule(
    "framing.frame.many",
    "a thousand frames may come at once",
    section=_FORMAT,
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.peer.send(command_frame(amqp.ExecutionSync()) * 1000)
    for _ in range(1000):
        session.counted()
    return await session.outcome()


@FRAMING.rule(
    "framing.frame.cut-short",
    "whoever hangs up amid a frame harms nobody else",
    section=_FORMAT,
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.peer.send(command_frame(amqp.ExecutionSync())[:-1])
    await session.peer.aclose()
    return await (await talk.session()).outcome()


for _name, _title, _payload in (
    ("connection", "a control of the connection that there is not ends the connection", b"\x01\x7f\0\0"),
    ("class", "a control of a class that there is not ends the connection", b"\x7f\x01\0\0"),
):
    FRAMING.rule(
        f"framing.control.{_name}.unknown",
        _title,
        section="Formal Notation: controls",
        obeys=(_ERROR, "exception 503", "exception 540"),
        qpid=_HANGS_UP,
    )(_sending(frame(ALONE, CONTROL, _payload)))

for _name, _title, _payload in (
    ("class", "a command of a class that there is not is an exception", b"\x7f\x01\x01\0\0\0"),
    ("code", "a command that its class does not have is an exception", b"\x04\x7f\x01\0\0\0"),
):
    FRAMING.rule(
        f"framing.command.{_name}.unknown",
        _title,
        section="Formal Notation: commands",
        obeys=("exception 503", "exception 540", _ERROR),
        qpid=_HANGS_UP,
    )(_sending(frame(ALONE, COMMAND, _payload)))

for _name, _title, _payload in (
    ("empty", "a command segment of no bytes is malformed", b""),
    ("header-size", "a session header of no bytes is malformed", b"\x03\x01\0\0\0"),
    ("cut-short", "a command whose fields are cut short is malformed", b"\x08\x03\x01\0\x01\0\xff"),
    ("trailing", "bytes behind the last field are malformed", _SYNC + b"\0\0"),
    ("packing", "packing flags of no field are malformed", b"\x03\x01\x01\0\0\x80"),
):
    FRAMING.rule(
        f"framing.command.{_name}",
        _title,
        section="Types: packing",
        obeys=(_ERROR, "exception 503", "exception 531", "exception 542"),
        # What it need not read it does not see.
        qpid=(_HANGS_UP, "goes on", "silence"),
    )(_sending(frame(ALONE, COMMAND, _payload)))


@FRAMING.rule(
    "framing.control.track",
    "a control on the track of commands ends the connection, or is taken",
    section="domain track",
    strength="should",
    obeys=(_ERROR, "goes on"),
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.peer.send(frame(ALONE, CONTROL, encode_control(amqp.SessionFlush(completed=True)), track=1))
    return await session.outcome()


@FRAMING.rule(
    "framing.heartbeat.any-time",
    "heartbeats may come at any time",
    section="connection.heartbeat",
    obeys="goes on",
)
async def _(talk: SessionTalk) -> str:
    session = await talk.session()
    await session.peer.send(control_frame(amqp.ConnectionHeartbeat()) * 3)
    return await session.outcome()


@FRAMING.rule(
    "framing.frame.max-frame-size.exact",
    "a frame of max-frame-size is taken",
    section="connection.tune-ok.max-frame-size, max-frame-size",
    obeys="4084 bytes",
)
async def _(talk: SessionTalk) -> str:
    return await _echoed(talk, 4096, 4096 - 12)


@FRAMING.rule(
    "framing.frame.max-frame-size.above",
    "a frame above max-frame-size ends the connection",
    section="connection.tune-ok.max-frame-size, max-frame-size",
    obeys=(_ERROR, _HANGS_UP),
    # qpid-python sends such frames whatever was tuned.
    qpid="5000 bytes",
)
async def _(talk: SessionTalk) -> str:
    return await _echoed(talk, 4096, 5000)


async def _echoed(talk: SessionTalk, agreed: int, size: int) -> str:
    """A body in one frame, where frames of so many bytes were agreed; how much of it comes back."""
    peer = await talk.connected(max_frame_size=agreed)
    session = await talk.session(peer)
    queue = await talk.queue(session)
    peer.cut_at(size + 12)
    await session.publish(queue, bytes(size))
    await session.subscribe(queue)
    return f"{len((await session.message()).body)} bytes"


@FRAMING.rule(
    "framing.frame.max-frame-size.kept",
    "no frame of the peer's is larger than was agreed",
    section="connection.tune-ok.max-frame-size, max-frame-size",
    obeys="kept",
)
async def _(talk: SessionTalk) -> str:
    peer = await talk.connected(max_frame_size=4096)
    session = await talk.session(peer)
    queue = await talk.queue(session)
    await session.publish(queue, bytes(50_000))
    await session.subscribe(queue)
    message = await session.message()
    if len(message.body) != 50_000:
        return f"{len(message.body)} bytes"
    return "kept" if peer.largest <= 4096 else f"a frame of {peer.largest} bytes"
