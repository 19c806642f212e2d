"""What the canonical model has besides AMQP 0-9-1: the methods that older versions have and it lacks.

They are values to decide on, and have no bytes of their own: an interpreter whose version knows them writes
them as that version does. Only a redirect has, for a translator may have one to say. Fields are in the order
of the specifications. Methods of whole classes that 0-9-1 lacks (file, stream, dtx, tunnel, test, message)
are not here: they stay what their version's module makes of them, and another version has them if it has a
method of that name.
"""

from __future__ import annotations

from struct import Struct
from typing import ClassVar, Final, Self

from amqpgate.values import frozen
from amqpgate.wire.dialects import RABBITMQ_0_9_1, Dialect
from amqpgate.wire.method import Method
from amqpgate.wire.primitives import Buffer, get_shortstr, put_shortstr
from amqpgate.wire.tables import EMPTY_TABLE, Table

_INDEX: Final = Struct(">I")


class _Extra(Method):
    """Ids are those of 0-9 where it has the method: no method of 0-9-1 has them."""

    __slots__ = ()

    CONTENT: ClassVar[bool] = False
    SYNC: ClassVar[bool] = False
    REPLIES: ClassVar[tuple[int, ...]] = ()
    EXTENSION: ClassVar[str] = ""


@frozen
class ConnectionRedirect(_Extra):
    """0-8: 10,50; 0-9: 10,42. In answer to connection.open: try another host ("name:port" each)."""

    NAME: ClassVar[str] = "connection.redirect"
    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 42
    INDEX: ClassVar[int] = 0x000A002A

    host: str = ""
    known_hosts: str = ""

    def encode(self, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
        """As 0-9 writes it."""
        return _INDEX.pack(self.INDEX) + put_shortstr(self.host) + put_shortstr(self.known_hosts)

    @classmethod
    def decode(cls, buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> Self:
        host, pos = get_shortstr(buf, pos, end)
        known_hosts, _ = get_shortstr(buf, pos, end)
        return cls(host, known_hosts)


@frozen
class ChannelAlert(_Extra):
    """0-8 only: the server warns, nothing is asked."""

    NAME: ClassVar[str] = "channel.alert"
    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x0014001E

    reply_code: int = 0
    reply_text: str = ""
    details: Table = EMPTY_TABLE


@frozen
class ChannelResume(_Extra):
    """0-9 only: the client goes on with a channel that another connection had."""

    NAME: ClassVar[str] = "channel.resume"
    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 50
    INDEX: ClassVar[int] = 0x00140032
    SYNC: ClassVar[bool] = True

    channel_id: bytes = b""


@frozen
class ChannelPing(_Extra):
    """0-9 only: either side asks for a pong."""

    NAME: ClassVar[str] = "channel.ping"
    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 60
    INDEX: ClassVar[int] = 0x0014003C


@frozen
class ChannelPong(_Extra):
    """0-9 only: the answer to a ping, and answered with ok."""

    NAME: ClassVar[str] = "channel.pong"
    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 70
    INDEX: ClassVar[int] = 0x00140046


@frozen
class ChannelOk(_Extra):
    """0-9 only: the answer to a pong or a resume."""

    NAME: ClassVar[str] = "channel.ok"
    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 80
    INDEX: ClassVar[int] = 0x00140050
