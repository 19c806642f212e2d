# DO NOT EDIT. Made by `python -m amqpgate.codegen` from spec/amqp:
#   amqp0-9-1.extended.xml
#   rabbitmq-0-9-1.overlay.xml
#   qpid-0-9-1.overlay.xml
#   content-methods.overlay.xml
"""AMQP 0-9-1: methods, properties and constants (see ``wire.method`` for what they
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
_IB: Final = Struct(">IB")
_II: Final = Struct(">II")
_QB: Final = Struct(">QB")
_HHB: Final = Struct(">HHB")
_HHH: Final = Struct(">HHH")
_HHI: Final = Struct(">HHI")
_HIH: Final = Struct(">HIH")
_IHB: Final = Struct(">IHB")
_HHBB: Final = Struct(">HHBB")
_HHQB: Final = Struct(">HHQB")
_HHHIH: Final = Struct(">HHHIH")
_HHIHB: Final = Struct(">HHIHB")

PROTOCOL_HEADER: Final = b'AMQP\x00\x00\t\x01'

FRAME_METHOD: Final = 1
FRAME_HEADER: Final = 2
FRAME_BODY: Final = 3
FRAME_HEARTBEAT: Final = 8
REPLY_SUCCESS: Final = 200
FRAME_END: Final = 206
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
    """connection.open: class 10, method 40, to the server, synchronous. Answered by connection.open-ok.
    """

    NAME: ClassVar[str] = "connection.open"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x000A0028
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x000A0029,)
    EXTENSION: ClassVar[str] = ""

    virtual_host: str = ""
    reserved_1: str = ""
    reserved_2: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x0a\x00\x28",
                put_shortstr(self.virtual_host),
                put_shortstr(self.reserved_1),
                _B.pack(self.reserved_2),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        virtual_host, pos = get_shortstr(buf, pos, end)
        reserved_1, pos = get_shortstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(virtual_host, reserved_1, bits & 1 != 0)


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

    reserved_1: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x0a\x00\x29",
                put_shortstr(self.reserved_1),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        reserved_1, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(reserved_1)


@frozen(eq=False, repr=False)
class ConnectionClose(Method):
    """connection.close: class 10, method 50, to the client or the server, synchronous. Answered by
    connection.close-ok. Short strings may be any bytes.
    """

    NAME: ClassVar[str] = "connection.close"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 50
    INDEX: ClassVar[int] = 0x000A0032
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x000A0033,)
    EXTENSION: ClassVar[str] = ""

    reply_code: int = 0
    reply_text: str = ""
    class_id: int = 0
    method_id: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(10, 50, self.reply_code),
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
    """connection.close-ok: class 10, method 51, to the client or the server, synchronous."""

    NAME: ClassVar[str] = "connection.close-ok"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 51
    INDEX: ClassVar[int] = 0x000A0033
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x0a\x00\x33"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class ConnectionBlocked(Method):
    """connection.blocked: class 10, method 60, to the client, asynchronous. Overlay: RabbitMQ
    documentation, Blocked Connection Notifications.
    """

    NAME: ClassVar[str] = "connection.blocked"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 60
    INDEX: ClassVar[int] = 0x000A003C
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = "rabbitmq"

    reason: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x0a\x00\x3c",
                put_shortstr(self.reason),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        reason, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(reason)


@frozen(eq=False, repr=False)
class ConnectionUnblocked(Method):
    """connection.unblocked: class 10, method 61, to the client, asynchronous. Overlay: RabbitMQ
    documentation, Blocked Connection Notifications.
    """

    NAME: ClassVar[str] = "connection.unblocked"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 61
    INDEX: ClassVar[int] = 0x000A003D
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = "rabbitmq"

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x0a\x00\x3d"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class ConnectionUpdateSecret(Method):
    """connection.update-secret: class 10, method 70, to the server, synchronous. Answered by
    connection.update-secret-ok. Overlay: RabbitMQ documentation, OAuth 2 token renewal.
    """

    NAME: ClassVar[str] = "connection.update-secret"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 70
    INDEX: ClassVar[int] = 0x000A0046
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x000A0047,)
    EXTENSION: ClassVar[str] = "rabbitmq"

    new_secret: bytes = field(default=b"", repr=False)
    reason: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x0a\x00\x46",
                put_longstr(self.new_secret),
                put_shortstr(self.reason),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        new_secret, pos = get_longstr(buf, pos, end)
        reason, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(new_secret, reason)


@frozen(eq=False, repr=False)
class ConnectionUpdateSecretOk(Method):
    """connection.update-secret-ok: class 10, method 71, to the client, synchronous. Overlay: RabbitMQ
    documentation, OAuth 2 token renewal.
    """

    NAME: ClassVar[str] = "connection.update-secret-ok"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 71
    INDEX: ClassVar[int] = 0x000A0047
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = "rabbitmq"

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x0a\x00\x47"

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

    reserved_1: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x14\x00\x0a",
                put_shortstr(self.reserved_1),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        reserved_1, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(reserved_1)


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

    reserved_1: bytes = b""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x14\x00\x0b",
                put_longstr(self.reserved_1),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        reserved_1, pos = get_longstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(reserved_1)


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
    """access.request: class 30, method 10, to the server, synchronous. Answered by access.request-ok.
    Overlay: RabbitMQ keeps the 0-8 class for old clients; every answer is ticket 1.
    """

    NAME: ClassVar[str] = "access.request"
    CLASS_ID: ClassVar[int] = 30
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x001E000A
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x001E000B,)
    EXTENSION: ClassVar[str] = "rabbitmq"

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
    """access.request-ok: class 30, method 11, to the client, synchronous. Overlay: RabbitMQ keeps the
    0-8 class for old clients; every answer is ticket 1.
    """

    NAME: ClassVar[str] = "access.request-ok"
    CLASS_ID: ClassVar[int] = 30
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x001E000B
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = "rabbitmq"

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

    reserved_1: int = 0
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
                _HHH.pack(40, 10, self.reserved_1),
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
        reserved_1 = _H.unpack_from(buf, pos)[0]
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
            reserved_1,
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

    reserved_1: int = 0
    exchange: str = ""
    if_unused: bool = False
    no_wait: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(40, 20, self.reserved_1),
                put_shortstr(self.exchange),
                _B.pack(self.if_unused | self.no_wait << 1),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        reserved_1 = _H.unpack_from(buf, pos)[0]
        pos += 2
        exchange, pos = get_shortstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(reserved_1, exchange, bits & 1 != 0, bits & 2 != 0)


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
class ExchangeBind(Method):
    """exchange.bind: class 40, method 30, to the server, synchronous. Answered by exchange.bind-ok."""

    NAME: ClassVar[str] = "exchange.bind"
    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x0028001E
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x0028001F,)
    EXTENSION: ClassVar[str] = ""

    reserved_1: int = 0
    destination: str = ""
    source: str = ""
    routing_key: str = ""
    no_wait: bool = False
    arguments: Table = EMPTY_TABLE

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(40, 30, self.reserved_1),
                put_shortstr(self.destination),
                put_shortstr(self.source),
                put_shortstr(self.routing_key),
                _B.pack(self.no_wait),
                put_table(self.arguments, dialect),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        reserved_1 = _H.unpack_from(buf, pos)[0]
        pos += 2
        destination, pos = get_shortstr(buf, pos, end)
        source, pos = get_shortstr(buf, pos, end)
        routing_key, pos = get_shortstr(buf, pos, end)
        if pos + 1 > end:
            raise cannot_decode()
        bits = buf[pos]
        pos += 1
        arguments, pos = get_table(buf, pos, end, dialect)
        if pos != end:
            raise cannot_decode()
        return cls(reserved_1, destination, source, routing_key, bits & 1 != 0, arguments)


@frozen(eq=False, repr=False)
class ExchangeBindOk(Method):
    """exchange.bind-ok: class 40, method 31, to the client, synchronous."""

    NAME: ClassVar[str] = "exchange.bind-ok"
    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 31
    INDEX: ClassVar[int] = 0x0028001F
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x28\x00\x1f"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class ExchangeUnbind(Method):
    """exchange.unbind: class 40, method 40, to the server, synchronous. Answered by exchange.unbind-ok.
    """

    NAME: ClassVar[str] = "exchange.unbind"
    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x00280028
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x00280033,)
    EXTENSION: ClassVar[str] = ""

    reserved_1: int = 0
    destination: str = ""
    source: str = ""
    routing_key: str = ""
    no_wait: bool = False
    arguments: Table = EMPTY_TABLE

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(40, 40, self.reserved_1),
                put_shortstr(self.destination),
                put_shortstr(self.source),
                put_shortstr(self.routing_key),
                _B.pack(self.no_wait),
                put_table(self.arguments, dialect),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        reserved_1 = _H.unpack_from(buf, pos)[0]
        pos += 2
        destination, pos = get_shortstr(buf, pos, end)
        source, pos = get_shortstr(buf, pos, end)
        routing_key, pos = get_shortstr(buf, pos, end)
        if pos + 1 > end:
            raise cannot_decode()
        bits = buf[pos]
        pos += 1
        arguments, pos = get_table(buf, pos, end, dialect)
        if pos != end:
            raise cannot_decode()
        return cls(reserved_1, destination, source, routing_key, bits & 1 != 0, arguments)


@frozen(eq=False, repr=False)
class ExchangeUnbindOk(Method):
    """exchange.unbind-ok: class 40, method 51, to the client, synchronous. Overlay: RabbitMQ sends 40,51
    as the extended file has it; 40,41 would follow the pattern.
    """

    NAME: ClassVar[str] = "exchange.unbind-ok"
    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 51
    INDEX: ClassVar[int] = 0x00280033
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x28\x00\x33"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


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

    reserved_1: int = 0
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
                _HHH.pack(50, 10, self.reserved_1),
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
        reserved_1 = _H.unpack_from(buf, pos)[0]
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
            reserved_1,
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

    reserved_1: int = 0
    queue: str = ""
    exchange: str = ""
    routing_key: str = ""
    no_wait: bool = False
    arguments: Table = EMPTY_TABLE

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(50, 20, self.reserved_1),
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
        reserved_1 = _H.unpack_from(buf, pos)[0]
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
        return cls(reserved_1, queue, exchange, routing_key, bits & 1 != 0, arguments)


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

    reserved_1: int = 0
    queue: str = ""
    no_wait: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(50, 30, self.reserved_1),
                put_shortstr(self.queue),
                _B.pack(self.no_wait),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        reserved_1 = _H.unpack_from(buf, pos)[0]
        pos += 2
        queue, pos = get_shortstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(reserved_1, queue, bits & 1 != 0)


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

    reserved_1: int = 0
    queue: str = ""
    if_unused: bool = False
    if_empty: bool = False
    no_wait: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(50, 40, self.reserved_1),
                put_shortstr(self.queue),
                _B.pack(self.if_unused | self.if_empty << 1 | self.no_wait << 2),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        reserved_1 = _H.unpack_from(buf, pos)[0]
        pos += 2
        queue, pos = get_shortstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(reserved_1, queue, bits & 1 != 0, bits & 2 != 0, bits & 4 != 0)


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
    """queue.unbind: class 50, method 50, to the server, synchronous. Answered by queue.unbind-ok."""

    NAME: ClassVar[str] = "queue.unbind"
    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 50
    INDEX: ClassVar[int] = 0x00320032
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x00320033,)
    EXTENSION: ClassVar[str] = ""

    reserved_1: int = 0
    queue: str = ""
    exchange: str = ""
    routing_key: str = ""
    arguments: Table = EMPTY_TABLE

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(50, 50, self.reserved_1),
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
        reserved_1 = _H.unpack_from(buf, pos)[0]
        pos += 2
        queue, pos = get_shortstr(buf, pos, end)
        exchange, pos = get_shortstr(buf, pos, end)
        routing_key, pos = get_shortstr(buf, pos, end)
        arguments, pos = get_table(buf, pos, end, dialect)
        if pos != end:
            raise cannot_decode()
        return cls(reserved_1, queue, exchange, routing_key, arguments)


@frozen(eq=False, repr=False)
class QueueUnbindOk(Method):
    """queue.unbind-ok: class 50, method 51, to the client, synchronous."""

    NAME: ClassVar[str] = "queue.unbind-ok"
    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 51
    INDEX: ClassVar[int] = 0x00320033
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

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
    """basic.consume: class 60, method 20, to the server, synchronous. Answered by basic.consume-ok."""

    NAME: ClassVar[str] = "basic.consume"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x003C0014
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x003C0015,)
    EXTENSION: ClassVar[str] = ""

    reserved_1: int = 0
    queue: str = ""
    consumer_tag: str = ""
    no_local: bool = False
    no_ack: bool = False
    exclusive: bool = False
    no_wait: bool = False
    arguments: Table = EMPTY_TABLE

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(60, 20, self.reserved_1),
                put_shortstr(self.queue),
                put_shortstr(self.consumer_tag),
                _B.pack(self.no_local | self.no_ack << 1 | self.exclusive << 2 | self.no_wait << 3),
                put_table(self.arguments, dialect),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        reserved_1 = _H.unpack_from(buf, pos)[0]
        pos += 2
        queue, pos = get_shortstr(buf, pos, end)
        consumer_tag, pos = get_shortstr(buf, pos, end)
        if pos + 1 > end:
            raise cannot_decode()
        bits = buf[pos]
        pos += 1
        arguments, pos = get_table(buf, pos, end, dialect)
        if pos != end:
            raise cannot_decode()
        return cls(
            reserved_1,
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
    """basic.cancel: class 60, method 30, to the server or the client, synchronous. Answered by
    basic.cancel-ok.
    """

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
    """basic.cancel-ok: class 60, method 31, to the client or the server, synchronous."""

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

    reserved_1: int = 0
    exchange: str = ""
    routing_key: str = ""
    mandatory: bool = False
    immediate: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(60, 40, self.reserved_1),
                put_shortstr(self.exchange),
                put_shortstr(self.routing_key),
                _B.pack(self.mandatory | self.immediate << 1),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        reserved_1 = _H.unpack_from(buf, pos)[0]
        pos += 2
        exchange, pos = get_shortstr_lenient(buf, pos, end)
        routing_key, pos = get_shortstr_lenient(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(reserved_1, exchange, routing_key, bits & 1 != 0, bits & 2 != 0)


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

    reserved_1: int = 0
    queue: str = ""
    no_ack: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                _HHH.pack(60, 70, self.reserved_1),
                put_shortstr(self.queue),
                _B.pack(self.no_ack),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 2 > end:
            raise cannot_decode()
        reserved_1 = _H.unpack_from(buf, pos)[0]
        pos += 2
        queue, pos = get_shortstr(buf, pos, end)
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(reserved_1, queue, bits & 1 != 0)


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

    reserved_1: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x3c\x00\x48",
                put_shortstr(self.reserved_1),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        reserved_1, pos = get_shortstr(buf, pos, end)
        if pos != end:
            raise cannot_decode()
        return cls(reserved_1)


@frozen(eq=False, repr=False)
class BasicAck(Method):
    """basic.ack: class 60, method 80, to the server or the client, asynchronous."""

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
    """basic.recover-async: class 60, method 100, to the server, asynchronous."""

    NAME: ClassVar[str] = "basic.recover-async"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 100
    INDEX: ClassVar[int] = 0x003C0064
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
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
class BasicRecover(Method):
    """basic.recover: class 60, method 110, to the server, synchronous. Answered by basic.recover-ok.
    Overlay: AMQP 0-9-1 specification: recover asks for recover-ok; the extended file omits it.
    """

    NAME: ClassVar[str] = "basic.recover"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 110
    INDEX: ClassVar[int] = 0x003C006E
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x003C006F,)
    EXTENSION: ClassVar[str] = ""

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
    """basic.recover-ok: class 60, method 111, to the client, synchronous."""

    NAME: ClassVar[str] = "basic.recover-ok"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 111
    INDEX: ClassVar[int] = 0x003C006F
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x3c\x00\x6f"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


@frozen(eq=False, repr=False)
class BasicNack(Method):
    """basic.nack: class 60, method 120, to the server or the client, asynchronous."""

    NAME: ClassVar[str] = "basic.nack"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 120
    INDEX: ClassVar[int] = 0x003C0078
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    delivery_tag: int = 0
    multiple: bool = False
    requeue: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHQB.pack(60, 120, self.delivery_tag, self.multiple | self.requeue << 1)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 9 != end:
            raise cannot_decode()
        delivery_tag, bits = _QB.unpack_from(buf, pos)
        return cls(delivery_tag, bits & 1 != 0, bits & 2 != 0)


@frozen(eq=False, repr=False)
class BasicCredit(Method):
    """basic.credit: class 60, method 200, to the server, synchronous. Answered by basic.credit-ok.
    Overlay: RabbitMQ credit extension; for the broker's own plug-ins, not announced to clients.
    """

    NAME: ClassVar[str] = "basic.credit"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 200
    INDEX: ClassVar[int] = 0x003C00C8
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x003C00C9,)
    EXTENSION: ClassVar[str] = "rabbitmq"

    consumer_tag: str = ""
    credit: int = 0
    drain: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x3c\x00\xc8",
                put_shortstr(self.consumer_tag),
                _IB.pack(self.credit, self.drain),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        consumer_tag, pos = get_shortstr(buf, pos, end)
        if pos + 5 != end:
            raise cannot_decode()
        credit, bits = _IB.unpack_from(buf, pos)
        return cls(consumer_tag, credit, bits & 1 != 0)


@frozen(eq=False, repr=False)
class BasicCreditOk(Method):
    """basic.credit-ok: class 60, method 201, to the client, synchronous. Overlay: RabbitMQ credit
    extension.
    """

    NAME: ClassVar[str] = "basic.credit-ok"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 201
    INDEX: ClassVar[int] = 0x003C00C9
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = "rabbitmq"

    available: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHI.pack(60, 201, self.available)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 4 != end:
            raise cannot_decode()
        available = _I.unpack_from(buf, pos)[0]
        return cls(available)


@frozen(eq=False, repr=False)
class BasicCreditDrained(Method):
    """basic.credit-drained: class 60, method 202, to the client, asynchronous. Overlay: RabbitMQ credit
    extension.
    """

    NAME: ClassVar[str] = "basic.credit-drained"
    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 202
    INDEX: ClassVar[int] = 0x003C00CA
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = "rabbitmq"

    consumer_tag: str = ""
    credit_drained: int = 0

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"".join(
            (
                b"\x00\x3c\x00\xca",
                put_shortstr(self.consumer_tag),
                _I.pack(self.credit_drained),
            )
        )

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        consumer_tag, pos = get_shortstr(buf, pos, end)
        if pos + 4 != end:
            raise cannot_decode()
        credit_drained = _I.unpack_from(buf, pos)[0]
        return cls(consumer_tag, credit_drained)


@frozen(eq=False, repr=False)
class ConfirmSelect(Method):
    """confirm.select: class 85, method 10, to the server, synchronous. Answered by confirm.select-ok."""

    NAME: ClassVar[str] = "confirm.select"
    CLASS_ID: ClassVar[int] = 85
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0055000A
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = (0x0055000B,)
    EXTENSION: ClassVar[str] = ""

    no_wait: bool = False

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return _HHB.pack(85, 10, self.no_wait)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos + 1 != end:
            raise cannot_decode()
        bits = buf[pos]
        return cls(bits & 1 != 0)


@frozen(eq=False, repr=False)
class ConfirmSelectOk(Method):
    """confirm.select-ok: class 85, method 11, to the client, synchronous."""

    NAME: ClassVar[str] = "confirm.select-ok"
    CLASS_ID: ClassVar[int] = 85
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x0055000B
    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = True
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        return b"\x00\x55\x00\x0b"

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        if pos != end:
            raise cannot_decode()
        return cls()


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
    reserved: str | None = None

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
        if self.reserved is not None:
            flags |= 0x0004
            parts.append(put_shortstr(self.reserved))
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
        reserved: str | None = None
        if flags & 0x0004:
            reserved, pos = get_shortstr_lenient(buf, pos, end)
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
            reserved,
        )


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
    0x000A0032: ConnectionClose,
    0x000A0033: ConnectionCloseOk,
    0x000A003C: ConnectionBlocked,
    0x000A003D: ConnectionUnblocked,
    0x000A0046: ConnectionUpdateSecret,
    0x000A0047: ConnectionUpdateSecretOk,
    0x0014000A: ChannelOpen,
    0x0014000B: ChannelOpenOk,
    0x00140014: ChannelFlow,
    0x00140015: ChannelFlowOk,
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
    0x0028001E: ExchangeBind,
    0x0028001F: ExchangeBindOk,
    0x00280028: ExchangeUnbind,
    0x00280033: ExchangeUnbindOk,
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
    0x003C006E: BasicRecover,
    0x003C006F: BasicRecoverOk,
    0x003C0078: BasicNack,
    0x003C00C8: BasicCredit,
    0x003C00C9: BasicCreditOk,
    0x003C00CA: BasicCreditDrained,
    0x0055000A: ConfirmSelect,
    0x0055000B: ConfirmSelectOk,
    0x005A000A: TxSelect,
    0x005A000B: TxSelectOk,
    0x005A0014: TxCommit,
    0x005A0015: TxCommitOk,
    0x005A001E: TxRollback,
    0x005A001F: TxRollbackOk,
}

#: Properties by class id.
PROPERTIES: Final[dict[int, type[Properties]]] = {
    60: BasicProperties,
}

#: Errors by code.
REPLY_CODES: Final[dict[int, ReplyCode]] = {
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
