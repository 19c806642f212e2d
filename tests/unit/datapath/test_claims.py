"""What a content header declares is a claim: what counts is what comes. Both scanners."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpgate.datapath import reference
from amqpgate.datapath.framing import MOST_BODY
from amqpgate.datapath.tables import ScanResult, Show, Side
from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp

from .test_scan import (
    HEARTBEAT,
    IMPLEMENTATIONS,
    PROPERTIES,
    compiled,
    drive,
    flow_key,
    lane,
    publish,
    scanner,
)

__all__ = ["scanner"]

#: Of what is declared, so that no signed or unsigned count of it holds.
HUGE = [1 << 40, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]


def header(size: int, channel: int = 1) -> bytes:
    return encode_frame(2, channel, encode_header(ContentHeader(60, size, PROPERTIES)))


def method(channel: int = 1, key: str = "k") -> bytes:
    return method_frame(channel, amqp.BasicPublish(exchange="x", routing_key=key))


def body(data: bytes, channel: int = 1) -> bytes:
    return encode_frame(3, channel, data)


def limited(
    scanner: ModuleType, most: int = MOST_BODY
) -> tuple[reference.Lane, reference.Flow, list[reference.Meter]]:
    """A lane with one flow, which has a bucket of each kind and a meter; and the meter's book."""
    up = lane(scanner, flows=True)
    up.most_body = most
    book: list[reference.Meter] = []
    flow = scanner.Flow((scanner.Bucket(1.0, 100.0),), (scanner.Bucket(1.0, 1000.0),))
    flow.meter = scanner.Meter("row", book)
    assert up.flows is not None
    up.flows.install(flow_key(), flow)
    return up, flow, book


def counted(up: reference.Lane, flow: reference.Flow, book: list[reference.Meter]) -> tuple[object, ...]:
    """Messages and bytes of the lane, the flow and its meter; and what is left in the bucket of bytes."""
    [bucket] = flow.byte_buckets
    meters = [(meter.messages, meter.body_bytes) for meter in book]
    return up.messages, up.body_bytes, flow.messages, flow.body_bytes, meters, bucket.tokens


@pytest.mark.parametrize("how", ["channel", "discard", "session"])
@pytest.mark.parametrize("size", [1, 1 << 40, MOST_BODY])
def test_what_is_declared_and_does_not_come_costs_nobody_anything(
    scanner: ModuleType, size: int, how: str
) -> None:
    up, flow, book = limited(scanner)
    assert drive(scanner, up, method() + header(size)).upcalls == []
    assert counted(up, flow, book) == (0, 0, 0, 0, [], 1000.0)
    assert up.channels.due(Side.CLIENT, 1) == size
    if how == "channel":
        up.channels.close(1)
        up.channels.open(1)
    elif how == "discard":
        up.channels.discard(1)
        drive(scanner, up, body(b"12345"))
        assert up.dropped == 5
    else:
        return
    assert counted(up, flow, book) == (0, 0, 0, 0, [], 1000.0)


def test_bytes_are_taken_from_buckets_as_they_come_and_counted_once_the_message_is_whole(
    scanner: ModuleType,
) -> None:
    up, flow, book = limited(scanner)
    drive(scanner, up, method() + header(700) + body(b"x" * 300))
    assert counted(up, flow, book) == (0, 0, 0, 0, [], 700.0)
    drive(scanner, up, body(b"x" * 400), now=5.0)
    assert counted(up, flow, book) == (1, 700, 1, 700, [(1, 700)], 300.0)
    assert (book[0].first, book[0].last) == (5.0, 5.0)
    drive(scanner, up, method() + header(500) + body(b"x" * 400))
    up.channels.close(1)
    up.channels.open(1)
    # What came has passed to the broker, and is owed.
    assert counted(up, flow, book) == (1, 700, 1, 700, [(1, 700)], -100.0)


def test_a_message_can_count_elsewhere_and_draw_on_more(scanner: ModuleType) -> None:
    up, flow, book = limited(scanner)
    other, more = scanner.Meter("other", book), scanner.Bucket(1.0, 50.0)
    up.channels.expect_header(Side.CLIENT, 1, flow, Show.HEADER)
    assert drive(scanner, up, header(9)).upcalls[0][0] is ScanResult.HEADER
    up.channels.count_as(Side.CLIENT, 1, other)
    up.channels.debits(Side.CLIENT, 1, (more,))
    drive(scanner, up, body(b"1234") + body(b"56789"))
    assert [(meter.row, meter.read()[:2]) for meter in book] == [("other", (1, 9))]
    assert (flow.messages, flow.body_bytes, more.tokens) == (1, 9, 41.0)
    drive(scanner, up, publish())
    assert (more.tokens, flow.body_bytes) == (41.0, 14)


def test_an_empty_message_that_was_shown_counts_when_the_control_plane_says_so(scanner: ModuleType) -> None:
    up, flow, book = limited(scanner)
    for passes in (False, True):
        up.channels.expect_header(Side.CLIENT, 1, flow, Show.HEADER)
        drive(scanner, up, header(0))
        assert counted(up, flow, book)[:4] == (0, 0, 0, 0)
        if not passes:
            up.channels.uncount(Side.CLIENT, 1)
        up.settle(1, 3.0)
        up.settle(1, 3.0)
        assert counted(up, flow, book)[:4] == (passes, 0, passes, 0)
    up.settle(7, 3.0)


def test_what_comes_of_a_refused_message_is_dropped_and_told_apart(scanner: ModuleType) -> None:
    up, flow, book = limited(scanner)
    up.channels.expect_header(Side.CLIENT, 1, flow, Show.HEADER)
    drive(scanner, up, header(10))
    up.channels.uncount(Side.CLIENT, 1)
    up.channels.drop_rest(Side.CLIENT, 1)
    drive(scanner, up, body(b"1234567"))
    assert (counted(up, flow, book), up.dropped) == ((0, 0, 0, 0, [], 1000.0), 7)
    drive(scanner, up, body(b"890") + publish())
    assert (counted(up, flow, book)[:4], up.dropped) == ((1, 5, 1, 5), 10)


@pytest.mark.parametrize("size", [6, *HUGE])
@pytest.mark.parametrize("with_flows", [False, True])
@pytest.mark.parametrize("before", [0, 3])
def test_a_message_that_is_too_large_is_shown_before_any_of_it_passes(
    scanner: ModuleType, size: int, with_flows: bool, before: int
) -> None:
    """After some that are like it, too: the compiled scanner takes those in one step."""
    data = publish() * before + method() + header(size)
    for cuts in ([], list(range(1, len(data)))):
        up, flow, _ = limited(scanner, most=5)
        if not with_flows:
            up.flows = None
        seen = drive(scanner, up, data, cuts, control={flow_key(): flow})
        assert seen.forwarded == publish() * before
        assert [result for result, _ in seen.upcalls] == [ScanResult.APART, ScanResult.HEADER]
        assert seen.upcalls[0][1] + seen.upcalls[1][1] == method() + header(size)
        up.channels.discard(1)
        assert (up.messages, up.body_bytes) == (before, 5 * before)


def test_a_publish_waits_until_its_size_is_known(scanner: ModuleType) -> None:
    data = publish(2)
    for cut in range(len(data)):
        up = lane(scanner)
        up.channels.open(2, 77)
        first = drive(scanner, up, data[:cut]).forwarded
        known = len(data) - len(data[data.index(b"\x02\x00\x02") :]) + 19
        assert bool(first) == (cut >= known)


@pytest.mark.parametrize("between", [HEARTBEAT, publish(2), method_frame(2, amqp.BasicAck(1))])
def test_a_header_that_follows_later_is_waited_for_by_the_control_plane(
    scanner: ModuleType, between: bytes
) -> None:
    up = lane(scanner)
    data = publish()
    half = len(method())
    seen = drive(scanner, up, data[:half] + between + data[half:])
    assert seen.upcalls[0] == (ScanResult.APART, data[:half])
    assert seen.upcalls[1][0] is ScanResult.HEADER
    assert (b"" if between == HEARTBEAT else between) + body(b"hello") == seen.forwarded
    assert up.messages == 1 + (between == publish(2))


@pytest.mark.parametrize("size", [size for size in HUGE if size > MOST_BODY])
def test_what_a_broker_declares_is_bounded_only_by_what_can_be_counted(
    scanner: ModuleType, size: int
) -> None:
    deliver = method_frame(1, amqp.BasicDeliver("a", 1, False, "x", "k"))
    down = lane(scanner, Side.UPSTREAM)
    assert drive(scanner, down, deliver + header(size)).upcalls == [(ScanResult.MALFORMED, b"")]
    down = lane(scanner, Side.UPSTREAM)
    assert drive(scanner, down, deliver + header(MOST_BODY)).upcalls == []
    assert (down.messages, down.body_bytes) == (0, 0)


pieces = st.one_of(
    st.builds(method, st.sampled_from([1, 1, 1, 2]), st.sampled_from(["k", "k", "j"])),
    st.builds(
        header,
        st.integers(0, 12) | st.sampled_from([20, 21, 4096, *HUGE]),
        st.sampled_from([1, 1, 1, 2]),
    ),
    st.builds(body, st.binary(max_size=12), st.sampled_from([1, 1, 1, 2])),
    st.builds(
        lambda channel, key, data: publish(channel, key, data),
        st.sampled_from([1, 2]),
        st.sampled_from("kj"),
        st.binary(max_size=21),
    ),
    st.just(HEARTBEAT),
)
streams = st.lists(
    pieces
    | st.builds(
        lambda key, size, parts: method(1, key) + header(size) + b"".join(map(body, parts)),
        st.sampled_from("kj"),
        st.integers(0, 24),
        st.lists(st.binary(max_size=8), max_size=4),
    ),
    max_size=12,
).map(b"".join)


def told(module: ModuleType, data: bytes, cuts: list[int], burst: float) -> tuple[object, ...]:
    """Whatever is shown is refused if it declares more than 20 bytes."""
    made = lane(module, flows=True)
    made.most_body = 20
    made.channels.open(2, 77)
    book: list[reference.Meter] = []
    messages, byte_count = (module.Bucket(1.0, burst),), (module.Bucket(1.0, 3 * burst),)
    control = {flow_key(key): module.Flow(messages, byte_count) for key in "kj"}
    for key, flow in control.items():
        flow.meter = module.Meter(key, book)
        assert made.flows is not None
        made.flows.install(key, flow)
    seen = drive(module, made, data, cuts, control=control)
    claimed = [channel for channel in (1, 2) if made.channels.due(Side.CLIENT, channel) > 0]
    for channel in (1, 2):
        made.channels.close(channel)
    sums = [(meter.row, meter.read()) for meter in book]
    # Whatever was declared: what counts has come.
    assert sum(bytes_ for _, (_, bytes_, _, _, _) in sums) == made.body_bytes <= len(data)
    assert 3 * burst - byte_count[0].tokens <= len(data)
    return (
        seen,
        claimed,
        (made.messages, made.body_bytes, made.dropped, made.frames, made.ready_at, made.held_since),
        [(flow.messages, flow.body_bytes) for flow in control.values()],
        sums,
        (messages[0].tokens, byte_count[0].tokens),
    )


@given(streams, st.data(), st.sampled_from([3.0, 1e6]))
@settings(max_examples=500)
def test_any_split_of_claims_gives_the_same(data: bytes, more: st.DataObject, burst: float) -> None:
    cuts = more.draw(st.lists(st.integers(0, len(data)), max_size=10))
    for module in IMPLEMENTATIONS:
        assert told(module, data, cuts, burst) == told(module, data, [], burst)


@pytest.mark.skipif(compiled is None, reason="the compiled scanner was not built (no C compiler)")
@given(streams, st.data(), st.sampled_from([3.0, 1e6]))
@settings(max_examples=1000)
def test_both_scanners_agree_on_claims(data: bytes, more: st.DataObject, burst: float) -> None:
    cuts = more.draw(st.lists(st.integers(0, len(data)), max_size=10))
    assert told(compiled, data, cuts, burst) == told(reference, data, cuts, burst)
