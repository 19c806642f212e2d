"""What both scanners tell of messages: by which method they came, and how long a confirm took."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.datapath.tables import Side
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames

from .test_scan import IMPLEMENTATIONS, PROPERTIES, compiled, drive, lane, publish, scanner

__all__ = ["scanner"]

DELIVER = amqp.BasicDeliver("t", 1, False, "x", "k")
GET_OK = amqp.BasicGetOk(1, False, "x", "k", 0)
RETURN = amqp.BasicReturn(312, "NO_ROUTE", "x", "k")


def message(method: amqp.BasicDeliver | amqp.BasicGetOk | amqp.BasicReturn, size: int) -> bytes:
    return content_frames(1, method, PROPERTIES, b"x" * size, 4096)


def ack(tag: int, *, multiple: bool = False, channel: int = 1) -> bytes:
    return method_frame(channel, amqp.BasicAck(tag, multiple))


# -- which method --------------------------------------------------------------------------


@pytest.mark.parametrize("flows", [False, True])
def test_answers_to_get_and_returns_are_counted_apart(scanner: ModuleType, flows: bool) -> None:
    down = lane(scanner, Side.UPSTREAM)
    if flows:
        down.flows = scanner.FlowTable()
    control = {b"\x01t\x01x\x01k": scanner.Flow()} if flows else None
    data = b"".join(
        [
            *(message(GET_OK, 100) for _ in range(3)),
            message(RETURN, 0),
            *(message(DELIVER, 7) for _ in range(4)),
            # In two frames of body: not the way of most messages.
            message(RETURN, 5000),
            message(GET_OK, 5000),
            method_frame(1, amqp.BasicGetEmpty()),
        ]
    )
    drive(scanner, down, data, list(range(0, len(data), 37)), control=control)
    told = down.channels
    assert (told.got, told.got_bytes) == (4, 5300)
    assert (told.returned, told.returned_bytes) == (2, 5000)
    assert (down.messages, down.body_bytes) == (10, 10_328)


def test_they_are_when_the_control_plane_lets_them_pass(scanner: ModuleType) -> None:
    down = lane(scanner, Side.UPSTREAM)
    down.shows_content = True
    data = message(GET_OK, 10)
    at = len(method_frame(1, GET_OK))
    drive(scanner, down, data[:at])
    down.channels.expect_header(Side.UPSTREAM, 1, None)
    drive(scanner, down, data[at:])
    assert (down.channels.got, down.channels.got_bytes, down.messages) == (1, 10, 1)


# -- how long ------------------------------------------------------------------------------


class Rig:
    """A session whose channel 1 is in confirm mode, with ``before`` messages of earlier."""

    def __init__(self, scanner: ModuleType, *, before: int = 0) -> None:
        self.scanner = scanner
        self.up = lane(scanner)
        self.channels = self.up.channels
        self.down = scanner.Lane(Side.UPSTREAM, 4096, 4096, self.channels)
        self.publish(before)
        self.channels.time_confirm(1, before)

    def publish(self, count: int = 1, *, now: float = 1.0, channel: int = 1, body: bytes = b"x") -> None:
        drive(self.scanner, self.up, publish(channel, body=body) * count, now=now)

    def hear(self, data: bytes, now: float) -> float:
        """What is known then."""
        drive(self.scanner, self.down, data, now=now)
        return self.channels.confirm_seconds


@pytest.mark.parametrize("size", [1, 9000])
@pytest.mark.parametrize("before", [0, 3])
def test_the_next_publish_is_timed_until_its_ack(scanner: ModuleType, before: int, size: int) -> None:
    rig = Rig(scanner, before=before)
    assert not rig.channels.is_timing
    rig.publish(3, now=5.0, body=b"x" * size)
    assert rig.channels.is_timing
    rig.publish(now=6.0)
    assert rig.hear(ack(2) + ack(4), 7.0) < 0, "others are acked"
    assert rig.hear(ack(1, channel=2), 7.25) < 0, "on another channel"
    assert rig.hear(ack(1), 7.5) == 2.5
    assert rig.hear(ack(1), 9.0) == 2.5
    assert not rig.channels.is_timing
    assert rig.channels.timed == 0


@pytest.mark.parametrize("tag", [2, 0])
def test_an_ack_of_several_covers_it(scanner: ModuleType, tag: int) -> None:
    rig = Rig(scanner)
    rig.publish(2, now=5.0)
    assert rig.hear(ack(tag), 6.0) < 0
    assert rig.hear(ack(tag, multiple=True), 6.5) == 1.5


def test_a_nack_is_an_answer(scanner: ModuleType) -> None:
    rig = Rig(scanner)
    rig.publish(now=5.0)
    assert rig.hear(method_frame(1, amqp.BasicNack(1)), 5.5) == 0.5


def test_it_is_seen_where_the_control_plane_answers_acks(scanner: ModuleType) -> None:
    rig = Rig(scanner)
    rig.publish(now=5.0)
    rig.channels.show_acks(1)
    assert rig.hear(ack(1), 5.5) == 0.5


def test_a_publish_that_is_refused_was_none(scanner: ModuleType) -> None:
    rig = Rig(scanner)
    rig.publish(now=5.0)
    rig.channels.uncount(Side.CLIENT, 1)
    assert not rig.channels.is_timing
    rig.publish(now=6.0)
    assert rig.hear(ack(1), 6.5) == 0.5


def test_a_channel_that_closes_is_timed_no_more(scanner: ModuleType) -> None:
    for end in ("close", "open"):
        rig = Rig(scanner)
        rig.publish(now=5.0)
        getattr(rig.channels, end)(1)
        assert not rig.channels.is_timing
        assert rig.hear(ack(1), 6.0) < 0


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 2), st.integers(1, 3)),
        st.tuples(st.just("ack"), st.integers(1, 2), st.integers(0, 6)),
        st.tuples(st.just("acks"), st.integers(1, 2), st.integers(0, 6)),
        st.tuples(st.just("time"), st.integers(1, 2), st.integers(0, 2)),
    ),
    max_size=30,
)


@pytest.mark.skipif(
    compiled is None, reason="there is no compiled scanner here: no C compiler at the installation"
)
@given(STEPS)
def test_both_scanners_tell_the_same(steps: list[tuple[str, int, int]]) -> None:
    rigs = [Rig(module) for module in IMPLEMENTATIONS]
    for now, (step, channel, count) in enumerate(steps):
        seen = []
        for rig in rigs:
            if step == "publish":
                rig.publish(count, now=float(now), channel=channel)
            elif step == "time":
                rig.channels.time_confirm(channel, min(count, rig.channels.messages(Side.CLIENT, channel)))
            else:
                rig.hear(ack(count, multiple=step == "acks", channel=channel), float(now))
            seen.append((rig.channels.timed, rig.channels.is_timing, rig.channels.confirm_seconds))
        assert seen[0] == seen[1]
