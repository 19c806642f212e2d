"""Transactions: on channel "main", where the session publishes from then on.

In 0-10 transfers and message.accept belong to a transaction, message.release and message.reject do not:
clients release what they had, whether they had accepted it or not, and then roll back. RabbitMQ forgets with
a rollback what was rejected, too, and the messages would stay with the session for ever. So all three wait
for the end of the transaction, unless nothing else has been done in it:

==================  ==============================================================
commit              accepts, releases, rejects; tx.commit
rollback            tx.rollback; releases and rejects, and tx.commit for them alone
release or reject,  at once, and tx.commit for it alone
and nothing before
==================  ==============================================================
"""

from __future__ import annotations

from typing import Final, TypeAlias

from attrs import evolve

from amqpgate.bridge.v0_10.channels import ChannelUse
from amqpgate.bridge.v0_10.steps import Call, Part, Steps
from amqpgate.bridge.v0_10.subscriptions import Subscriptions
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.v0_10.sequences import RangeSet, SequenceSet

#: What says that a message is done with.
Settling: TypeAlias = amqp10.MessageAccept | amqp10.MessageRelease | amqp10.MessageReject
#: In which order they are said at the end.
_SETTLING: Final[tuple[Settling, ...]] = (
    amqp10.MessageAccept(),
    amqp10.MessageRelease(),
    amqp10.MessageRelease(set_redelivered=True),
    amqp10.MessageReject(),
)


class Transactions:
    """The transactions of one session; once they are selected there always is one."""

    __slots__ = ("_has_published", "_subscriptions", "_waiting", "is_selected")

    def __init__(self, subscriptions: Subscriptions) -> None:
        self.is_selected = False
        self._subscriptions = subscriptions
        #: In the transaction that there is.
        self._has_published = False
        #: Ids of transfers that wait for the end of the transaction.
        self._waiting: dict[Settling, RangeSet] = {}

    def published(self) -> None:
        """A message belongs to the transaction."""
        self._has_published = True

    def settle(self, command: Settling) -> Steps | None:
        """Something is said of messages: what is to be done at once; None if it waits. Violation 506 if too
        many ranges of ids wait.
        """
        if self._has_published or self._waiting or isinstance(command, amqp10.MessageAccept):
            self._put_off(command)
            return None
        return self._settle_alone(command)

    def _settle_alone(self, command: Settling) -> Steps:
        yield from self._subscriptions.steps(command) or ()
        self._subscriptions.end_transaction()
        yield Call(ChannelUse.MAIN, amqp.TxCommit())
        return None

    def _put_off(self, command: Settling) -> None:
        failed = isinstance(command, amqp10.MessageRelease) and command.set_redelivered
        kind = amqp10.MessageRelease(set_redelivered=True) if failed else type(command)()
        waiting = self._waiting.setdefault(kind, RangeSet())
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
        self._has_published = False
        if isinstance(command, amqp10.TxRollback):
            self._waiting.pop(amqp10.MessageAccept(), None)
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
                yield from self._subscriptions.steps(evolve(settling, transfers=ids.frozen())) or ()
        self._subscriptions.end_transaction()
