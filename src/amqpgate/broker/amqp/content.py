"""A method that carries content: method, header, bodies (AMQP 0-9-1, section 4.2.6 "Content Framing").

::

                 method with content           header, size > 0
    METHOD_DUE ───────────────────▶ HEADER_DUE ───────────────▶ BODY_DUE ⟲ body, bytes missing
        ▲                               │                          │
        └───────────────────────────────┴──────────────────────────┘
                header, size = 0               body, no bytes missing

On one channel nothing else may come between; frames of other channels and heartbeats may. What RabbitMQ
3.10 answers, always 505 UNEXPECTED_FRAME with the ids of the method that is under way (0, 0 if none is):

==========  =======================  ==============================================================
due         came                     text
==========  =======================  ==============================================================
method      header, body             expected method frame, got non method frame instead
header      method, body             expected content header for class 60, got non content header ...
header      header, other class      expected content header for class 60, got one for class 50 ...
header      header, weight not 0     as for a method
body        method, header           expected content body, got non content body frame instead
body        more than was declared   (RabbitMQ waits for ever; the same code fits)
==========  =======================  ==============================================================
"""

from __future__ import annotations

from enum import Enum
from struct import Struct
from typing import Final

from attrs import define, field

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.violations import unknown_frame
from amqpgate.wire.codec import ContentHeader, decode_header
from amqpgate.wire.dialects import Dialect
from amqpgate.wire.method import Method

#: class id, weight, body size; at least one word of property flags follows.
_FIXED: Final = Struct(">HHQ")

#: A header frame without this many bytes is no header to RabbitMQ.
_HEADER_MIN: Final = _FIXED.size


class ExpectedContent(Enum):
    """What the next frame on a channel must be."""

    #: A method.
    METHOD = "method"
    #: The content header of the method under way.
    HEADER = "header"
    #: A content body.
    BODY = "body"


@define
class ReceivedContent:
    """The content under way on one channel, in one direction.

    ``method`` is what announced it; None if the whole message is to be dropped when it is complete (the
    channel is closing), and then nothing of it is kept.
    """

    channel: int
    class_id: int
    method_id: int
    method: Method | None
    due: ExpectedContent = ExpectedContent.HEADER
    header: ContentHeader | None = None
    #: Bytes of body that are still to come.
    missing: int = 0
    _body: bytes | bytearray = field(default=b"", repr=False)

    @property
    def held(self) -> int:
        """How many bytes of body are kept."""
        return len(self._body)

    def drop(self) -> None:
        """Keep nothing of this message, now and later; its frames must still come."""
        self.method = None
        self._body = b""

    def add_header(self, payload: bytes, dialect: Dialect, body_max: int) -> bool:
        """Take the header; True if the content is complete.

        Raises 505 for a header that is not this one's, 501 and 541 for one that does not decode, and 406
        (a matter of the channel) for a body of more than ``body_max`` bytes, which is then dropped.
        """
        if self.due is not ExpectedContent.HEADER:
            raise self.unexpected()
        if len(payload) < _HEADER_MIN:
            raise unknown_frame(2, self.channel, payload)
        class_id: int
        weight: int
        class_id, weight, self.missing = _FIXED.unpack_from(payload)
        if weight:
            raise self.unexpected()
        if class_id != self.class_id:
            raise self._violation(
                f"expected content header for class {self.class_id}, got one for class {class_id} instead"
            )
        if self.method is not None:
            try:
                self.header = decode_header(payload, dialect)
            except ProtocolViolation as error:
                # RabbitMQ names no method here: its parser dies where the properties are first looked at.
                raise ProtocolViolation(error.code, error.text, channel=self.channel) from None
        self.due = ExpectedContent.BODY
        if self.missing > body_max and self.method is not None:
            self.drop()
            raise ProtocolViolation(
                406,
                f"message size {self.missing} is larger than configured max size {body_max}",
                class_id=self.class_id,
                method_id=self.method_id,
                channel=self.channel,
            )
        return not self.missing

    def add_body(self, payload: bytes) -> bool:
        """Take one body frame; True if the content is complete. Raises 505."""
        if self.due is not ExpectedContent.BODY:
            raise self.unexpected()
        if len(payload) > self.missing:
            more = len(payload) - self.missing
            raise self._violation(f"content body is {more} octets longer than declared")
        self.missing -= len(payload)
        if self.method is not None:
            if not self._body:
                # A body in one frame, which is most of them, is kept as it came.
                self._body = payload
            else:
                if isinstance(self._body, bytes):
                    self._body = bytearray(self._body)
                self._body += payload
        return not self.missing

    def body(self) -> bytes:
        """The whole body."""
        return bytes(self._body)

    def unexpected(self) -> ProtocolViolation:
        """505 for a frame that is not the one that is due."""
        if self.due is ExpectedContent.HEADER:
            return self._violation(
                f"expected content header for class {self.class_id}, got non content header frame instead"
            )
        return self._violation("expected content body, got non content body frame instead")

    def _violation(self, text: str) -> ProtocolViolation:
        return ProtocolViolation(
            505, text, class_id=self.class_id, method_id=self.method_id, channel=self.channel
        )


def no_content(channel: int) -> ProtocolViolation:
    """505 for a header or body that no method has announced."""
    return ProtocolViolation(505, "expected method frame, got non method frame instead", channel=channel)
