"""Both roles against what Qpid's clients and its broker said to each other (`tests/recordings_0_10`)."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpgate.protocol.handshake import ConnectionState
from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.endpoint import SessionConnection
from amqpgate.protocol.v0_10.events import (
    CommandsCompleted,
    ConnectionFailed,
    IncomingCommand,
    SessionBegun,
    SessionFailed,
)
from amqpgate.wire.generated import v0_10 as amqp
from tests.support.said_0_10 import (
    NAMES,
    SHORT,
    Read,
    Sent,
    Splitter,
    conversations,
    sent_by,
)

#: What is said by itself, or not said at all: it is compared apart, or not.
APART = (
    amqp.ConnectionCloseOk,
    amqp.SessionAttached,
    amqp.SessionCommandPoint,
    amqp.SessionDetached,
    amqp.SessionTimeout,
    amqp.SessionKnownCompleted,
    amqp.SessionFlush,
    amqp.SessionRequestTimeout,
    amqp.SessionCompleted,
)


class Stand:
    """One end of a conversation, played by the code under test: told to send what was sent, it hears the
    rest.
    """

    def __init__(self, role: Role) -> None:
        self.connection = SessionConnection(role)
        self.script = Splitter()
        self.heard = []
        self.output = b""
        if role is Role.CLIENT:
            self.connection.send_header()

    def hear(self, data: bytes = b"") -> None:
        self.heard += self.connection.receive(data)
        self.output += self.connection.take_output()

    def say(self, data: bytes) -> None:
        for sent in self.script.feed(data):
            self._do(sent)
        self.hear()

    def _do(self, sent: Sent) -> None:
        session = self.connection.sessions.get(sent.channel)
        match sent.control:
            case None:
                command_id = session.sender.next_id
                assert session.send(sent.command, sent.structs, sent.body, sync=sent.sync) == command_id
            case amqp.SessionAttach(name=name, force=force):
                self.connection.attach(sent.channel, name, force=force)
            case amqp.SessionDetach():
                session.detach()
            case amqp.SessionCompleted(commands=commands):
                for first, last in commands.ranges:
                    session.finish(first, last, tell=True)
                if commands.ranges:
                    # What is owed is what the real peer said, less what its peer knew.
                    assert session.receiver.owed() == commands
            case control if not isinstance(control, APART):
                self.connection.send(control)


def play(conversation: tuple[Read, ...], cut=lambda data: [data]) -> dict[Role, Stand]:
    """The conversation, with its reads cut further by ``cut`` on the side that hears them."""
    stands = {role: Stand(role) for role in Role}
    for read in conversation:
        stands[read.sender].say(read.data)
        for piece in cut(read.data):
            stands[read.sender.peer].hear(piece)
    return stands


@cache
def played(name: str) -> list[tuple[tuple[Read, ...], dict[Role, Stand]]]:
    """Each conversation of a recording, played."""
    return [(conversation, play(conversation)) for conversation in conversations(name)]


def told(sent: list[Sent]) -> list[Sent]:
    return [one for one in sent if not isinstance(one.control, APART)]


@pytest.mark.parametrize("name", NAMES)
def test_both_roles_find_no_violation_and_say_what_was_said(name: str) -> None:
    for conversation, stands in played(name):
        for role, stand in stands.items():
            assert not [one for one in stand.heard if isinstance(one, ConnectionFailed | SessionFailed)]
            assert told(list(Splitter().feed(stand.output))) == told(sent_by(role, conversation))
            assert stand.connection.state is (
                ConnectionState.CLOSED
                if any(
                    isinstance(one.control, amqp.ConnectionClose)
                    for one in sent_by(Role.CLIENT, conversation)
                )
                else ConnectionState.OPEN
            )


@pytest.mark.parametrize("name", NAMES)
def test_commands_have_the_ids_that_their_sender_gave_them(name: str) -> None:
    for conversation, stands in played(name):
        for role, stand in stands.items():
            heard = [one for one in stand.heard if isinstance(one, IncomingCommand)]
            ids = {}
            for one in stand.heard:
                if isinstance(one, SessionBegun):
                    ids[one.channel] = 0
                elif isinstance(one, IncomingCommand):
                    assert one.command_id == ids[one.channel]
                    ids[one.channel] += 1
            sent = [
                (one.channel, one.command, one.sync)
                for one in sent_by(role.peer, conversation)
                if one.command
            ]
            assert [(one.channel, one.command, one.sync) for one in heard] == sent


@pytest.mark.parametrize("name", NAMES)
def test_what_is_complete_is_told_once(name: str) -> None:
    for conversation, stands in played(name):
        for role, stand in stands.items():
            heard: dict[int, list[set[int]]] = {}
            for one in stand.heard:
                if isinstance(one, SessionBegun):
                    heard.setdefault(one.channel, []).append(set())
                elif isinstance(one, CommandsCompleted):
                    for lower, upper in one.commands.ranges:
                        ids = set(range(lower, upper + 1))
                        assert not heard[one.channel][-1] & ids
                        heard[one.channel][-1] |= ids
            said: dict[int, list[set[int]]] = {}
            for sent in sent_by(role.peer, conversation):
                if isinstance(sent.control, amqp.SessionAttach | amqp.SessionAttached):
                    said.setdefault(sent.channel, []).append(set())
                elif isinstance(sent.control, amqp.SessionCompleted):
                    for lower, upper in sent.control.commands.ranges:
                        said[sent.channel][-1].update(range(lower, upper + 1))
            # A client that detached at once was not told of its attachment.
            assert [sets for sets in heard.values() if any(sets)] == [
                sets for sets in said.values() if any(sets)
            ]


@pytest.mark.parametrize("name", SHORT)
def test_byte_by_byte_is_the_same(name: str) -> None:
    for conversation, whole in played(name):
        bytewise = play(conversation, lambda data: [data[at : at + 1] for at in range(len(data))])
        for role in Role:
            assert bytewise[role].heard == whole[role].heard


@given(st.data())
@settings(max_examples=40)  # each plays a conversation of some kilobytes twice
def test_any_split_is_the_same(data: st.DataObject) -> None:
    conversation = data.draw(st.sampled_from([one for name in NAMES for one in conversations(name)[:9]]))
    size = data.draw(st.integers(1, 300))

    def cut(read: bytes) -> list[bytes]:
        return [read[at : at + size] for at in range(0, len(read), size)]

    whole, split = play(conversation), play(conversation, cut)
    for role in Role:
        assert split[role].heard == whole[role].heard


def test_all_kinds_of_sessions_are_in_the_recordings() -> None:
    """So that the tests above are of use."""
    heard = [
        one
        for name in NAMES
        for conversation in conversations(name)
        for one in sent_by(Role.SERVER, conversation)
    ]
    kinds = {type(one.control or one.command) for one in heard}
    assert {amqp.SessionTimeout, amqp.SessionFlush, amqp.ExecutionException, amqp.ExecutionResult} <= kinds
