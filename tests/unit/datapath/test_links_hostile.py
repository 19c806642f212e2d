"""Clients that send anything, on a link with others: nothing but whole, well-formed messages reaches it."""

from __future__ import annotations

import contextlib
import random

import pytest

from amqpgate.datapath.tables import LAST_HARMLESS, ScanResult, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import HEARTBEAT, encode_frame, method_frame
from amqpgate.wire.codec import decode_header, decode_method
from amqpgate.wire.generated import v0_9_1 as amqp

from .pools import Pool, PooledWitness, declare, deliver, frames_of, make_pool, publish
from .rig import ENGINES, received
from .test_links_model import assert_whole, by_channel, shuffled


def stream(rng: random.Random) -> bytes:
    """Messages that lie in each other, some broken, and other frames."""
    queues: list[list[bytes]] = []
    for number in (1, 2, 3, 4):
        frames: list[bytes] = []
        for _ in range(rng.randint(0, 6)):
            frames += frames_of(
                publish(number, rng.randbytes(rng.choice([0, 5, 300, 3000])), rng.choice([100, 4000]))
            )
            if rng.random() < 0.3:
                frames.append(
                    rng.choice([declare(number), method_frame(number, amqp.ChannelOpen()), HEARTBEAT])
                )
        queues.append(frames)
    frames = shuffled(rng, queues)
    if frames and rng.random() < 0.7:
        at = rng.randrange(len(frames))
        kind = rng.randrange(5)
        if kind == 0:
            del frames[at]
        elif kind == 1:
            frames.insert(at, rng.choice(frames))
        elif kind == 2:
            broken = bytearray(frames[at])
            broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
            frames[at] = bytes(broken)
        elif kind == 3:
            frames.insert(
                at, encode_frame(rng.randrange(9), rng.randrange(5), rng.randbytes(rng.randrange(30)))
            )
        else:
            del frames[at:]
            frames.append(publish(1)[: rng.randrange(40)])
    return b"".join(frames)


def handler_for(pool: Pool, handler: PooledWitness, rng: random.Random) -> None:
    def decide(side: Side, result: ScanResult, frame: bytes) -> bool | None:
        channels = handler.relay.channels
        number = int.from_bytes(frame[1:3], "big")
        if result > LAST_HARMLESS:
            return None
        if result is ScanResult.METHOD and channels.state(number) != 1:
            if number and frame[7:11] == amqp.ChannelOpen.INDEX.to_bytes(4, "big"):
                channels.open(number, 100 + number)
            else:
                handler.relay.finish()
            return False
        if frame[0] == 1:
            try:
                decode_method(frame[7:-1])
            except ProtocolViolation:
                handler.relay.finish()
                return False
        choice = rng.random()
        if choice < 0.05:
            handler.relay.finish()
            return False
        if choice < 0.1:
            raise ZeroDivisionError
        if choice < 0.2 and result is not ScanResult.LARGE:
            channels.discard(number)
            handler.relay.send(Side.UPSTREAM, method_frame(number, amqp.ChannelClose(403)))
            return False
        if choice < 0.3:
            handler.relay.endpoints[side].lane.ready_at = pool.clock.now + 0.05
            return True
        if result is ScanResult.MISS:
            channels.expect_header(side, number, None, rng.choice([0, 2, 3]))
            handler.relay.send(Side.UPSTREAM, frame)
            return False
        return None

    handler.on_upcall = decide


def scene(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[object, ...]:
    """What the link got, what its handler saw, and how the sessions ended."""
    rng = random.Random(seed)
    made = make_pool(name, monkeypatch)
    pool = next(made)
    broker, keeper = pool.link()
    honest, good = pool.join(keeper, {1: 50})
    sessions = []
    for count in range(4):
        flows = pool.scanner.FlowTable() if rng.random() < 0.7 else None
        whole = rng.choice([100, 2000, 50_000])
        client, handler = pool.session(flows=flows, whole=whole)
        handler.pooled.attach(keeper.link)
        for number in (1, 2, 3):
            pool.open(keeper, handler, number, 100 * count + 100 + number)
        handler_for(pool, handler, random.Random(seed + count))
        sessions.append((client, handler, bytearray(stream(rng))))
    got = bytearray()
    for _ in range(60):
        pool.clock.now += 0.02
        for client, _handler, rest in sessions:
            if rest and rng.random() < 0.8:
                with contextlib.suppress(OSError):
                    del rest[: client.send(rest[: rng.choice([1, 7, 50, 1000, 10_000])])]
        honest.send(publish())
        broker.send(deliver(50))
        pool.pump.step()
        got += received(broker)
    for client, _handler, _rest in sessions:
        client.close()
    pool.steps(5)
    got += received(broker)
    assert received(honest) == deliver() * 60
    assert_whole(bytes(got))
    for frame in frames_of(bytes(got)):
        if frame[0] == 1:
            decode_method(frame[7:-1])
        elif frame[0] == 2:
            decode_header(frame[7:-1])
    assert [frame for frame in frames_of(bytes(got)) if frame[1:3] == b"\0\x32"] == frames_of(
        publish(50)
    ) * 60
    assert (good.ends, keeper.ends) == ([], [])
    assert all(len(handler.ends) == 1 for _, handler, _ in sessions)
    made_of = [handler.upcalls for _, handler, _ in sessions]
    # Whose timer comes first of two that are due at once is open.
    outcome = (
        by_channel(bytes(got)),
        made_of,
        [handler.ends for _, handler, _ in sessions],
        list(map(type, pool.failures)),
    )
    assert {type(error) for error in pool.failures} <= {ZeroDivisionError}
    with contextlib.suppress(StopIteration):
        next(made)
    return outcome


@pytest.mark.parametrize("seed", range(200))
def test_nothing_but_whole_messages_reaches_a_link(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [scene(name, seed, monkeypatch) for name in ENGINES]
    assert all(outcome == outcomes[0] for outcome in outcomes)
