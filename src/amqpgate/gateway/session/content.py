"""Headers and bodies that the data path shows, and how they go on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from amqpgate.datapath import tables
from amqpgate.datapath.relay import Relay
from amqpgate.datapath.scanner import Flow, flow_key, reframe
from amqpgate.datapath.tables import Side
from amqpgate.gateway.session import deaths
from amqpgate.gateway.session.observer import Sent
from amqpgate.gateway.session.transform import message_down
from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.wire.codec import decode_header, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp

if TYPE_CHECKING:
    from amqpgate.gateway.session.session import Session


def expect_content(relay: Relay, side: Side, channel: int, frame: memoryview) -> Flow | None:
    """A message that is shown, and its flow; its content follows.

    A publish is shown up to its header: either its flow says so, or its size is still to come.
    """
    flows = relay.endpoints[side].lane.flows
    flow = flows.get(flow_key(side, frame)) if flows is not None else None
    show = flow.show if flow else tables.Show.NOTHING
    if side is Side.CLIENT:
        show = max(show, tables.Show.HEADER)
    relay.channels.expect_header(side, channel, flow, show)
    return flow


def pass_content(relay: Relay, side: Side, frame: memoryview) -> None:
    """A header or body goes on, in pieces if it must."""
    largest = relay.endpoints[side].lane.out_frame_max
    is_cut = frame[0] == amqp.FRAME_BODY and len(frame) > largest
    relay.send(side.other, reframe(frame, largest) if is_cut else frame)


def begin_message(
    session: Session, channel: int, method: Sent, frame: memoryview, queue: str | None = None
) -> None:
    """The method of a message for the client goes on, or waits for its header. ``queue``: of what was got."""
    delays = session.session_policies.delays
    if delays is not None:
        if isinstance(method, amqp.BasicDeliver):
            state = session.channels.states.remembered(channel)
            if state is not None and state.consuming is not None:
                queue = state.consuming.queue_of(method.consumer_tag)
        delays.hold(channel, method, queue)
    elif session.rewriter is None or not session.rewriter.hold(channel, method):
        session.relay.send(Side.CLIENT, frame)


def take_content(session: Session, side: Side, channel: int, frame: memoryview) -> None:
    """A header or body that is shown."""
    if side is Side.CLIENT:
        _take_published(session, channel, frame)
    else:
        _take_sent(session, channel, frame)
    if frame[0] == amqp.FRAME_HEADER:
        session.relay.endpoints[side].lane.settle(channel, time.monotonic())


def _take_published(session: Session, channel: int, frame: memoryview) -> None:
    if session.publishes.take_content(channel, frame):
        return
    pass_content(session.relay, Side.CLIENT, frame)
    for observer in session.session_policies.watchers:
        observer.content(Side.CLIENT, channel, frame)
    publish_passed(session, channel)


def publish_passed(session: Session, channel: int) -> None:
    """Content of the client's has gone on: what waited for the end of its message may go now."""
    if channel in session.channels.states:
        state = session.channels.states.remembered(channel)
        if state is not None and state.consuming is not None:
            session.consumers.message_ended(channel)
        if session.bridge is not None:
            session.bridge.message_ended(channel)
        if session.session_policies.claims is not None:
            session.session_policies.claims.deliveries.message_ended(channel)


def _take_sent(session: Session, channel: int, frame: memoryview) -> None:
    if session.session_policies.claims is not None and session.session_policies.claims.deliveries.takes(
        channel, frame
    ):
        return
    is_for_observers = False
    for observer in session.session_policies.watchers:
        is_for_observers |= observer.content(Side.UPSTREAM, channel, frame)
    pass_sent(session, channel, frame)
    if frame[0] == amqp.FRAME_HEADER and (session.reads_sent or not is_for_observers):
        session.publishes.operation_limits.delivered(channel)
    if channel in session.channels.states and not session.relay.channels.due(Side.UPSTREAM, channel):
        state = session.channels.states.remembered(channel)
        if state is not None and state.waiting:
            session.publishes.publish_denial.message_ended(channel)
        if session.bridge is not None:
            session.bridge.flow_control.sent(channel)


def pass_sent(session: Session, channel: int, frame: memoryview) -> None:
    """A header or body goes on to the client, a header as it was published, behind the method that waited."""
    if (
        deaths.are_counted(session.session_policies.compatibility)
        and frame[0] == amqp.FRAME_HEADER
        and deaths.is_saved(frame)
    ):
        frame = _with_deaths(session, channel, frame)
    if not _pass_delayed(session, channel, frame) and (
        session.rewriter is None or not session.rewriter.pass_header(channel, frame)
    ):
        pass_content(session.relay, Side.UPSTREAM, frame)


def _with_deaths(session: Session, channel: int, frame: memoryview) -> memoryview:
    """The header frame of a message to the client, with all that it has died of."""
    header = decode_header(frame[7:-1])
    changed = deaths.merged(header)
    if changed is header:
        return frame
    merged = encode_frame(amqp.FRAME_HEADER, channel, encode_header(changed))
    return memoryview(merged) if len(merged) <= session.relay.down.out_frame_max else frame


def _pass_delayed(session: Session, channel: int, frame: memoryview) -> bool:
    """Send the header of a message to the client, and the method that waited for it. False: none did."""
    delays, rewriter = session.session_policies.delays, session.rewriter
    taken = None if delays is None else delays.take_header(channel, frame)
    if taken is None:
        return False
    method, header = taken if rewriter is None else message_down(rewriter.transform, *taken)
    session.relay.send(
        Side.CLIENT,
        method_frame(channel, method) + encode_frame(amqp.FRAME_HEADER, channel, encode_header(header)),
    )
    return True
