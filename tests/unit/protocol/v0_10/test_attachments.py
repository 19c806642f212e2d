"""Sessions at the channels of a connection: names, force, and channels that have none."""

from __future__ import annotations

import pytest

from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.events import ConnectionFailed, IncomingCommand, SessionBegun, SessionEnded
from amqpgate.protocol.v0_10.names import SessionNames
from amqpgate.protocol.v0_10.session import MOST_NAME
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10 import DetachCode
from tests.support.talk_0_10 import (
    ATTACH,
    KEY,
    NAME,
    POINT,
    TRANSFER,
    E,
    Talk,
    b,
    command,
    control,
    e,
    frame,
)

FORCED = amqp.SessionAttach(name=NAME, force=True)
SYNC = amqp.ExecutionSync()


def detached(code: int, name: bytes = NAME) -> amqp.SessionDetached:
    return amqp.SessionDetached(name=name, code=code)


def test_attach_again_is_attached_again() -> None:
    talk = Talk()
    talk.attached()
    assert talk.say(ATTACH) == []
    assert talk.words() == [amqp.SessionAttached(name=NAME)]


def test_an_absent_name_is_an_empty_one() -> None:
    talk = Talk()
    nameless = amqp.SessionAttach()
    assert talk.say(nameless, POINT, nameless, SYNC, amqp.SessionDetach()) == [
        SessionBegun(0, b""),
        IncomingCommand(0, 0, SYNC, False, False),
        SessionEnded(0, 0),
    ]
    attached = amqp.SessionAttached(name=b"")
    assert talk.words() == [attached, POINT, attached, detached(DetachCode.NORMAL, b"")]


def test_another_name_on_the_channel_is_transport_busy() -> None:
    talk = Talk()
    talk.attached()
    other = amqp.SessionAttach(name=b"other")
    assert talk.say(other) == []
    assert talk.words() == [detached(DetachCode.TRANSPORT_BUSY, b"other")]
    assert talk.say(SYNC)


def test_another_name_is_not_detached() -> None:
    talk = Talk()
    talk.attached()
    assert talk.say(amqp.SessionDetach(name=b"other")) == []
    assert talk.words() == [detached(DetachCode.NOT_ATTACHED, b"other")]
    assert talk.say(SYNC)


def test_a_name_in_use_is_session_busy_on_another_channel_and_another_connection() -> None:
    names = SessionNames()
    first, second = Talk(names=names), Talk(names=names)
    first.attached()
    for talk, channel in ((first, 1), (second, 0)):
        assert talk.say(ATTACH, POINT, SYNC, channel=channel) == []
        assert talk.words() == [detached(DetachCode.SESSION_BUSY), detached(DetachCode.NOT_ATTACHED, b"")]
    assert first.say(SYNC)


def test_names_are_each_user_s_own() -> None:
    names = SessionNames()
    Talk(names=names, user=b"one").attached()
    assert Talk(names=names, user=b"two").say(ATTACH) == [SessionBegun(0, NAME)]
    assert len(names) == 2


def test_a_name_is_free_after_the_session_and_after_the_connection() -> None:
    names = SessionNames()
    first, second = Talk(names=names), Talk(names=names)
    first.attached()
    first.say(amqp.SessionDetach(name=NAME))
    assert second.say(ATTACH) == [SessionBegun(0, NAME)]
    second.say(amqp.ConnectionClose(reply_code=200))
    assert first.say(ATTACH) == [SessionBegun(0, NAME)]
    first.connection.lost()
    assert len(names) == 0


def test_force_takes_the_name_from_another_connection() -> None:
    names = SessionNames()
    first, second = Talk(names=names), Talk(names=names)
    first.attached(3)
    assert second.say(FORCED) == [SessionBegun(0, NAME)]
    assert second.words() == [amqp.SessionAttached(name=NAME), POINT]
    assert first.wakes == 1
    assert second.wakes == 0
    assert first.say() == [SessionEnded(3, DetachCode.SESSION_BUSY)]
    assert first.words() == [detached(DetachCode.SESSION_BUSY)]
    # What the first one says on its channel is as on any that has no session.
    assert first.say(SYNC, channel=3) == []
    assert first.words() == []
    # It cannot give up what it has no longer.
    first.connection.lost()
    assert len(names) == 1


def test_force_within_a_connection() -> None:
    talk = Talk()
    talk.attached()
    assert talk.say(FORCED, channel=1) == [SessionEnded(0, DetachCode.SESSION_BUSY), SessionBegun(1, NAME)]
    assert [(one.channel, one.control) for one in talk.read()] == [
        (0, detached(DetachCode.SESSION_BUSY)),
        (1, amqp.SessionAttached(name=NAME)),
        (1, POINT),
    ]


def test_force_without_anybody_is_an_attach() -> None:
    assert Talk().say(FORCED) == [SessionBegun(0, NAME)]


def test_frames_of_a_session_that_was_evicted_amid_a_command_are_dropped() -> None:
    talk = Talk()
    talk.attached()
    whole = command(TRANSFER, KEY, b"x")
    talk.say(whole[: len(whole) - 13])
    talk.say(FORCED, channel=1)
    assert talk.say(frame(E | b | e, 3, b"x")) == []
    assert talk.say(amqp.SessionAttach(name=b"other"), POINT, SYNC) == [
        SessionBegun(0, b"other"),
        IncomingCommand(0, 0, SYNC, False, False),
    ]


def test_a_session_that_was_evicted_amid_a_command_makes_room_for_another() -> None:
    talk = Talk()
    talk.attached()
    talk.say(command(TRANSFER, KEY, b"x")[: len(command(TRANSFER))])
    talk.say(FORCED, channel=1)
    assert talk.say(amqp.SessionAttach(name=b"other"), POINT, SYNC)[1:] == [
        IncomingCommand(0, 0, SYNC, False, False)
    ]


def test_content_of_a_command_before_the_session_is_dropped() -> None:
    talk = Talk()
    whole = command(TRANSFER, KEY, b"x")
    first, rest = whole[: len(command(TRANSFER))], whole[len(command(TRANSFER)) :]
    assert talk.say(first, ATTACH, POINT, rest, SYNC) == [
        SessionBegun(0, NAME),
        IncomingCommand(0, 0, SYNC, False, False),
    ]


@pytest.mark.parametrize("role", Role)
def test_a_channel_without_a_session(role: Role) -> None:
    talk = Talk(role)
    assert talk.say(SYNC, command(TRANSFER, KEY, b"x"), amqp.SessionDetached(name=NAME, code=0)) == []
    assert talk.words() == []
    for _ in range(2):
        assert talk.say(amqp.SessionFlush(completed=True)) == []
        assert talk.words() == [detached(DetachCode.NOT_ATTACHED, b"")]
    # Once for each read and channel, however often.
    talk.say(*[control(amqp.SessionDetach(name=NAME), channel) for channel in (5, 6)] * 100)
    assert [(one.channel, one.control) for one in talk.read()] == [
        (5, detached(DetachCode.NOT_ATTACHED, b"")),
        (6, detached(DetachCode.NOT_ATTACHED, b"")),
    ]
    assert not talk.connection.sessions


def test_what_cannot_be_decoded_without_a_session() -> None:
    talk = Talk()
    assert talk.say(frame(15, 1, b"\x63\x63\x01\x00\x00\x00")) == []
    assert talk.words() == []
    assert talk.say(frame(15, 0, b"\x02\x63\x00\x00")) == []
    assert talk.words() == [detached(DetachCode.NOT_ATTACHED, b"")]


def test_a_server_that_attaches_is_told_that_nobody_is_there() -> None:
    talk = Talk(Role.CLIENT)
    assert talk.say(ATTACH) == []
    assert talk.words() == [detached(DetachCode.NOT_ATTACHED, b"")]


def test_names_are_bounded() -> None:
    assert Talk().say(amqp.SessionAttach(name=bytes(MOST_NAME))) == [SessionBegun(0, bytes(MOST_NAME))]
    talk = Talk()
    (failed,) = talk.say(amqp.SessionAttach(name=bytes(MOST_NAME + 1)))
    assert isinstance(failed, ConnectionFailed)
    (close,) = talk.words()
    assert close.reply_code == 320


def test_what_a_peer_calls_another_session_is_cut() -> None:
    talk = Talk()
    talk.attached()
    talk.say(amqp.SessionAttach(name=bytes(60_000)), amqp.SessionDetach(name=None))
    assert talk.words() == [
        detached(DetachCode.TRANSPORT_BUSY, bytes(MOST_NAME)),
        detached(DetachCode.NOT_ATTACHED, b""),
    ]


def test_sessions_of_several_channels_count_for_themselves() -> None:
    talk = Talk()
    for channel in range(3):
        talk.attached(channel, b"%d" % channel)
    for channel in (0, 1, 1, 2, 2, 2):
        assert len(talk.say(command(SYNC, channel=channel))) == 1
    assert [len(session.receiver.owed().ranges) for session in talk.connection.sessions.values()] == [1, 1, 1]
    assert [session.receiver.upcoming for session in talk.connection.sessions.values()] == [1, 2, 3]
