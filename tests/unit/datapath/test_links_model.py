"""Many clients on few links, at random, against a model; both pumps.

Each gets what is its own, whole and in order, and no octet more.
"""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterator

import attrs
import pytest

from amqpgate.datapath.engine import HandedOverSocket
from amqpgate.datapath.tables import ScanResult, Side
from amqpgate.protocol.frames import HEARTBEAT
from amqpgate.wire.generated import v0_9_1 as amqp

from .pools import LinkKeeper, Pool, PooledWitness, declare, deliver, frames_of, make_pool, publish
from .rig import ENGINES


@pytest.fixture(params=ENGINES)
def pool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    yield from make_pool(request.param, monkeypatch)


@attrs.define(eq=False)
class Far:
    """The far end of a socket: what is still to be sent there, and what came."""

    sock: socket.socket
    rest: bytearray = attrs.field(factory=bytearray)
    got: bytearray = attrs.field(factory=bytearray)

    def move(self, rng: random.Random, *, reads: bool = True) -> None:
        if self.rest:
            with contextlib.suppress(BlockingIOError):
                sent = self.sock.send(self.rest[: rng.choice([1, 3, 20, 500, 5000, 100_000])])
                del self.rest[:sent]
        if reads:
            with contextlib.suppress(BlockingIOError):
                self.got += self.sock.recv(rng.choice([10, 3000, 300_000]))


@attrs.define(eq=False)
class Member:
    """One client, and what the model knows of it."""

    far: Far
    handler: PooledWitness
    line: int
    #: Its channels, and the link's.
    channels: dict[int, int]
    #: By channel of the link, frames that its broker must get; and by its own channels, what it must.
    up: dict[int, list[bytes]]
    down: dict[int, list[bytes]]
    is_vanishing: bool = False


def random_body(rng: random.Random) -> bytes:
    return rng.randbytes(rng.choice([0, 1, 10, 100, 100, 3000, 9000, 40_000]))


def shuffled(rng: random.Random, queues: list[list[bytes]]) -> list[bytes]:
    """One order of frames in which each queue keeps its own."""
    order = []
    queues = [list(queue) for queue in queues if queue]
    while queues:
        queue = rng.choice(queues)
        for _ in range(rng.choice([1, 1, 3, 10])):
            if queue:
                order.append(queue.pop(0))
        queues = [queue for queue in queues if queue]
    return order


def by_channel(data: bytes) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for frame in frames_of(data):
        found.setdefault(int.from_bytes(frame[1:3], "big"), []).append(frame)
    return found


def assert_whole(data: bytes) -> None:
    """No frame of another method, header or end in mid-message, on any channel of a link."""
    due: dict[int, int] = {}
    for frame in frames_of(data):
        number, kind = int.from_bytes(frame[1:3], "big"), frame[0]
        if kind == 1:
            assert due.get(number, 0) == 0
            due[number] = -1 if frame[7:11] == amqp.BasicPublish.INDEX.to_bytes(4, "big") else 0
        elif kind == 2:
            assert due[number] == -1
            due[number] = int.from_bytes(frame[11:19], "big")
        else:
            assert due[number] >= len(frame) - 8 > 0
            due[number] -= len(frame) - 8
    assert not any(due.values())


def join(pool: Pool, rng: random.Random, line: int, keeper: LinkKeeper, numbers: Iterator[int]) -> Member:
    channels = {number: next(numbers) for number in range(1, rng.choice([2, 3, 5]))}
    with_flows = rng.random() < 0.3
    sock, handler = pool.join(
        keeper,
        channels,
        flows=pool.scanner.FlowTable() if with_flows else None,
        whole=rng.choice([50_000, 100_000]),
        limit=1 << 40,
        frame_max=rng.choice([4096, 8192]),
    )
    flow = pool.scanner.Flow(sample_every=rng.choice([0, 3]))

    def admit(side: Side, result: ScanResult, frame: bytes) -> bool | None:
        lane = handler.relay.up
        if result is ScanResult.MISS and rng.random() < 0.5:
            lane.flows.install(frame[13:-1], flow)  # type: ignore[union-attr]
            return True
        if result is ScanResult.METHOD and rng.random() < 0.3:
            handler.relay.endpoints[side].lane.ready_at = pool.clock.now + 0.05
            return True
        if result is ScanResult.LARGE:
            # So much lies in each other here that it is too much at times.
            handler.pooled.whole *= 2
            return True
        if result in (ScanResult.SHOWN, ScanResult.APART):
            handler.relay.channels.expect_header(side, int.from_bytes(frame[1:3], "big"), flow)
        return None

    handler.on_upcall = admit
    up: dict[int, list[bytes]] = {}
    down: dict[int, list[bytes]] = {}
    sends: list[list[bytes]] = []
    for number, to in channels.items():
        mine = []
        up[to], down[number] = [], []
        for _ in range(rng.randint(0, 12)):
            if rng.random() < 0.8:
                body, key, size = random_body(rng), rng.choice("kl"), rng.choice([300, 4000])
                mine += frames_of(publish(number, body, size, key))
                up[to] += frames_of(publish(to, body, size, key))
            else:
                mine.append(declare(number))
                up[to].append(declare(to))
        sends.append(mine)
    sends.append([HEARTBEAT] * rng.randint(0, 3))
    far = Far(sock, bytearray(b"".join(shuffled(rng, sends))))
    return Member(far, handler, line, channels, up, down)


@pytest.mark.parametrize("seed", range(25))
def test_each_gets_what_is_its_own(pool: Pool, seed: int) -> None:
    rng = random.Random(seed)
    lines = [pool.link() for _ in range(2)]
    numbers = [iter(rng.sample(range(1, 2000), 500)) for _ in lines]
    fars = [Far(sock) for sock, _ in lines]
    members = [
        join(pool, rng, line, lines[line][1], numbers[line])
        for line in (0, 1)
        for _ in range(rng.randint(2, 8))
    ]
    for line, far in enumerate(fars):
        sends: list[list[bytes]] = [[declare(0)] * 3, [HEARTBEAT] * 2]
        for member in members:
            if member.line != line:
                continue
            for number, to in member.channels.items():
                mine = []
                for tag in range(rng.randint(0, 10)):
                    body = random_body(rng)
                    mine += frames_of(deliver(to, body, 4000, tag))
                    member.down[number] += frames_of(deliver(number, body, 4000, tag))
                    if rng.random() < 0.3:
                        mine.append(declare(to))
                        member.down[number].append(declare(number))
                sends.append(mine)
        far.rest += b"".join(shuffled(rng, sends))
    vanishing = rng.sample(members, rng.randint(0, 2))
    for member in vanishing:
        member.is_vanishing = True
        del member.far.rest[rng.randrange(len(member.far.rest) + 1) :]
    quiet = 0
    while quiet < 40:
        pool.clock.now += 0.01
        before = [len(far.got) + len(far.rest) for far in [*fars, *(member.far for member in members)]]
        for far in rng.sample(fars, len(fars)):
            far.move(rng, reads=rng.random() < 0.7)
        for member in members:
            if member.is_vanishing and not member.far.rest:
                member.far.sock.close()
            elif rng.random() < 0.8:
                member.far.move(rng, reads=rng.random() < 0.7)
        pool.pump.step()
        after = [len(far.got) + len(far.rest) for far in [*fars, *(member.far for member in members)]]
        quiet = quiet + 1 if before == after and not pool.pump.deadlines else 0
    assert pool.failures == []
    for line, far in enumerate(fars):
        assert lines[line][1].ends == []
        assert not far.rest
        assert_whole(bytes(far.got))
        came = by_channel(bytes(far.got))
        for member in members:
            if member.line != line:
                continue
            for to, frames in member.up.items():
                got = came.pop(to, [])
                assert frames[: len(got)] == got
                assert member.is_vanishing or len(got) == len(frames)
        assert came == {}
    for member in members:
        if member.is_vanishing:
            assert len(member.handler.ends) == 1
            continue
        assert member.handler.ends == []
        came = by_channel(bytes(member.far.got))
        assert came == {number: frames for number, frames in member.down.items() if frames}
    for _, keeper in lines:
        assert keeper.frames().count(declare(0)) == 3


@pytest.mark.parametrize("seed", range(10))
def test_sessions_move_to_upstreams_of_their_own_at_random(pool: Pool, seed: int) -> None:
    """Each sends messages too large for the link; the rest goes the way that it began."""
    rng = random.Random(seed)
    broker, keeper = pool.link()
    shared = Far(broker)
    numbers = iter(range(1, 100))
    members: list[tuple[Member, Far, bytes]] = []
    for _ in range(4):
        member = join(pool, rng, 0, keeper, numbers)
        own, near = pool.pair()
        passed = member.handler.on_upcall
        member.handler.pooled.whole = 50_000

        def move(
            side: Side,
            result: ScanResult,
            frame: bytes,
            member: Member = member,
            near: socket.socket = near,
            passed: object = passed,
        ) -> bool | None:
            if result is not ScanResult.LARGE:
                return passed(side, result, frame)  # type: ignore[operator,no-any-return]
            for number, to in member.channels.items():
                member.handler.relay.channels.remap(number, number)
                keeper.link.unmap_channel(to)
            pool.pump.exchange(member.handler.relay, HandedOverSocket(near, 8192, 0))
            return True

        member.handler.on_upcall = move
        large = publish(1, rng.randbytes(60_000), 4000) + publish(1) + declare(1)
        member.far.rest += large
        members.append((member, Far(own), large))
    quiet = 0
    while quiet < 40:
        pool.clock.now += 0.01
        before = [
            len(far.rest) + len(far.got) for member, own, _ in members for far in (member.far, own, shared)
        ]
        for member, own, _ in members:
            member.far.move(rng)
            own.move(rng)
        shared.move(rng)
        pool.pump.step()
        after = [
            len(far.rest) + len(far.got) for member, own, _ in members for far in (member.far, own, shared)
        ]
        quiet = quiet + 1 if before == after and not pool.pump.deadlines else 0
    assert pool.failures == []
    assert_whole(bytes(shared.got))
    came = by_channel(bytes(shared.got))
    for member, own, large in members:
        assert member.handler.relay.pooled is None
        mine = by_channel(bytes(own.got))
        for number, to in member.channels.items():
            first = [frame[:1] + number.to_bytes(2, "big") + frame[3:] for frame in came.pop(to, [])]
            expected = [frame[:1] + number.to_bytes(2, "big") + frame[3:] for frame in member.up[to]]
            expected += frames_of(large) if number == 1 else []
            assert first + mine.pop(number, []) == expected
        assert mine == {}
    assert came == {}
