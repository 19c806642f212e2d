"""The buckets of rate limits: one set for all sessions that share a limit."""

from __future__ import annotations

import contextlib
import functools
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

import attrs
import trio

from amqpgate.datapath.scanner import Bucket, Flow, HeaderRules
from amqpgate.datapath.tables import Contexts, Show
from amqpgate.gateway.limits.shared_memory import SharedMemory, Slot
from amqpgate.policy import Peek, Quantity, SharedLimit
from amqpgate.policy.kinds.rate import DELIVERED, PUBLISHED
from amqpgate.values import define

#: Buckets that nobody uses any more and that are not full yet, at most. Beyond that the one that was left
#: first is forgotten, and whoever comes back to it finds it full: some 1 KiB each.
MOST_LEFT = 65536

#: Seconds of a shared limit's rate that a process holds at most; see `distributed`.
LOCAL_BURST = 0.1
#: Seconds for which a process keeps a local bucket that nobody uses. What is left of one that is forgotten is
#: lost: a client that opens a connection for each request would lose one every time.
LOCAL_KEPT = 10.0
#: A local bucket gets its tokens from elsewhere: by itself it gains next to nothing.
LOCAL_RATE = 1e-5


#: A token, but for what floating point loses.
WHOLE = 1 - 1e-6
BYTES: tuple[Quantity, ...] = ("bytes", "deliver_bytes")

#: Every message is judged.
ALWAYS: Final = Peek(always=True)


@define(eq=False)
class SharedBucket:
    """What those who share a limit have in common."""

    limit: SharedLimit
    buckets: dict[Quantity, Bucket]
    #: Open sessions that the limit holds for, and connections that are about to be.
    sessions: int = 0
    #: Of a shared limit: whether it has had its first grant. Nothing passes before.
    is_granted: bool = False
    #: Of a shared limit: what was not there in full when more was asked for.
    dry: set[Quantity] = attrs.field(factory=set)
    #: When the last who used it left, and the limits of that session.
    left_at: float = 0.0
    last: tuple[SharedLimit, ...] = ()
    #: Where other workers have the same; and where sessions are counted, if they are limited.
    slots: tuple[Slot, ...] = ()
    counted: Slot | None = None
    #: Set when there is an answer from elsewhere; None: nobody waits for one.
    _answered: trio.Event | None = attrs.field(default=None, init=False)
    #: Whether it counts what clients publish, and what they are delivered.
    counts_published: bool = attrs.field(init=False)
    counts_delivered: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.counts_published = self.counts(PUBLISHED)
        self.counts_delivered = self.counts(DELIVERED)

    def count(self, more: int) -> None:
        """There are so many more sessions."""
        self.sessions += more
        if self.counted is not None and more:
            self.counted.tell(self.sessions)

    @property
    def together(self) -> int:
        """Sessions of all workers."""
        return self.sessions + (0 if self.counted is None else self.counted.others)

    def count_with(self, slots: tuple[Slot, ...], counted: Slot | None) -> None:
        """Other workers have the same, in these slots of the shared memory."""
        self.slots, self.counted = slots, counted

    def leave(self, now: float, last: tuple[SharedLimit, ...]) -> None:
        """Nobody here uses it any more; ``last`` are the limits of the session that was the last."""
        self.left_at, self.last = now, last
        for slot in self.slots:
            slot.leave()

    # -- a limit that other processes share ---------------------------------------------------

    async def sure(self) -> None:
        """Wait until no answer from elsewhere is needed to tell if one more may pass."""
        while self.is_unsure:
            if self._answered is None:
                self._answered = trio.Event()
            await self._answered.wait()

    def _answered_now(self) -> None:
        self.is_granted = True
        if self._answered is not None:
            self._answered.set()
            self._answered = None

    def grant(self, quantity: Quantity, tokens: float, *, is_full: bool) -> None:
        """So many tokens have been granted; ``is_full``: all that were asked for."""
        self.buckets[quantity].take(-tokens)
        self._answered_now()
        if is_full:
            self.dry.discard(quantity)
        else:
            self.dry.add(quantity)

    def refill_alone(self, quantity: Quantity, rate: float, now: float) -> bool:
        """The bucket refills by itself, at this rate; whether it did not so far."""
        bucket = self.buckets[quantity]
        if bucket.rate == rate:
            return False
        bucket.ready_at(now)
        bucket.rate, bucket.burst = rate, max(1.0, rate * self.limit.burst)
        self.dry.add(quantity)  # there is nobody to borrow from
        self._answered_now()
        return True

    def refill_by_grants(self, quantity: Quantity, rate: float, now: float) -> None:
        """The bucket gets its tokens from elsewhere again; ``rate`` is the limit's."""
        bucket = self.buckets[quantity]
        bucket.ready_at(now)
        bucket.rate, bucket.burst = rate * LOCAL_RATE, local_burst(rate)
        bucket.tokens = min(bucket.tokens, 0.0)
        self.dry.discard(quantity)

    def may_have_more(self, quantity: Quantity) -> bool:
        """Whether the limit is shared, and was not used up by all when it was last asked."""
        return self.limit.shared and self.is_granted and quantity not in self.dry

    @property
    def is_unsure(self) -> bool:
        """Whether only an answer from elsewhere can tell if one more may pass."""
        if not self.limit.shared:
            return False
        used_up = (name for name, bucket in self.buckets.items() if bucket.tokens < WHOLE)
        return not self.is_granted or any(map(self.may_have_more, used_up))

    @property
    def owes(self) -> bool:
        """Whether more was taken from a bucket than there was."""
        return any(bucket.tokens < 0 for bucket in self.buckets.values())

    def pick(self, quantities: tuple[Quantity, ...]) -> Iterator[Bucket]:
        """The buckets that count one of these quantities."""
        return (self.buckets[name] for name in quantities if name in self.buckets)

    def counts(self, quantities: tuple[Quantity, ...]) -> bool:
        """Whether there is a bucket for one of these quantities."""
        return not self.buckets.keys().isdisjoint(quantities)

    @property
    def delays(self) -> bool:
        """Whether it is the data path itself that delays."""
        return self.limit.enforced and self.limit.action == "delay"

    def ready_at(self, quantity: Quantity, now: float) -> float:
        """``now`` where one more may pass, else when it may.

        What can be counted needs a whole token, so that exactly the burst passes at once. Bytes, as on the
        data path, need something to be left: no message is too large to ever pass. An empty local bucket
        says nothing of what is left elsewhere: who cannot wait borrows up to its burst until it is known.
        """
        bucket = self.buckets[quantity]
        ready = bucket.ready_at(now)
        if self.limit.action != "delay" and self.may_have_more(quantity) and bucket.tokens > -bucket.burst:
            return now
        if quantity in BYTES or bucket.tokens >= WHOLE:
            return ready
        return now + (1 - bucket.tokens) / bucket.rate

    def wait(self, quantity: Quantity) -> float:
        """Seconds until what has been taken from the bucket is there."""
        rate = self.limit.rate(quantity)
        assert rate is not None
        return max(0.0, -self.buckets[quantity].tokens / rate)


@define(eq=False)
class SessionLimits:
    """What all sessions with the same limits have in common, and is kept once."""

    all: tuple[SharedLimit, ...]
    shares: tuple[SharedBucket, ...] = ()
    sessions: int = 0
    _buckets: dict[Quantity, tuple[Bucket, ...]] = attrs.field(factory=dict, init=False)
    #: Whether any publish may have to wait, or be counted or rejected.
    limits_publishes: bool = attrs.field(init=False)
    #: Whether any delivery may have to wait, or be counted.
    limits_deliveries: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.limits_publishes = any(share.counts_published for share in self.shares)
        self.limits_deliveries = any(share.counts_delivered for share in self.shares)

    def count(self, more: int, sessions: int) -> None:
        """It is taken so many times more, and by so many more sessions."""
        self.sessions += more
        for share in self.shares:
            share.count(sessions)

    def delaying(self, quantities: tuple[Quantity, ...]) -> tuple[SharedBucket, ...]:
        """The limits by which the data path itself delays."""
        return tuple([share for share in self.shares if share.delays and share.counts(quantities)])

    def per_message(self, quantities: tuple[Quantity, ...]) -> tuple[SharedBucket, ...]:
        """The limits that judge each message on its own: to reject it, or only for show."""
        return tuple([share for share in self.shares if not share.delays and share.counts(quantities)])

    def buckets(self, quantity: Quantity) -> tuple[Bucket, ...]:
        """The buckets by which the data path delays, in one tuple that thousands of flows hold."""
        found = self._buckets.get(quantity)
        if found is None:
            found = tuple([share.buckets[quantity] for share in self.delaying((quantity,))])
            self._buckets[quantity] = found
        return found

    def flow(self, peek: Peek | None = None, rules: HeaderRules | None = None) -> Flow:
        """The flow of publishes that may pass as far as the buckets let them.

        What ``peek`` says is shown, up to its header, and what does not surely pass ``rules``; and every
        one, where a limit wants to judge it.
        """
        return self._flow(PUBLISHED, peek, rules=rules)

    def delivery_flow(self, peek: Peek | None = None) -> Flow:
        """The flow of deliveries, likewise."""
        return self._flow(DELIVERED, peek)

    def kept_flow(self) -> Flow:
        """The flow of deliveries that are all shown whole."""
        return self._flow(DELIVERED, Peek(always=True), Show.BODY)

    def _flow(
        self,
        quantities: tuple[Quantity, Quantity],
        peek: Peek | None,
        show: Show = Show.HEADER,
        rules: HeaderRules | None = None,
    ) -> Flow:
        messages, size = quantities
        if self.per_message(quantities):
            peek = ALWAYS if peek is None else peek | ALWAYS
        if peek is None:
            return Flow(self.buckets(messages), self.buckets(size))
        return Flow(
            self.buckets(messages),
            self.buckets(size),
            sample_every=int(peek.always),
            show=show,
            peek_flags=peek.flags,
            peek_headers=_header_names(peek.headers),
            peek_body=-1 if peek.max_body is None else peek.max_body,
            peek_mode_0=peek.mode_0,
            header_rules=rules,
            peek_contexts=Contexts.SAMPLED if peek.contexts else Contexts.NONE,
        )


@functools.lru_cache(maxsize=256)
def _header_names(names: frozenset[str]) -> tuple[bytes, ...]:
    """As the data path compares them: one tuple, which all flows hold that look for the same headers."""
    return tuple(sorted(name.encode() for name in names))


@define(eq=False)
class TokenBuckets:
    """Buckets by limit.

    A bucket that nobody uses is kept until it would be full again, so that whoever closes its connection
    and opens another one has gained nothing. One connection's own is not: nobody comes back to it.
    What sessions have in common is kept as long, as who comes back finds all of its buckets again.
    """

    _sessions: dict[tuple[SharedLimit, ...], SessionLimits] = attrs.field(factory=dict)
    #: Buckets in use, and by how many `SessionLimits`.
    _used: dict[SharedLimit, tuple[SharedBucket, int]] = attrs.field(factory=dict)
    _left: OrderedDict[SharedLimit, SharedBucket] = attrs.field(factory=OrderedDict)
    #: What the workers share; None: there is one process.
    shared_memory: SharedMemory | None = None

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """No other worker counts sessions meanwhile."""
        with contextlib.nullcontext() if self.shared_memory is None else self.shared_memory.locked():
            yield

    def _share(self, limit: SharedLimit, now: float) -> SharedBucket:
        share = _share(limit, now)
        if self.shared_memory is None or limit.shared or limit.is_own:
            return share
        slots = []
        for name, bucket in share.buckets.items():
            slot = self.shared_memory.claim(limit, name, bucket.rate, bucket.burst)
            if slot is not None:
                slots.append(slot)
                share.buckets[name] = slot.bucket(bucket.rate, bucket.burst)
        counted = None
        if limit.concurrent is not None:
            # A slot without a rate is always full: it is free once nobody uses it.
            counted = self.shared_memory.claim(limit, "connections at once", 0.0, 0.0)
            slots += [counted] if counted is not None else []
        share.count_with(tuple(slots), counted)
        return share

    def __len__(self) -> int:
        """How many limits have buckets."""
        return len(self._used) + len(self._left)

    def shared(self) -> list[SharedBucket]:
        """The buckets of distributed limits that may need tokens: one that was left may owe some."""
        used = [share for share, _ in self._used.values() if share.limit.shared]
        return used + [share for share in self._left.values() if share.limit.shared and share.owes]

    def take(self, limits: tuple[SharedLimit, ...], now: float, *, counts: bool = True) -> SessionLimits:
        """That of one more session with these limits; ``now`` on the data path's clock.

        What is not a session, and does not count as one, only keeps the buckets.
        """
        taken = self._sessions.get(limits)
        if taken is None or not taken.sessions:
            shares = tuple([self._use(limit, now) for limit in limits])
            if taken is None or taken.shares != shares:
                taken = self._sessions[limits] = SessionLimits(limits, shares)
        # After that: who comes back finds its buckets, and they are not made anew.
        if self._left:
            self.forget(now)
        taken.count(1, counts)
        return taken

    def give_back(self, taken: SessionLimits, now: float, *, counts: bool = True) -> None:
        """A session that took it is over; ``counts`` as it was taken."""
        taken.count(-1, -counts)
        if taken.sessions:
            return
        is_kept = bool(taken.all)
        for limit in taken.all:
            share, users = self._used.pop(limit)
            if users > 1:
                self._used[limit] = share, users - 1
                is_kept = False
            else:
                share.leave(now, taken.all)
                if share.buckets and not share.slots and not limit.is_own:
                    self._left[limit] = share
                else:
                    is_kept = False
        if not is_kept:
            del self._sessions[taken.all]
        while len(self._left) > MOST_LEFT:
            self._drop(next(iter(self._left)))

    def _use(self, limit: SharedLimit, now: float) -> SharedBucket:
        used = self._used.get(limit)
        if used is None:
            used = self._left.pop(limit, None) or self._share(limit, now), 0
        share, users = used
        self._used[limit] = share, users + 1
        return share

    def forget(self, now: float) -> None:
        """What nobody uses and is full again. Those that were left first are looked at: it costs a moment."""
        while self._left:
            limit, share = next(iter(self._left.items()))
            if limit.shared and now - share.left_at < LOCAL_KEPT:
                return
            for bucket in share.buckets.values():
                bucket.ready_at(now)
                # What others share is kept elsewhere, but for a debt.
                if bucket.tokens < (0 if limit.shared else bucket.burst):
                    return
            self._drop(limit)

    def _drop(self, limit: SharedLimit) -> None:
        """Forget a bucket that nobody uses, and what those had in common who used it last."""
        last = self._left.pop(limit).last
        taken = self._sessions.get(last)
        if taken is not None and not taken.sessions:
            del self._sessions[last]


def _share(limit: SharedLimit, now: float) -> SharedBucket:
    if not limit.shared:
        # At least one token, or a slow rate with a short burst would never get its next one.
        return SharedBucket(
            limit, {name: Bucket(rate, max(1.0, rate * limit.burst)) for name, rate in limit.rates}
        )
    local = {name: Bucket(rate * LOCAL_RATE, local_burst(rate)) for name, rate in limit.rates}
    for bucket in local.values():
        bucket.tokens, bucket.stamp = 0.0, now
    return SharedBucket(limit, local)


def local_burst(rate: float) -> float:
    """Tokens that a process holds at most of a shared limit with this rate."""
    return max(1.0, rate * LOCAL_BURST)
