"""Operations as a capture that Wireshark opens: the file format pcap, with packets that never were.

One TCP connection per session, from the client's address to port 5672 of an address that is nobody's. It
begins with the three-way handshake and AMQP's protocol header, so that dissectors know what follows, and then
each operation stands whole: its method, and for a message its content header and its body. Frames are those
of 0-9-1, or of 0-10 for its clients. All lengths are true. Bytes of a body that may not be shown, or were not
taken, are not there: their packets are cut short, as by a snapshot length, and say how long they were.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from struct import Struct
from typing import BinaryIO, Final, TypeAlias

import attrs

from amqpgate.protocol.frames import FRAME_BODY, FRAME_END, FRAME_HEAD, FRAME_OVERHEAD
from amqpgate.protocol.header import HEADER_0_10
from amqpgate.protocol.v0_10.frames import FRAME_HEADER_SIZE, body_head
from amqpgate.wire.generated.v0_9_1 import PROTOCOL_HEADER

#: Magic (microseconds), version 2.4, zone, accuracy, snapshot length, and LINKTYPE_RAW: packets begin with IP
#: (draft-ietf-opsawg-pcap, section 4).
_FILE_HEAD: Final = Struct("<IHHiIII").pack(0xA1B2C3D4, 2, 4, 0, 0, 262144, 101)
#: Seconds, microseconds, bytes in the file, bytes of the packet (section 5).
_RECORD: Final = Struct("<IIII")
#: RFC 791, section 3.1; RFC 8200, section 3; RFC 9293, section 3.1.
_IPV4: Final = Struct(">BBHHHBBH4s4s")
_IPV6: Final = Struct(">IHBB16s16s")
_TCP: Final = Struct(">HHIIBBHHH")
_PROTOCOL: Final = 6
_SYN, _ACK, _PSH = 0x02, 0x10, 0x08

AMQP_PORT: Final = 5672
#: The gateway's end, in ranges for documentation (RFC 5737, RFC 3849).
_GATEWAY: Final = {4: ipaddress.ip_address("192.0.2.1"), 6: ipaddress.ip_address("2001:db8::1")}
#: Client ports are given in turn.
_FIRST_PORT, _LAST_PORT = 49152, 65535
#: Bytes of TCP in one packet, at most: lengths have 16 bits.
SEGMENT: Final = 60_000


#: Pieces of a message's body of so many bytes, on a channel, of which the first are known: what is known of
#: each frame, and how long it is.
Body: TypeAlias = Callable[[int, bytes, int], "Iterator[tuple[bytes, int]]"]


def _body(channel: int, body: bytes, size: int) -> Iterator[tuple[bytes, int]]:
    most = SEGMENT - FRAME_OVERHEAD
    for start in range(0, size, most):
        length = min(most, size - start)
        known = body[start : start + length]
        end = bytes([FRAME_END]) if len(known) == length else b""
        yield FRAME_HEAD.pack(FRAME_BODY, channel, length) + known + end, length + FRAME_OVERHEAD


def _body_0_10(channel: int, body: bytes, size: int) -> Iterator[tuple[bytes, int]]:
    most = SEGMENT - FRAME_HEADER_SIZE
    for start in range(0, size, most):
        length = min(most, size - start)
        head = body_head(channel, length, is_first=not start, is_last=start + length == size)
        yield head + body[start : start + length], FRAME_HEADER_SIZE + length


@attrs.frozen
class FrameDialect:
    """What is in a connection of one version."""

    header: bytes
    body: Body
    #: Whether the broker says the same header.
    is_answered: bool = False


#: That of all versions whose frames are those of 0-9-1.
CANONICAL: Final = FrameDialect(PROTOCOL_HEADER, _body)
#: By ``amqp_version``, those of the others.
DIALECTS: Final[Mapping[str, FrameDialect]] = {
    "0-10": FrameDialect(HEADER_0_10, _body_0_10, is_answered=True)
}


@attrs.define
class _End:
    """One end of a connection."""

    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    port: int
    #: The sequence number of its next byte.
    sent: int = 0


@attrs.define(eq=False)
class Capture:
    """A file that is being written."""

    file: BinaryIO
    #: By session.
    _connections: dict[str, tuple[_End, _End]] = attrs.field(factory=dict, init=False)
    _port: int = attrs.field(default=_FIRST_PORT, init=False)

    def __attrs_post_init__(self) -> None:
        self.file.write(_FILE_HEAD)

    def add(
        self,
        session: str,
        client: str,
        at: float,
        frames: bytes,
        channel: int = 0,
        body: bytes = b"",
        size: int = 0,
        *,
        is_sent: bool = False,
        dialect: FrameDialect | None = None,
    ) -> None:
        """One operation, at a time in seconds since 1970; ``is_sent`` to the client. ``dialect`` is the
        client's; None: `CANONICAL`.

        ``frames`` are those of its method and its content header; of its body, ``size`` bytes long, the
        first are ``body``. Raises ``OSError``.
        """
        dialect = dialect or CANONICAL
        client_end, gateway_end = self._connection(session, client, at, dialect)
        ends = (gateway_end, client_end) if is_sent else (client_end, gateway_end)
        for start in range(0, len(frames), SEGMENT):
            self._packet(*ends, at, frames[start : start + SEGMENT], _PSH | _ACK)
        for piece, length in dialect.body(channel, body, size):
            self._packet(*ends, at, piece, _PSH | _ACK, length)
        self.file.flush()

    def _connection(self, session: str, client: str, at: float, dialect: FrameDialect) -> tuple[_End, _End]:
        known = self._connections.get(session)
        if known is not None:
            return known
        try:
            address = ipaddress.ip_address(client.strip("[]").partition("%")[0])
        except ValueError:
            address = ipaddress.IPv4Address(0)
        ends = _End(address, self._port), _End(_GATEWAY[address.version], AMQP_PORT)
        self._port = self._port + 1 if self._port < _LAST_PORT else _FIRST_PORT
        if len(self._connections) > _LAST_PORT - _FIRST_PORT:
            # Its port is another's now.
            del self._connections[next(iter(self._connections))]
        self._connections[session] = ends
        opening, answering = ends
        self._packet(opening, answering, at, b"", _SYN)
        opening.sent += 1
        self._packet(answering, opening, at, b"", _SYN | _ACK)
        answering.sent += 1
        self._packet(opening, answering, at, b"", _ACK)
        self._packet(opening, answering, at, dialect.header, _PSH | _ACK)
        if dialect.is_answered:
            self._packet(answering, opening, at, dialect.header, _PSH | _ACK)
        return ends

    def _packet(
        self, source: _End, target: _End, at: float, data: bytes, flags: int, length: int | None = None
    ) -> None:
        """One that carries ``length`` bytes, of which ``data`` are known."""
        length = len(data) if length is None else length
        acknowledged = target.sent if flags & _ACK else 0
        head = _TCP.pack(source.port, target.port, source.sent, acknowledged, 5 << 4, flags, 65535, 0, 0)
        source.sent = (source.sent + length) & 0xFFFFFFFF
        size = len(head) + length
        sender, receiver = source.address.packed, target.address.packed
        if length == len(data):
            pseudo = sender + receiver + Struct(">II").pack(size, _PROTOCOL)
            check = _checksum(pseudo + head + data)
            head = head[:16] + check.to_bytes(2, "big") + head[18:]
        if source.address.version == 4:
            parts = [0x45, 0, 20 + size, 0, 0, 64, _PROTOCOL, 0, sender, receiver]
            parts[7] = _checksum(_IPV4.pack(*parts))
            head = _IPV4.pack(*parts) + head
        else:
            head = _IPV6.pack(6 << 28, size, _PROTOCOL, 64, sender, receiver) + head
        seconds, fraction = divmod(round(at * 1_000_000), 1_000_000)
        self.file.write(_RECORD.pack(seconds, fraction, len(head) + len(data), len(head) + length))
        self.file.write(head + data)


def _checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
