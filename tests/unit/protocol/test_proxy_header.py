"""The PROXY protocol, both versions, in any split."""

from __future__ import annotations

import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.protocol.proxy_header import (
    V2_SIGNATURE,
    PeerAddress,
    ProxyHeader,
    ProxyHeaderError,
    ProxyHeaderParser,
)
from tests.support.proxy_header import encode_v1, encode_v2

V4 = (PeerAddress("203.0.113.7", 51_234), PeerAddress("198.51.100.1", 5672))
V6 = (PeerAddress("2001:db8::7", 51_234), PeerAddress("2001:db8::1", 5671))

PORTS = st.integers(0, 65_535)


def ends(addresses: st.SearchStrategy[IPv4Address | IPv6Address]) -> st.SearchStrategy[PeerAddress]:
    return st.builds(lambda host, port: PeerAddress(str(host), port), addresses, PORTS)


PAIRS = st.one_of(
    st.tuples(ends(st.ip_addresses(v=4)), ends(st.ip_addresses(v=4))),
    st.tuples(ends(st.ip_addresses(v=6)), ends(st.ip_addresses(v=6))),
    st.just((None, None)),
)


def feed_byte_by_byte(data: bytes) -> None:
    parser = ProxyHeaderParser()
    for at in range(len(data)):
        assert parser.feed(data[at : at + 1]) is None


def parse(data: bytes) -> tuple[ProxyHeader | None, bytes]:
    parser = ProxyHeaderParser()
    header = parser.feed(data)
    return header, parser.rest


@pytest.mark.parametrize(
    ("data", "header"),
    [
        (b"PROXY TCP4 203.0.113.7 198.51.100.1 51234 5672\r\n", ProxyHeader(1, *V4)),
        (b"PROXY TCP6 2001:db8::7 2001:db8::1 51234 5671\r\n", ProxyHeader(1, *V6)),
        (b"PROXY TCP6 2001:0DB8:0:0:0:0:0:7 2001:db8::1 51234 5671\r\n", ProxyHeader(1, *V6)),
        (
            b"PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n",
            ProxyHeader(1, PeerAddress("0.0.0.0", 0), PeerAddress("0.0.0.0", 0)),
        ),
        (b"PROXY UNKNOWN\r\n", ProxyHeader(1)),
        (b"PROXY UNKNOWN anything at all\r\n", ProxyHeader(1)),
        (b"PROXY UNKNOWN " + b"x" * 91 + b"\r\n", ProxyHeader(1)),  # 107 bytes
        (
            V2_SIGNATURE + b"\x21\x11\x00\x0c\xcb\x00\x71\x07\xc6\x33\x64\x01\xc8\x22\x16\x28",
            ProxyHeader(2, *V4),
        ),
        (
            V2_SIGNATURE
            + b"\x21\x21\x00\x24"
            + socket.inet_pton(socket.AF_INET6, "2001:db8::7")
            + socket.inet_pton(socket.AF_INET6, "2001:db8::1")
            + b"\xc8\x22\x16\x27",
            ProxyHeader(2, *V6),
        ),
        (V2_SIGNATURE + b"\x20\x00\x00\x00", ProxyHeader(2)),  # LOCAL
        (V2_SIGNATURE + b"\x20\x11\x00\x0c" + bytes(12), ProxyHeader(2)),  # LOCAL with addresses
        (V2_SIGNATURE + b"\x20\xff\x00\x02ab", ProxyHeader(2)),  # LOCAL, the rest is skipped unseen
        (V2_SIGNATURE + b"\x21\x00\x00\x03abc", ProxyHeader(2)),  # UNSPEC
        (V2_SIGNATURE + b"\x21\x31\x00\xd8" + bytes(216), ProxyHeader(2)),  # UNIX
        (V2_SIGNATURE + b"\x21\x12\x00\x0c" + bytes(12), ProxyHeader(2)),  # UDP, which we cannot be
    ],
)
def test_headers_whole_and_byte_by_byte(data: bytes, header: ProxyHeader) -> None:
    assert parse(data + b"AMQP") == (header, b"AMQP")
    parser = ProxyHeaderParser()
    for at in range(len(data) - 1):
        assert parser.feed(data[at : at + 1]) is None
    assert parser.feed(data[-1:]) == header
    assert parser.rest == b""
    assert parser.feed(b"AM") == header
    assert parser.feed(b"QP") == header
    assert parser.rest == b"AMQP"


@given(PAIRS, st.binary(max_size=100), st.binary(max_size=20), st.integers(0, 200))
def test_what_is_encoded_is_parsed(
    pair: tuple[PeerAddress | None, PeerAddress | None], tlvs: bytes, rest: bytes, cut: int
) -> None:
    for data, version in ((encode_v1(*pair), 1), (encode_v2(*pair, tlvs), 2)):
        parser = ProxyHeaderParser()
        parser.feed((data + rest)[:cut])
        header = parser.feed((data + rest)[cut:])
        assert header == ProxyHeader(version, *pair)
        assert parser.rest == rest


def test_scopes_are_left_out() -> None:
    scoped = PeerAddress("fe80::1%eth0", 1)
    for encode in (encode_v1, encode_v2):
        header, _rest = parse(encode(scoped, V6[1]))
        assert header is not None
        assert header.source == PeerAddress("fe80::1", 1)


def test_known_bytes() -> None:
    assert encode_v1(*V4) == b"PROXY TCP4 203.0.113.7 198.51.100.1 51234 5672\r\n"
    assert encode_v1(None, None) == b"PROXY UNKNOWN\r\n"
    assert encode_v2(*V4) == (
        V2_SIGNATURE + b"\x21\x11\x00\x0c\xcb\x00\x71\x07\xc6\x33\x64\x01\xc8\x22\x16\x28"
    )
    assert encode_v2(V4[0], None) == V2_SIGNATURE + b"\x20\x00\x00\x00"


def test_ends_of_two_families_cannot_be_encoded() -> None:
    for encode in (encode_v1, encode_v2):
        with pytest.raises(ValueError, match="family"):
            encode(V4[0], V6[1])


@pytest.mark.parametrize(
    "data",
    [
        b"AMQP\x00\x00\x09\x01",
        b"G",
        b"PROXX",
        b"PROXY\r\n",
        b"proxy TCP4",
        b"\r\n\r\nX",
        V2_SIGNATURE[:-1] + b"X",
        b"PROXY TCP4\r\n",
        b"PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n",
        b"PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 \xb2 2\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4  2\r\n",
        b"PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n",
        b"PROXY TCP4 1.2.3.04 1.2.3.4 1 2\r\n",
        b"PROXY TCP4 ::1 ::1 1 2\r\n",
        b"PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
        b"PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n",
        b"PROXY TCP4 \xff.2.3.4 1.2.3.4 1 2\r\n",
        b"PROXY UNKNOWN " + b"x" * 92 + b"\r\n",  # 108 bytes
        b"PROXY UNKNOWN " + b"x" * 93,
        V2_SIGNATURE + b"\x11\x11\x00\x0c" + bytes(12),  # version 1
        V2_SIGNATURE + b"\x31\x11\x00\x0c" + bytes(12),  # version 3
        V2_SIGNATURE + b"\x22\x11\x00\x0c" + bytes(12),  # command 2
        V2_SIGNATURE + b"\x21\x11\x00\x0b" + bytes(11),  # addresses too short
        V2_SIGNATURE + b"\x21\x21\x00\x23" + bytes(35),
        V2_SIGNATURE + b"\x21\x31\x00\xd7" + bytes(215),
        V2_SIGNATURE + b"\x21\x41\x00\x0c" + bytes(12),  # family 4
        V2_SIGNATURE + b"\x21\x13\x00\x0c" + bytes(12),  # transport 3
        V2_SIGNATURE + b"\x21\x11" + pack(">H", 4097),
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ProxyHeaderError):
        parse(data)
    with pytest.raises(ProxyHeaderError):
        feed_byte_by_byte(data)


def test_what_can_start_no_header_is_refused_at_the_first_byte() -> None:
    with pytest.raises(ProxyHeaderError):
        ProxyHeaderParser().feed(b"A")


def test_an_empty_chunk_is_nothing() -> None:
    assert ProxyHeaderParser().feed(b"") is None


def test_the_cap_for_version_2_is_the_callers() -> None:
    data = encode_v2(*V4, bytes(88))
    assert ProxyHeaderParser(rest_max=100).feed(data) == ProxyHeader(2, *V4)
    with pytest.raises(ProxyHeaderError, match="at most 99"):
        ProxyHeaderParser(rest_max=99).feed(data[:16])


@given(st.sampled_from([b"", b"PROXY ", V2_SIGNATURE, V2_SIGNATURE + b"\x21"]), st.binary(max_size=120))
def test_hostile_bytes_raise_nothing_else(start: bytes, data: bytes) -> None:
    with suppress(ProxyHeaderError):
        parse(start + data)


def test_addresses_as_people_write_them() -> None:
    assert str(V4[0]) == "203.0.113.7:51234"
    assert str(V6[0]) == "[2001:db8::7]:51234"
