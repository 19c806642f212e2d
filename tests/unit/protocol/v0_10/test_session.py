"""One attached session in either role: what is answered, and when."""

from __future__ import annotations

import pytest

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.attachment import SessionState
from amqpgate.protocol.v0_10.connection import Tuning
from amqpgate.protocol.v0_10.events import (
    CommandsCompleted,
    IncomingBody,
    IncomingCommand,
    IncomingHeader,
    SessionBegun,
    SessionEnded,
)
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.sequences import SequenceSet
from tests.support.talk_0_10 import (
    ATTACH,
    KEY,
    NAME,
    POINT,
    TRANSFER,
    B,
    E,
    Talk,
    b,
    command,
    e,
    frame,
)

SYNC = amqp.ExecutionSync()
DECLARE = amqp.QueueDeclare(queue=b"q")
FLUSH = amqp.SessionFlush(completed=True)


def sequence(*ranges: tuple[int, int]) -> SequenceSet:
    return SequenceSet(ranges)


def completed(*ranges: tuple[int, int], timely: bool = False) -> amqp.SessionCompleted:
    return amqp.SessionCompleted(commands=sequence(*ranges), timely_reply=timely)


# -- a client's session -------------------------------------------------------------------------------------


def test_attach_is_answered_by_attached_and_command_point() -> None:
    talk = Talk()
    assert talk.say(ATTACH) == [SessionBegun(0, NAME)]
    assert talk.words() == [amqp.SessionAttached(name=NAME), POINT]


def test_a_client_may_go_on_before_it_is_told() -> None:
    """As qpid-python's messaging does."""
    talk = Talk()
    events = talk.say(ATTACH, POINT, command(DECLARE, sync=True))
    assert events == [SessionBegun(0, NAME), IncomingCommand(0, 0, DECLARE, True, False)]


def test_a_transfer_comes_in_pieces() -> None:
    talk = Talk()
    talk.attached()
    assert talk.say(command(TRANSFER, KEY, b"body")) == [
        IncomingCommand(0, 0, TRANSFER, False, True),
        IncomingHeader(0, 0, KEY, True),
        IncomingBody(0, 0, b"body", True),
    ]
    assert talk.say(command(TRANSFER, None, b"body"))[1:] == [IncomingBody(0, 1, b"body", True)]
    assert talk.say(command(TRANSFER, KEY))[1:] == [IncomingHeader(0, 2, KEY, False)]
    assert talk.say(command(TRANSFER)) == [IncomingCommand(0, 3, TRANSFER, False, False)]


def test_the_sync_bit_is_answered_when_the_command_is_finished() -> None:
    talk = Talk()
    session = talk.attached()
    talk.say(command(DECLARE, sync=True))
    assert talk.words() == []
    session.finish(0)
    assert talk.words() == [completed((0, 0))]
    assert talk.words() == []


def test_without_the_sync_bit_nothing_is_answered() -> None:
    talk = Talk()
    session = talk.attached()
    talk.say(DECLARE)
    session.finish(0)
    assert talk.words() == []
    session.finish(0, tell=True)
    assert talk.words() == [completed((0, 0))]


def test_execution_sync_is_complete_when_all_before_it_is() -> None:
    talk = Talk()
    session = talk.attached()
    talk.say(DECLARE, DECLARE, command(SYNC, sync=True))
    assert talk.words() == []
    session.finish(1)
    assert talk.words() == []
    session.finish(0)
    assert talk.words() == [completed((0, 2))]


def test_execution_sync_is_complete_at_once_if_nothing_is_before_it() -> None:
    talk = Talk()
    talk.attached()
    talk.say(command(SYNC, sync=True))
    assert talk.words() == [completed((0, 0))]


def test_questions_are_answered_once_for_a_read() -> None:
    talk = Talk()
    session = talk.attached()
    talk.say(DECLARE)
    session.finish(0)
    everything = amqp.SessionFlush(expected=True, confirmed=True, completed=True)
    talk.say(*[everything] * 500, *[amqp.SessionRequestTimeout(timeout=300)] * 500)
    assert talk.words() == [
        amqp.SessionTimeout(timeout=0),
        amqp.SessionExpected(commands=sequence((1, 1))),
        amqp.SessionConfirmed(commands=sequence((0, 0))),
        completed((0, 0)),
    ]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ({"completed": True}, completed()),
        ({"expected": True}, amqp.SessionExpected(commands=sequence())),
        ({"confirmed": True}, amqp.SessionConfirmed(commands=sequence())),
    ],
)
def test_each_kind_of_flush_is_answered_though_nothing_was_sent(asked: dict, answer) -> None:
    talk = Talk()
    talk.attached()
    talk.say(amqp.SessionFlush(**asked))
    assert talk.words() == [answer]
    talk.say(amqp.SessionFlush())
    assert talk.words() == []


@pytest.mark.parametrize("timeout", [None, 0, 300])
def test_no_session_outlives_its_attachment(timeout: int | None) -> None:
    talk = Talk()
    talk.attached()
    talk.say(amqp.SessionRequestTimeout(timeout=timeout))
    assert talk.words() == [amqp.SessionTimeout(timeout=0)]


def test_what_is_known_is_told_no_more() -> None:
    talk = Talk()
    session = talk.attached()
    talk.say(DECLARE, DECLARE)
    session.finish(0, 1)
    talk.say(amqp.SessionKnownCompleted(commands=sequence((0, 0))), FLUSH)
    assert talk.words() == [completed((1, 1))]
    talk.say(amqp.SessionKnownCompleted(), FLUSH)
    assert talk.words() == [completed((1, 1))]


def test_information_is_not_acted_on() -> None:
    """qpidd's confirmed has one id too many."""
    talk = Talk()
    talk.attached()
    told = talk.say(
        amqp.SessionConfirmed(commands=sequence((0, 99))),
        amqp.SessionExpected(commands=sequence((99, 99))),
        amqp.SessionTimeout(timeout=7),
    )
    assert told == []
    assert talk.words() == []


def test_commands_that_are_sent_again_are_dropped_with_their_content() -> None:
    talk = Talk()
    session = talk.attached()
    talk.say(command(TRANSFER, KEY, b"body"), DECLARE)
    session.finish(0, 1)
    again = talk.say(POINT, command(TRANSFER, KEY, b"body"), command(DECLARE, sync=True), DECLARE)
    assert again == [IncomingCommand(0, 2, DECLARE, False, False)]
    assert talk.words() == [completed((0, 1))]


def test_a_client_s_detach_is_answered_and_ends_the_session() -> None:
    talk = Talk()
    session = talk.attached()
    talk.say(command(DECLARE, sync=True))
    assert talk.say(amqp.SessionDetach(name=NAME)) == [SessionEnded(0, 0)]
    assert talk.words() == [amqp.SessionDetached(name=NAME, code=0)]
    assert not talk.connection.sessions
    # What is finished later reaches nobody.
    session.finish(0, tell=True)
    assert talk.words() == []


def test_what_is_complete_is_told_before_the_answer_to_detach() -> None:
    talk = Talk()
    session = talk.attached()
    talk.say(command(DECLARE, sync=True))
    session.finish(0)
    talk.say(amqp.SessionDetach(name=NAME))
    assert talk.words() == [completed((0, 0)), amqp.SessionDetached(name=NAME, code=0)]


def test_an_exception_tells_what_is_complete_first_and_then_detaches() -> None:
    talk = Talk()
    session = talk.attached()
    talk.say(DECLARE, command(DECLARE, sync=True))
    session.finish(0)
    session.fail(ProtocolViolation(404, "no such thing"), 1, amqp.QueueDeclare)
    assert talk.words() == [
        completed((0, 0)),
        amqp.ExecutionException(
            error_code=404, command_id=1, class_code=8, command_code=1, description=b"no such thing"
        ),
        amqp.SessionDetach(name=NAME),
    ]


def test_what_comes_until_detached_is_dropped() -> None:
    talk = Talk()
    session = talk.attached()
    talk.say(command(TRANSFER, KEY, b"x")[:-13])
    session.fail(ProtocolViolation(404, "gone"), 0)
    talk.words()
    assert talk.say(frame(E | b | e, 3, b"x"), DECLARE, FLUSH, ATTACH, amqp.SessionGap()) == []
    session.finish(0, tell=True)
    session.fail(ProtocolViolation(404, "gone"))
    session.detach()
    assert talk.words() == []
    # qpid-python gives no code.
    assert talk.say(amqp.SessionDetached(name=NAME)) == [SessionEnded(0, 0)]
    assert talk.say(ATTACH, POINT, DECLARE) == [
        SessionBegun(0, NAME),
        IncomingCommand(0, 0, DECLARE, False, False),
    ]


def test_two_detaches_that_cross() -> None:
    talk = Talk()
    session = talk.attached()
    session.detach()
    assert talk.say(amqp.SessionDetach(name=NAME)) == [SessionEnded(0, 0)]
    assert talk.words() == [amqp.SessionDetach(name=NAME), amqp.SessionDetached(name=NAME, code=0)]
    # The answer to ours, on a channel that has no session any more.
    assert talk.say(amqp.SessionDetached(name=NAME, code=0)) == []
    assert talk.words() == []


def test_an_exception_waits_for_the_end_of_a_body() -> None:
    talk = Talk()
    session = talk.attached()
    session.send(TRANSFER, KEY, goes_on=True)
    session.send_body(b"one ", is_last=False)
    session.fail(ProtocolViolation(506, "enough"))
    assert session.state is SessionState.SERVER_DETACHING
    assert talk.words() == []
    session.send_body(b"two", is_last=True)
    transfer, exception, detach = talk.read()
    assert transfer.body == b"one two"
    assert exception.command.error_code == 506
    assert detach.control == amqp.SessionDetach(name=NAME)


def test_a_body_stops_where_its_session_is_detached() -> None:
    talk = Talk()
    session = talk.attached()
    session.send(TRANSFER, KEY, goes_on=True)
    session.send_body(b"one ", is_last=False)
    talk.say(amqp.SessionDetach(name=NAME))
    session.send_body(b"two", is_last=True)
    assert talk.words() == [amqp.SessionDetached(name=NAME, code=0)]


def test_what_a_server_sends_has_ids_and_is_completed() -> None:
    talk = Talk()
    session = talk.attached()
    assert session.send(TRANSFER, KEY, b"one") == 0
    assert session.send(amqp.ExecutionResult(command_id=0), sync=True) == 1
    sent = talk.read()
    assert [(one.command, one.structs, one.body, one.sync) for one in sent] == [
        (TRANSFER, KEY, b"one", False),
        (amqp.ExecutionResult(command_id=0), None, b"", True),
    ]
    assert len(session.sender._outstanding) == 2
    assert talk.say(completed((1, 1))) == [CommandsCompleted(0, sequence((1, 1)))]
    assert talk.say(completed((0, 1))) == [CommandsCompleted(0, sequence((0, 0)))]
    assert talk.say(completed((0, 1))) == []
    assert len(session.sender._outstanding) == 0


def test_a_timely_reply_is_given_once_for_a_read() -> None:
    talk = Talk()
    session = talk.attached()
    for _ in range(3):
        session.send(TRANSFER)
    talk.read()
    talk.say(completed((0, 0), timely=True), completed((0, 1), timely=True), completed((0, 2)))
    assert talk.words() == [amqp.SessionKnownCompleted(commands=sequence((0, 1)))]
    talk.say(completed((0, 2)))
    assert talk.words() == []


def test_nothing_is_sent_within_a_body_or_after_the_end() -> None:
    talk = Talk()
    session = talk.attached()
    session.send(TRANSFER, goes_on=True)
    with pytest.raises(ValueError, match="cannot be sent now"):
        session.send(SYNC)
    session.send_body(b"x", is_last=True)
    session.detach()
    with pytest.raises(ValueError, match="cannot be sent now"):
        session.send(SYNC)


def test_what_is_too_large_for_a_frame_is_506_and_takes_no_id() -> None:
    talk = Talk(answer=amqp.ConnectionTuneOk(channel_max=64, max_frame_size=4096))
    session = talk.attached()
    with pytest.raises(ProtocolViolation) as caught:
        session.send(TRANSFER, (amqp.MessageProperties(app_id=bytes(5000)),), b"x")
    assert caught.value.code == 506
    assert session.send(TRANSFER, KEY, bytes(10_000)) == 0
    assert [len(one.body) for one in talk.read()] == [10_000]


def test_what_is_told_fits_into_the_peer_s_frames() -> None:
    """509 ranges of ids in a frame of 4096 bytes."""
    talk = Talk(Role.CLIENT, answer=amqp.ConnectionTuneOk(channel_max=64, max_frame_size=4096))
    session = talk.attached()
    talk.say(*[amqp.MessageFlow()] * 1400)
    for command_id in range(0, 1400, 2):
        session.finish(command_id, tell=True)
    (told,) = talk.words()
    assert len(told.commands.ranges) == 509
    assert told.commands.ranges[-1] == (1398, 1398)


def test_a_reply_fits_into_the_peer_s_frames() -> None:
    talk = Talk(answer=amqp.ConnectionTuneOk(channel_max=64, max_frame_size=4096))
    session = talk.attached()
    for _ in range(1200):
        session.send(SYNC)
    talk.read()
    talk.say(completed(*[(number, number) for number in range(0, 1200, 2)], timely=True))
    (reply,) = talk.words()
    assert len(reply.commands.ranges) == 509


# -- a broker's session -------------------------------------------------------------------------------------


def test_a_client_attaches_and_may_go_on_at_once() -> None:
    talk = Talk(Role.CLIENT)
    session = talk.connection.attach(0, NAME)
    assert session.send(DECLARE, sync=True) == 0
    assert talk.words() == [ATTACH, POINT, DECLARE]
    told = talk.say(amqp.SessionAttached(name=NAME), POINT, completed((0, 0)))
    assert told == [SessionBegun(0, NAME), CommandsCompleted(0, sequence((0, 0)))]


def test_an_attach_that_is_refused() -> None:
    talk = Talk(Role.CLIENT)
    session = talk.connection.attach(0, NAME, force=True)
    assert talk.words()[0] == amqp.SessionAttach(name=NAME, force=True)
    assert talk.say(amqp.SessionDetached(name=NAME, code=1)) == [SessionEnded(0, 1)]
    assert not talk.connection.sessions
    assert not session.is_attached


def test_qpidd_asks_before_its_first_transfer() -> None:
    talk = Talk(Role.CLIENT)
    talk.attached()
    talk.say(FLUSH)
    assert talk.words() == [completed()]


def test_towards_brokers_completion_is_out_of_order() -> None:
    """A prefetch moves by any acknowledgement, and window credit by completion."""
    talk = Talk(Role.CLIENT)
    session = talk.attached()
    talk.say(*[command(TRANSFER, KEY, b"x")] * 4)
    session.finish(2, tell=True)
    assert talk.words() == [completed((2, 2))]
    session.finish(0)
    session.finish(1, tell=True)
    assert talk.words() == [completed((0, 2))]


def test_results_and_exceptions_are_finished_when_they_come() -> None:
    talk = Talk(Role.CLIENT)
    session = talk.attached()
    result, exception = amqp.ExecutionResult(command_id=0), amqp.ExecutionException(error_code=404)
    assert talk.say(result, exception) == [
        IncomingCommand(0, 0, result, False, False),
        IncomingCommand(0, 1, exception, False, False),
    ]
    assert session.receiver.owed() == sequence((0, 1))
    assert talk.words() == []


def test_a_broker_s_sync_is_its_client_s_to_finish() -> None:
    """Out of order nothing else holds it back."""
    talk = Talk(Role.CLIENT)
    session = talk.attached()
    talk.say(TRANSFER, command(SYNC, sync=True))
    assert session.receiver.owed() == sequence()
    session.finish(0, 1)
    assert talk.words() == [completed((0, 1))]


def test_a_broker_s_detach_is_answered() -> None:
    talk = Talk(Role.CLIENT)
    talk.attached()
    assert talk.say(amqp.SessionDetach(name=NAME)) == [SessionEnded(0, 0)]
    assert talk.words() == [amqp.SessionDetached(name=NAME, code=0)]


def test_a_client_that_crosses_a_broker_s_detach_waits_for_the_answer_to_its_own() -> None:
    talk = Talk(Role.CLIENT)
    session = talk.attached()
    session.detach()
    assert talk.say(amqp.SessionDetach(name=NAME)) == []
    assert talk.words() == [amqp.SessionDetach(name=NAME), amqp.SessionDetached(name=NAME, code=0)]
    with pytest.raises(ValueError, match="has a session"):
        talk.connection.attach(0, NAME)
    assert talk.say(amqp.SessionDetached(name=NAME, code=0)) == [SessionEnded(0, 0)]
    talk.connection.attach(0, NAME)


def test_a_broker_that_has_lost_the_session() -> None:
    talk = Talk(Role.CLIENT)
    talk.attached()
    assert talk.say(amqp.SessionDetached(name=b"", code=3)) == [SessionEnded(0, 3)]


def test_channels_that_were_not_tuned_have_no_sessions() -> None:
    talk = Talk(Role.CLIENT, tuning=Tuning(channel_max=2), answer=amqp.ConnectionTuneOk(channel_max=2))
    talk.connection.attach(1, NAME)
    with pytest.raises(ValueError, match="channel 2"):
        talk.connection.attach(2, NAME)


def test_send_body_without_a_body_is_dropped() -> None:
    talk = Talk()
    session = talk.attached()
    session.send(TRANSFER, KEY, b"x")
    talk.read()
    session.send_body(b"y", is_last=True)
    assert talk.connection.take_output() == b""


def test_a_command_of_two_frames_is_one_command() -> None:
    talk = Talk()
    talk.attached()
    whole = command(DECLARE)[12:]
    told = talk.say(frame(B | E | b, 1, whole[:5]), FLUSH, frame(B | E | e, 1, whole[5:]))
    assert told == [IncomingCommand(0, 0, DECLARE, False, False)]
