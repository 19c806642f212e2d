"""What a hostile peer may send, and what it gets: a close for what a frame is, an exception for what is in
one.

Most of it was sent to qpidd 1.40, which survives it, though not always with an answer. Where a test names a
vulnerability, that is of brokers that did not.
"""

from __future__ import annotations

import tracemalloc
from struct import pack

import pytest

from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.endpoint import SessionConnection
from amqpgate.protocol.v0_10.events import ConnectionFailed, IncomingCommand, SessionFailed
from amqpgate.protocol.v0_10.receiving import MOST_RANGES
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10 import PROTOCOL_HEADER
from amqpgate.wire.v0_10.codec import encode_command
from amqpgate.wire.v0_10.sequences import SequenceSet
from tests.support.said_0_10 import Splitter
from tests.support.talk_0_10 import (
    ALONE,
    KEY,
    NAME,
    TRANSFER,
    B,
    E,
    Talk,
    b,
    command,
    control,
    e,
    frame,
)

DETACH = amqp.SessionDetach(name=NAME)
SYNC = amqp.ExecutionSync()


@pytest.fixture(params=Role, ids=lambda role: f"to a {role.value}")
def talk(request: pytest.FixtureRequest) -> Talk:
    """A connection with a session on channel 0."""
    talk = Talk(request.param)
    talk.attached()
    return talk


def closes(talk: Talk, *said, code: int = 501, reply: int = 501) -> None:
    """It ends the connection."""
    failed = talk.say(*said)[-1]
    assert isinstance(failed, ConnectionFailed)
    assert failed.violation.code == code
    close = talk.words()[-1]
    assert close.reply_code == reply
    assert talk.say(SYNC) == []


def fails(talk: Talk, *said, code: int = 503, command_id: int | None = None) -> None:
    """It ends the session, and the connection goes on."""
    failed = talk.say(*said)[-1]
    assert isinstance(failed, SessionFailed)
    assert failed.violation.code == code
    exception, detach = talk.words()[-2:]
    assert (exception.error_code, exception.command_id) == (code, command_id)
    assert detach == DETACH
    assert talk.say(SYNC, amqp.SessionFlush(completed=True)) == []
    assert talk.words() == []
    talk.say(amqp.SessionDetached(name=NAME, code=0))
    talk.attached()
    assert talk.say(SYNC)


def raw_set(*numbers: int, size: int | None = None) -> bytes:
    data = b"".join(pack(">I", number) for number in numbers)
    return pack(">H", len(data) if size is None else size) + data


def accept(raw: bytes) -> bytes:
    """message.accept with a set of this encoding."""
    return frame(ALONE, 1, b"\x04\x02\x01\x00\x01\x00" + raw)


def completed(raw: bytes) -> bytes:
    return frame(ALONE, 0, b"\x02\x0a\x01\x00" + raw)


# -- sets of ids --------------------------------------------------------------------------------------------

BAD_SETS = {
    "lower above upper": raw_set(5, 3),
    "no multiple of eight": raw_set(1, size=4),
    "all ids": raw_set(0, 0xFFFFFFFF),
    "ranges that overlap": raw_set(0, 5, 3, 9),
    "longer than the frame": raw_set(0, 1, size=16),
}


@pytest.mark.parametrize("bad", BAD_SETS.values(), ids=BAD_SETS)
def test_malformed_sets_in_a_command(talk: Talk, bad: bytes) -> None:
    fails(talk, accept(bad), command_id=0)


@pytest.mark.parametrize("bad", BAD_SETS.values(), ids=BAD_SETS)
def test_malformed_sets_in_a_control(talk: Talk, bad: bytes) -> None:
    """CVE-2015-0203, CVE-2015-0224: sets that start after their end, among others."""
    fails(talk, completed(bad))


def test_sets_of_very_many_ids_are_taken_as_they_are(talk: Talk) -> None:
    """They are not this room's to judge, and nothing here walks them."""
    (huge,) = talk.say(accept(raw_set(0, 0x7FFFFFFF - 1)))
    assert huge.command.transfers.ranges == ((0, 0x7FFFFFFF - 1),)
    (many,) = talk.say(accept(raw_set(*range(16_000))))
    assert len(many.command.transfers.ranges) == 8000


def test_completed_for_ids_that_were_never_sent(talk: Talk) -> None:
    fails(talk, completed(raw_set(0, 0)), code=542)
    fails(talk, completed(raw_set(0, 0x7FFFFFF0)), code=542)


def test_known_completed_ahead(talk: Talk) -> None:
    known = amqp.SessionKnownCompleted(commands=SequenceSet(((0, 3),)))
    fails(talk, SYNC, known, code=542)


def test_many_ranges_of_completed(talk: Talk) -> None:
    session = talk.connection.sessions[0]
    for _ in range(3 * MOST_RANGES):
        session.send(SYNC)
    talk.read()
    every_second = raw_set(*[number // 2 * 2 + 1 for number in range(2, 2 * MOST_RANGES + 6)])
    fails(talk, completed(every_second), code=506)


# -- assemblies ---------------------------------------------------------------------------------------------


def test_content_of_a_command_that_has_none(talk: Talk) -> None:
    """CVE-2015-0203, CVE-2015-0224: content after another command than transfer, among others."""
    fails(talk, command(SYNC, KEY), command_id=0)
    fails(talk, command(SYNC), command(SYNC, None, b"x"), command_id=2)


def test_a_header_without_a_command(talk: Talk) -> None:
    closes(talk, frame(E | b | e, 2))


def test_a_body_without_a_command(talk: Talk) -> None:
    closes(talk, frame(E | b | e, 3, b"x"))


def test_a_continuation_without_a_first_frame(talk: Talk) -> None:
    closes(talk, frame(B | E | e, 1, encode_command(SYNC)))


def test_command_offset(talk: Talk) -> None:
    closes(talk, amqp.SessionCommandPoint(command_id=0, command_offset=1))


def test_command_point_ahead(talk: Talk) -> None:
    fails(talk, SYNC, amqp.SessionCommandPoint(command_id=7, command_offset=0), code=542)


def test_command_point_without_an_id(talk: Talk) -> None:
    fails(talk, amqp.SessionCommandPoint())


def test_a_command_without_command_point() -> None:
    talk = Talk()
    talk.say(amqp.SessionAttach(name=NAME))
    talk.read()
    fails(talk, SYNC, code=409)


def test_gap(talk: Talk) -> None:
    fails(talk, amqp.SessionGap(commands=SequenceSet(((0, 1),))), code=540)


def test_gap_without_a_session() -> None:
    """CVE-2015-0203, CVE-2015-0224: a gap before attach, among others."""
    talk = Talk()
    assert talk.say(amqp.SessionGap()) == []
    assert talk.words() == [amqp.SessionDetached(name=b"", code=3)]


def test_segments_in_two_frames_are_taken(talk: Talk) -> None:
    raw = encode_command(SYNC)
    flush = control(amqp.SessionFlush(completed=True))[12:]
    (event,) = talk.say(frame(B | E | b, 1, raw[:2]), frame(B | E | e, 1, raw[2:]))
    assert isinstance(event, IncomingCommand)
    talk.say(frame(B | E | b, 0, flush[:3]), frame(B | E | e, 0, flush[3:]))
    assert [type(one) for one in talk.words()] == [amqp.SessionCompleted]
    whole = command(TRANSFER, KEY)
    at = len(command(TRANSFER))
    header = whole[at + 12 :]
    parts = talk.say(whole[:at], frame(E | b, 2, header[:5]), frame(E | e, 2, header[5:]))
    assert parts[-1].structs == KEY


def test_too_many_segments_in_parts(talk: Talk) -> None:
    for channel in range(1, 17):
        talk.attached(channel, b"%d" % channel)
    halves = [frame(B | E | b, 1, b"\x03", channel=channel) for channel in range(16)]
    assert talk.say(*halves) == []
    (failed,) = talk.say(frame(B | E | b, 1, b"\x03", channel=16))
    assert (failed.channel, failed.violation.code) == (16, 506)


def test_a_segment_without_end(talk: Talk) -> None:
    part = frame(B, 1, bytes(60_000))
    (failed,) = talk.say(frame(B | b, 1, bytes(60_000)), part)
    assert failed.violation.code == 506
    assert talk.say(part, part, part) == []
    talk.say(amqp.SessionDetached(name=NAME, code=0))
    talk.attached()
    assert talk.say(SYNC)


def test_a_control_amid_a_transfer_is_taken(talk: Talk) -> None:
    whole = command(TRANSFER, KEY, b"x")
    at = len(command(TRANSFER))
    events = talk.say(whole[:at], amqp.SessionFlush(), control(amqp.ConnectionHeartbeat()), whole[at:])
    assert len(events) == 3


@pytest.mark.parametrize("track", [0, 2, 15])
def test_a_command_on_another_track(talk: Talk, track: int) -> None:
    (event,) = talk.say(frame(ALONE, 1, encode_command(SYNC), track=track))
    assert isinstance(event, IncomingCommand)


def test_a_control_on_the_track_of_commands(talk: Talk) -> None:
    talk.say(frame(ALONE, 0, control(amqp.SessionFlush(completed=True))[12:], track=1))
    assert [type(one) for one in talk.words()] == [amqp.SessionCompleted]


# -- frames -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(frame(ALONE, 1, encode_command(SYNC), size=11), id="size 11"),
        pytest.param(frame(ALONE | 0x10, 1, encode_command(SYNC)), id="reserved flag"),
        pytest.param(frame(ALONE | 0x40, 1, encode_command(SYNC)), id="version of framing"),
        pytest.param(frame(ALONE, 9, encode_command(SYNC)), id="segment type 9"),
    ],
)
def test_what_is_no_frame(talk: Talk, bad: bytes) -> None:
    closes(talk, bad)
    assert talk.connection.is_over


def test_a_channel_above_channel_max(talk: Talk) -> None:
    """Channels are numbered from 0: with 64 of them the last one is 63."""
    assert talk.say(command(SYNC, channel=63)) == []
    closes(talk, command(SYNC, channel=64))


@pytest.mark.parametrize("channel", [1, 63])
def test_a_control_of_the_connection_on_another_channel(talk: Talk, channel: int) -> None:
    closes(talk, control(amqp.ConnectionHeartbeat(), channel))


def test_a_second_tune_ok() -> None:
    closes(Talk(), amqp.ConnectionTuneOk())


def test_a_second_start_ok_and_a_second_open() -> None:
    closes(Talk(), amqp.ConnectionStartOk())
    closes(Talk(), amqp.ConnectionOpen())


def test_a_malformed_control_of_the_connection(talk: Talk) -> None:
    closes(talk, frame(ALONE, 0, b"\x01\x0b\xff\xff"))


@pytest.mark.parametrize(
    "early",
    [
        pytest.param(command(SYNC), id="command"),
        pytest.param(control(amqp.SessionAttach(name=NAME)), id="attach"),
        pytest.param(control(amqp.SessionGap()), id="gap"),
        pytest.param(frame(B | E | b, 1, b"x"), id="half a command"),
        pytest.param(frame(ALONE, 0, channel=5), id="another channel"),
        pytest.param(frame(B | E | b, 0, b"x", track=1), id="half a control on another track"),
        pytest.param(frame(ALONE, 0, b"\x63\x63"), id="unknown control"),
    ],
)
def test_sessions_before_login(early: bytes) -> None:
    """CVE-2016-4432, CVE-2018-1298, CVE-2019-0200: states that are skipped, commands before the login."""
    connection = SessionConnection(Role.SERVER)
    list(connection.receive(PROTOCOL_HEADER))
    connection.send(amqp.ConnectionStart())
    (failed,) = connection.receive(early)
    assert failed.violation.code == 501
    assert list(connection.receive(control(amqp.ConnectionStartOk()))) == []
    (_, close) = Splitter().feed(connection.take_output())
    assert close.control.NAME == "connection.close"


# -- what is in a segment -----------------------------------------------------------------------------------

PROPERTIES = command(TRANSFER, KEY)[len(command(TRANSFER)) + 12 :]


def transfer(header: bytes) -> bytes:
    """A transfer with a header of these bytes."""
    return command(TRANSFER, ())[: len(command(TRANSFER))] + frame(E | b | e, 2, header)


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(frame(ALONE, 1, b"\x63\x01\x01\x00\x00\x00"), id="unknown class"),
        pytest.param(frame(ALONE, 1, b"\x04\x63\x01\x00\x00\x00"), id="unknown command"),
        pytest.param(frame(ALONE, 1, b"\x03\x01\x00\x00\x00\x00"), id="session header of size 0"),
        pytest.param(frame(ALONE, 1, encode_command(SYNC) + b"x"), id="trailing bytes"),
        pytest.param(frame(ALONE, 1, b"\x03\x01\x01\x00\x01\x00"), id="packing flag of no field"),
        pytest.param(frame(ALONE, 1, b""), id="nothing"),
        pytest.param(
            frame(ALONE, 1, b"\x08\x01\x01\x00\x41\x00\x01q\x00\x00\xff\xff\x00\x00\x00\x01"),
            id="map beyond the frame",
        ),
        pytest.param(transfer(PROPERTIES * 2), id="two delivery-properties"),
        pytest.param(transfer(PROPERTIES[:-1]), id="header that is cut short"),
        pytest.param(transfer(b"\xff\xff\xff\xff\x04\x01"), id="struct beyond the frame"),
    ],
)
def test_what_is_no_command(talk: Talk, bad: bytes) -> None:
    fails(talk, bad, command_id=0)


@pytest.mark.parametrize("bad", [b"\x02\x63\x00\x00", b"\x63\x01\x00\x00", b"\x02", b"\x02\x0c\xff\xff"])
def test_what_is_no_control(talk: Talk, bad: bytes) -> None:
    fails(talk, frame(ALONE, 0, bad))


def test_an_unknown_struct_in_a_header_is_kept(talk: Talk) -> None:
    *_, header = talk.say(transfer(PROPERTIES + b"\x00\x00\x00\x03\x63\x01x"))
    assert len(header.structs) == 2


def declare(arguments: bytes) -> bytes:
    """queue.declare with these bytes for its map of arguments."""
    return frame(ALONE, 1, b"\x08\x01\x01\x00\x41\x00\x01q" + pack(">I", len(arguments)) + arguments)


def test_an_array_of_very_many_voids(talk: Talk) -> None:
    """CVE-2012-4458, -4459, -4460: elements of no width, without end, among others."""
    array = b"\xf0\xff\xff\xff\xff"
    arguments = pack(">I", 1) + b"\x01a\xaa" + pack(">I", len(array)) + array
    fails(talk, declare(arguments), code=506, command_id=0)


def test_a_map_that_is_nested_deeper_than_anybody_needs(talk: Talk) -> None:
    arguments = pack(">I", 0)
    for _ in range(300):
        arguments = pack(">I", 1) + b"\x01a\xa8" + pack(">I", len(arguments)) + arguments
    fails(talk, declare(arguments), code=506, command_id=0)


# -- what it costs ------------------------------------------------------------------------------------------


def grown(talk: Talk, said: bytes, times: int) -> int:
    """Bytes of memory that so many reads of ``said`` leave behind."""
    for _ in range(3):
        talk.say(said)
        talk.connection.take_output()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(times):
        talk.say(said)
        talk.connection.take_output()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return after - before


def test_commands_that_nobody_finishes_leave_next_to_nothing(talk: Talk) -> None:
    """What is kept of them is the owner's."""
    assert grown(talk, command(TRANSFER, KEY, bytes(1000)), 500) < 20_000


def test_questions_leave_nothing(talk: Talk) -> None:
    flush = control(amqp.SessionFlush(expected=True, confirmed=True, completed=True))
    ask = control(amqp.SessionRequestTimeout()) + control(amqp.SessionAttached(name=NAME))
    assert grown(talk, (flush + (ask if talk.connection.role is Role.CLIENT else b"")) * 20, 50) < 20_000


def test_names_and_channels_without_sessions_leave_nothing() -> None:
    talk = Talk()
    wrong = control(amqp.SessionDetach(name=bytes(4000)), 5) + command(TRANSFER, KEY, bytes(1000), channel=6)
    assert grown(talk, wrong, 200) < 20_000


def test_sessions_that_come_and_go_leave_nothing() -> None:
    talk = Talk()
    said = b"".join(
        control(one, channel)
        for channel in range(60)
        for one in (amqp.SessionAttach(name=b"%d" % channel), amqp.SessionDetach(name=b"%d" % channel))
    )
    assert grown(talk, said, 20) < 20_000


def test_answers_are_no_more_than_questions(talk: Talk) -> None:
    """A flood gets less back than it sends."""
    flood = control(amqp.SessionFlush(expected=True, confirmed=True, completed=True)) * 1000
    talk.say(flood)
    assert len(talk.connection.take_output()) < 200
    flood = command(SYNC, sync=True) * 1000
    talk.say(flood)
    assert len(talk.connection.take_output()) < 200
