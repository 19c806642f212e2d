"""Frames of messages: those that the codec of 0-9-1 makes, compiled and plain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.bridge.v0_10 import build, copying
from amqpgate.protocol.frames import FRAME_HEADER, FRAME_METHOD, body_frames, encode_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated.v0_9_1 import BasicAck, BasicDeliver, BasicNack, BasicProperties, BasicPublish

METHOD = BasicPublish(exchange="e", routing_key="k").encode()
PROPERTIES = BasicProperties("text/plain", message_id="1")


@given(st.integers(0, 0xFFFF), st.integers(0, 3000), st.integers(60, 4096), st.booleans())
def test_frames(number: int, size: int, frame_max: int, is_none: bool) -> None:
    body = None if is_none and not size else bytes(size)
    empty, header = (encode_header(ContentHeader(60, length, PROPERTIES)) for length in (0, size))
    expected = encode_frame(FRAME_METHOD, number, METHOD) + encode_frame(FRAME_HEADER, number, header)
    if size:
        expected += b"".join(body_frames(number, bytes(size), frame_max))
    for copy_frames in (build.copy_frames, copying.copy_frames):
        assert copy_frames(number, METHOD, empty, body, frame_max) == (expected, header)


@pytest.mark.parametrize("tag", [0, 1, 2**32, 2**64 - 1])
def test_delivery_tags(tag: int) -> None:
    method = BasicDeliver("ctag", 0, False, "e", "k").encode()
    expected = BasicDeliver("ctag", tag, False, "e", "k").encode()
    for tagged in (build.tagged, copying.tagged):
        assert tagged(method, 9, tag) == expected


ACK = encode_frame(FRAME_METHOD, 7, BasicAck(258, multiple=True).encode())
#: Where it says its channel, its tag and its bits; all else is what makes it a basic.ack.
VARIABLE = {1, 2, *range(11, 20)}


@given(st.integers(0, 0xFFFF), st.integers(0, 2**64 - 1), st.booleans())
def test_confirms(number: int, tag: int, multiple: bool) -> None:
    frame = encode_frame(FRAME_METHOD, number, BasicAck(tag, multiple=multiple).encode())
    for basic_ack in (build.basic_ack, copying.basic_ack):
        assert basic_ack(frame) == (number, tag, multiple)


@pytest.mark.parametrize(
    "frames",
    [b"", ACK[:-1], ACK * 2, ACK + b"\0", encode_frame(FRAME_METHOD, 7, BasicNack(258).encode())]
    + [ACK[:at] + bytes([ACK[at] ^ 1]) + ACK[at + 1 :] for at in range(len(ACK)) if at not in VARIABLE],
)
def test_what_is_no_confirm_alone(frames: bytes) -> None:
    for basic_ack in (build.basic_ack, copying.basic_ack):
        assert basic_ack(frames) is None
