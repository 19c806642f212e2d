"""A look at all sessions, once a second: who waits for which limit, who must be told so, and for confirms.

The data path makes clients wait without a word to the control plane, so what it does is sampled. A client
that is over its limit waits nearly all of the time; a second that a look finds it waiting counts as waited.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Final

from amqpgate.datapath.engine import PeerGoneError
from amqpgate.datapath.scanner import Bucket
from amqpgate.datapath.tables import Side
from amqpgate.gateway.observers.stats.session import StatsObserver
from amqpgate.gateway.session.observer import find
from amqpgate.gateway.session.operation_limits import Happened
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.session.session_end import CloseState
from amqpgate.policy.kinds.rate import DELIVERED, PUBLISHED
from amqpgate.protocol.frames import method_frame
from amqpgate.telemetry.faults import contained
from amqpgate.telemetry.time_slices import TimeSlices

#: Seconds between looks.
INTERVAL: Final = 1.0

_COUNTED = ((Side.CLIENT, PUBLISHED), (Side.UPSTREAM, DELIVERED))


async def look(sessions: Iterable[Session], now: float, confirmed: Callable[[float], None]) -> None:
    """``now`` is on the data path's clock; ``confirmed`` is told how many seconds brokers took for a confirm.

    The sessions' observers are told of each limit that one waits for. A fault at one session is no other's.
    """
    turns = TimeSlices()
    for session in sessions:
        await turns.next()
        _look_at(session, now, confirmed)


@contained("metrics", None)
def _look_at(session: Session, now: float, confirmed: Callable[[float], None]) -> None:
    if (stats := find(session.session_policies.observers, StatsObserver)) is not None:
        stats.look(confirmed)
    limits = session.limits
    if not session.relay.active or (not limits.all and not session.publishes.notice.is_given):
        return
    is_noted = False
    for side, quantities in _COUNTED:
        if not session.relay.endpoints[side].throttled:
            continue
        for share in limits.delaying(quantities):
            if any(_is_used_up(bucket, now) for bucket in share.pick(quantities)):
                session.session_policies.limited(share.limit, Happened.WAITED)
                is_noted |= side is Side.CLIENT and share.limit.notify
    notice = session.publishes.look(waits=is_noted) if session.facts.hears_blocked else None
    if notice is not None and session.closing is CloseState.NO:
        # A client that is gone is the data path's to find.
        with contextlib.suppress(PeerGoneError):
            session.relay.send(Side.CLIENT, method_frame(0, notice))


def _is_used_up(bucket: Bucket, now: float) -> bool:
    """Whether a session that waits may wait for this one. The data path has it wait for a whole token."""
    return bucket.ready_at(now) > now or bucket.tokens < 1
