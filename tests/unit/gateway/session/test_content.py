"""Headers and bodies that the data path shows: what of them is shown, and that they go on as they came."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import attrs
import pytest

from amqpgate.datapath.relay import Relay
from amqpgate.datapath.tables import Side
from amqpgate.gateway.session.content import pass_content
from amqpgate.protocol.frames import body_frames, encode_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.tapped import AUDIT, tap


@attrs.define
class Passed:
    """A relay to a hop of 4096 bytes that keeps what it is given to send."""

    sent: bytes = b""

    @property
    def endpoints(self) -> dict[Side, Passed]:
        return {Side.CLIENT: self}

    lane = property(lambda self: self)
    out_frame_max = 4096

    def send(self, side: Side, data: bytes) -> None:
        assert side is Side.UPSTREAM
        self.sent += data


@pytest.mark.parametrize("size", range(4086, 4100))
def test_content_that_was_shown(size: int) -> None:
    """A body is cut from the first byte on that does not fit; a header passes as it is."""
    body, header = encode_frame(3, 1, bytes(size)), encode_frame(2, 1, bytes(size))
    relay = Passed()
    pass_content(cast("Relay", relay), Side.CLIENT, memoryview(body))
    assert relay.sent == b"".join(body_frames(1, bytes(size), 4096))
    assert (relay.sent == body) is (size <= 4088)
    relay = Passed()
    pass_content(cast("Relay", relay), Side.CLIENT, memoryview(header))
    assert relay.sent == header


@pytest.mark.parametrize("size", [0, 1, 100_000])
@pytest.mark.parametrize("cut", [1, 7, 8, 40])
def test_what_is_shown_goes_on_as_it_came(make_stage: Callable[..., Stage], size: int, cut: int) -> None:
    """In pieces, and with another message in between on another channel."""
    stage = make_stage(policies=AUDIT % "{id: all, operations: [basic.publish], level: body}")
    client, broker = stage.opened(2)
    tap(stage)
    up = content_frames(1, amqp.BasicPublish(routing_key="k"), amqp.BasicProperties("t"), b"x" * size, 8192)
    down = content_frames(1, amqp.BasicDeliver("c", 1), amqp.BasicProperties("t"), b"y" * size, 8192)
    for sender, receiver, whole, kind in (
        (client, broker, up, amqp.BasicPublish),
        (broker, client, down, amqp.BasicDeliver),
    ):
        at = 0
        while at < len(whole):
            # The end of a frame after some pieces of it, and all that is left after a while.
            sender.raw(whole[at : at + cut])
            at += cut
            if at > 10 * cut:
                sender.raw(whole[at:])
                break
        found = receiver.expect_content(kind)
        assert (len(found.body), found.header.properties.content_type) == (size, "t")
