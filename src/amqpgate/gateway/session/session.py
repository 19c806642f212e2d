"""One established session's control plane: it answers the data path's upcalls.

Synchronous throughout: an upcall decides, queues what is to be sent, and returns. Set-up and
tear-down, which wait, are in ``setup`` and ``teardown``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import attrs

from amqpgate.bridge import Interpreter
from amqpgate.datapath import tables
from amqpgate.datapath.engine import End, HandedOverSocket, Pump
from amqpgate.datapath.relay import Relay
from amqpgate.datapath.scanner import Flow, FlowTable, flow_key
from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.limits.token_buckets import SessionLimits
from amqpgate.gateway.session import settlement
from amqpgate.gateway.session.blocked_notices import BlockedNotice
from amqpgate.gateway.session.channel_close import SessionChannel, SessionChannels
from amqpgate.gateway.session.channel_flow import ChannelFlows, Settling
from amqpgate.gateway.session.client_methods import allows, decide, passed
from amqpgate.gateway.session.connection_close import AgreedClose, CloseState, pass_on
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
from amqpgate.gateway.session.upstream import OwnUpstream, Upstream
from amqpgate.gateway.session.version_bridge import VersionBridge
from amqpgate.gateway.session.violations import check_text, not_open, unexpected, violation_of
from amqpgate.policy import Choice, Principal, SessionAccess
from amqpgate.protocol.channel import too_many_channels
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: What frames of a channel that is not open are shown as.
_BEHIND = frozenset({tables.ScanResult.METHOD, tables.ScanResult.NOT_OPEN})

#: Content that no method of 0-9-1 announced.
_UNASKED = frozenset({tables.ScanResult.HEADER_UNASKED, tables.ScanResult.BODY_UNASKED})

#: How long a method waits that an observer holds up, in seconds; the session is retried earlier.
_LONG = 60.0

#: Where a content header of the client's is shown.
_SIZES = frozenset({tables.ScanResult.HEADER, tables.ScanResult.OVERSIZE})


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
    #: Its way to the broker, and the relay that goes that way.
    upstream: Upstream = attrs.field(init=False)
    relay: Relay = attrs.field(init=False)
    closes: SessionChannels = attrs.field(init=False)
    refuser: PublishRefuser = attrs.field(init=False)
    consumers: Consumers = attrs.field(init=False)
    holding: PublishHandler = attrs.field(init=False)
    rations: OperationLimits = attrs.field(init=False)
    outcome: SessionOutcome = attrs.field(default=SessionOutcome(End.FINISHED, None, None), init=False)
    close: AgreedClose = attrs.field(factory=AgreedClose, init=False)
    #: Whether the headers of messages that the client gets are needed, too.
    reads_sent: bool = attrs.field(default=False, init=False)

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

    @property
    def closing(self) -> CloseState:
        """How far an agreed close has come."""
        return self.close.state

    @property
    def violated(self) -> bool:
        """Whether a peer broke the protocol."""
        return isinstance(self.outcome.error, ProtocolViolation)

    @property
    def agreed(self) -> bool:
        """Whether the connection was closed by connection.close and close-ok of the peers."""
        return self.closing is CloseState.DONE

    def judge_by(self, judges: SessionAccess, throttle: SessionLimits) -> None:
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
        self.judging.observers = observers
        self._set_flows()

    def _set_flows(self) -> None:
        """Flows where messages may have to be judged; those that there are were other policies'."""
        up = self.judging.is_restricted or self.upstream.watches_publishes
        down = self.judging.judges_deliveries
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

    def enter(self, upstream: Upstream, pump: Pump) -> None:
        """Put the session on the data path."""
        self.upstream = upstream
        relay = self.relay = upstream.relay
        self.closes = SessionChannels(relay, relay.channels, upstream=upstream)
        self.refuser = PublishRefuser(relay, self.closes.channels)
        judging = self.judging
        self.consumers = Consumers(relay, self.closes, self.hears_cancels, judging)
        self.rations = OperationLimits(self.throttle, self.closes, judging.limited, relay.up)
        self.holding = PublishHandler(relay, self.closes, self.refuser, judging, self.rations)
        if self.rewriter is not None:
            self.rewriter.enter(relay)
        if not all(interpreter.is_native for interpreter in self.interpreters):
            self.build_bridge()
        self._set_flows()
        pump.add(relay)

    def move_to_own(self, hop: HandedOverSocket, channels: Iterable[int]) -> None:
        """Leave the upstream for a connection of the session's own, where these channels of the client's are
        open under its numbers, in confirm mode or not."""
        self.upstream.leave()
        self.relay.pump.exchange(self.relay, hop)
        self.upstream = OwnUpstream(self.relay)
        # The new connection numbers confirms anew.
        self.closes.move_to(self.upstream, channels)
        for observer in self.judging.observers:
            observer.moved()

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

    def upcall(self, side: Side, result: tables.ScanResult, frame: memoryview) -> bool:
        lane = self.relay.endpoints[side].lane
        lane.ready_at = 0.0
        if side is Side.UPSTREAM and result in _BEHIND and self.closes.is_behind(frame):
            return False
        try:
            if result > tables.LAST_HARMLESS:
                if result in _UNASKED and self.bridge is not None and self.bridge.takes_content(side, frame):
                    return False
                raise violation_of(result, frame, lane.frame_max)
            channel = int.from_bytes(frame[1:3], "big")
            if side is Side.CLIENT and result in _SIZES and self.holding.refuses_size(channel, frame):
                return False
            if side is Side.CLIENT and self.upstream.ignores(channel):
                return False
            if result is tables.ScanResult.HEADER or result is tables.ScanResult.BODY:
                if result is tables.ScanResult.HEADER and self.bridge is not None:
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
            if side is Side.CLIENT:
                if result is tables.ScanResult.LARGE:
                    return self.upstream.make_room(channel, method)
                if self.upstream.holds_up(channel, method):
                    return True
            if result is tables.ScanResult.APART:
                assert isinstance(method, amqp.BasicPublish), "nothing else has content"
                flow = expect_content(self.relay, side, channel, frame)
                self.holding.hold(channel, method, frame, flow, is_apart=True)
                return False
            if result is tables.ScanResult.MISS:
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
            # Now: until it has left its channels, what comes on them is nobody's.
            self.upstream.leave()
        finally:
            self.on_over(self)

    def release(self) -> None:
        """Free what grows with the routing keys that the client used.

        A session is part of cycles, and in a gateway that is idle Python may not look for those for hours.
        """
        self.judging.sampling, self.judging.observers = None, ()
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
            for observer in self.judging.observers:
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
                observer.asked(channel, method, "", is_answered=self.upstream.answers_opens)
            self.upstream.open(channel, frame)
        elif do is Do.CHANNEL_CLOSE:
            check_text(channel, method)
            if not self.upstream.closes_at_once(channel):
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
        if not self.upstream.hears(channel, method):
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

    def overflowed(self) -> None:
        """More waits for the client than may."""
        self.upstream.overflowed()

    # -- both --------------------------------------------------------------------------------

    def _takes(self, side: Side, channel: int, method: Method) -> bool:
        """Whether it is a method that 0-9-1 does not have, and has been dealt with."""
        if self.bridge is None:
            return False
        is_free = self.judging.is_free and self.rewriter is None and not self.throttle.limits
        return self.bridge.takes(side, channel, method, is_free=is_free)
