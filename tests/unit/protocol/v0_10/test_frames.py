"""Frames: golden bytes, each split, and all that is malformed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10 import build
from amqpgate.protocol.v0_10 import frames as plain
from amqpgate.protocol.v0_10.frames import (
    BODY,
    COMMAND,
    CONTROL,
    HEADER,
    MIN_MAX_FRAME_SIZE,
    MOST_FRAME_SIZE,
    SegmentFrame,
    body_frames,
    command_frames,
    control_frame,
    encode_segments,
)
from tests.support.talk_0_10 import ALONE, B, E, b, e, frame

#: As qpid-python sent them: tune-ok without fields, and a transfer with header and body on channel 1.
TUNE_OK = bytes.fromhex("0f000010000000000000000001060000")
TRANSFER = bytes.fromhex(
    "0b01001c000100010000000004010101010009616d712e746f7069630302004b0001000100000000"
    "000000080401000203612e620000002f04030801001003000a616d712e64697265637402726b0000"
    "001500000002016131000000000000000101629500017807030011000100010000000068656c6c6f"
)


DECODERS = list(dict.fromkeys((build.SegmentFrameDecoder, plain.SegmentFrameDecoder)))


def frames(data: bytes, size: int | None = None, largest: int = MOST_FRAME_SIZE) -> list[SegmentFrame]:
    """What both decoders make of it."""
    first, *others = (_frames(kind, data, size, largest) for kind in DECODERS)
    assert all(found == first for found in others)
    return first


def _frames(
    kind: type[plain.SegmentFrameDecoder], data: bytes, size: int | None, largest: int
) -> list[SegmentFrame]:
    decoder = kind(largest)
    found = []
    for at in range(0, len(data), size or len(data)):
        decoder.feed(data[at : at + (size or len(data))])
        while (frame := decoder.next()) is not None:
            found.append(frame)
    assert len(decoder) == 0
    return found


def refused(data: bytes, largest: int = MIN_MAX_FRAME_SIZE) -> str:
    first, *others = (_refused(kind, data, largest) for kind in DECODERS)
    assert all(text == first for text in others)
    return first


def _refused(kind: type[plain.SegmentFrameDecoder], data: bytes, largest: int) -> str:
    decoder = kind(largest)
    decoder.feed(data)
    for _ in range(2):
        with pytest.raises(ProtocolViolation) as caught:
            decoder.next()
        assert caught.value.code == 501
        assert decoder.is_broken
    return caught.value.text


def test_frames_of_qpid() -> None:
    assert frames(TUNE_OK) == [SegmentFrame(ALONE, CONTROL, 0, 0, TUNE_OK[12:])]
    command, header, body = frames(TRANSFER)
    assert command[:4] == (B | b | e, COMMAND, 1, 1)
    assert header[:4] == (b | e, HEADER, 1, 1)
    assert body == SegmentFrame(E | b | e, BODY, 1, 1, b"hello")
    assert encode_segments(1, command.payload, header.payload, body.payload) == TRANSFER
    assert control_frame(0, TUNE_OK[12:]) == TUNE_OK


@pytest.mark.parametrize("size", [1, 2, 3, 5, 11, 12, 13, 50])
def test_any_split_is_the_same(size: int) -> None:
    data = TUNE_OK + TRANSFER * 3
    assert frames(data, size) == frames(data)


def test_what_is_reserved_is_not_looked_at() -> None:
    data = bytearray(TUNE_OK)
    data[4] = data[8] = data[11] = 0xFF
    data[5] = 0xF0
    assert frames(bytes(data)) == frames(TUNE_OK)


def test_a_track_has_four_bits() -> None:
    assert frames(frame(ALONE, COMMAND, track=2))[0].track == 2


@pytest.mark.parametrize("flags", [0x1F, 0x2F, 0x4F, 0x8F, 0xFF])
def test_version_and_reserved_flags_are_501(flags: int) -> None:
    assert "flags" in refused(frame(flags, CONTROL))


@pytest.mark.parametrize("kind", [4, 9, 255])
def test_another_segment_type_is_501(kind: int) -> None:
    assert "segment type" in refused(frame(ALONE, kind))


@pytest.mark.parametrize("size", [0, 1, 11])
def test_a_size_below_the_header_is_501(size: int) -> None:
    assert "12 to 4096" in refused(frame(ALONE, CONTROL, size=size))


def test_a_size_above_the_largest_is_501_before_the_frame_is_there() -> None:
    assert refused(frame(ALONE, CONTROL, size=MIN_MAX_FRAME_SIZE + 1))
    assert frames(frame(ALONE, CONTROL, bytes(MIN_MAX_FRAME_SIZE - 12)), largest=MIN_MAX_FRAME_SIZE)
    assert frames(frame(ALONE, CONTROL, bytes(MOST_FRAME_SIZE - 12)))


@pytest.mark.parametrize("kind", DECODERS)
def test_what_is_buffered_is_bounded_by_what_was_fed(kind: type[plain.SegmentFrameDecoder]) -> None:
    decoder = kind(MOST_FRAME_SIZE)
    for _ in range(500):
        decoder.feed(TRANSFER)
        while decoder.next() is not None:
            pass
    assert len(decoder) == 0
    decoder.feed(TRANSFER[:30])
    assert decoder.next() is not None
    assert len(decoder) == 2


@pytest.mark.parametrize(
    ("header", "body", "flags"),
    [
        (None, b"", [ALONE]),
        (b"h", b"", [B | b | e, E | b | e]),
        (None, b"x" * 4, [B | b | e, E | b | e]),
        (b"h", b"x" * 4, [B | b | e, b | e, E | b | e]),
        (b"h", b"x" * 9, [B | b | e, b | e, E | b, E, E | e]),
    ],
)
def test_the_flags_say_where_a_frame_stands(header: bytes | None, body: bytes, flags: list[int]) -> None:
    found = frames(encode_segments(3, b"c", header, body, 16))
    assert [one.flags for one in found] == flags
    assert b"".join(one.payload for one in found) == b"c" + (header or b"") + body
    assert {one.channel for one in found} == {3}
    assert {one.track for one in found} == {1}
    assert all(len(one.payload) <= 4 for one in found)


def test_controls_commands_and_headers_are_not_cut() -> None:
    full = bytes(MIN_MAX_FRAME_SIZE - 12)
    assert len(frames(control_frame(0, full))) == 1
    assert len(frames(command_frames(0, full, full))) == 2
    for make in (
        lambda: control_frame(0, full + b"x"),
        lambda: command_frames(0, full + b"x"),
        lambda: command_frames(0, b"c", full + b"x"),
    ):
        with pytest.raises(ProtocolViolation) as caught:
            make()
        assert caught.value.code == 506


@given(st.lists(st.binary(max_size=50)), st.integers(13, 30))
def test_a_body_in_pieces(pieces: list[bytes], largest: int) -> None:
    data = b""
    is_first = True
    for piece in pieces:
        data += b"".join(body_frames(0, piece, largest, is_first=is_first, is_last=False))
        is_first &= not piece
    data += b"".join(body_frames(0, b"", largest, is_first=is_first, is_last=True))
    found = frames(data)
    assert b"".join(one.payload for one in found) == b"".join(pieces)
    assert [bool(one.flags & b) for one in found] == [True] + [False] * (len(found) - 1)
    assert [bool(one.flags & e) for one in found] == [False] * (len(found) - 1) + [True]
    assert all(one.flags & E and 12 + len(one.payload) <= largest for one in found)


#: What the decoders are asked for, one after the other.
ASKED = st.one_of(
    st.tuples(st.just("feed"), st.integers(0, 120)),
    st.tuples(st.just("next"), st.just(0)),
    st.tuples(st.just("message"), st.integers(0, 2)),
    st.tuples(st.just("take"), st.integers(0, 40)),
    st.tuples(st.just("clear"), st.just(0)),
)
ODD = [
    TRANSFER,
    TUNE_OK,
    encode_segments(0xFFFF, b"\4\1\1\0", b"", b"x" * 4000),
    encode_segments(1, b"\4\1", b"h"),
    frame(B | b | e, COMMAND, b"\4\1\1\0") + frame(b | e, HEADER, b"h", channel=2),
    frame(B | b | e, COMMAND, b"\4\1\1\0") + frame(b | e, HEADER, b"h") + frame(E | b, BODY, b"b"),
    frame(B | b | e, COMMAND, b"\4\1\1\0") + frame(b | e, HEADER, b"h", size=11),
]


@given(
    st.lists(st.sampled_from(ODD), max_size=5),
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), max_size=3),
    st.lists(ASKED, max_size=40),
    st.sampled_from([MIN_MAX_FRAME_SIZE, MOST_FRAME_SIZE, 20]),
)
def test_both_decoders_answer_the_same(
    said: list[bytes], changes: list[tuple[int, int]], asked: list[tuple[str, int]], largest: int
) -> None:
    data = bytearray(b"".join(said))
    for at, byte in changes:
        if at < len(data):
            data[at] = byte
    first, *others = (_answers(kind(largest), bytes(data), asked) for kind in DECODERS)
    assert all(answers == first for answers in others)


def _answers(decoder: plain.SegmentFrameDecoder, data: bytes, asked: list[tuple[str, int]]) -> list[object]:
    answers: list[object] = []
    at = 0
    for what, number in asked:
        try:
            match what:
                case "feed":
                    decoder.feed(data[at : at + number])
                    at += number
                case "next":
                    answers.append(decoder.next())
                case "message":
                    message = decoder.message(b"\4\1"[:number])
                    answers.append(message)
                    if message is not None:
                        decoder.skip(message.size)
                case "take":
                    answers.append(decoder.take(number))
                case _:
                    decoder.clear()
        except ProtocolViolation as violation:
            answers.append((violation.code, violation.text, violation.channel))
        answers.append((len(decoder), decoder.is_broken))
    return answers
