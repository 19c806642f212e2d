"""Messages that wait to be written: many at once, as they came. Their content is read when they are
written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self, TypeAlias

from amqpgate.records import Origin
from amqpgate.telemetry.audit.rows import Columns
from amqpgate.values import frozen

#: Of one message: bytes of its body, its properties and headers as JSON, what is recorded of its body, and
#: whether that is less than all.
Content: TypeAlias = "tuple[int, str | None, str | None, bytes | None, bool]"

#: The columns that a message's content fills, in the order of `Content`.
CONTENT = ("body_size", "properties", "headers", "body", "body_cut")


class RecordedKind(Protocol):
    """What messages have in common, and what is recorded of each."""

    @property
    def columns(self) -> Columns:
        """What their events say alike."""

    def read(self, header: bytes, body: bytes) -> Content:
        """What of the payload of a content header, and of the beginning of a body, is recorded."""


@frozen(eq=False)
class WaitingMessages:
    """Messages of one session that passed together. Each is an event."""

    origin: Origin
    #: Epoch seconds.
    time: float
    #: Of each, its kind, the payload of its content header, and the beginning of its body.
    messages: Sequence[tuple[RecordedKind, bytes, bytes]]
    #: What they count in the queue.
    byte_count: int

    @property
    def count(self) -> int:
        """Records."""
        return len(self.messages)

    def halves(self) -> tuple[Self, Self]:
        """The same in two parts."""
        middle, byte_count = len(self.messages) // 2, self.byte_count // 2
        make = type(self)
        return (
            make(self.origin, self.time, self.messages[:middle], byte_count),
            make(self.origin, self.time, self.messages[middle:], self.byte_count - byte_count),
        )
