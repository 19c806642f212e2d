"""The spans of one session that have begun, and what ends them.

While a publish waits for its confirm the broker's confirms on its channel are upcalls, and while a delivery
waits for its acknowledgement the client's are; otherwise these pass on the data path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from amqpgate.datapath.relay import Relay
from amqpgate.datapath.tables import Side
from amqpgate.gateway.observers.trace.tracer import Tracer
from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.gateway.session.settlement import Settling
from amqpgate.telemetry.tracing.open_span import OpenSpan
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Spans under way at once, some 4 KiB each: of one session, and of all.
OPEN_PER_SESSION: Final = 256
OPEN_IN_ALL: Final = 16384
#: Answers that are failures, with their words.
_SETTLES: Final = {amqp.BasicNack.INDEX: "nack", amqp.BasicReject.INDEX: "reject"}


@attrs.define(eq=False)
class UnderWay:
    """Of one session."""

    tracing: Tracer
    relay: Relay
    channels: SessionChannels
    #: By channel: publishes by the broker's number, deliveries by their tag, requests with what answers them.
    _publishes: dict[int, dict[int, OpenSpan]] = attrs.field(factory=dict, init=False)
    _deliveries: dict[int, dict[int, OpenSpan]] = attrs.field(factory=dict, init=False)
    _requests: dict[int, list[tuple[OpenSpan, tuple[int, ...]]]] = attrs.field(factory=dict, init=False)
    _count: int = attrs.field(default=0, init=False)

    def has_room(self) -> bool:
        """Whether one more may begin; if not, that is counted."""
        if self._count < OPEN_PER_SESSION and self.tracing.open < OPEN_IN_ALL:
            return True
        self.tracing.counters.dropped("open")
        return False

    def published(self, channel: int, span: OpenSpan, messages: int | None = None) -> None:
        """A publish has been passed on: its span ends with the broker's confirm, if there will be one.

        ``messages`` is its number among those of its channel; None: it is the last one.
        """
        state, channels = self.channels.states[channel], self.relay.channels
        if state.confirms_from is None:
            span.end()
            return
        before = state.confirms_from if state.confirm_numbers is None else state.confirm_numbers.start
        if messages is None:
            messages = channels.messages(Side.CLIENT, channel)
        number = messages - before
        self._begin(self._publishes.setdefault(channel, {}), number, span)
        channels.show_acks(channel)

    def delivered(self, channel: int, tag: int, span: OpenSpan) -> None:
        """A message has been passed on to a client that acknowledges."""
        self._begin(self._deliveries.setdefault(channel, {}), tag, span)
        self.relay.channels.show_settles(channel)

    def requested(self, channel: int, method: Method, span: OpenSpan) -> None:
        """The broker has been asked."""
        if getattr(method, "no_wait", False) or not method.REPLIES:
            span.end()
            return
        self._requests.setdefault(channel, []).append((span, method.REPLIES))
        self._add(1)

    def settled(self, channel: int, method: Method) -> None:
        """The client has said ack, nack or reject, or something else."""
        waiting = self._deliveries.get(channel)
        if waiting is not None and isinstance(method, Settling):
            self._answered(waiting, method, self.relay.channels.show_settles, channel)

    def heard(self, channel: int, method: Method) -> None:
        """The broker has said something, with its own numbers."""
        if isinstance(method, amqp.BasicAck | amqp.BasicNack):
            waiting = self._publishes.get(channel)
            if waiting:
                self._answered(waiting, method, self._show_acks, channel)
        elif isinstance(method, amqp.ChannelClose):
            self.abandon(channel, word_of(method.reply_code))
        elif isinstance(method, amqp.ChannelCloseOk):
            self.abandon(channel, "channel-closed")
        else:
            if isinstance(method, amqp.BasicRecoverOk):
                self.recovered(channel)
            requests = self._requests.get(channel, [])
            for at, (span, replies) in enumerate(requests):
                if method.INDEX in replies:
                    del requests[at]
                    self._end(span)
                    break

    def recovered(self, channel: int) -> None:
        """The broker has its deliveries again: the client acknowledges none of them any more."""
        # What settles others is shown until there is one: others may want to see it as well.
        spans = self._deliveries.get(channel, {})
        while spans:
            self._end(spans.popitem()[1], "recover")

    def abandon(self, channel: int, why: str) -> None:
        """What is under way on a channel will not be answered."""
        for span in (
            *self._publishes.pop(channel, {}).values(),
            *self._deliveries.pop(channel, {}).values(),
            *(span for span, _ in self._requests.pop(channel, [])),
        ):
            self._end(span, why)

    def end(self) -> None:
        """The session is over."""
        for channel in {*self._publishes, *self._deliveries, *self._requests}:
            self.abandon(channel, "connection-closed")

    def _answered(
        self, waiting: dict[int, OpenSpan], method: Settling, show: Callable[[int, bool], None], channel: int
    ) -> None:
        """One tag, or all up to it; 0 means all (AMQP 0-9-1, basic.ack.multiple)."""
        tag = method.delivery_tag
        if not isinstance(method, amqp.BasicReject) and method.multiple:
            tags = [one for one in waiting if one <= tag or not tag]
        else:
            tags = [tag] if tag in waiting else []
        for one in tags:
            span = waiting.pop(one)
            if isinstance(method, amqp.BasicAck) and waiting is self._publishes.get(channel):
                self.tracing.confirmed(span)
            self._end(span, _SETTLES.get(method.INDEX))
        if not waiting:
            show(channel, False)

    def _show_acks(self, channel: int, shown: bool) -> None:
        # Where publishes were refused, the broker's numbers are translated for good.
        if self.channels.states[channel].confirm_numbers is None:
            self.relay.channels.show_acks(channel, shown)

    def _begin(self, spans: dict[int, OpenSpan], number: int, span: OpenSpan) -> None:
        """One that ends by a number. A broker that says the number twice has ended the first."""
        before, spans[number] = spans.get(number), span
        self._add(1)
        if before is not None:
            self._end(before, "said-again")

    def _end(self, span: OpenSpan, why: str | None = None) -> None:
        if why is not None:
            self.tracing.spans.failed(span, why)
        span.end()
        self._add(-1)

    def _add(self, spans: int) -> None:
        self._count += spans
        self.tracing.count(spans)


def word_of(code: int) -> str:
    """A reply code's name, such as not-found."""
    reply = amqp.REPLY_CODES.get(code)
    return reply.name if reply is not None else "closed"
