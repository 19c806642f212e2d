"""Frames that are kept of channels that are held."""

from __future__ import annotations

from amqpgate.gateway.session.claim_room import KeptFrames


def test_frames_are_kept_in_order_as_far_as_there_is_room() -> None:
    kept = KeptFrames(room=10)
    assert kept.keep(1, memoryview(b"abcd"))
    assert kept.keep(2, memoryview(b"123"))
    assert kept.keep(1, memoryview(b"ef"))
    assert not kept.keep(2, memoryview(b"45"))
    assert kept.take(1) == b"abcdef"
    assert kept.take(1) == b""
    assert kept.keep(2, memoryview(b"4567890"))
    assert kept.take(2) == b"1234567890"


def test_the_first_one_is_always_kept() -> None:
    kept = KeptFrames(room=10)
    assert kept.keep(1, memoryview(bytes(100)))
    assert not kept.keep(1, memoryview(b"x"))
