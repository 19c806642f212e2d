"""Transactions: on channel "main", where the session publishes from then on.

In 0-10 transfers and message.accept belong to a transaction, message.release and message.reject do not:
clients release what they had, whether they had accepted it or not, and then roll back. RabbitMQ forgets with
a rollback what was rejected, too, and the messages would stay with the session for ever. So all three wait
for the end of the transaction:

=========  ==============================================================
commit     accepts, releases, rejects; tx.commit
rollback   tx.rollback; releases and rejects, and tx.commit for them alone
=========  ==============================================================
"""

from __future__ import annotations

from typing import Final, TypeAlias

from amqpgate.bridge.v0_10.channels import ChannelUse
from amqpgate.bridge.v0_10.steps import Call, Part, Steps
from amqpgate.bridge.v0_10.subscriptions import Subscriptions
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.v0_10.sequences import RangeSet, SequenceSet

#: What says that a message is done with.
Settling: TypeAlias = amqp10.MessageAccept | amqp10.MessageRelease | amqp10.MessageReject
_SETTLING: Final[tuple[type[Settling], ...]] = (
    amqp10.MessageAccept,
    amqp10.MessageRelease,
    amqp10.MessageReject,
)


class Transactions:
    """The transactions of one session; once they are selected there always is one."""

    __slots__ = ("_subscriptions", "_waiting", "is_selected")

    def __init__(self, subscriptions: Subscriptions) -> None:
        self.is_selected = False
        self._subscriptions = subscriptions
        #: Ids of transfers that wait for the end of the transaction.
        self._waiting: dict[type[Settling], RangeSet] = {}

    def put_off(self, command: Settling) -> None:
        """What is said of messages waits. Violation 506 if it is of too many ranges of ids."""
        waiting = self._waiting.setdefault(type(command), RangeSet())
        for lower, upper in (command.transfers or SequenceSet()).ranges:
            waiting.add(lower, upper)

    def steps(self, command: amqp10.TxSelect | amqp10.TxCommit | amqp10.TxRollback) -> Steps:
        """select, commit, rollback. Selected once more nothing happens, as with qpidd; commit and rollback
        without select are 409.
        """
        if isinstance(command, amqp10.TxSelect):
            if not self.is_selected:
                yield Call(ChannelUse.MAIN, amqp.TxSelect())
                self.is_selected = True
                self._subscriptions.settling.begin_transactions()
            return None
        if not self.is_selected:
            raise ProtocolViolation(409, f"{command.NAME} in a session that is not transactional")
        if isinstance(command, amqp10.TxRollback):
            self._waiting.pop(amqp10.MessageAccept, None)
            yield Call(ChannelUse.MAIN, amqp.TxRollback())
            if not self._waiting and not self._subscriptions.end_transaction():
                return None
        yield from self._settle()
        yield Call(ChannelUse.MAIN, amqp.TxCommit())
        return None

    def _settle(self) -> Part[None]:
        waiting, self._waiting = self._waiting, {}
        for settling in _SETTLING:
            ids = waiting.get(settling)
            if ids is not None:
                yield from self._subscriptions.steps(settling(transfers=ids.frozen())) or ()
        self._subscriptions.end_transaction()
