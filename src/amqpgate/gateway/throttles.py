"""The buckets of rate limits: one pair for all sessions that share a limit."""

from __future__ import annotations

from collections import OrderedDict

import attrs

from amqpgate.datapath.scanner import Bucket, Flow
from amqpgate.datapath.tables import Show
from amqpgate.policy import Peek, SharedLimit

#: Of messages, and of octets of their bodies.
_Pair = tuple[Bucket | None, Bucket | None]


@attrs.define(eq=False)
class Throttle:
    """What all sessions with the same limits have in common, and is kept once."""

    limits: tuple[SharedLimit, ...]
    messages: tuple[Bucket, ...] = ()
    octets: tuple[Bucket, ...] = ()
    sessions: int = 0

    def flow(self, peek: Peek | None = None) -> Flow:
        """The flow of messages that may pass as far as these buckets let them.

        What ``peek`` says is shown, up to its header.
        """
        if peek is None:
            return Flow(self.messages, self.octets)
        return Flow(
            self.messages,
            self.octets,
            sample_every=int(peek.always),
            show=Show.HEADER,
            peek_flags=peek.flags,
            peek_headers=tuple(sorted(name.encode() for name in peek.headers)),
            peek_body=-1 if peek.max_body is None else peek.max_body,
        )


@attrs.define(eq=False)
class Throttles:
    """Buckets by limit.

    A bucket that nobody uses is kept until it would be full again, so that whoever closes its connection
    and opens another one has gained nothing.
    """

    _throttles: dict[tuple[SharedLimit, ...], Throttle] = attrs.field(factory=dict)
    #: Buckets in use, and by how many throttles.
    _used: dict[SharedLimit, tuple[_Pair, int]] = attrs.field(factory=dict)
    _left: OrderedDict[SharedLimit, _Pair] = attrs.field(factory=OrderedDict)

    def __len__(self) -> int:
        """How many limits have buckets."""
        return len(self._used) + len(self._left)

    def take(self, limits: tuple[SharedLimit, ...], now: float) -> Throttle:
        """That of one more session with these limits; ``now`` on the data path's clock."""
        self._forget_full(now)
        throttle = self._throttles.get(limits)
        if throttle is None:
            pairs = [self._use(limit) for limit in limits]
            throttle = self._throttles[limits] = Throttle(
                limits,
                tuple(messages for messages, _ in pairs if messages is not None),
                tuple(octets for _, octets in pairs if octets is not None),
            )
        throttle.sessions += 1
        return throttle

    def give_back(self, throttle: Throttle) -> None:
        """A session that took it is over."""
        throttle.sessions -= 1
        if throttle.sessions:
            return
        del self._throttles[throttle.limits]
        for limit in throttle.limits:
            pair, users = self._used.pop(limit)
            if users > 1:
                self._used[limit] = pair, users - 1
            else:
                self._left[limit] = pair

    def _use(self, limit: SharedLimit) -> _Pair:
        if limit in self._used:
            pair, users = self._used[limit]
        else:
            pair = self._left.pop(limit) if limit in self._left else _pair(limit)
            users = 0
        self._used[limit] = pair, users + 1
        return pair

    def _forget_full(self, now: float) -> None:
        """Look at those that were left first; so each costs a moment, whenever one comes."""
        while self._left:
            limit, pair = next(iter(self._left.items()))
            for bucket in pair:
                if bucket is not None:
                    bucket.ready_at(now)
                    if bucket.tokens < bucket.burst:
                        return
            del self._left[limit]


def _pair(limit: SharedLimit) -> _Pair:
    def one(rate: float | None) -> Bucket | None:
        # Less than a whole token still lets one message pass: what passes may go below zero.
        return None if rate is None else Bucket(rate, rate * limit.burst)

    return one(limit.messages), one(limit.octets)
