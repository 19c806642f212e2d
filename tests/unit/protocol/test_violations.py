"""How frames that are not wanted are named."""

from __future__ import annotations

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.violations import located, unexpected_frame, unknown_frame


def test_a_frame_is_named_and_not_quoted() -> None:
    assert unexpected_frame(3, 0, b"secret").text == "type 3, 6 bytes"
    assert unknown_frame(8, 0, b"secret").text == "type 8, 6 bytes: unknown_frame"


def test_violations_know_their_channel() -> None:
    assert (unexpected_frame(8, 5, b"").code, unexpected_frame(8, 5, b"").channel) == (505, 5)
    assert (unknown_frame(4, 6, b"").code, unknown_frame(4, 6, b"").channel) == (501, 6)
    there = located(ProtocolViolation(501, "text", class_id=60, method_id=40), 7)
    assert (there.code, there.text, there.class_id, there.method_id, there.channel) == (
        501,
        "text",
        60,
        40,
        7,
    )
