"""How many functions of Python one message under way takes: what is not called costs nothing.

A client of 0-10 publishes and waits for completion. Most of what that takes is code that has left the caches
by then, so it goes by the number of functions, and nobody notices one more where batches are measured.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import pytest

import amqpgate
from amqpgate.protocol.frames import FRAME_METHOD, encode_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from tests.support.compiled import MODULES, is_compiled
from tests.support.talk_0_10 import command
from tests.unit.bridge.v0_10.lab import Lab

#: Once what it is like is known.
MOST_CALLS = 39
PUB = 1
ROOT = str(Path(amqpgate.__file__).parent)


@pytest.mark.skipif(not all(map(is_compiled, MODULES)), reason="plain twins are functions of Python, too")
def test_one_transfer_and_its_completion() -> None:
    lab = Lab().open().attach()
    one = command(
        amqp10.MessageTransfer(destination=b"amq.direct", accept_mode=1),
        [amqp10.DeliveryProperties(routing_key=b"k", delivery_mode=2), amqp10.MessageProperties()],
        b"x" * 16,
        sync=True,
    )
    lab.give(one)
    lab.give(one)
    translator = lab.translator
    called: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and (code.co_filename.startswith(ROOT) or code.co_filename.startswith("<attrs")):
            called.append(code.co_qualname)

    ack = encode_frame(FRAME_METHOD, PUB, amqp.BasicAck(3).encode())
    sys.setprofile(note)
    try:
        assert translator.wants_bytes
        translator.from_peer(one)
        assert translator.has_frames
        assert translator.bytes_for_peer() == b""
        frames = translator.frames_for_gateway(1 << 16)
        assert translator.wants_frames
        translator.from_gateway(ack)
        assert not translator.has_frames
        told = translator.bytes_for_peer()
    finally:
        sys.setprofile(None)
    assert frames.count(b"x" * 16) == 1
    assert told.endswith(bytes([0, 0, 0, 0, 0, 0, 0, 2]))
    assert len(called) <= MOST_CALLS, called
