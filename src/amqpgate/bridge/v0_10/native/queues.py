"""What waits in one direction of a relayed connection: originals, each for its copies.

What has a copy is put into an :class:`OriginalQueue` by the end that has read it, and taken out by the other
end, when the copy comes out of the gateway there. What has no copy goes at once, or behind what it came
behind.

Made to be read; where it was compiled, ``_native`` serves (see ``build``).
"""

from __future__ import annotations

from collections import deque
from typing import Final

from amqpgate.wire.method import Method

#: Bytes that are counted of each assembly that waits, beside its own.
EACH: Final = 64

_MASK: Final = 0xFFFF_FFFF


class Outgoing:
    """Bytes for one peer."""

    __slots__ = ("_parts", "size", "waiting")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        #: Bytes that may go.
        self.size = 0
        #: Bytes that wait for copies.
        self.waiting = 0

    def wait(self, size: int) -> None:
        """So many more bytes wait, or fewer."""
        self.waiting += size

    def put(self, data: bytes) -> None:
        """These come next."""
        self._parts.append(data)
        self.size += len(data)

    def take(self) -> bytes:
        """All of it; it is not given again."""
        if not self._parts:
            return b""
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self.size = 0
        return data


class Original:
    """An assembly, and the payloads of the method frames that are its copies."""

    __slots__ = ("answers", "behind", "code", "command_id", "copies", "data", "header", "size")

    def __init__(
        self,
        data: bytes,
        copies: list[bytes],
        *,
        header: bytes | None = None,
        command_id: int | None = None,
        code: int = 0,
        answers: tuple[Method, ...] = (),
    ) -> None:
        self.data = data
        #: Those that have not come out yet, the next one last.
        self.copies = copies
        #: Of a message the payload of the header frame.
        self.header = header
        #: Of a command, and its class and code.
        self.command_id = command_id
        self.code = code
        #: What its copies are answered with when it is complete.
        self.answers = answers
        #: What came behind it and has no copy.
        self.behind: list[bytes] = []
        #: Bytes of all that.
        self.size = len(data) + EACH

    def follow(self, data: bytes) -> None:
        """It goes behind this one."""
        self.behind.append(data)
        self.size += len(data) + EACH


class OriginalQueue:
    """One direction of one channel."""

    __slots__ = ("_out", "is_dropping", "waiting")

    def __init__(self, out: Outgoing) -> None:
        self._out = out
        self.waiting: deque[Original] = deque()
        #: Its session is over: nothing more of it goes to the peer.
        self.is_dropping = False

    def wait(self, original: Original) -> None:
        """It goes when its copies have come out."""
        if not self.is_dropping:
            self.waiting.append(original)
            self._out.wait(original.size)

    def follow(self, data: bytes) -> None:
        """It goes behind what waits."""
        if self.is_dropping:
            return
        if self.waiting:
            self.waiting[-1].follow(data)
            self._out.wait(len(data) + EACH)
        else:
            self._out.put(data)

    def release(self, data: bytes | None = None) -> None:
        """All copies of the first one have come out; ``data`` is what goes in its place."""
        original = self.waiting.popleft()
        self._out.wait(-original.size)
        if self.is_dropping:
            return
        self._out.put(original.data if data is None else data)
        for one in original.behind:
            self._out.put(one)

    def drop(self) -> Original | None:
        """Its session is over. The first of those that waited."""
        first = self.waiting[0] if self.waiting else None
        self._forget()
        self.is_dropping = True
        return first

    def reopen(self) -> None:
        """Another session begins."""
        self._forget()
        self.is_dropping = False

    def _forget(self) -> None:
        self._out.wait(-sum(original.size for original in self.waiting))
        self.waiting.clear()


class Counter:
    """Numbers of the commands of one direction of one session: serial numbers, from command-point on."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next = 0

    def point(self, command_id: int) -> None:
        """The next command has this one."""
        self._next = command_id & _MASK

    def take(self) -> int:
        """The number of the command that comes now."""
        number = self._next
        self._next = number + 1 & _MASK
        return number
