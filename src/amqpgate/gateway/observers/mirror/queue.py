"""What waits for a mirror: bounded in bytes, and nobody waits for it to have room."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import attrs

from amqpgate.telemetry.mirrors import MirrorAccount, Reason

#: Bytes that a waiting message counts for beyond its text, so that small ones are bounded, too: objects and
#: their heads, 280 to 310 as measured with `tracemalloc`, and what an allocator adds.
OVERHEAD = 512


@attrs.frozen(eq=False)
class MirroredMessage:
    """A publish as the primary broker gets it, for now without its body."""

    exchange: str
    routing_key: str
    #: Payload of its content header.
    header: bytes
    body_size: int
    #: The property user-id.
    user: str | None
    body: bytearray = attrs.field(factory=bytearray, init=False)

    @property
    def cost(self) -> int:
        """Bytes that it counts for while it is held."""
        return OVERHEAD + len(self.header) + len(self.exchange) + len(self.routing_key) + len(self.body)


@attrs.define(eq=False)
class MirrorQueue:
    """Messages for one mirror. Room is taken as the body comes, and given back by who sent it."""

    #: Bytes.
    most: int
    account: MirrorAccount
    #: Called when a message is there.
    arrived: Callable[[], None]
    held: int = attrs.field(default=0, init=False)
    #: While set, nothing gets in.
    closed: Reason | None = attrs.field(default=None, init=False)
    _messages: deque[MirroredMessage] = attrs.field(factory=deque, init=False)

    def __len__(self) -> int:
        return len(self._messages)

    def reserve(self, message: MirroredMessage) -> bool:
        """Make room for a message whose body is to come. False: there is none, and that is counted.

        One that cannot fit now is not begun; but the size that its header declares takes no room from others.
        """
        if self.closed is not None or self.held + message.cost + message.body_size > self.most:
            self.account.dropped(self.closed or "full")
            return False
        self._hold(message.cost)
        return True

    def extend(self, message: MirroredMessage, piece: bytes | memoryview) -> bool:
        """More of its body has come. False: there is no room for that any more."""
        if self.held + len(piece) > self.most:
            return False
        message.body.extend(piece)
        self._hold(len(piece))
        return True

    def _hold(self, byte_count: int) -> None:
        self.held += byte_count
        self.account.held(byte_count)

    def release(self, message: MirroredMessage) -> None:
        """Give its room back."""
        self._hold(-message.cost)

    def put(self, message: MirroredMessage) -> None:
        """The message, for which room was made, is whole."""
        if self.closed is not None:
            self.drop(message, self.closed)
            return
        self._messages.append(message)
        self.arrived()

    def take(self) -> MirroredMessage | None:
        """The oldest. Its room is still taken."""
        return self._messages.popleft() if self._messages else None

    def drop(self, message: MirroredMessage, reason: Reason) -> None:
        """It will not be sent."""
        self.release(message)
        self.account.dropped(reason)

    def close(self, reason: Reason) -> None:
        """Drop what is there, and what comes from now on."""
        self.closed = reason
        while (message := self.take()) is not None:
            self.drop(message, reason)

    def open(self) -> None:
        """Take messages again."""
        self.closed = None
