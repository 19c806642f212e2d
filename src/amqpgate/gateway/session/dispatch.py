"""What the control plane does with each method that the data path does not forward on its own.

Two tables, one per direction: method -> what to do. A method in neither table does not belong
there and is a violation; so is one on the wrong channel.
"""

from __future__ import annotations

from enum import Enum

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method


class Do(Enum):
    """What happens to a method."""

    #: Pass it on unchanged.
    FORWARD = "forward"
    #: Ask the policy, then pass it on or refuse.
    DECIDE = "decide"
    CHANNEL_OPEN = "channel.open"
    CHANNEL_CLOSE = "channel.close"
    CHANNEL_CLOSE_OK = "channel.close-ok"
    #: Pass it on; the answer ends the session.
    CLOSE = "connection.close"
    #: Pass it on; the session is over.
    CLOSE_OK = "connection.close-ok"
    #: Pass it on, and remember the queue's name.
    DECLARED = "queue.declare-ok"
    #: Pass it on, unless it answers the gateway; remember which consumers there are.
    CONSUMER = "basic.consume-ok"
    #: Pass it on with the client's number.
    CONFIRM = "basic.ack"


_Table = dict[int, Do]


def _table(rows: dict[Do, list[type[Method]]]) -> _Table:
    return {method.INDEX: do for do, methods in rows.items() for method in methods}


#: Methods that a client may send on an established connection.
UP: _Table = _table(
    {
        Do.FORWARD: [
            amqp.ChannelFlowOk,
            amqp.BasicCancelOk,
            amqp.BasicCredit,
            amqp.BasicAck,
            amqp.BasicNack,
            amqp.BasicReject,
        ],
        Do.DECIDE: [
            amqp.ExchangeDeclare,
            amqp.ExchangeDelete,
            amqp.ExchangeBind,
            amqp.ExchangeUnbind,
            amqp.QueueDeclare,
            amqp.QueueBind,
            amqp.QueueUnbind,
            amqp.QueuePurge,
            amqp.QueueDelete,
            amqp.BasicPublish,
            amqp.BasicConsume,
            amqp.BasicGet,
            amqp.ConnectionUpdateSecret,
            amqp.ChannelFlow,
            amqp.AccessRequest,
            amqp.BasicQos,
            amqp.BasicCancel,
            amqp.BasicRecover,
            amqp.BasicRecoverAsync,
            amqp.TxSelect,
            amqp.TxCommit,
            amqp.TxRollback,
            amqp.ConfirmSelect,
        ],
        Do.CHANNEL_OPEN: [amqp.ChannelOpen],
        Do.CHANNEL_CLOSE: [amqp.ChannelClose],
        Do.CHANNEL_CLOSE_OK: [amqp.ChannelCloseOk],
        Do.CLOSE: [amqp.ConnectionClose],
        Do.CLOSE_OK: [amqp.ConnectionCloseOk],
    }
)

#: Methods that a broker may send on an established connection.
DOWN: _Table = _table(
    {
        Do.FORWARD: [
            amqp.ConnectionBlocked,
            amqp.ConnectionUnblocked,
            amqp.ConnectionUpdateSecretOk,
            amqp.ChannelOpenOk,
            amqp.ChannelFlow,
            amqp.ChannelFlowOk,
            amqp.AccessRequestOk,
            amqp.ExchangeDeclareOk,
            amqp.ExchangeDeleteOk,
            amqp.ExchangeBindOk,
            amqp.ExchangeUnbindOk,
            amqp.QueueBindOk,
            amqp.QueueUnbindOk,
            amqp.QueuePurgeOk,
            amqp.QueueDeleteOk,
            amqp.BasicQosOk,
            amqp.BasicGetEmpty,
            amqp.BasicCreditOk,
            amqp.BasicCreditDrained,
            amqp.BasicRecoverOk,
            amqp.TxSelectOk,
            amqp.TxCommitOk,
            amqp.TxRollbackOk,
            amqp.ConfirmSelectOk,
        ],
        Do.CONSUMER: [amqp.BasicConsumeOk, amqp.BasicCancel, amqp.BasicCancelOk],
        Do.DECLARED: [amqp.QueueDeclareOk],
        Do.CONFIRM: [amqp.BasicAck, amqp.BasicNack],
        Do.CHANNEL_CLOSE: [amqp.ChannelClose],
        Do.CHANNEL_CLOSE_OK: [amqp.ChannelCloseOk],
        Do.CLOSE: [amqp.ConnectionClose],
        Do.CLOSE_OK: [amqp.ConnectionCloseOk],
    }
)
