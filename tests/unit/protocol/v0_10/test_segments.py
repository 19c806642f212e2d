"""Assemblies: every cut and interleaving, what is out of place, and what it may cost."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10.frames import BODY, COMMAND, CONTROL, HEADER, SegmentFrame
from amqpgate.protocol.v0_10.segments import (
    MOST_PARTIAL,
    Assembler,
    AssemblyEvent,
    BodyIn,
    CommandIn,
    ControlIn,
    HeaderIn,
)
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.codec import encode_command, encode_control, encode_header
from tests.support.talk_0_10 import ALONE, KEY, TRANSFER, B, E, b, e

SYNC = encode_command(amqp.ExecutionSync())
COMMAND_BYTES = encode_command(TRANSFER)
HEADER_BYTES = encode_header(KEY)
HEARTBEAT = encode_control(amqp.ConnectionHeartbeat())


def of(flags: int, kind: int, payload: bytes, channel: int = 0, track: int | None = None) -> SegmentFrame:
    return SegmentFrame(
        flags, kind, (0 if kind == CONTROL else 1) if track is None else track, channel, payload
    )


def feed(*frames: SegmentFrame) -> list[AssemblyEvent]:
    assembler = Assembler()
    return [event for frame in frames if (event := assembler.feed(frame)) is not None]


def refused(*frames: SegmentFrame) -> int:
    """The code for the last of the frames; those before it are right."""
    assembler = Assembler()
    for frame in frames[:-1]:
        assembler.feed(frame)
    with pytest.raises(ProtocolViolation) as caught:
        assembler.feed(frames[-1])
    assert caught.value.channel == frames[-1].channel
    return caught.value.code


C = of(B | b | e, COMMAND, COMMAND_BYTES)
H = of(b | e, HEADER, HEADER_BYTES)


def test_the_forms_of_a_command() -> None:
    assert feed(of(ALONE, COMMAND, SYNC)) == [CommandIn(0, amqp.ExecutionSync(), False, False)]
    assert feed(C, of(E | b | e, HEADER, HEADER_BYTES)) == [
        CommandIn(0, TRANSFER, False, True),
        HeaderIn(0, KEY, False),
    ]
    assert feed(C, of(E | b | e, BODY, b"x")) == [CommandIn(0, TRANSFER, False, True), BodyIn(0, b"x", True)]
    assert feed(C, H, of(E | b, BODY, b"x"), of(E, BODY, b"y"), of(E | e, BODY, b"")) == [
        CommandIn(0, TRANSFER, False, True),
        HeaderIn(0, KEY, True),
        BodyIn(0, b"x", False),
        BodyIn(0, b"y", False),
        BodyIn(0, b"", True),
    ]


def test_a_control_is_alone() -> None:
    assert feed(of(ALONE, CONTROL, HEARTBEAT)) == [ControlIn(0, amqp.ConnectionHeartbeat())]


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param([of(E, COMMAND, SYNC)], id="continuation without a first frame"),
        pytest.param([of(B | e, COMMAND, SYNC)], id="last frame without a first one"),
        pytest.param([of(E | b | e, COMMAND, SYNC)], id="command that is not the first segment"),
        pytest.param([H], id="header without a command"),
        pytest.param([of(ALONE, HEADER, HEADER_BYTES)], id="header as the first segment"),
        pytest.param([of(E | b | e, BODY, b"")], id="body without a command"),
        pytest.param([of(ALONE, BODY, b"")], id="body as the first segment"),
        pytest.param([of(B | b | e, CONTROL, HEARTBEAT)], id="control with more segments"),
        pytest.param([C, C], id="command amid a command"),
        pytest.param([C, of(ALONE, COMMAND, SYNC)], id="whole command amid a command"),
        pytest.param([C, of(ALONE, CONTROL, HEARTBEAT, track=1)], id="control amid a command on its track"),
        pytest.param([C, H, H], id="two headers"),
        pytest.param([C, of(E | b, BODY, b"x"), of(b | e, HEADER, HEADER_BYTES)], id="header in a body"),
        pytest.param([C, of(b | e, BODY, b"x")], id="body that is not the last segment"),
        pytest.param([C, of(B | b | e, HEADER, HEADER_BYTES)], id="header as a first segment after one"),
        pytest.param([C, of(E | b, BODY, b"x"), of(E | b, BODY, b"x")], id="second first frame of a body"),
        pytest.param([C, of(E | b | e, BODY, b"x"), of(E | e, BODY, b"x")], id="body after its end"),
        pytest.param([of(B | E | b, COMMAND, SYNC), of(B | e, COMMAND, b"")], id="flags that change"),
        pytest.param([of(B | E | b, COMMAND, SYNC), of(B | E | e, HEADER, b"")], id="type that changes"),
    ],
)
def test_out_of_place_is_501(frames: list[SegmentFrame]) -> None:
    assert refused(*frames) == 501


@pytest.mark.parametrize("track", [0, 1, 2, 15])
def test_what_a_frame_is_its_type_says_and_not_its_track(track: int) -> None:
    assert feed(of(ALONE, COMMAND, SYNC, track=track)) == [CommandIn(0, amqp.ExecutionSync(), False, False)]
    assert feed(of(ALONE, CONTROL, HEARTBEAT, track=track)) == [ControlIn(0, amqp.ConnectionHeartbeat())]


def test_controls_and_other_channels_come_between() -> None:
    events = feed(C, of(ALONE, CONTROL, HEARTBEAT), H, of(ALONE, COMMAND, SYNC, 1), of(E | b | e, BODY, b"x"))
    assert [type(event) for event in events] == [CommandIn, ControlIn, HeaderIn, CommandIn, BodyIn]


#: A segment as the pieces that it is cut into, and an assembly as its segments.
def _frames(draw: st.DrawFn, channel: int) -> list[SegmentFrame]:
    kinds = draw(st.sampled_from(["control", "sync", "c", "ch", "cb", "chb"]))
    whole = {"control": [(CONTROL, HEARTBEAT)], "sync": [(COMMAND, SYNC)]}.get(kinds) or [
        {"c": (COMMAND, COMMAND_BYTES), "h": (HEADER, HEADER_BYTES), "b": (BODY, b"body" * 5)}[kind]
        for kind in kinds
    ]
    found = []
    for number, (kind, payload) in enumerate(whole):
        cuts = sorted(draw(st.lists(st.integers(0, len(payload)), max_size=3)))
        pieces = [payload[start:end] for start, end in zip([0, *cuts], [*cuts, len(payload)], strict=True)]
        segment = (0 if number else B) | (E if number == len(whole) - 1 else 0)
        for at, piece in enumerate(pieces):
            flags = segment | (0 if at else b) | (e if at == len(pieces) - 1 else 0)
            found.append(of(flags, kind, piece, channel))
    return found


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[list[SegmentFrame]], list[SegmentFrame]]:
    """Frames of a few channels and both tracks, each in order, and all of them mixed."""
    each = [[frame for _ in range(2) for frame in _frames(draw, channel)] for channel in range(3)]
    by_track = [[one for one in frames if one.track == track] for frames in each for track in (0, 1)]
    order = draw(st.permutations([number for number, frames in enumerate(by_track) for _ in frames]))
    left = [iter(frames) for frames in by_track]
    return by_track, [next(left[number]) for number in order]


@given(streams())
def test_any_cut_and_any_interleaving_is_the_same(given_streams) -> None:
    by_track, mixed = given_streams
    events = feed(*mixed)
    apart = [event for frames in by_track for event in feed(*frames)]
    assert sorted(map(repr, events)) == sorted(map(repr, apart))
    for channel in range(3):
        commands = [one for one in events if one.channel == channel and not isinstance(one, ControlIn)]
        assert commands == [one for one in apart if one.channel == channel and not isinstance(one, ControlIn)]
        for one in commands:
            if isinstance(one, HeaderIn):
                assert one.structs == KEY
            elif isinstance(one, CommandIn):
                assert one.command in (TRANSFER, amqp.ExecutionSync())


# -- what is inside -----------------------------------------------------------------------------------------


def test_inside_of_a_session_s_segment_is_503_and_the_next_one_is_taken() -> None:
    for bad in (
        of(ALONE, COMMAND, b"\x63\x63\x01\x00\x00\x00"),
        of(ALONE, COMMAND, b""),
        of(ALONE, COMMAND, SYNC + b"x"),
        of(ALONE, CONTROL, b"\x02\x63\x00\x00"),
        of(ALONE, CONTROL, b"\x63\x01\x00\x00"),
        of(ALONE, CONTROL, b""),
    ):
        assembler = Assembler()
        with pytest.raises(ProtocolViolation) as caught:
            assembler.feed(bad)
        assert caught.value.code == 503
        assert assembler.feed(of(ALONE, COMMAND, SYNC)) is not None


def test_inside_of_a_control_of_the_connection_is_501() -> None:
    assert refused(of(ALONE, CONTROL, b"\x01\x63\x00\x00")) == 501
    assert refused(of(ALONE, CONTROL, HEARTBEAT + b"x")) == 501


def test_a_command_that_cannot_be_decoded_has_its_content_still() -> None:
    assembler = Assembler()
    with pytest.raises(ProtocolViolation):
        assembler.feed(of(B | b | e, COMMAND, b"\x63\x63\x01\x00\x00\x00"))
    assert assembler.feed(H) == HeaderIn(0, KEY, True)
    assert assembler.feed(of(E | b | e, BODY, b"x")) == BodyIn(0, b"x", True)


# -- what it costs ------------------------------------------------------------------------------------------


def test_no_more_than_so_many_segments_are_in_parts() -> None:
    halves = [of(B | E | b, COMMAND, SYNC[:2], channel) for channel in range(MOST_PARTIAL + 1)]
    assert refused(*halves) == 506
    assembler = Assembler()
    for _ in range(3):
        for half in halves[:-1]:
            assembler.feed(half)
        for half in halves[:-1]:
            event = assembler.feed(of(B | E | e, COMMAND, SYNC[2:], half.channel))
            assert isinstance(event, CommandIn)


def test_a_segment_in_parts_is_as_large_as_a_frame_at_most() -> None:
    part = of(B, COMMAND, bytes(30_000))
    assert refused(of(B | b, COMMAND, bytes(30_000)), part, part) == 506


def test_empty_parts_cost_nothing() -> None:
    assembler = Assembler()
    assembler.feed(of(B | b, COMMAND, b"x"))
    ((_, before),) = assembler.assemblies.items()
    size = sys.getsizeof(before.data)
    for _ in range(10_000):
        assembler.feed(of(B, COMMAND, b""))
    ((_, after),) = assembler.assemblies.items()
    assert sys.getsizeof(after.data) == size


def test_bodies_are_not_kept() -> None:
    assembler = Assembler()
    for frame in (C, H, of(E | b, BODY, bytes(60_000))):
        assembler.feed(frame)
    for _ in range(100):
        assembler.feed(of(E, BODY, bytes(60_000)))
    (assembly,) = assembler.assemblies.values()
    assert assembly.data is None


def test_what_is_whole_leaves_nothing() -> None:
    assembler = Assembler()
    for frame in (C, H, of(E | b | e, BODY, b"x"), of(ALONE, COMMAND, SYNC), of(ALONE, CONTROL, HEARTBEAT)):
        assembler.feed(frame)
    assert not assembler.assemblies


def test_what_a_session_leaves_under_way_goes_on_or_makes_room() -> None:
    assembler = Assembler()
    assembler.feed(C)
    assembler.abandon(0)
    assert assembler.feed(H) == HeaderIn(0, KEY, True)
    assert assembler.feed(of(ALONE, COMMAND, SYNC)) == CommandIn(0, amqp.ExecutionSync(), False, False)
    assert not assembler.assemblies


def test_what_makes_room_is_no_longer_counted() -> None:
    assembler = Assembler()
    for _ in range(3 * MOST_PARTIAL):
        assembler.feed(of(B | E | b, COMMAND, SYNC[:2]))
        assembler.abandon(0)
    assembler.feed(of(ALONE, COMMAND, SYNC))
    assert not assembler.assemblies
