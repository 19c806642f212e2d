"""Controls, commands, headers, maps and sets of ids of AMQP 0-10: there and back, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated.v0_10 import COMMANDS, CONTROLS, STRUCTS, SegmentType
from amqpgate.wire.v0_10.codec import (
    decode_command,
    decode_control,
    decode_header,
    decode_struct32,
    encode_command,
    encode_control,
    encode_header,
    encode_struct32,
)
from amqpgate.wire.v0_10.sequences import RangeSet, SequenceSet, serial_add
from amqpgate.wire.v0_10.types import get_array, get_map, put_array, put_map
from tests.fuzz.choices import Choices
from tests.support import recorded_0_10 as recorded

MOST = 1024
TOKENS = (
    *(
        bytes((code,))
        for code in (0x02, 0x08, 0x23, 0x33, 0x85, 0x95, 0xA0, 0xA8, 0xA9, 0xAA, 0xAB, 0xC8, 0xF0)
    ),
    *(b"\1\0", b"\1\1", b"\4\1", b"\4\3", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\1", b"\0\x08", b"\1a"),
)


def _control(payload: bytes) -> bytes:
    return encode_control(decode_control(payload))


def _command(payload: bytes) -> bytes:
    return encode_command(*decode_command(payload))


def _header(payload: bytes) -> bytes:
    return encode_header(decode_header(payload))


def _struct(payload: bytes) -> bytes:
    return encode_struct32(decode_struct32(payload))


def _map(payload: bytes) -> bytes:
    value, end = get_map(payload, 0, len(payload))
    repr(value)
    return put_map(value) + payload[end:]


def _array(payload: bytes) -> bytes:
    value, end = get_array(payload, 0, len(payload))
    return put_array(value) + payload[end:]


def _sets(payload: bytes) -> bytes:
    """A set, put range by range into one that changes, and taken out of it again."""
    wanted, end = SequenceSet.decode(payload)
    held = RangeSet(most=16)
    try:
        for lower, upper in wanted.ranges:
            held.add(lower, upper)
            assert lower in held
            assert upper in held
        assert held.intersect(wanted) == wanted
        assert wanted.ranges or not held
        for lower, upper in wanted.ranges:
            held.discard(lower, upper)
            assert serial_add(lower, 0) not in held
        assert not held
    except ProtocolViolation as violation:
        # More than it may hold.
        assert violation.code == 506
        assert len(wanted.ranges) > 16
    return wanted.encode() + payload[end:]


#: What is read and written again, and the codes that it may be refused with.
_KINDS: list[tuple[Callable[[bytes], bytes], set[int]]] = [
    (_control, {501, 506}),
    (_command, {503, 506}),
    (_header, {503, 506}),
    (_struct, {503, 506}),
    (_map, {503, 506}),
    (_array, {503, 506}),
    (_sets, {503}),
]


def seeds() -> Iterator[bytes]:
    """Everything without its fields, and one of each form that Qpid's clients and broker sent."""
    yield from (b"\0" + cls().encode() for cls in CONTROLS.values())
    yield from (b"\1" + cls().encode() for cls in COMMANDS.values())
    yield from (b"\3" + cls().encode() for cls in STRUCTS.values())
    yield b"\6" + SequenceSet(((0xFFFFFFFE, 1), (3, 4))).encode()
    seen = set()
    for stream in recorded.streams():
        for frame in recorded.frames(stream):
            # Class, code and packing flags; in a header the size of the first struct comes before them.
            key = (frame.type, frame.payload[4:8] if frame.type == SegmentType.HEADER else frame.payload[:6])
            if frame.type != SegmentType.BODY and key not in seen:
                seen.add(key)
                yield bytes((frame.type,)) + frame.payload


def check(data: bytes) -> None:
    """Decode; a clean error, or the same bytes when it is encoded, and again."""
    choices = Choices(data)
    again_of, codes = choices.pick(_KINDS)
    payload = choices.rest()
    try:
        again = again_of(payload)
    except ProtocolViolation as violation:
        assert violation.code in codes, violation
        assert len(violation.reply_text.encode()) <= 255
        return
    if again != payload:
        # A map, list or array of no bytes at all comes out with its count.
        assert bytes(4) in payload
        assert len(again) > len(payload)
        assert again_of(again) == again
