"""Spans of one gateway process: what its sessions have in common, and the spans of their set-up.

Sampling is decided before a span is made (`limits.sampler`, `session`). What is under way is bounded, per
session and in all, and what would go beyond is not begun, and counted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Protocol

import attrs
import trio

from amqpgate.config import Tracing as Settings
from amqpgate.gateway.limits.sampler import Sampler
from amqpgate.policy import Operation, Principal, SessionTraces, TraceDecision
from amqpgate.telemetry.exemplars import Exemplars
from amqpgate.telemetry.faults import contained
from amqpgate.telemetry.tracing.counters import TraceCounters
from amqpgate.telemetry.tracing.export import Export
from amqpgate.telemetry.tracing.open_span import OpenSpan, began_at
from amqpgate.telemetry.tracing.semconv import OPT_IN, RABBITMQ, Key, Names, Value
from amqpgate.telemetry.tracing.spans import Sort, Spans


class Stages(Protocol):
    """The set-up of a connection. Times are in nanoseconds since 1970."""

    @property
    def began(self) -> int:
        """The accept."""

    @property
    def done(self) -> Sequence[tuple[str, int]]:
        """Each stage with the time at which it was done."""


@attrs.define(eq=False)
class Tracer:
    """One per process whose configuration has `tracing`."""

    spans: Spans
    counters: TraceCounters
    exemplars: Exemplars
    #: Spans under way.
    open: int = attrs.field(default=0, init=False)
    #: Of the policies in force.
    _samplers: dict[TraceDecision, Sampler] = attrs.field(factory=dict, init=False)

    @classmethod
    def of(cls, settings: Settings, version: str, counters: TraceCounters, exemplars: Exemplars) -> Tracer:
        """Starts the thread that sends. Raises ``ConfigError`` where a file cannot be read."""
        names = Names.chosen(os.environ.get(OPT_IN, ""))
        tracing = cls(Spans(Export(settings, version, counters), names), counters, exemplars)
        counters.open.set_function(lambda: tracing.open)
        return tracing

    def count(self, more: int) -> None:
        """So many more spans are under way."""
        self.open += more

    @contained("traces", None)
    def confirmed(self, span: OpenSpan) -> None:
        """A publish has been confirmed whose span is under way."""
        context, began = span.get_span_context(), began_at(span)
        if context.is_valid and began is not None:
            self.exemplars.note(max(0, time.time_ns() - began) / 1e9, context.trace_id, context.span_id)

    def sampler(self, decision: TraceDecision) -> Sampler:
        """Who chooses for all sessions that a rule is about."""
        found = self._samplers.get(decision)
        if found is None:
            found = self._samplers[decision] = Sampler(decision.ratio)
        return found

    def use(self) -> None:
        """Other policies are in force."""
        self._samplers.clear()

    async def finish(self, until: float, longest: float) -> None:
        """No session is left: send what waits until then (trio's clock), for a second at least, and at most
        for ``longest``."""
        seconds = min(longest, max(1.0, until - trio.current_time()))
        await trio.to_thread.run_sync(self.spans.export.close, seconds, abandon_on_cancel=True)

    @contained("traces", None)
    def set_up(
        self,
        rules: SessionTraces | None,
        principal: Principal,
        session: str,
        stages: Stages,
        failure: str | None = None,
    ) -> None:
        """A connection has been set up, or not: ``failure`` is the outcome in the metrics then."""
        decision = None if rules is None else rules.decide(Operation(principal, "connection.open"))
        if decision is None or not self.sampler(decision).count(1):
            return
        values = identity(principal, session) | {Key.TRACE_RULE: f"{decision.policy}/{decision.rule}"}
        whole = self.spans.start(Sort.SETUP, "connection.open", "", values, at=stages.began)
        at = stages.began
        for stage, until in stages.done:
            span = self.spans.start(Sort.STAGE, stage, "", {}, parent=whole.get_span_context(), at=at)
            span.end(until)
            at = until
        if failure is not None:
            self.spans.failed(whole, failure)
        whole.end()


def identity(principal: Principal, session: str) -> dict[Key, Value | None]:
    """What all spans of a session say."""
    return {
        Key.SYSTEM: RABBITMQ,
        Key.SESSION: session,
        Key.USER: principal.user,
        # Told where it is another one.
        Key.UPSTREAM_USER: None if principal.upstream_user == principal.user else principal.upstream_user,
        Key.VHOST: principal.vhost or None,
        Key.LISTENER: principal.listener,
        Key.CLIENT_ADDRESS: principal.source,
    }


def peer_of(name: tuple[str, int] | None) -> dict[Key, Value | None]:
    """The broker at the other end of a connection, by address and port; nothing where that is not known."""
    return {} if name is None else {Key.PEER_ADDRESS: name[0], Key.PEER_PORT: name[1]}
