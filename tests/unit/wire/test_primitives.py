"""Integers and strings at a position: values, ends, and what lies beyond them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.errors import ProtocolViolation
from amqpgate.wire import primitives
from amqpgate.wire.primitives import Buffer

Reader = Callable[[Buffer, int, int], tuple[object, int]]

READERS: list[tuple[Reader, bytes, object]] = [
    (primitives.get_octet, b"\x80", 0x80),
    (primitives.get_longlong, b"\x80\x00\x00\x00\x00\x00\x00\x01", 0x8000_0000_0000_0001),
    (primitives.get_shortstr, b"\x03a\xc3\xa9", "aé"),
    (primitives.get_shortstr_lenient, b"\x03a\xc3\xa9", "aé"),
    (primitives.get_longstr, b"\x00\x00\x00\x02\x00\xff", b"\x00\xff"),
]


@pytest.mark.parametrize(("read", "data", "value"), READERS)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_value_and_new_position(
    read: Reader, data: bytes, value: object, kind: Callable[[bytes], Buffer]
) -> None:
    buf = kind(b"\xee" + data + b"\xee")
    assert read(buf, 1, len(buf)) == (value, 1 + len(data))
    assert read(buf, 1, 1 + len(data)) == (value, 1 + len(data))


@pytest.mark.parametrize(("read", "data", "value"), READERS)
def test_never_past_the_end(read: Reader, data: bytes, value: object) -> None:
    # The bytes are all there: it is `end` that must be kept to.
    for end in range(len(data)):
        with pytest.raises(ProtocolViolation) as caught:
            read(data, 0, end)
        assert caught.value.code == 501


@given(st.text(max_size=63, alphabet=st.characters(exclude_categories=["Cs"])))
def test_short_strings_round_trip(text: str) -> None:
    data = primitives.put_shortstr(text)
    assert primitives.get_shortstr(data, 0, len(data)) == (text, len(data))


@given(st.binary(max_size=255))
def test_lenient_short_strings_keep_any_bytes(data: bytes) -> None:
    wire = bytes((len(data),)) + data
    text, pos = primitives.get_shortstr_lenient(wire, 0, len(wire))
    assert pos == len(wire)
    assert primitives.put_shortstr(text) == wire


# RabbitMQ 3.10.8 answers queue.declare of such a name with 501 and this text, but for the surrogate and
# the code point past U+10FFFF, which it lets pass.
@pytest.mark.parametrize(
    "data",
    [b"\xff", b"a\xc3", b"\xc0\x80", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"],
)
def test_strict_short_strings_are_utf_8(data: bytes) -> None:
    wire = bytes((len(data),)) + data
    with pytest.raises(ProtocolViolation) as caught:
        primitives.get_shortstr(wire, 0, len(wire))
    assert caught.value.reply_text == "FRAME_ERROR - Malformed UTF-8 in shortstr"


def test_short_strings_count_bytes() -> None:
    assert primitives.put_shortstr("é" * 127)[0] == 254
    with pytest.raises(ValueError, match="not 256"):
        primitives.put_shortstr("é" * 128)


def test_a_long_length_is_checked_before_anything_is_kept() -> None:
    with pytest.raises(ProtocolViolation):
        primitives.get_longstr(b"\xff\xff\xff\xffabc", 0, 7)
