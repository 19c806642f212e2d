"""Who closes a channel, and which answers are still due: the part of a session that a refusal touches.

A refused operation is answered as RabbitMQ would: the channel is closed with 403, and what the
client sends on it meanwhile is dropped. The gateway closes the *broker's* side first, and tells
the client when the broker has answered; so confirms and deliveries from before the refusal still
arrive, and the channel number is free on both hops when the client may use it again.

::

             refused                 broker: close-ok              client: close-ok
    open ─────────────▶ closing up ──────────────────▶ closing down ────────────────▶ closed
      │   close ▶ broker               close ▶ client
      │ client: close                  broker: close-ok
      ├─────────────▶ forwarded, passed on until ──────────────────────────────────▶ closed
      │ broker: close                  client: close-ok
      └─────────────▶ forwarded, passed on until ──────────────────────────────────▶ closed

Both peers may close at once; a channel is closed when every close on it has been answered, and for the
client as soon as it has answered the broker's.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

import attrs

from amqpgate.datapath.relay import Relay
from amqpgate.datapath.scanner import ByChannel, Channels
from amqpgate.datapath.tables import DISCARD, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session.channel_consumers import ChannelConsumers
from amqpgate.gateway.session.channel_ladder import ChannelDeclares
from amqpgate.gateway.session.close_progress import ChannelClose
from amqpgate.gateway.session.confirm_numbers import ConfirmNumbers
from amqpgate.gateway.session.gets import Gets
from amqpgate.gateway.session.publish_denial import ChannelPublishes
from amqpgate.gateway.session.queue_question import QueueQuestion
from amqpgate.gateway.session.upstream import OwnUpstream, SessionUpstream
from amqpgate.policy.engine.operations import SERVER_NAMED, Operation
from amqpgate.protocol.frames import FRAME_METHOD, method_frame
from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Server-named queues that are known as a session's own. Of one with more, the oldest count as others'.
OWNED: Final = 4096

#: queue.declare that the broker has not answered on a channel. Clients wait for each answer, or keep to some
#: dozens; one that does neither would have the gateway remember any number.
MOST_DECLARES: Final = 16_384

#: Methods with a queue that was there before.
_NAMING: Final = (
    amqp.QueueBind | amqp.QueueUnbind | amqp.QueuePurge | amqp.QueueDelete | amqp.BasicConsume | amqp.BasicGet
)

#: How server-named queues begin where names that begin with the first of these cannot be declared.
_RESERVED: Final = "amq."
_UNRESERVED: Final = SERVER_NAMED.removeprefix(_RESERVED)

#: How channel.close-ok begins.
_CLOSE_OK: Final = amqp.ChannelCloseOk.INDEX.to_bytes(4, "big")


def check_unanswered(count: int, most: int, channel: int, method: Method) -> None:
    """Raises ``ProtocolViolation`` 406 for the channel where so many are not answered already."""
    if count >= most:
        raise ProtocolViolation(
            406,
            f"{count} {method.NAME} are not answered",
            class_id=method.CLASS_ID,
            method_id=method.METHOD_ID,
            channel=channel,
        )


def check_declares(state: SessionChannel, channel: int, method: Method) -> None:
    """The same, where the client declares more than can be remembered."""
    if isinstance(method, amqp.QueueDeclare) and state.declares is not None:
        check_unanswered(len(state.declares.due), MOST_DECLARES, channel, method)


def check_name(state: SessionChannel, channel: int, method: Method) -> None:
    """Raises ``ProtocolViolation`` 404, as RabbitMQ, where an empty name means no queue of the client's."""
    if state.is_moved and not state.last_queue and isinstance(method, _NAMING) and not method.queue:
        raise ProtocolViolation(
            404,
            "no previously declared queue",
            class_id=method.CLASS_ID,
            method_id=method.METHOD_ID,
            channel=channel,
        )


@define(weakref_slot=False)
class SessionChannel(ChannelPublishes):
    """What the control plane remembers of an open channel."""

    #: The queue that an empty name in the next method means (AMQP 0-9-1, queue.bind.queue).
    last_queue: str = ""
    #: The broker's channel has another queue for that, or none: it is not the one on which it was declared,
    #: or the gateway has declared one there since.
    is_moved: bool = False
    #: Declares that the broker has not answered. None: none.
    declares: ChannelDeclares | None = None
    #: None: nobody closes it.
    close: ChannelClose | None = None
    #: None: no consumer has been asked for yet.
    consuming: ChannelConsumers | None = None
    #: None: nothing has been asked for by basic.get.
    gets: Gets | None = None

    def closing(self) -> ChannelClose:
        """The close that is under way, or a new one."""
        if self.close is None:
            self.close = ChannelClose()
        return self.close

    def deny(self, denial: ProtocolViolation) -> None:
        """The gateway closes the broker's side, and then the client's."""
        self.close = ChannelClose(Side.UPSTREAM, denial=denial)

    def move(self) -> None:
        """It is open on another connection of the broker's now, which knows nothing of it; or the gateway
        declares queues of its own there."""
        self.is_moved = True

    def get(self, queue: str, *, is_heard: bool) -> None:
        """A basic.get passes to the broker."""
        if self.gets is None:
            self.gets = Gets.begun(queue, is_heard=is_heard)
        else:
            self.gets.asked(queue, is_heard=is_heard)

    def consumers(self) -> ChannelConsumers:
        """Those that there are, or none yet."""
        if self.consuming is None:
            self.consuming = ChannelConsumers()
        return self.consuming

    def named(self, method: Method) -> Method:
        """The method with the queue's name, where its empty name means nothing to the broker's channel.

        Without a queue's name an empty routing key means the queue, too (AMQP 0-9-1, queue.bind.queue).
        """
        if not self.is_moved or not self.last_queue or not isinstance(method, _NAMING) or method.queue:
            return method
        named = attrs.evolve(method, queue=self.last_queue)
        if isinstance(named, amqp.QueueBind | amqp.QueueUnbind) and not named.routing_key:
            named = attrs.evolve(named, routing_key=self.last_queue)
        return named

    def declare(self, method: amqp.QueueDeclare) -> None:
        """The client declares a queue. It need not wait for the answer before it goes on, so the name
        holds from now on; if the declare fails, so does the channel."""
        self.last_queue, self.is_moved = method.queue or SERVER_NAMED, False
        if not method.no_wait:
            self.declaring().due.append(not method.queue and not method.passive)

    def declared(self, queue: str) -> bool:
        """The broker has answered a declare, and tells the name; whether it gave that name itself."""
        due = self.declaring().due
        is_given = bool(due and due.popleft())
        if self.last_queue == SERVER_NAMED and all(one is None for one in due):
            self.last_queue = queue
        if not due:
            self.declares = None
        return is_given

    def declaring(self) -> ChannelDeclares:
        """Its declares that the broker has not answered, or none yet."""
        if self.declares is None:
            self.declares = ChannelDeclares()
        return self.declares


@define(weakref_slot=False)
class SessionChannels:
    """The channels of one session. It has to be small: what few of them need is None until then."""

    relay: Relay
    #: Shared with the scanner.
    table: Channels
    states: ByChannel[SessionChannel] = attrs.field(factory=partial(ByChannel, SessionChannel))
    #: Channel -> close-oks that the client does not wait for any more: it was closed by the broker
    #: meanwhile, and may use the number again. They come before all that concerns its next use.
    late: dict[int, int] | None = None
    #: Closed channels, and who may still send what was begun before it heard of the close: the broker, which
    #: closed it, until the number's next use is over; or, where the gateway closed it, the client, which
    #: may have been amid a message, until it opens the number again.
    behind: dict[int, Side] | None = None
    #: Queues that the broker has named for this session, the oldest first: `OWNED` at most.
    owned: dict[str, None] | None = None
    #: What the broker is asked of a queue, or has answered. One at a time: the client's method waits for it.
    question: QueueQuestion | None = None
    #: Whether and when the broker is told.
    upstream: SessionUpstream = attrs.Factory(lambda self: OwnUpstream(self.relay), takes_self=True)

    def send(self, side: Side, channel: int, method: Method) -> None:
        """Queue a method for a side."""
        self.relay.send(side, method_frame(channel, method))

    def _tell_broker(self, channel: int, method: Method) -> None:
        if self.upstream.is_transparent or self.upstream.may_tell(channel, method):
            self.send(Side.UPSTREAM, channel, method)

    def declared(self, channel: int, queue: str) -> None:
        """The broker has answered a declare."""
        state = self.states.remembered(channel)
        if state is not None and state.declared(queue):
            if self.owned is None:
                self.owned = {}
            self.owned[queue] = None
            if len(self.owned) > OWNED:
                del self.owned[next(iter(self.owned))]

    def asks(self, channel: int, queue: str) -> None:
        """A basic.get passes to the broker."""
        self.states[channel].get(queue, is_heard=self.relay.down.shows_content)

    def got(self, channel: int) -> str | None:
        """The broker has answered a basic.get: its queue, if that is known."""
        state = self.states.remembered(channel)
        return None if state is None or state.gets is None else state.gets.answered()

    def ask(self, question: QueueQuestion | None) -> None:
        """The broker is asked this; None: the answer is not needed any more."""
        self.question = question

    def told_apart(self, operation: Operation) -> Operation:
        """The operation, with whether its queue is another connection's server-named one, and with RabbitMQ's
        name where the session's own has another one."""
        queue = operation.queue or ""
        if queue.startswith(_UNRESERVED) and queue in (self.owned or ()):
            return attrs.evolve(operation, queue=f"{_RESERVED}{queue}")
        # Without more to its name, it is what the channel has declared and not heard the name of.
        if not queue.startswith(SERVER_NAMED) or queue == SERVER_NAMED or queue in (self.owned or ()):
            return operation
        return attrs.evolve(operation, foreign=True)

    def expects(self, channel: int, method: Method) -> bool:
        """Whether the broker may say something on a channel: it is there, or the client did not wait for
        this answer."""
        if isinstance(method, amqp.ChannelCloseOk) and self.late and channel in self.late:
            return True
        if channel not in self.states:
            return False
        if not isinstance(method, amqp.ChannelCloseOk):
            return True
        state = self.states.remembered(channel)
        return state is not None and state.close is not None and state.close.up is not None

    def is_behind(self, side: Side, frame: memoryview) -> bool:
        """Whether a frame is what a peer began before it heard of the channel's close: it is for nobody."""
        if not self.behind:
            return False
        channel = int.from_bytes(frame[1:3], "big")
        if self.behind.get(channel) is not side or channel in self.states:
            return False
        if frame[0] == FRAME_METHOD:
            return side is Side.UPSTREAM and frame[7:11] != _CLOSE_OK
        return True

    def is_dropping(self, channel: int) -> bool:
        """Whether the broker has closed the channel, and drops what the client sends on it."""
        state = self.states.remembered(channel)
        return state is not None and state.close is not None and state.close.down is not None

    def refuse(self, channel: int, denial: ProtocolViolation) -> None:
        """Close the channel on the gateway's own account; from now on the client's frames drop."""
        state = self.states[channel]
        self.table.discard(channel)
        if state.close is not None:
            return  # Dropping is all that the broker would do, too.
        state.deny(denial)
        self._tell_broker(channel, _close(denial))

    def client_closes(self, channel: int, method: Method) -> None:
        state = self.states[channel]
        if self.table.state(channel) != DISCARD:
            state.closing().client_closes()
            self._tell_broker(channel, method)
            if self.upstream.closes_once:
                # RabbitMQ drops what comes behind it, or ends the connection (504), as it happens.
                self.table.discard(channel)
        elif state.close is None or not state.close.client_closes_again(is_one=self.upstream.closes_once):
            self.send(Side.CLIENT, channel, amqp.ChannelCloseOk())

    def client_answers(self, channel: int, method: Method) -> None:
        state = self.states[channel]
        close = state.close
        if close is None or close.down is None:
            if self.table.state(channel) == DISCARD:
                return
            raise ProtocolViolation(503, "unimplemented method", class_id=20, method_id=41, channel=channel)
        is_answer = close.down is Side.UPSTREAM
        if is_answer:
            self._tell_broker(channel, method)
        late = close.client_answers()
        if late and not self.upstream.closes_once:
            if self.late is None:
                self.late = {}
            self.late[channel] = self.late.get(channel, 0) + late
        self._settle(channel, close, late)
        if not is_answer or not self.upstream.closes_once:
            # RabbitMQ says its close behind a message; ours may be heard amid it.
            self.behind = self.behind or {}
            self.behind[channel] = Side.UPSTREAM if is_answer else Side.CLIENT

    def broker_closes(self, channel: int, method: Method) -> None:
        close = self.states.of(channel).closing()
        if close.broker_closes():
            # It met our own close on the way. An earlier operation failed: that is what the client hears.
            self._tell_broker(channel, amqp.ChannelCloseOk())
        if self.upstream.closes_once:
            # What the broker would drop until the client answers ends a connection that is shared.
            self.table.discard(channel)
        self.send(Side.CLIENT, channel, method)
        self._release_waiting(channel, close)

    def broker_answers(self, channel: int, method: Method) -> None:
        late = self.late.pop(channel, 0) if self.late else 0
        if late:
            if self.late is not None and late > 1:
                self.late[channel] = late - 1
            self.send(Side.CLIENT, channel, method)
            return
        state = self.states.of(channel)
        close = state.close or state.closing()
        if close.up is Side.UPSTREAM:
            denial = close.broker_answers_denial()
            if denial is not None:
                self.send(Side.CLIENT, channel, _close(denial))
                if close.client_waits:
                    self._release_waiting(channel, close)
        else:
            for _ in range(close.broker_answers(are_all=self.upstream.closes_once)):
                self.send(Side.CLIENT, channel, method)
        self._settle(channel, close)

    def _release_waiting(self, channel: int, close: ChannelClose) -> None:
        if close.release_client():
            self.send(Side.CLIENT, channel, amqp.ChannelCloseOk())

    def lost(self, channel: int, why: ProtocolViolation) -> None:
        """The broker's channel is gone with its connection."""
        close = self.states[channel].closing()
        if close.up is Side.CLIENT:
            for _ in range(close.answers_due):
                self.send(Side.CLIENT, channel, amqp.ChannelCloseOk())
        denial = close.denial
        if close.broker_lost():
            self.send(Side.CLIENT, channel, _close(denial or why))
        self._release_waiting(channel, close)
        if close.down is not None:
            self.table.discard(channel)
        self._settle(channel, close)

    def forget(self, channel: int) -> None:
        """A channel is closed, and nothing more will be said of it."""
        del self.states[channel]
        self.table.close(channel)

    def move_to(self, upstream: SessionUpstream, channels: Iterable[int]) -> None:
        """These channels are open on another connection now, under the client's numbers."""
        self.upstream = upstream
        for channel in channels:
            self.table.remap(channel, channel)
            state = self.states[channel]
            state.move()
            if state.confirms_from is None:
                continue
            self.table.count_confirms(channel)
            published = self.table.messages(Side.CLIENT, channel)
            is_renumbered = published > state.confirms_from
            if is_renumbered:
                state.number_confirms(ConfirmNumbers.continued(published, published - state.confirms_from))
            self.table.show_acks(channel, is_renumbered)

    def _settle(self, channel: int, close: ChannelClose, late: int = 0) -> None:
        if close.up is None and close.down is None:
            self.forget(channel)
            if self.behind and self.behind.get(channel) is Side.UPSTREAM:
                del self.behind[channel]
            self.upstream.settled(channel, late)


def opened(channels: SessionChannels, channel: int) -> None:
    """The client opens it."""
    channels.states.add(channel)
    if channels.behind and channels.behind.get(channel) is Side.CLIENT:
        del channels.behind[channel]


def unheard(channels: SessionChannels) -> None:
    """Answers to basic.get are not heard any more."""
    for _, state in channels.states.made():
        if state.gets is not None:
            state.gets.unheard()


def _close(why: ProtocolViolation) -> amqp.ChannelClose:
    return amqp.ChannelClose(
        reply_code=why.code,
        reply_text=why.reply_text,
        class_id=why.class_id,
        method_id=why.method_id,
    )
