"""Turns: whose messages cost upcalls takes no more time at once than others can wait for.

Each upcall moves the clock of these tests on; nothing is measured.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
from collections.abc import Iterator

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amqpgate.datapath import scanner
from amqpgate.datapath.budgets import CHUNK, LAST_READS, ROUND, TURN
from amqpgate.datapath.build import make_relay
from amqpgate.datapath.content_tests import ContentTests, HeaderPeek, RuleGroup, TextForm, TextTest
from amqpgate.datapath.engine import End, HandedOverSocket
from amqpgate.datapath.header_rules import PATIENCE
from amqpgate.datapath.scanner import flow_key
from amqpgate.datapath.tables import CAPTURED_MESSAGES, ScanResult, Side
from amqpgate.protocol.frames import HEARTBEAT, method_frame
from amqpgate.wire.generated import v0_9_1 as amqp

from .pools import Pool, PooledWitness, declare, deliver, frames_of, make_pool, publish
from .rig import ENGINES, received

FRAME_MAX = 8192
#: Seconds that an upcall takes: three of them go into a turn.
COST = 0.4 * TURN
PER_TURN = 3


@attrs.define(eq=False)
class Bench(Pool):
    """With sessions of both kinds, whose upcalls take their time."""

    #: Who made an upcall, in order.
    log: list[str] = attrs.field(factory=list)

    def own(self, name: str, **hop: float) -> tuple[socket.socket, socket.socket, PooledWitness]:
        """A session with a connection of its own."""
        client, near_client = self.pair()
        broker, near_broker = self.pair()
        handler = PooledWitness()
        hops = [
            HandedOverSocket(near, FRAME_MAX, hop.get("heartbeat", 0)) for near in (near_client, near_broker)
        ]
        handler.relay = make_relay(handler, *hops, flows=None)
        handler.relay.channels.open(1)
        handler.on_upcall = self.slow(name)
        self.pump.add(handler.relay)
        return client, broker, handler

    def pooled(self, name: str, keeper, channels=None, **options):  # type: ignore[no-untyped-def]
        client, handler = self.join(keeper, channels, **options)
        handler.on_upcall = self.slow(name)
        return client, handler

    def drain(self, sock: socket.socket, most: int = 2000) -> bytes:
        """What comes until nothing has for some steps."""
        got = bytearray()
        quiet = 0
        for _ in range(most):
            self.pump.step()
            piece = received(sock)
            got += piece
            quiet = 0 if piece else quiet + 1
            if quiet == 10:
                break
        return bytes(got)

    def slow(self, name: str, cost: float = COST):  # type: ignore[no-untyped-def]
        def upcall(side: Side, result: ScanResult, frame: bytes) -> None:
            self.clock.now += cost
            self.log.append(name)

        return upcall


@pytest.fixture(params=ENGINES)
def bench(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    for pool in make_pool(request.param, monkeypatch):
        yield Bench(pool.clock, pool.pump, pool.scanner, pool.failures, pool.sockets)


def flood(count: int) -> bytes:
    """So many frames, each an upcall."""
    return b"".join(method_frame(1, amqp.QueueDeclare(queue=f"q{n}")) for n in range(count))


def test_a_neighbour_is_served_after_one_turn_of_a_flooder(bench: Bench) -> None:
    client, broker, _ = bench.own("flooder")
    other, other_broker, _ = bench.own("other")
    said = flood(1000)
    client.send(said)
    bench.pump.step()
    assert bench.log == ["flooder"] * PER_TURN
    other.send(declare(1))
    bench.pump.step()
    assert "other" in bench.log
    assert bench.log.count("flooder") <= 2 * PER_TURN
    assert received(other_broker) == declare(1)
    assert bench.drain(broker) == said
    assert bench.failures == []


def test_flooders_have_their_turns_in_order_and_a_newcomer_waits_for_one_round(bench: Bench) -> None:
    flooders = [bench.own(str(n)) for n in range(20)]
    said = flood(300)
    for client, _, _ in flooders:
        client.send(said)
    per_step = (int(ROUND / COST) + 1 + PER_TURN) * 2
    for _ in range(20):
        before = len(bench.log)
        bench.pump.step()
        assert len(bench.log) - before <= per_step
    other, other_broker, _ = bench.own("other")
    other.send(declare(1))
    before = len(bench.log)
    bench.pump.step()
    assert received(other_broker) == declare(1)
    assert bench.log.index("other") - before <= per_step
    got = [bytearray() for _ in flooders]
    while any(handler.relay.endpoints[0].rest() for _, _, handler in flooders):
        before = len(bench.log)
        bench.pump.step()
        assert len(bench.log) > before, "who has more to say is served at once"
        for into, (_, broker, _) in zip(got, flooders, strict=True):
            into += received(broker)
    for into, (_, broker, _) in zip(got, flooders, strict=True):
        assert into + bench.drain(broker) == said
    # Until the first was done, none had got further ahead of another than a newcomer waits.
    done = {str(n): 0 for n in range(20)}
    for name in bench.log:
        if name in done:
            done[name] += 1
            if max(done.values()) < 300:
                assert max(done.values()) - min(done.values()) <= 5 * PER_TURN


def test_what_costs_no_upcall_has_no_turns(bench: Bench) -> None:
    """And does not look at the clock for each message."""
    client, broker, handler = bench.own("hits")
    looks = 0
    ticked = bench.clock.__class__.__call__

    def look(clock: object) -> float:
        nonlocal looks
        looks += 1
        return ticked(clock)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench.clock.__class__, "__call__", look)
        said = publish() * 1000
        client.send(said)
        bench.pump.step()
    assert looks <= 5
    assert received(broker) == said
    assert handler.upcalls == []


def test_who_has_pending_bytes_is_not_read(bench: Bench) -> None:
    """What is kept of one is one read and a frame, however much it sends."""
    client, broker, handler = bench.own("flooder")
    said = flood(60_000)
    rest = memoryview(said)
    got = bytearray()
    most = 0
    while len(got) < len(said):
        with contextlib.suppress(BlockingIOError):
            rest = rest[client.send(rest[:65536]) :] if rest else rest
        bench.pump.step()
        most = max(most, len(handler.relay.endpoints[0].rest()))
        got += received(broker)
        bench.log.clear()
        handler.upcalls.clear()
    assert bytes(got) == said
    assert most <= CHUNK + FRAME_MAX


@pytest.mark.parametrize("by_reset", [False, True])
def test_a_client_that_goes_with_bytes_pending_is_heard_to_the_end(bench: Bench, by_reset: bool) -> None:
    client, broker, handler = bench.own("flooder")
    said = flood(500)
    if by_reset:
        # A socket that is closed with something unread.
        broker.send(HEARTBEAT + deliver(1))
        bench.steps(2)
    client.send(said)
    client.close()
    bench.pump.step()
    assert handler.ends == []
    got = bench.drain(broker)
    assert handler.ends == [(End.GONE, Side.CLIENT)]
    assert got + (handler.relay.endpoints[1].unsent()) == said


def test_a_send_that_fails_waits_for_the_last_words_turn_by_turn(bench: Bench) -> None:
    client, broker, handler = bench.own("flooder")
    other, other_broker, _ = bench.own("other")
    said = flood(300)
    client.send(said)
    bench.pump.step()
    client.close()
    # It cannot be sent any more; what the client has said comes first.
    broker.send(deliver(1))
    bench.pump.step()
    broker.send(deliver(1))
    assert handler.ends == []
    other.send(declare(1))
    bench.pump.step()
    bench.pump.step()
    assert received(other_broker) == declare(1)
    assert bench.log.count("flooder") <= PER_TURN * 5
    got = bench.drain(broker)
    assert handler.ends == [(End.GONE, Side.CLIENT)]
    assert got + handler.relay.endpoints[1].unsent() == said
    assert bench.failures == []


def test_last_words_are_bounded(bench: Bench) -> None:
    """Whoever goes is not heard for ever; nor is it forgotten how much was heard."""
    client, broker, handler = bench.own("flooder")
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    client.send(flood(3000))
    bench.pump.step()
    client.close()
    broker.send(deliver(1))
    for _ in range(4000):
        bench.pump.step()
        received(broker)
        if handler.ends:
            break
    assert handler.ends == [(End.GONE, Side.CLIENT)]
    assert LAST_READS > 1


def test_a_session_that_ends_in_its_turn_keeps_the_rest(bench: Bench) -> None:
    client, broker, handler = bench.own("flooder")
    said = flood(100)
    client.send(said)
    bench.pump.step()
    handler.relay.finish()
    bench.steps(100)
    passed = received(broker)
    assert len(bench.log) == PER_TURN
    assert passed + handler.relay.endpoints[0].rest() == said


def test_a_message_that_is_half_there_waits_for_its_end(bench: Bench) -> None:
    client, broker, _ = bench.own("flooder")
    said = flood(10) + publish(body=b"b" * 20_000)
    client.send(said[:-100])
    bench.steps(20)
    assert said.startswith(received(broker))
    client.send(said[-100:])
    bench.steps(20)
    assert received(broker) == said[len(said) - (20_000 - 2 * (FRAME_MAX - 8)) - 8 :]


def test_heartbeats_are_kept_beside_a_flood(bench: Bench) -> None:
    client, broker, handler = bench.own("flooder", heartbeat=10)
    client.send(flood(120))
    bench.log.clear()
    handler.on_upcall = bench.slow("flooder", 1.0)
    beats = 0
    for _ in range(119):
        bench.pump.step()
        beats += received(client).count(HEARTBEAT)
        broker.send(HEARTBEAT)
    assert handler.ends == [], "it was we who did not read"
    assert beats >= 15
    bench.steps(5)
    # Its silence counts from when it was read again.
    bench.clock.now += 19
    broker.send(HEARTBEAT)
    bench.steps(2)
    assert handler.ends == []
    bench.clock.now += 3
    broker.send(HEARTBEAT)
    bench.steps(2)
    assert handler.ends == [(End.SILENT, Side.CLIENT)]


def test_a_slow_reader_stops_a_sender_that_has_its_turns(bench: Bench) -> None:
    client, broker, handler = bench.own("flooder")
    said = publish(body=b"z" * 60_000) + flood(50)
    rest = memoryview(said * 60)
    got = bytearray()
    for _ in range(400):
        with contextlib.suppress(BlockingIOError):
            rest = rest[client.send(rest) :] if rest else rest
        bench.pump.step()
    assert handler.relay.endpoints[0].paused
    for _ in range(20_000):
        with contextlib.suppress(BlockingIOError):
            rest = rest[client.send(rest) :] if rest else rest
        bench.pump.step()
        got += received(broker)
        if len(got) == len(said) * 60:
            break
    assert bytes(got) == said * 60


def test_who_is_throttled_and_gone_is_read_without_harm(bench: Bench) -> None:
    """More may be kept of him than goes before a read in the scratch."""
    client, broker, handler = bench.own("flooder")
    handler.relay.up.flows = bench.scanner.FlowTable()
    flow = bench.scanner.Flow((bench.scanner.Bucket(1.0, 0.5),))
    handler.relay.up.flows.install(amqp.BasicPublish(exchange="x", routing_key="k").encode()[6:], flow)
    client.send(publish() * 2000)
    bench.steps(3)
    assert handler.relay.endpoints[0].throttled
    kept = len(handler.relay.endpoints[0].rest())
    assert kept > 10 * FRAME_MAX
    client.send(publish() * 500)
    client.close()
    bench.steps(10)
    assert handler.ends == [(End.GONE, Side.CLIENT)]
    assert bench.failures == []
    assert received(broker) == publish()


# -- links -----------------------------------------------------------------------------------


def test_a_neighbour_on_the_same_link_is_served_after_one_turn(bench: Bench) -> None:
    """Both ways, and though all of it came in one read."""
    broker, keeper = bench.link()
    client, handler = bench.pooled("flooder", keeper, {1: 7})
    other, _ = bench.pooled("other", keeper, {1: 8})
    answer = method_frame(8, amqp.QueueDeclareOk(queue="q"))
    down = b"".join(method_frame(7, amqp.QueueDeclareOk(queue=f"q{n}")) for n in range(400))
    broker.send(down + answer)
    bench.pump.step()
    assert bench.log == ["flooder"] * PER_TURN
    bench.pump.step()
    assert received(other) == method_frame(1, amqp.QueueDeclareOk(queue="q"))
    assert bench.log.count("flooder") <= 2 * PER_TURN
    got = frames_of(bench.drain(client))
    assert b"".join(got) == b"".join(method_frame(1, amqp.QueueDeclareOk(queue=f"q{n}")) for n in range(400))
    assert handler.overflows == 0
    up = flood(400)
    bench.log.clear()
    client.send(up)
    bench.pump.step()
    other.send(declare(1))
    bench.pump.step()
    assert declare(8) in frames_of(received(broker))
    assert bench.log.count("flooder") <= 2 * PER_TURN
    ups = [frame for frame in frames_of(bench.drain(broker)) if frame[2] == 7]
    assert bench.log.count("flooder") == 400
    assert len(ups) >= 400 - 2 * PER_TURN


def test_a_link_waits_for_a_session_that_is_far_behind_and_does_not_end_it(bench: Bench) -> None:
    broker, keeper = bench.link()
    client, handler = bench.pooled("flooder", keeper, {1: 7}, limit=40_000)
    said = b"".join(method_frame(7, amqp.QueueDeclareOk(queue=f"q{n}")) for n in range(20_000))
    rest = memoryview(said)
    got = bytearray()
    paused = False
    while len(got) < len(said):
        with contextlib.suppress(BlockingIOError):
            rest = rest[broker.send(rest[:65536]) :] if rest else rest
        for _ in range(20):
            bench.pump.step()
        paused = paused or keeper.link.endpoint.paused
        got += received(client)
        assert handler.overflows == 0
    assert paused
    assert not keeper.link.endpoint.paused
    expected = [method_frame(1, amqp.QueueDeclareOk(queue=f"q{n}")) for n in range(20_000)]
    assert frames_of(bytes(got)) == expected


def test_a_link_that_is_waited_for_goes_on_when_the_session_leaves(bench: Bench) -> None:
    broker, keeper = bench.link()
    client, handler = bench.pooled("flooder", keeper, {1: 7}, limit=40_000)
    _, other = bench.pooled("other", keeper, {1: 8})
    broker.send(b"".join(method_frame(7, amqp.QueueDeclareOk(queue=f"q{n}")) for n in range(2500)))
    bench.steps(3)
    paused = [keeper.link.endpoint.paused]
    handler.relay.finish()
    paused.append(keeper.link.endpoint.paused)
    assert paused == [True, False]
    broker.send(method_frame(8, amqp.QueueDeclareOk(queue="q")))
    bench.steps(10)
    assert bench.log[-1] == "other"
    assert other.ends == []
    client.close()


def test_a_link_that_goes_is_heard_to_the_end(bench: Bench) -> None:
    broker, keeper = bench.link()
    client, handler = bench.pooled("flooder", keeper, {1: 7})
    broker.send(b"".join(method_frame(7, amqp.QueueDeclareOk(queue=f"q{n}")) for n in range(200)))
    broker.close()
    bench.pump.step()
    assert keeper.ends == []
    bench.steps(200)
    assert keeper.ends == [(End.GONE, Side.UPSTREAM)]
    assert len(frames_of(received(client))) == 200
    assert handler.ends == []


def test_many_sessions_of_one_link_are_not_served_in_one_turn(bench: Bench) -> None:
    broker, keeper = bench.link()
    pooled = [bench.pooled(str(n), keeper, {1: 7 + n}) for n in range(50)]
    down = b"".join(method_frame(7 + n, amqp.QueueDeclareOk(queue="q")) for n in range(50))
    broker.send(down * 4)
    bench.pump.step()
    assert len(bench.log) <= PER_TURN
    bench.steps(200)
    for client, _ in pooled:
        assert received(client) == method_frame(1, amqp.QueueDeclareOk(queue="q")) * 4


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[bytes], list[int]]:
    """Frames, some of which are upcalls, and where they are split."""
    frames = draw(
        st.lists(
            st.one_of(
                st.integers(0, 99).map(lambda n: method_frame(1, amqp.QueueDeclare(queue=f"q{n}"))),
                st.integers(0, 20_000).map(lambda n: publish(body=b"b" * n)),
                st.just(publish(key="other")),
            ),
            min_size=1,
            max_size=40,
        )
    )
    size = len(b"".join(frames))
    cuts = sorted(draw(st.lists(st.integers(0, size), max_size=10)))
    return frames, [0, *cuts, size]


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("way", ["own", "pooled"])
@given(stream=streams(), cost=st.sampled_from([0.1, 0.4, 1.0, 5.0]), ends=st.booleans())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_order_and_content_are_kept_at_every_split(
    name: str, way: str, stream: tuple[list[bytes], list[int]], cost: float, ends: bool
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        for pool in make_pool(name, monkeypatch):
            bench = Bench(pool.clock, pool.pump, pool.scanner, pool.failures, pool.sockets)
            check(bench, way == "pooled", *stream, cost * TURN, ends)


def check(
    bench: Bench, is_pooled: bool, frames: list[bytes], cuts: list[int], cost: float, ends: bool
) -> None:
    said = b"".join(frames)
    if is_pooled:
        broker, keeper = bench.link()
        client, handler = bench.pooled("it", keeper, {1: 1})
    else:
        client, broker, handler = bench.own("it")
    handler.on_upcall = bench.slow("it", cost)
    handler.relay.up.flows = bench.scanner.FlowTable()
    got = bytearray()
    for first, last in itertools.pairwise(cuts):
        rest = memoryview(said)[first:last]
        while rest:
            with contextlib.suppress(BlockingIOError):
                rest = rest[client.send(rest) :]
            bench.pump.step()
            got += received(broker)
    if ends:
        client.close()
    got += bench.drain(broker)
    assert bytes(got) == said
    assert bench.failures == []
    assert len(handler.ends) == int(ends)


def test_rules_on_headers_take_time_as_upcalls_do(bench: Bench) -> None:
    client, broker, handler = bench.own("flooder")
    other, other_broker, _ = bench.own("other")

    def slow(_: str) -> bool:
        bench.clock.now += TURN / 100
        return True

    asked = ContentTests(denies=False, properties=((8, TextTest(TextForm.CALL, call=slow)),))
    rules = bench.scanner.HeaderRules((RuleGroup((), (asked,)),), 0, HeaderPeek(always=True))
    lane = handler.relay.up
    lane.flows = bench.scanner.FlowTable()
    said = publish(1, b"x")
    lane.flows.install(flow_key(Side.CLIENT, frames_of(said)[0]), bench.scanner.Flow(header_rules=rules))
    client.send(said * 1000)
    bench.pump.step()
    # Turns end between scans, and the second is over the first time that somebody looks.
    first = received(broker)
    assert 0 < len(first) <= 4 * PATIENCE // rules.weight * len(said)
    other.send(declare(1))
    bench.pump.step()
    assert received(other_broker) == declare(1)
    assert first + bench.drain(broker) == said * 1000
    assert bench.failures == []


def test_what_is_captured_has_turns(bench: Bench) -> None:
    """Each batch takes its time, as an upcall does."""
    client, broker, handler = bench.own("flooder")
    other, other_broker, _ = bench.own("other")
    flows = scanner.FlowTable()
    flow = scanner.Flow()
    flow.capture("it", None, 2)
    said = publish(1, b"123") * (CAPTURED_MESSAGES * 10)
    flows.install(scanner.flow_key(Side.CLIENT, said[: 8 + int.from_bytes(said[3:7], "big")]), flow)
    handler.relay.up.flows = flows

    def told() -> None:
        bench.clock.now += COST

    handler.on_captured = told
    client.setblocking(True)
    client.send(said)
    bench.pump.step()
    assert len(handler.told) == PER_TURN
    other.send(declare(1))
    bench.pump.step()
    assert received(other_broker) == declare(1)
    assert len(handler.told) <= 2 * PER_TURN
    assert bench.drain(broker) == said
    assert sum(len(bodies) for bodies, _ in handler.told) == CAPTURED_MESSAGES * 10
    assert bench.failures == []
