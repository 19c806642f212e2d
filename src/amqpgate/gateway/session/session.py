"""One established session's control plane: it answers the data path's upcalls.

Synchronous throughout: an upcall decides, queues what is to be sent, and returns. Set-up and
tear-down, which wait, are in ``setup`` and ``teardown``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import attrs

from amqpgate.bridge import Interpreter
from amqpgate.datapath import tables
from amqpgate.datapath.engine import Pump
from amqpgate.datapath.relay import End, Relay
from amqpgate.datapath.scanner import Flow, FlowTable, flow_key
from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.limits.token_buckets import SessionLimits
from amqpgate.gateway.pool.pooled_session import PooledSession
from amqpgate.gateway.session import settlement
from amqpgate.gateway.session.blocked_notices import BlockedNotice
from amqpgate.gateway.session.channel_close import SessionChannel, SessionChannels
from amqpgate.gateway.session.channel_flow import ChannelFlows, Settling
from amqpgate.gateway.session.client_methods import allows, decide, passed
from amqpgate.gateway.session.connection_close import CloseState, pass_on
from amqpgate.gateway.session.consumers import Consumers
from amqpgate.gateway.session.content import expect_content, take_content
from amqpgate.gateway.session.deliveries import delivery_flow, send_message
from amqpgate.gateway.session.dispatch import DOWN, UP, Do
from amqpgate.gateway.session.observer import Sees, Sent, SessionObserver
from amqpgate.gateway.session.operation_limits import OperationLimits, Turn
from amqpgate.gateway.session.publish import PublishHandler
from amqpgate.gateway.session.publish_refusal import PublishRefuser
from amqpgate.gateway.session.rewriter import Rewriter
from amqpgate.gateway.session.session_policies import SessionPolicies
from amqpgate.gateway.session.version_bridge import VersionBridge
from amqpgate.gateway.session.violations import check_text, not_open, unexpected, violation_of
from amqpgate.policy import Choice, Judges, Principal
from amqpgate.protocol.channel import too_many_channels
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: What frames of a channel that is not open are shown as.
_BEHIND = frozenset({tables.Verdict.METHOD, tables.Verdict.NOT_OPEN})

#: Content that no method of 0-9-1 announced.
_UNASKED = frozenset({tables.Verdict.HEADER_UNASKED, tables.Verdict.BODY_UNASKED})

#: How long a method waits that an observer holds up, in seconds; the session is retried earlier.
_LONG = 60.0

#: Where a content header of the client's is shown.
_SIZES = frozenset({tables.Verdict.HEADER, tables.Verdict.OVERSIZE})


@attrs.frozen
class SessionOutcome:
    """Why a session left the data path."""

    end: End
    side: Side | None
    error: Exception | None


@attrs.define(eq=False, weakref_slot=False)
class Session:
    """The handler of one relay."""

    id: str
    judging: SessionPolicies
    #: Of the client and of the broker, by ``Side``.
    interpreters: tuple[Interpreter, Interpreter]
    channel_max: int
    #: Called once, when the session has left the data path. No task waits for that meanwhile.
    on_over: Callable[[Session], None]
    #: Whether the client understands basic.cancel.
    hears_cancels: bool = False
    #: The route that it was opened by; None: none.
    choice: Choice | None = None
    notice: BlockedNotice = attrs.field(factory=BlockedNotice)
    #: Whether channel.flow off is done here for a client of 0-9-1, too.
    keeps_deliveries: bool = False
    #: None while nothing need be translated, or done in the broker's place.
    bridge: VersionBridge | None = attrs.field(default=None, init=False)
    #: None: the session has an upstream connection of its own.
    riding: PooledSession | None = attrs.field(default=None, init=False)
    relay: Relay = attrs.field(init=False)
    closes: SessionChannels = attrs.field(init=False)
    refuser: PublishRefuser = attrs.field(init=False)
    consumers: Consumers = attrs.field(init=False)
    holding: PublishHandler = attrs.field(init=False)
    rations: OperationLimits = attrs.field(init=False)
    outcome: SessionOutcome = attrs.field(default=SessionOutcome(End.FINISHED, None, None), init=False)
    closing: CloseState = attrs.field(default=CloseState.NO, init=False)
    #: Whether the headers of messages that the client gets are needed, too.
    reads_sent: bool = attrs.field(default=False, init=False)
    #: Who asked for a close that has not been answered. Both may ask at once.
    closers: tuple[Side, ...] = attrs.field(default=(), init=False)

    @property
    def principal(self) -> Principal:
        return self.judging.principal

    @property
    def observers(self) -> tuple[SessionObserver, ...]:
        """Who looks on, in the order in which they are told."""
        return self.judging.observers

    @property
    def throttle(self) -> SessionLimits:
        return self.judging.throttle

    @property
    def rewriter(self) -> Rewriter | None:
        return self.judging.rewriter

    def at_broker(self, queue: str) -> str:
        """A queue's name as the broker knows it."""
        naming = None if self.rewriter is None else self.rewriter.transform.naming
        return queue if naming is None or not queue else naming.queue_up(queue)

    @property
    def violated(self) -> bool:
        """Whether a peer broke the protocol."""
        return isinstance(self.outcome.error, ProtocolViolation)

    @property
    def agreed(self) -> bool:
        """Whether the connection was closed by connection.close and close-ok of the peers."""
        return self.closing is CloseState.DONE

    def judge_by(self, judges: Judges, throttle: SessionLimits) -> None:
        """From the next message on, other policies hold. A message under way ends as it began."""
        self.judging.judges, self.judging.throttle = judges, throttle
        self.holding.rations = self.rations = OperationLimits(
            throttle, self.closes, self.judging.limited, self.relay.up
        )
        self._set_flows()
        self.consumers.review_all()
        self.relay.pump.retry(self.relay)

    def observe(self, observers: tuple[SessionObserver, ...]) -> None:
        """These look on from now on: each message is looked at anew."""
        self.judging.observed_by(observers)
        self._set_flows()

    def _set_flows(self) -> None:
        """Flows where messages may have to be judged; those that there are were other policies'."""
        # Of what shares a link every kind of publish is looked at once.
        up, down = self.judging.is_restricted or self.riding is not None, self.judging.judges_deliveries
        shows_content = self.rewriter is not None and self.rewriter.transform.naming is not None
        if self.bridge is not None:
            up = up or self.bridge.refuses_immediate or self.bridge.maps(Side.CLIENT)
            shown = self.bridge.maps(Side.UPSTREAM) or bool(self.bridge.stops)
            down, shows_content = down or shown, shows_content or shown
        self.reads_sent, seen = shows_content, self.judging.sees
        up, down = up or Sees.PUBLISHES in seen, down or Sees.DELIVERIES in seen
        shows_content = shows_content or Sees.CONTENT in seen
        if self.relay.down.shows_content and not shows_content:
            self.closes.unheard()
        self.relay.down.shows_content = shows_content
        lanes = (self.relay.up, up), (self.relay.down, down)
        for lane, has_flows in lanes:
            if not has_flows or lane.flows is None:
                lane.flows = FlowTable() if has_flows else None
            else:
                lane.flows.flush()

    def enter(self, relay: Relay, pump: Pump) -> None:
        """Put the session on the data path."""
        self.relay = relay
        self.closes = SessionChannels(relay, relay.channels)
        if self.riding is not None:
            self.closes.shared = self.riding
        self.refuser = PublishRefuser(relay, self.closes.channels)
        judging = self.judging
        self.consumers = Consumers(relay, self.closes, self.hears_cancels, judging)
        self.rations = OperationLimits(self.throttle, self.closes, judging.limited, relay.up)
        self.holding = PublishHandler(relay, self.closes, self.refuser, judging, self.rations)
        if self.rewriter is not None:
            self.rewriter.enter(relay)
        if not all(interpreter.is_house for interpreter in self.interpreters):
            self.build_bridge()
        self._set_flows()
        pump.add(relay)

    def build_bridge(self) -> VersionBridge:
        """The bridge that there is, or a new one."""
        if self.bridge is None:
            stops = ChannelFlows(self.closes, self._set_flows, lambda: Sees.SETTLES in self.judging.sees)
            self.bridge = VersionBridge(
                self.relay,
                self.interpreters,
                self.refuser,
                stops,
                self.consumers.is_sending,
                self.keeps_deliveries,
            )
        return self.bridge

    # -- the handler that the data path calls ------------------------------------------------

    def upcall(self, side: Side, verdict: tables.Verdict, frame: memoryview) -> bool:
        lane = self.relay.endpoints[side].lane
        lane.ready_at = 0.0
        if side is Side.UPSTREAM and verdict in _BEHIND and self.closes.is_behind(frame):
            return False
        try:
            if verdict > tables.LAST_HARMLESS:
                if verdict in _UNASKED and self.bridge is not None and self.bridge.takes_content(side, frame):
                    return False
                raise violation_of(verdict, frame, lane.frame_max)
            channel = int.from_bytes(frame[1:3], "big")
            if side is Side.CLIENT and verdict in _SIZES and self.holding.refuses_size(channel, frame):
                return False
            if (
                side is Side.CLIENT
                and self.closing is not CloseState.NO
                and self.riding is not None
                and channel
            ):
                return False
            if verdict is tables.Verdict.HEADER or verdict is tables.Verdict.BODY:
                if verdict is tables.Verdict.HEADER and self.bridge is not None:
                    frame = self.bridge.hear_header(side, frame)
                take_content(self, side, channel, frame)
                return False
            if self.bridge is None:
                method = decode_method(frame[7:-1])
            else:
                method, frame = self.bridge.hear(side, frame)
            if side is Side.CLIENT and self.judging.holds_up(method):
                lane.ready_at = time.monotonic() + _LONG
                return True
            if side is Side.CLIENT and self.riding is not None:
                if verdict is tables.Verdict.LARGE:
                    return self.riding.makes_room(channel, method)
                if self.riding.holds_up(channel, method):
                    return True
            if verdict is tables.Verdict.APART:
                assert isinstance(method, amqp.BasicPublish), "nothing else has content"
                flow = expect_content(self.relay, side, channel, frame)
                self.holding.hold(channel, method, frame, flow, is_apart=True)
                return False
            if verdict is tables.Verdict.MISS:
                return self._decide_flow(side, channel, method, frame)
            if side is Side.CLIENT:
                turn = self.rations.turn(channel, method)
                if turn is Turn.GO:
                    self._from_client(channel, method, frame)
                else:
                    for observer in self.judging.observers:
                        observer.turned(channel, method, turn)
                return turn is Turn.WAIT
            else:
                self._from_broker(channel, method, frame)
        except ProtocolViolation as violation:
            if side is Side.CLIENT and violation.scope == "channel":
                self.closes.refuse(violation.channel, violation)
            else:
                self.fail(violation, side)
        return False

    def fail(self, why: ProtocolViolation, side: Side = Side.CLIENT) -> None:
        """End the session because of what ``side`` does."""
        self.outcome = SessionOutcome(End.FAILED, side, why)
        self.relay.finish()

    def ended(self, end: End, side: Side | None, error: Exception | None) -> None:
        if self.outcome.error is None:
            self.outcome = SessionOutcome(end, side, error)
        for observer in self.judging.observers:
            observer.ended()
        try:
            if self.riding is not None:
                # Now: until it has left its channels, what comes on them is nobody's.
                self.riding.leave()
        finally:
            self.on_over(self)

    def release(self) -> None:
        """Free what grows with the routing keys that the client used.

        A session is part of cycles, and in a gateway that is idle Python may not look for those for hours.
        """
        self.judging.release()
        self.relay.up.flows = self.relay.down.flows = None

    # -- from the client ---------------------------------------------------------------------

    def _from_client(self, channel: int, method: Method, frame: memoryview) -> None:
        do = UP.get(method.INDEX)
        channels = self.relay.channels
        if channel and not channels.state(channel) and do is not Do.CHANNEL_OPEN:
            raise ProtocolViolation(
                504,
                "expected 'channel.open'",
                class_id=method.CLASS_ID,
                method_id=method.METHOD_ID,
                channel=channel,
            )
        if do is None or (channel == 0) != (method.CLASS_ID == amqp.ConnectionClose.CLASS_ID):
            if channel and self.closes.is_dropping(channel):
                return
            if not self._takes(Side.CLIENT, channel, method):
                raise unexpected(channel, method)
            return
        if do is Do.FORWARD:
            for observer in self.judging.watchers:
                observer.settled(channel, method)
            if self.bridge is not None and channel in self.bridge.stops and isinstance(method, Settling):
                self.bridge.settles(channel, method)
                return
            if channel:
                settlement.settled(channels, channel, method)
            self.relay.send(Side.UPSTREAM, frame)
        elif do is Do.DECIDE:
            decide(self, channel, method, frame)
        elif do is Do.CHANNEL_OPEN:
            if channels.state(channel):
                raise ProtocolViolation(
                    504, "second 'channel.open' seen", class_id=20, method_id=10, channel=channel
                )
            if len(channels) >= self.channel_max:
                raise too_many_channels(len(channels), self.channel_max)
            allows(self, channel, method)
            passed(self, channel, method)
            self.closes.channels[channel] = SessionChannel()
            for observer in self.judging.observers:
                # Of a link's channels it is not heard when they open.
                observer.asked(channel, method, "", self.riding is None)
            if self.riding is not None:
                self.riding.open(channel, frame)
                return
            channels.open(channel)
            self.relay.send(Side.UPSTREAM, frame)
        elif do is Do.CHANNEL_CLOSE:
            check_text(channel, method)
            if self.riding is not None and self.riding.is_idle(channel):
                self.riding.close(channel)
            else:
                self.closes.client_closes(channel, method)
        elif do is Do.CHANNEL_CLOSE_OK:
            self.closes.client_answers(channel, method)
        else:
            check_text(channel, method)
            pass_on(self, Side.CLIENT, do, frame)

    def _decide_flow(self, side: Side, channel: int, method: Method, frame: memoryview) -> bool:
        """The first message with these arguments: does it, and do those like it, pass?

        If so its flow is installed and the scanner looks again. Then the flow's buckets hold for this
        message, too: a client that never repeats its arguments is no exception.
        """
        flows = self.relay.endpoints[side].lane.flows
        assert flows is not None, "what has no flows cannot miss one"
        flow: Flow | None
        if isinstance(method, amqp.BasicPublish):
            peek = self.bridge.admit(channel, method) if self.bridge is not None else None
            flow = self.holding.flow(channel, method, peek)
        else:
            assert isinstance(method, amqp.BasicDeliver), "nothing else has flows"
            flow = delivery_flow(self, channel, method)
        if flow is None:
            return False
        flows.install(flow_key(side, frame), flow)
        return True

    # -- from the broker ---------------------------------------------------------------------

    def _from_broker(self, channel: int, method: Method, frame: memoryview) -> None:
        if isinstance(method, Sent) and self.relay.channels.state(channel):
            send_message(self, channel, method, frame)
            return
        if channel and not self.closes.expects(channel, method):
            raise not_open(channel, method)
        if self.riding is not None and not self.riding.hears(channel, method):
            return
        changed: bytes | memoryview = frame
        if self.rewriter is not None:
            method, changed = self.rewriter.answer(channel, method, frame)
        for observer in self.judging.observers:
            observer.answered(channel, method)
        if isinstance(method, amqp.BasicGetEmpty):
            self.closes.got(channel)
        do = DOWN.get(method.INDEX)
        if do is None or (channel == 0) != (method.CLASS_ID == amqp.ConnectionClose.CLASS_ID):
            if not self._takes(Side.UPSTREAM, channel, method):
                raise unexpected(channel, method)
            return
        if do is Do.FORWARD:
            if isinstance(method, amqp.TxCommitOk) and channel in self.closes.channels:
                self.closes.channels[channel].committing(-1)
            if self.notice.passes(method):
                self.relay.send(Side.CLIENT, changed)
        elif do is Do.CONSUMER:
            self.consumers.from_broker(channel, method)
        elif do is Do.CONFIRM:
            self.closes.send(Side.CLIENT, channel, self.refuser.confirmed(channel, method))
        elif isinstance(method, amqp.QueueDeclareOk):
            self.closes.declared(channel, method.queue)
            self.relay.send(Side.CLIENT, changed)
        elif isinstance(method, amqp.ChannelClose):
            harsher = None if self.bridge is None else self.bridge.courtesies.harsher(method)
            if harsher is not None:
                self.fail(harsher)
                return
            self.closes.broker_closes(channel, method)
        elif do is Do.CHANNEL_CLOSE_OK:
            self.closes.broker_answers(channel, method)
        else:
            pass_on(self, Side.UPSTREAM, do, changed)

    # -- a link that is shared ----------------------------------------------------------------

    def overflowed(self) -> None:
        """More waits for the client than may."""
        if self.riding is not None:
            self.fail(self.riding.overflow())

    # -- both --------------------------------------------------------------------------------

    def _takes(self, side: Side, channel: int, method: Method) -> bool:
        """Whether it is a method that 0-9-1 does not have, and has been dealt with."""
        if self.bridge is None:
            return False
        is_free = self.judging.is_free and self.rewriter is None and not self.throttle.limits
        return self.bridge.takes(side, channel, method, is_free=is_free)
