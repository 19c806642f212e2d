"""Transfers as one event say what they say as several, however they are cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.connection import Tuning
from amqpgate.protocol.v0_10.endpoint import SessionConnection
from amqpgate.protocol.v0_10.events import (
    ConnectionEvent,
    IncomingBody,
    IncomingCommand,
    IncomingHeader,
    IncomingMessage,
)
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10 import PROTOCOL_HEADER
from amqpgate.wire.v0_10.codec import decode_header, encode_command, encode_header
from tests.support.talk_0_10 import ATTACH, KEY, POINT, TRANSFER, B, E, b, command, control, e, frame

OTHER = amqp.MessageTransfer(destination=b"other")
PAYLOAD = encode_command(TRANSFER)
HEADER = encode_header(KEY)
#: What a client may say on a channel, each in one piece.
SAID = {
    "whole": lambda channel: command(TRANSFER, KEY, b"body", channel=channel),
    "sync": lambda channel: command(OTHER, KEY, b"body", sync=True, channel=channel),
    "no body": lambda channel: command(TRANSFER, KEY, channel=channel),
    "no header": lambda channel: command(TRANSFER, None, b"body", channel=channel),
    "neither": lambda channel: command(TRANSFER, channel=channel),
    "long body": lambda channel: (
        frame(B | b | e, 1, PAYLOAD, channel=channel)
        + frame(b | e, 2, HEADER, channel=channel)
        + frame(E | b, 3, b"one", channel=channel)
        + frame(E | e, 3, b"two", channel=channel)
    ),
    "cut header": lambda channel: (
        frame(B | b | e, 1, PAYLOAD, channel=channel)
        + frame(E | b, 2, HEADER[:3], channel=channel)
        + frame(E | e, 2, HEADER[3:], channel=channel)
    ),
    "another command": lambda channel: command(amqp.ExecutionSync(), sync=True, channel=channel),
    "again": lambda channel: control(POINT, channel),
    "on from here": lambda channel: control(
        amqp.SessionCommandPoint(command_id=1, command_offset=0), channel
    ),
    "beat": lambda _: control(amqp.ConnectionHeartbeat()),
    "no such command": lambda channel: frame(B | E | b | e, 1, b"\xff\xff\1\0", channel=channel),
    "malformed transfer": lambda channel: (
        frame(B | b | e, 1, PAYLOAD + b"\0", channel=channel) + frame(E | b | e, 2, HEADER, channel=channel)
    ),
    "on the wrong track": lambda channel: (
        frame(B | b | e, 1, PAYLOAD, channel=channel) + frame(E | b | e, 2, HEADER, channel=channel, track=0)
    ),
    "detach": lambda channel: control(amqp.SessionDetach(name=ATTACH.name), channel),
}


def opened(*, joins: bool) -> SessionConnection:
    """A server's, with a session on channels 0 and 1."""
    connection = SessionConnection(Role.SERVER, joins=joins)
    list(connection.receive(PROTOCOL_HEADER))
    connection.send(amqp.ConnectionStart())
    list(connection.receive(control(amqp.ConnectionStartOk(mechanism=b"PLAIN"))))
    connection.send(Tuning(channel_max=64).offer())
    list(connection.receive(control(amqp.ConnectionTuneOk(channel_max=64)) + control(amqp.ConnectionOpen())))
    connection.send(amqp.ConnectionOpenOk())
    for channel, name in enumerate((ATTACH.name, b"second")):
        list(connection.receive(control(amqp.SessionAttach(name=name), channel) + control(POINT, channel)))
    connection.take_output()
    return connection


def apart(event: ConnectionEvent) -> list[ConnectionEvent]:
    """As the events that it stands for; ``sync`` of a command is no part of a message."""
    if isinstance(event, IncomingMessage):
        channel, number, said, header, body = event
        has_body = bool(body)
        found = [
            IncomingCommand(channel, number, said, False, True),
            IncomingHeader(channel, number, decode_header(header), has_body),
        ]
        return [*found, IncomingBody(channel, number, body, True)] if has_body else list(found)
    if isinstance(event, IncomingCommand):
        return [event._replace(sync=False)]
    return [event]


def heard(connection: SessionConnection, data: bytes, cuts: list[int]) -> tuple[list[ConnectionEvent], bytes]:
    """What it tells of bytes that come cut there, where all commands are finished, and what it says."""
    events: list[ConnectionEvent] = []
    said = b""
    edges = [0, *sorted(cuts), len(data)]
    for start, stop in pairwise(edges):
        for event in connection.receive(data[start:stop]):
            events += apart(event)
    for channel, session in connection.sessions.items():
        ids = [
            one.command_id for one in events if isinstance(one, IncomingCommand) and one.channel == channel
        ]
        for number in dict.fromkeys(ids):
            session.finish(number)
    said += connection.take_output()
    return events, said


@given(
    st.lists(st.tuples(st.sampled_from(sorted(SAID)), st.integers(0, 2)), max_size=12),
    st.data(),
)
def test_one_event_or_several(said: list[tuple[str, int]], data: st.DataObject) -> None:
    stream = b"".join(SAID[kind](channel) for kind, channel in said)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8))
    assert heard(opened(joins=True), stream, cuts) == heard(opened(joins=False), stream, cuts)


def test_a_transfer_that_is_all_there_is_one_event() -> None:
    connection = opened(joins=True)
    stream = SAID["whole"](0) + SAID["no body"](1) + SAID["whole"](0)
    events = list(connection.receive(stream))
    assert events == [
        IncomingMessage(0, 0, TRANSFER, HEADER, b"body"),
        IncomingMessage(1, 0, TRANSFER, HEADER, b""),
        IncomingMessage(0, 1, TRANSFER, HEADER, b"body"),
    ]
    assert connection.take_rest() == b""


def test_amid_another_assembly_it_is_several() -> None:
    connection = opened(joins=True)
    stream = frame(B | b | e, 1, PAYLOAD, channel=1) + SAID["whole"](0)
    kinds = [type(event) for event in connection.receive(stream)]
    assert kinds == [IncomingCommand, IncomingCommand, IncomingHeader, IncomingBody]


def test_one_that_comes_again_is_dropped() -> None:
    stream = SAID["whole"](0) + SAID["again"](0) + SAID["whole"](0) + SAID["sync"](0)
    several = heard(opened(joins=False), stream, [])
    assert heard(opened(joins=True), stream, []) == several
    assert [one.command_id for one in several[0] if isinstance(one, IncomingCommand)] == [0, 1]
