"""What the generated tests check; the generated file holds data only."""

from __future__ import annotations

from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, settings

from amqpgate.errors import ProtocolViolation
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
from amqpgate.wire.v0_10.structs import Command, Control, Struct

Packed: TypeAlias = Control | Command | Struct

#: There are a hundred structures; the maps are what takes time, and they have tests of their own.
quick = settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])


def decode(cls: type[Packed], encoded: bytes) -> Packed:
    """As the codec does it: by class and code, where there are any."""
    if issubclass(cls, Control):
        return decode_control(encoded)
    if issubclass(cls, Command):
        command, sync = decode_command(encoded)
        assert sync is (encoded[3] == 1)
        return command
    if not cls.CODE:
        return cls.decode(encoded, 0, len(encoded))
    struct = decode_struct32(encoded)
    (again,) = decode_header(len(encoded).to_bytes(4, "big") + encoded)
    assert again == struct
    assert isinstance(struct, Struct)
    return struct


def encode(value: Packed) -> bytes:
    """The same the other way."""
    if isinstance(value, Control):
        return encode_control(value)
    if isinstance(value, Command):
        encoded, with_sync = encode_command(value), encode_command(value, True)
        assert with_sync == encoded[:3] + b"\x01" + encoded[4:]
        assert decode_command(with_sync) == (value, True)
        return encoded
    if value.CODE:
        assert encode_header([value, value]) == 2 * (len(value.encode()).to_bytes(4, "big") + value.encode())
    return encode_struct32(value)


def check_bytes(value: Packed, encoded: bytes) -> None:
    """Both directions against fixed bytes, each way to cut them short, bytes behind them, other flags."""
    assert encode(value) == encoded
    cls = type(value)
    again = decode(cls, encoded)
    assert again == value
    assert type(again) is cls
    code = 501 if isinstance(value, Control) else 503
    for wrong in [encoded[:size] for size in range(len(encoded))] + [encoded + b"\x00"]:
        with pytest.raises(ProtocolViolation) as caught:
            decode(cls, wrong)
        assert caught.value.code == code
    head = 2 if isinstance(value, Control) or (value.CODE and isinstance(value, Struct)) else 0
    head = 4 if isinstance(value, Command) else head
    if cls.NAME == "session.command-fragment":
        # It has no flags.
        return
    size = 1 if cls.NAME == "session.header" else 2
    for bit in range(len(cls.__match_args__), 8 * size):
        wrong_flags = bytearray(encoded)
        wrong_flags[head + bit // 8] |= 1 << bit % 8
        with pytest.raises(ProtocolViolation) as caught:
            decode(cls, bytes(wrong_flags))
        assert caught.value.code == code
        assert "packing flag" in caught.value.text


def check_round_trip(value: Packed) -> None:
    """To bytes and back, and at an odd place in a larger buffer."""
    encoded = encode(value)
    cls = type(value)
    assert decode(cls, encoded) == value
    head = 4 if isinstance(value, Command) else 2 if cls.CODE else 0
    padded = b"\xff\xff\xff" + encoded + b"\xff"
    again = cls.decode(padded, 3 + head, 3 + len(encoded))
    assert again == value
    assert encode(again) == encoded
