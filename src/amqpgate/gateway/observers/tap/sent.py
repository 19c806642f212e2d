"""What taps are told of the messages that the broker sends to one session's client: delivered, got, returned.

::

    deliver ── miss ──▶ does it match? then its flow is watched
            ── shown ─▶ its header ──▶ a line
    get-ok, return ──▶ each is seen at its method: does it match? then it is counted; its header ──▶ a line

There is metadata only, since audit policies judge what clients ask for, and these may be another's messages.
What it was asked for with says whether there is even that: basic.consume or basic.get, and of what came back
basic.publish.
"""

from __future__ import annotations

import attrs

from amqpgate.datapath.scanner import Flow
from amqpgate.datapath.tables import Show
from amqpgate.gateway.observers.tap.flows import Watched, Watches
from amqpgate.gateway.observers.tap.scope import Scope, header_in, tell
from amqpgate.gateway.observers.tap.taps import Tap
from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.gateway.session.observer import Sent
from amqpgate.gateway.session.publish import size_of
from amqpgate.policy import Operation
from amqpgate.policy.engine.taps import DELIVER, GOT, RETURNED
from amqpgate.policy.engine.verdicts import UNRESTRICTED
from amqpgate.policy.kinds.audit import NOT_AUDITED
from amqpgate.wire.generated import v0_9_1 as amqp


@attrs.define(weakref_slot=False)
class _TappedDelivery:
    """A message whose header comes next."""

    method: Sent
    watched: Watched
    weight: int
    #: Who is shown it; None: that has not been chosen yet.
    taps: list[Tap] | None = None


@attrs.define(eq=False, weakref_slot=False)
class TappedDeliveries:
    """Of one session."""

    scope: Scope
    watches: Watches
    channels: SessionChannels
    #: By channel.
    _arriving: dict[int, _TappedDelivery] = attrs.field(factory=dict, init=False)

    # -- delivered -------------------------------------------------------------------------------

    def delivers(self, flow: Flow, channel: int, method: amqp.BasicDeliver, *, captures: bool) -> None:
        """A flow of deliveries is about to be installed; policies have said how much they are shown."""
        asked = self._consumed(channel, method.consumer_tag)
        if self.scope.is_silent(asked):
            return
        operation = self._operation(DELIVER, method, None if asked is None else asked.queue)
        taps = self.scope.matching(operation, UNRESTRICTED)
        if taps:
            # Their frames have their tags, of which what is captured has none.
            captures = captures and not any(tap.order.frames for tap in taps)
            is_always = flow.sample_every == 1
            watched = Watched(flow, operation, taps, NOT_AUDITED, UNRESTRICTED, method, is_always)
            self.watches.watch(watched, captures=captures)

    def arriving(self, channel: int, method: amqp.BasicDeliver, flow: Flow, weight: int) -> None:
        """A delivery that is shown; its header comes next. It stands for ``weight`` messages; 0: it is not
        for taps."""
        self._arriving.pop(channel, None)
        if weight:
            self._arriving[channel] = _TappedDelivery(method, self.watches[flow], weight)

    def _consumed(self, channel: int, tag: str) -> Operation | None:
        """What a consumer was asked for with, if that is known."""
        state = self.channels.states.get(channel)
        consumer = None if state is None or state.consuming is None else state.consuming.tags.get(tag)
        return consumer.operations[0] if consumer is not None and len(consumer.operations) == 1 else None

    # -- got, and returned -----------------------------------------------------------------------

    def came(
        self, channel: int, method: amqp.BasicGetOk | amqp.BasicReturn, queue: str | None
    ) -> Flow | None:
        """One that was got, from ``queue`` where that is known, or returned; its header comes next.

        The flow that counts it, and that shows its header if that is wanted; None: no tap is about it.
        """
        self._arriving.pop(channel, None)
        name = GOT if isinstance(method, amqp.BasicGetOk) else RETURNED
        what = name, method.exchange, method.routing_key, queue
        watched = self.watches.alike(what)
        if watched is None:
            operation = self._operation(name, method, queue)
            if self.scope.is_silent(self._asked(operation)):
                return None
            taps = self.scope.matching(operation, UNRESTRICTED)
            if not taps:
                return None
            watched = self.watches.watch_alike(what, operation, taps, method)
        chosen = self.watches.choose(watched, 1)
        if chosen:
            self._arriving[channel] = _TappedDelivery(method, watched, 1, chosen)
        watched.flow.show = Show.HEADER if chosen else Show.NOTHING
        return watched.flow

    def _asked(self, operation: Operation) -> Operation | None:
        """What a message was got with, if that is known, or published."""
        if operation.name == RETURNED:
            return attrs.evolve(operation, name=amqp.BasicPublish.NAME)
        if operation.queue is None:
            return None
        return self.channels.told_apart(
            Operation(self.scope.principal, amqp.BasicGet.NAME, queue=operation.queue)
        )

    # -- all of them -----------------------------------------------------------------------------

    def arrived(self, channel: int, frame: memoryview) -> bool:
        """The header of a message has passed: whether it is one that was got or returned, and is told."""
        coming = self._arriving.pop(channel, None)
        if coming is None:
            return False
        watched, taps = coming.watched, coming.taps
        if taps is None:
            header = header_in(frame) if coming.weight > 1 else None
            taps = self.watches.choose(watched, coming.weight, header, len(frame))
        if taps:
            operation = watched.operation
            assert operation.exchange is not None
            assert operation.routing_key is not None
            method = attrs.evolve(
                coming.method, exchange=operation.exchange, routing_key=operation.routing_key
            )
            tell(taps, self.scope.told(channel, operation, UNRESTRICTED, method, size_of(frame)))
        return coming.taps is not None

    def opens(self, channel: int) -> None:
        """A channel opens: there is nothing of its last use."""
        self._arriving.pop(channel, None)

    def _operation(self, name: str, method: Sent, queue: str | None) -> Operation:
        """With the names that the client knows."""
        exchange, key = method.exchange, method.routing_key
        rewriter = self.scope.session_policies.rewriter
        if rewriter is not None and rewriter.transform.naming is not None:
            naming = rewriter.transform.naming
            exchange = naming.exchange_down(exchange)
            key = naming.key_down(exchange, key)
        return Operation(self.scope.principal, name, exchange=exchange, routing_key=key, queue=queue)
