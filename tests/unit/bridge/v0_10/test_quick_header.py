"""Headers the quick way say what they say the long way."""

from __future__ import annotations

from typing import get_args, get_type_hints

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.bridge.v0_10 import quick_header as headers
from amqpgate.bridge.v0_10.build import delivery_part, quick_header
from amqpgate.bridge.v0_10.native.content import _read
from amqpgate.wire.generated.v0_10 import DeliveryProperties, MessageProperties, ReplyTo
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.codec import encode_header
from amqpgate.wire.v0_10.structs import Struct
from amqpgate.wire.v0_10.types import Map, Value
from tests.support.recorded_0_10 import frames, streams

_HEADER = 2

HEADERS: list[tuple[Struct, ...]] = [
    (),
    (DeliveryProperties(),),
    (MessageProperties(),),
    (
        DeliveryProperties(True, True, True, 4, 2, 1000, 1700000000, 5, b"amq.topic", b"a.b", None, None),
        MessageProperties(7, bytes(range(16)), b"c", None, b"text/plain", b"utf-8", b"guest", b"app"),
    ),
    (DeliveryProperties(priority=0, delivery_mode=0, ttl=0, timestamp=1700000000000),),
    (DeliveryProperties(ttl=2**64 - 1, timestamp=10**11),),
    (DeliveryProperties(timestamp=10**11 + 1),),
    (
        MessageProperties(content_type=b"x"),
        DeliveryProperties(routing_key=b"other way round"),
    ),
]
VALUES = [
    Value(TypeCode.INT8, -1),
    Value(TypeCode.UINT8, 255),
    Value(TypeCode.INT16, -2),
    Value(TypeCode.UINT16, 65535),
    Value(TypeCode.INT32, -3),
    Value(TypeCode.UINT32, 2**32 - 1),
    Value(TypeCode.INT64, -4),
    Value(TypeCode.DATETIME, 1700000000),
    Value(TypeCode.DOUBLE, 0.5),
    Value(TypeCode.BOOLEAN, True),
    Value(TypeCode.BOOLEAN, False),
    Value(TypeCode.BOOLEAN, 7),
    Value(TypeCode.VOID, None),
    Value(TypeCode.STR8, "ä".encode()),
    Value(TypeCode.STR16, b"\xff no text"),
    Value(TypeCode.VBIN8, b"1"),
    Value(TypeCode.VBIN16, b""),
    Value(TypeCode.VBIN32, b"32"),
]
RARE = [
    Value(TypeCode.DOUBLE, b"\x7f\xf8" + bytes(6)),
    Value(TypeCode.UINT64, 2**63),
    Value(TypeCode.MAP, Map(((b"a", Value(TypeCode.INT8, 1)),))),
    Value(TypeCode.STR16_LATIN, b"\xe4"),
]


def check(header: bytes) -> bool:
    """Whether it goes the quick way; then it comes to the same."""
    quick = same(header)
    if quick is not None:
        assert quick == _read(header)
    return quick is not None


def same(header: bytes, login: bytes | None = None) -> headers.QuickHeader | None:
    """What both ways of reading it quickly say."""
    plain = headers.quick_header(header, login)
    assert quick_header(header, login) == plain
    assert delivery_part(header) == headers.delivery_part(header)
    return plain


@pytest.mark.parametrize("structs", HEADERS)
def test_structs(structs: tuple[Struct, ...]) -> None:
    assert check(encode_header(structs))


@pytest.mark.parametrize("value", VALUES)
def test_values(value: Value) -> None:
    entries = ((b"before", Value(TypeCode.STR16, b"1")), (b"name", value), (b"", value))
    assert check(encode_header((MessageProperties(application_headers=Map(entries)),)))


@pytest.mark.parametrize("value", RARE)
def test_rare_values_go_the_long_way(value: Value) -> None:
    header = encode_header((MessageProperties(application_headers=Map(((b"name", value),))),))
    assert not check(header)
    assert _read(header).payload


def test_names_of_the_bridges_own_go_the_long_way() -> None:
    for name in (b"x-jms-type", b"x-amqp-message-id", b"x-amqp-correlation-id"):
        value = Value(TypeCode.STR16, b"1")
        assert not check(encode_header((MessageProperties(application_headers=Map(((name, value),))),)))
    twice = Map(((b"a", Value(TypeCode.INT8, 1)), (b"a", Value(TypeCode.INT8, 2))))
    assert not check(encode_header((MessageProperties(application_headers=twice),)))
    assert not check(encode_header((MessageProperties(reply_to=ReplyTo(b"", b"q")),)))
    assert not check(encode_header((MessageProperties(correlation_id=bytes(256)),)))


def test_what_is_cut_short_or_too_long_goes_the_long_way() -> None:
    header = encode_header(
        (*HEADERS[3], MessageProperties(application_headers=Map(((b"a", VALUES[0]),))))[:2]
    )
    for at in range(1, len(header)):
        assert not check(header[:at]) or at == len(encode_header(HEADERS[3][:1]))
    assert quick_header(header + b"\0") is None


def test_delivery_properties_alone() -> None:
    delivery, message = HEADERS[3]
    for structs in ((delivery, message), (message, delivery), (delivery,)):
        assert delivery_part(encode_header(structs)) == encode_header((delivery,))
    assert delivery_part(encode_header((message,))) == b""
    for odd in (encode_header((delivery, delivery)), encode_header((delivery, message))[:-1], b"\0"):
        assert delivery_part(odd) == odd


REAL = [frame.payload for stream in streams() for frame in frames(stream) if frame.type == _HEADER]


def test_real_headers() -> None:
    seen = [check(header) for header in REAL]
    assert sum(seen) > len(seen) // 2


@pytest.mark.parametrize("count", [31, 32, 33, 200])
def test_many_names_of_which_one_stands_there_twice(count: int) -> None:
    entries = [(b"name %d" % number, Value(TypeCode.INT8, 1)) for number in range(count)]
    for more in ([], [entries[0]], [entries[-1]]):
        table = Map((*entries, *more))
        assert check(encode_header((MessageProperties(application_headers=table),))) == (not more)


@pytest.mark.parametrize("user", [b"", b"guest", b"guest@QPID", b"gues", b"guestQ", b"someone", bytes(255)])
@pytest.mark.parametrize("login", [b"", b"guest", b"g", bytes(300), None])
def test_users(user: bytes, login: bytes | None) -> None:
    assert same(encode_header((MessageProperties(user_id=user, app_id=b"app"),)), login) is not None


#: A header with everything that is read quickly.
FULL = encode_header(
    (
        HEADERS[3][0],
        attrs.evolve(
            HEADERS[3][1],  # type: ignore[type-var]
            application_headers=Map(
                tuple((b"name %d" % number, value) for number, value in enumerate(VALUES))
            ),
        ),
    )
)


@given(
    st.sampled_from([*(encode_header(structs) for structs in HEADERS), FULL, *REAL[:40]]),
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255), st.booleans()), max_size=4),
    st.sampled_from([None, b"guest", b"", b"gu"]),
)
def test_both_ways_say_the_same_of_anything(
    header: bytes, changes: list[tuple[int, int, bool]], login: bytes | None
) -> None:
    changed = bytearray(header)
    for at, byte, is_cut in changes:
        if is_cut:
            del changed[at : at + byte % 3]
        elif at < len(changed):
            changed[at] = byte
    same(bytes(changed), login)


@given(st.binary(max_size=200))
def test_both_ways_say_the_same_of_noise(noise: bytes) -> None:
    same(noise)
    for code in (1, 3):
        same(len(noise).to_bytes(4) + bytes((4, code)) + noise)


#: Where `headers` looks for each field; those that it leaves to the long way have none.
FLAGS: dict[type[Struct], dict[str, int]] = {
    DeliveryProperties: {
        "immediate": headers._IMMEDIATE,
        "redelivered": headers._REDELIVERED,
        "priority": headers._PRIORITY,
        "delivery_mode": headers._DELIVERY_MODE,
        "ttl": headers._TTL,
        "timestamp": headers._TIMESTAMP,
        "expiration": headers._EXPIRATION,
        "exchange": headers._EXCHANGE,
        "routing_key": headers._ROUTING_KEY,
    },
    MessageProperties: {
        "content_length": headers._CONTENT_LENGTH,
        "message_id": headers._MESSAGE_ID,
        "correlation_id": headers._CORRELATION_ID,
        "content_type": headers._CONTENT_TYPE,
        "content_encoding": headers._CONTENT_ENCODING,
        "user_id": headers._USER_ID,
        "app_id": headers._APP_ID,
        "application_headers": headers._HEADERS,
    },
}
#: Flags that are read without a look, and not at all.
REST = {
    DeliveryProperties: ({"discard_unroutable"}, headers._RARE_DELIVERY),
    MessageProperties: (set(), headers._RARE_MESSAGE),
}
SOME = {bool: True, int: 1, bytes: bytes(16), ReplyTo: ReplyTo(), Map: Map()}


def flags_of(kind: type[Struct], name: str) -> int:
    """The packing flags of a struct in which one field is there."""
    hint = get_type_hints(kind)[name]
    (plain,) = (one for one in SOME if one is hint or one in get_args(hint))
    encoded = encode_header((kind(**{name: SOME[plain]}),))
    # Size, class and code; then the flags.
    return int.from_bytes(encoded[6:8], "little")


@pytest.mark.parametrize("kind", FLAGS)
def test_packing_flags_are_those_of_the_generated_structs(kind: type[Struct]) -> None:
    names = [one.name for one in attrs.fields(kind)]
    passed_over, rare = REST[kind]
    assert {name: flags_of(kind, name) for name in FLAGS[kind]} == FLAGS[kind]
    known = sum(FLAGS[kind].values()) + sum(flags_of(kind, name) for name in passed_over)
    assert known | rare == 0xFFFF
    assert not known & rare
    assert {name for name in names if flags_of(kind, name) & rare} == {*names} - {*FLAGS[kind]} - passed_over
