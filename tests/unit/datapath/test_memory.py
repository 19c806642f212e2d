"""Memory that runs out costs the session that asks for it; at worst those of one link, and never the pump.

Each scene is played again and again; each time another allocation fails, until none is left that could.
"""

from __future__ import annotations

import contextlib
import gc
import socket
import warnings
from collections.abc import Callable, Iterator
from unittest.mock import Mock

import pytest

from amqpgate.datapath.build import make_relay
from amqpgate.datapath.engine import End, HandedOverSocket
from amqpgate.datapath.tables import ScanResult, Side
from amqpgate.protocol.frames import HEARTBEAT

from .pools import FRAME_MAX, LinkKeeper, Pool, PooledWitness, declare, deliver, frames_of, make_pool, publish
from .rig import ENGINES, received

_testcapi = pytest.importorskip(
    "_testcapi", reason="this Python comes without _testcapi, which fails allocations"
)

# Python itself complains where it lacks the memory for a view of a buffer: nobody's error.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

#: More than any scene asks for.
MOST = 3000
#: So many plays in which no failure was seen are the end: what is not the pump's asks for memory, too.
QUIET = 30


Play = Callable[[Callable[[Pool, int], bool]], None]


@pytest.fixture(scope="module", autouse=True)
def _sweep() -> Iterator[None]:
    """Sockets that were left, for there was no memory to begin what owns them, are found in no other test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def each_failure(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[Pool, int], None]], None]:
    def play(scene: Callable[[Pool, int], bool]) -> None:
        """``scene`` of a pool, and of the number of the allocation that fails in it, until no more fails: it
        says whether a session ended."""
        failed = quiet = 0
        for number in range(MOST):
            for pool in _pools(engine, monkeypatch):
                was_felt = scene(pool, number) or bool(pool.failures)
                failed += was_felt
                quiet = 0 if was_felt else quiet + 1
            if quiet == QUIET:
                assert failed, "the scene is none"
                return
        raise AssertionError("the scene has no end")

    return play


def _pools(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    made = make_pool(name, monkeypatch)
    try:
        yield next(made)
    finally:
        next(made, None)


@contextlib.contextmanager
def without_memory(number: int) -> Iterator[None]:
    """The allocation with that number, counted from here, fails."""
    _testcapi.set_nomemory(number, number + 1)
    try:
        yield
    finally:
        _testcapi.remove_mem_hooks()


def say(sock: socket.socket, data: bytes) -> None:
    assert sock.send(data) == len(data)


def own_session(pool: Pool) -> tuple[socket.socket, socket.socket, PooledWitness]:
    """With a connection to the broker that nobody shares."""
    client, near = pool.pair()
    broker, far = pool.pair()
    handler = PooledWitness()
    handler.relay = make_relay(
        handler,
        HandedOverSocket(near, FRAME_MAX, 0, b""),
        HandedOverSocket(far, FRAME_MAX, 0, b""),
        flows=None,
    )
    handler.relay.channels.open(1)
    pool.pump.add(handler.relay)
    return client, broker, handler


def all_of(pool: Pool, sock: socket.socket) -> bytes:
    """What comes while somebody reads."""
    got = received(sock)
    for _ in range(40):
        pool.pump.step()
        got += received(sock)
    return got


def ends(handler: PooledWitness | LinkKeeper) -> list[End]:
    return [end for end, _ in handler.ends]


def assert_link_goes_on(engine: str, pool: Pool, broker: socket.socket, keeper: LinkKeeper) -> None:
    """It is at the end of a frame. The plain pump may lose a link; the compiled one does not."""
    if engine == "plain" and keeper.ends:
        return
    assert keeper.ends == []
    other, neighbour = pool.join(keeper, {1: 8})
    pool.exchange(other, broker, publish(1, b"u" * 3000))
    assert pool.exchange(other, broker, publish(1, b"u" * 3000)) == publish(8, b"u" * 3000)
    assert pool.exchange(broker, other, deliver(8, b"d" * 3000)) == deliver(1, b"d" * 3000)
    assert neighbour.ends == []


def test_an_own_connection(each_failure: Play) -> None:
    def scene(pool: Pool, number: int) -> bool:
        client, broker, handler = own_session(pool)
        up = publish(1, b"a" * 100) + declare(1) + publish(1, b"b" * 30_000)
        down = deliver(1, b"c" * 30_000) + declare(1)
        say(client, up[:5000])
        say(broker, down[:5000])
        pool.steps(2)
        say(client, up[5000:])
        say(broker, down[5000:])
        with without_memory(number):
            pool.pump.step()
        pool.steps()
        got_up, got_down = received(broker), received(client)
        if ends(handler):
            assert ends(handler) in ([End.FAILED], [End.GONE])
            assert up.startswith(got_up)
            assert down.startswith(got_down)
            # Who failed is told so behind what it got: that is at the end of a frame.
            if ends(handler) == [End.FAILED]:
                frames_of(got_up)
                frames_of(got_down)
        else:
            assert (got_up, got_down) == (up, down)
        return bool(handler.ends)

    each_failure(scene)


def test_who_cannot_be_taken_in_is_not_there(each_failure: Play) -> None:
    """Its sockets are closed by whoever wanted that, and their numbers are others' soon."""

    def scene(pool: Pool, number: int) -> bool:
        (_, near), (_, far) = pool.pair(), pool.pair()
        handler = PooledWitness()
        hops = [HandedOverSocket(sock, FRAME_MAX, 10, b"") for sock in (near, far)]
        handler.relay = make_relay(handler, *hops, flows=None)
        before = pool.pump.counters.relays, len(pool.pump), pool.pump.deadlines
        try:
            with without_memory(number):
                pool.pump.add(handler.relay)
            return False
        except MemoryError:
            pass
        assert not handler.relay.active
        assert (pool.pump.counters.relays, len(pool.pump), pool.pump.deadlines) == before
        for endpoint in handler.relay.endpoints:
            endpoint.sock.close()
        client, broker, other = own_session(pool)
        say(client, publish(1, b"x"))
        assert all_of(pool, broker) == publish(1, b"x")
        assert (other.ends, handler.ends) == ([], [])
        return True

    each_failure(scene)


def test_slow_readers(each_failure: Play) -> None:
    """The kernel takes the beginning of a frame, and there is no memory for the rest."""

    def scene(pool: Pool, number: int) -> bool:
        client, broker, handler = own_session(pool)
        handler.relay.endpoints[1].sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        up = publish(1, b"b" * 60_000)
        say(client, up)
        with without_memory(number):
            pool.pump.step()
        got = all_of(pool, broker)
        if ends(handler):
            assert ends(handler) in ([End.FAILED], [End.GONE])
            assert up.startswith(got)
        else:
            assert got == up
        return bool(handler.ends)

    each_failure(scene)


def test_a_session_that_publishes_to_a_link(engine: str, each_failure: Play) -> None:
    def scene(pool: Pool, number: int) -> bool:
        broker, keeper = pool.link()
        client, handler = pool.join(keeper, {1: 7, 2: 9})
        up = publish(1, b"a" * 100) + publish(2, b"b" * 20_000) + declare(1) + publish(1, b"c" * 40_000)
        told = publish(7, b"a" * 100) + publish(9, b"b" * 20_000) + declare(7) + publish(7, b"c" * 40_000)
        say(client, up[:15_000])
        pool.steps(2)
        say(client, up[15_000:-5000])
        with without_memory(number):
            pool.pump.step()
        pool.steps(2)
        with contextlib.suppress(BrokenPipeError):
            client.send(up[-5000:])
        pool.steps()
        got = received(broker)
        assert told.startswith(got)
        frames_of(got)
        if not keeper.ends:
            assert ends(handler) in ([], [End.FAILED])
            assert handler.ends or got == told
        assert_link_goes_on(engine, pool, broker, keeper)
        return bool(handler.ends or keeper.ends)

    each_failure(scene)


def test_a_link_that_takes_no_more(engine: str, each_failure: Play) -> None:
    """What the kernel does not take of several pieces of a message must wait, all of it or nothing."""

    def scene(pool: Pool, number: int) -> bool:
        broker, keeper = pool.link()
        keeper.link.endpoint.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        client, handler = pool.join(keeper)
        frames = frames_of(publish(1, b"a" * 30_000))
        told = publish(7, b"a" * 30_000)
        # Heartbeats are dropped: the message passes in pieces.
        say(client, HEARTBEAT.join(frames))
        with without_memory(number):
            pool.pump.step()
        got = all_of(pool, broker)
        if not keeper.ends:
            assert got == told or (handler.ends and not got)
        assert_link_goes_on(engine, pool, broker, keeper)
        return bool(handler.ends or keeper.ends)

    each_failure(scene)


def test_a_link_that_delivers(engine: str, each_failure: Play) -> None:
    def scene(pool: Pool, number: int) -> bool:
        broker, keeper = pool.link()
        client, handler = pool.join(keeper)
        other, neighbour = pool.join(keeper, {1: 5})
        for mapping in (handler, neighbour):
            mapping.relay.endpoints[0].sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        down = deliver(7, b"a" * 9000) + deliver(5, b"b" * 9000) + deliver(7, b"c" * 9000)
        mine = deliver(1, b"a" * 9000) + deliver(1, b"c" * 9000)
        yours = deliver(1, b"b" * 9000) + deliver(1, b"d")
        say(broker, down[:-500])
        with without_memory(number):
            pool.pump.step()
        if not keeper.ends:
            say(broker, down[-500:] + deliver(5, b"d"))
        got_mine = got_yours = b""
        for _ in range(40):
            pool.pump.step()
            got_mine += received(client)
            got_yours += received(other)
        for handler_, got, whole in ((handler, got_mine, mine), (neighbour, got_yours, yours)):
            assert whole.startswith(got)
            if not keeper.ends:
                assert ends(handler_) in ([], [End.FAILED], [End.GONE])
                assert handler_.ends or got == whole
        if not keeper.ends:
            # One allocation failed, and one session at most ended.
            assert not (handler.ends and neighbour.ends)
        assert_link_goes_on(engine, pool, broker, keeper)
        return bool(handler.ends or keeper.ends)

    each_failure(scene)


def test_who_is_throttled(engine: str, each_failure: Play) -> None:
    def scene(pool: Pool, number: int) -> bool:
        broker, keeper = pool.link()
        client, handler = pool.join(keeper)
        client_lane = handler.relay.endpoints[0].lane
        waited: list[bool] = []

        def wait_once(side: Side, result: ScanResult, frame: bytes) -> bool | None:
            if waited:
                return None
            waited.append(True)
            client_lane.ready_at = pool.clock.now + 1
            return True

        handler.on_upcall = wait_once
        say(client, declare(1) + publish(1, b"x"))
        with without_memory(number):
            pool.pump.step()
        pool.clock.now += 2
        with without_memory(number):
            pool.pump.step()
        for _ in range(3):
            pool.clock.now += 2
            pool.steps(3)
        got = received(broker)
        assert ends(handler) in ([], [End.FAILED])
        assert handler.ends or keeper.ends or got == declare(7) + publish(7, b"x")
        assert_link_goes_on(engine, pool, broker, keeper)
        return bool(handler.ends or keeper.ends)

    each_failure(scene)


def test_who_hears_of_an_end_hears_of_it_again(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for pool in _pools(engine, monkeypatch):
        _, keeper = pool.link()
        client, handler = pool.join(keeper)
        handler.on_end = Mock(side_effect=[MemoryError, MemoryError, None])
        client.close()
        pool.steps()
        assert handler.ends == [(End.GONE, Side.CLIENT)] * 3
        assert len(pool.failures) == 2
        assert keeper.ends == []


def test_a_defect_at_an_end_is_nobody_elses(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for pool in _pools(engine, monkeypatch):
        broker, keeper = pool.link()
        client, handler = pool.join(keeper)

        def hear() -> None:
            raise ZeroDivisionError

        handler.on_end = hear
        client.close()
        pool.steps()
        assert handler.ends == [(End.GONE, Side.CLIENT)]
        assert [type(error) for error in pool.failures] == [ZeroDivisionError]
        assert_link_goes_on(engine, pool, broker, keeper)
