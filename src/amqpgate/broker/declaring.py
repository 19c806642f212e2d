"""The methods of classes exchange and queue (sections 1.6 and 1.7 of AMQP 0-9-1)."""

from __future__ import annotations

from attrs import define

from amqpgate.broker.exchanges import BindingDestination, ExchangeBinding
from amqpgate.broker.peers import Peer
from amqpgate.broker.replies import Replies
from amqpgate.broker.vhost import REPLY_TO, VirtualHost, clean
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method


@define(eq=False, repr=False)
class Declaring:
    """One channel's declarations."""

    number: int
    peer: Peer
    vhost: VirtualHost
    replies: Replies
    #: The queue that an empty name stands for: the one declared last on this channel.
    last_queue: str = ""

    def queue_named(self, name: str) -> str:
        """The name that is meant. 404 for an empty one if nothing was declared."""
        if not name and not self.last_queue:
            raise ProtocolViolation(404, "no previously declared queue")
        return name or self.last_queue

    def handle(self, method: Method) -> bool:
        """Do as asked and answer; False if the method is not of these classes."""
        match method:
            case amqp.QueueDeclare():
                self._declare_queue(method)
            case amqp.QueueBind():
                binding = self._queue_binding(method)
                self.vhost.bind(method.exchange, binding, self.peer)
                self._answer(amqp.QueueBindOk(), method.no_wait)
            case amqp.QueueUnbind():
                self.vhost.unbind(method.exchange, self._queue_binding(method), self.peer)
                self._answer(amqp.QueueUnbindOk(), False)
            case amqp.QueuePurge():
                count = self.vhost.queue(self.queue_named(method.queue), self.peer).purge()
                self._answer(amqp.QueuePurgeOk(count), method.no_wait)
            case amqp.QueueDelete():
                name = self.queue_named(method.queue)
                count = self.vhost.delete_queue(name, self.peer, method.if_unused, method.if_empty)
                self._answer(amqp.QueueDeleteOk(count), method.no_wait)
            case amqp.ExchangeDeclare():
                self.vhost.declare_exchange(method)
                self._answer(amqp.ExchangeDeclareOk(), method.no_wait)
            case amqp.ExchangeDelete():
                self.vhost.delete_exchange(method.exchange, method.if_unused)
                self._answer(amqp.ExchangeDeleteOk(), method.no_wait)
            case amqp.ExchangeBind():
                self.vhost.bind(method.source, _exchange_binding(method), self.peer)
                self._answer(amqp.ExchangeBindOk(), method.no_wait)
            case amqp.ExchangeUnbind():
                self.vhost.unbind(method.source, _exchange_binding(method), self.peer)
                self._answer(amqp.ExchangeUnbindOk(), method.no_wait)
            case _:
                return False
        return True

    def _declare_queue(self, method: amqp.QueueDeclare) -> None:
        if method.queue.startswith(REPLY_TO):
            # Always passive; there is one consumer by definition.
            if not self.replies.is_known(clean(method.queue)):
                raise ProtocolViolation(404, f"no {self.vhost.describe('queue', clean(method.queue))}")
            self.last_queue = clean(method.queue)
            self._answer(amqp.QueueDeclareOk(self.last_queue, 0, 1), method.no_wait)
            return
        queue = self.vhost.declare_queue(method, self.peer)
        self.last_queue = queue.name
        self._answer(amqp.QueueDeclareOk(queue.name, len(queue), len(queue.consumers)), method.no_wait)

    def _queue_binding(self, method: amqp.QueueBind | amqp.QueueUnbind) -> ExchangeBinding:
        name = self.queue_named(method.queue)
        # An empty key goes with an empty queue name: it then means the same as that.
        key = name if not method.queue and not method.routing_key else method.routing_key
        return ExchangeBinding.of(BindingDestination("queue", clean(name)), key, method.arguments)

    def _answer(self, method: Method, no_wait: bool) -> None:
        if not no_wait:
            self.peer.send(self.number, method)


def _exchange_binding(method: amqp.ExchangeBind | amqp.ExchangeUnbind) -> ExchangeBinding:
    destination = BindingDestination("exchange", clean(method.destination))
    return ExchangeBinding.of(destination, method.routing_key, method.arguments)
