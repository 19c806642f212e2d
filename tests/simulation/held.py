"""What a model broker keeps: messages that wait, consumers, channels."""

from __future__ import annotations

import attrs

from tests.simulation.entries import Delivery, Message, Source


@attrs.define(eq=False)
class Waiting:
    """A message in a queue."""

    message: Message
    redelivered: bool = False


@attrs.define(eq=False)
class Consumer:
    """Of a channel."""

    tag: str
    queue: str
    no_ack: bool
    prefetch: int
    source: Source
    held: int = 0
    is_over: bool = False

    @property
    def is_full(self) -> bool:
        """Whether it gets nothing for the moment."""
        return bool(self.prefetch) and self.held >= self.prefetch


@attrs.define(eq=False)
class Channel:
    """Of a connection."""

    number: int
    confirms: bool = False
    #: What waits for a commit: publishes, and answers with their tags; None: it has no transactions.
    publishes: list[Message] | None = None
    answers: list[tuple[int, Delivery, str, Consumer | None]] = attrs.field(factory=list)
    published: int = 0
    #: By number.
    unconfirmed: dict[int, Message] = attrs.field(factory=dict)
    prefetch: int = 0
    tag: int = 0
    #: All that was delivered on it, by tag.
    delivered: dict[int, Delivery] = attrs.field(factory=dict)
    consumers: dict[str, Consumer] = attrs.field(factory=dict)
    gets: Source | None = None
    #: By tag: the delivery, and whose it is.
    held: dict[int, tuple[Delivery, Consumer | None]] = attrs.field(factory=dict)
    #: It was closed by this end, and the other one may not know yet.
    is_closing: bool = False
