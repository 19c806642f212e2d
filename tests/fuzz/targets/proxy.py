"""PROXY headers of both versions, at any split, against a parser that looks at all of it at once."""

from __future__ import annotations

import itertools
import re
import socket
import struct
from collections.abc import Iterator

from amqpgate.protocol.proxy_header import (
    V2_REST_MAX,
    PeerAddress,
    ProxyHeader,
    ProxyHeaderError,
    ProxyHeaderParser,
)
from tests.fuzz.choices import Choices
from tests.support.proxy_header import encode_v1, encode_v2

MOST = 600
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
TOKENS = (b"PROXY ", b"TCP4 ", b"TCP6 ", b"UNKNOWN", b"\r\n", SIGNATURE, b"::ffff:", b" 65535")

_LINE = re.compile(rb"PROXY (UNKNOWN(?: .*)?|TCP([46]) ([^ ]*) ([^ ]*) ([^ ]*) ([^ ]*))\r\n", re.DOTALL)
_PORT = re.compile(rb"0|[1-9][0-9]{0,4}")
#: Address bytes of each family and transport.
_SIZES = {0x00: 0, 0x11: 12, 0x12: 12, 0x21: 36, 0x22: 36, 0x31: 216, 0x32: 216}

#: What a header says of its two ends, as bytes of addresses and ports; or that it says nothing.
Ends = tuple[tuple[bytes, int], tuple[bytes, int]] | None


def seeds() -> Iterator[bytes]:
    """Good headers of each kind."""
    four = PeerAddress("203.0.113.7", 51234), PeerAddress("198.51.100.1", 5672)
    six = PeerAddress("2001:db8::1", 51234), PeerAddress("::ffff:198.51.100.1", 5672)
    for ends in (four, six, (None, None)):
        yield b"\x00" + encode_v1(*ends) + b"AMQP"
        yield b"\x03" + encode_v2(*ends, b"\x03\0\x04abcd") + b"AMQP"
    yield b"\x01PROXY UNKNOWN any thing\r\n"
    for family, size in _SIZES.items():
        yield b"\x05" + SIGNATURE + struct.pack(">BBH", 0x21, family, size) + bytes(size)


def wanted(data: bytes) -> tuple[Ends, bytes] | str:
    """The ends and what follows; or ``more``, or ``wrong``."""
    if not data:
        return "more"
    if data[:1] == b"P":
        return _first(data)
    if not SIGNATURE.startswith(data[:12]):
        return "wrong"
    if len(data) < 16:
        return "more"
    command, family, size = struct.unpack(">BBH", data[12:16])
    if size > V2_REST_MAX:
        return "wrong"
    if len(data) < 16 + size:
        return "more"
    rest = data[16 + size :]
    if command == 0x20:
        return None, rest
    if command != 0x21 or _SIZES.get(family, 1 << 16) > size:
        return "wrong"
    if family not in (0x11, 0x21):
        return None, rest
    each = 4 if family == 0x11 else 16
    body = data[16:]
    ports = struct.unpack(">HH", body[2 * each : 2 * each + 4])
    return ((body[:each], ports[0]), (body[each : 2 * each], ports[1])), rest


def _first(data: bytes) -> tuple[Ends, bytes] | str:
    if not b"PROXY ".startswith(data[:6]):
        return "wrong"
    end = data.find(b"\r\n", 0, 107)
    if end < 0:
        return "wrong" if len(data) >= 107 else "more"
    found = _LINE.fullmatch(data[: end + 2])
    if found is None:
        return "wrong"
    if found[2] is None:
        return None, data[end + 2 :]
    family = socket.AF_INET if found[2] == b"4" else socket.AF_INET6
    ends = []
    for host, port in ((found[3], found[5]), (found[4], found[6])):
        try:
            packed = socket.inet_pton(family, host.decode("ascii"))
        except (OSError, ValueError):
            return "wrong"
        if not _PORT.fullmatch(port) or int(port) > 65535:
            return "wrong"
        ends.append((packed, int(port)))
    return (ends[0], ends[1]), data[end + 2 :]


def got(data: bytes, cuts: list[int]) -> tuple[Ends, bytes] | str:
    """The same from the gateway's parser, fed in pieces."""
    parser = ProxyHeaderParser()
    edges = [0, *cuts, len(data)]
    header: ProxyHeader | None = None
    try:
        for start, stop in itertools.pairwise(edges):
            header = parser.feed(data[start:stop])
    except ProxyHeaderError:
        return "wrong"
    if header is None:
        return "more"
    if header.source is None or header.destination is None:
        assert header.source is header.destination is None
        return None, parser.rest
    return (_packed(header.source), _packed(header.destination)), parser.rest


def _packed(address: PeerAddress) -> tuple[bytes, int]:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    return socket.inet_pton(family, address.host), address.port


def check(data: bytes) -> None:
    """Both parsers say the same, whatever the split."""
    choices = Choices(data)
    step = choices.below(16)
    header = choices.rest()
    expected = wanted(header)
    for cuts in ([], list(range(1, len(header))), list(range(step + 1, len(header), step + 1))):
        assert got(header, cuts) == expected, (header, cuts, got(header, cuts), expected)
