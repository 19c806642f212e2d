"""A whole conversation of a 0-10 client, through its translator, with the embedded broker."""

from __future__ import annotations

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from tests.unit.bridge.v0_10.lab import Lab


def test_from_login_to_close() -> None:
    lab = Lab().open().attach()
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    assert lab.completed() == {0}
    lab.do(amqp10.ExchangeBind(queue=b"q", exchange=b"amq.direct", binding_key=b"k"))
    lab.transfer(b"hello", b"k", exchange=b"amq.direct")
    assert lab.completed() == {0, 1, 2}
    assert lab.query(amqp10.QueueQuery(queue=b"q")).message_count == 1
    lab.do(amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=0, acquire_mode=0))
    lab.do(amqp10.MessageSetFlowMode(destination=b"d", flow_mode=0))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=1, value=0xFFFFFFFF))
    heard = lab.do(amqp10.MessageFlow(destination=b"d", unit=0, value=10))
    [transfer] = [sent for sent in heard if isinstance(sent.command, amqp10.MessageTransfer)]
    assert transfer.body == b"hello"
    assert transfer.command.destination == b"d"
    lab.do(amqp10.MessageAccept(transfers=amqp10.SequenceSet(((1, 1),))))
    lab.do(amqp10.MessageCancel(destination=b"d"))
    assert lab.query(amqp10.QueueQuery(queue=b"q")).message_count == 0
    lab.do(amqp10.QueueDelete(queue=b"q"))
    heard = lab.say(amqp10.SessionDetach(name=b"session"))
    assert [type(sent.control) for sent in heard] == [amqp10.SessionDetached]
    heard = lab.say(amqp10.ConnectionClose(reply_code=200))
    assert [type(sent.control) for sent in heard] == [amqp10.ConnectionCloseOk]
    assert lab.asked[-1] == (0, amqp.ConnectionClose(200, ""))
