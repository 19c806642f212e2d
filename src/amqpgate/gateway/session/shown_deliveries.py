"""Deliveries that the client of one channel has and has not acknowledged, in transactions too."""

from __future__ import annotations

import attrs

from amqpgate.datapath.unacked import Unacked
from amqpgate.values import define


@define
class ShownDeliveries:
    """One channel."""

    #: What the client has, and has not acknowledged.
    unacked: Unacked
    #: The same after a tx.rollback: as it was when the transaction began, and what was delivered since. None:
    #: there are no transactions, or it is not known that well.
    begun: Unacked | None = None

    def count(self, *, transacts: bool) -> int:
        """How many, as far as that is known; in a transaction those count that were acknowledged in it."""
        unacked = self.unacked
        count = unacked.count
        if count is None:
            count = sum(end - first for first, end in unacked.stretches)
        return count + ((unacked.uncommitted or 0) if transacts else 0)

    def delivered(self, tag: int) -> None:
        """One that the client has to acknowledge goes to it."""
        self.unacked.delivered(tag)
        if self.begun is not None:
            self.begun.delivered(tag)

    def begin_transaction(self) -> None:
        """What was acknowledged until now stays so."""
        self.unacked.committed()
        self.begun = attrs.evolve(self.unacked, stretches=list(self.unacked.stretches))

    def join_transaction(self, uncommitted: int | None) -> None:
        """One is under way, in which so many were acknowledged."""
        if uncommitted == 0:
            self.begin_transaction()
        else:
            self.unacked = attrs.evolve(self.unacked, uncommitted=uncommitted)

    def roll_back(self) -> None:
        """What was acknowledged since the transaction began is due again."""
        if self.begun is None:
            self.unacked.rolled_back()
        else:
            self.unacked = self.begun
            self.begin_transaction()

    def recover(self) -> None:
        """The broker has taken back all that was delivered and not acknowledged."""
        self.unacked.recovered()
        self.begun = None

    def top(self) -> int | None:
        """The highest tag that the client has not acknowledged; 0: there is none. None: that is not known."""
        if self.unacked.stretches:
            return self.unacked.stretches[-1][1] - 1
        return 0 if self.unacked.blurred == 0 and not self.unacked.is_lost else None
