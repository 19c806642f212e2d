"""Which command of 0-10 is done by what."""

from __future__ import annotations

from typing import Final

from attrs import define

from amqpgate.bridge.v0_10.declaring import Declares
from amqpgate.bridge.v0_10.queries import Queries
from amqpgate.bridge.v0_10.steps import Steps, queue_of
from amqpgate.bridge.v0_10.subscriptions import Subscriptions
from amqpgate.bridge.v0_10.transactions import Transactions
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.v0_10.structs import Command

#: Done with nothing but what the protocol itself does for them.
_DONE: Final = (amqp10.ExecutionSync, amqp10.ExecutionResult, amqp10.ExecutionException)


@define(eq=False)
class Commands:
    """The commands of one session, but for transfers."""

    declaring: Declares
    queries: Queries
    transactions: Transactions
    subscriptions: Subscriptions

    def steps(self, command: Command) -> Steps | None:
        """What is to be done for a command; None if it is done.

        Violation 540 for commands that no broker of 0-9-1 can serve, and whatever a command is refused for.
        """
        if isinstance(command, _DONE):
            return None
        match command:
            case amqp10.ExchangeDeclare():
                return self.declaring.exchange_declare(command)
            case amqp10.ExchangeDelete():
                return self.declaring.exchange_delete(command)
            case amqp10.ExchangeBind():
                return self.declaring.exchange_bind(command)
            case amqp10.ExchangeUnbind():
                return self.declaring.exchange_unbind(command)
            case amqp10.QueueDeclare():
                return self.declaring.queue_declare(command)
            case amqp10.QueueDelete():
                return self.declaring.queue_delete(command)
            case amqp10.QueuePurge():
                return self.declaring.queue_purge(command)
            case amqp10.ExchangeQuery():
                return self.queries.exchange_query(command)
            case amqp10.ExchangeBound():
                return self.queries.exchange_bound(command)
            case amqp10.QueueQuery():
                return self.queries.queue_query(command)
            case amqp10.TxSelect() | amqp10.TxCommit() | amqp10.TxRollback():
                return self.transactions.steps(command)
            case amqp10.MessageAccept() | amqp10.MessageRelease() | amqp10.MessageReject() if (
                self.transactions.is_selected
            ):
                return self.transactions.settle(command)
            case amqp10.MessageSubscribe(queue=queue):
                self.declaring.check_lock(queue_of(queue))
        if command.CLASS_CODE == amqp10.MessageTransfer.CLASS_CODE:
            return self.subscriptions.steps(command)
        raise ProtocolViolation(540, f"{command.NAME} on a broker of AMQP 0-9-1")
