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
    """The test's id: the class, not the octets."""
    return "" if isinstance(value, str) else type(value).__name__


def check_method_octets(method: Method, octets: bytes, methods: Mapping[int, type[Method]]) -> None:
    """Both directions against fixed octets, and every way to cut them short or make them longer."""
    assert method.encode() == octets
    cls = methods[int.from_bytes(octets[:4], "big")]
    assert cls is type(method)
    assert cls.CLASS_ID << 16 | cls.METHOD_ID == cls.INDEX
    assert cls.decode(octets, 4, len(octets)) == method
    for size in range(4, len(octets)):
        _check_cut(cls, octets[:size])
    with pytest.raises(ProtocolViolation):
        cls.decode(octets + b"\x00", 4, len(octets) + 1)


def _check_cut(cls: type[Method], octets: bytes) -> None:
    """A cut payload is refused, or is a payload of its own (an optional table left out)."""
    try:
        method = cls.decode(octets, 4, len(octets))
    except ProtocolViolation as violation:
        if violation.code != 501:
            raise
    else:
        assert method.encode() == octets


def check_property_octets(value: Properties, octets: bytes, classes: Mapping[int, type[Properties]]) -> None:
    """The same for properties."""
    assert value.encode() == octets
    cls = classes[value.CLASS_ID]
    assert cls is type(value)
    assert cls.decode(octets, 0, len(octets)) == value
    for size in range(len(octets)):
        with pytest.raises(ProtocolViolation):
            cls.decode(octets, 0, size)
    with pytest.raises(ProtocolViolation):
        cls.decode(octets + b"\x00", 0, len(octets) + 1)


def check_method_round_trip(method: Method, methods: Mapping[int, type[Method]]) -> None:
    """To octets and back, at an odd place in a larger buffer of each kind."""
    octets = method.encode()
    cls = methods[int.from_bytes(octets[:4], "big")]
    padded = b"\xff\xff\xff" + octets + b"\xff"
    for buf in (padded, bytearray(padded), memoryview(padded)):
        again = cls.decode(buf, 7, 3 + len(octets))
        assert again == method
        assert again.encode() == octets


def check_property_round_trip(value: Properties, classes: Mapping[int, type[Properties]]) -> None:
    """The same for properties."""
    octets = value.encode()
    padded = b"\xff\xff\xff" + octets + b"\xff"
    for buf in (padded, bytearray(padded), memoryview(padded)):
        again = classes[value.CLASS_ID].decode(buf, 3, 3 + len(octets))
        assert again == value
        assert again.encode() == octets
