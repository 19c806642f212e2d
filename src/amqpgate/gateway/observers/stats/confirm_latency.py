"""How long brokers take to confirm: now and then one publish of a session is timed, by the data path."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from amqpgate.datapath.scanner import ByChannel, Channels
from amqpgate.datapath.tables import OPEN
from amqpgate.gateway.session.publish_denial import ChannelPublishes
from amqpgate.telemetry.faults import contained
from amqpgate.values import define


@define(eq=False, weakref_slot=False)
class ConfirmLatency:
    """Of one session that has asked for confirms."""

    channels: Channels
    #: By number.
    states: ByChannel[ChannelPublishes]
    #: The channel that was timed last.
    _last: int = attrs.field(default=0, init=False)
    #: Whether the answer to a publish on it has not been told yet.
    _is_due: bool = attrs.field(default=False, init=False)

    @contained("metrics", None)
    def look(self, took: Callable[[float], None]) -> None:
        """``took`` is told the seconds of what was timed. The next channel has its turn, unless a publish
        still waits for its answer."""
        if self._is_due and self.channels.confirm_seconds >= 0:
            took(self.channels.confirm_seconds)
        elif self.channels.is_timing:
            return
        self.turn()

    @contained("metrics", None)
    def turn(self) -> None:
        """Time the next publish of the next channel."""
        confirming = [
            number
            for number, state in self.states.made()
            if state.confirms_from is not None and self.channels.state(number) == OPEN
        ]
        self._is_due = bool(confirming)
        if confirming:
            self._last = min(
                (number for number in confirming if number > self._last), default=min(confirming)
            )
            before = self.states[self._last].confirms_from
            assert before is not None, "it was asked above"
            self.channels.time_confirm(self._last, before)
