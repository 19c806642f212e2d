"""Frames that just fit the other hop, and frames that are too long by one byte, for both engines.

A frame's size is that of its payload and of the eight bytes around it; the other hop's frame-max is for the
whole frame.
"""

from __future__ import annotations

from types import ModuleType

import pytest

from amqpgate.datapath import framing
from amqpgate.datapath.tables import ScanResult, Side
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames

from .test_scan import IMPLEMENTATIONS, Seen, drive, flow_key, lane, publish
from .test_whole import IMPLEMENTATIONS as NAMES
from .test_whole import frames_of, fresh, lane_of

#: Of each kind one message in which the frame of that kind is the largest, and what a byte more means.
SMALL = amqp.BasicProperties()
KINDS = {
    "method": (publish(key="k" * 200, body=b"x", properties=SMALL), 0, ScanResult.UNSPLITTABLE),
    "header": (
        publish(body=b"x", properties=amqp.BasicProperties(message_id="m" * 200)),
        1,
        ScanResult.UNSPLITTABLE,
    ),
    "body": (publish(body=b"b" * 300, properties=SMALL), 2, ScanResult.REFRAME),
}
KEYS = {"method": "k" * 200}


@pytest.fixture(params=IMPLEMENTATIONS, ids=lambda module: module.__name__.rpartition(".")[2])
def scanner(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


def scanned(scanner: ModuleType, kind: str, out: int, *, flows: bool, times: int = 3) -> Seen:
    """The message so often, the first time past a flow that is known already, if there are flows."""
    up = lane(scanner, flows=flows, frame_max=8192, out=out)
    if up.flows is not None:
        up.flows.install(flow_key(KEYS.get(kind, "k")), scanner.Flow())
    return drive(scanner, up, KINDS[kind][0] * times)


@pytest.mark.parametrize("flows", [False, True], ids=["no flows", "flows"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_frame_that_fits(scanner: ModuleType, kind: str, flows: bool) -> None:
    data, number, _ = KINDS[kind]
    out = len(frames_of(data)[number])
    assert out == max(map(len, frames_of(data)))
    assert scanned(scanner, kind, out, flows=flows) == Seen(forwarded=data * 3)


@pytest.mark.parametrize("over", range(1, 9))
@pytest.mark.parametrize("flows", [False, True], ids=["no flows", "flows"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_smallest_frame_that_does_not(scanner: ModuleType, kind: str, flows: bool, over: int) -> None:
    data, number, result = KINDS[kind]
    frames = frames_of(data)
    seen = scanned(scanner, kind, len(frames[number]) - over, flows=flows, times=1)
    assert seen.forwarded == b"".join(frames[:number])
    assert [found for found, _ in seen.upcalls] == [result]


@pytest.mark.parametrize("over", range(9))
def test_what_is_cut_fits(scanner: ModuleType, over: int) -> None:
    data, _, _ = KINDS["body"]
    body = frames_of(data)[2]
    pieces = frames_of(framing.reframe(body, len(body) - over))
    assert [len(piece) for piece in pieces] == ([len(body) - over, over + 8] if over else [len(body)])
    assert b"".join(piece[7:-1] for piece in pieces) == body[7:-1]


@pytest.mark.parametrize("over", range(9))
def test_a_delivery_is_cut_for_a_client_with_smaller_frames(scanner: ModuleType, over: int) -> None:
    """Methods and headers go to a client as they are: RabbitMQ does not cut them either."""
    deliver = content_frames(1, amqp.BasicDeliver(consumer_tag="c" * 200), SMALL, b"b" * 300, 4096)
    down = lane(scanner, Side.UPSTREAM, frame_max=8192, out=308 - over)
    results = [found for found, _ in drive(scanner, down, deliver).upcalls]
    assert results == ([ScanResult.REFRAME] if over else [])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["method", "header"])
def test_looking_ahead_finds_the_same(name: str, kind: str) -> None:
    data, number, _ = KINDS[kind]
    frames = frames_of(data)
    size = len(frames[number])
    assert fresh(name, lane_of(name, out=size), data) == (len(data), ScanResult.MORE, b"")
    for out in range(size - 8, size):
        quiet, result, frame = fresh(name, lane_of(name, out=out), data)
        assert (quiet, result, frame) == (0, ScanResult.UNSPLITTABLE, frames[number])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["method", "header"])
def test_looking_ahead_finds_the_same_behind_other_messages(name: str, kind: str) -> None:
    data, number, _ = KINDS[kind]
    frames = frames_of(data)
    small = publish(body=b"s", properties=SMALL)
    size = len(frames[number])
    assert fresh(name, lane_of(name, out=size), small * 2 + data * 2)[1] is ScanResult.MORE
    found = fresh(name, lane_of(name, out=size - 1), small * 2 + data)
    assert found == (len(small) * 2, ScanResult.UNSPLITTABLE, frames[number])
