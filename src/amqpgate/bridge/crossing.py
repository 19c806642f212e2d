"""What one peer has and the other lacks: the table of crossings.

What can be done truly in the other's place is done; what cannot is `UnsupportedInVersion`, which
closes the client's connection with 540 and the ids of the method.

From the client
=============================  ===========================  ================================================
method                         the broker                   what happens
=============================  ===========================  ================================================
access.request of old clients  speaks 0-9-1: no access      answered here: ticket 1, as RabbitMQ has it
basic.recover                  does not answer it           recover without an answer, then channel.flow
                                                            (active): its flow-ok comes when recover is done
basic.recover-async            answers each (Qpid's 0-8)    its answer is kept from the client
basic.nack of one message      has none                     basic.reject, the same but for its name
basic.nack of several          has none                     540: which those are is not known here
basic.qos of old clients       RabbitMQ                     what keeps to the channel's window, or, with the
                                                            gateway's help, comes nearest (``prefetch``)
channel.ping                                                answered here, as each hop has its own
                                                            heartbeats: ok, then pong
channel.pong, channel.ok                                    a pong is answered with ok
channel.resume                 has none                     540
exchange.bind, exchange.unbind has none                     540
confirm.select, queue.unbind   has none                     540
arguments of basic.consume     has no table there           540, if there are any
=============================  ===========================  ================================================

From the broker
=============================  ===========================  ================================================
method                         the client                   what happens
=============================  ===========================  ================================================
connection.blocked, unblocked  has none                     left out; the broker does not read, and that is
                                                            felt all the same
channel.alert                  has none                     left out, and logged: it asks nothing
channel.ping, pong, ok                                      as above
=============================  ===========================  ================================================

Classes that only some versions have (file, stream, dtx, tunnel, test, message) pass between peers that both
have them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import attrs

from amqpgate.bridge import canonical
from amqpgate.bridge.interpreter import Interpreter, UnsupportedInVersion
from amqpgate.bridge.prefetch import Prefetch
from amqpgate.protocol.methods import Role
from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: What is sent instead of a method, in order, and to whom.
Sent = tuple[tuple[Role, Method], ...]

#: RabbitMQ's own answer to access.request: tickets mean nothing to it.
TICKET = 1

#: What the client can be left without.
_LEFT_OUT = (amqp.ConnectionBlocked, amqp.ConnectionUnblocked, canonical.ChannelAlert)


@define
class _Questions:
    """Of one channel, in the order in which the broker will answer: whether the client waits for it."""

    recovers: deque[bool] = attrs.field(factory=deque)
    #: None: a channel.flow of the client's own. Otherwise it stands for a recover.
    flows: deque[bool | None] = attrs.field(factory=deque)
    resumes: int = 0


@define
class Crossing:
    """Of one session. It sees every method that crosses, in the canonical model, from the first on."""

    client: Interpreter
    broker: Interpreter
    #: Told the channel's number when the broker has recovered: all deliveries until then were in vain.
    on_recovered: Callable[[int], None] = lambda _number: None
    prefetch: Prefetch = attrs.field(factory=Prefetch, init=False)
    _channels: dict[int, _Questions] = attrs.field(factory=dict, init=False)

    def to_broker(self, number: int, method: Method) -> Sent:
        """What is sent for a method of the client's. Raises `UnsupportedInVersion`."""
        match method:
            case amqp.ChannelOpen():
                self._channels.pop(number, None)
                self.prefetch.opened(number)
            case amqp.ChannelFlow():
                self._of(number).flows.append(None)
            case amqp.BasicRecover(requeue=requeue):
                return self.recover(number, requeue=requeue, tells=True)
            case amqp.BasicRecoverAsync() if self.broker.answers_every_recover:
                self._of(number).recovers.append(False)
            case amqp.AccessRequest() if self.gives_tickets:
                return ((Role.CLIENT, amqp.AccessRequestOk(TICKET)),)
            case amqp.BasicNack() if not self.broker.speaks(amqp.BasicNack):
                if method.multiple:
                    raise UnsupportedInVersion(amqp.BasicNack, f"{self.broker.version} of several messages")
                return ((Role.SERVER, amqp.BasicReject(method.delivery_tag, method.requeue)),)
            case amqp.BasicQos() if self.is_patient:
                return tuple([(Role.SERVER, told) for told in self.prefetch.qos(number, method)])
            case amqp.BasicConsume() if self.is_patient:
                return tuple([(Role.SERVER, told) for told in self.prefetch.consume(number, method)])
            case canonical.ChannelResume():
                self._of(number).resumes += 1
        if not self.broker.speaks(type(method)):
            raise UnsupportedInVersion(type(method), self.broker.version)
        return ((Role.SERVER, method),)

    @property
    def gives_tickets(self) -> bool:
        """Whether access.request is not for the broker: 0-9-1 has none, whatever RabbitMQ makes of it."""
        is_new = self.broker.dialect.version == (0, 9, 1) and not self.client.is_native
        return is_new or not self.broker.speaks(amqp.AccessRequest)

    @property
    def is_patient(self) -> bool:
        """Whether an old client speaks to a RabbitMQ, which does not do all that its standard has."""
        return not self.client.is_native and self.broker.dialect.extensions == {"rabbitmq"}

    def recover(self, number: int, *, requeue: bool, tells: bool) -> Sent:
        """Have the broker recover, and learn when it has. ``tells``: the client hears of that."""
        questions = self._of(number)
        if self.broker.speaks(amqp.BasicRecover):
            questions.recovers.append(tells)
            return ((Role.SERVER, amqp.BasicRecover(requeue)),)
        questions.flows.append(tells)
        return (Role.SERVER, amqp.BasicRecoverAsync(requeue)), (Role.SERVER, amqp.ChannelFlow(active=True))

    def is_recovering(self, number: int) -> bool:
        """Whether the broker has been asked to recover, and has not said that it has."""
        questions = self._of(number)
        return bool(questions.recovers) or any(flow is not None for flow in questions.flows)

    def answers_flow(self, number: int) -> None:
        """The next flow-ok is the gateway's own, and comes before the broker's."""
        self._of(number).flows.appendleft(None)

    def to_client(self, number: int, method: Method) -> Sent:
        """What is sent for a method of the broker's."""
        tells = True
        if isinstance(method, amqp.BasicRecoverOk):
            recovers = self._of(number).recovers
            tells = recovers.popleft() if recovers else True
            self.on_recovered(number)
        elif isinstance(method, amqp.ChannelFlowOk):
            flows = self._of(number).flows
            recover = flows.popleft() if flows else None
            if recover is not None:
                tells, method = recover, amqp.BasicRecoverOk()
                self.on_recovered(number)
        elif isinstance(method, amqp.BasicQosOk):
            tells = self.prefetch.answered(number)
        if not tells or (isinstance(method, _LEFT_OUT) and not self.client.speaks(type(method))):
            return ()
        return ((Role.CLIENT, method),)

    def answered(self, number: int, sender: Role, method: Method) -> tuple[Method, ...] | None:
        """What the sender of a method hears from the gateway itself; None: it is for the other side."""
        match method:
            case canonical.ChannelPing():
                return canonical.ChannelOk(), canonical.ChannelPong()
            case canonical.ChannelPong():
                return (canonical.ChannelOk(),)
            case canonical.ChannelOk():
                questions = self._of(number)
                if sender is Role.SERVER and questions.resumes:
                    questions.resumes -= 1
                    return None
                return ()
        return None

    def _of(self, number: int) -> _Questions:
        return self._channels.setdefault(number, _Questions())
