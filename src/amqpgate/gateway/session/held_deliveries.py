"""Deliveries that wait here on one channel, and which ones its client has; `stops` says why they wait."""

from __future__ import annotations

import attrs

from amqpgate.datapath.unacked import Unacked


@attrs.define
class HeldDelivery:
    """One message, or as much of it as has come."""

    tag: str
    number: int
    #: The broker counts it as acknowledged. Also where that is not known: then it is never dropped.
    is_acked: bool
    frames: bytearray = attrs.field(factory=bytearray)


@attrs.define
class HeldDeliveries:
    """One channel."""

    #: What the client has, and has not acknowledged.
    out: Unacked
    #: Deliveries that it may have so; 0: any number.
    limit: int = 0
    #: The limit may be the connection's.
    is_limited: bool = False
    #: The client wants no deliveries.
    is_off: bool = False
    kept: list[HeldDelivery] = attrs.field(factory=list)
    #: The content that comes next belongs to the last one of them.
    is_under_way: bool = False
    #: The client has asked for more, and the broker is still recovering.
    is_ending: bool = False
    #: The broker has it again, or will have: what comes of it is dropped.
    is_dropping: bool = False
    #: What may pass waits for the end of the message that is on its way to the client.
    is_due: bool = False

    def count(self, *, transacts: bool) -> int:
        """How many the client has, as far as that is known; in a transaction those count that it acked."""
        count = self.out.count
        if count is None:
            count = sum(end - first for first, end in self.out.stretches)
        return count + ((self.out.uncommitted or 0) if transacts else 0)

    def top(self) -> int | None:
        """The highest tag that the client has not acknowledged; 0: there is none. None: that is not known."""
        if self.out.stretches:
            return self.out.stretches[-1][1] - 1
        return 0 if self.out.blurred == 0 and not self.out.is_lost else None

    @property
    def waiting(self) -> list[HeldDelivery]:
        """Of what was kept, that which the client is to acknowledge."""
        return [one for one in self.kept if not one.is_acked]
