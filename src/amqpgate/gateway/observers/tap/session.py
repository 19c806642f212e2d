"""What is tapped of one session: its messages both ways, and each other method.

::

    publish, deliver ── miss ──▶ does it match? then its flow is watched (`tapping_flows`)
                     ── shown ─▶ `tapping_published`, `tapping_sent` ──▶ a line
    get-ok, return ────────────▶ `tapping_sent` ──▶ a line
    other methods, denials ────▶ a line each

`tapping_scope` says what a tap is about, and how much of it may be told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from amqpgate.gateway.observers.tap.flows import Watches
from amqpgate.gateway.observers.tap.published import TappedPublishes
from amqpgate.gateway.observers.tap.scope import Scope, known_of, size_of
from amqpgate.gateway.observers.tap.sent import TappedDeliveries
from amqpgate.gateway.observers.tap.taps import Tap, TapRegistry
from amqpgate.policy import Operation, PolicySet, Verdict
from amqpgate.policy.engine.from_method import operation_of
from amqpgate.telemetry.faults import contained
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.datapath.relay import Relay
    from amqpgate.gateway.session.channel_close import SessionChannels
    from amqpgate.gateway.session.session_policies import SessionPolicies


@attrs.define(eq=False, weakref_slot=False)
class TapObserver:
    """Of one session, while somebody taps it."""

    scope: Scope
    watches: Watches
    published: TappedPublishes
    sent: TappedDeliveries
    _closes: SessionChannels | None = attrs.field(default=None, init=False)

    @classmethod
    @contained("taps", None)
    def of(
        cls, tapping: TapRegistry, session: str, judging: SessionPolicies, policies: PolicySet
    ) -> TapObserver | None:
        """That of a session; None: nobody taps what its client may do."""
        known = known_of(judging.principal)
        taps = tuple(tap for tap in tapping.taps if tap.order.match.holds(known) is not False)
        if not taps:
            return None
        tapper = judging.tapper or cls._new(Scope(tapping, session, judging), Watches(tapping))
        tapper.follow(taps, policies)
        return tapper

    @classmethod
    def _new(cls, scope: Scope, watches: Watches) -> TapObserver:
        return cls(scope, watches, TappedPublishes(scope, watches), TappedDeliveries(scope, watches))

    @property
    def taps(self) -> tuple[Tap, ...]:
        """Those that it may concern."""
        return self.scope.taps

    def follow(self, taps: tuple[Tap, ...], policies: PolicySet) -> None:
        """These taps and these policies hold from now on, for messages that are not under way."""
        self.watches.forget()
        self.scope.follow(taps, policies)

    def enter(self, relay: Relay, closes: SessionChannels) -> None:
        """The session goes on the data path, or is there."""
        self.watches.relay = relay
        self._closes = self.sent.closes = closes

    @contained("taps", None)
    def count(self) -> None:
        """Tell the taps what has passed."""
        self.watches.count()

    # -- whatever is no message ------------------------------------------------------------------

    @contained("taps", None)
    def opened(self) -> None:
        """The session has begun."""
        operation = Operation(self.scope.principal, "connection.open")
        self.scope.happened(0, operation, self.scope.verdict(operation), None)

    @contained("taps", None)
    def passed(self, channel: int, method: Method) -> None:
        """A method of the client's passes, which is no publish."""
        assert self._closes is not None, "it is on the data path"
        if isinstance(method, amqp.ChannelOpen):
            self.sent.opens(channel)
            self.published.opens(channel)
        state = self._closes.channels.get(channel)
        operation = operation_of(method, self.scope.principal, "" if state is None else state.last_queue)
        operation = self._closes.told_apart(operation)
        self.scope.happened(channel, operation, self.scope.verdict(operation), method)

    @contained("taps", None)
    def denied(
        self,
        channel: int,
        method: Method | None,
        operation: Operation,
        verdict: Verdict,
        frame: memoryview | None = None,
    ) -> None:
        """An operation is refused; of a publish whose header had to be seen, with that."""
        self.scope.happened(channel, operation, verdict, method, None if frame is None else size_of(frame))
