"""The prefetch limit of a whole channel (basic.qos with ``global``)."""

from __future__ import annotations

from attrs import define


@define
class Limiter:
    """Counts as RabbitMQ 3.10 counts, including where that is not obvious.

    When the limit is first set, everything without an ack counts, what came by basic.get too; from then on
    only deliveries count, up as they go out and down as they are settled. No-ack consumers do not add to
    the count, but are stopped by it.
    """

    limit: int = 0
    count: int = 0

    @property
    def is_reached(self) -> bool:
        """Whether no consumer of the channel may have any more."""
        return self.limit != 0 and self.count >= self.limit

    def set(self, limit: int, unsettled: int) -> None:
        """A limit of ``limit`` messages; 0 takes it away. ``unsettled`` messages are without an ack."""
        if not self.limit:
            self.count = unsettled
        self.limit = limit

    def delivered(self) -> None:
        """A message went to a consumer that acks."""
        if self.limit:
            self.count += 1

    def settled(self, count: int) -> None:
        """Deliveries were acked, rejected or requeued."""
        if self.limit and self.count:
            self.count -= count
