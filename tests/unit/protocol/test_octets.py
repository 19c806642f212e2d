"""RabbitMQ's wording."""

from __future__ import annotations

import pytest

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.octets import describe, erlang_binary, located, unexpected_frame, unknown_frame


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (b"", "<<>>"),
        (b"abc", '<<"abc">>'),
        (b'a "q" \\', '<<"a \\"q\\" \\\\">>'),
        (b"a\x1bb\x08\x0c\x0b\r\t\n", '<<"a\\eb\\b\\f\\v\\r\\t\\n">>'),
        (b"a\x01", "<<97,1>>"),
        (b"\x7f", "<<127>>"),
        (b"\xe9", "<<233>>"),
    ],
)
def test_octets_as_erlang_prints_them(octets: bytes, text: str) -> None:
    assert erlang_binary(octets) == text


def test_seventeen_octets_are_cut() -> None:
    assert describe(3, b"abcdefghijklmnop") == 'type 3, all octets = <<"abcdefghijklmnop">>'
    assert describe(3, b"abcdefghijklmnopq") == 'type 3, first 16 octets = <<"abcdefghijklmnop">>'


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
