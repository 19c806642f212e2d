"""Both pumps on real socket pairs, with a clock of their own."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Callable, Iterator

import attrs
import pytest

from amqpgate.datapath import scanner
from amqpgate.datapath.budgets import CHUNK, CHUNK_REWRITTEN
from amqpgate.datapath.build import make_relay
from amqpgate.datapath.engine import End, HandedOverSocket
from amqpgate.datapath.tables import ScanResult, Side
from amqpgate.protocol.frames import HEARTBEAT, method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames

from .rig import ENGINES, Rig, Witness, received, set_up

HIGH, LOW = 256 * 1024, 64 * 1024
FRAME_MAX = 131072


@attrs.define(eq=False)
class Recorder(Witness):
    """A handler that passes every upcall on, and remembers."""

    on_upcall: Callable[[], None] | None = None
    #: Where it is given, what becomes the flow of whatever misses one.
    flow: scanner.Flow | None = None
    #: Where it is given, when to look at the next method again.
    later: float | None = None

    def upcall(self, side: Side, result: ScanResult, frame: memoryview) -> bool:
        self.upcalls.append((side, result, bytes(frame)))
        lane = self.relay.endpoints[side].lane
        lane.ready_at, self.later = self.later or 0.0, None
        if lane.ready_at:
            return True
        if self.on_upcall is not None:
            self.on_upcall()
        if not self.relay.active:
            return False
        if result is ScanResult.MISS and self.flow is not None:
            flows = self.relay.endpoints[side].lane.flows
            assert flows is not None
            flows.install(scanner.flow_key(side, frame), self.flow)
            return True
        if result is ScanResult.MISS:
            self.relay.channels.expect_header(side, frame[2], None)
        self.relay.send(side.other, bytes(frame))
        return False


@attrs.define(eq=False)
class Bench(Rig):
    """With sessions."""

    def session(
        self,
        *,
        heartbeat: float = 0,
        client_rest: bytes = b"",
        flows: scanner.FlowTable | None = None,
        client_frame_max: int = FRAME_MAX,
    ) -> tuple[socket.socket, socket.socket, Recorder]:
        client, near_client = self.pair()
        broker, near_broker = self.pair()
        handler = Recorder()
        handler.relay = make_relay(
            handler,
            HandedOverSocket(near_client, client_frame_max, heartbeat, client_rest),
            HandedOverSocket(near_broker, FRAME_MAX, heartbeat),
            flows=flows,
        )
        handler.relay.channels.open(1)
        self.pump.add(handler.relay)
        return client, broker, handler


@pytest.fixture(params=ENGINES)
def bench(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    yield from set_up(Bench, request.param, monkeypatch, high=HIGH, low=LOW, largest_frame=FRAME_MAX)


def message(body: bytes, key: str = "k") -> bytes:
    return content_frames(
        1, amqp.BasicPublish(exchange="x", routing_key=key), amqp.BasicProperties(), body, FRAME_MAX
    )


def test_whole_frames_pass_both_ways(bench: Bench) -> None:
    client, broker, _ = bench.session()
    up = message(b"u" * 500_000)
    down = content_frames(1, amqp.BasicDeliver(), amqp.BasicProperties(), b"d" * 300_000, FRAME_MAX)
    assert bench.exchange(client, broker, up) == up
    assert bench.exchange(broker, client, down) == down


def test_nothing_of_an_incomplete_frame_passes(bench: Bench) -> None:
    client, broker, _ = bench.session()
    data = message(b"b" * 100)
    for at in range(len(data)):
        client.send(data[at : at + 1])
        bench.pump.step()
    assert received(broker) == data
    client.send(data[:-1])
    bench.steps()
    passed = received(broker)
    assert data.startswith(passed)
    assert passed == data[: -(100 + 8)]


def test_what_came_with_the_hand_over_passes_without_new_bytes(bench: Bench) -> None:
    data = message(b"early" * 100_000)
    _client, broker, _ = bench.session(client_rest=data)
    got = b""
    for _ in range(50):
        bench.pump.step()
        got += received(broker)
    assert got == data


def test_an_upcall_at_every_frame_boundary_loses_no_byte(bench: Bench) -> None:
    client, broker, handler = bench.session(flows=bench.scanner.FlowTable())
    declare = method_frame(1, amqp.QueueDeclare(queue="q"))
    data = b"".join(message(b"x" * n, key=str(n)) + declare for n in range(0, 400, 7))
    assert bench.exchange(client, broker, data) == data
    kinds = [result for _, result, _ in handler.upcalls]
    assert kinds == [ScanResult.MISS, ScanResult.METHOD] * len(range(0, 400, 7))


def test_a_receiver_that_does_not_read_stops_only_its_sender(bench: Bench) -> None:
    client, broker, handler = bench.session()
    other_client, other_broker, _ = bench.session()
    data = message(b"z" * 8_000_000)
    rest = memoryview(data)
    for _ in range(200):
        with contextlib.suppress(BlockingIOError):
            rest = rest[client.send(rest) :]
        bench.pump.step()
    assert rest, "the sender was stopped"
    waiting = handler.relay.endpoints[Side.UPSTREAM].waiting
    assert HIGH < waiting <= HIGH + CHUNK + FRAME_MAX
    small = message(b"other")
    assert bench.exchange(other_client, other_broker, small) == small
    down = content_frames(1, amqp.BasicDeliver(), amqp.BasicProperties(), b"down", FRAME_MAX)
    assert bench.exchange(broker, client, down) == down, "the other direction goes on"
    got = bytearray()
    while len(got) < len(data):
        got += received(broker)
        if rest:
            with contextlib.suppress(BlockingIOError):
                rest = rest[client.send(rest) :]
        bench.pump.step()
    assert bytes(got) == data


def test_a_side_that_goes_ends_its_session_and_no_other(bench: Bench) -> None:
    client, broker, handler = bench.session()
    other_client, other_broker, other = bench.session()
    data = message(b"last words")
    client.send(data)
    client.close()
    bench.steps()
    assert handler.ends == [(End.GONE, Side.CLIENT)]
    assert received(broker) == data
    assert bench.exchange(other_client, other_broker, data) == data
    other_broker.close()
    bench.steps()
    assert other.ends == [(End.GONE, Side.UPSTREAM)]


@pytest.mark.parametrize("by_upcall", [False, True])
def test_the_last_words_of_a_side_that_takes_no_more_still_pass(bench: Bench, by_upcall: bool) -> None:
    client, broker, handler = bench.session()
    close = method_frame(0, amqp.ConnectionClose(320, "shutdown"))
    # The client's bytes are dealt with first, and find nobody.
    client.send(method_frame(1, amqp.QueueDeclare()) if by_upcall else message(b"into the void"))
    broker.send(close)
    broker.close()
    bench.steps()
    assert received(client) == close
    assert handler.ends == [(End.GONE, Side.UPSTREAM)]


def test_an_exception_in_an_upcall_ends_that_session_and_no_other(bench: Bench) -> None:
    client, _broker, handler = bench.session()
    other_client, other_broker, _ = bench.session()

    def fail() -> None:
        raise ZeroDivisionError

    handler.on_upcall = fail
    client.send(method_frame(1, amqp.QueueDeclare()))
    bench.steps()
    assert handler.ends == [(End.FAILED, Side.CLIENT)]
    assert [type(error) for error in bench.failures] == [ZeroDivisionError]
    data = message(b"fine")
    assert bench.exchange(other_client, other_broker, data) == data


def test_a_violation_passes_nothing_after_it(bench: Bench) -> None:
    client, broker, handler = bench.session()
    handler.on_upcall = handler_finish(handler)
    good = message(b"good")
    client.send(good + b"\x01\x00\x01\x7f\xff\xff\xff" + good)
    bench.steps()
    assert received(broker) == good
    assert handler.ends == [(End.FINISHED, None)]


def handler_finish(handler: Recorder) -> Callable[[], None]:
    return lambda: handler.relay.finish()


def test_heartbeats_are_sent_to_both_while_nothing_else_is(bench: Bench) -> None:
    client, broker, handler = bench.session(heartbeat=10)
    bench.clock.now += 4.9
    bench.steps()
    assert received(client) == received(broker) == b""
    bench.clock.now += 0.2
    bench.steps()
    assert received(client) == received(broker) == HEARTBEAT
    client.send(message(b"busy"))
    bench.clock.now += 3
    bench.steps()
    received(broker)
    bench.clock.now += 2.1
    bench.steps()
    assert received(client) == HEARTBEAT
    assert received(broker) == b"", "the message two seconds ago was sign of life enough"
    assert handler.ends == []


def test_two_silent_intervals_end_the_session(bench: Bench) -> None:
    client, _broker, handler = bench.session(heartbeat=10)
    for _ in range(3):
        bench.clock.now += 5
        client.send(HEARTBEAT)
        bench.steps(3)
    assert handler.ends == []
    bench.clock.now += 5.1
    bench.steps(3)
    assert handler.ends == [(End.SILENT, Side.UPSTREAM)]


def test_a_session_that_is_over_gets_no_heartbeat(bench: Bench) -> None:
    client, _broker, handler = bench.session(heartbeat=10)
    handler.relay.finish()
    bench.clock.now += 30
    bench.steps()
    assert received(client) == b""
    assert handler.ends == [(End.FINISHED, None)]


def test_a_throttled_sender_waits_while_the_other_direction_and_heartbeats_go_on(bench: Bench) -> None:
    flows = bench.scanner.FlowTable()
    data = message(b"limited")
    flow = bench.scanner.Flow((bench.scanner.Bucket(10.0, 3.0),))
    flows.install(amqp.BasicPublish(exchange="x", routing_key="k").encode()[6:], flow)
    client, broker, handler = bench.session(heartbeat=10, flows=flows)
    client.send(data * 8 + method_frame(1, amqp.QueueDeclare()))
    bench.steps()
    assert received(broker) == data * 3
    down = content_frames(1, amqp.BasicDeliver(), amqp.BasicProperties(), b"down", FRAME_MAX)
    assert bench.exchange(broker, client, down) == down
    bench.clock.now += 0.25
    bench.steps()
    assert received(broker) == data * 3, "two and a half tokens, and the last may go below zero"
    client.send(data)
    bench.clock.now += 5.1
    bench.steps()
    assert received(broker) == data * 2 + method_frame(1, amqp.QueueDeclare()) + data
    assert handler.ends == []
    assert bench.pump.counters.throttled == 2


def test_a_miss_whose_flow_was_installed_is_looked_at_again(bench: Bench) -> None:
    """Its buckets hold for the message that brought it about, too."""
    client, broker, handler = bench.session(flows=bench.scanner.FlowTable())
    handler.flow = bench.scanner.Flow((bench.scanner.Bucket(1.0, 1.5),))
    messages = [
        content_frames(
            1, amqp.BasicPublish(routing_key=f"k{n}"), amqp.BasicProperties(), b"%d" % n, FRAME_MAX
        )
        for n in range(4)
    ]
    assert bench.exchange(client, broker, b"".join(messages)) == messages[0] + messages[1]
    assert [result for _, result, _ in handler.upcalls] == [ScanResult.MISS] * 3
    assert (handler.flow.messages, bench.pump.counters.throttled) == (2, 1)
    bench.clock.now += 1.6
    bench.steps()
    assert received(broker) == messages[2] + messages[3]


def test_what_the_handler_wants_to_see_later_waits_and_all_behind_it(bench: Bench) -> None:
    client, broker, handler = bench.session()
    handler.later = bench.clock.now + 2
    data = message(b"before") + method_frame(1, amqp.QueueDeclare()) + message(b"behind")
    assert bench.exchange(client, broker, data) == message(b"before")
    bench.clock.now += 1.9
    bench.steps()
    assert received(broker) == b""
    bench.clock.now += 0.2
    bench.steps()
    assert received(broker) == data[len(message(b"before")) :]
    assert [result for _, result, _ in handler.upcalls] == [ScanResult.METHOD] * 2
    assert bench.pump.counters.throttled == 1


def test_a_throttled_sender_that_is_to_be_retried_is(bench: Bench) -> None:
    client, broker, handler = bench.session(flows=bench.scanner.FlowTable())
    handler.flow = bench.scanner.Flow((bench.scanner.Bucket(1.0, 0.5),))
    assert bench.exchange(client, broker, message(b"x") * 2) == message(b"x")
    bench.pump.retry(handler.relay)
    bench.clock.now += 0.01
    bench.steps()
    assert received(broker) == b"", "the bucket is still empty"
    handler.relay.up.flows = None
    bench.pump.retry(handler.relay)
    bench.clock.now += 0.01
    bench.steps()
    assert received(broker) == message(b"x")


def test_a_session_that_is_over_is_not_retried(bench: Bench) -> None:
    client, broker, handler = bench.session(flows=bench.scanner.FlowTable())
    handler.flow = bench.scanner.Flow((bench.scanner.Bucket(1.0, 0.5),))
    assert bench.exchange(client, broker, message(b"x") * 2) == message(b"x")
    handler.relay.finish()
    handler.relay.up.flows = None
    bench.pump.retry(handler.relay)
    assert bench.pump.deadlines == 0
    bench.clock.now += 60
    bench.steps()
    assert received(broker) == b""
    assert handler.relay.endpoints[Side.CLIENT].rest() == message(b"x")


@pytest.mark.parametrize("is_throttled", [False, True])
def test_a_client_that_is_halted_is_read_no_more(bench: Bench, is_throttled: bool) -> None:
    """The broker's answers still pass, heartbeats are sent, and silence is not held against the client."""
    flows = bench.scanner.FlowTable() if is_throttled else None
    client, broker, handler = bench.session(heartbeat=10, flows=flows)
    handler.flow = bench.scanner.Flow((bench.scanner.Bucket(1.0, 0.5),))
    said = message(b"x") * (2 if is_throttled else 1)
    assert bench.exchange(client, broker, said) == message(b"x")
    bench.pump.halt(handler.relay)
    client.send(message(b"y"))
    for _ in range(8):
        bench.clock.now += 5.1
        broker.send(HEARTBEAT)
        bench.pump.retry(handler.relay)
        bench.steps()
    assert received(broker).replace(HEARTBEAT, b"") == b""
    ack = method_frame(1, amqp.BasicAck(1))
    assert bench.exchange(broker, client, ack).replace(HEARTBEAT, b"") == ack
    assert handler.ends == []
    handler.relay.finish()
    bench.pump.halt(handler.relay)
    assert handler.ends == [(End.FINISHED, None)]


def test_a_client_that_is_halted_may_go(bench: Bench) -> None:
    client, _broker, handler = bench.session()
    bench.pump.halt(handler.relay)
    client.close()
    bench.steps()
    handler.relay.finish()
    assert len(handler.ends) == 1


def test_run_goes_on_until_it_is_interrupted(bench: Bench) -> None:
    client, broker, handler = bench.session()
    done = []

    def interrupt() -> None:
        done.append(1)
        bench.pump.interrupt()

    handler.on_upcall = interrupt
    client.send(message(b"one") + method_frame(1, amqp.QueueDeclare()))
    bench.pump.run()
    assert done == [1]
    assert received(broker) == message(b"one") + method_frame(1, amqp.QueueDeclare())
    bench.pump.interrupt()
    bench.pump.run()


def test_the_descriptor_is_readable_when_a_deadline_has_passed(bench: Bench) -> None:
    """With the clock of the machine: whoever waits on the pump needs no clock of his own."""
    pump = type(bench.pump)(high=HIGH, low=LOW, largest_frame=4096, on_failure=bench.failures.append)
    try:
        bench.pump, old = pump, bench.pump
        client, _broker, _handler = bench.session(heartbeat=1)
        assert select.select([pump.fileno()], [], [], 5)[0], "the timer went off"
        pump.step()
        assert received(client) == HEARTBEAT
        pump.interrupt()
        assert select.select([pump.fileno()], [], [], 5)[0]
        pump.step()
        pump.step(5)
        # A step that waits ends at the deadline, too; on a busy machine the one before may have met it.
        assert received(client) in (HEARTBEAT, HEARTBEAT * 2)
    finally:
        pump.close()
        bench.pump = old


def test_it_tells_how_late_it_is(bench: Bench) -> None:
    told: list[float] = []
    bench.pump.watch(0.25, told.append)
    bench.pump.step()
    bench.clock.now += 0.24
    bench.pump.step()
    assert told == []
    bench.clock.now += 0.76
    bench.pump.step()
    assert told == pytest.approx([0.75])
    bench.clock.now += 0.24
    bench.pump.step()
    assert len(told) == 1, "the next look is one interval after this one"
    bench.clock.now += 0.01
    bench.pump.step()
    assert told == pytest.approx([0.75, 0], abs=1e-6)


def test_it_wakes_up_for_that(bench: Bench) -> None:
    pump = type(bench.pump)(high=HIGH, low=LOW, largest_frame=4096, on_failure=bench.failures.append)
    told: list[float] = []
    try:
        pump.watch(0.01, told.append)
        while len(told) < 3:
            assert select.select([pump.fileno()], [], [], 5)[0]
            pump.step()
    finally:
        pump.close()


def test_a_client_may_publish_while_it_does_not_read(bench: Bench) -> None:
    client, broker, handler = bench.session()
    down = content_frames(1, amqp.BasicDeliver(), amqp.BasicProperties(), b"d" * 4_000_000, FRAME_MAX)
    rest = memoryview(down)
    for _ in range(100):
        with contextlib.suppress(BlockingIOError):
            rest = rest[broker.send(rest) :]
        bench.pump.step()
    assert handler.relay.endpoints[Side.UPSTREAM].paused
    assert not handler.relay.endpoints[Side.CLIENT].paused
    client.send(message(b"still"))
    bench.steps()
    assert received(broker) == message(b"still")


def test_frames_are_cut_for_a_hop_that_takes_less(bench: Bench) -> None:
    client, broker, _ = bench.session(client_frame_max=4096)
    big = content_frames(1, amqp.BasicDeliver(), amqp.BasicProperties(), b"d" * 50_000, FRAME_MAX)
    assert bench.exchange(broker, client, big) == content_frames(
        1, amqp.BasicDeliver(), amqp.BasicProperties(), b"d" * 50_000, 4096
    )


@pytest.mark.parametrize("leaving", [Side.CLIENT, Side.UPSTREAM])
def test_last_words_are_heard_although_a_send_fails_before(bench: Bench, leaving: Side) -> None:
    client, broker, handler = bench.session()
    goes, stays = (client, broker) if leaving is Side.CLIENT else (broker, client)
    # The other side's message is seen first, and cannot be sent any more.
    words = message(b"m" * 5000)
    reason = method_frame(0, amqp.ConnectionClose(reply_code=320, reply_text="because"))
    stays.send(HEARTBEAT + (words if leaving is Side.UPSTREAM else method_frame(1, amqp.BasicAck(1))))
    goes.send(reason)
    goes.close()
    bench.steps()
    assert received(stays) == reason
    assert handler.ends == [(End.GONE, leaving)]
    assert bench.failures == []


def test_an_upcall_that_fails_at_last_words_ends_that_session_and_no_other(bench: Bench) -> None:
    client, broker, handler = bench.session()
    other_client, other_broker, _ = bench.session()

    def fail() -> None:
        raise RuntimeError("on purpose")

    handler.on_upcall = fail
    client.send(message(b"m"))
    broker.send(method_frame(0, amqp.ConnectionClose()))
    broker.close()
    bench.steps()
    assert handler.ends == [(End.GONE, Side.UPSTREAM)]
    assert [str(error) for error in bench.failures] == ["on purpose"]
    assert bench.exchange(other_client, other_broker, message(b"n")) == message(b"n")


def capturing(bench: Bench) -> tuple[socket.socket, socket.socket, Recorder]:
    """A session whose publishes to ``k`` are captured, two bytes of each."""
    flows = scanner.FlowTable()
    client, broker, handler = bench.session(flows=flows)
    flow = scanner.Flow()
    flow.capture("it", None, 2)
    method = method_frame(1, amqp.BasicPublish(exchange="x", routing_key="k"))
    flows.install(scanner.flow_key(Side.CLIENT, method), flow)
    return client, broker, handler


def test_what_is_captured_is_told_at_once_and_before_the_next_upcall(bench: Bench) -> None:
    client, broker, handler = capturing(bench)
    declare = method_frame(1, amqp.QueueDeclare(queue="q"))
    data = message(b"123") + message(b"") + declare + message(b"45")
    assert bench.exchange(client, broker, data) == data
    assert [result for _, result, _ in handler.upcalls] == [ScanResult.METHOD]
    assert handler.told == [([b"12", b""], 0), ([b"45"], 1)]


def test_what_is_captured_has_been_sent(bench: Bench) -> None:
    client, broker, handler = capturing(bench)
    seen: list[bytes] = []
    handler.on_captured = lambda: seen.append(received(broker))
    client.send(message(b"123"))
    bench.steps()
    assert seen == [message(b"123")]


def test_what_was_captured_is_told_though_the_broker_is_gone(bench: Bench) -> None:
    client, broker, handler = capturing(bench)
    client.send(message(b"123"))
    broker.close()
    bench.steps()
    assert handler.told in ([], [([b"12"], 0)])
    assert handler.ends == [(End.GONE, Side.UPSTREAM)]
    # Nothing is left for another session.
    client, broker, other = capturing(bench)
    client.send(message(b"67"))
    bench.steps()
    assert other.told == [([b"67"], 0)]


def test_whoever_fails_with_what_is_captured_ends_its_session_alone(bench: Bench) -> None:
    client, _broker, handler = capturing(bench)
    another, its_broker, _ = capturing(bench)

    def fail() -> None:
        raise ZeroDivisionError

    handler.on_captured = fail
    client.send(message(b"123"))
    bench.steps()
    assert handler.ends == [(End.FAILED, Side.CLIENT)]
    assert [type(failure) for failure in bench.failures] == [ZeroDivisionError]
    assert bench.exchange(another, its_broker, message(b"1")) == message(b"1")


@pytest.mark.parametrize("rewrites", [False, True])
def test_less_is_read_at_once_of_what_is_rewritten(bench: Bench, rewrites: bool) -> None:
    client, _, handler = bench.session(flows=bench.scanner.FlowTable())
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * CHUNK)
    handler.flow = flow = bench.scanner.Flow()
    flow.meter = bench.scanner.Meter("passed", [])
    if rewrites:
        other = amqp.BasicPublish(exchange="x", routing_key="other").encode()
        flow.rewrite_by(bench.scanner.Rewrite(other, (None,) * 14, 0, b""))
    client.send(message(b""))
    bench.steps()
    assert flow.meter.read()[0] == 1
    one = message(b"x" * 10_000)
    assert client.send(one * (CHUNK // len(one))) > CHUNK - 2 * len(one), "the kernel takes it at once"
    bench.pump.step()
    read = flow.meter.read()[0] * len(one)
    most = CHUNK_REWRITTEN if rewrites else CHUNK
    assert most - 2 * len(one) < read <= most
