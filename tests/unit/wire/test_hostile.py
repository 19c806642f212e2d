"""Input from an enemy: every failure is a violation, in every method of every version."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpgate.errors import REPLY_NAMES, ProtocolViolation
from amqpgate.wire.codec import decode_header, decode_method, methods, properties
from amqpgate.wire.dialects import (
    DIALECTS,
    LEGACY_CLIENT,
    LEGACY_CLIENT_0_9,
    QPID_0_9_1,
    RABBITMQ_0_9_1,
    Dialect,
)

#: One dialect per version that knows all its methods.
WIDEST = {"0-8": LEGACY_CLIENT, "0-9": LEGACY_CLIENT_0_9, "0-9-1": QPID_0_9_1}
INDEXES = [(name, index) for name, dialect in WIDEST.items() for index in methods(dialect)]


def decode_or_refuse(payload: bytes, dialect: Dialect) -> None:
    """Nothing but a violation with a code of the standard may come out."""
    for decode in (decode_method, decode_header):
        try:
            decode(payload, dialect)
        except ProtocolViolation as violation:
            if violation.code not in REPLY_NAMES:
                raise


@given(st.binary(max_size=80), st.sampled_from(sorted(DIALECTS)))
# Bytes at random seldom get far: more examples than others.
@settings(max_examples=300)
def test_random_bytes(payload: bytes, name: str) -> None:
    decode_or_refuse(payload, DIALECTS[name])


@given(st.sampled_from(INDEXES), st.binary(max_size=60))
# Bytes at random seldom get far: more examples than others.
@settings(max_examples=1500)
def test_random_arguments(which: tuple[str, int], arguments: bytes) -> None:
    name, index = which
    decode_or_refuse(index.to_bytes(4, "big") + arguments, WIDEST[name])


@given(st.sampled_from(["0-8", "0-9", "0-9-1"]), st.data())
# Bytes at random seldom get far: more examples than others.
@settings(max_examples=300)
def test_random_properties(name: str, data: st.DataObject) -> None:
    class_id = data.draw(st.sampled_from(sorted(properties(WIDEST[name]))))
    tail = data.draw(st.binary(max_size=60))
    decode_or_refuse(class_id.to_bytes(2, "big") + bytes(10) + tail, WIDEST[name])


def lies(data: bytes) -> list[bytes]:
    """Each octet in turn made as large as it gets, and each run of four."""
    changed = [data[:at] + b"\xff" + data[at + 1 :] for at in range(4, len(data))]
    changed += [data[:at] + b"\xff" * 4 + data[at + 4 :] for at in range(4, len(data) - 3)]
    return changed


@pytest.mark.parametrize("name", WIDEST)
def test_lengths_that_lie(name: str) -> None:
    dialect = WIDEST[name]
    known: Mapping[int, type] = methods(dialect)
    for method in known.values():
        for payload in lies(method().encode()):
            decode_or_refuse(payload, dialect)
    for cls in properties(dialect).values():
        header = cls.CLASS_ID.to_bytes(2, "big") + bytes(10)
        for flags in (0xFFFF, 0x8000, 0x2000, 0x0001):
            decode_or_refuse(header + flags.to_bytes(2, "big") + b"\xff" * 40, dialect)


@given(st.sampled_from(sorted(methods(RABBITMQ_0_9_1))), st.binary(max_size=60))
# Bytes at random seldom get far: more examples than others.
@settings(max_examples=500)
def test_what_decodes_encodes_to_as_many_bytes_and_to_the_same(index: int, arguments: bytes) -> None:
    payload = index.to_bytes(4, "big") + arguments
    try:
        method = decode_method(payload)
    except ProtocolViolation:
        return
    again = method.encode()
    # Unused bits may differ, nothing else.
    assert len(again) == len(payload)
    assert decode_method(again) == method
