"""Where frames end, as held deliveries are passed on one by one; the rest is in `test_channel_flow`."""

from __future__ import annotations

from amqpgate.gateway.session.flow_control import INDEXES, frames_of, method_index
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames


def test_frames_are_told_apart() -> None:
    method = method_frame(1, amqp.ChannelFlowOk(False))
    content = content_frames(1, amqp.BasicDeliver(), amqp.BasicProperties(), b"body")
    frames = [bytes(frame) for frame in frames_of(method + content)]
    assert frames[0] == method
    assert b"".join(frames) == method + content
    assert len(frames) == 4
    assert list(frames_of(b"")) == []


def test_a_method_is_known_by_its_index() -> None:
    assert method_index(method_frame(1, amqp.ChannelFlowOk(True))) == amqp.ChannelFlowOk.INDEX
    assert amqp.ChannelFlowOk.INDEX in INDEXES
