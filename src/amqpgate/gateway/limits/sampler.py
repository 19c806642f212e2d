"""Choosing some of many messages, without looking at the others: for mirrors and for traces.

::

    method ── miss ──▶ a flow that shows one message in N, beginning anywhere among its first N
    method ── shown ─▶ stands for N messages; their shares are added up, and a whole one is a message chosen

What is not shown costs nothing. N is one over the share, rounded down, so that a message that is shown never
makes more than one. Where several choose among the messages of one flow, N is the least of theirs. Messages
that a policy wants to see anyway stand for themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from amqpgate.datapath.scanner import Flow
from amqpgate.datapath.tables import PEEKED_HEADER, Show
from amqpgate.policy import Peek
from amqpgate.policy.engine.from_method import content_of
from amqpgate.values import define
from amqpgate.wire.codec import ContentHeader, encode_header

#: What adding up shares may lose.
_ROUNDING = 1e-8
#: A flow counts to no more than this.
_MOST_EVERY = 1_000_000_000
#: Steps of this size spread evenly over a circle, however many there are.
_GOLDEN = (5**0.5 - 1) / 2


@define(eq=False)
class Sampler:
    """Chooses a share of the messages of all sessions of a process that one document is about."""

    #: 0 to 1.
    share: float
    #: One message in so many of a flow is shown; 0: none.
    every: int = attrs.field(init=False)
    #: What has added up, in messages.
    _credit: float = attrs.field(default=0.0, init=False)
    _phase: float = attrs.field(default=0.0, init=False)

    def __attrs_post_init__(self) -> None:
        self.every = min(_MOST_EVERY, int(1 / self.share + 100 * _ROUNDING)) if self.share else 0

    def show_every(self, every: int) -> None:
        """One message in so many of a flow is shown from now on; 0: none."""
        self.every = every

    def first(self, every: int) -> int:
        """Which message of a new flow is shown first: 1 to N, each as often.

        So routing keys that come once or a few times give their share, too.
        """
        self._phase = (self._phase + _GOLDEN) % 1
        return 1 + int(self._phase * every)

    def count(self, messages: int) -> bool:
        """One that stands for so many; whether it is chosen."""
        self._credit += messages * self.share
        if self._credit < 1 - _ROUNDING:
            return False
        self._credit -= 1
        return True


@define(eq=False)
class Sampling:
    """Which messages of its flows a session is shown, to choose among them."""

    def enlist(self, flow: Flow, samplers: Sequence[Sampler]) -> None:
        """A flow is about to be installed, among whose messages these choose."""
        if not samplers:
            return
        flow.show = max(flow.show, Show.HEADER)
        if len(samplers) > 1:
            # Others choose among those that carry a trace context, too.
            flow.show_contexts()
        if not flow.sample_every:
            flow.sample_every = _every(samplers)
            flow.unsampled = flow.sample_every - samplers[0].first(flow.sample_every)

    def weigh(self, flow: Flow, samplers: Sequence[Sampler]) -> int:
        """How many messages the one that is being shown stands for; 0: nobody chooses among them."""
        if not samplers:
            return 0
        if flow.sample_every == 1:
            return 1  # a policy looks at every one, or all are chosen
        flow.sample_every = _every(samplers)
        return flow.sample_every


def _every(samplers: Sequence[Sampler]) -> int:
    return min(sampler.every for sampler in samplers)


def stands_for(weight: int, flow: Flow, header: ContentHeader, header_size: int) -> int:
    """How many messages one stands for whose header, of so many bytes, has come: 1 where a policy wanted to
    see it."""
    return 1 if weight > 1 and _was_peeked(flow, header, header_size) else weight


def _was_peeked(flow: Flow, header: ContentHeader, header_size: int) -> bool:
    if flow.header_rules is not None:
        passed = flow.header_rules.passes(encode_header(header))
        if passed < 0 or (passed != flow.header_rules.admitted and flow.meter is not None):
            return True
    if not (
        flow.peek_flags or flow.peek_headers or flow.peek_body >= 0 or flow.peek_mode_0 or flow.peek_contexts
    ):
        return False
    if header_size > PEEKED_HEADER:
        return True
    names = frozenset(name.decode() for name in flow.peek_headers)
    most = flow.peek_body if flow.peek_body >= 0 else None
    peek = Peek(False, flow.peek_flags, names, most, flow.peek_mode_0, bool(flow.peek_contexts))
    return peek.catches(content_of(header))
