"""Limits that several processes share: each takes what it needs for the next moment from one Redis.

The bucket itself lives in Redis. A process holds a *local bucket* of `token_buckets.LOCAL_BURST` seconds'
worth at most, which hardly refills by itself; so the data path never waits for the network, and does not know
the difference. `INTERVAL` seconds apart, all local buckets that are half used up are filled again: one call
of one script, which debits all buckets in Redis.

What passes together in any time is at most what one bucket would let pass, and for each process a local
bucket more, which it may have saved up beside it, and one message, which may take the local bucket below zero
and is paid back first. What is left in a local bucket when nobody uses it any more is lost.

While Redis is away, ``whenAway`` says what holds. When it is back its buckets are as it kept them; after a
restart without its data they are full.
"""

from __future__ import annotations

import hashlib
import logging
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Final

import attrs
import coredis
import trio
from coredis.exceptions import NoScriptError, RedisError
from coredis.retry import NoRetryPolicy

from amqpgate.config import SharedLimits
from amqpgate.gateway.limits.token_buckets import SharedBucket, TokenBuckets
from amqpgate.policy import Quantity, SharedLimit
from amqpgate.values import frozen

log = logging.getLogger(__name__)

#: Seconds between looks at the local buckets.
INTERVAL: Final = 0.05
#: Seconds between attempts to reach a Redis that is away.
RETRY: Final = 1.0
#: Buckets per call.
BATCH: Final = 256

#: All that was asked for, but for what the numbers' texts lose.
NEARLY: Final = 1 - 1e-6

#: Of each key: rate per second, burst, how much is wanted. Back come the grants. Time is Redis' own.
SCRIPT: Final = """
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local granted = {}
for i = 1, #KEYS do
  local rate, burst, want = tonumber(ARGV[3*i-2]), tonumber(ARGV[3*i-1]), tonumber(ARGV[3*i])
  local kept = redis.call('HMGET', KEYS[i], 'tokens', 'stamp')
  local tokens = burst
  if kept[1] then
    tokens = math.min(burst, tonumber(kept[1]) + math.max(0, now - tonumber(kept[2])) * rate)
  end
  local got = math.max(0, math.min(want, tokens))
  tokens = tokens - got
  redis.call('HSET', KEYS[i], 'tokens', string.format('%.9f', tokens), 'stamp', string.format('%.6f', now))
  redis.call('PEXPIRE', KEYS[i], math.ceil((burst - tokens) / rate * 1000) + 1000)
  granted[i] = string.format('%.9f', got)
end
return granted
"""


@frozen
class BucketRequest:
    """One bucket that wants more."""

    share: SharedBucket
    quantity: Quantity
    rate: float
    want: float

    @property
    def burst(self) -> float:
        """The burst of the bucket in Redis."""
        return max(1.0, self.rate * self.share.limit.burst)


def client_of(settings: SharedLimits) -> coredis.Redis[str]:
    """A client of the settings' Redis, which is not connected yet. Files of authorities are read now."""
    timeout, context = float(settings.timeout), None
    if settings.redis.is_tls:
        context = ssl.create_default_context(cafile=None if settings.ca is None else str(settings.ca))
    return coredis.Redis(
        settings.redis.host,
        settings.redis.port,
        settings.redis.database,
        username=settings.user,
        password=None if settings.password is None else settings.password.reveal(),
        ssl_context=context,
        connect_timeout=timeout,
        stream_timeout=timeout,
        max_connections=1,
        retry_policy=NoRetryPolicy(),
        decode_responses=True,
    )


@attrs.define(eq=False)
class DistributedLimits:
    """Keeps the local buckets of one process filled. ``run`` until it is cancelled."""

    settings: SharedLimits
    buckets: TokenBuckets
    #: Some local bucket has more than before: who waits for it may look.
    on_granted: Callable[[], None]
    #: Told whether Redis is away.
    on_away: Callable[[bool], None]
    is_away: bool = attrs.field(default=True, init=False)
    #: That it is away has been logged.
    _is_told: bool = attrs.field(default=False, init=False)
    _script: str = attrs.field(default="", init=False)

    async def run(self) -> None:
        """Keep the local buckets filled, whatever happens to Redis."""
        self.on_away(True)
        while True:
            try:
                await self._keep_filled()
            except Exception as error:
                # What the client library does not expect itself, in a group perhaps, is no reason to stop.
                log.exception("shared limits: the connection to redis failed")
                self._away(error)
            await trio.sleep(RETRY)

    async def _keep_filled(self) -> None:
        async with client_of(self.settings) as redis:
            tried = -RETRY
            while True:
                now = time.monotonic()
                if not self.is_away or now - tried >= RETRY:
                    tried = now
                    await self._fill(redis)
                if self.is_away and self.settings.when_away == "local":
                    self._on_our_own()
                await trio.sleep(INTERVAL)

    async def _fill(self, redis: coredis.Redis[str]) -> None:
        try:
            with trio.fail_after(2 * float(self.settings.timeout)):
                if self.is_away:
                    await redis.ping()
                    self._back()
                asks = list(self._asks())
                for at in range(0, len(asks), BATCH):
                    await self._debit(redis, asks[at : at + BATCH])
        except (RedisError, OSError, TimeoutError, trio.TooSlowError) as error:
            self._away(error)

    async def _debit(self, redis: coredis.Redis[str], asks: list[BucketRequest]) -> None:
        keys = [self.key_of(ask.share.limit, ask.quantity) for ask in asks]
        numbers = [repr(number) for ask in asks for number in (ask.rate, ask.burst, ask.want)]
        try:
            granted = await redis.evalsha(self._script, keys=keys, args=numbers)
        except NoScriptError:
            # Redis is another one than before, or has been restarted.
            self._script = await redis.script_load(SCRIPT)
            granted = await redis.evalsha(self._script, keys=keys, args=numbers)
        assert isinstance(granted, list)
        amounts = [float(str(amount)) for amount in granted]
        for ask, amount in zip(asks, amounts, strict=True):
            ask.share.grant(ask.quantity, amount, is_full=amount >= ask.want * NEARLY)
        if any(amounts):
            # Whether somebody waits cannot be told from a bucket: it gains a little by itself.
            self.on_granted()

    def key_of(self, limit: SharedLimit, quantity: Quantity) -> str:
        """The bucket's name in Redis. It tells nobody's name; policies that differ have others."""
        what = (
            limit.policy,
            limit.limit,
            limit.key,
            quantity,
            limit.rate(quantity),
            limit.burst,
            limit.enforced,
        )
        return self.settings.prefix + hashlib.blake2b(repr(what).encode(), digest_size=16).hexdigest()

    def _asks(self) -> Iterator[BucketRequest]:
        """The local buckets that are half used up."""
        now = time.monotonic()
        for share in self.buckets.shared():
            for quantity, rate in share.limit.rates:
                bucket = share.buckets[quantity]
                bucket.ready_at(now)
                if bucket.tokens < bucket.burst / 2 or not share.is_granted:
                    yield BucketRequest(share, quantity, rate, bucket.burst - bucket.tokens)

    def _away(self, error: Exception) -> None:
        if self.is_away and self._is_told:
            return
        self.is_away = self._is_told = True
        self.on_away(True)
        log.warning(
            "shared limits: redis %s is away (%s); %s",
            self.settings.redis,
            _reason(error),
            "each process takes its own share"
            if self.settings.when_away == "local"
            else "nothing limited passes",
        )

    def _on_our_own(self) -> None:
        """The limit divided by the processes."""
        is_changed, now = False, time.monotonic()
        for share in self.buckets.shared():
            for quantity, rate in share.limit.rates:
                is_changed |= share.refill_alone(quantity, rate / self.settings.replicas, now)
        if is_changed:
            self.on_granted()

    def _back(self) -> None:
        self.is_away = self._is_told = False
        self.on_away(False)
        log.info("shared limits: counted by redis %s", self.settings.redis)
        now = time.monotonic()
        for share in self.buckets.shared():
            for quantity, rate in share.limit.rates:
                share.refill_by_grants(quantity, rate, now)


def _reason(error: BaseException) -> str:
    """What went wrong, and what that came of."""
    texts = [str(error)]
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
        if str(error) not in texts:
            texts.append(str(error))
    return ": ".join(texts)
