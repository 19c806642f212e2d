"""Credit of one subscription: how much may still be sent to the client (class "message", flow control).

There are two counters, messages and bytes, and a message needs credit in both. It costs one message, and the
bytes of its header and its body. `INFINITE` stays until credit is taken away.

=========  ===============================================================================
mode       what a message costs
=========  ===============================================================================
window     it counts against what was granted until the client has completed its transfer
credit     it is gone
=========  ===============================================================================
"""

from __future__ import annotations

from typing import Final, TypeAlias

from attrs import define

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated.v0_10 import CreditUnit, FlowMode

#: No limit, and so is a value that is absent.
INFINITE: Final = 0xFFFF_FFFF

#: Messages and bytes that come back with the completion of a transfer.
Spent: TypeAlias = tuple[int, int]


@define(eq=False)
class _Counter:
    granted: int = 0
    #: Of what is granted, by transfers in window mode that are not complete.
    used: int = 0

    @property
    def is_infinite(self) -> bool:
        return self.granted == INFINITE

    def grant(self, value: int) -> None:
        infinite = INFINITE in (self.granted, value)
        self.granted = INFINITE if infinite else min(self.granted + value, INFINITE - 1)

    def left(self, *, is_window: bool) -> int:
        if self.is_infinite:
            return INFINITE
        return self.granted - (self.used if is_window else 0)

    def spend(self, cost: int, *, is_window: bool) -> int:
        """How much of it comes back."""
        if self.is_infinite:
            return 0
        if is_window:
            self.used += cost
            return cost
        self.granted -= cost
        return 0

    def restore(self, cost: int) -> None:
        self.used -= cost

    def clear(self) -> None:
        self.granted = 0


class Credit:
    """See the module. There is none at first, and the mode is window."""

    __slots__ = ("_bytes", "_is_window", "_messages")

    def __init__(self) -> None:
        self._is_window = True
        self._messages = _Counter()
        self._bytes = _Counter()

    @property
    def messages(self) -> int:
        """How many messages may be sent; `INFINITE`, or 0 or less if none may."""
        return self._messages.left(is_window=self._is_window)

    @property
    def bytes(self) -> int:
        """How many bytes may be sent, in the same way."""
        return self._bytes.left(is_window=self._is_window)

    @property
    def is_there(self) -> bool:
        """Whether anything may be sent: both counters are above 0."""
        return self.messages > 0 and self.bytes > 0

    @property
    def counts_bytes(self) -> bool:
        """Whether it matters how large a message is."""
        return not self._bytes.is_infinite

    def fits(self, size: int) -> bool:
        """Whether a message of so many bytes may be sent."""
        return self.messages > 0 and self.bytes >= max(size, 1)

    def set_mode(self, mode: int | None) -> None:
        """message.set-flow-mode. What was granted stays, as with qpidd. Violation 542 for an unknown mode."""
        if mode not in (None, FlowMode.CREDIT, FlowMode.WINDOW):
            raise ProtocolViolation(542, f"flow mode {mode}")
        # The value of "credit" is 0, and so is that of a field that is absent.
        self._is_window = mode == FlowMode.WINDOW

    def grant(self, unit: int | None, value: int | None) -> None:
        """message.flow. Violation 542 for an unknown unit."""
        if unit not in (None, CreditUnit.MESSAGE, CreditUnit.BYTE):
            raise ProtocolViolation(542, f"unit {unit} of credit")
        counter = self._bytes if unit == CreditUnit.BYTE else self._messages
        counter.grant(INFINITE if value is None else value)

    def clear(self) -> None:
        """message.stop, and the end of message.flush: no credit. What is not complete still counts against a
        window that is granted later.
        """
        self._messages.clear()
        self._bytes.clear()

    def spend(self, size: int) -> Spent | None:
        """A message of so many bytes is sent. What `restore` is to be told once it is complete, None if that
        changes nothing.
        """
        messages = self._messages.spend(1, is_window=self._is_window)
        count = self._bytes.spend(size, is_window=self._is_window)
        return (messages, count) if messages or count else None

    def restore(self, spent: Spent) -> None:
        """The transfer that it was spent on is complete."""
        messages, count = spent
        self._messages.restore(messages)
        self._bytes.restore(count)
