"""Transactions: as 0-9-1 has them, on channel "main", where the session publishes from then on."""

from __future__ import annotations

from amqpgate.bridge.v0_10.channels import Use
from amqpgate.bridge.v0_10.steps import Call, Steps
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10


class Transactions:
    """Whether a session is transactional; once it is, it remains so."""

    __slots__ = ("is_selected",)

    def __init__(self) -> None:
        self.is_selected = False

    def steps(self, command: amqp10.TxSelect | amqp10.TxCommit | amqp10.TxRollback) -> Steps:
        """select, commit, rollback. Selected once more nothing happens, as with qpidd; commit and rollback
        without select are 409.
        """
        if isinstance(command, amqp10.TxSelect):
            if not self.is_selected:
                yield Call(Use.MAIN, amqp.TxSelect())
                self.is_selected = True
            return None
        if not self.is_selected:
            raise ProtocolViolation(409, f"{command.NAME} in a session that is not transactional")
        is_commit = isinstance(command, amqp10.TxCommit)
        yield Call(Use.MAIN, amqp.TxCommit() if is_commit else amqp.TxRollback())
        return None
