# DO NOT EDIT. Made by `python -m amqpgate.codegen` from spec/amqp:
#   amqp0-8.xml
#   rabbitmq-0-8.overlay.xml
#   qpid-0-8.overlay.xml
#   content-methods.overlay.xml
"""AMQP 0-8: methods, properties and constants (see ``wire.method`` for what they
have in common). Section numbers in this module are those of the AMQP 0-9-1 specification.
"""

from __future__ import annotations

from struct import Struct
from typing import ClassVar, Final, Self

from attrs import field

from amqpgate.errors import ProtocolViolation
from amqpgate.values import frozen
from amqpgate.wire.dialects import RABBITMQ_0_9_1, Dialect
from amqpgate.wire.method import Method, Properties, ReplyCode
from amqpgate.wire.primitives import (
    Buffer,
    cannot_decode,
    get_longlong,
    get_longstr,
    get_octet,
    get_shortstr,
    get_shortstr_lenient,
    put_longstr,
    put_shortstr,
)
from amqpgate.wire.table_codec import get_known_table, get_table, put_table
from amqpgate.wire.tables import EMPTY_TABLE, Table

_FLAGS: Final = Struct(">H")
_B: Final = Struct(">B")
_H: Final = Struct(">H")
_I: Final = Struct(">I")
_Q: Final = Struct(">Q")
_BB: Final = Struct(">BB")
_HH: Final = Struct(">HH")
_II: Final = Struct(">II")
_QB: Final = Struct(">QB")
_HHB: Final = Struct(">HHB")
_HHH: Final = Struct(">HHH")
_HHI: Final = Struct(">HHI")
_HHQ: Final = Struct(">HHQ")
_HIH: Final = Struct(">HIH")
_IHB: Final = Struct(">IHB")
_HHBB: Final = Struct(">HHBB")
_HHQB: Final = Struct(">HHQB")
_IHIB: Final = Struct(">IHIB")
_BHIQB: Final = Struct(">BHIQB")
_HHHIH: Final = Struct(">HHHIH")
_HHIHB: Final = Struct(">HHIHB")
_HHIHIB: Final = Struct(">HHIHIB")
_HHBHIQB: Final = Struct(">HHBHIQB")

PROTOCOL_HEADER: Final = b'AMQP\x01\x01\x08\x00'

FRAME_METHOD: Final = 1
FRAME_HEADER: Final = 2
FRAME_BODY: Final = 3
FRAME_OOB_METHOD: Final = 4
FRAME_OOB_HEADER: Final = 5
FRAME_OOB_BODY: Final = 6
FRAME_TRACE: Final = 7
FRAME_HEARTBEAT: Final = 8
REPLY_SUCCESS: Final = 200
FRAME_END: Final = 206
NOT_DELIVERED: Final = 310
CONTENT_TOO_LARGE: Final = 311
NO_ROUTE: Final = 312
NO_CONSUMERS: Final = 313
CONNECTION_FORCED: Final = 320
INVALID_PATH: Final = 402
ACCESS_REFUSED: Final = 403
NOT_FOUND: Final = 404
RESOURCE_LOCKED: Final = 405
PRECONDITION_FAILED: Final = 406
FRAME_ERROR: Final = 501
SYNTAX_ERROR: Final = 502
COMMAND_INVALID: Final = 503
CHANNEL_ERROR: Final = 504
UNEXPECTED_FRAME: Final = 505
RESOURCE_ERROR: Final = 506
NOT_ALLOWED: Final = 530
NOT_IMPLEMENTED: Final = 540
INTERNAL_ERROR: Final = 541
FRAME_MIN_SIZE: Final = 4096


@frozen(eq=False, repr=False)
class ConnectionStart(Method):
    """connection.start: class 10, method 10, to the client, synchronous. Answered by
    connection.start-ok.
    """

    NAME: ClassVar[str] = "connection.start"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x000A000A
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x000A000B,)
    EXTENSION: ClassVar[str] = ""

    version_major: int = 0
    version_minor: int = 0
    server_properties: Table = EMPTY_TABLE
    mechanisms: bytes = b""
    locales: bytes = b""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHBB.pack(10, 10, self.version_major, self.version_minor),
                put_table(self.server_properties, dialect),
                put_longstr(self.mechanisms),
                put_longstr(self.locales),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        version_major, version_minor = _BB.unpack_from(buf, pos)
        pos += 2
        server_properties, pos = get_known_table(buf, pos, end, dialect)
        mechanisms, pos = get_longstr(buf, pos, end)
        locales, pos = get_longstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(version_major, version_minor, server_properties, mechanisms, locales)


@frozen(eq=False, repr=False)
class ConnectionStartOk(Method):
    """connection.start-ok: class 10, method 11, to the server, synchronous."""

    NAME: ClassVar[str] = "connection.start-ok"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x000A000B
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    client_properties: Table = EMPTY_TABLE
    mechanism: str = ""
    response: bytes = field(default=b"", repr=False)
    locale: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x0a\x00\x0b",
                put_table(self.client_properties, dialect),
                put_shortstr(self.mechanism),
                put_longstr(self.response),
                put_shortstr(self.locale),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        client_properties, pos = get_known_table(buf, pos, end, dialect)
        mechanism, pos = get_shortstr(buf, pos, end)
        response, pos = get_longstr(buf, pos, end)
        locale, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(client_properties, mechanism, response, locale)


@frozen(eq=False, repr=False)
class ConnectionSecure(Method):
    """connection.secure: class 10, method 20, to the client, synchronous. Answered by
    connection.secure-ok.
    """

    NAME: ClassVar[str] = "connection.secure"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x000A0014
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x000A0015,)
    EXTENSION: ClassVar[str] = ""

    challenge: bytes = b""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x0a\x00\x14",
                put_longstr(self.challenge),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        challenge, pos = get_longstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(challenge)


@frozen(eq=False, repr=False)
class ConnectionSecureOk(Method):
    """connection.secure-ok: class 10, method 21, to the server, synchronous."""

    NAME: ClassVar[str] = "connection.secure-ok"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x000A0015
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    response: bytes = field(default=b"", repr=False)

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x0a\x00\x15",
                put_longstr(self.response),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        response, pos = get_longstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(response)


@frozen(eq=False, repr=False)
class ConnectionTune(Method):
    """connection.tune: class 10, method 30, to the client, synchronous. Answered by connection.tune-ok.
    """

    NAME: ClassVar[str] = "connection.tune"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x000A001E
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x000A001F,)
    EXTENSION: ClassVar[str] = ""

    channel_max: int = 0
    frame_max: int = 0
    heartbeat: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHHIH.pack(10, 30, self.channel_max, self.frame_max, self.heartbeat)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 8 != end:
            raise cannot_decode()
        channel_max, frame_max, heartbeat = _HIH.unpack_from(buf, pos)
        return cls(channel_max, frame_max, heartbeat)


@frozen(eq=False, repr=False)
class ConnectionTuneOk(Method):
    """connection.tune-ok: class 10, method 31, to the server, synchronous."""

    NAME: ClassVar[str] = "connection.tune-ok"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 31
    INDEX: ClassVar[int] = 0x000A001F
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    channel_max: int = 0
    frame_max: int = 0
    heartbeat: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHHIH.pack(10, 31, self.channel_max, self.frame_max, self.heartbeat)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 8 != end:
            raise cannot_decode()
        channel_max, frame_max, heartbeat = _HIH.unpack_from(buf, pos)
        return cls(channel_max, frame_max, heartbeat)


@frozen(eq=False, repr=False)
class ConnectionOpen(Method):
    """connection.open: class 10, method 40, to the server, synchronous. Answered by connection.open-ok
    or connection.redirect.
    """

    NAME: ClassVar[str] = "connection.open"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x000A0028
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x000A0029, 0x000A0032)
    EXTENSION: ClassVar[str] = ""

    virtual_host: str = ""
    capabilities: str = ""
    insist: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x0a\x00\x28",
                put_shortstr(self.virtual_host),
                put_shortstr(self.capabilities),
                _B.pack(self.insist),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        virtual_host, pos = get_shortstr(buf, pos, end)
        capabilities, pos = get_shortstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(virtual_host, capabilities, bits & 1 != 0)


@frozen(eq=False, repr=False)
class ConnectionOpenOk(Method):
    """connection.open-ok: class 10, method 41, to the client, synchronous."""

    NAME: ClassVar[str] = "connection.open-ok"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 41
    INDEX: ClassVar[int] = 0x000A0029
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    known_hosts: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x0a\x00\x29",
                put_shortstr(self.known_hosts),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        known_hosts, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(known_hosts)


@frozen(eq=False, repr=False)
class ConnectionRedirect(Method):
    """connection.redirect: class 10, method 50, to the client, synchronous."""

    NAME: ClassVar[str] = "connection.redirect"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 50
    INDEX: ClassVar[int] = 0x000A0032
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    host: str = ""
    known_hosts: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x0a\x00\x32",
                put_shortstr(self.host),
                put_shortstr(self.known_hosts),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        host, pos = get_shortstr(buf, pos, end)
        known_hosts, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(host, known_hosts)


@frozen(eq=False, repr=False)
class ConnectionClose(Method):
    """connection.close: class 10, method 60, to the client or the server, synchronous. Answered by
    connection.close-ok. Short strings may be any bytes.
    """

    NAME: ClassVar[str] = "connection.close"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 60
    INDEX: ClassVar[int] = 0x000A003C
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x000A003D,)
    EXTENSION: ClassVar[str] = ""

    reply_code: int = 0
    reply_text: str = ""
    class_id: int = 0
    method_id: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(10, 60, self.reply_code),
                put_shortstr(self.reply_text),
                _HH.pack(self.class_id, self.method_id),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        reply_code = _H.unpack_from(buf, pos)[0]
        pos += 2
        reply_text, pos = get_shortstr_lenient(buf, pos, end)
        if pos + 4 != end:
            raise cannot_decode()
        class_id, method_id = _HH.unpack_from(buf, pos)
        return cls(reply_code, reply_text, class_id, method_id)


@frozen(eq=False, repr=False)
class ConnectionCloseOk(Method):
    """connection.close-ok: class 10, method 61, to the client or the server, synchronous."""

    NAME: ClassVar[str] = "connection.close-ok"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 61
    INDEX: ClassVar[int] = 0x000A003D
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x0a\x00\x3d"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class ChannelOpen(Method):
    """channel.open: class 20, method 10, to the server, synchronous. Answered by channel.open-ok."""

    NAME: ClassVar[str] = "channel.open"
    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0014000A
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x0014000B,)
    EXTENSION: ClassVar[str] = ""

    out_of_band: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x14\x00\x0a",
                put_shortstr(self.out_of_band),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        out_of_band, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(out_of_band)


@frozen(eq=False, repr=False)
class ChannelOpenOk(Method):
    """channel.open-ok: class 20, method 11, to the client, synchronous."""

    NAME: ClassVar[str] = "channel.open-ok"
    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x0014000B
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x14\x00\x0b"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class ChannelFlow(Method):
    """channel.flow: class 20, method 20, to the server or the client, synchronous. Answered by
    channel.flow-ok.
    """

    NAME: ClassVar[str] = "channel.flow"
    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x00140014
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x00140015,)
    EXTENSION: ClassVar[str] = ""

    active: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHB.pack(20, 20, self.active)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(bits & 1 != 0)


@frozen(eq=False, repr=False)
class ChannelFlowOk(Method):
    """channel.flow-ok: class 20, method 21, to the server or the client, asynchronous."""

    NAME: ClassVar[str] = "channel.flow-ok"
    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x00140015
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    active: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHB.pack(20, 21, self.active)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(bits & 1 != 0)


@frozen(eq=False, repr=False)
class ChannelAlert(Method):
    """channel.alert: class 20, method 30, to the client, asynchronous."""

    NAME: ClassVar[str] = "channel.alert"
    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x0014001E
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    reply_code: int = 0
    reply_text: str = ""
    details: Table = EMPTY_TABLE

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(20, 30, self.reply_code),
                put_shortstr(self.reply_text),
                put_table(self.details, dialect),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        reply_code = _H.unpack_from(buf, pos)[0]
        pos += 2
        reply_text, pos = get_shortstr(buf, pos, end)
        details, pos = get_table(buf, pos, end, dialect)
        if pos != end:
            raise cannot_decode()
        return cls(reply_code, reply_text, details)


@frozen(eq=False, repr=False)
class ChannelClose(Method):
    """channel.close: class 20, method 40, to the client or the server, synchronous. Answered by
    channel.close-ok. Short strings may be any bytes.
    """

    NAME: ClassVar[str] = "channel.close"
    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x00140028
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x00140029,)
    EXTENSION: ClassVar[str] = ""

    reply_code: int = 0
    reply_text: str = ""
    class_id: int = 0
    method_id: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(20, 40, self.reply_code),
                put_shortstr(self.reply_text),
                _HH.pack(self.class_id, self.method_id),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        reply_code = _H.unpack_from(buf, pos)[0]
        pos += 2
        reply_text, pos = get_shortstr_lenient(buf, pos, end)
        if pos + 4 != end:
            raise cannot_decode()
        class_id, method_id = _HH.unpack_from(buf, pos)
        return cls(reply_code, reply_text, class_id, method_id)


@frozen(eq=False, repr=False)
class ChannelCloseOk(Method):
    """channel.close-ok: class 20, method 41, to the client or the server, synchronous."""

    NAME: ClassVar[str] = "channel.close-ok"
    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 41
    INDEX: ClassVar[int] = 0x00140029
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x14\x00\x29"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class AccessRequest(Method):
    """access.request: class 30, method 10, to the server, synchronous. Answered by access.request-ok."""

    NAME: ClassVar[str] = "access.request"
    CLASS_ID: ClassVar[int] = 30
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x001E000A
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x001E000B,)
    EXTENSION: ClassVar[str] = ""

    realm: str = ""
    exclusive: bool = False
    passive: bool = False
    active: bool = False
    write: bool = False
    read: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x1e\x00\x0a",
                put_shortstr(self.realm),
                _B.pack(
                    self.exclusive
                    | self.passive << 1
                    | self.active << 2
                    | self.write << 3
                    | self.read << 4,
                ),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        realm, pos = get_shortstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(realm, bits & 1 != 0, bits & 2 != 0, bits & 4 != 0, bits & 8 != 0, bits & 16 != 0)


@frozen(eq=False, repr=False)
class AccessRequestOk(Method):
    """access.request-ok: class 30, method 11, to the client, synchronous."""

    NAME: ClassVar[str] = "access.request-ok"
    CLASS_ID: ClassVar[int] = 30
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x001E000B
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    ticket: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHH.pack(30, 11, self.ticket)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 != end:
            raise cannot_decode()
        ticket = _H.unpack_from(buf, pos)[0]
        return cls(ticket)


@frozen(eq=False, repr=False)
class ExchangeDeclare(Method):
    """exchange.declare: class 40, method 10, to the server, synchronous. Answered by
    exchange.declare-ok.
    """

    NAME: ClassVar[str] = "exchange.declare"
    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0028000A
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x0028000B,)
    EXTENSION: ClassVar[str] = ""

    ticket: int = 0
    exchange: str = ""
    type: str = ""
    passive: bool = False
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    no_wait: bool = False
    arguments: Table = EMPTY_TABLE

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(40, 10, self.ticket),
                put_shortstr(self.exchange),
                put_shortstr(self.type),
                _B.pack(
                    self.passive
                    | self.durable << 1
                    | self.auto_delete << 2
                    | self.internal << 3
                    | self.no_wait << 4,
                ),
                put_table(self.arguments, dialect),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        ticket = _H.unpack_from(buf, pos)[0]
        pos += 2
        exchange, pos = get_shortstr(buf, pos, end)
        type, pos = get_shortstr(buf, pos, end)
        if pos + 1 > end:
            raise cannot_decode()
        bits = buf[pos]
        pos += 1
        arguments, pos = get_table(buf, pos, end, dialect)
        if pos != end:
            raise cannot_decode()
        return cls(
            ticket,
            exchange,
            type,
            bits & 1 != 0,
            bits & 2 != 0,
            bits & 4 != 0,
            bits & 8 != 0,
            bits & 16 != 0,
            arguments,
        )


@frozen(eq=False, repr=False)
class ExchangeDeclareOk(Method):
    """exchange.declare-ok: class 40, method 11, to the client, synchronous."""

    NAME: ClassVar[str] = "exchange.declare-ok"
    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x0028000B
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x28\x00\x0b"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class ExchangeDelete(Method):
    """exchange.delete: class 40, method 20, to the server, synchronous. Answered by exchange.delete-ok.
    """

    NAME: ClassVar[str] = "exchange.delete"
    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x00280014
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x00280015,)
    EXTENSION: ClassVar[str] = ""

    ticket: int = 0
    exchange: str = ""
    if_unused: bool = False
    no_wait: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(40, 20, self.ticket),
                put_shortstr(self.exchange),
                _B.pack(self.if_unused | self.no_wait << 1),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        ticket = _H.unpack_from(buf, pos)[0]
        pos += 2
        exchange, pos = get_shortstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(ticket, exchange, bits & 1 != 0, bits & 2 != 0)


@frozen(eq=False, repr=False)
class ExchangeDeleteOk(Method):
    """exchange.delete-ok: class 40, method 21, to the client, synchronous."""

    NAME: ClassVar[str] = "exchange.delete-ok"
    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x00280015
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x28\x00\x15"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class ExchangeBound(Method):
    """exchange.bound: class 40, method 22, to the server, synchronous. Answered by exchange.bound-ok.
    Overlay: Apache Qpid: asks whether a binding exists.
    """

    NAME: ClassVar[str] = "exchange.bound"
    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 22
    INDEX: ClassVar[int] = 0x00280016
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x00280017,)
    EXTENSION: ClassVar[str] = "qpid"

    exchange: str = ""
    routing_key: str = ""
    queue: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x28\x00\x16",
                put_shortstr(self.exchange),
                put_shortstr(self.routing_key),
                put_shortstr(self.queue),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        exchange, pos = get_shortstr(buf, pos, end)
        routing_key, pos = get_shortstr(buf, pos, end)
        queue, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(exchange, routing_key, queue)


@frozen(eq=False, repr=False)
class ExchangeBoundOk(Method):
    """exchange.bound-ok: class 40, method 23, to the client, synchronous. Overlay: Apache Qpid: reply
    code 0 for yes.
    """

    NAME: ClassVar[str] = "exchange.bound-ok"
    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 23
    INDEX: ClassVar[int] = 0x00280017
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = "qpid"

    reply_code: int = 0
    reply_text: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(40, 23, self.reply_code),
                put_shortstr(self.reply_text),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        reply_code = _H.unpack_from(buf, pos)[0]
        pos += 2
        reply_text, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(reply_code, reply_text)


@frozen(eq=False, repr=False)
class QueueDeclare(Method):
    """queue.declare: class 50, method 10, to the server, synchronous. Answered by queue.declare-ok."""

    NAME: ClassVar[str] = "queue.declare"
    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0032000A
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x0032000B,)
    EXTENSION: ClassVar[str] = ""

    ticket: int = 0
    queue: str = ""
    passive: bool = False
    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    no_wait: bool = False
    arguments: Table = EMPTY_TABLE

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(50, 10, self.ticket),
                put_shortstr(self.queue),
                _B.pack(
                    self.passive
                    | self.durable << 1
                    | self.exclusive << 2
                    | self.auto_delete << 3
                    | self.no_wait << 4,
                ),
                put_table(self.arguments, dialect),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        ticket = _H.unpack_from(buf, pos)[0]
        pos += 2
        queue, pos = get_shortstr(buf, pos, end)
        if pos + 1 > end:
            raise cannot_decode()
        bits = buf[pos]
        pos += 1
        arguments, pos = get_table(buf, pos, end, dialect)
        if pos != end:
            raise cannot_decode()
        return cls(
            ticket,
            queue,
            bits & 1 != 0,
            bits & 2 != 0,
            bits & 4 != 0,
            bits & 8 != 0,
            bits & 16 != 0,
            arguments,
        )


@frozen(eq=False, repr=False)
class QueueDeclareOk(Method):
    """queue.declare-ok: class 50, method 11, to the client, synchronous."""

    NAME: ClassVar[str] = "queue.declare-ok"
    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x0032000B
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    queue: str = ""
    message_count: int = 0
    consumer_count: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x32\x00\x0b",
                put_shortstr(self.queue),
                _II.pack(self.message_count, self.consumer_count),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        queue, pos = get_shortstr(buf, pos, end)
        if pos + 8 != end:
            raise cannot_decode()
        message_count, consumer_count = _II.unpack_from(buf, pos)
        return cls(queue, message_count, consumer_count)


@frozen(eq=False, repr=False)
class QueueBind(Method):
    """queue.bind: class 50, method 20, to the server, synchronous. Answered by queue.bind-ok."""

    NAME: ClassVar[str] = "queue.bind"
    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x00320014
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x00320015,)
    EXTENSION: ClassVar[str] = ""

    ticket: int = 0
    queue: str = ""
    exchange: str = ""
    routing_key: str = ""
    no_wait: bool = False
    arguments: Table = EMPTY_TABLE

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(50, 20, self.ticket),
                put_shortstr(self.queue),
                put_shortstr(self.exchange),
                put_shortstr(self.routing_key),
                _B.pack(self.no_wait),
                put_table(self.arguments, dialect),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        ticket = _H.unpack_from(buf, pos)[0]
        pos += 2
        queue, pos = get_shortstr(buf, pos, end)
        exchange, pos = get_shortstr(buf, pos, end)
        routing_key, pos = get_shortstr(buf, pos, end)
        if pos + 1 > end:
            raise cannot_decode()
        bits = buf[pos]
        pos += 1
        arguments, pos = get_table(buf, pos, end, dialect)
        if pos != end:
            raise cannot_decode()
        return cls(ticket, queue, exchange, routing_key, bits & 1 != 0, arguments)


@frozen(eq=False, repr=False)
class QueueBindOk(Method):
    """queue.bind-ok: class 50, method 21, to the client, synchronous."""

    NAME: ClassVar[str] = "queue.bind-ok"
    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x00320015
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x32\x00\x15"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class QueuePurge(Method):
    """queue.purge: class 50, method 30, to the server, synchronous. Answered by queue.purge-ok."""

    NAME: ClassVar[str] = "queue.purge"
    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x0032001E
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x0032001F,)
    EXTENSION: ClassVar[str] = ""

    ticket: int = 0
    queue: str = ""
    no_wait: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(50, 30, self.ticket),
                put_shortstr(self.queue),
                _B.pack(self.no_wait),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        ticket = _H.unpack_from(buf, pos)[0]
        pos += 2
        queue, pos = get_shortstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(ticket, queue, bits & 1 != 0)


@frozen(eq=False, repr=False)
class QueuePurgeOk(Method):
    """queue.purge-ok: class 50, method 31, to the client, synchronous."""

    NAME: ClassVar[str] = "queue.purge-ok"
    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 31
    INDEX: ClassVar[int] = 0x0032001F
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    message_count: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHI.pack(50, 31, self.message_count)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 4 != end:
            raise cannot_decode()
        message_count = _I.unpack_from(buf, pos)[0]
        return cls(message_count)


@frozen(eq=False, repr=False)
class QueueDelete(Method):
    """queue.delete: class 50, method 40, to the server, synchronous. Answered by queue.delete-ok."""

    NAME: ClassVar[str] = "queue.delete"
    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x00320028
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x00320029,)
    EXTENSION: ClassVar[str] = ""

    ticket: int = 0
    queue: str = ""
    if_unused: bool = False
    if_empty: bool = False
    no_wait: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(50, 40, self.ticket),
                put_shortstr(self.queue),
                _B.pack(self.if_unused | self.if_empty << 1 | self.no_wait << 2),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        ticket = _H.unpack_from(buf, pos)[0]
        pos += 2
        queue, pos = get_shortstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(ticket, queue, bits & 1 != 0, bits & 2 != 0, bits & 4 != 0)


@frozen(eq=False, repr=False)
class QueueDeleteOk(Method):
    """queue.delete-ok: class 50, method 41, to the client, synchronous."""

    NAME: ClassVar[str] = "queue.delete-ok"
    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 41
    INDEX: ClassVar[int] = 0x00320029
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    message_count: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHI.pack(50, 41, self.message_count)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 4 != end:
            raise cannot_decode()
        message_count = _I.unpack_from(buf, pos)[0]
        return cls(message_count)


@frozen(eq=False, repr=False)
class QueueUnbind(Method):
    """queue.unbind: class 50, method 50, to the server, synchronous. Answered by queue.unbind-ok.
    Overlay: RabbitMQ, taken over from 0-9.
    """

    NAME: ClassVar[str] = "queue.unbind"
    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 50
    INDEX: ClassVar[int] = 0x00320032
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x00320033,)
    EXTENSION: ClassVar[str] = "rabbitmq"

    ticket: int = 0
    queue: str = ""
    exchange: str = ""
    routing_key: str = ""
    arguments: Table = EMPTY_TABLE

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(50, 50, self.ticket),
                put_shortstr(self.queue),
                put_shortstr(self.exchange),
                put_shortstr(self.routing_key),
                put_table(self.arguments, dialect),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        ticket = _H.unpack_from(buf, pos)[0]
        pos += 2
        queue, pos = get_shortstr(buf, pos, end)
        exchange, pos = get_shortstr(buf, pos, end)
        routing_key, pos = get_shortstr(buf, pos, end)
        arguments, pos = get_table(buf, pos, end, dialect)
        if pos != end:
            raise cannot_decode()
        return cls(ticket, queue, exchange, routing_key, arguments)


@frozen(eq=False, repr=False)
class QueueUnbindOk(Method):
    """queue.unbind-ok: class 50, method 51, to the client, synchronous. Overlay: RabbitMQ, taken over
    from 0-9.
    """

    NAME: ClassVar[str] = "queue.unbind-ok"
    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 51
    INDEX: ClassVar[int] = 0x00320033
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = "rabbitmq"

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x32\x00\x33"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class BasicQos(Method):
    """basic.qos: class 60, method 10, to the server, synchronous. Answered by basic.qos-ok."""

    NAME: ClassVar[str] = "basic.qos"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x003C000A
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x003C000B,)
    EXTENSION: ClassVar[str] = ""

    prefetch_size: int = 0
    prefetch_count: int = 0
    global_: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHIHB.pack(60, 10, self.prefetch_size, self.prefetch_count, self.global_)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 7 != end:
            raise cannot_decode()
        prefetch_size, prefetch_count, bits = _IHB.unpack_from(buf, pos)
        return cls(prefetch_size, prefetch_count, bits & 1 != 0)


@frozen(eq=False, repr=False)
class BasicQosOk(Method):
    """basic.qos-ok: class 60, method 11, to the client, synchronous."""

    NAME: ClassVar[str] = "basic.qos-ok"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x003C000B
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x3c\x00\x0b"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class BasicConsume(Method):
    """basic.consume: class 60, method 20, to the server, synchronous. Answered by basic.consume-ok.
    Overlay: Apache Qpid sends and wants a table at the end, RabbitMQ and the specification none.
    """

    NAME: ClassVar[str] = "basic.consume"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x003C0014
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x003C0015,)
    EXTENSION: ClassVar[str] = ""

    ticket: int = 0
    queue: str = ""
    consumer_tag: str = ""
    no_local: bool = False
    no_ack: bool = False
    exclusive: bool = False
    no_wait: bool = False
    arguments: Table | None = None

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(60, 20, self.ticket),
                put_shortstr(self.queue),
                put_shortstr(self.consumer_tag),
                _B.pack(self.no_local | self.no_ack << 1 | self.exclusive << 2 | self.no_wait << 3),
                b"" if self.arguments is None else put_table(self.arguments, dialect),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        ticket = _H.unpack_from(buf, pos)[0]
        pos += 2
        queue, pos = get_shortstr(buf, pos, end)
        consumer_tag, pos = get_shortstr(buf, pos, end)
        if pos + 1 > end:
            raise cannot_decode()
        bits = buf[pos]
        pos += 1
        arguments: Table | None = None
        if pos != end:
            arguments, pos = get_table(buf, pos, end, dialect)
        if pos != end:
            raise cannot_decode()
        return cls(
            ticket,
            queue,
            consumer_tag,
            bits & 1 != 0,
            bits & 2 != 0,
            bits & 4 != 0,
            bits & 8 != 0,
            arguments,
        )


@frozen(eq=False, repr=False)
class BasicConsumeOk(Method):
    """basic.consume-ok: class 60, method 21, to the client, synchronous."""

    NAME: ClassVar[str] = "basic.consume-ok"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x003C0015
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    consumer_tag: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x3c\x00\x15",
                put_shortstr(self.consumer_tag),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        consumer_tag, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(consumer_tag)


@frozen(eq=False, repr=False)
class BasicCancel(Method):
    """basic.cancel: class 60, method 30, to the server, synchronous. Answered by basic.cancel-ok."""

    NAME: ClassVar[str] = "basic.cancel"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x003C001E
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x003C001F,)
    EXTENSION: ClassVar[str] = ""

    consumer_tag: str = ""
    no_wait: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x3c\x00\x1e",
                put_shortstr(self.consumer_tag),
                _B.pack(self.no_wait),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        consumer_tag, pos = get_shortstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(consumer_tag, bits & 1 != 0)


@frozen(eq=False, repr=False)
class BasicCancelOk(Method):
    """basic.cancel-ok: class 60, method 31, to the client, synchronous."""

    NAME: ClassVar[str] = "basic.cancel-ok"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 31
    INDEX: ClassVar[int] = 0x003C001F
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    consumer_tag: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x3c\x00\x1f",
                put_shortstr(self.consumer_tag),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        consumer_tag, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(consumer_tag)


@frozen(eq=False, repr=False)
class BasicPublish(Method):
    """basic.publish: class 60, method 40, to the server, asynchronous, carries content. Short strings
    may be any bytes.
    """

    NAME: ClassVar[str] = "basic.publish"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x003C0028
    CONTENT: ClassVar[bool] = True
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    ticket: int = 0
    exchange: str = ""
    routing_key: str = ""
    mandatory: bool = False
    immediate: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(60, 40, self.ticket),
                put_shortstr(self.exchange),
                put_shortstr(self.routing_key),
                _B.pack(self.mandatory | self.immediate << 1),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        ticket = _H.unpack_from(buf, pos)[0]
        pos += 2
        exchange, pos = get_shortstr_lenient(buf, pos, end)
        routing_key, pos = get_shortstr_lenient(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(ticket, exchange, routing_key, bits & 1 != 0, bits & 2 != 0)


@frozen(eq=False, repr=False)
class BasicReturn(Method):
    """basic.return: class 60, method 50, to the client, asynchronous, carries content. Short strings may
    be any bytes.
    """

    NAME: ClassVar[str] = "basic.return"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 50
    INDEX: ClassVar[int] = 0x003C0032
    CONTENT: ClassVar[bool] = True
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    reply_code: int = 0
    reply_text: str = ""
    exchange: str = ""
    routing_key: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(60, 50, self.reply_code),
                put_shortstr(self.reply_text),
                put_shortstr(self.exchange),
                put_shortstr(self.routing_key),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        reply_code = _H.unpack_from(buf, pos)[0]
        pos += 2
        reply_text, pos = get_shortstr_lenient(buf, pos, end)
        exchange, pos = get_shortstr_lenient(buf, pos, end)
        routing_key, pos = get_shortstr_lenient(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(reply_code, reply_text, exchange, routing_key)


@frozen(eq=False, repr=False)
class BasicDeliver(Method):
    """basic.deliver: class 60, method 60, to the client, asynchronous, carries content. Short strings
    may be any bytes.
    """

    NAME: ClassVar[str] = "basic.deliver"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 60
    INDEX: ClassVar[int] = 0x003C003C
    CONTENT: ClassVar[bool] = True
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    consumer_tag: str = ""
    delivery_tag: int = 0
    redelivered: bool = False
    exchange: str = ""
    routing_key: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x3c\x00\x3c",
                put_shortstr(self.consumer_tag),
                _QB.pack(self.delivery_tag, self.redelivered),
                put_shortstr(self.exchange),
                put_shortstr(self.routing_key),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        consumer_tag, pos = get_shortstr_lenient(buf, pos, end)
        if pos + 9 > end:
            raise cannot_decode()
        delivery_tag, bits = _QB.unpack_from(buf, pos)
        pos += 9
        exchange, pos = get_shortstr_lenient(buf, pos, end)
        routing_key, pos = get_shortstr_lenient(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(consumer_tag, delivery_tag, bits & 1 != 0, exchange, routing_key)


@frozen(eq=False, repr=False)
class BasicGet(Method):
    """basic.get: class 60, method 70, to the server, synchronous. Answered by basic.get-ok or
    basic.get-empty.
    """

    NAME: ClassVar[str] = "basic.get"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 70
    INDEX: ClassVar[int] = 0x003C0046
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x003C0047, 0x003C0048)
    EXTENSION: ClassVar[str] = ""

    ticket: int = 0
    queue: str = ""
    no_ack: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(60, 70, self.ticket),
                put_shortstr(self.queue),
                _B.pack(self.no_ack),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        ticket = _H.unpack_from(buf, pos)[0]
        pos += 2
        queue, pos = get_shortstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(ticket, queue, bits & 1 != 0)


@frozen(eq=False, repr=False)
class BasicGetOk(Method):
    """basic.get-ok: class 60, method 71, to the client, synchronous, carries content. Short strings may
    be any bytes.
    """

    NAME: ClassVar[str] = "basic.get-ok"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 71
    INDEX: ClassVar[int] = 0x003C0047
    CONTENT: ClassVar[bool] = True
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    delivery_tag: int = 0
    redelivered: bool = False
    exchange: str = ""
    routing_key: str = ""
    message_count: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHQB.pack(60, 71, self.delivery_tag, self.redelivered),
                put_shortstr(self.exchange),
                put_shortstr(self.routing_key),
                _I.pack(self.message_count),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 9 > end:
            raise cannot_decode()
        delivery_tag, bits = _QB.unpack_from(buf, pos)
        pos += 9
        exchange, pos = get_shortstr_lenient(buf, pos, end)
        routing_key, pos = get_shortstr_lenient(buf, pos, end)
        if pos + 4 != end:
            raise cannot_decode()
        message_count = _I.unpack_from(buf, pos)[0]
        return cls(delivery_tag, bits & 1 != 0, exchange, routing_key, message_count)


@frozen(eq=False, repr=False)
class BasicGetEmpty(Method):
    """basic.get-empty: class 60, method 72, to the client, synchronous."""

    NAME: ClassVar[str] = "basic.get-empty"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 72
    INDEX: ClassVar[int] = 0x003C0048
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    cluster_id: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x3c\x00\x48",
                put_shortstr(self.cluster_id),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        cluster_id, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(cluster_id)


@frozen(eq=False, repr=False)
class BasicAck(Method):
    """basic.ack: class 60, method 80, to the server, asynchronous."""

    NAME: ClassVar[str] = "basic.ack"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 80
    INDEX: ClassVar[int] = 0x003C0050
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    delivery_tag: int = 0
    multiple: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHQB.pack(60, 80, self.delivery_tag, self.multiple)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 9 != end:
            raise cannot_decode()
        delivery_tag, bits = _QB.unpack_from(buf, pos)
        return cls(delivery_tag, bits & 1 != 0)


@frozen(eq=False, repr=False)
class BasicReject(Method):
    """basic.reject: class 60, method 90, to the server, asynchronous."""

    NAME: ClassVar[str] = "basic.reject"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 90
    INDEX: ClassVar[int] = 0x003C005A
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    delivery_tag: int = 0
    requeue: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHQB.pack(60, 90, self.delivery_tag, self.requeue)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 9 != end:
            raise cannot_decode()
        delivery_tag, bits = _QB.unpack_from(buf, pos)
        return cls(delivery_tag, bits & 1 != 0)


@frozen(eq=False, repr=False)
class BasicRecoverAsync(Method):
    """basic.recover-async: class 60, method 100, to the server, asynchronous. Answered by
    basic.recover-sync-ok. Overlay: Apache Qpid answers 60,100 with 60,101; RabbitMQ does not.
    """

    NAME: ClassVar[str] = "basic.recover-async"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 100
    INDEX: ClassVar[int] = 0x003C0064
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = (0x003C0065,)
    EXTENSION: ClassVar[str] = ""

    requeue: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHB.pack(60, 100, self.requeue)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(bits & 1 != 0)


@frozen(eq=False, repr=False)
class BasicRecoverSyncOk(Method):
    """basic.recover-sync-ok: class 60, method 101, to the client, synchronous. Overlay: Apache Qpid;
    called recover-ok there, recover-sync-ok in its 0-9.
    """

    NAME: ClassVar[str] = "basic.recover-sync-ok"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 101
    INDEX: ClassVar[int] = 0x003C0065
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = "qpid"

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x3c\x00\x65"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class BasicRecover(Method):
    """basic.recover: class 60, method 110, to the server, synchronous. Answered by basic.recover-ok.
    Overlay: RabbitMQ, taken over from 0-9-1.
    """

    NAME: ClassVar[str] = "basic.recover"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 110
    INDEX: ClassVar[int] = 0x003C006E
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x003C006F,)
    EXTENSION: ClassVar[str] = "rabbitmq"

    requeue: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHB.pack(60, 110, self.requeue)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(bits & 1 != 0)


@frozen(eq=False, repr=False)
class BasicRecoverOk(Method):
    """basic.recover-ok: class 60, method 111, to the client, synchronous. Overlay: RabbitMQ, taken over
    from 0-9-1.
    """

    NAME: ClassVar[str] = "basic.recover-ok"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 111
    INDEX: ClassVar[int] = 0x003C006F
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = "rabbitmq"

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x3c\x00\x6f"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class FileQos(Method):
    """file.qos: class 70, method 10, to the server, synchronous. Answered by file.qos-ok."""

    NAME: ClassVar[str] = "file.qos"
    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0046000A
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x0046000B,)
    EXTENSION: ClassVar[str] = ""

    prefetch_size: int = 0
    prefetch_count: int = 0
    global_: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHIHB.pack(70, 10, self.prefetch_size, self.prefetch_count, self.global_)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 7 != end:
            raise cannot_decode()
        prefetch_size, prefetch_count, bits = _IHB.unpack_from(buf, pos)
        return cls(prefetch_size, prefetch_count, bits & 1 != 0)


@frozen(eq=False, repr=False)
class FileQosOk(Method):
    """file.qos-ok: class 70, method 11, to the client, synchronous."""

    NAME: ClassVar[str] = "file.qos-ok"
    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x0046000B
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x46\x00\x0b"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class FileConsume(Method):
    """file.consume: class 70, method 20, to the server, synchronous. Answered by file.consume-ok."""

    NAME: ClassVar[str] = "file.consume"
    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x00460014
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x00460015,)
    EXTENSION: ClassVar[str] = ""

    ticket: int = 0
    queue: str = ""
    consumer_tag: str = ""
    no_local: bool = False
    no_ack: bool = False
    exclusive: bool = False
    no_wait: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(70, 20, self.ticket),
                put_shortstr(self.queue),
                put_shortstr(self.consumer_tag),
                _B.pack(self.no_local | self.no_ack << 1 | self.exclusive << 2 | self.no_wait << 3),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        ticket = _H.unpack_from(buf, pos)[0]
        pos += 2
        queue, pos = get_shortstr(buf, pos, end)
        consumer_tag, pos = get_shortstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(
            ticket,
            queue,
            consumer_tag,
            bits & 1 != 0,
            bits & 2 != 0,
            bits & 4 != 0,
            bits & 8 != 0,
        )


@frozen(eq=False, repr=False)
class FileConsumeOk(Method):
    """file.consume-ok: class 70, method 21, to the client, synchronous."""

    NAME: ClassVar[str] = "file.consume-ok"
    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x00460015
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    consumer_tag: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x46\x00\x15",
                put_shortstr(self.consumer_tag),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        consumer_tag, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(consumer_tag)


@frozen(eq=False, repr=False)
class FileCancel(Method):
    """file.cancel: class 70, method 30, to the server, synchronous. Answered by file.cancel-ok."""

    NAME: ClassVar[str] = "file.cancel"
    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x0046001E
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x0046001F,)
    EXTENSION: ClassVar[str] = ""

    consumer_tag: str = ""
    no_wait: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x46\x00\x1e",
                put_shortstr(self.consumer_tag),
                _B.pack(self.no_wait),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        consumer_tag, pos = get_shortstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(consumer_tag, bits & 1 != 0)


@frozen(eq=False, repr=False)
class FileCancelOk(Method):
    """file.cancel-ok: class 70, method 31, to the client, synchronous."""

    NAME: ClassVar[str] = "file.cancel-ok"
    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 31
    INDEX: ClassVar[int] = 0x0046001F
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    consumer_tag: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x46\x00\x1f",
                put_shortstr(self.consumer_tag),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        consumer_tag, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(consumer_tag)


@frozen(eq=False, repr=False)
class FileOpen(Method):
    """file.open: class 70, method 40, to the server or the client, synchronous. Answered by
    file.open-ok.
    """

    NAME: ClassVar[str] = "file.open"
    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x00460028
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x00460029,)
    EXTENSION: ClassVar[str] = ""

    identifier: str = ""
    content_size: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x46\x00\x28",
                put_shortstr(self.identifier),
                _Q.pack(self.content_size),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        identifier, pos = get_shortstr(buf, pos, end)
        if pos + 8 != end:
            raise cannot_decode()
        content_size = _Q.unpack_from(buf, pos)[0]
        return cls(identifier, content_size)


@frozen(eq=False, repr=False)
class FileOpenOk(Method):
    """file.open-ok: class 70, method 41, to the server or the client, synchronous. Answered by
    file.stage.
    """

    NAME: ClassVar[str] = "file.open-ok"
    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 41
    INDEX: ClassVar[int] = 0x00460029
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x00460032,)
    EXTENSION: ClassVar[str] = ""

    staged_size: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHQ.pack(70, 41, self.staged_size)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 8 != end:
            raise cannot_decode()
        staged_size = _Q.unpack_from(buf, pos)[0]
        return cls(staged_size)


@frozen(eq=False, repr=False)
class FileStage(Method):
    """file.stage: class 70, method 50, to the server or the client, asynchronous, carries content."""

    NAME: ClassVar[str] = "file.stage"
    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 50
    INDEX: ClassVar[int] = 0x00460032
    CONTENT: ClassVar[bool] = True
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x46\x00\x32"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class FilePublish(Method):
    """file.publish: class 70, method 60, to the server, asynchronous."""

    NAME: ClassVar[str] = "file.publish"
    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 60
    INDEX: ClassVar[int] = 0x0046003C
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    ticket: int = 0
    exchange: str = ""
    routing_key: str = ""
    mandatory: bool = False
    immediate: bool = False
    identifier: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(70, 60, self.ticket),
                put_shortstr(self.exchange),
                put_shortstr(self.routing_key),
                _B.pack(self.mandatory | self.immediate << 1),
                put_shortstr(self.identifier),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        ticket = _H.unpack_from(buf, pos)[0]
        pos += 2
        exchange, pos = get_shortstr(buf, pos, end)
        routing_key, pos = get_shortstr(buf, pos, end)
        if pos + 1 > end:
            raise cannot_decode()
        bits = buf[pos]
        pos += 1
        identifier, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(ticket, exchange, routing_key, bits & 1 != 0, bits & 2 != 0, identifier)


@frozen(eq=False, repr=False)
class FileReturn(Method):
    """file.return: class 70, method 70, to the client, asynchronous, carries content."""

    NAME: ClassVar[str] = "file.return"
    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 70
    INDEX: ClassVar[int] = 0x00460046
    CONTENT: ClassVar[bool] = True
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    reply_code: int = 0
    reply_text: str = ""
    exchange: str = ""
    routing_key: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(70, 70, self.reply_code),
                put_shortstr(self.reply_text),
                put_shortstr(self.exchange),
                put_shortstr(self.routing_key),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        reply_code = _H.unpack_from(buf, pos)[0]
        pos += 2
        reply_text, pos = get_shortstr(buf, pos, end)
        exchange, pos = get_shortstr(buf, pos, end)
        routing_key, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(reply_code, reply_text, exchange, routing_key)


@frozen(eq=False, repr=False)
class FileDeliver(Method):
    """file.deliver: class 70, method 80, to the client, asynchronous."""

    NAME: ClassVar[str] = "file.deliver"
    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 80
    INDEX: ClassVar[int] = 0x00460050
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    consumer_tag: str = ""
    delivery_tag: int = 0
    redelivered: bool = False
    exchange: str = ""
    routing_key: str = ""
    identifier: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x46\x00\x50",
                put_shortstr(self.consumer_tag),
                _QB.pack(self.delivery_tag, self.redelivered),
                put_shortstr(self.exchange),
                put_shortstr(self.routing_key),
                put_shortstr(self.identifier),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        consumer_tag, pos = get_shortstr(buf, pos, end)
        if pos + 9 > end:
            raise cannot_decode()
        delivery_tag, bits = _QB.unpack_from(buf, pos)
        pos += 9
        exchange, pos = get_shortstr(buf, pos, end)
        routing_key, pos = get_shortstr(buf, pos, end)
        identifier, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(consumer_tag, delivery_tag, bits & 1 != 0, exchange, routing_key, identifier)


@frozen(eq=False, repr=False)
class FileAck(Method):
    """file.ack: class 70, method 90, to the server, asynchronous."""

    NAME: ClassVar[str] = "file.ack"
    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 90
    INDEX: ClassVar[int] = 0x0046005A
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    delivery_tag: int = 0
    multiple: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHQB.pack(70, 90, self.delivery_tag, self.multiple)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 9 != end:
            raise cannot_decode()
        delivery_tag, bits = _QB.unpack_from(buf, pos)
        return cls(delivery_tag, bits & 1 != 0)


@frozen(eq=False, repr=False)
class FileReject(Method):
    """file.reject: class 70, method 100, to the server, asynchronous."""

    NAME: ClassVar[str] = "file.reject"
    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 100
    INDEX: ClassVar[int] = 0x00460064
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    delivery_tag: int = 0
    requeue: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHQB.pack(70, 100, self.delivery_tag, self.requeue)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 9 != end:
            raise cannot_decode()
        delivery_tag, bits = _QB.unpack_from(buf, pos)
        return cls(delivery_tag, bits & 1 != 0)


@frozen(eq=False, repr=False)
class StreamQos(Method):
    """stream.qos: class 80, method 10, to the server, synchronous. Answered by stream.qos-ok."""

    NAME: ClassVar[str] = "stream.qos"
    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0050000A
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x0050000B,)
    EXTENSION: ClassVar[str] = ""

    prefetch_size: int = 0
    prefetch_count: int = 0
    consume_rate: int = 0
    global_: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHIHIB.pack(
            80,
            10,
            self.prefetch_size,
            self.prefetch_count,
            self.consume_rate,
            self.global_,
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 11 != end:
            raise cannot_decode()
        prefetch_size, prefetch_count, consume_rate, bits = _IHIB.unpack_from(buf, pos)
        return cls(prefetch_size, prefetch_count, consume_rate, bits & 1 != 0)


@frozen(eq=False, repr=False)
class StreamQosOk(Method):
    """stream.qos-ok: class 80, method 11, to the client, synchronous."""

    NAME: ClassVar[str] = "stream.qos-ok"
    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x0050000B
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x50\x00\x0b"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class StreamConsume(Method):
    """stream.consume: class 80, method 20, to the server, synchronous. Answered by stream.consume-ok."""

    NAME: ClassVar[str] = "stream.consume"
    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x00500014
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x00500015,)
    EXTENSION: ClassVar[str] = ""

    ticket: int = 0
    queue: str = ""
    consumer_tag: str = ""
    no_local: bool = False
    exclusive: bool = False
    no_wait: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(80, 20, self.ticket),
                put_shortstr(self.queue),
                put_shortstr(self.consumer_tag),
                _B.pack(self.no_local | self.exclusive << 1 | self.no_wait << 2),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        ticket = _H.unpack_from(buf, pos)[0]
        pos += 2
        queue, pos = get_shortstr(buf, pos, end)
        consumer_tag, pos = get_shortstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(ticket, queue, consumer_tag, bits & 1 != 0, bits & 2 != 0, bits & 4 != 0)


@frozen(eq=False, repr=False)
class StreamConsumeOk(Method):
    """stream.consume-ok: class 80, method 21, to the client, synchronous."""

    NAME: ClassVar[str] = "stream.consume-ok"
    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x00500015
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    consumer_tag: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x50\x00\x15",
                put_shortstr(self.consumer_tag),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        consumer_tag, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(consumer_tag)


@frozen(eq=False, repr=False)
class StreamCancel(Method):
    """stream.cancel: class 80, method 30, to the server, synchronous. Answered by stream.cancel-ok."""

    NAME: ClassVar[str] = "stream.cancel"
    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x0050001E
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x0050001F,)
    EXTENSION: ClassVar[str] = ""

    consumer_tag: str = ""
    no_wait: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x50\x00\x1e",
                put_shortstr(self.consumer_tag),
                _B.pack(self.no_wait),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        consumer_tag, pos = get_shortstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(consumer_tag, bits & 1 != 0)


@frozen(eq=False, repr=False)
class StreamCancelOk(Method):
    """stream.cancel-ok: class 80, method 31, to the client, synchronous."""

    NAME: ClassVar[str] = "stream.cancel-ok"
    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 31
    INDEX: ClassVar[int] = 0x0050001F
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    consumer_tag: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x50\x00\x1f",
                put_shortstr(self.consumer_tag),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        consumer_tag, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(consumer_tag)


@frozen(eq=False, repr=False)
class StreamPublish(Method):
    """stream.publish: class 80, method 40, to the server, asynchronous, carries content."""

    NAME: ClassVar[str] = "stream.publish"
    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x00500028
    CONTENT: ClassVar[bool] = True
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    ticket: int = 0
    exchange: str = ""
    routing_key: str = ""
    mandatory: bool = False
    immediate: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(80, 40, self.ticket),
                put_shortstr(self.exchange),
                put_shortstr(self.routing_key),
                _B.pack(self.mandatory | self.immediate << 1),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        ticket = _H.unpack_from(buf, pos)[0]
        pos += 2
        exchange, pos = get_shortstr(buf, pos, end)
        routing_key, pos = get_shortstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(ticket, exchange, routing_key, bits & 1 != 0, bits & 2 != 0)


@frozen(eq=False, repr=False)
class StreamReturn(Method):
    """stream.return: class 80, method 50, to the client, asynchronous, carries content."""

    NAME: ClassVar[str] = "stream.return"
    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 50
    INDEX: ClassVar[int] = 0x00500032
    CONTENT: ClassVar[bool] = True
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    reply_code: int = 0
    reply_text: str = ""
    exchange: str = ""
    routing_key: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(80, 50, self.reply_code),
                put_shortstr(self.reply_text),
                put_shortstr(self.exchange),
                put_shortstr(self.routing_key),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        reply_code = _H.unpack_from(buf, pos)[0]
        pos += 2
        reply_text, pos = get_shortstr(buf, pos, end)
        exchange, pos = get_shortstr(buf, pos, end)
        routing_key, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(reply_code, reply_text, exchange, routing_key)


@frozen(eq=False, repr=False)
class StreamDeliver(Method):
    """stream.deliver: class 80, method 60, to the client, asynchronous, carries content."""

    NAME: ClassVar[str] = "stream.deliver"
    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 60
    INDEX: ClassVar[int] = 0x0050003C
    CONTENT: ClassVar[bool] = True
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    consumer_tag: str = ""
    delivery_tag: int = 0
    exchange: str = ""
    queue: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x50\x00\x3c",
                put_shortstr(self.consumer_tag),
                _Q.pack(self.delivery_tag),
                put_shortstr(self.exchange),
                put_shortstr(self.queue),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        consumer_tag, pos = get_shortstr(buf, pos, end)
        if pos + 8 > end:
            raise cannot_decode()
        delivery_tag = _Q.unpack_from(buf, pos)[0]
        pos += 8
        exchange, pos = get_shortstr(buf, pos, end)
        queue, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(consumer_tag, delivery_tag, exchange, queue)


@frozen(eq=False, repr=False)
class TxSelect(Method):
    """tx.select: class 90, method 10, to the server, synchronous. Answered by tx.select-ok."""

    NAME: ClassVar[str] = "tx.select"
    CLASS_ID: ClassVar[int] = 90
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x005A000A
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x005A000B,)
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x5a\x00\x0a"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class TxSelectOk(Method):
    """tx.select-ok: class 90, method 11, to the client, synchronous."""

    NAME: ClassVar[str] = "tx.select-ok"
    CLASS_ID: ClassVar[int] = 90
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x005A000B
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x5a\x00\x0b"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class TxCommit(Method):
    """tx.commit: class 90, method 20, to the server, synchronous. Answered by tx.commit-ok."""

    NAME: ClassVar[str] = "tx.commit"
    CLASS_ID: ClassVar[int] = 90
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x005A0014
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x005A0015,)
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x5a\x00\x14"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class TxCommitOk(Method):
    """tx.commit-ok: class 90, method 21, to the client, synchronous."""

    NAME: ClassVar[str] = "tx.commit-ok"
    CLASS_ID: ClassVar[int] = 90
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x005A0015
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x5a\x00\x15"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class TxRollback(Method):
    """tx.rollback: class 90, method 30, to the server, synchronous. Answered by tx.rollback-ok."""

    NAME: ClassVar[str] = "tx.rollback"
    CLASS_ID: ClassVar[int] = 90
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x005A001E
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x005A001F,)
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x5a\x00\x1e"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class TxRollbackOk(Method):
    """tx.rollback-ok: class 90, method 31, to the client, synchronous."""

    NAME: ClassVar[str] = "tx.rollback-ok"
    CLASS_ID: ClassVar[int] = 90
    METHOD_ID: ClassVar[int] = 31
    INDEX: ClassVar[int] = 0x005A001F
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x5a\x00\x1f"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class DtxSelect(Method):
    """dtx.select: class 100, method 10, to the server, synchronous. Answered by dtx.select-ok."""

    NAME: ClassVar[str] = "dtx.select"
    CLASS_ID: ClassVar[int] = 100
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0064000A
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x0064000B,)
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x64\x00\x0a"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class DtxSelectOk(Method):
    """dtx.select-ok: class 100, method 11, to the client, synchronous."""

    NAME: ClassVar[str] = "dtx.select-ok"
    CLASS_ID: ClassVar[int] = 100
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x0064000B
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x64\x00\x0b"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class DtxStart(Method):
    """dtx.start: class 100, method 20, to the server, synchronous. Answered by dtx.start-ok."""

    NAME: ClassVar[str] = "dtx.start"
    CLASS_ID: ClassVar[int] = 100
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x00640014
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x00640015,)
    EXTENSION: ClassVar[str] = ""

    dtx_identifier: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x64\x00\x14",
                put_shortstr(self.dtx_identifier),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        dtx_identifier, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(dtx_identifier)


@frozen(eq=False, repr=False)
class DtxStartOk(Method):
    """dtx.start-ok: class 100, method 21, to the client, synchronous."""

    NAME: ClassVar[str] = "dtx.start-ok"
    CLASS_ID: ClassVar[int] = 100
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x00640015
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x64\x00\x15"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class TunnelRequest(Method):
    """tunnel.request: class 110, method 10, to the server, asynchronous, carries content."""

    NAME: ClassVar[str] = "tunnel.request"
    CLASS_ID: ClassVar[int] = 110
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x006E000A
    CONTENT: ClassVar[bool] = True
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    meta_data: Table = EMPTY_TABLE

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x6e\x00\x0a",
                put_table(self.meta_data, dialect),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        meta_data, pos = get_table(buf, pos, end, dialect)
        if pos != end:
            raise cannot_decode()
        return cls(meta_data)


@frozen(eq=False, repr=False)
class TestInteger(Method):
    """test.integer: class 120, method 10, to the client or the server, synchronous. Answered by
    test.integer-ok.
    """

    NAME: ClassVar[str] = "test.integer"
    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0078000A
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x0078000B,)
    EXTENSION: ClassVar[str] = ""

    integer_1: int = 0
    integer_2: int = 0
    integer_3: int = 0
    integer_4: int = 0
    operation: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHBHIQB.pack(
            120,
            10,
            self.integer_1,
            self.integer_2,
            self.integer_3,
            self.integer_4,
            self.operation,
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 16 != end:
            raise cannot_decode()
        integer_1, integer_2, integer_3, integer_4, operation = _BHIQB.unpack_from(buf, pos)
        return cls(integer_1, integer_2, integer_3, integer_4, operation)


@frozen(eq=False, repr=False)
class TestIntegerOk(Method):
    """test.integer-ok: class 120, method 11, to the client or the server, synchronous."""

    NAME: ClassVar[str] = "test.integer-ok"
    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x0078000B
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    result: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHQ.pack(120, 11, self.result)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 8 != end:
            raise cannot_decode()
        result = _Q.unpack_from(buf, pos)[0]
        return cls(result)


@frozen(eq=False, repr=False)
class TestString(Method):
    """test.string: class 120, method 20, to the client or the server, synchronous. Answered by
    test.string-ok.
    """

    NAME: ClassVar[str] = "test.string"
    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x00780014
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x00780015,)
    EXTENSION: ClassVar[str] = ""

    string_1: str = ""
    string_2: bytes = b""
    operation: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x78\x00\x14",
                put_shortstr(self.string_1),
                put_longstr(self.string_2),
                _B.pack(self.operation),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        string_1, pos = get_shortstr(buf, pos, end)
        string_2, pos = get_longstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        operation = buf[pos]
        return cls(string_1, string_2, operation)


@frozen(eq=False, repr=False)
class TestStringOk(Method):
    """test.string-ok: class 120, method 21, to the client or the server, synchronous."""

    NAME: ClassVar[str] = "test.string-ok"
    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x00780015
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    result: bytes = b""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x78\x00\x15",
                put_longstr(self.result),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        result, pos = get_longstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(result)


@frozen(eq=False, repr=False)
class TestTable(Method):
    """test.table: class 120, method 30, to the client or the server, synchronous. Answered by
    test.table-ok.
    """

    NAME: ClassVar[str] = "test.table"
    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x0078001E
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x0078001F,)
    EXTENSION: ClassVar[str] = ""

    table: Table = EMPTY_TABLE
    integer_op: int = 0
    string_op: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x78\x00\x1e",
                put_table(self.table, dialect),
                _BB.pack(self.integer_op, self.string_op),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        table, pos = get_table(buf, pos, end, dialect)
        if pos + 2 != end:
            raise cannot_decode()
        integer_op, string_op = _BB.unpack_from(buf, pos)
        return cls(table, integer_op, string_op)


@frozen(eq=False, repr=False)
class TestTableOk(Method):
    """test.table-ok: class 120, method 31, to the client or the server, synchronous."""

    NAME: ClassVar[str] = "test.table-ok"
    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 31
    INDEX: ClassVar[int] = 0x0078001F
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    integer_result: int = 0
    string_result: bytes = b""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHQ.pack(120, 31, self.integer_result),
                put_longstr(self.string_result),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 8 > end:
            raise cannot_decode()
        integer_result = _Q.unpack_from(buf, pos)[0]
        pos += 8
        string_result, pos = get_longstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(integer_result, string_result)


@frozen(eq=False, repr=False)
class TestContent(Method):
    """test.content: class 120, method 40, to the client or the server, synchronous, carries content.
    Answered by test.content-ok.
    """

    NAME: ClassVar[str] = "test.content"
    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x00780028
    CONTENT: ClassVar[bool] = True
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x00780029,)
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x78\x00\x28"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class TestContentOk(Method):
    """test.content-ok: class 120, method 41, to the client or the server, synchronous, carries content.
    """

    NAME: ClassVar[str] = "test.content-ok"
    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 41
    INDEX: ClassVar[int] = 0x00780029
    CONTENT: ClassVar[bool] = True
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    content_checksum: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHI.pack(120, 41, self.content_checksum)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 4 != end:
            raise cannot_decode()
        content_checksum = _I.unpack_from(buf, pos)[0]
        return cls(content_checksum)


@frozen(eq=False, repr=False)
class BasicProperties(Properties):
    """Properties of class basic (60); None where absent. Section 4.2.6.1."""

    CLASS_ID: ClassVar[int] = 60

    content_type: str | None = None
    content_encoding: str | None = None
    headers: Table | None = None
    delivery_mode: int | None = None
    priority: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None
    message_id: str | None = None
    timestamp: int | None = None
    type: str | None = None
    user_id: str | None = None
    app_id: str | None = None
    cluster_id: str | None = None

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        flags = 0
        parts = [b""]
        if self.content_type is not None:
            flags |= 0x8000
            parts.append(put_shortstr(self.content_type))
        if self.content_encoding is not None:
            flags |= 0x4000
            parts.append(put_shortstr(self.content_encoding))
        if self.headers is not None:
            flags |= 0x2000
            parts.append(put_table(self.headers, dialect))
        if self.delivery_mode is not None:
            flags |= 0x1000
            parts.append(bytes((self.delivery_mode,)))
        if self.priority is not None:
            flags |= 0x0800
            parts.append(bytes((self.priority,)))
        if self.correlation_id is not None:
            flags |= 0x0400
            parts.append(put_shortstr(self.correlation_id))
        if self.reply_to is not None:
            flags |= 0x0200
            parts.append(put_shortstr(self.reply_to))
        if self.expiration is not None:
            flags |= 0x0100
            parts.append(put_shortstr(self.expiration))
        if self.message_id is not None:
            flags |= 0x0080
            parts.append(put_shortstr(self.message_id))
        if self.timestamp is not None:
            flags |= 0x0040
            parts.append(_Q.pack(self.timestamp))
        if self.type is not None:
            flags |= 0x0020
            parts.append(put_shortstr(self.type))
        if self.user_id is not None:
            flags |= 0x0010
            parts.append(put_shortstr(self.user_id))
        if self.app_id is not None:
            flags |= 0x0008
            parts.append(put_shortstr(self.app_id))
        if self.cluster_id is not None:
            flags |= 0x0004
            parts.append(put_shortstr(self.cluster_id))
        parts[0] = _FLAGS.pack(flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        flags = _FLAGS.unpack_from(buf, pos)[0]
        pos += 2
        if flags & 0x0003 and not dialect.ignores_flag_continuation:
            raise ProtocolViolation(501, "unknown property flags")
        content_type: str | None = None
        if flags & 0x8000:
            content_type, pos = get_shortstr_lenient(buf, pos, end)
        content_encoding: str | None = None
        if flags & 0x4000:
            content_encoding, pos = get_shortstr_lenient(buf, pos, end)
        headers: Table | None = None
        if flags & 0x2000:
            headers, pos = get_table(buf, pos, end, dialect)
        delivery_mode: int | None = None
        if flags & 0x1000:
            delivery_mode, pos = get_octet(buf, pos, end)
        priority: int | None = None
        if flags & 0x0800:
            priority, pos = get_octet(buf, pos, end)
        correlation_id: str | None = None
        if flags & 0x0400:
            correlation_id, pos = get_shortstr_lenient(buf, pos, end)
        reply_to: str | None = None
        if flags & 0x0200:
            reply_to, pos = get_shortstr_lenient(buf, pos, end)
        expiration: str | None = None
        if flags & 0x0100:
            expiration, pos = get_shortstr_lenient(buf, pos, end)
        message_id: str | None = None
        if flags & 0x0080:
            message_id, pos = get_shortstr_lenient(buf, pos, end)
        timestamp: int | None = None
        if flags & 0x0040:
            timestamp, pos = get_longlong(buf, pos, end)
        type: str | None = None
        if flags & 0x0020:
            type, pos = get_shortstr_lenient(buf, pos, end)
        user_id: str | None = None
        if flags & 0x0010:
            user_id, pos = get_shortstr_lenient(buf, pos, end)
        app_id: str | None = None
        if flags & 0x0008:
            app_id, pos = get_shortstr_lenient(buf, pos, end)
        cluster_id: str | None = None
        if flags & 0x0004:
            cluster_id, pos = get_shortstr_lenient(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(
            content_type,
            content_encoding,
            headers,
            delivery_mode,
            priority,
            correlation_id,
            reply_to,
            expiration,
            message_id,
            timestamp,
            type,
            user_id,
            app_id,
            cluster_id,
        )


@frozen(eq=False, repr=False)
class FileProperties(Properties):
    """Properties of class file (70); None where absent. Section 4.2.6.1."""

    CLASS_ID: ClassVar[int] = 70

    content_type: str | None = None
    content_encoding: str | None = None
    headers: Table | None = None
    priority: int | None = None
    reply_to: str | None = None
    message_id: str | None = None
    filename: str | None = None
    timestamp: int | None = None
    cluster_id: str | None = None

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        flags = 0
        parts = [b""]
        if self.content_type is not None:
            flags |= 0x8000
            parts.append(put_shortstr(self.content_type))
        if self.content_encoding is not None:
            flags |= 0x4000
            parts.append(put_shortstr(self.content_encoding))
        if self.headers is not None:
            flags |= 0x2000
            parts.append(put_table(self.headers, dialect))
        if self.priority is not None:
            flags |= 0x1000
            parts.append(bytes((self.priority,)))
        if self.reply_to is not None:
            flags |= 0x0800
            parts.append(put_shortstr(self.reply_to))
        if self.message_id is not None:
            flags |= 0x0400
            parts.append(put_shortstr(self.message_id))
        if self.filename is not None:
            flags |= 0x0200
            parts.append(put_shortstr(self.filename))
        if self.timestamp is not None:
            flags |= 0x0100
            parts.append(_Q.pack(self.timestamp))
        if self.cluster_id is not None:
            flags |= 0x0080
            parts.append(put_shortstr(self.cluster_id))
        parts[0] = _FLAGS.pack(flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        flags = _FLAGS.unpack_from(buf, pos)[0]
        pos += 2
        if flags & 0x007F and not dialect.ignores_flag_continuation:
            raise ProtocolViolation(501, "unknown property flags")
        content_type: str | None = None
        if flags & 0x8000:
            content_type, pos = get_shortstr_lenient(buf, pos, end)
        content_encoding: str | None = None
        if flags & 0x4000:
            content_encoding, pos = get_shortstr_lenient(buf, pos, end)
        headers: Table | None = None
        if flags & 0x2000:
            headers, pos = get_table(buf, pos, end, dialect)
        priority: int | None = None
        if flags & 0x1000:
            priority, pos = get_octet(buf, pos, end)
        reply_to: str | None = None
        if flags & 0x0800:
            reply_to, pos = get_shortstr_lenient(buf, pos, end)
        message_id: str | None = None
        if flags & 0x0400:
            message_id, pos = get_shortstr_lenient(buf, pos, end)
        filename: str | None = None
        if flags & 0x0200:
            filename, pos = get_shortstr_lenient(buf, pos, end)
        timestamp: int | None = None
        if flags & 0x0100:
            timestamp, pos = get_longlong(buf, pos, end)
        cluster_id: str | None = None
        if flags & 0x0080:
            cluster_id, pos = get_shortstr_lenient(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(
            content_type,
            content_encoding,
            headers,
            priority,
            reply_to,
            message_id,
            filename,
            timestamp,
            cluster_id,
        )


@frozen(eq=False, repr=False)
class StreamProperties(Properties):
    """Properties of class stream (80); None where absent. Section 4.2.6.1."""

    CLASS_ID: ClassVar[int] = 80

    content_type: str | None = None
    content_encoding: str | None = None
    headers: Table | None = None
    priority: int | None = None
    timestamp: int | None = None

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        flags = 0
        parts = [b""]
        if self.content_type is not None:
            flags |= 0x8000
            parts.append(put_shortstr(self.content_type))
        if self.content_encoding is not None:
            flags |= 0x4000
            parts.append(put_shortstr(self.content_encoding))
        if self.headers is not None:
            flags |= 0x2000
            parts.append(put_table(self.headers, dialect))
        if self.priority is not None:
            flags |= 0x1000
            parts.append(bytes((self.priority,)))
        if self.timestamp is not None:
            flags |= 0x0800
            parts.append(_Q.pack(self.timestamp))
        parts[0] = _FLAGS.pack(flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        flags = _FLAGS.unpack_from(buf, pos)[0]
        pos += 2
        if flags & 0x07FF and not dialect.ignores_flag_continuation:
            raise ProtocolViolation(501, "unknown property flags")
        content_type: str | None = None
        if flags & 0x8000:
            content_type, pos = get_shortstr_lenient(buf, pos, end)
        content_encoding: str | None = None
        if flags & 0x4000:
            content_encoding, pos = get_shortstr_lenient(buf, pos, end)
        headers: Table | None = None
        if flags & 0x2000:
            headers, pos = get_table(buf, pos, end, dialect)
        priority: int | None = None
        if flags & 0x1000:
            priority, pos = get_octet(buf, pos, end)
        timestamp: int | None = None
        if flags & 0x0800:
            timestamp, pos = get_longlong(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(content_type, content_encoding, headers, priority, timestamp)


@frozen(eq=False, repr=False)
class TunnelProperties(Properties):
    """Properties of class tunnel (110); None where absent. Section 4.2.6.1."""

    CLASS_ID: ClassVar[int] = 110

    headers: Table | None = None
    proxy_name: str | None = None
    data_name: str | None = None
    durable: int | None = None
    broadcast: int | None = None

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        flags = 0
        parts = [b""]
        if self.headers is not None:
            flags |= 0x8000
            parts.append(put_table(self.headers, dialect))
        if self.proxy_name is not None:
            flags |= 0x4000
            parts.append(put_shortstr(self.proxy_name))
        if self.data_name is not None:
            flags |= 0x2000
            parts.append(put_shortstr(self.data_name))
        if self.durable is not None:
            flags |= 0x1000
            parts.append(bytes((self.durable,)))
        if self.broadcast is not None:
            flags |= 0x0800
            parts.append(bytes((self.broadcast,)))
        parts[0] = _FLAGS.pack(flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        flags = _FLAGS.unpack_from(buf, pos)[0]
        pos += 2
        if flags & 0x07FF and not dialect.ignores_flag_continuation:
            raise ProtocolViolation(501, "unknown property flags")
        headers: Table | None = None
        if flags & 0x8000:
            headers, pos = get_table(buf, pos, end, dialect)
        proxy_name: str | None = None
        if flags & 0x4000:
            proxy_name, pos = get_shortstr_lenient(buf, pos, end)
        data_name: str | None = None
        if flags & 0x2000:
            data_name, pos = get_shortstr_lenient(buf, pos, end)
        durable: int | None = None
        if flags & 0x1000:
            durable, pos = get_octet(buf, pos, end)
        broadcast: int | None = None
        if flags & 0x0800:
            broadcast, pos = get_octet(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(headers, proxy_name, data_name, durable, broadcast)


@frozen(eq=False, repr=False)
class TestProperties(Properties):
    """Properties of class test (120); None where absent. Section 4.2.6.1."""

    CLASS_ID: ClassVar[int] = 120

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x00"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        flags = _FLAGS.unpack_from(buf, pos)[0]
        pos += 2
        if flags & 0xFFFF and not dialect.ignores_flag_continuation:
            raise ProtocolViolation(501, "unknown property flags")
        if pos != end:
            raise cannot_decode()
        return cls()


#: Every method by INDEX.
METHODS: Final[dict[int, type[Method]]] = {
    0x000A000A: ConnectionStart,
    0x000A000B: ConnectionStartOk,
    0x000A0014: ConnectionSecure,
    0x000A0015: ConnectionSecureOk,
    0x000A001E: ConnectionTune,
    0x000A001F: ConnectionTuneOk,
    0x000A0028: ConnectionOpen,
    0x000A0029: ConnectionOpenOk,
    0x000A0032: ConnectionRedirect,
    0x000A003C: ConnectionClose,
    0x000A003D: ConnectionCloseOk,
    0x0014000A: ChannelOpen,
    0x0014000B: ChannelOpenOk,
    0x00140014: ChannelFlow,
    0x00140015: ChannelFlowOk,
    0x0014001E: ChannelAlert,
    0x00140028: ChannelClose,
    0x00140029: ChannelCloseOk,
    0x001E000A: AccessRequest,
    0x001E000B: AccessRequestOk,
    0x0028000A: ExchangeDeclare,
    0x0028000B: ExchangeDeclareOk,
    0x00280014: ExchangeDelete,
    0x00280015: ExchangeDeleteOk,
    0x00280016: ExchangeBound,
    0x00280017: ExchangeBoundOk,
    0x0032000A: QueueDeclare,
    0x0032000B: QueueDeclareOk,
    0x00320014: QueueBind,
    0x00320015: QueueBindOk,
    0x0032001E: QueuePurge,
    0x0032001F: QueuePurgeOk,
    0x00320028: QueueDelete,
    0x00320029: QueueDeleteOk,
    0x00320032: QueueUnbind,
    0x00320033: QueueUnbindOk,
    0x003C000A: BasicQos,
    0x003C000B: BasicQosOk,
    0x003C0014: BasicConsume,
    0x003C0015: BasicConsumeOk,
    0x003C001E: BasicCancel,
    0x003C001F: BasicCancelOk,
    0x003C0028: BasicPublish,
    0x003C0032: BasicReturn,
    0x003C003C: BasicDeliver,
    0x003C0046: BasicGet,
    0x003C0047: BasicGetOk,
    0x003C0048: BasicGetEmpty,
    0x003C0050: BasicAck,
    0x003C005A: BasicReject,
    0x003C0064: BasicRecoverAsync,
    0x003C0065: BasicRecoverSyncOk,
    0x003C006E: BasicRecover,
    0x003C006F: BasicRecoverOk,
    0x0046000A: FileQos,
    0x0046000B: FileQosOk,
    0x00460014: FileConsume,
    0x00460015: FileConsumeOk,
    0x0046001E: FileCancel,
    0x0046001F: FileCancelOk,
    0x00460028: FileOpen,
    0x00460029: FileOpenOk,
    0x00460032: FileStage,
    0x0046003C: FilePublish,
    0x00460046: FileReturn,
    0x00460050: FileDeliver,
    0x0046005A: FileAck,
    0x00460064: FileReject,
    0x0050000A: StreamQos,
    0x0050000B: StreamQosOk,
    0x00500014: StreamConsume,
    0x00500015: StreamConsumeOk,
    0x0050001E: StreamCancel,
    0x0050001F: StreamCancelOk,
    0x00500028: StreamPublish,
    0x00500032: StreamReturn,
    0x0050003C: StreamDeliver,
    0x005A000A: TxSelect,
    0x005A000B: TxSelectOk,
    0x005A0014: TxCommit,
    0x005A0015: TxCommitOk,
    0x005A001E: TxRollback,
    0x005A001F: TxRollbackOk,
    0x0064000A: DtxSelect,
    0x0064000B: DtxSelectOk,
    0x00640014: DtxStart,
    0x00640015: DtxStartOk,
    0x006E000A: TunnelRequest,
    0x0078000A: TestInteger,
    0x0078000B: TestIntegerOk,
    0x00780014: TestString,
    0x00780015: TestStringOk,
    0x0078001E: TestTable,
    0x0078001F: TestTableOk,
    0x00780028: TestContent,
    0x00780029: TestContentOk,
}

#: Properties by class id.
PROPERTIES: Final[dict[int, type[Properties]]] = {
    60: BasicProperties,
    70: FileProperties,
    80: StreamProperties,
    110: TunnelProperties,
    120: TestProperties,
}

#: Errors by code.
REPLY_CODES: Final[dict[int, ReplyCode]] = {
    310: ReplyCode(310, "not-delivered", "channel"),
    311: ReplyCode(311, "content-too-large", "channel"),
    312: ReplyCode(312, "no-route", "channel"),
    313: ReplyCode(313, "no-consumers", "channel"),
    320: ReplyCode(320, "connection-forced", "connection"),
    402: ReplyCode(402, "invalid-path", "connection"),
    403: ReplyCode(403, "access-refused", "channel"),
    404: ReplyCode(404, "not-found", "channel"),
    405: ReplyCode(405, "resource-locked", "channel"),
    406: ReplyCode(406, "precondition-failed", "channel"),
    501: ReplyCode(501, "frame-error", "connection"),
    502: ReplyCode(502, "syntax-error", "connection"),
    503: ReplyCode(503, "command-invalid", "connection"),
    504: ReplyCode(504, "channel-error", "connection"),
    505: ReplyCode(505, "unexpected-frame", "connection"),
    506: ReplyCode(506, "resource-error", "connection"),
    530: ReplyCode(530, "not-allowed", "connection"),
    540: ReplyCode(540, "not-implemented", "connection"),
    541: ReplyCode(541, "internal-error", "connection"),
}
