"""A connection of AMQP 0-10 in either role, with its sessions: every cut of the bytes is the same.

Beside the peer there is an owner, who finishes and sends. What the connection has to say must be frames, ids
must count up, and nothing may come after a connection is closed.
"""

from __future__ import annotations

from collections.abc import Iterator

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.events import (
    ConnectionClosed,
    ConnectionEvent,
    ConnectionFailed,
    IncomingBody,
    IncomingCommand,
    SessionBegun,
)
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.sequences import SequenceSet, serial_add
from amqpgate.wire.v0_10.structs import Control
from tests.fuzz.choices import Choices
from tests.support.said_0_10 import Splitter
from tests.support.talk_0_10 import ALONE, KEY, TRANSFER, B, E, Talk, b, command, control, e, frame

MOST = 512
TOKENS = (
    b"\x0f\0",
    b"\x0b\1",
    b"\2\1",
    b"\2\x0a",
    b"\2\x0b",
    b"\2\x07",
    b"\3\1\1\1\0\0",
    b"\xff\xff",
    b"\0\x08",
)

#: What an owner does, as against what its peer sends.
_Owner = tuple[str, int]


def _set(choices: Choices) -> SequenceSet:
    lower = serial_add(choices.below(12), -2)
    return SequenceSet(((lower, serial_add(lower, choices.below(3))),))


def _control(choices: Choices) -> Control:
    name = choices.pick((b"a", b"b"))
    return choices.pick(
        (
            lambda: amqp.SessionFlush(expected=True, confirmed=choices.flag(), completed=True),
            lambda: amqp.SessionCompleted(commands=_set(choices), timely_reply=choices.flag()),
            lambda: amqp.SessionKnownCompleted(commands=_set(choices)),
            lambda: amqp.SessionCommandPoint(command_id=serial_add(choices.below(6), -3), command_offset=0),
            lambda: amqp.SessionAttach(name=name, force=choices.flag()),
            lambda: amqp.SessionAttached(name=name),
            lambda: amqp.SessionDetach(name=name),
            lambda: amqp.SessionDetached(name=name, code=0),
            lambda: amqp.SessionRequestTimeout(timeout=choices.byte()),
            lambda: amqp.SessionGap(),
        )
    )()


def _said(choices: Choices) -> bytes:
    """Something that a peer sends, mostly right."""
    channel = choices.below(2)
    match choices.below(12):
        case 0 | 1 | 2:
            return control(_control(choices), channel)
        case 3 | 4:
            sync = command(amqp.ExecutionSync(), sync=choices.flag(), channel=channel)
            return sync * (1 + choices.below(3))
        case 5 | 6 | 7:
            whole = command(TRANSFER, KEY if choices.flag() else None, choices.some(9), channel=channel)
            at = int.from_bytes(whole[2:4], "big")
            between = control(_control(choices), channel) if choices.flag() else b""
            return whole[:at] + between + whole[at:]
        case 8:
            raw = command(amqp.ExecutionSync())[12:]
            at = choices.below(len(raw))
            middle = control(_control(choices), channel) if choices.flag() else b""
            return (
                frame(B | E | b, 1, raw[:at], channel=channel)
                + middle
                + frame(B | E | e, 1, raw[at:], channel=channel)
            )
        case 9:
            kind = choices.below(4)
            return frame(choices.below(16), kind, choices.some(20), channel=channel, track=choices.below(3))
        case 10:
            return frame(ALONE, choices.below(2), choices.some(20), channel=channel)
        case _:
            if choices.rarely():
                return choices.some(30)
            return control(amqp.ConnectionClose(200) if choices.rarely() else amqp.ConnectionHeartbeat())


def _steps(choices: Choices) -> Iterator[bytes | _Owner]:
    while choices:
        if choices.below(4):
            yield b"".join(_said(choices) for _ in range(1 + choices.below(3)))
        else:
            yield choices.pick(("finish", "send", "body", "fail", "detach", "attach")), choices.byte()


def _act(talk: Talk, act: str, number: int) -> None:
    """The owner's part; what it may not do now is a ValueError."""
    connection = talk.connection
    session = connection.sessions.get(number & 1)
    try:
        if act == "attach" and connection.role is Role.CLIENT:
            connection.attach(number & 1, b"a" if number & 2 else b"b")
        elif session is None:
            return
        elif act == "finish":
            session.finish(number >> 2, (number >> 2) + (number & 2), tell=number % 5 == 0)
        elif act == "send":
            session.send(TRANSFER, KEY, b"" if number & 4 else b"body", sync=bool(number & 8), goes_on=False)
        elif act == "body":
            session.send(TRANSFER, KEY, goes_on=True)
            session.send_body(b"b" * (number >> 4), is_last=False)
            session.send_body(b"y" * (number >> 6), is_last=True)
        elif act == "fail":
            session.fail(ProtocolViolation(404, "gone"), number)
        elif act == "detach":
            session.detach()
    except ValueError:
        pass


def _play(
    role: Role, steps: list[bytes | _Owner], *, bytewise: bool
) -> tuple[list[ConnectionEvent], list[bytes]]:
    talk = Talk(role)
    talk.attached()
    events: list[ConnectionEvent] = []
    written = []
    for step in steps:
        if isinstance(step, tuple):
            _act(talk, *step)
        else:
            for at in range(len(step)) if bytewise else (0,):
                events += talk.say(step[at : at + 1] if bytewise else step)
        written.append(talk.connection.take_output())
    return events, written


def _joined(events: list[ConnectionEvent]) -> list[str]:
    return [repr(event) for event in events]


def seeds() -> Iterator[bytes]:
    """Each kind of step, by either role."""
    for role in range(2):
        for kind in range(12):
            for step in range(4):
                yield bytes((role, step, 0, 0, kind, *range(20)))


def check(data: bytes) -> None:
    """The same steps in one go and byte by byte."""
    choices = Choices(data)
    role = choices.pick((Role.CLIENT, Role.SERVER))
    steps = list(_steps(choices))
    events, written = _play(role, steps, bytewise=False)
    split, again = _play(role, steps, bytewise=True)
    assert _joined(events) == _joined(split)
    assert written == again
    said = list(Splitter(header=False).feed(b"".join(written)))
    ends = [
        number for number, one in enumerate(events) if isinstance(one, ConnectionClosed | ConnectionFailed)
    ]
    if ends:
        after = events[ends[0] + 1 :]
        assert all(not isinstance(one, IncomingCommand | IncomingBody | SessionBegun) for one in after), after
        names = [one.control.NAME for one in said if one.control is not None]
        assert names[-1] in ("connection.close", "connection.close-ok"), names
    expected: dict[int, int] = {}
    for one in events:
        if isinstance(one, SessionBegun):
            expected.pop(one.channel, None)
        elif isinstance(one, IncomingCommand):
            assert one.command_id == expected.get(one.channel, one.command_id)
            expected[one.channel] = serial_add(one.command_id, 1)
