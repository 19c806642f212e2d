"""The PROXY protocol, versions 1 and 2: who connected to the load balancer in front of us.

Implemented from HAProxy's ``proxy-protocol.txt`` (sections 2.1 and 2.2). The header comes before
everything else on the connection, TLS and AMQP included, and only listeners that were told so read it.

::

    v1   "PROXY TCP4 203.0.113.7 198.51.100.1 51234 5672" CR LF        at most 107 bytes
    v2   CR LF CR LF NUL CR LF "QUIT" LF   version|command   family|transport   length   addresses, TLVs
                     12 bytes                 1 byte           1 byte       2 bytes   length bytes
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from struct import Struct
from typing import Final

from attrs import frozen

from amqpgate.errors import AmqpgateError

V1_PREFIX: Final = b"PROXY "
V2_SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"

#: The longest line of version 1, CR LF included, says the specification.
V1_MAX: Final = 107

#: Bytes of a version 2 header after its first 16 that are put up with. Addresses take 36, and the TLVs
#: that HAProxy adds (TLS version, common name, cipher, unique id) a few hundred.
V2_REST_MAX: Final = 4096

_V2_FIXED: Final = Struct(">12sBBH")
_V4: Final = Struct(">4s4sHH")
_V6: Final = Struct(">16s16sHH")

_LOCAL: Final = 0x20
_PROXY: Final = 0x21
_TCP4: Final = 0x11
_TCP6: Final = 0x21
_UNSPECIFIED: Final = 0x00
#: Address bytes for each family and transport that the specification has.
_ADDRESS_SIZES: Final = {
    _UNSPECIFIED: 0,
    _TCP4: _V4.size,
    0x12: _V4.size,  # UDP over IPv4
    _TCP6: _V6.size,
    0x22: _V6.size,  # UDP over IPv6
    0x31: 216,  # UNIX stream
    0x32: 216,  # UNIX datagram
}


class ProxyHeaderError(AmqpgateError):
    """No PROXY header where one must be, or a malformed one: close the connection without a word."""


@frozen
class PeerAddress:
    """One end of a TCP connection."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@frozen
class ProxyHeader:
    """Who connected to whom; both None if the proxy does not say (LOCAL, UNKNOWN, UNIX sockets).

    Then the addresses of the socket itself are the ones that count.
    """

    version: int
    source: PeerAddress | None = None
    destination: PeerAddress | None = None


class ProxyHeaderParser:
    """Bytes in, in any split; one header out; what follows it is in ``rest``.

    Nothing is kept but the header, whose size is bounded: 107 bytes for version 1, 16 and ``rest_max``
    for version 2. Bytes that can start no header are refused at once.
    """

    __slots__ = ("_buffer", "_rest_max", "header", "rest")

    def __init__(self, rest_max: int = V2_REST_MAX) -> None:
        self._buffer = bytearray()
        self._rest_max = rest_max
        #: The header, once it is whole.
        self.header: ProxyHeader | None = None
        #: What was fed after the header.
        self.rest = b""

    def feed(self, data: bytes) -> ProxyHeader | None:
        """The header as soon as it is whole, None before. Raises :class:`ProxyHeaderError`."""
        if self.header is not None:
            self.rest += data
            return self.header
        self._buffer += data
        if not self._buffer:
            return None
        size = self._size_v1() if self._buffer[0] == V1_PREFIX[0] else self._size_v2()
        if size is None:
            return None
        data = bytes(self._buffer[:size])
        self.header = _parse_v1(data) if data[0] == V1_PREFIX[0] else _parse_v2(data)
        self.rest = bytes(self._buffer[size:])
        self._buffer.clear()
        return self.header

    def _size_v1(self) -> int | None:
        _check_prefix(self._buffer, V1_PREFIX)
        end = self._buffer.find(b"\r\n", 0, V1_MAX)
        if end >= 0:
            return end + 2
        if len(self._buffer) >= V1_MAX:
            raise ProxyHeaderError(f"PROXY v1 line is longer than {V1_MAX} bytes")
        return None

    def _size_v2(self) -> int | None:
        _check_prefix(self._buffer, V2_SIGNATURE)
        if len(self._buffer) < _V2_FIXED.size:
            return None
        length: int = _V2_FIXED.unpack_from(self._buffer)[3]
        if length > self._rest_max:
            raise ProxyHeaderError(f"PROXY v2 header of {length} bytes, at most {self._rest_max} are taken")
        size = _V2_FIXED.size + length
        return size if len(self._buffer) >= size else None


def _check_prefix(buffer: bytearray, prefix: bytes) -> None:
    start = bytes(buffer[: len(prefix)])
    if not prefix.startswith(start):
        raise ProxyHeaderError("no PROXY header")


def _parse_v1(line: bytes) -> ProxyHeader:
    # "Parts must be separated by exactly one space", and UNKNOWN may be followed by anything.
    parts = line[len(V1_PREFIX) : -2].split(b" ")
    if parts[0] == b"UNKNOWN":
        return ProxyHeader(1)
    if parts[0] not in (b"TCP4", b"TCP6") or len(parts) != 5:
        raise ProxyHeaderError(f"malformed PROXY v1 line of {len(line)} bytes")
    family = IPv4Address if parts[0] == b"TCP4" else IPv6Address
    try:
        source, destination = family(parts[1].decode("ascii")), family(parts[2].decode("ascii"))
        if b"%" in parts[1] + parts[2]:
            raise ValueError("a scope means nothing on another host")
    except ValueError:
        raise ProxyHeaderError("malformed address in PROXY v1 line") from None
    return ProxyHeader(
        1, PeerAddress(str(source), _port(parts[3])), PeerAddress(str(destination), _port(parts[4]))
    )


def _port(text: bytes) -> int:
    if not text.isdigit() or (text.startswith(b"0") and text != b"0") or int(text) > 65_535:
        raise ProxyHeaderError("malformed port in PROXY v1 line")
    return int(text)


def _parse_v2(data: bytes) -> ProxyHeader:
    command: int
    family: int
    length: int
    _signature, command, family, length = _V2_FIXED.unpack_from(data)
    if command == _LOCAL:
        return ProxyHeader(2)
    if command != _PROXY:
        raise ProxyHeaderError(f"PROXY v2 with version and command 0x{command:02x}")
    size = _ADDRESS_SIZES.get(family)
    if size is None:
        raise ProxyHeaderError(f"PROXY v2 with family and transport 0x{family:02x}")
    if length < size:
        raise ProxyHeaderError(f"PROXY v2 addresses need {size} bytes, {length} are there")
    if family not in (_TCP4, _TCP6):
        return ProxyHeader(2)
    layout = _V4 if family == _TCP4 else _V6
    source, destination, source_port, destination_port = layout.unpack_from(data, _V2_FIXED.size)
    return ProxyHeader(
        2,
        PeerAddress(str(ip_address(source)), source_port),
        PeerAddress(str(ip_address(destination)), destination_port),
    )
