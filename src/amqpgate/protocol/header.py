"""The protocol header: the first eight bytes of a connection (AMQP 0-9-1, section 4.2.2).

=================== ======================= ==========================================
sent                dialect                 note
=================== ======================= ==========================================
``AMQP 00 00 09 01`` 0-9-1
``AMQP 01 01 00 09`` 0-9-1 (RabbitMQ)       real 0-9 clients send it too, and the answer is 0-9
``AMQP 01 01 08 00`` 0-8
``AMQP 01 01 09 01`` 0-8                    python-amqplib, whose methods are 0-8
anything else       refused                 answered with the header that we prefer
=================== ======================= ==========================================
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from amqpgate.wire.dialects import (
    HEADER_0_8,
    HEADER_0_9,
    HEADER_0_9_1,
    RABBITMQ_0_8,
    RABBITMQ_0_9_1,
    Dialect,
)

HEADER_SIZE: Final = 8

#: Every protocol header starts with this.
HEADER_MAGIC: Final = b"AMQP"

#: What python-amqplib sends: 0-9-1's numbers in 0-8's places.
HEADER_0_8_AMQPLIB: Final = b"AMQP\x01\x01\x09\x01"
#: What some brokers of 0-9 answer: 0-9-1's order with no revision.
HEADER_0_9_PLAIN: Final = b"AMQP\x00\x00\x09\x00"
HEADER_0_10: Final = b"AMQP\x01\x01\x00\x0a"
HEADER_1_0: Final = b"AMQP\x00\x01\x00\x00"
HEADER_1_0_SASL: Final = b"AMQP\x03\x01\x00\x00"

#: What a header that is not accepted is answered with, before the socket is closed.
REFUSAL: Final = HEADER_0_9_1

#: Which dialect RabbitMQ 3.10.8 speaks after each header (run against it).
RABBITMQ_HEADERS: Final[Mapping[bytes, Dialect]] = MappingProxyType(
    {
        HEADER_0_9_1: RABBITMQ_0_9_1,
        HEADER_0_9: RABBITMQ_0_9_1,
        HEADER_0_8: RABBITMQ_0_8,
        HEADER_0_8_AMQPLIB: RABBITMQ_0_8,
    }
)

#: What else comes where a protocol header is due: beginnings, and what they are.
_STRANGERS: Final = (
    (b"\x16\x03", "TLS"),
    (b"PROXY ", "a PROXY header"),
    (b"\r\n\r\n\0\r\nQ", "a PROXY header"),
    *((f"{verb} ".encode(), "HTTP") for verb in ("GET", "PUT", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS")),
)


def name_of(data: bytes) -> str:
    """For people, what eight bytes are: ``AMQP 1-1-0-10``, ``HTTP``. Others are not shown."""
    if data.startswith(HEADER_MAGIC):
        return "AMQP " + "-".join(map(str, data[len(HEADER_MAGIC) :]))
    return next((name for start, name in _STRANGERS if data.startswith(start)), f"{len(data)} bytes")
