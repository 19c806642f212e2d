"""Both roles, played against what real peers said to each other."""

from __future__ import annotations

import pytest

from amqpgate.protocol.handshake import ConnectionState
from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.endpoint import SessionConnection
from amqpgate.protocol.v0_10.events import (
    CommandsCompleted,
    ConnectionFailed,
    IncomingBody,
    IncomingCommand,
    IncomingHeader,
    SessionFailed,
)
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.sequences import SequenceSet
from tests.unit.protocol.v0_10.recordings import NAMES, Read, Sent, Splitter, conversations, sent_by

#: What the code under test says by itself, when it finds it right.
OWN_WORDS = (
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
    """One end of a recorded conversation, played by the code under test: it is told to send what was sent."""

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
            self.do(sent)
        self.hear()

    def do(self, sent: Sent) -> None:
        session = self.connection.sessions.get(sent.channel)
        match sent.control:
            case None:
                session.send(sent.command, sent.structs, sent.body, sync=sent.sync)
            case amqp.SessionAttach(name=name, force=force):
                self.connection.attach(sent.channel, name, force=force)
            case amqp.SessionDetach():
                session.detach()
            case amqp.SessionCompleted(commands=commands):
                before = session.receiver.owed()
                for first, last in commands.ranges:
                    session.finish(first, last, tell=True)
                assert session.receiver.owed() == commands or not commands.ranges, before
            case control if not isinstance(control, OWN_WORDS):
                self.connection.send(control)


def play(conversation: tuple[Read, ...]) -> dict[Role, Stand]:
    stands = {role: Stand(role) for role in Role}
    for read in conversation:
        stands[read.sender].say(read.data)
        stands[read.sender.peer].hear(read.data)
    return stands


@pytest.mark.parametrize("name", NAMES)
def test_both_roles_find_nothing_wrong_and_say_the_same(name: str) -> None:
    for conversation in conversations(name):
        stands = play(conversation)
        for role, stand in stands.items():
            failures = [event for event in stand.heard if isinstance(event, ConnectionFailed | SessionFailed)]
            assert not failures
            said = [sent for sent in Splitter().feed(stand.output) if not isinstance(sent.control, OWN_WORDS)]
            meant = [sent for sent in sent_by(role, conversation) if not isinstance(sent.control, OWN_WORDS)]
            assert said == meant
