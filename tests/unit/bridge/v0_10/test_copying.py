"""Frames of messages: those that the codec of 0-9-1 makes, compiled and plain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.bridge.v0_10 import build, copying
from amqpgate.protocol.frames import FRAME_HEADER, FRAME_METHOD, body_frames, encode_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated.v0_9_1 import BasicDeliver, BasicProperties, BasicPublish

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
