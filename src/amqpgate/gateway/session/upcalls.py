"""The data path's upcalls of one session: each frame that it does not pass on by itself.

An upcall decides, queues what is to be sent, and returns; nothing here waits. ``dispatch`` says what is
done with each method, the modules beside it do it.
"""

from __future__ import annotations

import time
from typing import Final

from amqpgate.datapath import tables
from amqpgate.datapath.captures import Captured
from amqpgate.datapath.engine import End
from amqpgate.datapath.scanner import Flow, flow_key
from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session import channel_windows, requeue, settlement
from amqpgate.gateway.session.channel_close import opened
from amqpgate.gateway.session.client_methods import allows, decide, passed
from amqpgate.gateway.session.conditional_delete import holds_up
from amqpgate.gateway.session.connection_close import pass_on
from amqpgate.gateway.session.content import expect_content, take_content
from amqpgate.gateway.session.declared_here import is_for_gateway
from amqpgate.gateway.session.deliveries import delivery_flow, send_message
from amqpgate.gateway.session.dispatch import DOWN, UP, Do
from amqpgate.gateway.session.observer import SENT
from amqpgate.gateway.session.operation_limits import Turn
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.session.violations import check_text, not_open, unexpected, violation_of
from amqpgate.protocol.channel import too_many_channels
from amqpgate.protocol.frames import method_frame
from amqpgate.values import frozen
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

# To look a member of an enum up takes Python 3.11 a Python-level detour each time.
_CLIENT: Final = Side.CLIENT
_UPSTREAM: Final = Side.UPSTREAM
_METHOD: Final = tables.ScanResult.METHOD
_HELD: Final = tables.ScanResult.HELD
_HEADER: Final = tables.ScanResult.HEADER
_BODY: Final = tables.ScanResult.BODY
_LARGE: Final = tables.ScanResult.LARGE
_APART: Final = tables.ScanResult.APART
_MISS: Final = tables.ScanResult.MISS
_GO: Final = Turn.GO
_WAIT: Final = Turn.WAIT
_FORWARD: Final = Do.FORWARD
_DECIDE: Final = Do.DECIDE
_OPEN: Final = Do.CHANNEL_OPEN
_CLOSE: Final = Do.CHANNEL_CLOSE
_CLOSE_OK: Final = Do.CHANNEL_CLOSE_OK
_CONSUMER: Final = Do.CONSUMER
_CONFIRM: Final = Do.CONFIRM

#: What frames of a channel that is not open are shown as.
_BEHIND = frozenset({tables.ScanResult.METHOD, tables.ScanResult.NOT_OPEN})

#: Content that no method of 0-9-1 announced.
_UNASKED = frozenset({tables.ScanResult.HEADER_UNASKED, tables.ScanResult.BODY_UNASKED})

#: How long a method waits that an observer holds up, in seconds; the session is retried earlier.
_LONG = 60.0

#: Where a content header of the client's is shown.
_SIZES = frozenset({tables.ScanResult.HEADER, tables.ScanResult.OVERSIZE})


@frozen(eq=False, weakref_slot=False)
class Upcalls:
    """The handler of one session's relay."""

    session: Session

    def upcall(self, side: Side, result: tables.ScanResult, frame: memoryview) -> bool:
        session, is_client = self.session, side is _CLIENT
        upstream, channels, policies = session.upstream, session.channels, session.session_policies
        lane = session.relay.endpoints[0 if is_client else 1].lane
        lane.ready_at = 0.0
        if channels.behind and result in _BEHIND and channels.is_behind(side, frame):
            return False
        channel = frame[1] << 8 | frame[2]
        try:
            if result is not _METHOD and result is not _MISS:
                if result > tables.LAST_HARMLESS:
                    if (
                        result in _UNASKED
                        and session.bridge is not None
                        and session.bridge.takes_content(side, frame)
                    ):
                        return False
                    raise violation_of(result, frame, lane.frame_max)
                if result is _HELD:
                    return policies.claims is not None and policies.claims.keeps(side, channel, frame)
                if is_client and result in _SIZES and session.publishes.refuses_size(channel, frame):
                    return False
            is_transparent = upstream.is_transparent
            if is_client and not is_transparent and upstream.ignores(channel):
                return False
            if result is _HEADER or result is _BODY:
                if result is _HEADER and session.bridge is not None:
                    frame = session.bridge.hear_header(side, frame)
                take_content(session, side, channel, frame)
                return False
            if session.bridge is None:
                method = decode_method(bytes(frame[7:-1]))
            else:
                method, frame = session.bridge.hear(side, frame)
            if is_client:
                if policies.watchers and policies.holds_up(method):
                    lane.ready_at = time.monotonic() + _LONG
                    return True
                if policies.claims is not None and policies.claims.publishes.holds_up(method):
                    return True
                if result is _LARGE:
                    return upstream.make_room(channel, method)
                token = session.token
                if token is not None and token.holds_up(session, method):
                    lane.ready_at = time.monotonic() + _LONG
                    return True
                if isinstance(method, amqp.QueueDelete) and holds_up(session, channel, method):
                    lane.ready_at = time.monotonic() + _LONG
                    return True
                if (
                    not is_transparent
                    and not (token is not None and token.answers(method))
                    and upstream.holds_up(channel, method)
                ):
                    return True
            if result is _APART:
                assert isinstance(method, amqp.BasicPublish), "nothing else has content"
                flow = expect_content(session.relay, side, channel, frame)
                session.publishes.hold(channel, method, frame, flow, is_apart=True)
                return False
            if result is _MISS:
                return self._decide_flow(side, channel, method, frame)
            if is_client:
                turn = session.publishes.turn(channel, method)
                if turn is _GO:
                    self._from_client(channel, method, frame)
                else:
                    for observer in session.session_policies.observers:
                        observer.turned(channel, method, turn)
                return turn is _WAIT
            else:
                self._from_broker(channel, method, frame)
        except ProtocolViolation as violation:
            refused = self._refused(side, int.from_bytes(frame[1:3], "big"), violation)
            if refused:
                session.channels.refuse(refused, violation)
            else:
                session.fail(violation, side)
        return False

    def captured(self, side: Side, messages: list[Captured]) -> None:
        for observer in self.session.session_policies.watchers:
            observer.captured(side, messages)

    def _refused(self, side: Side, channel: int, violation: ProtocolViolation) -> int:
        """The channel that is closed for it; 0: it ends the connection."""
        session = self.session
        if side is not Side.CLIENT:
            return 0
        if violation.scope == "channel":
            return violation.channel
        is_of_session = violation.code == 540 and session.facts.interpreters[Side.CLIENT].has_sessions
        return channel if is_of_session and channel in session.channels.states else 0

    def ended(self, end: End, side: Side | None, error: Exception | None) -> None:
        self.session.left(end, side, error)

    # -- from the client ---------------------------------------------------------------------

    def _from_client(self, channel: int, method: Method, frame: memoryview) -> None:
        session = self.session
        do = UP.get(method.INDEX)
        channels = session.relay.channels
        if channel and not channels.state(channel) and do is not _OPEN:
            raise ProtocolViolation(
                504,
                "expected 'channel.open'",
                class_id=method.CLASS_ID,
                method_id=method.METHOD_ID,
                channel=channel,
            )
        if do is None or (channel == 0) != (method.CLASS_ID == amqp.ConnectionClose.CLASS_ID):
            if channel and session.channels.is_dropping(channel):
                return
            if not self._takes(Side.CLIENT, channel, method):
                raise unexpected(channel, method)
            return
        if do is _FORWARD:
            for observer in session.session_policies.watchers:
                observer.settled(channel, method)
            if session.claims is not None and isinstance(method, settlement.Settling):
                told = session.claims.deliveries.hidden.settles(channel, method)
                if told is None:
                    return
                if told is not method:
                    method, frame = told, memoryview(method_frame(channel, told))
            if isinstance(method, amqp.BasicNack) and requeue.nacks(session, channel, method):
                return
            if (
                session.bridge is not None
                and channel in session.bridge.channel_flows
                and isinstance(method, settlement.Settling)
            ):
                session.bridge.flow_control.settles(channel, method)
                return
            if channel:
                settlement.settled(channels, channel, method)
            session.relay.send(Side.UPSTREAM, frame)
        elif do is _DECIDE:
            decide(session, channel, method, frame)
        elif do is _OPEN:
            if channels.state(channel):
                raise ProtocolViolation(
                    504, "second 'channel.open' seen", class_id=20, method_id=10, channel=channel
                )
            if len(channels) >= session.facts.channel_max:
                raise too_many_channels(len(channels), session.facts.channel_max)
            allows(session, channel, method)
            passed(session, channel, method)
            opened(session.channels, channel)
            for observer in session.session_policies.observers:
                # Of a link's channels it is not heard when they open.
                observer.asked(channel, method, "", session.upstream.answers_opens)
            session.upstream.open(channel, frame)
        elif do is _CLOSE:
            check_text(channel, method)
            if not session.upstream.closes_at_once(channel):
                session.channels.client_closes(channel, method)
        elif do is _CLOSE_OK:
            session.channels.client_answers(channel, method)
        else:
            check_text(channel, method)
            pass_on(session, _CLIENT, do, frame)

    def _decide_flow(self, side: Side, channel: int, method: Method, frame: memoryview) -> bool:
        """The first message with these arguments: does it, and do those like it, pass?

        If so its flow is installed and the scanner looks again. Then the flow's buckets hold for this
        message, too: a client that never repeats its arguments is no exception.
        """
        session = self.session
        flows = session.relay.endpoints[side].lane.flows
        assert flows is not None, "what has no flows cannot miss one"
        flow: Flow | None
        if isinstance(method, amqp.BasicPublish):
            bridge = session.bridge
            peek = bridge.admit(channel, method) if bridge is not None else None
            is_bridged = bridge is not None and not session.facts.is_native
            flow = session.publishes.flow(channel, method, peek, is_bridged=is_bridged)
        else:
            assert isinstance(method, amqp.BasicDeliver), "nothing else has flows"
            flow = delivery_flow(session, channel, method)
        if flow is None:
            return False
        flows.install(flow_key(side, frame), flow)
        return True

    # -- from the broker ---------------------------------------------------------------------

    def _from_broker(self, channel: int, method: Method, frame: memoryview) -> None:
        session = self.session
        if isinstance(method, SENT) and session.relay.channels.state(channel):
            send_message(session, channel, method, frame)
            return
        question = session.channels.question
        if question is not None and question.hears(channel, method):
            return
        if channel and not session.channels.expects(channel, method):
            raise not_open(channel, method)
        if not session.upstream.is_transparent and not session.upstream.hears(channel, method):
            return
        if isinstance(method, amqp.QueueDeclareOk) and is_for_gateway(
            session.channels, session.session_policies.delays, channel
        ):
            return
        if isinstance(method, channel_windows.ANSWERS):
            answer = channel_windows.heard(session, channel, method)
            if answer is None:
                return
            method = answer
        changed: bytes | memoryview = frame
        rewriter = session.session_policies.rewriter
        if rewriter is not None:
            method, changed = rewriter.answer(channel, method, frame)
        for observer in session.session_policies.observers:
            observer.answered(channel, method)
        if isinstance(method, amqp.BasicGetEmpty):
            session.channels.got(channel)
        do = DOWN.get(method.INDEX)
        if do is None or (channel == 0) != (method.CLASS_ID == amqp.ConnectionClose.CLASS_ID):
            if not self._takes(Side.UPSTREAM, channel, method):
                raise unexpected(channel, method)
            return
        if do is _FORWARD:
            if isinstance(method, amqp.TxCommitOk):
                state = session.channels.states.remembered(channel)
                if state is not None:
                    state.committing(-1)
            if session.publishes.hears(method):
                session.relay.send(_CLIENT, changed)
            if isinstance(method, amqp.BasicQosOk):
                channel_windows.passed_on(session, channel)
        elif do is _CONSUMER:
            session.consumers.from_broker(channel, method)
        elif do is _CONFIRM:
            session.channels.send(
                Side.CLIENT, channel, session.publishes.publish_denial.confirmed(channel, method)
            )
        elif isinstance(method, amqp.QueueDeclareOk):
            session.channels.declared(channel, method.queue)
            session.relay.send(_CLIENT, changed)
        elif isinstance(method, amqp.ChannelClose):
            if session.session_policies.delays is not None:
                session.session_policies.delays.closed(method)
            durable_instead = session.session_policies.durable_instead
            if durable_instead is not None:
                method = durable_instead.heard(channel, method)
            harsher = None if session.bridge is None else session.bridge.old_clients.harsher(method)
            if harsher is not None:
                session.fail(harsher)
                return
            session.channels.broker_closes(channel, method)
        elif do is _CLOSE_OK:
            session.channels.broker_answers(channel, method)
        else:
            pass_on(session, _UPSTREAM, do, changed)

    def overflowed(self) -> None:
        """More waits for the client than may."""
        session = self.session
        session.upstream.overflowed()

    # -- both --------------------------------------------------------------------------------

    def _takes(self, side: Side, channel: int, method: Method) -> bool:
        """Whether it is a method that 0-9-1 does not have, and has been dealt with."""
        session = self.session
        if session.bridge is None:
            return False
        access = session.session_policies.access
        is_unrestricted = access.is_unrestricted and session.rewriter is None and not session.limits.all
        return session.bridge.takes(side, channel, method, is_unrestricted=is_unrestricted)
