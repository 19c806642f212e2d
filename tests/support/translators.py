"""A protocol of this suite's own, and translators for it: what the seam below the data path is tried with.

A peer says records: the bytes of the payload (four), a kind, a channel, the payload. Kinds 1, 2, 3 and 8 are
AMQP's frames; a body may be cut anywhere into records, and is: what came is compared by `messages`.
"""

from __future__ import annotations

from collections import deque
from struct import Struct
from typing import Final

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import (
    FRAME_BODY,
    FRAME_HEAD,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    body_frames,
    encode_frame,
    method_frame,
)
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp

RECORD: Final = Struct(">IBH")

#: From a translator: so many methods have come. To one: so many records may be sent, or acks are to be made.
TICK, CREDIT, EXPAND = 20, 21, 22
#: A violation.
BROKEN = 99
#: A fault of the translator.
FAULT = 98

_ACK = method_frame(1, amqp.BasicAck(1))

Said = list[tuple[int, int, bytes]]


def record(kind: int, channel: int = 0, payload: bytes = b"") -> bytes:
    return RECORD.pack(len(payload), kind, channel) + payload


def records(frames: bytes, piece: int = 1000) -> bytes:
    """Canonical frames as a peer says them, bodies in pieces."""
    said = bytearray()
    for kind, channel, payload in cut(frames):
        step = piece if kind == FRAME_BODY else len(payload)
        for at in range(0, len(payload) or 1, step or 1):
            said += record(kind, channel, payload[at : at + step])
    return bytes(said)


def cut(frames: bytes) -> Said:
    """Whole canonical frames."""
    found = []
    at = 0
    while at < len(frames):
        kind, channel, size = FRAME_HEAD.unpack_from(frames, at)
        end = at + size + FRAME_OVERHEAD
        assert end <= len(frames)
        assert frames[end - 1] == 0xCE
        found.append((kind, channel, frames[at + FRAME_HEAD.size : end - 1]))
        at = end
    return found


def cut_records(data: bytes) -> Said:
    """Whole records."""
    found = []
    at = 0
    while at < len(data):
        size, kind, channel = RECORD.unpack_from(data, at)
        end = at + RECORD.size + size
        assert end <= len(data)
        found.append((kind, channel, data[at + RECORD.size : end]))
        at = end
    return found


def messages(said: Said) -> Said:
    """Without heartbeats, and with the pieces of a body as one."""
    found: Said = []
    for kind, channel, payload in said:
        if kind == FRAME_BODY and found and found[-1][:2] == (kind, channel):
            found[-1] = kind, channel, found[-1][2] + payload
        elif kind != FRAME_HEARTBEAT:
            found.append((kind, channel, payload))
    return found


class Reframing:
    """Records to frames and back, at once."""

    def __init__(self, *, piece: int = 1000, frame_max: int = 4096) -> None:
        self.piece, self.frame_max = piece, frame_max
        #: What it was told, beyond bytes.
        self.events: list[str] = []
        self._from_peer = bytearray()
        self._frames = bytearray()
        self._for_peer = bytearray()

    @property
    def wants_bytes(self) -> bool:
        return True

    @property
    def wants_frames(self) -> bool:
        return len(self._frames) < 16 * 1024

    @property
    def has_frames(self) -> bool:
        return bool(self._frames)

    def from_peer(self, data: bytes) -> None:
        assert "peer ended" not in self.events
        self._from_peer += data
        self.hear_records()

    def hear_records(self) -> None:
        while self.hears and len(self._from_peer) >= RECORD.size:
            size, kind, channel = RECORD.unpack_from(self._from_peer)
            if len(self._from_peer) < RECORD.size + size:
                return
            payload = bytes(self._from_peer[RECORD.size : RECORD.size + size])
            del self._from_peer[: RECORD.size + size]
            self.hear(kind, channel, payload)

    @property
    def hears(self) -> bool:
        """Whether the next record is looked at."""
        return True

    def hear(self, kind: int, channel: int, payload: bytes) -> None:
        if kind == BROKEN:
            raise ProtocolViolation(503, "a broken record")
        if kind == FAULT:
            raise ZeroDivisionError
        if kind == FRAME_BODY:
            self._frames += b"".join(body_frames(channel, payload, self.frame_max))
        else:
            self._frames += encode_frame(kind, channel, payload)

    def peer_ended(self) -> None:
        self.events.append("peer ended")

    def bytes_for_peer(self) -> bytes:
        data = bytes(self._for_peer)
        self._for_peer.clear()
        return data

    def from_gateway(self, frames: bytes) -> None:
        for kind, channel, payload in cut(frames):
            self.say(kind, channel, payload)

    def say(self, kind: int, channel: int, payload: bytes) -> None:
        self._for_peer += records(encode_frame(kind, channel, payload), self.piece)

    def gateway_ended(self) -> None:
        self.events.append("gateway ended")

    def frames_for_gateway(self, limit: int) -> bytes:
        data = bytes(self._frames[:limit])
        del self._frames[:limit]
        return data


class Answering(Reframing):
    """Tells its peer of each method that has come, and answers queue.declare itself.

    It makes acks as they are asked for, however many.
    """

    def __init__(self, *, piece: int = 1000, frame_max: int = 4096) -> None:
        super().__init__(piece=piece, frame_max=frame_max)
        self.heard = self._acks = 0

    @property
    def has_frames(self) -> bool:
        return bool(self._frames or self._acks)

    def hear(self, kind: int, channel: int, payload: bytes) -> None:
        if kind == EXPAND:
            self._acks += int.from_bytes(payload, "big")
            return
        super().hear(kind, channel, payload)
        if kind == FRAME_METHOD:
            self.heard += 1
            self._for_peer += record(TICK, channel, self.heard.to_bytes(4, "big"))

    def say(self, kind: int, channel: int, payload: bytes) -> None:
        if kind == FRAME_METHOD and isinstance(declare := decode_method(payload), amqp.QueueDeclare):
            self._frames += method_frame(channel, amqp.QueueDeclareOk(declare.queue))
        else:
            super().say(kind, channel, payload)

    def frames_for_gateway(self, limit: int) -> bytes:
        while self._acks and len(self._frames) < limit:
            self._frames += _ACK
            self._acks -= 1
        return super().frames_for_gateway(limit)


class Withholding(Reframing):
    """Sends as many records as its peer has given credit for."""

    MOST = 8 * 1024

    def __init__(self, *, piece: int = 1000, frame_max: int = 4096) -> None:
        super().__init__(piece=piece, frame_max=frame_max)
        self.credit = self.kept = 0
        self._waiting: deque[bytes] = deque()

    @property
    def wants_frames(self) -> bool:
        return self.kept < self.MOST

    def hear(self, kind: int, channel: int, payload: bytes) -> None:
        if kind != CREDIT:
            super().hear(kind, channel, payload)
            return
        self.credit += int.from_bytes(payload, "big")
        self._release()

    def say(self, kind: int, channel: int, payload: bytes) -> None:
        if kind == FRAME_HEARTBEAT:
            super().say(kind, channel, payload)
            return
        for one in cut_records(records(encode_frame(kind, channel, payload), self.piece)):
            self._waiting.append(record(*one))
            self.kept += len(self._waiting[-1])
        self._release()

    def _release(self) -> None:
        while self.credit and self._waiting:
            self._for_peer += self._waiting[0]
            self.kept -= len(self._waiting.popleft())
            self.credit -= 1


class Asking(Reframing):
    """Behind a queue.declare of its peer it hears nothing before the gateway has said something."""

    def __init__(self, *, piece: int = 1000, frame_max: int = 4096) -> None:
        super().__init__(piece=piece, frame_max=frame_max)
        self.waits = False

    @property
    def wants_bytes(self) -> bool:
        return not self.waits

    @property
    def hears(self) -> bool:
        return not self.waits

    def hear(self, kind: int, channel: int, payload: bytes) -> None:
        super().hear(kind, channel, payload)
        self.waits = kind == FRAME_METHOD and isinstance(decode_method(payload), amqp.QueueDeclare)

    def say(self, kind: int, channel: int, payload: bytes) -> None:
        super().say(kind, channel, payload)
        if kind != FRAME_HEARTBEAT:
            self.waits = False
            self.hear_records()

    def peer_ended(self) -> None:
        super().peer_ended()
        while self._from_peer:
            self.waits = False
            self.hear_records()
