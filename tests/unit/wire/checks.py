"""What the generated tests check; the generated files hold data only."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, settings

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.method import Method, Properties

#: There are some 280 methods; the tables are what takes time, and they have tests of their own.
# There is a test for each of some 200 methods.
quick = settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])


def name(value: object) -> str | None:
    """The test's id: the class, not the bytes."""
    return "" if isinstance(value, str) else type(value).__name__


def check_method_bytes(method: Method, encoded: bytes, methods: Mapping[int, type[Method]]) -> None:
    """Both directions against fixed bytes, and every way to cut them short or make them longer."""
    assert method.encode() == encoded
    cls = methods[int.from_bytes(encoded[:4], "big")]
    assert cls is type(method)
    assert cls.CLASS_ID << 16 | cls.METHOD_ID == cls.INDEX
    assert cls.decode(encoded, 4, len(encoded)) == method
    for size in range(4, len(encoded)):
        _check_cut(cls, encoded[:size])
    with pytest.raises(ProtocolViolation):
        cls.decode(encoded + b"\x00", 4, len(encoded) + 1)


def _check_cut(cls: type[Method], encoded: bytes) -> None:
    """A cut payload is refused, or is a payload of its own (an optional table left out)."""
    try:
        method = cls.decode(encoded, 4, len(encoded))
    except ProtocolViolation as violation:
        if violation.code != 501:
            raise
    else:
        assert method.encode() == encoded


def check_property_bytes(value: Properties, encoded: bytes, classes: Mapping[int, type[Properties]]) -> None:
    """The same for properties."""
    assert value.encode() == encoded
    cls = classes[value.CLASS_ID]
    assert cls is type(value)
    assert cls.decode(encoded, 0, len(encoded)) == value
    for size in range(len(encoded)):
        with pytest.raises(ProtocolViolation):
            cls.decode(encoded, 0, size)
    with pytest.raises(ProtocolViolation):
        cls.decode(encoded + b"\x00", 0, len(encoded) + 1)


def check_method_round_trip(method: Method, methods: Mapping[int, type[Method]]) -> None:
    """To bytes and back, at an odd place in a larger buffer of each kind."""
    encoded = method.encode()
    cls = methods[int.from_bytes(encoded[:4], "big")]
    padded = b"\xff\xff\xff" + encoded + b"\xff"
    for buf in (padded, bytearray(padded), memoryview(padded)):
        again = cls.decode(buf, 7, 3 + len(encoded))
        assert again == method
        assert again.encode() == encoded


def check_property_round_trip(value: Properties, classes: Mapping[int, type[Properties]]) -> None:
    """The same for properties."""
    encoded = value.encode()
    padded = b"\xff\xff\xff" + encoded + b"\xff"
    for buf in (padded, bytearray(padded), memoryview(padded)):
        again = classes[value.CLASS_ID].decode(buf, 3, 3 + len(encoded))
        assert again == value
        assert again.encode() == encoded
