"""What a chaos message looks like: a name, a checksum, and properties that follow from the name.

A *lane* is a number of 32 bits: publisher, epoch (how often its channel began anew) and queue. Within a lane
messages are numbered from 0. So each copy of a message has a name of its own, and a queue its order.
"""

from __future__ import annotations

import functools
import random
import struct
import zlib

from amqpgate.protocol.frames import body_frames, encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, decode_header, encode_header
from amqpgate.wire.dialects import RABBITMQ_0_9_1, Dialect
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Properties
from amqpgate.wire.tables import Table

#: The queue number of messages that a policy denies.
DENIED = 255

_HEAD = struct.Struct(">III")
_SUM = struct.Struct(">I")
_NAME_LENGTH = 17

#: What brokers and gateways may add on the way.
MAY_BE_ADDED = frozenset({"x-delivery-count", "x-acquired-count", "traceparent", "tracestate"})


def lane_of(publisher: int, epoch: int, queue: int) -> int:
    return publisher << 24 | (epoch & 0xFFFF) << 8 | queue


def parts_of(lane: int) -> tuple[int, int, int]:
    """Publisher, epoch, queue."""
    return lane >> 24, lane >> 8 & 0xFFFF, lane & 0xFF


@functools.cache
def _noise() -> bytes:
    return random.Random(0).randbytes(1 << 19)


def _filler(number: int) -> int:
    """Bytes: few; now and then a page, and more than a frame."""
    if number % 20011 == 17:
        return 200_000
    return 5_000 if number % 1009 == 5 else 8 + number % 40


def body_of(run: int, lane: int, number: int) -> bytes:
    start = (number * 7919 + lane) % 200_000
    head = _HEAD.pack(run, lane, number) + _noise()[start : start + _filler(number)]
    return head + _SUM.pack(zlib.crc32(head))


def name_in(run: int, body: bytes) -> tuple[int, int] | None:
    """Lane and number, or None where it is not a message of this run, whole and as it was."""
    if len(body) < _HEAD.size + _SUM.size:
        return None
    its_run, lane, number = _HEAD.unpack_from(body)
    if its_run != run or zlib.crc32(memoryview(body)[:-4]) != _SUM.unpack_from(body, len(body) - 4)[0]:
        return None
    return lane, number


def message_id(lane: int, number: int) -> str:
    return f"{lane:08x}-{number:08x}"


def properties_of(lane: int, number: int, kind: type[Properties] = amqp.BasicProperties) -> Properties:
    return kind(
        content_type="application/x-chaos",
        headers=Table.of({"chaos": "äöü", "n": 7}),
        delivery_mode=2,
        correlation_id="c",
        message_id=message_id(lane, number),
        timestamp=1_700_000_000,
        type="chaos",
    )


class Template:
    """Frames of messages to one routing key, and content headers as they have to arrive."""

    def __init__(
        self,
        run: int,
        routing_key: str = "",
        *,
        dialect: Dialect = RABBITMQ_0_9_1,
        publish: bytes = b"",
        kind: type[Properties] = amqp.BasicProperties,
        added: dict[str, str] | None = None,
    ) -> None:
        """``publish`` is the frame of basic.publish where it is not 0-9-1's; ``added`` are headers that a
        transform sets.
        """
        self.run, self._dialect = run, dialect
        self._publish = publish or method_frame(1, amqp.BasicPublish(routing_key=routing_key), dialect)
        header = ContentHeader(class_id=60, body_size=0, properties=properties_of(0, 0, kind))
        payload = encode_header(header, dialect)
        self._before, _, self._after = payload[12:].partition(message_id(0, 0).encode())
        self._added = added or {}
        #: Properties that were seen to be right, less the name.
        self._right = {(self._before, self._after)} if not added else set()

    def frames(self, lane: int, number: int) -> bytes:
        """basic.publish, header and body."""
        body = body_of(self.run, lane, number)
        payload = b"".join(
            (
                b"\0\x3c\0\0",
                len(body).to_bytes(8),
                self._before,
                message_id(lane, number).encode(),
                self._after,
            )
        )
        if len(body) < 100_000:
            header, content = encode_frame(2, 1, payload), encode_frame(3, 1, body)
            return b"".join((self._publish, header, content))
        return b"".join((self._publish, encode_frame(2, 1, payload), *body_frames(1, body, 131072)))

    def is_right(self, payload: bytes, lane: int, number: int) -> bool:
        """Whether a content header is that of this message, but for what may be added."""
        said = message_id(lane, number).encode()
        at = payload.find(said, 12)
        pair = payload[12:at], payload[at + _NAME_LENGTH :]
        if at >= 0 and pair in self._right:
            return True
        try:
            came = decode_header(payload, self._dialect).properties
        except ValueError:
            return False
        wanted = properties_of(lane, number, type(came))
        added = MAY_BE_ADDED | self._added.keys()
        headers = came.headers.to_python() if came.headers is not None else {}
        told = wanted.headers.to_python()
        is_right = {key: value for key, value in headers.items() if key not in added} == told
        is_right = is_right and all(
            getattr(came, name) == getattr(wanted, name)
            for name in ("content_type", "delivery_mode", "correlation_id", "message_id", "timestamp", "type")
        )
        if is_right and not MAY_BE_ADDED & headers.keys():
            self._right.add(pair)
        return is_right
