# DO NOT EDIT. Made by `python -m amqpgate.codegen` from spec/amqp:
#   amqp0-10.qpid-errata.xml
"""AMQP 0-10: controls, commands, structs and enumerations.

See ``wire.v0_10.structs`` for what they have in common. Each is named as in the specification.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import ClassVar, Final, Self

from attrs import field, frozen

from amqpgate.wire.v0_10.primitives import (
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    cut_short,
    get_extent16,
    get_extent32,
    get_uint16,
    get_uint32,
    get_uuid,
    get_vbin16,
    get_vbin32,
    left_over,
    malformed,
    put_uuid,
    put_vbin8,
    put_vbin16,
    put_vbin32,
    unknown_flags,
)
from amqpgate.wire.v0_10.sequences import (
    SequenceSet,
)
from amqpgate.wire.v0_10.structs import (
    Command,
    Control,
    Struct,
)
from amqpgate.wire.v0_10.types import (
    Array,
    Map,
    get_array,
    get_map,
    put_array,
    put_map,
)

_B: Final = struct.Struct("<B")
_BBBBH: Final = struct.Struct("<BBBBH")
_BBH: Final = struct.Struct("<BBH")
_H: Final = struct.Struct("<H")

PROTOCOL_HEADER: Final = b'AMQP\x01\x01\x00\n'

MIN_MAX_FRAME_SIZE: Final = 4096


class SegmentType(IntEnum):
    CONTROL = 0
    COMMAND = 1
    HEADER = 2
    BODY = 3


class Track(IntEnum):
    CONTROL = 0
    COMMAND = 1


class CloseCode(IntEnum):
    NORMAL = 200
    CONNECTION_FORCED = 320
    INVALID_PATH = 402
    FRAMING_ERROR = 501


class DetachCode(IntEnum):
    NORMAL = 0
    SESSION_BUSY = 1
    TRANSPORT_BUSY = 2
    NOT_ATTACHED = 3
    UNKNOWN_IDS = 4


class ErrorCode(IntEnum):
    UNAUTHORIZED_ACCESS = 403
    NOT_FOUND = 404
    RESOURCE_LOCKED = 405
    PRECONDITION_FAILED = 406
    RESOURCE_DELETED = 408
    ILLEGAL_STATE = 409
    COMMAND_INVALID = 503
    RESOURCE_LIMIT_EXCEEDED = 506
    NOT_ALLOWED = 530
    ILLEGAL_ARGUMENT = 531
    NOT_IMPLEMENTED = 540
    INTERNAL_ERROR = 541
    INVALID_ARGUMENT = 542


class AcceptMode(IntEnum):
    EXPLICIT = 0
    NONE = 1


class AcquireMode(IntEnum):
    PRE_ACQUIRED = 0
    NOT_ACQUIRED = 1


class RejectCode(IntEnum):
    UNSPECIFIED = 0
    UNROUTABLE = 1
    IMMEDIATE = 2


class DeliveryMode(IntEnum):
    NON_PERSISTENT = 1
    PERSISTENT = 2


class DeliveryPriority(IntEnum):
    LOWEST = 0
    LOWER = 1
    LOW = 2
    BELOW_AVERAGE = 3
    MEDIUM = 4
    ABOVE_AVERAGE = 5
    HIGH = 6
    HIGHER = 7
    VERY_HIGH = 8
    HIGHEST = 9


class FlowMode(IntEnum):
    CREDIT = 0
    WINDOW = 1


class CreditUnit(IntEnum):
    MESSAGE = 0
    BYTE = 1


class XaStatus(IntEnum):
    XA_OK = 0
    XA_RBROLLBACK = 1
    XA_RBTIMEOUT = 2
    XA_HEURHAZ = 3
    XA_HEURCOM = 4
    XA_HEURRB = 5
    XA_HEURMIX = 6
    XA_RDONLY = 7


class FileReturnCode(IntEnum):
    CONTENT_TOO_LARGE = 311
    NO_ROUTE = 312
    NO_CONSUMERS = 313


class StreamReturnCode(IntEnum):
    CONTENT_TOO_LARGE = 311
    NO_ROUTE = 312
    NO_CONSUMERS = 313


@frozen
class SessionHeader(Struct):
    """session.header: struct without a code of class 0x02."""

    NAME: ClassVar[str] = "session.header"
    CLASS_CODE: ClassVar[int] = 0x02
    CODE: ClassVar[int] = 0x00

    sync: bool = False

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.sync:
            flags |= 0x1
        parts[0] = _B.pack(flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 1 > end:
            raise cut_short()
        flags = buf[pos]
        if flags & 0xFE:
            raise unknown_flags()
        pos += 1
        if pos != end:
            raise left_over()
        return cls(flags & 0x1 != 0)


@frozen
class CommandFragment(Struct):
    """session.command-fragment: struct without a code of class 0x02."""

    NAME: ClassVar[str] = "session.command-fragment"
    CLASS_CODE: ClassVar[int] = 0x02
    CODE: ClassVar[int] = 0x00

    command_id: int = 0
    byte_ranges: bytes = b""

    def encode(self) -> bytes:
        return UINT32.pack(self.command_id) + put_vbin16(self.byte_ranges)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        command_id, pos = get_uint32(buf, pos, end)
        byte_ranges, pos = get_vbin16(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(command_id, byte_ranges)


@frozen
class ReplyTo(Struct):
    """message.reply-to: struct without a code of class 0x04."""

    NAME: ClassVar[str] = "message.reply-to"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x00

    exchange: bytes | None = None
    routing_key: bytes | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.exchange is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.exchange))
        if self.routing_key is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.routing_key))
        parts[0] = _H.pack(flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        exchange: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            exchange = buf[start:pos]
        routing_key: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            routing_key = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(exchange, routing_key)


@frozen
class DeliveryProperties(Struct):
    """message.delivery-properties: struct 0x01 of class 0x04."""

    NAME: ClassVar[str] = "message.delivery-properties"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x01

    discard_unroutable: bool = False
    immediate: bool = False
    redelivered: bool = False
    priority: int | None = None
    delivery_mode: int | None = None
    ttl: int | None = None
    timestamp: int | None = None
    expiration: int | None = None
    exchange: bytes | None = None
    routing_key: bytes | None = None
    resume_id: bytes | None = None
    resume_ttl: int | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.discard_unroutable:
            flags |= 0x1
        if self.immediate:
            flags |= 0x2
        if self.redelivered:
            flags |= 0x4
        if self.priority is not None:
            flags |= 0x8
            parts.append(UINT8.pack(self.priority))
        if self.delivery_mode is not None:
            flags |= 0x10
            parts.append(UINT8.pack(self.delivery_mode))
        if self.ttl is not None:
            flags |= 0x20
            parts.append(UINT64.pack(self.ttl))
        if self.timestamp is not None:
            flags |= 0x40
            parts.append(UINT64.pack(self.timestamp))
        if self.expiration is not None:
            flags |= 0x80
            parts.append(UINT64.pack(self.expiration))
        if self.exchange is not None:
            flags |= 0x100
            parts.append(put_vbin8(self.exchange))
        if self.routing_key is not None:
            flags |= 0x200
            parts.append(put_vbin8(self.routing_key))
        if self.resume_id is not None:
            flags |= 0x400
            parts.append(put_vbin16(self.resume_id))
        if self.resume_ttl is not None:
            flags |= 0x800
            parts.append(UINT64.pack(self.resume_ttl))
        parts[0] = _BBH.pack(0x04, 0x01, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xF000:
            raise unknown_flags()
        pos += 2
        priority: int | None = None
        if flags & 0x8:
            if pos >= end:
                raise cut_short()
            priority = buf[pos]
            pos += 1
        delivery_mode: int | None = None
        if flags & 0x10:
            if pos >= end:
                raise cut_short()
            delivery_mode = buf[pos]
            pos += 1
        ttl: int | None = None
        if flags & 0x20:
            if pos + 8 > end:
                raise cut_short()
            ttl = UINT64.unpack_from(buf, pos)[0]
            pos += 8
        timestamp: int | None = None
        if flags & 0x40:
            if pos + 8 > end:
                raise cut_short()
            timestamp = UINT64.unpack_from(buf, pos)[0]
            pos += 8
        expiration: int | None = None
        if flags & 0x80:
            if pos + 8 > end:
                raise cut_short()
            expiration = UINT64.unpack_from(buf, pos)[0]
            pos += 8
        exchange: bytes | None = None
        if flags & 0x100:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            exchange = buf[start:pos]
        routing_key: bytes | None = None
        if flags & 0x200:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            routing_key = buf[start:pos]
        resume_id: bytes | None = None
        if flags & 0x400:
            resume_id, pos = get_vbin16(buf, pos, end)
        resume_ttl: int | None = None
        if flags & 0x800:
            if pos + 8 > end:
                raise cut_short()
            resume_ttl = UINT64.unpack_from(buf, pos)[0]
            pos += 8
        if pos != end:
            raise left_over()
        return cls(
            flags & 0x1 != 0,
            flags & 0x2 != 0,
            flags & 0x4 != 0,
            priority,
            delivery_mode,
            ttl,
            timestamp,
            expiration,
            exchange,
            routing_key,
            resume_id,
            resume_ttl,
        )


@frozen
class FragmentProperties(Struct):
    """message.fragment-properties: struct 0x02 of class 0x04."""

    NAME: ClassVar[str] = "message.fragment-properties"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x02

    first: bool = False
    last: bool = False
    fragment_size: int | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.first:
            flags |= 0x1
        if self.last:
            flags |= 0x2
        if self.fragment_size is not None:
            flags |= 0x4
            parts.append(UINT64.pack(self.fragment_size))
        parts[0] = _BBH.pack(0x04, 0x02, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF8:
            raise unknown_flags()
        pos += 2
        fragment_size: int | None = None
        if flags & 0x4:
            if pos + 8 > end:
                raise cut_short()
            fragment_size = UINT64.unpack_from(buf, pos)[0]
            pos += 8
        if pos != end:
            raise left_over()
        return cls(flags & 0x1 != 0, flags & 0x2 != 0, fragment_size)


@frozen
class MessageProperties(Struct):
    """message.message-properties: struct 0x03 of class 0x04."""

    NAME: ClassVar[str] = "message.message-properties"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x03

    content_length: int | None = None
    message_id: bytes | None = None
    correlation_id: bytes | None = None
    reply_to: ReplyTo | None = None
    content_type: bytes | None = None
    content_encoding: bytes | None = None
    user_id: bytes | None = None
    app_id: bytes | None = None
    application_headers: Map | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.content_length is not None:
            flags |= 0x1
            parts.append(UINT64.pack(self.content_length))
        if self.message_id is not None:
            flags |= 0x2
            parts.append(put_uuid(self.message_id))
        if self.correlation_id is not None:
            flags |= 0x4
            parts.append(put_vbin16(self.correlation_id))
        if self.reply_to is not None:
            flags |= 0x8
            parts.append(put_vbin16(self.reply_to.encode()))
        if self.content_type is not None:
            flags |= 0x10
            parts.append(put_vbin8(self.content_type))
        if self.content_encoding is not None:
            flags |= 0x20
            parts.append(put_vbin8(self.content_encoding))
        if self.user_id is not None:
            flags |= 0x40
            parts.append(put_vbin16(self.user_id))
        if self.app_id is not None:
            flags |= 0x80
            parts.append(put_vbin16(self.app_id))
        if self.application_headers is not None:
            flags |= 0x100
            parts.append(put_map(self.application_headers))
        parts[0] = _BBH.pack(0x04, 0x03, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFE00:
            raise unknown_flags()
        pos += 2
        content_length: int | None = None
        if flags & 0x1:
            if pos + 8 > end:
                raise cut_short()
            content_length = UINT64.unpack_from(buf, pos)[0]
            pos += 8
        message_id: bytes | None = None
        if flags & 0x2:
            message_id, pos = get_uuid(buf, pos, end)
        correlation_id: bytes | None = None
        if flags & 0x4:
            correlation_id, pos = get_vbin16(buf, pos, end)
        reply_to: ReplyTo | None = None
        if flags & 0x8:
            start, stop = get_extent16(buf, pos, end)
            reply_to = ReplyTo.decode(buf, start, stop)
            pos = stop
        content_type: bytes | None = None
        if flags & 0x10:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            content_type = buf[start:pos]
        content_encoding: bytes | None = None
        if flags & 0x20:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            content_encoding = buf[start:pos]
        user_id: bytes | None = None
        if flags & 0x40:
            user_id, pos = get_vbin16(buf, pos, end)
        app_id: bytes | None = None
        if flags & 0x80:
            app_id, pos = get_vbin16(buf, pos, end)
        application_headers: Map | None = None
        if flags & 0x100:
            application_headers, pos = get_map(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(
            content_length,
            message_id,
            correlation_id,
            reply_to,
            content_type,
            content_encoding,
            user_id,
            app_id,
            application_headers,
        )


@frozen
class Acquired(Struct):
    """message.acquired: struct 0x04 of class 0x04."""

    NAME: ClassVar[str] = "message.acquired"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x04

    transfers: SequenceSet | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.transfers is not None:
            flags |= 0x1
            parts.append(self.transfers.encode())
        parts[0] = _BBH.pack(0x04, 0x04, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        transfers: SequenceSet | None = None
        if flags & 0x1:
            transfers, pos = SequenceSet.decode(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(transfers)


@frozen
class MessageResumeResult(Struct):
    """message.message-resume-result: struct 0x05 of class 0x04."""

    NAME: ClassVar[str] = "message.message-resume-result"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x05

    offset: int | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.offset is not None:
            flags |= 0x1
            parts.append(UINT64.pack(self.offset))
        parts[0] = _BBH.pack(0x04, 0x05, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        offset: int | None = None
        if flags & 0x1:
            if pos + 8 > end:
                raise cut_short()
            offset = UINT64.unpack_from(buf, pos)[0]
            pos += 8
        if pos != end:
            raise left_over()
        return cls(offset)


@frozen
class XaResult(Struct):
    """dtx.xa-result: struct 0x01 of class 0x06."""

    NAME: ClassVar[str] = "dtx.xa-result"
    CLASS_CODE: ClassVar[int] = 0x06
    CODE: ClassVar[int] = 0x01

    status: int | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.status is not None:
            flags |= 0x1
            parts.append(UINT16.pack(self.status))
        parts[0] = _BBH.pack(0x06, 0x01, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        status: int | None = None
        if flags & 0x1:
            status, pos = get_uint16(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(status)


@frozen
class GetTimeoutResult(Struct):
    """dtx.get-timeout-result: struct 0x02 of class 0x06."""

    NAME: ClassVar[str] = "dtx.get-timeout-result"
    CLASS_CODE: ClassVar[int] = 0x06
    CODE: ClassVar[int] = 0x02

    timeout: int | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.timeout is not None:
            flags |= 0x1
            parts.append(UINT32.pack(self.timeout))
        parts[0] = _BBH.pack(0x06, 0x02, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        timeout: int | None = None
        if flags & 0x1:
            timeout, pos = get_uint32(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(timeout)


@frozen
class RecoverResult(Struct):
    """dtx.recover-result: struct 0x03 of class 0x06."""

    NAME: ClassVar[str] = "dtx.recover-result"
    CLASS_CODE: ClassVar[int] = 0x06
    CODE: ClassVar[int] = 0x03

    in_doubt: Array | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.in_doubt is not None:
            flags |= 0x1
            parts.append(put_array(self.in_doubt))
        parts[0] = _BBH.pack(0x06, 0x03, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        in_doubt: Array | None = None
        if flags & 0x1:
            in_doubt, pos = get_array(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(in_doubt)


@frozen
class Xid(Struct):
    """dtx.xid: struct 0x04 of class 0x06."""

    NAME: ClassVar[str] = "dtx.xid"
    CLASS_CODE: ClassVar[int] = 0x06
    CODE: ClassVar[int] = 0x04

    format: int | None = None
    global_id: bytes | None = None
    branch_id: bytes | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.format is not None:
            flags |= 0x1
            parts.append(UINT32.pack(self.format))
        if self.global_id is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.global_id))
        if self.branch_id is not None:
            flags |= 0x4
            parts.append(put_vbin8(self.branch_id))
        parts[0] = _BBH.pack(0x06, 0x04, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF8:
            raise unknown_flags()
        pos += 2
        format: int | None = None
        if flags & 0x1:
            format, pos = get_uint32(buf, pos, end)
        global_id: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            global_id = buf[start:pos]
        branch_id: bytes | None = None
        if flags & 0x4:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            branch_id = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(format, global_id, branch_id)


@frozen
class ExchangeQueryResult(Struct):
    """exchange.exchange-query-result: struct 0x01 of class 0x07."""

    NAME: ClassVar[str] = "exchange.exchange-query-result"
    CLASS_CODE: ClassVar[int] = 0x07
    CODE: ClassVar[int] = 0x01

    type: bytes | None = None
    durable: bool = False
    not_found: bool = False
    arguments: Map | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.type is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.type))
        if self.durable:
            flags |= 0x2
        if self.not_found:
            flags |= 0x4
        if self.arguments is not None:
            flags |= 0x8
            parts.append(put_map(self.arguments))
        parts[0] = _BBH.pack(0x07, 0x01, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF0:
            raise unknown_flags()
        pos += 2
        type: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            type = buf[start:pos]
        arguments: Map | None = None
        if flags & 0x8:
            arguments, pos = get_map(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(type, flags & 0x2 != 0, flags & 0x4 != 0, arguments)


@frozen
class ExchangeBoundResult(Struct):
    """exchange.exchange-bound-result: struct 0x02 of class 0x07."""

    NAME: ClassVar[str] = "exchange.exchange-bound-result"
    CLASS_CODE: ClassVar[int] = 0x07
    CODE: ClassVar[int] = 0x02

    exchange_not_found: bool = False
    queue_not_found: bool = False
    queue_not_matched: bool = False
    key_not_matched: bool = False
    args_not_matched: bool = False

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.exchange_not_found:
            flags |= 0x1
        if self.queue_not_found:
            flags |= 0x2
        if self.queue_not_matched:
            flags |= 0x4
        if self.key_not_matched:
            flags |= 0x8
        if self.args_not_matched:
            flags |= 0x10
        parts[0] = _BBH.pack(0x07, 0x02, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFE0:
            raise unknown_flags()
        pos += 2
        if pos != end:
            raise left_over()
        return cls(
            flags & 0x1 != 0,
            flags & 0x2 != 0,
            flags & 0x4 != 0,
            flags & 0x8 != 0,
            flags & 0x10 != 0,
        )


@frozen
class QueueQueryResult(Struct):
    """queue.queue-query-result: struct 0x01 of class 0x08."""

    NAME: ClassVar[str] = "queue.queue-query-result"
    CLASS_CODE: ClassVar[int] = 0x08
    CODE: ClassVar[int] = 0x01

    queue: bytes | None = None
    alternate_exchange: bytes | None = None
    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    arguments: Map | None = None
    message_count: int | None = None
    subscriber_count: int | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.queue is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.queue))
        if self.alternate_exchange is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.alternate_exchange))
        if self.durable:
            flags |= 0x4
        if self.exclusive:
            flags |= 0x8
        if self.auto_delete:
            flags |= 0x10
        if self.arguments is not None:
            flags |= 0x20
            parts.append(put_map(self.arguments))
        if self.message_count is not None:
            flags |= 0x40
            parts.append(UINT32.pack(self.message_count))
        if self.subscriber_count is not None:
            flags |= 0x80
            parts.append(UINT32.pack(self.subscriber_count))
        parts[0] = _BBH.pack(0x08, 0x01, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFF00:
            raise unknown_flags()
        pos += 2
        queue: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            queue = buf[start:pos]
        alternate_exchange: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            alternate_exchange = buf[start:pos]
        arguments: Map | None = None
        if flags & 0x20:
            arguments, pos = get_map(buf, pos, end)
        message_count: int | None = None
        if flags & 0x40:
            message_count, pos = get_uint32(buf, pos, end)
        subscriber_count: int | None = None
        if flags & 0x80:
            subscriber_count, pos = get_uint32(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(
            queue,
            alternate_exchange,
            flags & 0x4 != 0,
            flags & 0x8 != 0,
            flags & 0x10 != 0,
            arguments,
            message_count,
            subscriber_count,
        )


@frozen
class FileProperties(Struct):
    """file.file-properties: struct 0x01 of class 0x09."""

    NAME: ClassVar[str] = "file.file-properties"
    CLASS_CODE: ClassVar[int] = 0x09
    CODE: ClassVar[int] = 0x01

    content_type: bytes | None = None
    content_encoding: bytes | None = None
    headers: Map | None = None
    priority: int | None = None
    reply_to: bytes | None = None
    message_id: bytes | None = None
    filename: bytes | None = None
    timestamp: int | None = None
    cluster_id: bytes | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.content_type is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.content_type))
        if self.content_encoding is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.content_encoding))
        if self.headers is not None:
            flags |= 0x4
            parts.append(put_map(self.headers))
        if self.priority is not None:
            flags |= 0x8
            parts.append(UINT8.pack(self.priority))
        if self.reply_to is not None:
            flags |= 0x10
            parts.append(put_vbin8(self.reply_to))
        if self.message_id is not None:
            flags |= 0x20
            parts.append(put_vbin8(self.message_id))
        if self.filename is not None:
            flags |= 0x40
            parts.append(put_vbin8(self.filename))
        if self.timestamp is not None:
            flags |= 0x80
            parts.append(UINT64.pack(self.timestamp))
        if self.cluster_id is not None:
            flags |= 0x100
            parts.append(put_vbin8(self.cluster_id))
        parts[0] = _BBH.pack(0x09, 0x01, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFE00:
            raise unknown_flags()
        pos += 2
        content_type: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            content_type = buf[start:pos]
        content_encoding: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            content_encoding = buf[start:pos]
        headers: Map | None = None
        if flags & 0x4:
            headers, pos = get_map(buf, pos, end)
        priority: int | None = None
        if flags & 0x8:
            if pos >= end:
                raise cut_short()
            priority = buf[pos]
            pos += 1
        reply_to: bytes | None = None
        if flags & 0x10:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            reply_to = buf[start:pos]
        message_id: bytes | None = None
        if flags & 0x20:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            message_id = buf[start:pos]
        filename: bytes | None = None
        if flags & 0x40:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            filename = buf[start:pos]
        timestamp: int | None = None
        if flags & 0x80:
            if pos + 8 > end:
                raise cut_short()
            timestamp = UINT64.unpack_from(buf, pos)[0]
            pos += 8
        cluster_id: bytes | None = None
        if flags & 0x100:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            cluster_id = buf[start:pos]
        if pos != end:
            raise left_over()
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


@frozen
class StreamProperties(Struct):
    """stream.stream-properties: struct 0x01 of class 0x0a."""

    NAME: ClassVar[str] = "stream.stream-properties"
    CLASS_CODE: ClassVar[int] = 0x0A
    CODE: ClassVar[int] = 0x01

    content_type: bytes | None = None
    content_encoding: bytes | None = None
    headers: Map | None = None
    priority: int | None = None
    timestamp: int | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.content_type is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.content_type))
        if self.content_encoding is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.content_encoding))
        if self.headers is not None:
            flags |= 0x4
            parts.append(put_map(self.headers))
        if self.priority is not None:
            flags |= 0x8
            parts.append(UINT8.pack(self.priority))
        if self.timestamp is not None:
            flags |= 0x10
            parts.append(UINT64.pack(self.timestamp))
        parts[0] = _BBH.pack(0x0A, 0x01, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFE0:
            raise unknown_flags()
        pos += 2
        content_type: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            content_type = buf[start:pos]
        content_encoding: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            content_encoding = buf[start:pos]
        headers: Map | None = None
        if flags & 0x4:
            headers, pos = get_map(buf, pos, end)
        priority: int | None = None
        if flags & 0x8:
            if pos >= end:
                raise cut_short()
            priority = buf[pos]
            pos += 1
        timestamp: int | None = None
        if flags & 0x10:
            if pos + 8 > end:
                raise cut_short()
            timestamp = UINT64.unpack_from(buf, pos)[0]
            pos += 8
        if pos != end:
            raise left_over()
        return cls(content_type, content_encoding, headers, priority, timestamp)


@frozen
class ConnectionStart(Control):
    """connection.start: control 0x01 of class 0x01, to the client. Answered by connection.start-ok."""

    NAME: ClassVar[str] = "connection.start"
    CLASS_CODE: ClassVar[int] = 0x01
    CODE: ClassVar[int] = 0x01

    server_properties: Map | None = None
    mechanisms: Array | None = None
    locales: Array | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.server_properties is not None:
            flags |= 0x1
            parts.append(put_map(self.server_properties))
        if self.mechanisms is not None:
            flags |= 0x2
            parts.append(put_array(self.mechanisms))
        if self.locales is not None:
            flags |= 0x4
            parts.append(put_array(self.locales))
        parts[0] = _BBH.pack(0x01, 0x01, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF8:
            raise unknown_flags()
        pos += 2
        server_properties: Map | None = None
        if flags & 0x1:
            server_properties, pos = get_map(buf, pos, end)
        mechanisms: Array | None = None
        if flags & 0x2:
            mechanisms, pos = get_array(buf, pos, end)
        locales: Array | None = None
        if flags & 0x4:
            locales, pos = get_array(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(server_properties, mechanisms, locales)


@frozen
class ConnectionStartOk(Control):
    """connection.start-ok: control 0x02 of class 0x01, to the server."""

    NAME: ClassVar[str] = "connection.start-ok"
    CLASS_CODE: ClassVar[int] = 0x01
    CODE: ClassVar[int] = 0x02

    client_properties: Map | None = None
    mechanism: bytes | None = None
    response: bytes | None = field(default=None, repr=False)
    locale: bytes | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.client_properties is not None:
            flags |= 0x1
            parts.append(put_map(self.client_properties))
        if self.mechanism is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.mechanism))
        if self.response is not None:
            flags |= 0x4
            parts.append(put_vbin32(self.response))
        if self.locale is not None:
            flags |= 0x8
            parts.append(put_vbin8(self.locale))
        parts[0] = _BBH.pack(0x01, 0x02, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF0:
            raise unknown_flags()
        pos += 2
        client_properties: Map | None = None
        if flags & 0x1:
            client_properties, pos = get_map(buf, pos, end)
        mechanism: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            mechanism = buf[start:pos]
        response: bytes | None = None
        if flags & 0x4:
            response, pos = get_vbin32(buf, pos, end)
        locale: bytes | None = None
        if flags & 0x8:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            locale = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(client_properties, mechanism, response, locale)


@frozen
class ConnectionSecure(Control):
    """connection.secure: control 0x03 of class 0x01, to the client. Answered by connection.secure-ok."""

    NAME: ClassVar[str] = "connection.secure"
    CLASS_CODE: ClassVar[int] = 0x01
    CODE: ClassVar[int] = 0x03

    challenge: bytes | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.challenge is not None:
            flags |= 0x1
            parts.append(put_vbin32(self.challenge))
        parts[0] = _BBH.pack(0x01, 0x03, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        challenge: bytes | None = None
        if flags & 0x1:
            challenge, pos = get_vbin32(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(challenge)


@frozen
class ConnectionSecureOk(Control):
    """connection.secure-ok: control 0x04 of class 0x01, to the server."""

    NAME: ClassVar[str] = "connection.secure-ok"
    CLASS_CODE: ClassVar[int] = 0x01
    CODE: ClassVar[int] = 0x04

    response: bytes | None = field(default=None, repr=False)

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.response is not None:
            flags |= 0x1
            parts.append(put_vbin32(self.response))
        parts[0] = _BBH.pack(0x01, 0x04, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        response: bytes | None = None
        if flags & 0x1:
            response, pos = get_vbin32(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(response)


@frozen
class ConnectionTune(Control):
    """connection.tune: control 0x05 of class 0x01, to the client. Answered by connection.tune-ok."""

    NAME: ClassVar[str] = "connection.tune"
    CLASS_CODE: ClassVar[int] = 0x01
    CODE: ClassVar[int] = 0x05

    channel_max: int | None = None
    max_frame_size: int | None = None
    heartbeat_min: int | None = None
    heartbeat_max: int | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.channel_max is not None:
            flags |= 0x1
            parts.append(UINT16.pack(self.channel_max))
        if self.max_frame_size is not None:
            flags |= 0x2
            parts.append(UINT16.pack(self.max_frame_size))
        if self.heartbeat_min is not None:
            flags |= 0x4
            parts.append(UINT16.pack(self.heartbeat_min))
        if self.heartbeat_max is not None:
            flags |= 0x8
            parts.append(UINT16.pack(self.heartbeat_max))
        parts[0] = _BBH.pack(0x01, 0x05, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF0:
            raise unknown_flags()
        pos += 2
        channel_max: int | None = None
        if flags & 0x1:
            channel_max, pos = get_uint16(buf, pos, end)
        max_frame_size: int | None = None
        if flags & 0x2:
            max_frame_size, pos = get_uint16(buf, pos, end)
        heartbeat_min: int | None = None
        if flags & 0x4:
            heartbeat_min, pos = get_uint16(buf, pos, end)
        heartbeat_max: int | None = None
        if flags & 0x8:
            heartbeat_max, pos = get_uint16(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(channel_max, max_frame_size, heartbeat_min, heartbeat_max)


@frozen
class ConnectionTuneOk(Control):
    """connection.tune-ok: control 0x06 of class 0x01, to the server."""

    NAME: ClassVar[str] = "connection.tune-ok"
    CLASS_CODE: ClassVar[int] = 0x01
    CODE: ClassVar[int] = 0x06

    channel_max: int | None = None
    max_frame_size: int | None = None
    heartbeat: int | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.channel_max is not None:
            flags |= 0x1
            parts.append(UINT16.pack(self.channel_max))
        if self.max_frame_size is not None:
            flags |= 0x2
            parts.append(UINT16.pack(self.max_frame_size))
        if self.heartbeat is not None:
            flags |= 0x4
            parts.append(UINT16.pack(self.heartbeat))
        parts[0] = _BBH.pack(0x01, 0x06, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF8:
            raise unknown_flags()
        pos += 2
        channel_max: int | None = None
        if flags & 0x1:
            channel_max, pos = get_uint16(buf, pos, end)
        max_frame_size: int | None = None
        if flags & 0x2:
            max_frame_size, pos = get_uint16(buf, pos, end)
        heartbeat: int | None = None
        if flags & 0x4:
            heartbeat, pos = get_uint16(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(channel_max, max_frame_size, heartbeat)


@frozen
class ConnectionOpen(Control):
    """connection.open: control 0x07 of class 0x01, to the server. Answered by connection.open-ok or
    connection.redirect.
    """

    NAME: ClassVar[str] = "connection.open"
    CLASS_CODE: ClassVar[int] = 0x01
    CODE: ClassVar[int] = 0x07

    virtual_host: bytes | None = None
    capabilities: Array | None = None
    insist: bool = False

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.virtual_host is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.virtual_host))
        if self.capabilities is not None:
            flags |= 0x2
            parts.append(put_array(self.capabilities))
        if self.insist:
            flags |= 0x4
        parts[0] = _BBH.pack(0x01, 0x07, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF8:
            raise unknown_flags()
        pos += 2
        virtual_host: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            virtual_host = buf[start:pos]
        capabilities: Array | None = None
        if flags & 0x2:
            capabilities, pos = get_array(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(virtual_host, capabilities, flags & 0x4 != 0)


@frozen
class ConnectionOpenOk(Control):
    """connection.open-ok: control 0x08 of class 0x01, to the client."""

    NAME: ClassVar[str] = "connection.open-ok"
    CLASS_CODE: ClassVar[int] = 0x01
    CODE: ClassVar[int] = 0x08

    known_hosts: Array | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.known_hosts is not None:
            flags |= 0x1
            parts.append(put_array(self.known_hosts))
        parts[0] = _BBH.pack(0x01, 0x08, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        known_hosts: Array | None = None
        if flags & 0x1:
            known_hosts, pos = get_array(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(known_hosts)


@frozen
class ConnectionRedirect(Control):
    """connection.redirect: control 0x09 of class 0x01, to the client."""

    NAME: ClassVar[str] = "connection.redirect"
    CLASS_CODE: ClassVar[int] = 0x01
    CODE: ClassVar[int] = 0x09

    host: bytes | None = None
    known_hosts: Array | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.host is not None:
            flags |= 0x1
            parts.append(put_vbin16(self.host))
        if self.known_hosts is not None:
            flags |= 0x2
            parts.append(put_array(self.known_hosts))
        parts[0] = _BBH.pack(0x01, 0x09, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        host: bytes | None = None
        if flags & 0x1:
            host, pos = get_vbin16(buf, pos, end)
        known_hosts: Array | None = None
        if flags & 0x2:
            known_hosts, pos = get_array(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(host, known_hosts)


@frozen
class ConnectionHeartbeat(Control):
    """connection.heartbeat: control 0x0a of class 0x01, to the client or the server."""

    NAME: ClassVar[str] = "connection.heartbeat"
    CLASS_CODE: ClassVar[int] = 0x01
    CODE: ClassVar[int] = 0x0A

    def encode(self) -> bytes:
        return b"\x01\x0a\x00\x00"

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFF:
            raise unknown_flags()
        pos += 2
        if pos != end:
            raise left_over()
        return cls()


@frozen
class ConnectionClose(Control):
    """connection.close: control 0x0b of class 0x01, to the client or the server. Answered by
    connection.close-ok.
    """

    NAME: ClassVar[str] = "connection.close"
    CLASS_CODE: ClassVar[int] = 0x01
    CODE: ClassVar[int] = 0x0B

    reply_code: int | None = None
    reply_text: bytes | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.reply_code is not None:
            flags |= 0x1
            parts.append(UINT16.pack(self.reply_code))
        if self.reply_text is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.reply_text))
        parts[0] = _BBH.pack(0x01, 0x0B, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        reply_code: int | None = None
        if flags & 0x1:
            reply_code, pos = get_uint16(buf, pos, end)
        reply_text: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            reply_text = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(reply_code, reply_text)


@frozen
class ConnectionCloseOk(Control):
    """connection.close-ok: control 0x0c of class 0x01, to the client or the server."""

    NAME: ClassVar[str] = "connection.close-ok"
    CLASS_CODE: ClassVar[int] = 0x01
    CODE: ClassVar[int] = 0x0C

    def encode(self) -> bytes:
        return b"\x01\x0c\x00\x00"

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFF:
            raise unknown_flags()
        pos += 2
        if pos != end:
            raise left_over()
        return cls()


@frozen
class SessionAttach(Control):
    """session.attach: control 0x01 of class 0x02, to the server or the client. Answered by
    session.attached or session.detached.
    """

    NAME: ClassVar[str] = "session.attach"
    CLASS_CODE: ClassVar[int] = 0x02
    CODE: ClassVar[int] = 0x01

    name: bytes | None = None
    force: bool = False

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.name is not None:
            flags |= 0x1
            parts.append(put_vbin16(self.name))
        if self.force:
            flags |= 0x2
        parts[0] = _BBH.pack(0x02, 0x01, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        name: bytes | None = None
        if flags & 0x1:
            name, pos = get_vbin16(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(name, flags & 0x2 != 0)


@frozen
class SessionAttached(Control):
    """session.attached: control 0x02 of class 0x02, to the server or the client."""

    NAME: ClassVar[str] = "session.attached"
    CLASS_CODE: ClassVar[int] = 0x02
    CODE: ClassVar[int] = 0x02

    name: bytes | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.name is not None:
            flags |= 0x1
            parts.append(put_vbin16(self.name))
        parts[0] = _BBH.pack(0x02, 0x02, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        name: bytes | None = None
        if flags & 0x1:
            name, pos = get_vbin16(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(name)


@frozen
class SessionDetach(Control):
    """session.detach: control 0x03 of class 0x02, to the server or the client. Answered by
    session.detached.
    """

    NAME: ClassVar[str] = "session.detach"
    CLASS_CODE: ClassVar[int] = 0x02
    CODE: ClassVar[int] = 0x03

    name: bytes | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.name is not None:
            flags |= 0x1
            parts.append(put_vbin16(self.name))
        parts[0] = _BBH.pack(0x02, 0x03, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        name: bytes | None = None
        if flags & 0x1:
            name, pos = get_vbin16(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(name)


@frozen
class SessionDetached(Control):
    """session.detached: control 0x04 of class 0x02, to the server or the client."""

    NAME: ClassVar[str] = "session.detached"
    CLASS_CODE: ClassVar[int] = 0x02
    CODE: ClassVar[int] = 0x04

    name: bytes | None = None
    code: int | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.name is not None:
            flags |= 0x1
            parts.append(put_vbin16(self.name))
        if self.code is not None:
            flags |= 0x2
            parts.append(UINT8.pack(self.code))
        parts[0] = _BBH.pack(0x02, 0x04, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        name: bytes | None = None
        if flags & 0x1:
            name, pos = get_vbin16(buf, pos, end)
        code: int | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            code = buf[pos]
            pos += 1
        if pos != end:
            raise left_over()
        return cls(name, code)


@frozen
class SessionRequestTimeout(Control):
    """session.request-timeout: control 0x05 of class 0x02, to the sender or the receiver. Answered by
    session.timeout.
    """

    NAME: ClassVar[str] = "session.request-timeout"
    CLASS_CODE: ClassVar[int] = 0x02
    CODE: ClassVar[int] = 0x05

    timeout: int | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.timeout is not None:
            flags |= 0x1
            parts.append(UINT32.pack(self.timeout))
        parts[0] = _BBH.pack(0x02, 0x05, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        timeout: int | None = None
        if flags & 0x1:
            timeout, pos = get_uint32(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(timeout)


@frozen
class SessionTimeout(Control):
    """session.timeout: control 0x06 of class 0x02, to the sender or the receiver."""

    NAME: ClassVar[str] = "session.timeout"
    CLASS_CODE: ClassVar[int] = 0x02
    CODE: ClassVar[int] = 0x06

    timeout: int | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.timeout is not None:
            flags |= 0x1
            parts.append(UINT32.pack(self.timeout))
        parts[0] = _BBH.pack(0x02, 0x06, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        timeout: int | None = None
        if flags & 0x1:
            timeout, pos = get_uint32(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(timeout)


@frozen
class SessionCommandPoint(Control):
    """session.command-point: control 0x07 of class 0x02, to the receiver."""

    NAME: ClassVar[str] = "session.command-point"
    CLASS_CODE: ClassVar[int] = 0x02
    CODE: ClassVar[int] = 0x07

    command_id: int | None = None
    command_offset: int | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.command_id is not None:
            flags |= 0x1
            parts.append(UINT32.pack(self.command_id))
        if self.command_offset is not None:
            flags |= 0x2
            parts.append(UINT64.pack(self.command_offset))
        parts[0] = _BBH.pack(0x02, 0x07, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        command_id: int | None = None
        if flags & 0x1:
            command_id, pos = get_uint32(buf, pos, end)
        command_offset: int | None = None
        if flags & 0x2:
            if pos + 8 > end:
                raise cut_short()
            command_offset = UINT64.unpack_from(buf, pos)[0]
            pos += 8
        if pos != end:
            raise left_over()
        return cls(command_id, command_offset)


@frozen
class SessionExpected(Control):
    """session.expected: control 0x08 of class 0x02, to the sender."""

    NAME: ClassVar[str] = "session.expected"
    CLASS_CODE: ClassVar[int] = 0x02
    CODE: ClassVar[int] = 0x08

    commands: SequenceSet | None = None
    fragments: Array | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.commands is not None:
            flags |= 0x1
            parts.append(self.commands.encode())
        if self.fragments is not None:
            flags |= 0x2
            parts.append(put_array(self.fragments))
        parts[0] = _BBH.pack(0x02, 0x08, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        commands: SequenceSet | None = None
        if flags & 0x1:
            commands, pos = SequenceSet.decode(buf, pos, end)
        fragments: Array | None = None
        if flags & 0x2:
            fragments, pos = get_array(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(commands, fragments)


@frozen
class SessionConfirmed(Control):
    """session.confirmed: control 0x09 of class 0x02, to the sender."""

    NAME: ClassVar[str] = "session.confirmed"
    CLASS_CODE: ClassVar[int] = 0x02
    CODE: ClassVar[int] = 0x09

    commands: SequenceSet | None = None
    fragments: Array | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.commands is not None:
            flags |= 0x1
            parts.append(self.commands.encode())
        if self.fragments is not None:
            flags |= 0x2
            parts.append(put_array(self.fragments))
        parts[0] = _BBH.pack(0x02, 0x09, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        commands: SequenceSet | None = None
        if flags & 0x1:
            commands, pos = SequenceSet.decode(buf, pos, end)
        fragments: Array | None = None
        if flags & 0x2:
            fragments, pos = get_array(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(commands, fragments)


@frozen
class SessionCompleted(Control):
    """session.completed: control 0x0a of class 0x02, to the sender."""

    NAME: ClassVar[str] = "session.completed"
    CLASS_CODE: ClassVar[int] = 0x02
    CODE: ClassVar[int] = 0x0A

    commands: SequenceSet | None = None
    timely_reply: bool = False

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.commands is not None:
            flags |= 0x1
            parts.append(self.commands.encode())
        if self.timely_reply:
            flags |= 0x2
        parts[0] = _BBH.pack(0x02, 0x0A, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        commands: SequenceSet | None = None
        if flags & 0x1:
            commands, pos = SequenceSet.decode(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(commands, flags & 0x2 != 0)


@frozen
class SessionKnownCompleted(Control):
    """session.known-completed: control 0x0b of class 0x02, to the receiver."""

    NAME: ClassVar[str] = "session.known-completed"
    CLASS_CODE: ClassVar[int] = 0x02
    CODE: ClassVar[int] = 0x0B

    commands: SequenceSet | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.commands is not None:
            flags |= 0x1
            parts.append(self.commands.encode())
        parts[0] = _BBH.pack(0x02, 0x0B, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        commands: SequenceSet | None = None
        if flags & 0x1:
            commands, pos = SequenceSet.decode(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(commands)


@frozen
class SessionFlush(Control):
    """session.flush: control 0x0c of class 0x02, to the receiver."""

    NAME: ClassVar[str] = "session.flush"
    CLASS_CODE: ClassVar[int] = 0x02
    CODE: ClassVar[int] = 0x0C

    expected: bool = False
    confirmed: bool = False
    completed: bool = False

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.expected:
            flags |= 0x1
        if self.confirmed:
            flags |= 0x2
        if self.completed:
            flags |= 0x4
        parts[0] = _BBH.pack(0x02, 0x0C, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF8:
            raise unknown_flags()
        pos += 2
        if pos != end:
            raise left_over()
        return cls(flags & 0x1 != 0, flags & 0x2 != 0, flags & 0x4 != 0)


@frozen
class SessionGap(Control):
    """session.gap: control 0x0d of class 0x02, to the receiver."""

    NAME: ClassVar[str] = "session.gap"
    CLASS_CODE: ClassVar[int] = 0x02
    CODE: ClassVar[int] = 0x0D

    commands: SequenceSet | None = None

    def encode(self) -> bytes:
        flags = 0
        parts = [b""]
        if self.commands is not None:
            flags |= 0x1
            parts.append(self.commands.encode())
        parts[0] = _BBH.pack(0x02, 0x0D, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        commands: SequenceSet | None = None
        if flags & 0x1:
            commands, pos = SequenceSet.decode(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(commands)


@frozen
class ExecutionSync(Command):
    """execution.sync: command 0x01 of class 0x03, to the server or the client."""

    NAME: ClassVar[str] = "execution.sync"
    CLASS_CODE: ClassVar[int] = 0x03
    CODE: ClassVar[int] = 0x01
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    def encode(self, sync: bool = False) -> bytes:
        return b"\x03\x01\x01\x01\x00\x00" if sync else b"\x03\x01\x01\x00\x00\x00"

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFF:
            raise unknown_flags()
        pos += 2
        if pos != end:
            raise left_over()
        return cls()


@frozen
class ExecutionResult(Command):
    """execution.result: command 0x02 of class 0x03, to the server or the client."""

    NAME: ClassVar[str] = "execution.result"
    CLASS_CODE: ClassVar[int] = 0x03
    CODE: ClassVar[int] = 0x02
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    command_id: int | None = None
    value: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.command_id is not None:
            flags |= 0x1
            parts.append(UINT32.pack(self.command_id))
        if self.value is not None:
            flags |= 0x2
            parts.append(put_vbin32(self.value))
        parts[0] = _BBBBH.pack(0x03, 0x02, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        command_id: int | None = None
        if flags & 0x1:
            command_id, pos = get_uint32(buf, pos, end)
        value: bytes | None = None
        if flags & 0x2:
            value, pos = get_vbin32(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(command_id, value)


@frozen
class ExecutionException(Command):
    """execution.exception: command 0x03 of class 0x03, to the client or the server."""

    NAME: ClassVar[str] = "execution.exception"
    CLASS_CODE: ClassVar[int] = 0x03
    CODE: ClassVar[int] = 0x03
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    error_code: int | None = None
    command_id: int | None = None
    class_code: int | None = None
    command_code: int | None = None
    field_index: int | None = None
    description: bytes | None = None
    error_info: Map | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.error_code is not None:
            flags |= 0x1
            parts.append(UINT16.pack(self.error_code))
        if self.command_id is not None:
            flags |= 0x2
            parts.append(UINT32.pack(self.command_id))
        if self.class_code is not None:
            flags |= 0x4
            parts.append(UINT8.pack(self.class_code))
        if self.command_code is not None:
            flags |= 0x8
            parts.append(UINT8.pack(self.command_code))
        if self.field_index is not None:
            flags |= 0x10
            parts.append(UINT8.pack(self.field_index))
        if self.description is not None:
            flags |= 0x20
            parts.append(put_vbin16(self.description))
        if self.error_info is not None:
            flags |= 0x40
            parts.append(put_map(self.error_info))
        parts[0] = _BBBBH.pack(0x03, 0x03, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFF80:
            raise unknown_flags()
        pos += 2
        error_code: int | None = None
        if flags & 0x1:
            error_code, pos = get_uint16(buf, pos, end)
        command_id: int | None = None
        if flags & 0x2:
            command_id, pos = get_uint32(buf, pos, end)
        class_code: int | None = None
        if flags & 0x4:
            if pos >= end:
                raise cut_short()
            class_code = buf[pos]
            pos += 1
        command_code: int | None = None
        if flags & 0x8:
            if pos >= end:
                raise cut_short()
            command_code = buf[pos]
            pos += 1
        field_index: int | None = None
        if flags & 0x10:
            if pos >= end:
                raise cut_short()
            field_index = buf[pos]
            pos += 1
        description: bytes | None = None
        if flags & 0x20:
            description, pos = get_vbin16(buf, pos, end)
        error_info: Map | None = None
        if flags & 0x40:
            error_info, pos = get_map(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(error_code, command_id, class_code, command_code, field_index, description, error_info)


@frozen
class MessageTransfer(Command):
    """message.transfer: command 0x01 of class 0x04, to the server or the client, header and body may
    follow.
    """

    NAME: ClassVar[str] = "message.transfer"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x01
    CONTENT: ClassVar[bool] = True
    RESULT: ClassVar[int] = 0x0000

    destination: bytes | None = None
    accept_mode: int | None = None
    acquire_mode: int | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.destination is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.destination))
        if self.accept_mode is not None:
            flags |= 0x2
            parts.append(UINT8.pack(self.accept_mode))
        if self.acquire_mode is not None:
            flags |= 0x4
            parts.append(UINT8.pack(self.acquire_mode))
        parts[0] = _BBBBH.pack(0x04, 0x01, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF8:
            raise unknown_flags()
        pos += 2
        destination: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            destination = buf[start:pos]
        accept_mode: int | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            accept_mode = buf[pos]
            pos += 1
        acquire_mode: int | None = None
        if flags & 0x4:
            if pos >= end:
                raise cut_short()
            acquire_mode = buf[pos]
            pos += 1
        if pos != end:
            raise left_over()
        return cls(destination, accept_mode, acquire_mode)


@frozen
class MessageAccept(Command):
    """message.accept: command 0x02 of class 0x04, to the server or the client."""

    NAME: ClassVar[str] = "message.accept"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x02
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    transfers: SequenceSet | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.transfers is not None:
            flags |= 0x1
            parts.append(self.transfers.encode())
        parts[0] = _BBBBH.pack(0x04, 0x02, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        transfers: SequenceSet | None = None
        if flags & 0x1:
            transfers, pos = SequenceSet.decode(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(transfers)


@frozen
class MessageReject(Command):
    """message.reject: command 0x03 of class 0x04, to the server or the client."""

    NAME: ClassVar[str] = "message.reject"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x03
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    transfers: SequenceSet | None = None
    code: int | None = None
    text: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.transfers is not None:
            flags |= 0x1
            parts.append(self.transfers.encode())
        if self.code is not None:
            flags |= 0x2
            parts.append(UINT16.pack(self.code))
        if self.text is not None:
            flags |= 0x4
            parts.append(put_vbin8(self.text))
        parts[0] = _BBBBH.pack(0x04, 0x03, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF8:
            raise unknown_flags()
        pos += 2
        transfers: SequenceSet | None = None
        if flags & 0x1:
            transfers, pos = SequenceSet.decode(buf, pos, end)
        code: int | None = None
        if flags & 0x2:
            code, pos = get_uint16(buf, pos, end)
        text: bytes | None = None
        if flags & 0x4:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            text = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(transfers, code, text)


@frozen
class MessageRelease(Command):
    """message.release: command 0x04 of class 0x04, to the server or the client."""

    NAME: ClassVar[str] = "message.release"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x04
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    transfers: SequenceSet | None = None
    set_redelivered: bool = False

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.transfers is not None:
            flags |= 0x1
            parts.append(self.transfers.encode())
        if self.set_redelivered:
            flags |= 0x2
        parts[0] = _BBBBH.pack(0x04, 0x04, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        transfers: SequenceSet | None = None
        if flags & 0x1:
            transfers, pos = SequenceSet.decode(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(transfers, flags & 0x2 != 0)


@frozen
class MessageAcquire(Command):
    """message.acquire: command 0x05 of class 0x04, to the server. Results in `Acquired`."""

    NAME: ClassVar[str] = "message.acquire"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x05
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0404

    transfers: SequenceSet | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.transfers is not None:
            flags |= 0x1
            parts.append(self.transfers.encode())
        parts[0] = _BBBBH.pack(0x04, 0x05, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        transfers: SequenceSet | None = None
        if flags & 0x1:
            transfers, pos = SequenceSet.decode(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(transfers)


@frozen
class MessageResume(Command):
    """message.resume: command 0x06 of class 0x04, to the server or the client. Results in
    `MessageResumeResult`.
    """

    NAME: ClassVar[str] = "message.resume"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x06
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0405

    destination: bytes | None = None
    resume_id: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.destination is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.destination))
        if self.resume_id is not None:
            flags |= 0x2
            parts.append(put_vbin16(self.resume_id))
        parts[0] = _BBBBH.pack(0x04, 0x06, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        destination: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            destination = buf[start:pos]
        resume_id: bytes | None = None
        if flags & 0x2:
            resume_id, pos = get_vbin16(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(destination, resume_id)


@frozen
class MessageSubscribe(Command):
    """message.subscribe: command 0x07 of class 0x04, to the server."""

    NAME: ClassVar[str] = "message.subscribe"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x07
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    queue: bytes | None = None
    destination: bytes | None = None
    accept_mode: int | None = None
    acquire_mode: int | None = None
    exclusive: bool = False
    resume_id: bytes | None = None
    resume_ttl: int | None = None
    arguments: Map | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.queue is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.queue))
        if self.destination is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.destination))
        if self.accept_mode is not None:
            flags |= 0x4
            parts.append(UINT8.pack(self.accept_mode))
        if self.acquire_mode is not None:
            flags |= 0x8
            parts.append(UINT8.pack(self.acquire_mode))
        if self.exclusive:
            flags |= 0x10
        if self.resume_id is not None:
            flags |= 0x20
            parts.append(put_vbin16(self.resume_id))
        if self.resume_ttl is not None:
            flags |= 0x40
            parts.append(UINT64.pack(self.resume_ttl))
        if self.arguments is not None:
            flags |= 0x80
            parts.append(put_map(self.arguments))
        parts[0] = _BBBBH.pack(0x04, 0x07, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFF00:
            raise unknown_flags()
        pos += 2
        queue: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            queue = buf[start:pos]
        destination: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            destination = buf[start:pos]
        accept_mode: int | None = None
        if flags & 0x4:
            if pos >= end:
                raise cut_short()
            accept_mode = buf[pos]
            pos += 1
        acquire_mode: int | None = None
        if flags & 0x8:
            if pos >= end:
                raise cut_short()
            acquire_mode = buf[pos]
            pos += 1
        resume_id: bytes | None = None
        if flags & 0x20:
            resume_id, pos = get_vbin16(buf, pos, end)
        resume_ttl: int | None = None
        if flags & 0x40:
            if pos + 8 > end:
                raise cut_short()
            resume_ttl = UINT64.unpack_from(buf, pos)[0]
            pos += 8
        arguments: Map | None = None
        if flags & 0x80:
            arguments, pos = get_map(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(
            queue,
            destination,
            accept_mode,
            acquire_mode,
            flags & 0x10 != 0,
            resume_id,
            resume_ttl,
            arguments,
        )


@frozen
class MessageCancel(Command):
    """message.cancel: command 0x08 of class 0x04, to the server."""

    NAME: ClassVar[str] = "message.cancel"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x08
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    destination: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.destination is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.destination))
        parts[0] = _BBBBH.pack(0x04, 0x08, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        destination: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            destination = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(destination)


@frozen
class MessageSetFlowMode(Command):
    """message.set-flow-mode: command 0x09 of class 0x04, to the server or the client."""

    NAME: ClassVar[str] = "message.set-flow-mode"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x09
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    destination: bytes | None = None
    flow_mode: int | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.destination is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.destination))
        if self.flow_mode is not None:
            flags |= 0x2
            parts.append(UINT8.pack(self.flow_mode))
        parts[0] = _BBBBH.pack(0x04, 0x09, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        destination: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            destination = buf[start:pos]
        flow_mode: int | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            flow_mode = buf[pos]
            pos += 1
        if pos != end:
            raise left_over()
        return cls(destination, flow_mode)


@frozen
class MessageFlow(Command):
    """message.flow: command 0x0a of class 0x04, to the server or the client."""

    NAME: ClassVar[str] = "message.flow"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x0A
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    destination: bytes | None = None
    unit: int | None = None
    value: int | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.destination is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.destination))
        if self.unit is not None:
            flags |= 0x2
            parts.append(UINT8.pack(self.unit))
        if self.value is not None:
            flags |= 0x4
            parts.append(UINT32.pack(self.value))
        parts[0] = _BBBBH.pack(0x04, 0x0A, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF8:
            raise unknown_flags()
        pos += 2
        destination: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            destination = buf[start:pos]
        unit: int | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            unit = buf[pos]
            pos += 1
        value: int | None = None
        if flags & 0x4:
            value, pos = get_uint32(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(destination, unit, value)


@frozen
class MessageFlush(Command):
    """message.flush: command 0x0b of class 0x04, to the server."""

    NAME: ClassVar[str] = "message.flush"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x0B
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    destination: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.destination is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.destination))
        parts[0] = _BBBBH.pack(0x04, 0x0B, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        destination: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            destination = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(destination)


@frozen
class MessageStop(Command):
    """message.stop: command 0x0c of class 0x04, to the server or the client."""

    NAME: ClassVar[str] = "message.stop"
    CLASS_CODE: ClassVar[int] = 0x04
    CODE: ClassVar[int] = 0x0C
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    destination: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.destination is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.destination))
        parts[0] = _BBBBH.pack(0x04, 0x0C, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        destination: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            destination = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(destination)


@frozen
class TxSelect(Command):
    """tx.select: command 0x01 of class 0x05, to the server."""

    NAME: ClassVar[str] = "tx.select"
    CLASS_CODE: ClassVar[int] = 0x05
    CODE: ClassVar[int] = 0x01
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    def encode(self, sync: bool = False) -> bytes:
        return b"\x05\x01\x01\x01\x00\x00" if sync else b"\x05\x01\x01\x00\x00\x00"

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFF:
            raise unknown_flags()
        pos += 2
        if pos != end:
            raise left_over()
        return cls()


@frozen
class TxCommit(Command):
    """tx.commit: command 0x02 of class 0x05, to the server."""

    NAME: ClassVar[str] = "tx.commit"
    CLASS_CODE: ClassVar[int] = 0x05
    CODE: ClassVar[int] = 0x02
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    def encode(self, sync: bool = False) -> bytes:
        return b"\x05\x02\x01\x01\x00\x00" if sync else b"\x05\x02\x01\x00\x00\x00"

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFF:
            raise unknown_flags()
        pos += 2
        if pos != end:
            raise left_over()
        return cls()


@frozen
class TxRollback(Command):
    """tx.rollback: command 0x03 of class 0x05, to the server."""

    NAME: ClassVar[str] = "tx.rollback"
    CLASS_CODE: ClassVar[int] = 0x05
    CODE: ClassVar[int] = 0x03
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    def encode(self, sync: bool = False) -> bytes:
        return b"\x05\x03\x01\x01\x00\x00" if sync else b"\x05\x03\x01\x00\x00\x00"

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFF:
            raise unknown_flags()
        pos += 2
        if pos != end:
            raise left_over()
        return cls()


@frozen
class DtxSelect(Command):
    """dtx.select: command 0x01 of class 0x06, to the server."""

    NAME: ClassVar[str] = "dtx.select"
    CLASS_CODE: ClassVar[int] = 0x06
    CODE: ClassVar[int] = 0x01
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    def encode(self, sync: bool = False) -> bytes:
        return b"\x06\x01\x01\x01\x00\x00" if sync else b"\x06\x01\x01\x00\x00\x00"

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFF:
            raise unknown_flags()
        pos += 2
        if pos != end:
            raise left_over()
        return cls()


@frozen
class DtxStart(Command):
    """dtx.start: command 0x02 of class 0x06, to the server. Results in `XaResult`."""

    NAME: ClassVar[str] = "dtx.start"
    CLASS_CODE: ClassVar[int] = 0x06
    CODE: ClassVar[int] = 0x02
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0601

    xid: Xid | None = None
    join: bool = False
    resume: bool = False

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.xid is not None:
            flags |= 0x1
            parts.append(put_vbin32(self.xid.encode()))
        if self.join:
            flags |= 0x2
        if self.resume:
            flags |= 0x4
        parts[0] = _BBBBH.pack(0x06, 0x02, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF8:
            raise unknown_flags()
        pos += 2
        xid: Xid | None = None
        if flags & 0x1:
            start, stop = get_extent32(buf, pos, end)
            if buf[start : start + 2] != b"\x06\x04":
                raise malformed("no xid")
            xid = Xid.decode(buf, start + 2, stop)
            pos = stop
        if pos != end:
            raise left_over()
        return cls(xid, flags & 0x2 != 0, flags & 0x4 != 0)


@frozen
class DtxEnd(Command):
    """dtx.end: command 0x03 of class 0x06, to the server. Results in `XaResult`."""

    NAME: ClassVar[str] = "dtx.end"
    CLASS_CODE: ClassVar[int] = 0x06
    CODE: ClassVar[int] = 0x03
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0601

    xid: Xid | None = None
    fail: bool = False
    suspend: bool = False

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.xid is not None:
            flags |= 0x1
            parts.append(put_vbin32(self.xid.encode()))
        if self.fail:
            flags |= 0x2
        if self.suspend:
            flags |= 0x4
        parts[0] = _BBBBH.pack(0x06, 0x03, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF8:
            raise unknown_flags()
        pos += 2
        xid: Xid | None = None
        if flags & 0x1:
            start, stop = get_extent32(buf, pos, end)
            if buf[start : start + 2] != b"\x06\x04":
                raise malformed("no xid")
            xid = Xid.decode(buf, start + 2, stop)
            pos = stop
        if pos != end:
            raise left_over()
        return cls(xid, flags & 0x2 != 0, flags & 0x4 != 0)


@frozen
class DtxCommit(Command):
    """dtx.commit: command 0x04 of class 0x06, to the server. Results in `XaResult`."""

    NAME: ClassVar[str] = "dtx.commit"
    CLASS_CODE: ClassVar[int] = 0x06
    CODE: ClassVar[int] = 0x04
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0601

    xid: Xid | None = None
    one_phase: bool = False

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.xid is not None:
            flags |= 0x1
            parts.append(put_vbin32(self.xid.encode()))
        if self.one_phase:
            flags |= 0x2
        parts[0] = _BBBBH.pack(0x06, 0x04, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        xid: Xid | None = None
        if flags & 0x1:
            start, stop = get_extent32(buf, pos, end)
            if buf[start : start + 2] != b"\x06\x04":
                raise malformed("no xid")
            xid = Xid.decode(buf, start + 2, stop)
            pos = stop
        if pos != end:
            raise left_over()
        return cls(xid, flags & 0x2 != 0)


@frozen
class DtxForget(Command):
    """dtx.forget: command 0x05 of class 0x06, to the server."""

    NAME: ClassVar[str] = "dtx.forget"
    CLASS_CODE: ClassVar[int] = 0x06
    CODE: ClassVar[int] = 0x05
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    xid: Xid | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.xid is not None:
            flags |= 0x1
            parts.append(put_vbin32(self.xid.encode()))
        parts[0] = _BBBBH.pack(0x06, 0x05, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        xid: Xid | None = None
        if flags & 0x1:
            start, stop = get_extent32(buf, pos, end)
            if buf[start : start + 2] != b"\x06\x04":
                raise malformed("no xid")
            xid = Xid.decode(buf, start + 2, stop)
            pos = stop
        if pos != end:
            raise left_over()
        return cls(xid)


@frozen
class DtxGetTimeout(Command):
    """dtx.get-timeout: command 0x06 of class 0x06, to the server. Results in `GetTimeoutResult`."""

    NAME: ClassVar[str] = "dtx.get-timeout"
    CLASS_CODE: ClassVar[int] = 0x06
    CODE: ClassVar[int] = 0x06
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0602

    xid: Xid | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.xid is not None:
            flags |= 0x1
            parts.append(put_vbin32(self.xid.encode()))
        parts[0] = _BBBBH.pack(0x06, 0x06, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        xid: Xid | None = None
        if flags & 0x1:
            start, stop = get_extent32(buf, pos, end)
            if buf[start : start + 2] != b"\x06\x04":
                raise malformed("no xid")
            xid = Xid.decode(buf, start + 2, stop)
            pos = stop
        if pos != end:
            raise left_over()
        return cls(xid)


@frozen
class DtxPrepare(Command):
    """dtx.prepare: command 0x07 of class 0x06, to the server. Results in `XaResult`."""

    NAME: ClassVar[str] = "dtx.prepare"
    CLASS_CODE: ClassVar[int] = 0x06
    CODE: ClassVar[int] = 0x07
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0601

    xid: Xid | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.xid is not None:
            flags |= 0x1
            parts.append(put_vbin32(self.xid.encode()))
        parts[0] = _BBBBH.pack(0x06, 0x07, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        xid: Xid | None = None
        if flags & 0x1:
            start, stop = get_extent32(buf, pos, end)
            if buf[start : start + 2] != b"\x06\x04":
                raise malformed("no xid")
            xid = Xid.decode(buf, start + 2, stop)
            pos = stop
        if pos != end:
            raise left_over()
        return cls(xid)


@frozen
class DtxRecover(Command):
    """dtx.recover: command 0x08 of class 0x06, to the server. Results in `RecoverResult`."""

    NAME: ClassVar[str] = "dtx.recover"
    CLASS_CODE: ClassVar[int] = 0x06
    CODE: ClassVar[int] = 0x08
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0603

    def encode(self, sync: bool = False) -> bytes:
        return b"\x06\x08\x01\x01\x00\x00" if sync else b"\x06\x08\x01\x00\x00\x00"

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFF:
            raise unknown_flags()
        pos += 2
        if pos != end:
            raise left_over()
        return cls()


@frozen
class DtxRollback(Command):
    """dtx.rollback: command 0x09 of class 0x06, to the server. Results in `XaResult`."""

    NAME: ClassVar[str] = "dtx.rollback"
    CLASS_CODE: ClassVar[int] = 0x06
    CODE: ClassVar[int] = 0x09
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0601

    xid: Xid | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.xid is not None:
            flags |= 0x1
            parts.append(put_vbin32(self.xid.encode()))
        parts[0] = _BBBBH.pack(0x06, 0x09, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        xid: Xid | None = None
        if flags & 0x1:
            start, stop = get_extent32(buf, pos, end)
            if buf[start : start + 2] != b"\x06\x04":
                raise malformed("no xid")
            xid = Xid.decode(buf, start + 2, stop)
            pos = stop
        if pos != end:
            raise left_over()
        return cls(xid)


@frozen
class DtxSetTimeout(Command):
    """dtx.set-timeout: command 0x0a of class 0x06, to the server."""

    NAME: ClassVar[str] = "dtx.set-timeout"
    CLASS_CODE: ClassVar[int] = 0x06
    CODE: ClassVar[int] = 0x0A
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    xid: Xid | None = None
    timeout: int | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.xid is not None:
            flags |= 0x1
            parts.append(put_vbin32(self.xid.encode()))
        if self.timeout is not None:
            flags |= 0x2
            parts.append(UINT32.pack(self.timeout))
        parts[0] = _BBBBH.pack(0x06, 0x0A, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        xid: Xid | None = None
        if flags & 0x1:
            start, stop = get_extent32(buf, pos, end)
            if buf[start : start + 2] != b"\x06\x04":
                raise malformed("no xid")
            xid = Xid.decode(buf, start + 2, stop)
            pos = stop
        timeout: int | None = None
        if flags & 0x2:
            timeout, pos = get_uint32(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(xid, timeout)


@frozen
class ExchangeDeclare(Command):
    """exchange.declare: command 0x01 of class 0x07, to the server."""

    NAME: ClassVar[str] = "exchange.declare"
    CLASS_CODE: ClassVar[int] = 0x07
    CODE: ClassVar[int] = 0x01
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    exchange: bytes | None = None
    type: bytes | None = None
    alternate_exchange: bytes | None = None
    passive: bool = False
    durable: bool = False
    auto_delete: bool = False
    arguments: Map | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.exchange is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.exchange))
        if self.type is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.type))
        if self.alternate_exchange is not None:
            flags |= 0x4
            parts.append(put_vbin8(self.alternate_exchange))
        if self.passive:
            flags |= 0x8
        if self.durable:
            flags |= 0x10
        if self.auto_delete:
            flags |= 0x20
        if self.arguments is not None:
            flags |= 0x40
            parts.append(put_map(self.arguments))
        parts[0] = _BBBBH.pack(0x07, 0x01, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFF80:
            raise unknown_flags()
        pos += 2
        exchange: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            exchange = buf[start:pos]
        type: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            type = buf[start:pos]
        alternate_exchange: bytes | None = None
        if flags & 0x4:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            alternate_exchange = buf[start:pos]
        arguments: Map | None = None
        if flags & 0x40:
            arguments, pos = get_map(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(
            exchange,
            type,
            alternate_exchange,
            flags & 0x8 != 0,
            flags & 0x10 != 0,
            flags & 0x20 != 0,
            arguments,
        )


@frozen
class ExchangeDelete(Command):
    """exchange.delete: command 0x02 of class 0x07, to the server."""

    NAME: ClassVar[str] = "exchange.delete"
    CLASS_CODE: ClassVar[int] = 0x07
    CODE: ClassVar[int] = 0x02
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    exchange: bytes | None = None
    if_unused: bool = False

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.exchange is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.exchange))
        if self.if_unused:
            flags |= 0x2
        parts[0] = _BBBBH.pack(0x07, 0x02, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        exchange: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            exchange = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(exchange, flags & 0x2 != 0)


@frozen
class ExchangeQuery(Command):
    """exchange.query: command 0x03 of class 0x07, to the server. Results in `ExchangeQueryResult`."""

    NAME: ClassVar[str] = "exchange.query"
    CLASS_CODE: ClassVar[int] = 0x07
    CODE: ClassVar[int] = 0x03
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0701

    name: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.name is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.name))
        parts[0] = _BBBBH.pack(0x07, 0x03, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        name: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            name = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(name)


@frozen
class ExchangeBind(Command):
    """exchange.bind: command 0x04 of class 0x07, to the server."""

    NAME: ClassVar[str] = "exchange.bind"
    CLASS_CODE: ClassVar[int] = 0x07
    CODE: ClassVar[int] = 0x04
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    queue: bytes | None = None
    exchange: bytes | None = None
    binding_key: bytes | None = None
    arguments: Map | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.queue is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.queue))
        if self.exchange is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.exchange))
        if self.binding_key is not None:
            flags |= 0x4
            parts.append(put_vbin8(self.binding_key))
        if self.arguments is not None:
            flags |= 0x8
            parts.append(put_map(self.arguments))
        parts[0] = _BBBBH.pack(0x07, 0x04, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF0:
            raise unknown_flags()
        pos += 2
        queue: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            queue = buf[start:pos]
        exchange: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            exchange = buf[start:pos]
        binding_key: bytes | None = None
        if flags & 0x4:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            binding_key = buf[start:pos]
        arguments: Map | None = None
        if flags & 0x8:
            arguments, pos = get_map(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(queue, exchange, binding_key, arguments)


@frozen
class ExchangeUnbind(Command):
    """exchange.unbind: command 0x05 of class 0x07, to the server."""

    NAME: ClassVar[str] = "exchange.unbind"
    CLASS_CODE: ClassVar[int] = 0x07
    CODE: ClassVar[int] = 0x05
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    queue: bytes | None = None
    exchange: bytes | None = None
    binding_key: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.queue is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.queue))
        if self.exchange is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.exchange))
        if self.binding_key is not None:
            flags |= 0x4
            parts.append(put_vbin8(self.binding_key))
        parts[0] = _BBBBH.pack(0x07, 0x05, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF8:
            raise unknown_flags()
        pos += 2
        queue: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            queue = buf[start:pos]
        exchange: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            exchange = buf[start:pos]
        binding_key: bytes | None = None
        if flags & 0x4:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            binding_key = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(queue, exchange, binding_key)


@frozen
class ExchangeBound(Command):
    """exchange.bound: command 0x06 of class 0x07, to the server. Results in `ExchangeBoundResult`."""

    NAME: ClassVar[str] = "exchange.bound"
    CLASS_CODE: ClassVar[int] = 0x07
    CODE: ClassVar[int] = 0x06
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0702

    exchange: bytes | None = None
    queue: bytes | None = None
    binding_key: bytes | None = None
    arguments: Map | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.exchange is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.exchange))
        if self.queue is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.queue))
        if self.binding_key is not None:
            flags |= 0x4
            parts.append(put_vbin8(self.binding_key))
        if self.arguments is not None:
            flags |= 0x8
            parts.append(put_map(self.arguments))
        parts[0] = _BBBBH.pack(0x07, 0x06, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF0:
            raise unknown_flags()
        pos += 2
        exchange: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            exchange = buf[start:pos]
        queue: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            queue = buf[start:pos]
        binding_key: bytes | None = None
        if flags & 0x4:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            binding_key = buf[start:pos]
        arguments: Map | None = None
        if flags & 0x8:
            arguments, pos = get_map(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(exchange, queue, binding_key, arguments)


@frozen
class QueueDeclare(Command):
    """queue.declare: command 0x01 of class 0x08, to the server."""

    NAME: ClassVar[str] = "queue.declare"
    CLASS_CODE: ClassVar[int] = 0x08
    CODE: ClassVar[int] = 0x01
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    queue: bytes | None = None
    alternate_exchange: bytes | None = None
    passive: bool = False
    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    arguments: Map | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.queue is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.queue))
        if self.alternate_exchange is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.alternate_exchange))
        if self.passive:
            flags |= 0x4
        if self.durable:
            flags |= 0x8
        if self.exclusive:
            flags |= 0x10
        if self.auto_delete:
            flags |= 0x20
        if self.arguments is not None:
            flags |= 0x40
            parts.append(put_map(self.arguments))
        parts[0] = _BBBBH.pack(0x08, 0x01, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFF80:
            raise unknown_flags()
        pos += 2
        queue: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            queue = buf[start:pos]
        alternate_exchange: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            alternate_exchange = buf[start:pos]
        arguments: Map | None = None
        if flags & 0x40:
            arguments, pos = get_map(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(
            queue,
            alternate_exchange,
            flags & 0x4 != 0,
            flags & 0x8 != 0,
            flags & 0x10 != 0,
            flags & 0x20 != 0,
            arguments,
        )


@frozen
class QueueDelete(Command):
    """queue.delete: command 0x02 of class 0x08, to the server."""

    NAME: ClassVar[str] = "queue.delete"
    CLASS_CODE: ClassVar[int] = 0x08
    CODE: ClassVar[int] = 0x02
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    queue: bytes | None = None
    if_unused: bool = False
    if_empty: bool = False

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.queue is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.queue))
        if self.if_unused:
            flags |= 0x2
        if self.if_empty:
            flags |= 0x4
        parts[0] = _BBBBH.pack(0x08, 0x02, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF8:
            raise unknown_flags()
        pos += 2
        queue: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            queue = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(queue, flags & 0x2 != 0, flags & 0x4 != 0)


@frozen
class QueuePurge(Command):
    """queue.purge: command 0x03 of class 0x08, to the server."""

    NAME: ClassVar[str] = "queue.purge"
    CLASS_CODE: ClassVar[int] = 0x08
    CODE: ClassVar[int] = 0x03
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    queue: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.queue is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.queue))
        parts[0] = _BBBBH.pack(0x08, 0x03, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        queue: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            queue = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(queue)


@frozen
class QueueQuery(Command):
    """queue.query: command 0x04 of class 0x08, to the server. Results in `QueueQueryResult`."""

    NAME: ClassVar[str] = "queue.query"
    CLASS_CODE: ClassVar[int] = 0x08
    CODE: ClassVar[int] = 0x04
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0801

    queue: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.queue is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.queue))
        parts[0] = _BBBBH.pack(0x08, 0x04, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        queue: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            queue = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(queue)


@frozen
class FileQos(Command):
    """file.qos: command 0x01 of class 0x09, to the server. Answered by file.qos-ok."""

    NAME: ClassVar[str] = "file.qos"
    CLASS_CODE: ClassVar[int] = 0x09
    CODE: ClassVar[int] = 0x01
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    prefetch_size: int | None = None
    prefetch_count: int | None = None
    global_: bool = False

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.prefetch_size is not None:
            flags |= 0x1
            parts.append(UINT32.pack(self.prefetch_size))
        if self.prefetch_count is not None:
            flags |= 0x2
            parts.append(UINT16.pack(self.prefetch_count))
        if self.global_:
            flags |= 0x4
        parts[0] = _BBBBH.pack(0x09, 0x01, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF8:
            raise unknown_flags()
        pos += 2
        prefetch_size: int | None = None
        if flags & 0x1:
            prefetch_size, pos = get_uint32(buf, pos, end)
        prefetch_count: int | None = None
        if flags & 0x2:
            prefetch_count, pos = get_uint16(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(prefetch_size, prefetch_count, flags & 0x4 != 0)


@frozen
class FileQosOk(Command):
    """file.qos-ok: command 0x02 of class 0x09, to the client."""

    NAME: ClassVar[str] = "file.qos-ok"
    CLASS_CODE: ClassVar[int] = 0x09
    CODE: ClassVar[int] = 0x02
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    def encode(self, sync: bool = False) -> bytes:
        return b"\x09\x02\x01\x01\x00\x00" if sync else b"\x09\x02\x01\x00\x00\x00"

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFF:
            raise unknown_flags()
        pos += 2
        if pos != end:
            raise left_over()
        return cls()


@frozen
class FileConsume(Command):
    """file.consume: command 0x03 of class 0x09, to the server. Answered by file.consume-ok."""

    NAME: ClassVar[str] = "file.consume"
    CLASS_CODE: ClassVar[int] = 0x09
    CODE: ClassVar[int] = 0x03
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    queue: bytes | None = None
    consumer_tag: bytes | None = None
    no_local: bool = False
    no_ack: bool = False
    exclusive: bool = False
    no_wait: bool = False
    arguments: Map | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.queue is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.queue))
        if self.consumer_tag is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.consumer_tag))
        if self.no_local:
            flags |= 0x4
        if self.no_ack:
            flags |= 0x8
        if self.exclusive:
            flags |= 0x10
        if self.no_wait:
            flags |= 0x20
        if self.arguments is not None:
            flags |= 0x40
            parts.append(put_map(self.arguments))
        parts[0] = _BBBBH.pack(0x09, 0x03, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFF80:
            raise unknown_flags()
        pos += 2
        queue: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            queue = buf[start:pos]
        consumer_tag: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            consumer_tag = buf[start:pos]
        arguments: Map | None = None
        if flags & 0x40:
            arguments, pos = get_map(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(
            queue,
            consumer_tag,
            flags & 0x4 != 0,
            flags & 0x8 != 0,
            flags & 0x10 != 0,
            flags & 0x20 != 0,
            arguments,
        )


@frozen
class FileConsumeOk(Command):
    """file.consume-ok: command 0x04 of class 0x09, to the client."""

    NAME: ClassVar[str] = "file.consume-ok"
    CLASS_CODE: ClassVar[int] = 0x09
    CODE: ClassVar[int] = 0x04
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    consumer_tag: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.consumer_tag is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.consumer_tag))
        parts[0] = _BBBBH.pack(0x09, 0x04, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        consumer_tag: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            consumer_tag = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(consumer_tag)


@frozen
class FileCancel(Command):
    """file.cancel: command 0x05 of class 0x09, to the server."""

    NAME: ClassVar[str] = "file.cancel"
    CLASS_CODE: ClassVar[int] = 0x09
    CODE: ClassVar[int] = 0x05
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    consumer_tag: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.consumer_tag is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.consumer_tag))
        parts[0] = _BBBBH.pack(0x09, 0x05, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        consumer_tag: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            consumer_tag = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(consumer_tag)


@frozen
class FileOpen(Command):
    """file.open: command 0x06 of class 0x09, to the server or the client. Answered by file.open-ok."""

    NAME: ClassVar[str] = "file.open"
    CLASS_CODE: ClassVar[int] = 0x09
    CODE: ClassVar[int] = 0x06
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    identifier: bytes | None = None
    content_size: int | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.identifier is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.identifier))
        if self.content_size is not None:
            flags |= 0x2
            parts.append(UINT64.pack(self.content_size))
        parts[0] = _BBBBH.pack(0x09, 0x06, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        identifier: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            identifier = buf[start:pos]
        content_size: int | None = None
        if flags & 0x2:
            if pos + 8 > end:
                raise cut_short()
            content_size = UINT64.unpack_from(buf, pos)[0]
            pos += 8
        if pos != end:
            raise left_over()
        return cls(identifier, content_size)


@frozen
class FileOpenOk(Command):
    """file.open-ok: command 0x07 of class 0x09, to the server or the client. Answered by file.stage."""

    NAME: ClassVar[str] = "file.open-ok"
    CLASS_CODE: ClassVar[int] = 0x09
    CODE: ClassVar[int] = 0x07
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    staged_size: int | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.staged_size is not None:
            flags |= 0x1
            parts.append(UINT64.pack(self.staged_size))
        parts[0] = _BBBBH.pack(0x09, 0x07, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        staged_size: int | None = None
        if flags & 0x1:
            if pos + 8 > end:
                raise cut_short()
            staged_size = UINT64.unpack_from(buf, pos)[0]
            pos += 8
        if pos != end:
            raise left_over()
        return cls(staged_size)


@frozen
class FileStage(Command):
    """file.stage: command 0x08 of class 0x09, to the server or the client, header and body may follow."""

    NAME: ClassVar[str] = "file.stage"
    CLASS_CODE: ClassVar[int] = 0x09
    CODE: ClassVar[int] = 0x08
    CONTENT: ClassVar[bool] = True
    RESULT: ClassVar[int] = 0x0000

    def encode(self, sync: bool = False) -> bytes:
        return b"\x09\x08\x01\x01\x00\x00" if sync else b"\x09\x08\x01\x00\x00\x00"

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFF:
            raise unknown_flags()
        pos += 2
        if pos != end:
            raise left_over()
        return cls()


@frozen
class FilePublish(Command):
    """file.publish: command 0x09 of class 0x09, to the server."""

    NAME: ClassVar[str] = "file.publish"
    CLASS_CODE: ClassVar[int] = 0x09
    CODE: ClassVar[int] = 0x09
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    exchange: bytes | None = None
    routing_key: bytes | None = None
    mandatory: bool = False
    immediate: bool = False
    identifier: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.exchange is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.exchange))
        if self.routing_key is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.routing_key))
        if self.mandatory:
            flags |= 0x4
        if self.immediate:
            flags |= 0x8
        if self.identifier is not None:
            flags |= 0x10
            parts.append(put_vbin8(self.identifier))
        parts[0] = _BBBBH.pack(0x09, 0x09, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFE0:
            raise unknown_flags()
        pos += 2
        exchange: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            exchange = buf[start:pos]
        routing_key: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            routing_key = buf[start:pos]
        identifier: bytes | None = None
        if flags & 0x10:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            identifier = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(exchange, routing_key, flags & 0x4 != 0, flags & 0x8 != 0, identifier)


@frozen
class FileReturn(Command):
    """file.return: command 0x0a of class 0x09, to the client, header and body may follow."""

    NAME: ClassVar[str] = "file.return"
    CLASS_CODE: ClassVar[int] = 0x09
    CODE: ClassVar[int] = 0x0A
    CONTENT: ClassVar[bool] = True
    RESULT: ClassVar[int] = 0x0000

    reply_code: int | None = None
    reply_text: bytes | None = None
    exchange: bytes | None = None
    routing_key: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.reply_code is not None:
            flags |= 0x1
            parts.append(UINT16.pack(self.reply_code))
        if self.reply_text is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.reply_text))
        if self.exchange is not None:
            flags |= 0x4
            parts.append(put_vbin8(self.exchange))
        if self.routing_key is not None:
            flags |= 0x8
            parts.append(put_vbin8(self.routing_key))
        parts[0] = _BBBBH.pack(0x09, 0x0A, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF0:
            raise unknown_flags()
        pos += 2
        reply_code: int | None = None
        if flags & 0x1:
            reply_code, pos = get_uint16(buf, pos, end)
        reply_text: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            reply_text = buf[start:pos]
        exchange: bytes | None = None
        if flags & 0x4:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            exchange = buf[start:pos]
        routing_key: bytes | None = None
        if flags & 0x8:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            routing_key = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(reply_code, reply_text, exchange, routing_key)


@frozen
class FileDeliver(Command):
    """file.deliver: command 0x0b of class 0x09, to the client."""

    NAME: ClassVar[str] = "file.deliver"
    CLASS_CODE: ClassVar[int] = 0x09
    CODE: ClassVar[int] = 0x0B
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    consumer_tag: bytes | None = None
    delivery_tag: int | None = None
    redelivered: bool = False
    exchange: bytes | None = None
    routing_key: bytes | None = None
    identifier: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.consumer_tag is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.consumer_tag))
        if self.delivery_tag is not None:
            flags |= 0x2
            parts.append(UINT64.pack(self.delivery_tag))
        if self.redelivered:
            flags |= 0x4
        if self.exchange is not None:
            flags |= 0x8
            parts.append(put_vbin8(self.exchange))
        if self.routing_key is not None:
            flags |= 0x10
            parts.append(put_vbin8(self.routing_key))
        if self.identifier is not None:
            flags |= 0x20
            parts.append(put_vbin8(self.identifier))
        parts[0] = _BBBBH.pack(0x09, 0x0B, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFC0:
            raise unknown_flags()
        pos += 2
        consumer_tag: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            consumer_tag = buf[start:pos]
        delivery_tag: int | None = None
        if flags & 0x2:
            if pos + 8 > end:
                raise cut_short()
            delivery_tag = UINT64.unpack_from(buf, pos)[0]
            pos += 8
        exchange: bytes | None = None
        if flags & 0x8:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            exchange = buf[start:pos]
        routing_key: bytes | None = None
        if flags & 0x10:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            routing_key = buf[start:pos]
        identifier: bytes | None = None
        if flags & 0x20:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            identifier = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(consumer_tag, delivery_tag, flags & 0x4 != 0, exchange, routing_key, identifier)


@frozen
class FileAck(Command):
    """file.ack: command 0x0c of class 0x09, to the server."""

    NAME: ClassVar[str] = "file.ack"
    CLASS_CODE: ClassVar[int] = 0x09
    CODE: ClassVar[int] = 0x0C
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    delivery_tag: int | None = None
    multiple: bool = False

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.delivery_tag is not None:
            flags |= 0x1
            parts.append(UINT64.pack(self.delivery_tag))
        if self.multiple:
            flags |= 0x2
        parts[0] = _BBBBH.pack(0x09, 0x0C, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        delivery_tag: int | None = None
        if flags & 0x1:
            if pos + 8 > end:
                raise cut_short()
            delivery_tag = UINT64.unpack_from(buf, pos)[0]
            pos += 8
        if pos != end:
            raise left_over()
        return cls(delivery_tag, flags & 0x2 != 0)


@frozen
class FileReject(Command):
    """file.reject: command 0x0d of class 0x09, to the server."""

    NAME: ClassVar[str] = "file.reject"
    CLASS_CODE: ClassVar[int] = 0x09
    CODE: ClassVar[int] = 0x0D
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    delivery_tag: int | None = None
    requeue: bool = False

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.delivery_tag is not None:
            flags |= 0x1
            parts.append(UINT64.pack(self.delivery_tag))
        if self.requeue:
            flags |= 0x2
        parts[0] = _BBBBH.pack(0x09, 0x0D, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFC:
            raise unknown_flags()
        pos += 2
        delivery_tag: int | None = None
        if flags & 0x1:
            if pos + 8 > end:
                raise cut_short()
            delivery_tag = UINT64.unpack_from(buf, pos)[0]
            pos += 8
        if pos != end:
            raise left_over()
        return cls(delivery_tag, flags & 0x2 != 0)


@frozen
class StreamQos(Command):
    """stream.qos: command 0x01 of class 0x0a, to the server. Answered by stream.qos-ok."""

    NAME: ClassVar[str] = "stream.qos"
    CLASS_CODE: ClassVar[int] = 0x0A
    CODE: ClassVar[int] = 0x01
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    prefetch_size: int | None = None
    prefetch_count: int | None = None
    consume_rate: int | None = None
    global_: bool = False

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.prefetch_size is not None:
            flags |= 0x1
            parts.append(UINT32.pack(self.prefetch_size))
        if self.prefetch_count is not None:
            flags |= 0x2
            parts.append(UINT16.pack(self.prefetch_count))
        if self.consume_rate is not None:
            flags |= 0x4
            parts.append(UINT32.pack(self.consume_rate))
        if self.global_:
            flags |= 0x8
        parts[0] = _BBBBH.pack(0x0A, 0x01, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF0:
            raise unknown_flags()
        pos += 2
        prefetch_size: int | None = None
        if flags & 0x1:
            prefetch_size, pos = get_uint32(buf, pos, end)
        prefetch_count: int | None = None
        if flags & 0x2:
            prefetch_count, pos = get_uint16(buf, pos, end)
        consume_rate: int | None = None
        if flags & 0x4:
            consume_rate, pos = get_uint32(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(prefetch_size, prefetch_count, consume_rate, flags & 0x8 != 0)


@frozen
class StreamQosOk(Command):
    """stream.qos-ok: command 0x02 of class 0x0a, to the client."""

    NAME: ClassVar[str] = "stream.qos-ok"
    CLASS_CODE: ClassVar[int] = 0x0A
    CODE: ClassVar[int] = 0x02
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    def encode(self, sync: bool = False) -> bytes:
        return b"\x0a\x02\x01\x01\x00\x00" if sync else b"\x0a\x02\x01\x00\x00\x00"

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFF:
            raise unknown_flags()
        pos += 2
        if pos != end:
            raise left_over()
        return cls()


@frozen
class StreamConsume(Command):
    """stream.consume: command 0x03 of class 0x0a, to the server. Answered by stream.consume-ok."""

    NAME: ClassVar[str] = "stream.consume"
    CLASS_CODE: ClassVar[int] = 0x0A
    CODE: ClassVar[int] = 0x03
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    queue: bytes | None = None
    consumer_tag: bytes | None = None
    no_local: bool = False
    exclusive: bool = False
    no_wait: bool = False
    arguments: Map | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.queue is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.queue))
        if self.consumer_tag is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.consumer_tag))
        if self.no_local:
            flags |= 0x4
        if self.exclusive:
            flags |= 0x8
        if self.no_wait:
            flags |= 0x10
        if self.arguments is not None:
            flags |= 0x20
            parts.append(put_map(self.arguments))
        parts[0] = _BBBBH.pack(0x0A, 0x03, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFC0:
            raise unknown_flags()
        pos += 2
        queue: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            queue = buf[start:pos]
        consumer_tag: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            consumer_tag = buf[start:pos]
        arguments: Map | None = None
        if flags & 0x20:
            arguments, pos = get_map(buf, pos, end)
        if pos != end:
            raise left_over()
        return cls(queue, consumer_tag, flags & 0x4 != 0, flags & 0x8 != 0, flags & 0x10 != 0, arguments)


@frozen
class StreamConsumeOk(Command):
    """stream.consume-ok: command 0x04 of class 0x0a, to the client."""

    NAME: ClassVar[str] = "stream.consume-ok"
    CLASS_CODE: ClassVar[int] = 0x0A
    CODE: ClassVar[int] = 0x04
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    consumer_tag: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.consumer_tag is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.consumer_tag))
        parts[0] = _BBBBH.pack(0x0A, 0x04, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        consumer_tag: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            consumer_tag = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(consumer_tag)


@frozen
class StreamCancel(Command):
    """stream.cancel: command 0x05 of class 0x0a, to the server."""

    NAME: ClassVar[str] = "stream.cancel"
    CLASS_CODE: ClassVar[int] = 0x0A
    CODE: ClassVar[int] = 0x05
    CONTENT: ClassVar[bool] = False
    RESULT: ClassVar[int] = 0x0000

    consumer_tag: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.consumer_tag is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.consumer_tag))
        parts[0] = _BBBBH.pack(0x0A, 0x05, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFFE:
            raise unknown_flags()
        pos += 2
        consumer_tag: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            consumer_tag = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(consumer_tag)


@frozen
class StreamPublish(Command):
    """stream.publish: command 0x06 of class 0x0a, to the server, header and body may follow."""

    NAME: ClassVar[str] = "stream.publish"
    CLASS_CODE: ClassVar[int] = 0x0A
    CODE: ClassVar[int] = 0x06
    CONTENT: ClassVar[bool] = True
    RESULT: ClassVar[int] = 0x0000

    exchange: bytes | None = None
    routing_key: bytes | None = None
    mandatory: bool = False
    immediate: bool = False

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.exchange is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.exchange))
        if self.routing_key is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.routing_key))
        if self.mandatory:
            flags |= 0x4
        if self.immediate:
            flags |= 0x8
        parts[0] = _BBBBH.pack(0x0A, 0x06, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF0:
            raise unknown_flags()
        pos += 2
        exchange: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            exchange = buf[start:pos]
        routing_key: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            routing_key = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(exchange, routing_key, flags & 0x4 != 0, flags & 0x8 != 0)


@frozen
class StreamReturn(Command):
    """stream.return: command 0x07 of class 0x0a, to the client, header and body may follow."""

    NAME: ClassVar[str] = "stream.return"
    CLASS_CODE: ClassVar[int] = 0x0A
    CODE: ClassVar[int] = 0x07
    CONTENT: ClassVar[bool] = True
    RESULT: ClassVar[int] = 0x0000

    reply_code: int | None = None
    reply_text: bytes | None = None
    exchange: bytes | None = None
    routing_key: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.reply_code is not None:
            flags |= 0x1
            parts.append(UINT16.pack(self.reply_code))
        if self.reply_text is not None:
            flags |= 0x2
            parts.append(put_vbin8(self.reply_text))
        if self.exchange is not None:
            flags |= 0x4
            parts.append(put_vbin8(self.exchange))
        if self.routing_key is not None:
            flags |= 0x8
            parts.append(put_vbin8(self.routing_key))
        parts[0] = _BBBBH.pack(0x0A, 0x07, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF0:
            raise unknown_flags()
        pos += 2
        reply_code: int | None = None
        if flags & 0x1:
            reply_code, pos = get_uint16(buf, pos, end)
        reply_text: bytes | None = None
        if flags & 0x2:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            reply_text = buf[start:pos]
        exchange: bytes | None = None
        if flags & 0x4:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            exchange = buf[start:pos]
        routing_key: bytes | None = None
        if flags & 0x8:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            routing_key = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(reply_code, reply_text, exchange, routing_key)


@frozen
class StreamDeliver(Command):
    """stream.deliver: command 0x08 of class 0x0a, to the client, header and body may follow."""

    NAME: ClassVar[str] = "stream.deliver"
    CLASS_CODE: ClassVar[int] = 0x0A
    CODE: ClassVar[int] = 0x08
    CONTENT: ClassVar[bool] = True
    RESULT: ClassVar[int] = 0x0000

    consumer_tag: bytes | None = None
    delivery_tag: int | None = None
    exchange: bytes | None = None
    queue: bytes | None = None

    def encode(self, sync: bool = False) -> bytes:
        flags = 0
        parts = [b""]
        if self.consumer_tag is not None:
            flags |= 0x1
            parts.append(put_vbin8(self.consumer_tag))
        if self.delivery_tag is not None:
            flags |= 0x2
            parts.append(UINT64.pack(self.delivery_tag))
        if self.exchange is not None:
            flags |= 0x4
            parts.append(put_vbin8(self.exchange))
        if self.queue is not None:
            flags |= 0x8
            parts.append(put_vbin8(self.queue))
        parts[0] = _BBBBH.pack(0x0A, 0x08, 1, sync, flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, buf: bytes, pos: int, end: int) -> Self:
        if pos + 2 > end:
            raise cut_short()
        flags = buf[pos] | buf[pos + 1] << 8
        if flags & 0xFFF0:
            raise unknown_flags()
        pos += 2
        consumer_tag: bytes | None = None
        if flags & 0x1:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            consumer_tag = buf[start:pos]
        delivery_tag: int | None = None
        if flags & 0x2:
            if pos + 8 > end:
                raise cut_short()
            delivery_tag = UINT64.unpack_from(buf, pos)[0]
            pos += 8
        exchange: bytes | None = None
        if flags & 0x4:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            exchange = buf[start:pos]
        queue: bytes | None = None
        if flags & 0x8:
            if pos >= end:
                raise cut_short()
            start = pos + 1
            pos = start + buf[pos]
            if pos > end:
                raise cut_short()
            queue = buf[start:pos]
        if pos != end:
            raise left_over()
        return cls(consumer_tag, delivery_tag, exchange, queue)


#: Every control by ``CLASS_CODE << 8 | CODE``.
CONTROLS: Final[dict[int, type[Control]]] = {
    0x0101: ConnectionStart,
    0x0102: ConnectionStartOk,
    0x0103: ConnectionSecure,
    0x0104: ConnectionSecureOk,
    0x0105: ConnectionTune,
    0x0106: ConnectionTuneOk,
    0x0107: ConnectionOpen,
    0x0108: ConnectionOpenOk,
    0x0109: ConnectionRedirect,
    0x010A: ConnectionHeartbeat,
    0x010B: ConnectionClose,
    0x010C: ConnectionCloseOk,
    0x0201: SessionAttach,
    0x0202: SessionAttached,
    0x0203: SessionDetach,
    0x0204: SessionDetached,
    0x0205: SessionRequestTimeout,
    0x0206: SessionTimeout,
    0x0207: SessionCommandPoint,
    0x0208: SessionExpected,
    0x0209: SessionConfirmed,
    0x020A: SessionCompleted,
    0x020B: SessionKnownCompleted,
    0x020C: SessionFlush,
    0x020D: SessionGap,
}


#: Every command by ``CLASS_CODE << 8 | CODE``.
COMMANDS: Final[dict[int, type[Command]]] = {
    0x0301: ExecutionSync,
    0x0302: ExecutionResult,
    0x0303: ExecutionException,
    0x0401: MessageTransfer,
    0x0402: MessageAccept,
    0x0403: MessageReject,
    0x0404: MessageRelease,
    0x0405: MessageAcquire,
    0x0406: MessageResume,
    0x0407: MessageSubscribe,
    0x0408: MessageCancel,
    0x0409: MessageSetFlowMode,
    0x040A: MessageFlow,
    0x040B: MessageFlush,
    0x040C: MessageStop,
    0x0501: TxSelect,
    0x0502: TxCommit,
    0x0503: TxRollback,
    0x0601: DtxSelect,
    0x0602: DtxStart,
    0x0603: DtxEnd,
    0x0604: DtxCommit,
    0x0605: DtxForget,
    0x0606: DtxGetTimeout,
    0x0607: DtxPrepare,
    0x0608: DtxRecover,
    0x0609: DtxRollback,
    0x060A: DtxSetTimeout,
    0x0701: ExchangeDeclare,
    0x0702: ExchangeDelete,
    0x0703: ExchangeQuery,
    0x0704: ExchangeBind,
    0x0705: ExchangeUnbind,
    0x0706: ExchangeBound,
    0x0801: QueueDeclare,
    0x0802: QueueDelete,
    0x0803: QueuePurge,
    0x0804: QueueQuery,
    0x0901: FileQos,
    0x0902: FileQosOk,
    0x0903: FileConsume,
    0x0904: FileConsumeOk,
    0x0905: FileCancel,
    0x0906: FileOpen,
    0x0907: FileOpenOk,
    0x0908: FileStage,
    0x0909: FilePublish,
    0x090A: FileReturn,
    0x090B: FileDeliver,
    0x090C: FileAck,
    0x090D: FileReject,
    0x0A01: StreamQos,
    0x0A02: StreamQosOk,
    0x0A03: StreamConsume,
    0x0A04: StreamConsumeOk,
    0x0A05: StreamCancel,
    0x0A06: StreamPublish,
    0x0A07: StreamReturn,
    0x0A08: StreamDeliver,
}


#: Every struct that has a code by ``CLASS_CODE << 8 | CODE``.
STRUCTS: Final[dict[int, type[Struct]]] = {
    0x0401: DeliveryProperties,
    0x0402: FragmentProperties,
    0x0403: MessageProperties,
    0x0404: Acquired,
    0x0405: MessageResumeResult,
    0x0601: XaResult,
    0x0602: GetTimeoutResult,
    0x0603: RecoverResult,
    0x0604: Xid,
    0x0701: ExchangeQueryResult,
    0x0702: ExchangeBoundResult,
    0x0801: QueueQueryResult,
    0x0901: FileProperties,
    0x0A01: StreamProperties,
}
