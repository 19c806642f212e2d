"""What becomes of a publish on its way, in plain Python: another method, and a header with other properties.

Bytes are put in the place of bytes; what is not named stays as it came. The compiled scanner (``_scan``) has
``Rewrite`` with the same meaning.
"""

from __future__ import annotations

from typing import Final

from amqpgate.datapath.framing import CONTENT, CONTENT_MIN
from amqpgate.datapath.properties import NO_PROPERTIES, PROPERTIES, are_properties
from amqpgate.protocol.frames import FRAME_HEADER, FRAME_METHOD, encode_frame
from amqpgate.wire.generated import v0_9_1 as amqp

#: Where the headers are among the properties.
_HEADERS_PLACE: Final = 2
#: Bytes of a trace context, ``00-TRACE-SPAN-FLAGS``, and of the number of its trace.
_CONTEXT: Final = 55
_TRACE: Final = 16
#: Where a delivery's tag is in its method, but for the length of the consumer's; its size, with redelivered.
_TAG: Final = 5
_TAG_SIZE: Final = 9
#: Beyond what any header has that has passed.
_MOST: Final = 1 << 30


class Rewrite:
    """What becomes of the publishes of a flow."""

    __slots__ = ("drops", "entries", "grows", "method", "sets", "stamps")

    def __init__(
        self, method: bytes, sets: tuple[bytes | None, ...], drops: int, entries: bytes, stamps: int = 0
    ) -> None:
        """``method`` is the payload of its frame. ``sets`` are the values of properties, encoded, from the
        highest flag on; None: as it is. ``drops`` are the flags of those that are left out, where there are
        any. ``entries`` come behind the headers that there are, encoded.

        ``stamps``: only samples are changed, while one message in so many is one. The entries end in a trace
        context, which gets a trace and a span of its own each time.
        """
        if stamps and len(entries) < _CONTEXT:
            raise ValueError("what is stamped ends in a trace context")
        self.stamps = stamps
        self.method, self.sets, self.drops, self.entries = method, sets, drops, entries
        #: Bytes that a header gains, at most.
        self.grows = 4 + len(entries) + sum(len(value) for value in sets if value is not None)

    def header(self, payload: bytes, most: int) -> bytes | None:
        """What the payload of a content header becomes; None: that is not sure, or may not fit ``most``
        bytes."""
        if len(payload) < CONTENT_MIN or len(payload) + self.grows > most or len(self.method) > most:
            return None
        class_id, weight, _body = CONTENT.unpack_from(payload)
        flags = int.from_bytes(payload[CONTENT.size : CONTENT_MIN], "big")
        if class_id != amqp.BasicPublish.CLASS_ID or weight or flags & NO_PROPERTIES:
            return None
        if not are_properties(payload, CONTENT.size, len(payload)):
            return None
        pieces: list[bytes] = []
        at, told = CONTENT_MIN, 0
        for place in range(len(PROPERTIES)):
            flag = 0x8000 >> place
            there = b""
            if flags & flag:
                end = _value_end(payload, at, PROPERTIES[place])
                there, at = payload[at:end], end
            value = self.sets[place]
            if value is not None:
                there = value
            elif place == _HEADERS_PLACE and self.entries:
                table = there[4:] + self.entries
                there = len(table).to_bytes(4, "big") + table
            elif not flags & flag or self.drops & flag:
                continue
            told |= flag
            pieces.append(there)
        return payload[: CONTENT.size] + told.to_bytes(2, "big") + b"".join(pieces)

    def passed(self, header: bytes, ids: bytes) -> bytes:
        """What the payload of a content header has become whose message has passed; ``ids``: the numbers that
        it was stamped with, if it was."""
        made = self.header(header, _MOST)
        if made is None or (ids and not self.stamps):
            raise ValueError("no header that is rewritten")
        return self.stamped(made, ids) if ids else made

    def stamped(self, header: bytes, ids: bytes) -> bytes:
        """What ``header`` has made, with the numbers of a trace, of 16 bytes, and of a span, of 8."""
        # Behind it are properties that nobody has changed.
        at = header.index(self.entries) + len(self.entries) - _CONTEXT
        trace, span = ids[:_TRACE].hex().encode(), ids[_TRACE:].hex().encode()
        return header[: at + 3] + trace + b"-" + span + header[at + 3 + 2 * len(ids) + 1 :]

    def frames(self, channel: int, header: bytes, delivery: bytes = b"") -> bytes:
        """The method, and the header that ``header`` has made. ``delivery`` is the method's frame, whose
        delivery tag and redelivered stay."""
        method = self.method
        if delivery:
            tag = _TAG + delivery[7 + _TAG - 1]
            method = method[:tag] + delivery[7 + tag :][:_TAG_SIZE] + method[tag + _TAG_SIZE :]
        return encode_frame(FRAME_METHOD, channel, method) + encode_frame(FRAME_HEADER, channel, header)


def _value_end(payload: bytes, at: int, size: int) -> int:
    """Where the property at ``at`` ends; it is well-formed."""
    if size >= 0:
        return at + size
    return at + 1 + payload[at] if size == -1 else at + 4 + int.from_bytes(payload[at : at + 4], "big")
