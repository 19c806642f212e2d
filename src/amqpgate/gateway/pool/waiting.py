"""Sessions of a pool whose client's method waits, and the end of a wait.

It has lasted too long, or its client has gone: a session that waits is not read, so the data path does not
see that its client closes its socket.
"""

from __future__ import annotations

import math
import select
from typing import TYPE_CHECKING, Final, Protocol

import attrs

from amqpgate.datapath.engine import End
from amqpgate.datapath.relay import Relay
from amqpgate.datapath.tables import Side
from amqpgate.errors import OverLimit
from amqpgate.wire.generated import v0_9_1 as amqp

if TYPE_CHECKING:
    from amqpgate.gateway.session.session import Session

#: Seconds that a client waits for a channel where all are taken. Then its connection is closed with 506.
PATIENCE: Final = 10.0


class Waiter(Protocol):
    """A session of a pool."""

    @property
    def session(self) -> Session: ...

    @property
    def connection(self) -> object | None:
        """The shared connection that it uses."""

    def why_fixed(self) -> str | None:
        """Why it cannot leave its connection without its client's seeing it; None: it can."""

    def rejected(self, why: str, close: amqp.ConnectionClose | None) -> None:
        """There is no connection for it; ``close`` is what the broker says to the login, if anything."""


@attrs.define(eq=False)
class WaitingSessions:
    """Those of one pool."""

    #: Those whose client's method waits for anything.
    _held_up: set[Waiter] = attrs.field(factory=set, init=False)
    #: Those that wait for a channel, the first to come first, and until when.
    _deadlines: dict[Waiter, float] = attrs.field(factory=dict, init=False)

    def __len__(self) -> int:
        """How many wait for a channel."""
        return len(self._deadlines)

    @property
    def unassigned(self) -> list[Waiter]:
        """Those that wait for a connection, too."""
        return [waiter for waiter in self._deadlines if waiter.connection is None]

    def hold_up(self, waiter: Waiter) -> None:
        """Its client's method waits."""
        self._held_up.add(waiter)

    def look_again(self, waiter: Waiter) -> None:
        """Its client's method is looked at once more."""
        self._held_up.discard(waiter)

    def await_channel(self, waiter: Waiter, now: float) -> None:
        """It waits for a channel, from now on or already."""
        self._deadlines.setdefault(waiter, now + PATIENCE)

    def has_channel(self, waiter: Waiter) -> None:
        """It does not wait for a channel any more."""
        self._deadlines.pop(waiter, None)

    def leave(self, waiter: Waiter) -> None:
        """It is over."""
        self._deadlines.pop(waiter, None)
        self._held_up.discard(waiter)

    def retry(self) -> None:
        """There may be room: those who wait for a channel look again."""
        for waiter in self._deadlines:
            relay = waiter.session.relay
            relay.pump.retry(relay)

    def look(self, now: float) -> None:
        """What time alone brings about."""
        for waiter in list(self._held_up):
            end_waiting(waiter, self._deadlines.get(waiter, math.inf), now)


def end_waiting(waiter: Waiter, deadline: float, now: float) -> None:
    """End the session if it has waited for a channel until the ``deadline``, or its client has gone."""
    relay = waiter.session.relay
    if _has_hung_up(relay):
        relay.pump.remove(relay, End.GONE, Side.CLIENT, None)
    elif now >= deadline:
        text = "no channel is free on the connections to the broker that are shared"
        if waiter.connection is not None:
            text = f"no channel is free on the shared connection to the broker, and {waiter.why_fixed()}"
        ids = amqp.ChannelOpen
        waiter.session.fail(OverLimit(506, text, class_id=ids.CLASS_ID, method_id=ids.METHOD_ID))


def _has_hung_up(relay: Relay) -> bool:
    """Whether the client has closed, or lost, its connection."""
    poll = select.poll()
    poll.register(relay.endpoints[Side.CLIENT].sock, select.POLLRDHUP)
    return bool(poll.poll(0))
