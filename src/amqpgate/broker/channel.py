"""One channel: which method goes where."""

from __future__ import annotations

from attrs import define, field

from amqpgate.broker.consuming import Consuming, DeliveryOutcome
from amqpgate.broker.declaring import Declaring
from amqpgate.broker.peers import Peer, named
from amqpgate.broker.publishing import BrokerPublishing
from amqpgate.broker.state import BrokerState
from amqpgate.broker.vhost import VirtualHost
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method


@define(eq=False, repr=False)
class BrokerChannel:
    """An open channel of a connection. It answers by ``peer.send``.

    Error handling
        :class:`~amqpgate.errors.ProtocolViolation` with RabbitMQ's code and text, and with the ids of the
        method. If its scope is "channel", close this one; if not, the connection.
    """

    number: int
    peer: Peer
    vhost: VirtualHost
    state: BrokerState
    declaring: Declaring = field(init=False)
    consuming: Consuming = field(init=False)
    publishing: BrokerPublishing = field(init=False)

    def __attrs_post_init__(self) -> None:
        number, peer, vhost, state = self.number, self.peer, self.vhost, self.state
        self.declaring = Declaring(number, peer, vhost, state.replies)
        self.consuming = Consuming(number, peer, vhost, state.agenda, state.replies)
        self.publishing = BrokerPublishing(number, peer, vhost, state.agenda, self.consuming)

    def handle(self, method: Method) -> None:
        """A method without content, other than channel.open, close and close-ok."""
        try:
            if not (self._handle_basic(method) or self.declaring.handle(method)):
                self._handle_other(method)
        except ProtocolViolation as violation:
            raise named(violation, method, self.number) from None

    def publish(self, method: Method, properties: amqp.BasicProperties, body: bytes) -> None:
        """The one method with content that a client sends."""
        assert isinstance(method, amqp.BasicPublish)
        try:
            self.publishing.publish(method, properties, body)
        except ProtocolViolation as violation:
            raise named(violation, method, self.number) from None

    def resume(self) -> None:
        """The client reads again."""
        self.consuming.resume()

    def close(self) -> None:
        """Let go of everything; nothing is sent any more."""
        self.publishing.close()
        self.consuming.close()

    def _handle_basic(self, method: Method) -> bool:
        consuming, settle = self.consuming, self.publishing.settle
        match method:
            case amqp.BasicAck():
                settle(consuming.collect(method.delivery_tag, method.multiple), DeliveryOutcome.DONE)
            case amqp.BasicNack():
                outcome = DeliveryOutcome.REQUEUED if method.requeue else DeliveryOutcome.DONE
                settle(consuming.collect(method.delivery_tag, method.multiple), outcome)
            case amqp.BasicReject():
                outcome = DeliveryOutcome.REQUEUED if method.requeue else DeliveryOutcome.DONE
                settle(consuming.collect(method.delivery_tag, False), outcome)
            case amqp.BasicGet():
                consuming.get(method, self.declaring.queue_named(method.queue))
            case amqp.BasicConsume():
                consuming.consume(method, self.declaring.queue_named(method.queue))
            case amqp.BasicCancel():
                consuming.cancel(method)
            case amqp.BasicQos():
                consuming.qos(method)
            case amqp.BasicRecoverAsync():
                consuming.recover(method.requeue)
            case amqp.BasicRecover():
                consuming.recover(method.requeue)
                self.peer.send(self.number, amqp.BasicRecoverOk())
            case _:
                return False
        return True

    def _handle_other(self, method: Method) -> None:
        match method:
            case amqp.ConfirmSelect():
                self.publishing.select_confirms(method)
            case amqp.TxSelect():
                self.publishing.select_transactions()
            case amqp.TxCommit():
                self.publishing.commit()
            case amqp.TxRollback():
                self.publishing.rollback()
            case amqp.ChannelFlow(active=True):
                self.peer.send(self.number, amqp.ChannelFlowOk(active=True))
            case amqp.ChannelFlow():
                raise ProtocolViolation(540, "active=false")
            case amqp.AccessRequest():
                self.peer.send(self.number, amqp.AccessRequestOk(ticket=1))
            case _:
                # basic.credit, of which RabbitMQ has a private version for AMQP 1.0.
                raise ProtocolViolation(540, f"{method.NAME} is not known to the embedded broker")
