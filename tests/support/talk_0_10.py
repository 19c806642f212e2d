"""A raw 0-10 peer: frames by hand on one side, what comes back read on the other."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack

from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.connection import Tuning
from amqpgate.protocol.v0_10.endpoint import SessionConnection
from amqpgate.protocol.v0_10.events import ConnectionEvent
from amqpgate.protocol.v0_10.names import SessionNames
from amqpgate.protocol.v0_10.session import AttachedSession
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10 import PROTOCOL_HEADER
from amqpgate.wire.v0_10.codec import encode_command, encode_control, encode_header
from amqpgate.wire.v0_10.structs import Command, Control, Struct
from tests.support.said_0_10 import Sent, Splitter

#: Flags of the frame header.
B, E, b, e = 8, 4, 2, 1
ALONE = B | E | b | e


def frame(
    flags: int,
    kind: int,
    payload: bytes = b"",
    *,
    channel: int = 0,
    track: int | None = None,
    size: int | None = None,
) -> bytes:
    """One frame; by default on the track of its type, with its true size."""
    if track is None:
        track = 0 if kind == 0 else 1
    return (
        pack(">BBHxBHxxxx", flags, kind, 12 + len(payload) if size is None else size, track, channel)
        + payload
    )


def control(control: Control, channel: int = 0) -> bytes:
    return frame(ALONE, 0, encode_control(control), channel=channel)


def command(
    command: Command,
    structs: Sequence[Struct] | None = None,
    body: bytes = b"",
    *,
    sync: bool = False,
    channel: int = 0,
) -> bytes:
    segments = [(1, encode_command(command, sync))]
    if structs is not None:
        segments.append((2, encode_header(structs)))
    if body:
        segments.append((3, body))
    last = len(segments) - 1
    return b"".join(
        frame((0 if number else B) | (E if number == last else 0) | b | e, kind, payload, channel=channel)
        for number, (kind, payload) in enumerate(segments)
    )


#: What begins a session.
NAME = b"session"
ATTACH = amqp.SessionAttach(name=NAME)
POINT = amqp.SessionCommandPoint(command_id=0, command_offset=0)

TRANSFER = amqp.MessageTransfer(destination=b"amq.direct", accept_mode=1, acquire_mode=0)
KEY = (amqp.DeliveryProperties(routing_key=b"key"),)


class Talk:
    """A connection under test, and the raw peer at its other end, from open-ok on."""

    def __init__(
        self,
        role: Role = Role.SERVER,
        *,
        names: SessionNames | None = None,
        tuning: Tuning | None = None,
        answer: amqp.ConnectionTuneOk | None = None,
        user: bytes = b"guest",
    ) -> None:
        self.wakes = 0
        self.connection = SessionConnection(role, names=names, wake=self._wake)
        self._splitter = Splitter()
        tuning = tuning or Tuning(channel_max=64)
        start_ok = amqp.ConnectionStartOk(mechanism=b"PLAIN", response=b"\0guest\0guest", locale=b"en_US")
        tune_ok = answer or amqp.ConnectionTuneOk(channel_max=64)
        if role is Role.SERVER:
            self.say(PROTOCOL_HEADER)
            self.connection.send(amqp.ConnectionStart())
            self.say(start_ok)
            self.connection.log_in(user)
            self.connection.send(tuning.offer())
            self.say(tune_ok, amqp.ConnectionOpen(virtual_host=b""))
            self.connection.send(amqp.ConnectionOpenOk())
        else:
            self.connection.send_header()
            self.say(PROTOCOL_HEADER, amqp.ConnectionStart())
            self.connection.send(start_ok)
            self.say(tuning.offer())
            self.connection.send(tune_ok)
            self.connection.send(amqp.ConnectionOpen(virtual_host=b""))
            self.say(amqp.ConnectionOpenOk())
        self.read()

    def _wake(self) -> None:
        self.wakes += 1

    def say(self, *said: bytes | Control | Command, channel: int = 0) -> list[ConnectionEvent]:
        """One read of the connection's; controls of the connection go to channel 0."""
        data = b""
        for one in said:
            if isinstance(one, Control):
                data += control(one, 0 if one.CLASS_CODE == 1 else channel)
            else:
                data += command(one, channel=channel) if isinstance(one, Command) else one
        return list(self.connection.receive(data))

    def read(self) -> list[Sent]:
        """What the connection has to say."""
        return list(self._splitter.feed(self.connection.take_output()))

    def words(self) -> list[Control | Command]:
        """The same, without channels and contents."""
        return [sent.control or sent.command for sent in self.read()]

    def attached(self, channel: int = 0, name: bytes = NAME) -> AttachedSession:
        """Begin a session, from whichever side does."""
        if self.connection.role is Role.SERVER:
            self.say(amqp.SessionAttach(name=name), POINT, channel=channel)
        else:
            self.connection.attach(channel, name)
            self.say(amqp.SessionAttached(name=name), POINT, channel=channel)
        self.read()
        return self.connection.sessions[channel]
