"""Publishes that a policy judges: held until their content header has come, refused with or without closing.

::

    method ── miss ──▶ admit ── no ──────────────▶ refuse at the method
                         │ yes: a flow, which says which messages must be judged one by one
                         ▼
    method ── shown ─▶ held until its header ──▶ decide ── no ──▶ refuse at the header
                                                   │ yes
                                                   ▼ method and header go on, the body by the data path

A refusal closes the channel, unless the policy says otherwise: ``nack`` and ``drop`` answer with a confirm,
``return`` collects the message and gives it back. Then the broker's confirms need the client's numbers
(`confirm_numbers`).
"""

from __future__ import annotations

import attrs

from amqpgate.datapath.relay import Relay
from amqpgate.datapath.scanner import ByChannel, Flow
from amqpgate.datapath.tables import METHOD_NEXT, Show, Side
from amqpgate.errors import ProtocolViolation, cut_reply
from amqpgate.gateway.session.confirm_numbers import ConfirmNumbers
from amqpgate.policy import Operation, Verdict
from amqpgate.protocol.frames import method_frame
from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Bytes of a message that is collected to be returned. A larger one closes its channel.
LARGEST_RETURN = 1 << 20

#: Bytes for a client that wait for the end of a message to it, on one channel. Whoever asks for more without
#: reading loses its connection.
LONGEST_WAIT = 4 << 20

#: ACCESS_REFUSED (AMQP 0-9-1, section 1.2).
_ACCESS_REFUSED = 403


@define
class HeldPublish:
    """A publish whose method has come, and waits for its content header."""

    method: amqp.BasicPublish
    frame: bytes
    operation: Operation
    flow: Flow
    #: How many messages it stands for where observers choose some; 0: nobody does.
    weight: int
    #: Whether an observer must have its header read.
    is_read: bool = False
    #: Since when it has waited for a limit, on the data path's clock; 0: it has not.
    since: float = 0.0


@define
class ReturnedPublish:
    """A refused message that is collected to be given back."""

    method: amqp.BasicPublish
    why: str
    #: Its number among the client's confirms; 0 where there are none.
    number: int
    #: Header and body frames, as they came.
    frames: bytearray = attrs.field(factory=bytearray)

    def add(self, frame: memoryview) -> None:
        """One more of its frames has come."""
        self.frames += frame


@define(weakref_slot=False)
class ChannelPublishes:
    """One channel."""

    #: Publishes that had passed when the client selected confirms; None: it has not.
    confirms_from: int | None = None
    #: Commits that the broker has not answered; None: the channel has no transactions.
    commits_due: int | None = None
    confirm_numbers: ConfirmNumbers | None = None
    held: HeldPublish | None = None
    returning: ReturnedPublish | None = None
    #: Frames for the client that wait for the end of a message to it.
    waiting: bytes = b""

    @property
    def transacts(self) -> bool:
        """Whether what is published waits for a commit."""
        return self.commits_due is not None

    def select_confirms(self, published: int) -> bool:
        """The client selects confirms after so many publishes; whether it had not so far."""
        if self.confirms_from is not None:
            return False
        self.confirms_from = published
        return True

    def select_transactions(self) -> None:
        """What is published from now on waits for a commit."""
        self.commits_due = self.commits_due or 0

    def number_confirms(self, numbers: ConfirmNumbers) -> None:
        """The broker's confirm numbers are not the client's from now on."""
        self.confirm_numbers = numbers

    def hold(self, held: HeldPublish) -> None:
        """A publish waits for its content header."""
        self.held = held

    def take_held(self) -> HeldPublish | None:
        """The publish whose header has come."""
        held, self.held = self.held, None
        return held

    def give_back(self, returning: ReturnedPublish) -> None:
        """A refused message is collected from now on."""
        self.returning = returning

    def take_returning(self) -> ReturnedPublish | None:
        """The message that is collected; it is no more."""
        returning, self.returning = self.returning, None
        return returning

    def wait(self, number: int, data: bytes) -> None:
        """Frames for the client wait for the end of a message to it. Raises `ProtocolViolation`."""
        if len(self.waiting) + len(data) > LONGEST_WAIT:
            raise ProtocolViolation(506, "too many answers wait for the end of a message", channel=number)
        self.waiting += data

    def take_waiting(self) -> bytes:
        """What need not wait any more."""
        waiting, self.waiting = self.waiting, b""
        return waiting

    def committing(self, more: int) -> None:
        """So many more commits wait for the broker's answer. Without transactions the broker refuses them."""
        if self.commits_due is not None:
            self.commits_due = max(0, self.commits_due + more)


@define(weakref_slot=False)
class PublishDenials:
    """Refuses publishes of one session without closing channels."""

    relay: Relay
    #: Open channels.
    channels: ByChannel[ChannelPublishes]

    def can_answer(self, number: int, verdict: Verdict, body_size: int | None = None) -> bool:
        """Whether the refusal can be told as the policy wants, without closing the channel.

        ``body_size`` once it is known.
        """
        state = self.channels[number]
        how = verdict.on_denied
        if state.transacts:
            return False
        if state.confirm_numbers is not None and state.confirm_numbers.is_full:
            return False
        if how == "nack" and state.confirms_from is None:
            return False
        return how != "return" or body_size is None or body_size <= LARGEST_RETURN

    def at_method(self, number: int, method: amqp.BasicPublish, verdict: Verdict, why: str) -> None:
        """Nothing of the message has passed, and its content is still to come; ``why`` is for the client."""
        channels = self.relay.channels
        confirm = self._number(number)
        if verdict.on_denied == "return":
            self.channels[number].give_back(ReturnedPublish(method, why, confirm))
            channels.expect_header(Side.CLIENT, number, None, Show.BODY)
        else:
            channels.drop_next(Side.CLIENT, number)
            self._confirm(number, confirm, verdict)

    def at_header(
        self, number: int, method: amqp.BasicPublish, frame: memoryview, verdict: Verdict, why: str
    ) -> None:
        """The header has come, and is counted; the method was held. ``why`` is for the client."""
        channels = self.relay.channels
        channels.uncount(Side.CLIENT, number)
        confirm = self._number(number)
        if verdict.on_denied == "return":
            self.channels[number].give_back(ReturnedPublish(method, why, confirm))
            channels.show_rest(Side.CLIENT, number)
            self._collect(number, frame)
        else:
            channels.drop_rest(Side.CLIENT, number)
            self._confirm(number, confirm, verdict)

    def collect(self, number: int, frame: memoryview) -> None:
        """A header or body of a message that was refused at its method, or goes on being collected."""
        if frame[0] == amqp.FRAME_HEADER:
            self.relay.channels.uncount(Side.CLIENT, number)
        self._collect(number, frame)

    def _collect(self, number: int, frame: memoryview) -> None:
        state = self.channels[number]
        returning = state.returning
        assert returning is not None
        returning.add(frame)
        if self.relay.channels.due(Side.CLIENT, number) != METHOD_NEXT:
            return
        state.take_returning()
        method = returning.method
        back = amqp.BasicReturn(
            _ACCESS_REFUSED, cut_reply(returning.why), method.exchange, method.routing_key
        )
        data = method_frame(number, back) + bytes(returning.frames)
        if returning.number:
            data += method_frame(number, amqp.BasicNack(returning.number))
        self.tell(number, data)

    def _number(self, number: int) -> int:
        """The client's number of the publish that is being refused; 0 where it has no confirms."""
        state = self.channels[number]
        if state.confirms_from is None:
            return 0
        if state.confirm_numbers is None:
            state.number_confirms(ConfirmNumbers(state.confirms_from))
            self.relay.channels.show_acks(number)
        assert state.confirm_numbers is not None
        return state.confirm_numbers.refuse(self.relay.channels.messages(Side.CLIENT, number))

    def _confirm(self, number: int, confirm: int, verdict: Verdict) -> None:
        if confirm:
            answer = amqp.BasicAck(confirm) if verdict.on_denied == "drop" else amqp.BasicNack(confirm)
            self.tell(number, method_frame(number, answer))

    def tell(self, number: int, data: bytes) -> None:
        """Frames for the client, behind the message to it that is under way on the channel, if any.

        Raises `ProtocolViolation` where too much waits for that.
        """
        state = self.channels[number]
        if state.waiting or self.relay.channels.due(Side.UPSTREAM, number) != METHOD_NEXT:
            state.wait(number, data)
            self.relay.channels.show_rest(Side.UPSTREAM, number)
        else:
            self.relay.send(Side.CLIENT, data)

    def message_ended(self, number: int) -> None:
        """A message to the client has been passed on; what waited for that follows."""
        waiting = self.channels[number].take_waiting()
        if waiting:
            self.relay.send(Side.CLIENT, waiting)

    def confirmed(self, number: int, method: Method) -> Method:
        """The broker's ack or nack as the client numbers its publishes."""
        assert isinstance(method, amqp.BasicAck | amqp.BasicNack)
        confirm_numbers = self.channels[number].confirm_numbers
        if confirm_numbers is None:
            return method
        told = attrs.evolve(method, delivery_tag=confirm_numbers.translate(method.delivery_tag))
        confirm_numbers.answered(method.delivery_tag, multiple=method.multiple)
        return told
