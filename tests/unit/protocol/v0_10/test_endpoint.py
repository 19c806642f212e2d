"""A connection from its protocol header to its close, in both roles."""

from __future__ import annotations

import pytest

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.handshake import ConnectionState
from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.connection import Tuning
from amqpgate.protocol.v0_10.endpoint import SessionConnection
from amqpgate.protocol.v0_10.events import ConnectionClosed, ConnectionControl, ConnectionFailed, PeerHeader
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10 import PROTOCOL_HEADER
from amqpgate.wire.v0_10.sequences import SequenceSet
from tests.support.said_0_10 import Splitter
from tests.support.talk_0_10 import ATTACH, KEY, POINT, TRANSFER, Talk, b, command, control, e, frame

S = ConnectionState
START = amqp.ConnectionStart()
START_OK = amqp.ConnectionStartOk(mechanism=b"PLAIN", response=b"\0user\0secret", locale=b"en_US")
OPEN = amqp.ConnectionOpen(virtual_host=b"")
CLOSE = amqp.ConnectionClose(reply_code=200, reply_text=b"bye")
CLOSE_OK = amqp.ConnectionCloseOk()
HEARTBEAT = amqp.ConnectionHeartbeat()


def words(data: bytes, *, header: bool = False) -> list:
    return [one.control or one.command for one in Splitter(header=header).feed(data)]


def heard(connection: SessionConnection, *said: bytes | amqp.Control) -> list:
    return list(connection.receive(b"".join(one if isinstance(one, bytes) else control(one) for one in said)))


# -- the protocol header ------------------------------------------------------------------------------------


def test_a_server_echoes_the_header_and_starts() -> None:
    connection = SessionConnection(Role.SERVER)
    assert heard(connection, PROTOCOL_HEADER[:5]) == []
    assert heard(connection, PROTOCOL_HEADER[5:]) == [PeerHeader(PROTOCOL_HEADER, True)]
    connection.send(START)
    assert connection.take_output() == PROTOCOL_HEADER + control(START)


@pytest.mark.parametrize("header", [b"AMQP\0\0\x09\x01", b"AMQP\x01\x01\x00\x09", b"GET / HT"])
def test_another_header_is_answered_with_what_is_spoken_here(header: bytes) -> None:
    connection = SessionConnection(Role.SERVER)
    assert heard(connection, header) == [PeerHeader(header, False)]
    assert connection.take_output() == PROTOCOL_HEADER
    assert connection.is_over
    assert heard(connection, PROTOCOL_HEADER) == []


def test_a_client_wants_its_header_back() -> None:
    connection = SessionConnection(Role.CLIENT)
    connection.send_header()
    with pytest.raises(ValueError, match="once"):
        connection.send_header()
    assert connection.take_output() == PROTOCOL_HEADER
    assert heard(connection, PROTOCOL_HEADER, START) == [
        PeerHeader(PROTOCOL_HEADER, True),
        ConnectionControl(START),
    ]
    other = SessionConnection(Role.CLIENT)
    other.send_header()
    assert heard(other, b"AMQP\0\0\x09\x01") == [PeerHeader(b"AMQP\0\0\x09\x01", False)]
    assert other.is_over


# -- login --------------------------------------------------------------------------------------------------


def started(role: Role = Role.SERVER) -> SessionConnection:
    """Up to start."""
    connection = SessionConnection(role)
    if role is Role.SERVER:
        heard(connection, PROTOCOL_HEADER)
        connection.send(START)
    else:
        connection.send_header()
        heard(connection, PROTOCOL_HEADER, START)
    connection.take_output()
    return connection


@pytest.mark.parametrize("response", [None, b"", b"\0user\0secret"])
def test_an_absent_response_is_not_an_empty_one(response: bytes | None) -> None:
    start_ok = amqp.ConnectionStartOk(mechanism=b"PLAIN", response=response)
    (event,) = heard(started(), start_ok)
    assert event.control.response == response
    client = started(Role.CLIENT)
    client.send(start_ok)
    (sent,) = words(client.take_output())
    assert sent.response == response


def test_secure_goes_round_as_often_as_it_takes() -> None:
    connection = started()
    heard(connection, START_OK)
    for number in range(3):
        connection.send(amqp.ConnectionSecure(challenge=b"%d" % number))
        secure_ok = amqp.ConnectionSecureOk(response=b"%d" % number)
        assert heard(connection, secure_ok) == [ConnectionControl(secure_ok)]
    connection.send(Tuning().offer())
    assert connection.state is S.TUNING


def test_secrets_are_in_no_repr() -> None:
    connection = started()
    (event,) = heard(connection, START_OK)
    assert "secret" not in repr(event)
    connection.send(amqp.ConnectionSecure(challenge=b""))
    (event,) = heard(connection, amqp.ConnectionSecureOk(response=b"secret"))
    assert "secret" not in repr(event)


def test_a_refused_login_is_close_320() -> None:
    connection = started()
    heard(connection, START_OK)
    connection.close(403, "Authentication failed")
    assert words(connection.take_output()) == [
        amqp.ConnectionClose(reply_code=320, reply_text=b"Authentication failed")
    ]
    assert heard(connection, CLOSE_OK) == [ConnectionControl(CLOSE_OK)]
    assert connection.is_over


def test_a_login_that_a_broker_refuses_is_403() -> None:
    connection = started(Role.CLIENT)
    connection.send(START_OK)
    (closed,) = heard(connection, amqp.ConnectionClose(320, b"connection-forced: Authentication failed"))
    assert closed.violation.code == 403
    assert connection.is_over


def test_tune_ok_and_open_leave_in_one_write() -> None:
    connection = started(Role.CLIENT)
    connection.send(START_OK)
    connection.take_output()
    tune = Tuning(channel_max=9).offer()
    assert heard(connection, tune) == [ConnectionControl(tune)]
    answer = Tuning().answer(tune)
    connection.send(answer)
    connection.send(OPEN)
    assert words(connection.take_output()) == [answer, OPEN]
    assert connection.tune == Tuning(channel_max=9)


def test_what_is_tuned_holds() -> None:
    talk = Talk(answer=amqp.ConnectionTuneOk(channel_max=7, max_frame_size=5000, heartbeat=9))
    assert talk.connection.tune == Tuning(7, 5000, 9)
    talk.attached()
    # qpid-python sends 65535 bytes whatever was tuned.
    whole = command(TRANSFER, KEY, bytes(65_523))
    assert len(talk.say(whole)) == 3
    talk.connection.sessions[0].send(TRANSFER, KEY, bytes(20_000))
    data = talk.connection.take_output()
    sizes = []
    while data:
        sizes.append(int.from_bytes(data[2:4], "big"))
        data = data[sizes[-1] :]
    assert sizes[2:] == [5000] * 4 + [20_000 - 4 * 4988 + 12]


def test_before_tune_frames_are_small() -> None:
    connection = started()
    big = amqp.ConnectionStartOk(mechanism=b"PLAIN", response=bytes(5000))
    (event,) = heard(connection, big)
    assert isinstance(event, ConnectionFailed)
    assert event.violation.code == 501
    assert connection.is_over


def test_an_answer_outside_of_the_offer_closes() -> None:
    connection = started()
    heard(connection, START_OK)
    connection.send(Tuning(channel_max=5).offer())
    connection.take_output()
    (event,) = heard(connection, amqp.ConnectionTuneOk(channel_max=6))
    assert event.violation.code == 530
    (close,) = words(connection.take_output())
    assert close.reply_code == 320


def test_a_server_reads_on_when_it_has_answered() -> None:
    connection = started()
    events = connection.receive(control(START_OK) + control(amqp.ConnectionTuneOk()) + control(OPEN))
    assert [one.control for one in events] == [START_OK]
    assert connection.is_paused
    connection.send(Tuning().offer())
    assert [one.control for one in connection.receive()] == [amqp.ConnectionTuneOk(), OPEN]
    connection.send(amqp.ConnectionOpenOk())
    assert connection.state is S.OPEN


def test_what_comes_ahead_of_the_answers_is_bounded() -> None:
    connection = started()
    heard(connection, START_OK)
    assert heard(connection, bytes(60_000)) == []
    (event,) = heard(connection, bytes(60_000))
    assert event.violation.code == 506


# -- heartbeats ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", Role)
def test_heartbeats_are_controls_that_nobody_answers(role: Role) -> None:
    talk = Talk(role)
    assert talk.say(HEARTBEAT, HEARTBEAT) == []
    assert talk.words() == []
    talk.connection.send(HEARTBEAT)
    assert talk.words() == [HEARTBEAT]


def test_there_are_no_heartbeats_before_tune_ok() -> None:
    connection = started()
    (event,) = heard(connection, HEARTBEAT)
    assert event.violation.code == 501
    with pytest.raises(ValueError, match="heartbeat"):
        started().send(HEARTBEAT)


# -- closing ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", Role)
def test_a_close_is_answered(role: Role) -> None:
    talk = Talk(role)
    talk.attached()
    (closed,) = talk.say(CLOSE, HEARTBEAT)
    assert isinstance(closed, ConnectionClosed)
    assert (closed.violation.code, closed.violation.text) == (200, "bye")
    assert talk.words() == [CLOSE_OK]
    assert talk.connection.is_over
    assert not talk.connection.sessions


@pytest.mark.parametrize("role", Role)
def test_after_a_close_only_its_answer_is_heard(role: Role) -> None:
    talk = Talk(role)
    talk.attached()
    talk.connection.close(541, "broken")
    assert talk.words() == [amqp.ConnectionClose(reply_code=320, reply_text=b"541 broken")]
    talk.connection.close(320, "again")
    talk.connection.send(HEARTBEAT)
    said = talk.say(
        ATTACH,
        POINT,
        command(TRANSFER, KEY, b"x"),
        HEARTBEAT,
        control(amqp.ConnectionTuneOk()),
        frame(15, 0, b"?"),
    )
    assert said == []
    assert talk.words() == []
    assert not talk.connection.is_over
    assert talk.say(CLOSE_OK) == [ConnectionControl(CLOSE_OK)]
    assert talk.connection.is_over


def test_two_closes_that_cross() -> None:
    talk = Talk()
    talk.connection.close(200, "bye")
    assert len(talk.say(CLOSE)) == 1
    assert [type(one) for one in talk.words()] == [amqp.ConnectionClose, amqp.ConnectionCloseOk]
    assert not talk.connection.is_over
    talk.say(CLOSE_OK)
    assert talk.connection.is_over


def test_the_owner_cannot_say_what_is_not_legal() -> None:
    talk = Talk()
    for illegal in (START, amqp.ConnectionOpenOk(), OPEN, CLOSE_OK):
        with pytest.raises(ValueError, match="unexpected"):
            talk.connection.send(illegal)
    client = started(Role.CLIENT)
    client.send(START_OK)
    heard(client, Tuning(channel_max=3).offer())
    with pytest.raises(ValueError, match="channel-max"):
        client.send(amqp.ConnectionTuneOk(channel_max=4))
    assert talk.words() == []


def test_what_comes_after_a_violation_is_not_looked_at() -> None:
    talk = Talk()
    talk.attached()
    (event,) = talk.say(amqp.ConnectionTuneOk(), command(TRANSFER, KEY, b"x"))
    assert event == ConnectionFailed(event.violation)
    assert isinstance(event.violation, ProtocolViolation)
    assert event.violation.code == 501
    (close,) = talk.words()
    assert close.reply_code == 501
    assert talk.connection.state is S.SERVER_CLOSING


@pytest.mark.parametrize("role", Role)
def test_sessions_say_nothing_after_the_end_of_their_connection(role: Role) -> None:
    talk = Talk(role)
    session = talk.attached()
    session.send(TRANSFER, KEY, goes_on=True)
    talk.read()
    talk.say(amqp.SessionFlush(completed=True), frame(b | e, 2))
    session.send_body(b"x", is_last=True)
    session.fail(ProtocolViolation(404, "gone"))
    session.finish(0, tell=True)
    assert [type(one) for one in talk.words()] == [amqp.SessionCompleted, amqp.ConnectionClose]
    with pytest.raises(ValueError, match="cannot be sent"):
        session.send(TRANSFER)


def test_before_the_end_sessions_hear_what_is_complete() -> None:
    """Whether they asked or not: what is not told, a client sends again."""
    talk = Talk()
    for channel in range(3):
        talk.attached(channel, b"%d" % channel)
        talk.say(TRANSFER, TRANSFER, channel=channel)
    talk.connection.sessions[0].finish(0)
    talk.connection.sessions[1].finish(0, tell=True)
    talk.read()
    talk.connection.sessions[0].finish(1)
    talk.connection.close(320, "drained")
    completed, close = talk.read()
    assert (completed.channel, completed.control) == (
        0,
        amqp.SessionCompleted(commands=SequenceSet(((0, 1),))),
    )
    assert close.control == amqp.ConnectionClose(reply_code=320, reply_text=b"drained")


def test_events_come_one_at_a_time() -> None:
    """Each can be answered before the next frame is judged."""
    talk = Talk()
    session = talk.attached()
    events = talk.connection.receive(command(TRANSFER) + command(TRANSFER) + command(TRANSFER))
    assert next(events).command_id == 0
    session.fail(ProtocolViolation(403, "no"), 0)
    assert list(events) == []


def test_frames_may_be_cut_anywhere() -> None:
    talk = Talk()
    talk.attached()
    whole = command(TRANSFER, KEY, b"body") + frame(b | e, 2)[:0]
    events = [event for at in range(len(whole)) for event in talk.say(whole[at : at + 1])]
    assert len(events) == 3
