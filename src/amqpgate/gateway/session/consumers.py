"""The consumers of one session: those that a change of policies no longer allows are cancelled.

::

    client                       gateway                          broker
      │                             │ policies change: not allowed   │
      │                             │ basic.cancel ────────────────▶ │
      │ ◀── deliveries that were under way, and whatever else ────── │
      │                             │ ◀───────────────── cancel-ok   │
      │ ◀──────────── basic.cancel  │

This is what a broker does whose queue is deleted, for clients that say that they understand it (the
capability consumer_cancel_notify). The others get their channel closed with 403, and so does a channel with
a consumer whose tag nobody knows. Either way the broker keeps what was not acknowledged, and gives it to
others: after a cancel once the channel is closed, as it always does.

Nothing is put into the middle of a message: not of one to the client, since the broker's cancel-ok has come
between two, and not of one from the client, whose end is waited for.

What is remembered of consumers is bounded (`ROOM`), and so are the client's cancels that the broker has not
answered (`CANCELS`): their answers pass all the same. A channel with more of either is closed when policies
change that concern the session, whatever they say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from amqpgate.datapath.engine import PeerGoneError
from amqpgate.datapath.relay import Relay
from amqpgate.datapath.tables import METHOD_NEXT, OPEN, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session import settlement
from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.gateway.session.channel_consumers import EACH, ChannelConsumers, SessionConsumer
from amqpgate.gateway.session.observer import Denial
from amqpgate.gateway.session.session_policies import SessionPolicies
from amqpgate.policy import Operation, Principal, Verdict, denial_text
from amqpgate.policy.engine.from_method import operation_of
from amqpgate.values import define, frozen
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Bytes that one session's consumers may take: each its own request and `channel_consumers.EACH` more. The
#: usual ones are some hundred bytes, so that is above a thousand consumers.
ROOM: Final = 1 << 20

#: Cancels of one session that the broker has not answered and that are remembered, each in up to 1 KiB.
CANCELS: Final = 1024


@frozen
class _Denied:
    tag: str | None
    operation: Operation
    verdict: Verdict


@define(eq=False, weakref_slot=False)
class Consumers:
    """The consumers of one session."""

    relay: Relay
    channels: SessionChannels
    #: Whether the client understands basic.cancel.
    is_told: bool
    session_policies: SessionPolicies

    def consume(self, number: int, method: amqp.BasicConsume, principal: Principal, byte_count: int) -> None:
        """The client asks for one more, and may have it. ``byte_count`` is how long its request is."""
        state = self._of(number)
        settlement.consumes(self.relay.channels, number, state, method)
        operation = operation_of(method, principal, self.channels.states[number].last_queue)
        operation = self.channels.told_apart(operation)
        consumer = SessionConsumer((operation,), byte_count + EACH, method.no_ack)
        held = sum(consuming.byte_count for consuming in self._all())
        if held + consumer.byte_count > ROOM:
            state.too_many()
        if state.has_more:
            return
        state.add(consumer, method.consumer_tag, is_answered=not method.no_wait)

    def cancel(self, number: int, method: amqp.BasicCancel) -> None:
        """The client wants one no more. It may use the tag again at once."""
        state = self._of(number)
        tag, is_answered = method.consumer_tag, not method.no_wait
        if is_answered and sum(consuming.cancels_due for consuming in self._all()) >= CANCELS:
            state.too_many()
            is_answered = False
        if is_answered:
            state.cancelling(tag, None)
        else:
            state.gone(tag)

    def from_broker(self, number: int, method: Method) -> None:
        """Pass a consume-ok, a cancel or a cancel-ok on, unless it answers the gateway."""
        state = self._of(number) if number in self.channels.states else None
        if state is None or self._is_for_client(number, state, method):
            self.channels.send(Side.CLIENT, number, method)
        if state is not None and state.awaits_name:
            self.review(number)

    def _is_for_client(self, number: int, state: ChannelConsumers, method: Method) -> bool:
        if isinstance(method, amqp.BasicCancel):
            state.gone(method.consumer_tag)
            settlement.gone(self.relay.channels, number, state, method.consumer_tag)
        elif isinstance(method, amqp.BasicConsumeOk):
            state.name(method.consumer_tag)
            settlement.named(self.relay.channels, number, state, method.consumer_tag)
        elif isinstance(method, amqp.BasicCancelOk):
            return self._cancelled(number, state, method.consumer_tag)
        return True

    def _cancelled(self, number: int, state: ChannelConsumers, tag: str) -> bool:
        if tag not in state.cancels:
            return True
        tells = state.cancel_answered(tag)
        if tag not in state.cancels:
            settlement.gone(self.relay.channels, number, state, tag)
        if tells is None:
            return True
        if tells and self._is_open(number):
            self.channels.send(Side.CLIENT, number, amqp.BasicCancel(tag, no_wait=True))
        return False

    # -- policies change ---------------------------------------------------------------------

    def review_all(self) -> None:
        """Other policies hold. Called outside of the data path's upcalls."""
        if self.session_policies.access.enforced.unrestricted:
            for consuming in self._all():
                consuming.reviewed()
            return
        try:
            for number, channel in self.channels.states.made():
                if channel.consuming is not None:
                    self.review(number)
        except PeerGoneError:
            # The data path will find that out by itself, and the session is over then.
            pass

    def review(self, number: int) -> None:
        """Cancel those of a channel that are not allowed, unless a message must end first."""
        state = self._of(number)
        state.reviewed()
        if not self._is_open(number):
            return
        denied: list[_Denied] = []
        for tag, consumer in self._known(state):
            for operation in consumer.operations:
                verdict = self.session_policies.access.enforced.decide(operation)
                if not verdict.allowed:
                    denied.append(_Denied(tag, operation, verdict))
                    break
        if not denied and not state.has_more:
            return
        if self.is_sending(number):
            state.review_later()
            self.relay.channels.show_rest(Side.CLIENT, number)
            return
        if not self.is_told or state.has_more or any(one.tag is None for one in denied):
            self._close(number, denied)
            return
        state.cancel_named(is_one_nameless=any(not one.tag for one in denied))
        for one in denied:
            if not one.tag:
                continue
            self._report(number, one, closes=False)
            state.cancelling(one.tag, True)
            cancel = state.cancel(amqp.BasicCancel(one.tag))
            self.channels.send(Side.UPSTREAM, number, cancel)

    def _report(self, number: int, one: _Denied, *, closes: bool = True) -> str:
        """Tell observers; what the client reads."""
        text = denial_text(one.operation, one.verdict)
        self.session_policies.denied(Denial(number, None, one.operation, one.verdict, text, closes=closes))
        return text

    def _close(self, number: int, denied: list[_Denied]) -> None:
        texts = [self._report(number, one) for one in denied]
        why = "policies have changed, and this channel has more consumers than can be judged again"
        if texts:
            why = texts[0]
        kind = amqp.BasicConsume
        violation = ProtocolViolation(
            403, why, class_id=kind.CLASS_ID, method_id=kind.METHOD_ID, channel=number
        )
        self.channels.refuse(number, violation)

    def message_ended(self, number: int) -> None:
        """A frame of the client's was shown: if it was a message's last, those may go that waited for it."""
        consuming = self.channels.states[number].consuming
        if (
            consuming is not None
            and consuming.due
            and self.relay.channels.due(Side.CLIENT, number) == METHOD_NEXT
        ):
            self.review(number)

    @property
    def is_overdue(self) -> bool:
        """Whether the end of a message is still waited for."""
        return any(consuming.due for consuming in self._all())

    @staticmethod
    def _known(state: ChannelConsumers) -> Iterator[tuple[str | None, SessionConsumer]]:
        """With their tags: ``""`` is not known yet, and None is of no use."""
        for tag, consumer in state.tags.items():
            yield (tag if consumer.has_plain_tag else None), consumer
        for consumer in state.nameless:
            yield None, consumer
        for consumer in state.asked:
            yield "", consumer

    def _of(self, number: int) -> ChannelConsumers:
        return self.channels.states[number].consumers()

    def _all(self) -> Iterator[ChannelConsumers]:
        """Of the channels that have had any."""
        for _, channel in self.channels.states.made():
            if channel.consuming is not None:
                yield channel.consuming

    def _is_open(self, number: int) -> bool:
        """Whether nobody has closed the channel."""
        return self.relay.channels.state(number) == OPEN and self.channels.states[number].close is None

    def is_sending(self, number: int) -> bool:
        """Whether the broker has a part of a message on this channel, and waits for the rest."""
        table = self.relay.channels
        channel = self.channels.states[number]
        return (
            table.due(Side.CLIENT, number) != METHOD_NEXT
            and channel.held is None
            and channel.returning is None
            and not table.is_dropping(Side.CLIENT, number)
        )
