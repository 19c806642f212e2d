"""Both ends of a relayed connection of AMQP 0-10: what is denied never leaves, however it is cut.

Client and broker say what they like, mostly right, about two channels. The gateway between the ends denies
some of what the client asks for. What reaches a peer must be frames that the other one has said, or what
ends a session.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from attrs import frozen

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp091
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.codec import decode_command, decode_control
from amqpgate.wire.v0_10.sequences import SequenceSet, serial_add
from amqpgate.wire.v0_10.structs import Command, Control
from tests.fuzz.choices import Choices
from tests.support.talk_0_10 import TRANSFER, command, control, frame
from tests.unit.bridge.v0_10.native.lab import Lab

MOST = 512
TOKENS = (b"\x0f\0", b"\x0b\1", b"\2\1", b"\2\x03", b"\2\x04", b"\4\1\1\0", b"\xff\xff")

#: What a message has that is denied, and its routing key.
SECRET, DENIED = b"secret", b"denied"
#: What an end may say that the other peer has not.
_OWN = amqp.ExecutionException | amqp.SessionDetach | amqp.SessionDetached


@frozen
class Step:
    """One read of the client's, or of the broker's."""

    is_client: bool
    data: bytes


def _set(choices: Choices) -> SequenceSet:
    lower = serial_add(choices.below(12), -2)
    return SequenceSet(((lower, serial_add(lower, choices.below(4))),))


def _control(choices: Choices) -> Control:
    name = choices.pick((b"a", b"b"))
    return choices.pick(
        (
            lambda: amqp.SessionAttach(name=name),
            lambda: amqp.SessionAttached(name=name),
            lambda: amqp.SessionDetach(name=name),
            lambda: amqp.SessionDetached(name=name, code=choices.below(2)),
            lambda: amqp.SessionCommandPoint(command_id=serial_add(choices.below(6), -3), command_offset=0),
            lambda: amqp.SessionCompleted(commands=_set(choices), timely_reply=choices.flag()),
            lambda: amqp.SessionFlush(completed=True),
        )
    )()


def _command(choices: Choices) -> Command:
    return choices.pick(
        (
            lambda: amqp.QueueDeclare(queue=choices.pick((b"q", DENIED, b""))),
            lambda: amqp.QueueQuery(queue=choices.pick((b"q", DENIED, b""))),
            lambda: amqp.ExchangeBound(exchange=b"x", queue=choices.pick((b"q", DENIED))),
            lambda: amqp.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=choices.below(2)),
            lambda: amqp.MessageAccept(transfers=_set(choices)),
            lambda: amqp.MessageRelease(transfers=_set(choices)),
            lambda: amqp.ExecutionSync(),
            lambda: amqp.ExecutionException(error_code=404),
            lambda: amqp.DtxSelect(),
        )
    )()


def _said(choices: Choices) -> bytes:
    channel = choices.below(2)
    match choices.below(8):
        case 0 | 1 | 2:
            return control(_control(choices), channel)
        case 3 | 4:
            return command(_command(choices), sync=choices.flag(), channel=channel)
        case 5 | 6:
            key, body = choices.pick(((b"key", b"body"), (DENIED, SECRET)))
            structs = (
                amqp.DeliveryProperties(routing_key=key),
                amqp.MessageProperties(app_id=choices.some(3)),
            )
            return command(TRANSFER, structs, body * choices.below(20), channel=channel)
        case _:
            if choices.rarely():
                kind = choices.below(4)
                return frame(choices.below(16), kind, choices.some(20), channel=channel)
            return control(amqp.ConnectionHeartbeat())


def _denies(method: Method) -> bool:
    match method:
        case amqp091.BasicPublish(routing_key=name) | amqp091.QueueDeclare(queue=name):
            return name == DENIED.decode()
    return False


def _steps(choices: Choices) -> Iterator[Step]:
    for channel in range(2):
        yield Step(True, control(amqp.SessionAttach(name=b"a"), channel))
    while choices:
        is_client = choices.below(3) > 0
        yield Step(is_client, b"".join(_said(choices) for _ in range(1 + choices.below(3))))


def _play(steps: list[Step], *, bytewise: bool) -> Lab:
    lab = Lab(_denies)
    with contextlib.suppress(ProtocolViolation):
        for step in steps:
            for at in range(len(step.data)) if bytewise else (0,):
                piece = step.data[at : at + 1] if bytewise else step.data
                (lab.from_client if step.is_client else lab.from_broker)(piece)
    return lab


def seeds() -> Iterator[bytes]:
    """Each kind of what is said, by either peer."""
    for side in range(3):
        for kind in range(8):
            for what in range(9):
                yield bytes((side, 0, 0, kind, what, *range(12), 1, 0, 1, 5, 1, 0, 2, 0, 0, 0, 3))


def _is_own(data: bytes) -> bool:
    """Whether it is a frame by which an end may end a session."""
    decode = decode_command if data[1] else decode_control
    word = decode(data[12:])
    return isinstance(word[0] if isinstance(word, tuple) else word, _OWN)


def check(data: bytes) -> None:
    """The same steps in one go and byte by byte, which may be a denial earlier."""
    steps = list(_steps(Choices(data)))
    for bytewise in (False, True):
        lab = _play(steps, bytewise=bytewise)
        for heard, is_client in ((lab.to_broker, True), (lab.to_client, False)):
            said = b"".join(step.data for step in steps if step.is_client is is_client)
            at = 0
            while at < len(heard):
                size = int.from_bytes(heard[at + 2 : at + 4], "big")
                one = heard[at : at + size]
                assert one in said or _is_own(one), one
                at += size
        assert SECRET not in lab.to_broker
        for outgoing in (lab.client._way, lab.broker._way):
            assert outgoing.waiting >= 0
