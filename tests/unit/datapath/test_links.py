"""Both pumps with links that several sessions share, on real socket pairs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from amqpgate.datapath.budgets import CHUNK
from amqpgate.datapath.engine import End, HandedOverSocket
from amqpgate.datapath.properties import PROPERTIES
from amqpgate.datapath.scanner import FlowTable
from amqpgate.datapath.tables import ScanResult, Side
from amqpgate.protocol.frames import HEARTBEAT, encode_frame, method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames

from .pools import (
    FRAME_MAX,
    HIGH,
    LIMIT,
    Pool,
    PooledWitness,
    declare,
    deliver,
    frames_of,
    make_pool,
    publish,
)
from .rig import ENGINES, received


@pytest.fixture(params=ENGINES)
def pool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    yield from make_pool(request.param, monkeypatch)


def limit_deliveries(pool: Pool, handler: PooledWitness, rate: float) -> None:
    flows = pool.scanner.FlowTable()
    handler.relay.down.flows = flows
    key = amqp.BasicDeliver("c", 1, False, "x", "k").encode()
    flows.install(b"\0\1" + key[4:6] + key[15:], pool.scanner.Flow((pool.scanner.Bucket(rate, 1.0),)))


def test_channels_have_other_numbers_on_the_link(pool: Pool) -> None:
    broker, keeper = pool.link()
    first, one = pool.join(keeper, {1: 7, 2: 300})
    second, two = pool.join(keeper, {1: 8})
    up = publish(1) + declare(1) + publish(2, b"x" * 50_000)
    assert pool.exchange(first, broker, up) == publish(7) + declare(7) + publish(300, b"x" * 50_000)
    assert pool.exchange(second, broker, publish(1, b"mine")) == publish(8, b"mine")
    down = deliver(300) + deliver(8, b"yours") + declare(7) + deliver(7, b"y" * 50_000)
    assert pool.exchange(broker, first, down) == deliver(2) + declare(1) + deliver(1, b"y" * 50_000)
    assert received(second) == deliver(1, b"yours")
    assert [side for side, _, _ in one.upcalls] == [Side.CLIENT, Side.UPSTREAM]
    assert one.upcalls[1] == (Side.UPSTREAM, ScanResult.METHOD, declare(1))
    assert two.upcalls == keeper.upcalls == []
    assert (one.relay.down.messages, two.relay.down.messages, one.relay.up.messages) == (2, 1, 2)


def test_what_belongs_to_nobody_is_the_links_handlers(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper)
    frames = [method_frame(0, amqp.ConnectionBlocked("memory")), declare(9), *frames_of(deliver(12))]
    assert (
        pool.exchange(broker, client, b"".join([frames[0], deliver(7), HEARTBEAT, *frames[1:], deliver(7)]))
        == deliver() * 2
    )
    assert keeper.upcalls == [(ScanResult.METHOD, frame) for frame in frames]
    keeper.link.unmap_channel(7)
    keeper.link.unmap_channel(7)
    assert keeper.link.mapped_to(7) is None
    pool.exchange(broker, client, declare(7))
    assert keeper.upcalls[-1] == (ScanResult.METHOD, declare(7))
    keeper.link.map_channel(9, handler.pooled, 1)
    assert keeper.link.mapped_to(9) == (handler.pooled, 1)
    assert pool.exchange(broker, client, deliver(9)) == deliver()


def test_seats_may_change_in_upcalls(pool: Pool) -> None:
    broker, keeper = pool.link()
    first, one = pool.join(keeper)
    second, two = pool.join(keeper, {1: 8})

    def swap(frame: bytes) -> None:
        keeper.link.map_channel(7, two.pooled, 1)

    keeper.on_upcall = swap
    pool.exchange(broker, first, deliver(7, b"a") + declare(50) + deliver(7, b"b"))
    assert received(second) == deliver(1, b"b")
    keeper.on_upcall = None

    def leave(side: Side, result: ScanResult, frame: bytes) -> None:
        keeper.link.unmap_channel(7)
        keeper.link.map_channel(7, one.pooled, 1)

    two.on_upcall = leave
    keeper.link.map_channel(9, one.pooled, 1)
    assert pool.exchange(broker, second, declare(7) + deliver(9, b"c") + deliver(7, b"d")) == declare(1)
    assert received(first) == deliver(1, b"c") + deliver(1, b"d")


def test_nothing_of_a_message_reaches_the_link_before_all_of_it_is_there(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper)
    data = publish(body=b"b" * 3000, frame_max=1000) + declare(1) + HEARTBEAT + publish(body=b"")
    told = publish(7, body=b"b" * 3000, frame_max=1000) + declare(7) + publish(7, body=b"")
    ends = {
        len(told[: len(publish(body=b"b" * 3000, frame_max=1000))]),
        len(told) - len(publish(body=b"")),
        len(told),
    }
    got = b""
    for at in range(len(data)):
        client.send(data[at : at + 1])
        pool.pump.step()
        got += received(broker)
        assert len(got) in ends | {0}
    assert got == told
    assert handler.results() == [ScanResult.METHOD]


def rewriting(pool: Pool) -> FlowTable:
    """Publishes to ``x``, ``k`` get another exchange, and an app id."""
    flows = pool.scanner.FlowTable()
    flow = pool.scanner.Flow()
    # App id is the last but one.
    sets = (*[None] * (len(PROPERTIES) - 2), b"\x02id", None)
    flow.rewrite_by(pool.scanner.Rewrite(amqp.BasicPublish(0, "renamed", "k").encode(), sets, 0, b""))
    for key, one in (("k", flow), ("other", pool.scanner.Flow())):
        flows.install(amqp.BasicPublish(exchange="x", routing_key=key).encode()[6:], one)
    return flows


def named(channel: int, key: str, body: bytes, *, is_rewritten: bool = False) -> bytes:
    """A message, its body in frames of 1,000 bytes; ``is_rewritten``: as `rewriting` has it."""
    method = amqp.BasicPublish(exchange="renamed" if is_rewritten else "x", routing_key=key)
    properties = amqp.BasicProperties(app_id="id" if is_rewritten else None)
    return content_frames(channel, method, properties, body, 1000)


@pytest.mark.parametrize("step", [1, 7, 4096, 1 << 20])
def test_what_is_rewritten_reaches_the_link_whole_and_in_order(pool: Pool, step: int) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper, {1: 7, 2: 300}, flows=rewriting(pool))
    bodies = [b"", b"a", b"b" * 2500] if step == 1 else [b"", b"a", b"b" * 2500] * 20
    sent, told, ends = b"", b"", {0}
    for number, body in enumerate(bodies):
        channel, to = ((1, 7), (2, 300))[number % 2]
        for key in ("k", "other", "k", "k"):
            sent += named(channel, key, body)
            told += named(to, key, body, is_rewritten=key == "k")
            ends.add(len(told))
    got = b""
    for at in range(0, len(sent), step):
        client.send(sent[at : at + step])
        pool.pump.step()
        got += received(broker)
        assert len(got) in ends
    assert got == told
    assert handler.upcalls == []


def test_of_what_is_rewritten_nothing_goes_before_its_body_is_there(pool: Pool) -> None:
    """Nor what interleaves with it, and nothing at all where the client vanishes."""
    broker, keeper = pool.link()
    client, _handler = pool.join(keeper, {1: 7, 2: 300}, flows=rewriting(pool))
    head = named(1, "k", b"b" * 2500)[:-1]
    between = named(2, "k", b"whole")
    assert pool.exchange(client, broker, between + head + between[:-1]) == named(
        300, "k", b"whole", is_rewritten=True
    )
    client.close()
    pool.pump.step()
    assert received(broker) == b""


@pytest.mark.parametrize("size", [1, 300_000, 1_000_000])
def test_messages_larger_than_the_scratch_pass_whole(pool: Pool, size: int) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper, whole=size)
    data = b"".join(publish(1, bytes([n]) * size) for n in range(3)) + declare(1)
    told = b"".join(publish(7, bytes([n]) * size) for n in range(3)) + declare(7)
    half = len(data) // 2
    got = pool.exchange(client, broker, data[:half])
    assert got == told[: len(publish(1, b"x" * size))]
    assert got + pool.exchange(client, broker, data[half:]) == told
    assert handler.relay.up.messages == 3
    assert handler.relay.endpoints[0].rest() == b""


def test_a_client_that_vanishes_in_mid_message_leaves_nothing(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper)
    other, _ = pool.join(keeper, {1: 8})
    client.send(publish(body=b"whole") + publish(body=b"x" * 5000)[:-1])
    client.close()
    pool.steps()
    assert handler.ends == [(End.GONE, Side.CLIENT)]
    assert received(broker) == publish(7, b"whole")
    assert pool.exchange(other, broker, publish()) == publish(8)
    assert keeper.ends == []


def test_a_session_that_ends_while_messages_lie_in_each_other_leaves_no_half_of_one(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper, {1: 7, 2: 9})
    one = frames_of(publish(1))

    def end(side: Side, result: ScanResult, frame: bytes) -> None:
        handler.relay.finish()

    handler.on_upcall = end
    client.send(publish(2) + one[0] + one[1] + declare(2) + one[2] + publish(2))
    pool.steps()
    assert handler.ends == [(End.FINISHED, None)]
    assert received(broker) == publish(9)


@pytest.mark.parametrize("moves", [False, True])
def test_what_a_session_put_before_it_left_still_goes(pool: Pool, moves: bool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper, whole=400_000, frame_max=FRAME_MAX)
    _own, near = pool.pair()

    def leave(side: Side, result: ScanResult, frame: bytes) -> bool:
        if moves:
            pool.pump.exchange(handler.relay, HandedOverSocket(near, FRAME_MAX, 0))
        else:
            handler.relay.finish()
        return moves

    handler.on_upcall = leave
    data = publish(body=b"b" * 400_000)
    rest = memoryview(data + declare(1))
    for _ in range(20):
        with contextlib.suppress(BlockingIOError):
            rest = rest[client.send(rest) :]
        pool.pump.step()
    assert not rest
    assert keeper.link.endpoint.waiting > 0
    got = bytearray()
    for _ in range(20):
        got += received(broker)
        pool.pump.step()
    assert bytes(got) == publish(7, b"b" * 400_000)


def test_an_exception_in_mid_message_leaves_no_half_of_it(pool: Pool) -> None:
    broker, keeper = pool.link()
    flows = pool.scanner.FlowTable()
    client, handler = pool.join(keeper, flows=flows)

    def fail(side: Side, result: ScanResult, frame: bytes) -> bool | None:
        if result is ScanResult.HEADER:
            raise ZeroDivisionError
        handler.relay.channels.expect_header(Side.CLIENT, 1, None, 2)
        handler.relay.send(Side.UPSTREAM, frame)
        return False

    handler.on_upcall = fail
    client.send(publish())
    pool.steps()
    assert handler.results() == [ScanResult.MISS, ScanResult.HEADER]
    assert handler.ends == [(End.FAILED, Side.CLIENT)]
    assert [type(error) for error in pool.failures] == [ZeroDivisionError]
    assert received(broker) == b""


def test_a_message_that_waits_within_anothers_holds_it_back_whole(pool: Pool) -> None:
    broker, keeper = pool.link()
    flows = pool.scanner.FlowTable()
    key = amqp.BasicPublish(exchange="x", routing_key="slow").encode()[6:]
    bucket = pool.scanner.Bucket(1.0, 1.0)
    flows.install(key, pool.scanner.Flow((bucket,)))
    flows.install(amqp.BasicPublish(exchange="x", routing_key="k").encode()[6:], pool.scanner.Flow())
    client, handler = pool.join(keeper, {1: 7, 2: 9}, flows=flows)
    one, slow = frames_of(publish(1)), publish(2, key="slow")
    assert pool.exchange(client, broker, slow + one[0] + one[1] + slow + one[2] + declare(1)) == publish(
        9, key="slow"
    )
    handler.relay.send(Side.UPSTREAM, method_frame(2, amqp.BasicCancel("c")))
    pool.steps()
    assert received(broker) == b"", "behind what is staged"
    pool.clock.now += 1.1
    pool.steps()
    seven = frames_of(publish(7))
    cancel = method_frame(9, amqp.BasicCancel("c"))
    assert received(broker) == seven[0] + seven[1] + cancel + publish(9, key="slow") + seven[2] + declare(7)
    assert pool.pump.counters.throttled == 1


def test_who_asks_is_told_when_what_was_put_has_gone(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper, {1: 7, 2: 9})
    one, told = frames_of(publish(1)), list[str]()
    handler.pooled.when_sent(lambda: told.append("at once"))
    assert told == ["at once"], "nothing waits"
    cancel = amqp.BasicCancel("c")

    def in_mid_message(side: Side, result: ScanResult, frame: bytes) -> None:
        if result is ScanResult.METHOD:
            handler.relay.send(Side.UPSTREAM, method_frame(2, cancel))
            handler.pooled.when_sent(lambda: told.append("first"))
            handler.pooled.when_sent(lambda: told.append("second"))
            assert told == ["at once"]

    handler.on_upcall = in_mid_message
    data = one[0] + declare(2) + one[1] + one[2]
    sent = frames_of(pool.exchange(client, broker, data))
    assert sorted(sent) == sorted([method_frame(9, cancel), declare(9), *frames_of(publish(7))])
    assert told == ["at once", "first", "second"]
    handler.on_upcall = None
    pool.exchange(client, broker, data)
    assert len(told) == 3, "once"


def test_what_was_put_has_gone_too_where_the_session_leaves(pool: Pool) -> None:
    _, keeper = pool.link()
    client, handler = pool.join(keeper, {1: 7, 2: 9})
    told: list[str] = []

    def leave(side: Side, result: ScanResult, frame: bytes) -> None:
        handler.relay.send(Side.UPSTREAM, declare(2))
        handler.pooled.when_sent(lambda: told.append("gone"))
        assert told == []
        handler.relay.finish()

    handler.on_upcall = leave
    client.send(declare(1))
    pool.steps()
    assert told == ["gone"]


def test_a_link_that_finishes_heard_gives_its_sessions_what_came_before(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper)
    close = method_frame(0, amqp.ConnectionClose(320, "because"))
    ends: list[int] = []

    def finish(frame: bytes) -> None:
        keeper.link.finish_heard()
        ends.append(len(keeper.ends))

    def take_long(side: Side, result: ScanResult, frame: bytes) -> None:
        pool.clock.now += 1.0

    keeper.on_upcall, handler.on_upcall = finish, take_long
    # What comes first does not go into the session's turn.
    assert pool.exchange(broker, client, declare(7) * 30 + close) == declare(1) * 30
    assert ends == [0]
    assert keeper.ends == [(End.GONE, Side.UPSTREAM)]
    assert handler.ends == []
    again, keeper = pool.link()
    keeper.on_upcall = finish
    pool.exchange(again, client, close)
    assert ends == [0, 1], "nobody is owed anything"
    assert keeper.ends == [(End.FINISHED, None)]


def test_a_message_whose_channel_is_closed_before_it_went_never_goes(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper, {1: 7, 2: 9})
    one = frames_of(publish(1))

    def refuse(side: Side, result: ScanResult, frame: bytes) -> None:
        handler.relay.channels.discard(1)
        handler.relay.send(Side.UPSTREAM, method_frame(1, amqp.ChannelClose(403)))

    handler.on_upcall = refuse
    data = publish(2) + one[0] + one[1] + declare(2) + one[2] + publish(1) + publish(2)
    told = publish(9) + method_frame(7, amqp.ChannelClose(403)) + declare(9) + publish(9)
    assert pool.exchange(client, broker, data) == told


def test_a_throttled_client_that_is_between_messages_holds_nothing_back(pool: Pool) -> None:
    broker, keeper = pool.link()
    flows = pool.scanner.FlowTable()
    flow = pool.scanner.Flow((pool.scanner.Bucket(10.0, 3.0),))
    flows.install(amqp.BasicPublish(exchange="x", routing_key="k").encode()[6:], flow)
    client, handler = pool.join(keeper, flows=flows)
    assert (
        pool.exchange(client, broker, declare(1) + publish() * 8 + declare(1)) == declare(7) + publish(7) * 3
    )
    handler.relay.send(Side.UPSTREAM, declare(1))
    assert received(broker) == declare(7)
    for _ in range(20):
        pool.clock.now += 0.3
        pool.steps(3)
    assert received(broker) == publish(7) * 5 + declare(7)


VIOLATIONS = [
    (ScanResult.BODY_DUE, declare(1)),
    (ScanResult.HEADER_UNASKED, b""),
    (ScanResult.BAD_TYPE, encode_frame(5, 1, b"x")),
    (ScanResult.BAD_END, encode_frame(3, 1, b"x")[:-1] + b"\0"),
    (ScanResult.TOO_LARGE, b"\3\0\1\0\0\x20\1"),
    (ScanResult.BODY_OVERRUN, encode_frame(3, 1, b"x" * 51)),
]


@pytest.mark.parametrize(("result", "bad"), VIOLATIONS)
@pytest.mark.parametrize("in_pieces", [False, True])
def test_violations_in_a_message_leave_the_link_alone(
    pool: Pool, result: ScanResult, bad: bytes, in_pieces: bool
) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper)
    other, _ = pool.join(keeper, {1: 8})
    half = b"".join(frames_of(publish(body=b"b" * 50))[:2])
    if result is ScanResult.HEADER_UNASKED:
        half, bad = b"", frames_of(publish())[1]
    data = publish() + half + bad
    for piece in [data[at : at + 1] for at in range(len(data))] if in_pieces else [data]:
        with contextlib.suppress(OSError):
            client.send(piece)
        pool.pump.step()
    pool.steps()
    assert handler.results() == [result]
    assert bad.startswith(handler.upcalls[0][2])
    assert received(broker) == publish(7)
    assert handler.ends == [(End.FINISHED, None)]
    assert pool.failures == []
    assert pool.exchange(other, broker, publish()) == publish(8)


def test_a_session_that_goes_on_after_a_violation_is_ended(pool: Pool) -> None:
    _broker, keeper = pool.link()
    client, handler = pool.join(keeper)
    handler.on_upcall = lambda *_: False
    client.send(frames_of(publish())[0] + declare(1))
    pool.steps()
    assert handler.ends == [(End.FAILED, Side.CLIENT)]
    assert [type(error) for error in pool.failures] == [RuntimeError]


def test_a_large_message_can_be_refused(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper, {1: 7, 2: 9}, whole=1000)
    large = publish(1, b"l" * 1001)
    got = pool.exchange(client, broker, publish(2) + large + publish(2) + publish(1))
    assert got == publish(9) * 2
    assert handler.upcalls == [(Side.CLIENT, ScanResult.LARGE, frames_of(large)[0])]
    assert handler.ends == []


def test_a_large_message_can_be_allowed(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper, {1: 7}, whole=1000)

    def allow(side: Side, result: ScanResult, frame: bytes) -> bool:
        handler.pooled.whole = 2000
        return True

    handler.on_upcall = allow
    large = publish(1, b"l" * 1001)
    assert pool.exchange(client, broker, large * 2) == publish(7, b"l" * 1001) * 2
    assert handler.results() == [ScanResult.LARGE]


def test_a_large_message_waits_for_an_upstream_of_its_own(pool: Pool) -> None:
    link, keeper = pool.link()
    client, handler = pool.join(keeper, {1: 7, 2: 9}, whole=1000)

    def later(side: Side, result: ScanResult, frame: bytes) -> bool | None:
        if result is not ScanResult.LARGE:
            return None
        handler.relay.up.ready_at = pool.clock.now + 60
        return True

    handler.on_upcall = later
    large = publish(1, b"l" * 100_000)
    assert pool.exchange(client, link, publish(2) + large[:50_000]) == publish(9)
    assert handler.results() == [ScanResult.LARGE]
    own, near = pool.pair()
    keeper.link.unmap_channel(7)
    keeper.link.unmap_channel(9)
    handler.relay.channels.remap(1, 1)
    handler.relay.channels.remap(2, 2)
    pool.pump.exchange(handler.relay, HandedOverSocket(near, 4096, 0, declare(2)))
    assert handler.relay.pooled is None
    pool.clock.now += 0.01
    got = frames_of(pool.exchange(client, own, large[50_000:] + publish(2)))
    assert b"".join(frame[7:-1] for frame in got[2:-3]) == b"l" * 100_000
    assert max(map(len, got)) == 4096
    assert got[:2] + got[-3:] == frames_of(large)[:2] + frames_of(publish(2))
    assert received(client) == declare(2)
    assert received(link) == b""
    assert pool.exchange(own, client, deliver(1)) == deliver(1)
    assert handler.results() == [ScanResult.LARGE, ScanResult.METHOD]
    own.close()
    pool.steps()
    assert handler.ends == [(End.GONE, Side.UPSTREAM)]
    assert keeper.ends == []


def test_an_upstream_of_its_own_in_an_upcall(pool: Pool) -> None:
    link, keeper = pool.link()
    client, handler = pool.join(keeper, {1: 7}, whole=1000)
    own, near = pool.pair()

    def move(side: Side, result: ScanResult, frame: bytes) -> bool | None:
        if result is not ScanResult.LARGE:
            return None
        handler.relay.channels.remap(1, 1)
        pool.pump.exchange(handler.relay, HandedOverSocket(near, FRAME_MAX, 0))
        return True

    handler.on_upcall = move
    data = publish(1, b"l" * 1001)
    assert pool.exchange(client, own, publish() + data * 3) == data * 3
    assert received(link) == publish(7)
    pool.exchange(link, client, deliver(7))
    assert keeper.frames() == frames_of(deliver(7)), "its mapping is not taken any more"
    assert received(client) == b""
    with pytest.raises(RuntimeError):
        pool.pump.exchange(handler.relay, HandedOverSocket(near, FRAME_MAX, 0))


def test_what_waits_for_the_client_comes_before_its_own_upstreams(pool: Pool) -> None:
    link, keeper = pool.link()
    client, handler = pool.join(keeper)
    limit_deliveries(pool, handler, 1.0)
    assert pool.exchange(link, client, deliver(7, tag=1) + deliver(7, tag=2)) == deliver(1, tag=1)
    own, near = pool.pair()
    handler.relay.channels.remap(1, 1)
    pool.pump.exchange(handler.relay, HandedOverSocket(near, FRAME_MAX, 0))
    assert pool.exchange(own, client, deliver(1, tag=3)) == b""
    pool.clock.now += 1.5
    pool.steps()
    pool.clock.now += 1.5
    pool.steps()
    assert received(client) == deliver(1, tag=2) + deliver(1, tag=3)


def test_the_delivery_limit_of_one_stops_nobody_else(pool: Pool) -> None:
    link, keeper = pool.link()
    client, handler = pool.join(keeper)
    other, _ = pool.join(keeper, {1: 8})
    limit_deliveries(pool, handler, 1.0)
    data = b"".join(deliver(number, tag=tag) for tag in range(1, 4) for number in (7, 8))
    assert pool.exchange(link, other, data + declare(7)) == b"".join(
        deliver(1, tag=tag) for tag in range(1, 4)
    )
    assert received(client) == deliver(1, tag=1)
    for _ in range(3):
        pool.clock.now += 1.1
        pool.steps()
    assert received(client) == deliver(1, tag=2) + deliver(1, tag=3) + declare(1)


def test_a_client_that_does_not_read_stops_nobody(pool: Pool) -> None:
    link, keeper = pool.link()
    client, handler = pool.join(keeper, limit=100_000_000)
    other, _ = pool.join(keeper, {1: 8})
    sent = deliver(7, b"z" * 1_000_000)
    assert pool.exchange(link, other, sent + deliver(8)) == deliver(1)
    assert handler.relay.endpoints[0].waiting > HIGH
    assert pool.exchange(client, link, publish()) == publish(7), "it may publish"
    got = b""
    while len(got) < len(sent):
        got += received(client)
        pool.pump.step()
    assert got == deliver(1, b"z" * 1_000_000)
    assert handler.overflows == 0


def test_a_client_for_which_too_much_waits_is_ended(pool: Pool) -> None:
    link, keeper = pool.link()
    client, handler = pool.join(keeper)
    other, _ = pool.join(keeper, {1: 8})
    data = deliver(7, b"z" * 2_000_000) + declare(7) + deliver(8)
    assert pool.exchange(link, other, data) == deliver(1)
    assert handler.overflows == 1
    assert handler.relay.endpoints[0].waiting <= LIMIT + CHUNK + FRAME_MAX
    assert keeper.upcalls[-1] == (ScanResult.METHOD, declare(7)), "what comes for it is the link's"
    assert handler.ends == [(End.FINISHED, None)]
    client.close()


def test_what_waits_for_a_limit_counts_too_and_goes_back_in_order(pool: Pool) -> None:
    link, keeper = pool.link()
    client, handler = pool.join(keeper, limit=5000)
    limit_deliveries(pool, handler, 1.0)
    sent = [deliver(7, b"x" * 3000, tag=tag) + declare(7) for tag in range(10)]
    for data in sent:
        link.send(data)
        pool.pump.step()
    pool.steps()
    assert received(client) == deliver(1, b"x" * 3000, tag=0) + declare(1)
    assert handler.overflows == 1
    assert b"".join(keeper.frames()) == b"".join(sent[1:])


def test_a_handler_hears_of_an_overflow_once(pool: Pool) -> None:
    link, keeper = pool.link()
    client, handler = pool.join(keeper, limit=5000)
    handler.ends_overflow = False
    limit_deliveries(pool, handler, 1.0)
    assert pool.exchange(link, client, deliver(7, b"x" * 3000) * 10) == deliver(1, b"x" * 3000)
    assert (handler.overflows, handler.ends) == (1, [])


def test_a_link_that_does_not_read_stops_its_clients_and_holds_little(pool: Pool) -> None:
    broker, keeper = pool.link()
    pooled = [pool.join(keeper, {1: 7 + n}) for n in range(5)]
    data = publish(body=b"u" * 3000) * 500
    rests = [memoryview(data) for _ in pooled]
    for _ in range(100):
        for n, (client, _handler) in enumerate(pooled):
            with contextlib.suppress(BlockingIOError):
                rests[n] = rests[n][client.send(rests[n]) :]
        pool.pump.step()
    assert all(rests), "all are stopped"
    assert HIGH < keeper.link.endpoint.waiting <= HIGH + CHUNK + FRAME_MAX
    for client, _handler in pooled:
        assert pool.exchange(broker, client, b"") == b""
    got = bytearray()
    while len(got) < len(data) * 5:
        got += received(broker)
        for n, (client, _handler) in enumerate(pooled):
            with contextlib.suppress(BlockingIOError):
                rests[n] = rests[n][client.send(rests[n]) :]
        pool.pump.step()
    by_channel: dict[int, bytes] = {}
    for frame in frames_of(bytes(got)):
        by_channel[frame[2]] = by_channel.get(frame[2], b"") + frame
    assert by_channel == {7 + n: publish(7 + n, b"u" * 3000) * 500 for n in range(5)}


def test_a_link_that_goes_ends_itself_and_no_session(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper)
    close = method_frame(0, amqp.ConnectionClose(320, "shutdown"))
    broker.send(deliver(7) + close)
    broker.close()
    pool.steps()
    assert keeper.ends == [(End.GONE, Side.UPSTREAM)]
    assert keeper.frames() == [close]
    assert received(client) == deliver()
    client.send(publish() + declare(1))
    pool.steps()
    assert handler.ends == []
    keeper.link.send(declare(7))
    again, better = pool.link()
    handler.pooled.attach(better.link)
    handler.relay.channels.remap(1, 3)
    assert pool.exchange(client, again, publish()) == publish(3)


def test_a_link_that_breaks_under_a_send_ends_after_the_event(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper)
    other, _ = pool.join(keeper, {1: 8})
    reason = method_frame(0, amqp.ConnectionClose(320, "because"))
    # What the clients send is seen first, and finds nobody.
    client.send(publish() + declare(1) + publish())
    other.send(publish())
    broker.send(deliver(7) + reason)
    broker.close()
    pool.steps()
    assert keeper.ends == [(End.GONE, Side.UPSTREAM)]
    assert keeper.frames() == [reason], "last words are heard"
    assert received(client) == deliver()
    assert handler.ends == []
    assert pool.failures == []


def test_clients_that_waited_for_a_link_go_on_when_it_is_gone(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper)
    rest = memoryview(publish(body=b"u" * 3000) * 500)
    for _ in range(50):
        with contextlib.suppress(BlockingIOError):
            rest = rest[client.send(rest) :]
        pool.pump.step()
    assert handler.relay.endpoints[0].paused
    broker.close()
    pool.steps()
    assert keeper.ends == [(End.GONE, Side.UPSTREAM)]
    assert not handler.relay.endpoints[0].paused
    assert handler.ends == []


def test_a_client_that_breaks_while_the_link_is_read_ends_alone(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper)
    other, _ = pool.join(keeper, {1: 8})
    client.send(publish(body=b"last words"))
    client.close()
    # The link's bytes are dealt with first where its socket is the one that epoll names first.
    broker.send(deliver(7) + deliver(8) + declare(7) + deliver(7) + deliver(8) + declare(7))
    pool.steps()
    assert handler.ends == [(End.GONE, Side.CLIENT)]
    assert received(other) == deliver() * 2
    assert keeper.ends == pool.failures == []
    # They were for the session, or, once it was over, for its link's handler.
    mine = [frame for side, _, frame in handler.upcalls if side is Side.UPSTREAM]
    assert len(mine) + keeper.frames().count(declare(7)) == 2


def test_what_another_sessions_upcall_sends_to_a_broken_client_ends_that_client(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper)
    other, _ = pool.join(keeper, {1: 8})
    blocked = method_frame(0, amqp.ConnectionBlocked("memory"))

    def spread(frame: bytes) -> None:
        handler.relay.send(Side.CLIENT, frame)

    keeper.on_upcall = spread
    broker.send(blocked + deliver(8) + blocked + deliver(8))
    client.close()
    pool.steps()
    assert handler.ends == [(End.GONE, Side.CLIENT)]
    assert keeper.ends == pool.failures == []
    assert received(other) == deliver() * 2


def test_what_comes_for_a_session_that_is_over_is_its_links(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper, {1: 7, 2: 9})

    def end(side: Side, result: ScanResult, frame: bytes) -> None:
        handler.relay.finish()

    handler.on_upcall = end
    frames = [declare(9), *frames_of(deliver(7)), method_frame(9, amqp.ChannelClose())]
    assert pool.exchange(broker, client, deliver(7) + b"".join(frames)) == deliver()
    assert handler.upcalls == [(Side.UPSTREAM, ScanResult.METHOD, declare(2))]
    assert keeper.frames() == frames[1:]
    assert keeper.link.mapped_to(7) is not None
    pool.exchange(broker, client, declare(7))
    assert keeper.frames()[-1] == declare(7)


def test_what_was_kept_for_a_session_that_ends_is_its_links(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper, {1: 7})
    limit_deliveries(pool, handler, 1.0)
    assert pool.exchange(broker, client, deliver(7) * 2 + declare(7)) == deliver()
    handler.on_end = handler.pooled.detach
    client.close()
    pool.steps()
    assert keeper.frames() == [*frames_of(deliver(7)), declare(7)]


def test_an_exception_in_an_upcall_ends_that_session_and_neither_link_nor_others(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper)
    other, _ = pool.join(keeper, {1: 8})

    def fail(side: Side, result: ScanResult, frame: bytes) -> None:
        raise ZeroDivisionError

    handler.on_upcall = fail
    assert pool.exchange(broker, other, declare(7) + deliver(7) + deliver(8)) == deliver()
    assert handler.ends == [(End.FAILED, Side.UPSTREAM)]
    assert keeper.frames() == frames_of(deliver(7))
    assert keeper.ends == []
    client.close()


def test_an_exception_in_the_links_handler_ends_the_link(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper)

    def fail(frame: bytes) -> None:
        raise ZeroDivisionError

    keeper.on_upcall = fail
    assert pool.exchange(broker, client, deliver(7) + declare(0) + deliver(7)) == deliver()
    assert keeper.ends == [(End.FAILED, Side.UPSTREAM)]
    assert handler.ends == []


@pytest.mark.parametrize(
    ("bad", "result"),
    [
        (encode_frame(4, 7, b""), ScanResult.BAD_TYPE),
        (b"\1\0\7\0\0\x20\1", ScanResult.TOO_LARGE),
        (declare(7)[:-1] + b"\0", ScanResult.BAD_END),
        (encode_frame(8, 7, b""), ScanResult.BAD_HEARTBEAT),
    ],
)
def test_a_broker_that_breaks_the_frames_is_the_links_handlers(
    pool: Pool, bad: bytes, result: ScanResult
) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper)
    keeper.on_upcall = lambda frame: keeper.link.finish()
    assert pool.exchange(broker, client, deliver(7) + bad + deliver(7)) == deliver()
    assert keeper.upcalls == [
        (result, bad + deliver(7) if result in (ScanResult.BAD_TYPE, ScanResult.TOO_LARGE) else bad)
    ]
    assert keeper.ends == [(End.FINISHED, None)]
    assert handler.upcalls == handler.ends == []


def test_a_payload_of_frame_max_bytes_passes(pool: Pool) -> None:
    """As with RabbitMQ; one octet more is ``TOO_LARGE``."""
    broker, keeper = pool.link()
    client, handler = pool.join(keeper)
    payload = amqp.QueueDeclare.INDEX.to_bytes(4, "big") + bytes(FRAME_MAX - 4)
    assert pool.exchange(client, broker, encode_frame(1, 1, payload)) == encode_frame(1, 7, payload)
    assert handler.results() == [ScanResult.METHOD]
    assert pool.exchange(broker, client, encode_frame(1, 44, payload)) == b""
    assert keeper.upcalls == [(ScanResult.METHOD, encode_frame(1, 44, payload))]


def test_links_have_heartbeats_of_their_own(pool: Pool) -> None:
    broker, keeper = pool.link(heartbeat=10)
    client, handler = pool.join(keeper, heartbeat=20)
    pool.clock.now += 5.1
    pool.steps()
    assert received(broker) == HEARTBEAT
    assert received(client) == b""
    broker.send(HEARTBEAT)
    client.send(publish())
    pool.steps()
    received(broker)
    pool.clock.now += 4.9
    pool.steps()
    assert received(broker) == b"", "the message was sign of life enough"
    pool.clock.now += 0.3
    pool.steps()
    assert received(broker) == received(client) == HEARTBEAT
    pool.clock.now += 15
    client.send(HEARTBEAT)
    pool.steps()
    assert keeper.ends == [(End.SILENT, Side.UPSTREAM)]
    assert handler.ends == []


def test_what_came_with_the_hand_over_passes_without_new_bytes(pool: Pool) -> None:
    broker, keeper = pool.link(rest=declare(0) + deliver(3) + deliver(4)[:9])
    client, _handler = pool.session(rest=publish() + declare(1)[:5])
    pool.steps()
    assert keeper.frames() == [declare(0), *frames_of(deliver(3))]
    client, handler = pool.join(keeper, {1: 4})
    assert pool.exchange(broker, client, deliver(4)[9:]) == deliver()
    assert (handler.ends, keeper.ends) == ([], [])


def test_what_the_gateway_sends_has_the_clients_numbers(pool: Pool) -> None:
    broker, keeper = pool.link()
    _client, handler = pool.join(keeper, {1: 7, 2: 9})
    handler.relay.send(Side.UPSTREAM, declare(2) + publish(1))
    keeper.link.send(declare(44))
    assert received(broker) == declare(9) + publish(7) + declare(44)
    with pytest.raises(KeyError):
        handler.relay.send(Side.UPSTREAM, declare(3))
    handler.pooled.detach()
    handler.relay.send(Side.UPSTREAM, declare(2))
    assert received(broker) == b""


def test_bodies_are_cut_for_a_link_that_takes_less(pool: Pool) -> None:
    broker, keeper = pool.link(frame_max=4096)
    client, handler = pool.join(keeper)
    assert handler.relay.up.out_frame_max == handler.relay.down.frame_max == 4096
    data = publish(body=b"u" * 8000)
    assert pool.exchange(client, broker, data) == publish(7, b"u" * 8000, 4096)
    small, other = pool.join(keeper, {1: 8}, frame_max=1000)
    assert pool.exchange(broker, small, deliver(8, b"d" * 4000, 4096)) == deliver(1, b"d" * 4000, 1000)
    assert other.ends == []


def test_a_peeking_flow_waits_for_the_rest_of_a_delivery(pool: Pool) -> None:
    broker, keeper = pool.link()
    client, handler = pool.join(keeper)
    flows = pool.scanner.FlowTable()
    handler.relay.down.flows = flows
    key = amqp.BasicDeliver("c", 1, False, "x", "k").encode()
    flows.install(b"\0\1" + key[4:6] + key[15:], pool.scanner.Flow(show=2, peek_body=100))
    data = deliver(7) * 5
    got = b""
    for at in range(len(data)):
        broker.send(data[at : at + 1])
        pool.steps(2)
        got += received(client)
    assert got == deliver() * 5
    assert handler.upcalls == []


@pytest.mark.parametrize("waits_for", ["header", "body", "tokens"])
def test_what_a_lost_link_gave_and_nobody_has_scanned_is_for_nobody(pool: Pool, waits_for: str) -> None:
    """It is of channels that are no more, and the session may open others by the same numbers elsewhere."""
    broker, keeper = pool.link()
    client, handler = pool.join(keeper)
    if waits_for == "tokens":
        limit_deliveries(pool, handler, 0.001)
        assert pool.exchange(broker, client, deliver(7) * 5) == deliver()
    else:
        flow = pool.scanner.Flow(show=2, peek_body=100)
        if waits_for == "body":
            flow.capture("it", 0, 5)
        handler.relay.down.flows = pool.scanner.FlowTable()
        key = amqp.BasicDeliver("c", 1, False, "x", "k").encode()
        handler.relay.down.flows.install(b"\0\1" + key[4:6] + key[15:], flow)
        frames = frames_of(deliver(7))[: 1 if waits_for == "header" else 2]
        assert pool.exchange(broker, client, b"".join(frames)) == b""
    pooled = handler.pooled
    assert pooled.rest()
    keeper.link.finish()
    pooled.detach(is_lost=True)
    pool.pump.retry(handler.relay)
    pool.clock.now += 0.01
    other, second = pool.link()
    pooled.attach(second.link)
    second.link.map_channel(9, pooled, 1)
    assert pool.exchange(other, client, declare(9)) == declare(1)
    assert handler.ends == []


def test_links_and_sessions_leave_nothing_behind(pool: Pool) -> None:
    before = len(pool.pump)
    broker, keeper = pool.link(heartbeat=10)
    client, handler = pool.join(keeper, heartbeat=10)
    assert len(pool.pump) == before + 2
    handler.relay.finish()
    keeper.link.finish()
    assert (len(pool.pump), pool.pump.deadlines) == (before, 0)
    assert keeper.link.mapped_to(7) is None
    client.send(publish())
    broker.send(deliver(7))
    pool.steps()
    assert (received(client), received(broker)) == (b"", b"")
    handler.relay.send(Side.UPSTREAM, declare(1))
    keeper.link.send(declare(1))
