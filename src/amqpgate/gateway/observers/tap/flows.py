"""The flows of one session that taps watch: the data path counts what passes by them, and shows some of it.

::

    watched ── nobody has room ──▶ muted: it shows nothing to taps ── there is room again ──▶ watched
    more than are watched at once ──▶ all are forgotten; what goes on is a miss, and so is watched anew

Messages that were got, and returned ones, have no flows on the data path: each is seen at its method. Those
that are alike have one here, in which they are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import attrs

from amqpgate.datapath.captures import Captured
from amqpgate.datapath.relay import Relay
from amqpgate.datapath.scanner import Flow
from amqpgate.datapath.tables import Show
from amqpgate.gateway.limits.sampler import Sampler, stands_for
from amqpgate.gateway.observers.tap.lines import FlowLine
from amqpgate.gateway.observers.tap.taps import PART, Tap, TapRegistry
from amqpgate.gateway.session.observer import Sent
from amqpgate.policy import Operation, Verdict
from amqpgate.policy.engine.verdicts import UNRESTRICTED
from amqpgate.policy.kinds.audit import NOT_AUDITED, AuditDecision
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1 as amqp

#: Flows that are watched of one session. With more all are forgotten, and those that go on are watched anew.
MOST_WATCHED: Final = 4096

#: What messages have alike that were got, or returned: operation, exchange, routing key, queue.
Alike: TypeAlias = tuple[str, str, str, str | None]


@attrs.define(eq=False, weakref_slot=False)
class Watched:
    """A flow among whose messages some are shown to taps."""

    flow: Flow
    operation: Operation
    taps: tuple[Tap, ...]
    decision: AuditDecision
    verdict: Verdict
    method: Sent | amqp.BasicPublish
    #: A policy is shown every one of them anyway.
    is_always: bool
    #: It shows nothing to taps, and waits for room.
    is_muted: bool = False
    #: What lines say of each of its messages, once there has been one.
    line: FlowLine | None = None
    #: Whether more is told of each than that: what an audit policy lets out, or its frames.
    tells_more: bool = attrs.field(init=False)
    #: Messages that the taps know of.
    _counted: int = 0

    def __attrs_post_init__(self) -> None:
        self.tells_more = self.decision.reads_messages or any(tap.order.frames for tap in self.taps)

    def count(self) -> None:
        """Tell the taps how many have passed."""
        passed = self.flow.messages - self._counted
        if passed:
            self._counted += passed
            for tap in self.taps:
                tap.matches(passed)

    def mute(self, is_muted: bool) -> None:
        """It waits for room, or does so no more."""
        self.is_muted = is_muted

    def says(self, line: FlowLine) -> FlowLine:
        """Each of its messages is told so, from now on."""
        self.line = line
        return line

    @property
    def is_open(self) -> bool:
        """Whether some tap may be shown a message now."""
        return any(tap.is_open for tap in self.taps)

    def show(self) -> bool:
        """Show messages again, if some tap may be shown one."""
        least = min((tap.sampler.every for tap in self.taps if tap.is_open), default=0)
        if least and not (0 < self.flow.sample_every <= least):
            self.flow.sample_every = least
        return least > 0

    def hide(self, samplers: Sequence[Sampler]) -> None:
        """Show no more than others want, who choose among the same messages."""
        if not self.is_always:
            self.flow.sample_every = min((sampler.every for sampler in samplers), default=0)


@attrs.define(eq=False, weakref_slot=False)
class Watches:
    """Of one session."""

    tapping: TapRegistry
    relay: Relay
    _watched: dict[Flow, Watched] = attrs.field(factory=dict, init=False)
    #: Flows that messages under way may still be counted in.
    _before: dict[Flow, Watched] = attrs.field(factory=dict, init=False)
    #: Those of them that the data path does not know.
    _alike: dict[Alike, Watched] = attrs.field(factory=dict, init=False)

    def __len__(self) -> int:
        """How many flows are watched now."""
        return len(self._watched)

    def __getitem__(self, flow: Flow) -> Watched:
        return self._watched[flow]

    def get(self, flow: Flow) -> Watched | None:
        """What is watched of a flow."""
        return self._watched.get(flow)

    def alike(self, what: Alike) -> Watched | None:
        """Where messages are counted that have no flow on the data path."""
        return self._alike.get(what)

    def watch(self, watched: Watched, *, captures: bool) -> None:
        """A flow is about to be installed that taps are about. ``captures``: they may have captures."""
        flow = self._add(watched).flow
        if captures:
            # Not what is watched itself: it has the flow, and the two would keep each other.
            flow.capture_samples(PART, True, watched.decision.reads_body)
        flow.show = max(flow.show, Show.HEADER)
        if not watched.is_open:
            self.tapping.muted(watched)

    def watch_alike(self, what: Alike, operation: Operation, taps: tuple[Tap, ...], method: Sent) -> Watched:
        """As ``watch``, of messages that have no flow on the data path."""
        watched = self._add(
            Watched(Flow(), operation, taps, NOT_AUDITED, UNRESTRICTED, method, is_always=True)
        )
        self._alike[what] = watched
        return watched

    def _add(self, watched: Watched) -> Watched:
        if len(self._watched) >= MOST_WATCHED:
            self.forget()
        self._watched[watched.flow] = watched
        return watched

    def forget(self) -> None:
        """Watch no flow any more. What goes on is a miss, and so is watched again."""
        self.count()
        self._before, self._watched, self._alike = self._watched, {}, {}
        for lane in (self.relay.up, self.relay.down):
            if lane.flows is not None:
                lane.flows.flush()

    def count(self) -> None:
        """Tell the taps what has passed."""
        for watched in (*self._before.values(), *self._watched.values()):
            watched.count()

    def samplers(self, flow: Flow) -> list[Sampler]:
        """Who chooses among the messages of a flow."""
        watched = self._watched.get(flow)
        return [] if watched is None else [tap.sampler for tap in watched.taps]

    def captured(self, messages: Sequence[Captured]) -> Iterator[tuple[Watched, list[Tap], Captured]]:
        """Those that have passed, and are for taps; and for which."""
        full: dict[Flow, Watched] = {}
        for message in messages:
            flow, sample = message[0], message[4]
            watched = self._watched.get(flow) or self._before.get(flow)
            if sample is None or watched is None or PART not in (flow.notes or ()) or watched.is_muted:
                continue
            taps = [tap for tap in watched.taps if tap.sampler.count(sample[0]) and self.tapping.spend(tap)]
            if taps:
                yield watched, taps, message
            else:
                full[flow] = watched
        for flow, watched in full.items():
            if not watched.is_open:
                if len(flow.notes or ()) == 1:
                    watched.hide(())
                self.tapping.muted(watched)

    def shows(self, flow: Flow, samplers: Sequence[Sampler]) -> bool:
        """Whether a message that is shown may be for a tap; ``samplers`` are all who choose now."""
        watched = self._watched.get(flow)
        if watched is None:
            return False
        if not watched.is_open:
            watched.hide(samplers)
            self.tapping.muted(watched)
        return watched.is_open

    def choose(
        self, watched: Watched, weight: int, header: ContentHeader | None = None, frame_size: int = 0
    ) -> list[Tap]:
        """Who is shown a message that stands for so many; ``header`` where that may be one alone."""
        messages = weight
        if header is not None:
            messages = stands_for(weight, watched.flow, header, frame_size - 8)
        return [tap for tap in watched.taps if tap.sampler.count(messages) and self.tapping.spend(tap)]
