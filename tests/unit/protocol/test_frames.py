"""Frames: whole, cut up, too large, without an end."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import HEARTBEAT, Frame, FrameDecoder, body_frames, encode_frame, method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames

FRAMES = st.builds(
    Frame, st.sampled_from([1, 2, 3, 8]), st.just(0) | st.integers(0, 65_535), st.binary(max_size=40)
)


def decode_all(decoder: FrameDecoder) -> list[Frame]:
    return list(iter(decoder.next, None))


@given(st.lists(FRAMES, max_size=8), st.lists(st.integers(0, 400)))
def test_any_split_gives_the_same_frames(frames: list[Frame], cuts: list[int]) -> None:
    data = b"".join(encode_frame(*frame) for frame in frames)
    decoder = FrameDecoder()
    got = []
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for start, stop in pairwise(edges):
        decoder.feed(data[start:stop])
        got += decode_all(decoder)
    assert got == frames
    assert len(decoder) == 0


@given(FRAMES, st.integers(0, 47))
def test_an_incomplete_frame_is_no_frame_and_can_be_taken_back(frame: Frame, size: int) -> None:
    data = encode_frame(*frame)[:size]
    decoder = FrameDecoder()
    decoder.feed(HEARTBEAT + data)
    assert decoder.next() == Frame(8, 0, b"")
    if size < len(encode_frame(*frame)):
        assert decoder.next() is None
        assert decoder.take_rest() == data
    assert decoder.take_rest() == b"" or decoder.next() is None


def test_whether_there_is_more_is_known_before_it_is_decoded() -> None:
    decoder = FrameDecoder()
    assert not decoder.has_more
    decoder.feed(HEARTBEAT * 2 + HEARTBEAT[:3])
    seen = []
    while decoder.has_more and decoder.next() is not None:
        seen.append(decoder.has_more)
    assert seen == [True, True]
    assert decoder.has_more
    decoder.feed(HEARTBEAT[3:])
    assert decoder.next() is not None
    assert not decoder.has_more
    decoder.feed(HEARTBEAT)
    assert decoder.take(len(HEARTBEAT)) == HEARTBEAT
    assert not decoder.has_more
    decoder.feed(b"x")
    assert decoder.has_more
    assert decoder.take_rest() == b"x"
    assert not decoder.has_more


def test_known_bytes() -> None:
    assert encode_frame(3, 0x0102, b"ab") == b"\x03\x01\x02\x00\x00\x00\x02ab\xce"
    assert encode_frame(8, 0, b"") == HEARTBEAT
    assert method_frame(1, amqp.ChannelCloseOk()) == b"\x01\x00\x01\x00\x00\x00\x04\x00\x14\x00\x29\xce"


@pytest.mark.parametrize("data", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_fed(data: type[bytes]) -> None:
    decoder = FrameDecoder()
    decoder.feed(data(HEARTBEAT))
    frame = decoder.next()
    assert frame == Frame(8, 0, b"")
    assert type(frame.payload) is bytes


def violation(decoder: FrameDecoder) -> ProtocolViolation:
    with pytest.raises(ProtocolViolation) as caught:
        decoder.next()
    return caught.value


def test_a_payload_of_frame_max_bytes_passes_as_on_rabbitmq() -> None:
    decoder = FrameDecoder(4096)
    decoder.feed(encode_frame(3, 1, bytes(4096)))
    frame = decoder.next()
    assert frame is not None
    assert len(frame.payload) == 4096


def test_a_larger_payload_is_refused_before_it_is_there() -> None:
    decoder = FrameDecoder(4096)
    decoder.feed(b"\x03\x00\x07\x00\x00\x10\x01")
    error = violation(decoder)
    assert (error.code, error.channel) == (501, 7)
    assert error.text == "type 3, 4097 bytes: {frame_too_large,4097,4088}"
    assert decoder.is_broken
    assert violation(decoder).text == error.text


def test_frame_max_0_is_no_limit() -> None:
    decoder = FrameDecoder(0)
    decoder.feed(encode_frame(3, 1, bytes(1_000_000)))
    assert decoder.next() == Frame(3, 1, bytes(1_000_000))


def test_frame_max_holds_from_the_next_frame_on() -> None:
    decoder = FrameDecoder(4096)
    decoder.feed(encode_frame(3, 1, b"x") + encode_frame(3, 1, bytes(5000)))
    assert decoder.next() == Frame(3, 1, b"x")
    decoder.frame_max = 8192
    assert decoder.next() == Frame(3, 1, bytes(5000))


def test_the_end_byte_is_checked() -> None:
    decoder = FrameDecoder()
    decoder.feed(encode_frame(1, 2, b"abc")[:-1] + b"\xcd" + HEARTBEAT)
    error = violation(decoder)
    assert (error.code, error.channel) == (501, 2)
    assert error.text == "type 1, 3 bytes: invalid_frame_end_marker"
    assert decoder.is_broken


@pytest.mark.parametrize("frame_type", sorted(set(range(256)) - {1, 2, 3, 8}))
def test_unknown_types_are_refused_and_can_be_passed_over(frame_type: int) -> None:
    decoder = FrameDecoder()
    decoder.feed(encode_frame(frame_type, 3, b"\x00") + HEARTBEAT)
    error = violation(decoder)
    assert (error.code, error.channel) == (501, 3)
    assert error.text == f"type {frame_type}, 1 bytes: unknown_frame"
    assert not decoder.is_broken
    assert decoder.next() == Frame(8, 0, b"")


def test_take_and_peek_look_at_raw_bytes() -> None:
    decoder = FrameDecoder()
    assert decoder.peek() is None
    decoder.feed(b"AMQP")
    assert decoder.peek() == ord("A")
    assert decoder.take(5) is None
    assert decoder.take(3) == b"AMQ"
    assert decoder.take_rest() == b"P"


@pytest.mark.timeout(60)
def test_many_frames_in_one_piece_take_linear_time() -> None:
    # Moving the rest of the buffer after each frame would move 10^12 bytes here.
    count = 500_000
    decoder = FrameDecoder()
    decoder.feed(HEARTBEAT * count)
    assert sum(1 for _ in iter(decoder.next, None)) == count


@pytest.mark.timeout(60)
def test_one_frame_in_many_pieces_takes_linear_time() -> None:
    size = 300_000
    decoder = FrameDecoder(size)
    data = encode_frame(3, 1, bytes(size))
    for at in range(len(data) - 1):
        decoder.feed(data[at : at + 1])
        assert decoder.next() is None
    decoder.feed(data[-1:])
    assert decoder.next() == Frame(3, 1, bytes(size))


def test_what_was_decoded_does_not_stay_in_memory() -> None:
    decoder = FrameDecoder()
    whole = encode_frame(3, 1, bytes(4000))
    for _ in range(1000):
        # Always half a frame behind, so that the buffer is never empty.
        decoder.feed(whole[2000:] if len(decoder) else whole)
        decoder.feed(whole[:2000])
        while decoder.next():
            pass
        assert len(decoder) == 2000
    assert len(decoder._buffer) < 150_000


def test_bodies_are_cut_to_frame_max() -> None:
    assert body_frames(1, b"") == []
    assert body_frames(1, b"abc", 0) == [encode_frame(3, 1, b"abc")]
    assert body_frames(1, bytes(4088), 4096) == [encode_frame(3, 1, bytes(4088))]
    sizes = [len(frame) for frame in body_frames(1, bytes(10_000), 4096)]
    assert sizes == [4096, 4096, 10_000 - 2 * 4088 + 8]


@given(st.binary(max_size=20_000), st.sampled_from([0, 4096, 8192, 131_072]))
def test_content_frames_decode_to_what_was_sent(payload: bytes, frame_max: int) -> None:
    method = amqp.BasicPublish(routing_key="key")
    properties = amqp.BasicProperties(content_type="text/plain")
    data = content_frames(9, method, properties, payload, frame_max)
    decoder = FrameDecoder(frame_max)
    decoder.feed(data)
    first, second, *rest = decode_all(decoder)
    assert first == Frame(1, 9, method.encode())
    assert second == Frame(2, 9, b"\x00\x3c\x00\x00" + len(payload).to_bytes(8, "big") + properties.encode())
    assert b"".join(frame.payload for frame in rest) == payload
    assert all(frame.type == 3 and frame.channel == 9 and frame.payload for frame in rest)


@given(st.lists(FRAMES, min_size=1, max_size=3), st.binary(min_size=1, max_size=3))
def test_what_was_fed_is_shown_until_something_is_taken(frames: list[Frame], more: bytes) -> None:
    data = b"".join(encode_frame(*frame) for frame in frames)
    decoder = FrameDecoder()
    assert decoder.untouched() == b""
    decoder.feed(data)
    assert decoder.untouched() == data
    first = decoder.next()
    assert first is not None
    assert decoder.untouched() == b""
    decoder.begin(data)
    assert decode_all(decoder) == frames, "as if it came for the first time"
    decoder.begin(data)
    decoder.feed(more)
    assert decoder.untouched() == b"", "it has come in pieces"
    decoder.begin(b"")
    assert not decoder.has_more
    assert len(decoder) == 0
