"""Distributed limits against a real Redis: what is granted, what is owed, what happens without it."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import attrs
import coredis
import pytest
import trio

from amqpgate.config import RedisUrl, Secret, SharedLimits
from amqpgate.gateway.limits.distributed import DistributedLimits
from amqpgate.gateway.limits.token_buckets import LOCAL_BURST, LOCAL_KEPT, SharedBucket, TokenBuckets
from amqpgate.policy import SharedLimit
from tests.support.redis import RedisServer

#: 100 at once, ten of them in a local bucket; hardly anything comes back while a test runs.
LIMIT = SharedLimit("p", "l", ("bob",), (("messages", 1 / 3600),), 360_000, shared=True)
FAST = SharedLimit("p", "fast", (), (("messages", 100.0), ("bytes", 1000.0)), 1.0, shared=True)

#: coredis leaves streams to the garbage collector when a connection breaks.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(autouse=True)
def _swept() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    server = RedisServer()
    server.start()
    yield server
    server.destroy()


@attrs.define
class Replica:
    """One process."""

    distributed: DistributedLimits
    buckets: TokenBuckets
    granted: int = 0

    def share(self, limit: SharedLimit) -> SharedBucket:
        return self.buckets.take((limit,), time.monotonic()).shares[0]


def replica(redis: RedisServer, prefix: str, **options: object) -> Replica:
    url = RedisUrl.parse(f"redis://127.0.0.1:{redis.port}")
    settings = SharedLimits(redis=url, replicas=2, password=Secret(redis.password), prefix=prefix, **options)
    buckets = TokenBuckets()

    def granted() -> None:
        made.granted += 1

    made = Replica(DistributedLimits(settings, buckets, granted, lambda away: None), buckets)
    return made


async def until(condition: object) -> None:
    with trio.fail_after(10):
        while not condition():  # type: ignore[operator]  # noqa: ASYNC110
            await trio.sleep(0.01)


async def test_a_lease_is_a_tenth_of_a_second_and_comes_out_of_one_bucket(redis: RedisServer) -> None:
    one, two = replica(redis, "a:"), replica(redis, "a:")
    shares = [one.share(FAST), two.share(FAST)]
    assert [share.buckets["messages"].tokens for share in shares] == [0, 0], "nothing before the first grant"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.distributed.run)
        nursery.start_soon(two.distributed.run)
        await until(lambda: all(share.is_granted for share in shares))
        for share in shares:
            assert share.buckets["messages"].tokens == pytest.approx(100 * LOCAL_BURST, rel=0.01)
            assert share.buckets["bytes"].tokens == pytest.approx(1000 * LOCAL_BURST, rel=0.01)
        assert one.granted == two.granted == 1
        nursery.cancel_scope.cancel()


async def test_what_two_take_is_what_there_is(redis: RedisServer) -> None:
    replicas = replica(redis, "b:"), replica(redis, "b:")
    shares = [each.share(LIMIT) for each in replicas]
    taken = 0
    async with trio.open_nursery() as nursery:
        for each in replicas:
            nursery.start_soon(each.distributed.run)
        with trio.move_on_after(3):
            while taken < 101:
                for share in shares:
                    if share.buckets["messages"].tokens > 0:
                        share.buckets["messages"].tokens -= 1
                        taken += 1
                await trio.sleep(0.002)
        nursery.cancel_scope.cancel()
    # A hundred, and what each may take below zero.
    assert 100 <= taken <= 102


async def test_a_debt_is_paid_first_and_outlives_its_sessions(redis: RedisServer) -> None:
    one = replica(redis, "c:")
    limits = one.buckets.take((FAST,), time.monotonic())
    (share,) = limits.shares
    share.buckets["messages"].tokens = -30.0
    one.buckets.give_back(limits, time.monotonic() - LOCAL_KEPT)
    one.buckets.take((), time.monotonic())
    assert one.buckets.shared() == [share], "closing the connection gains nothing"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.distributed.run)
        await until(lambda: share.is_granted)
        nursery.cancel_scope.cancel()
    assert share.buckets["messages"].tokens == pytest.approx(10, rel=0.01)
    one.buckets.take((), time.monotonic())
    assert one.buckets.shared() == []
    async with coredis.Redis(port=redis.port, password=redis.password, decode_responses=True) as client:
        kept = await client.hgetall(one.distributed.key_of(FAST, "messages"))
        assert float(kept["tokens"]) == pytest.approx(60, abs=0.5), "a hundred less the debt and ten"
        assert 0 < await client.pttl(one.distributed.key_of(FAST, "messages")) < 5000, "and it forgets"


@pytest.mark.parametrize("away", ["local", "closed"])
async def test_without_redis(away: str) -> None:
    redis = RedisServer()
    one = replica(redis, "d:", when_away=away)
    share = one.share(FAST)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.distributed.run)
        bucket = share.buckets["messages"]
        if away == "local":
            await until(lambda: share.is_granted)
            assert (bucket.rate, bucket.burst) == (50, 50)
        else:
            await trio.sleep(0.3)
            assert not share.is_granted
            assert bucket.tokens <= 0.01
        redis.start()
        await until(lambda: not one.distributed.is_away)
        await until(lambda: share.is_granted and bucket.tokens > 9)
        assert (bucket.rate, bucket.burst) == (0.001, 10)
        redis.kill()
        bucket.tokens = 0.0
        await until(lambda: one.distributed.is_away)
        nursery.cancel_scope.cancel()
    redis.destroy()


async def test_a_redis_that_refuses_us_is_away_and_the_log_says_so_once(
    redis: RedisServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amqpgate.gateway.limits.distributed.RETRY", 0.1)
    one = replica(redis, "e:")
    one.distributed.settings = attrs.evolve(one.distributed.settings, password=Secret("wrong-secret"))
    share = one.share(FAST)
    with caplog.at_level("WARNING"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one.distributed.run)
            await until(lambda: share.is_granted)
            await trio.sleep(0.5)
            nursery.cancel_scope.cancel()
    assert one.distributed.is_away
    assert share.buckets["messages"].rate == 50
    # The client library tells of a connection that the end breaks off.
    (record,) = [record for record in caplog.records if record.name.startswith("amqpgate")]
    assert "each process takes its own share" in record.getMessage()
    assert "wrong-secret" not in caplog.text
