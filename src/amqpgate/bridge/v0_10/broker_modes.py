"""The modes of a channel: confirms, which need no word to the broker, or transactions."""

from __future__ import annotations

from amqpgate.bridge.v0_10.broker_consuming import ChannelConsuming
from amqpgate.bridge.v0_10.broker_link import ChannelLink, Steps
from amqpgate.bridge.v0_10.broker_publishing import Publishing
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10


class Modes:
    """See the module."""

    __slots__ = ("_consuming", "_is_transactional", "_link", "_publishing")

    def __init__(self, link: ChannelLink, publishing: Publishing, consuming: ChannelConsuming) -> None:
        self._link = link
        self._publishing = publishing
        self._consuming = consuming
        self._is_transactional = False

    def confirm(self, method: amqp.ConfirmSelect) -> None:
        """confirm.select. Violation 406 in a transaction."""
        if self._is_transactional:
            raise ProtocolViolation(406, "cannot switch from tx to confirm mode")
        self._publishing.select()
        if not method.no_wait:
            self._link.say(amqp.ConfirmSelectOk())

    def select(self) -> Steps:
        """tx.select; a second one changes nothing. Violation 406 where there are confirms."""
        if self._publishing.is_confirming:
            raise ProtocolViolation(406, "cannot switch from confirm to tx mode")
        if not self._is_transactional:
            yield (amqp10.TxSelect(),)
            self._is_transactional = True
            self._consuming.transaction()
        return amqp.TxSelectOk()

    def commit(self) -> Steps:
        """tx.commit. Violation 406 without tx.select."""
        self._check()
        yield (amqp10.TxCommit(),)
        self._consuming.transaction()
        return amqp.TxCommitOk()

    def roll_back(self) -> Steps:
        """tx.rollback: what was acknowledged is not. Violation 406 without tx.select."""
        self._check()
        yield (amqp10.TxRollback(),)
        self._consuming.transaction(is_rolled_back=True)
        return amqp.TxRollbackOk()

    def _check(self) -> None:
        if not self._is_transactional:
            raise ProtocolViolation(406, "channel is not transactional")
