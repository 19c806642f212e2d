"""The look at all sessions: who is told that its client waits; notices are in `test_blocked_notices`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import attrs
import pytest

from amqpgate.bridge import NATIVE
from amqpgate.datapath.tables import Side
from amqpgate.gateway.limits.token_buckets import SessionLimits, TokenBuckets
from amqpgate.gateway.observers.stats.sampler import look
from amqpgate.gateway.session.blocked_notices import NOT_BLOCKED
from amqpgate.gateway.session.operation_limits import Happened
from amqpgate.gateway.session.session import Session, SessionFacts
from amqpgate.gateway.session.session_end import CloseState
from amqpgate.policy import SharedLimit
from amqpgate.telemetry.faults import FAULTS, PARTS
from amqpgate.wire.generated import v0_9_1 as amqp

LIMIT = SharedLimit("p", "l", (), (("messages", 1.0),), 10)
OTHER = SharedLimit("p", "other", (), (("deliver_messages", 1.0),), 10)


@attrs.define
class Waiting:
    """A session as far as it is looked at: its client waits for its limits."""

    limits: SessionLimits
    #: What its client is told at the look.
    notice_due: amqp.ConnectionBlocked | Exception | None = None
    closing: CloseState = CloseState.NO
    facts = SessionFacts((NATIVE, NATIVE), 10, hears_blocked=True)
    told: list[tuple[SharedLimit, Happened]] = attrs.field(factory=list)
    sent: list[tuple[Side, bytes]] = attrs.field(factory=list)

    @property
    def relay(self) -> object:
        ends = (SimpleNamespace(throttled=True), SimpleNamespace(throttled=False))
        return SimpleNamespace(active=True, endpoints=ends, send=lambda *said: self.sent.append(said))

    @property
    def session_policies(self) -> object:
        return SimpleNamespace(observers=(), limited=lambda *what: self.told.append(what))

    @property
    def publishes(self) -> object:
        return SimpleNamespace(notice=NOT_BLOCKED, look=self._look)

    def _look(self, *, waits: bool) -> amqp.ConnectionBlocked | None:
        if isinstance(self.notice_due, Exception):
            raise self.notice_due
        return self.notice_due


def waiting(notice_due: amqp.ConnectionBlocked | Exception | None = None) -> Waiting:
    limits = TokenBuckets().take((LIMIT, OTHER), 0.0)
    for share in limits.shares:
        for bucket in share.buckets.values():
            bucket.take(20)
    return Waiting(limits, notice_due)


async def seen(*sessions: Waiting, now: float = 0.0) -> None:
    await look([cast(Session, session) for session in sessions], now, lambda _: None)


async def test_who_waits_is_told_by_which_limit() -> None:
    session = waiting()
    await seen(session)
    assert session.told == [(LIMIT, Happened.WAITED)], "deliveries do not wait"
    await seen(session, now=60.0)
    assert len(session.told) == 1, "there are tokens again"


async def test_a_client_that_its_session_closes_is_told_no_more() -> None:
    blocked = amqp.ConnectionBlocked("wait")
    open_one, closing = waiting(blocked), waiting(blocked)
    closing.closing = next(state for state in CloseState if state is not CloseState.NO)
    await seen(open_one, closing)
    assert [side for side, _ in open_one.sent] == [Side.CLIENT]
    assert not closing.sent


async def test_a_fault_at_one_session_is_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FAULTS, "counts", dict.fromkeys(PARTS, 0))
    sessions = [waiting(), waiting(ZeroDivisionError("a fault")), waiting()]
    await seen(*sessions)
    assert [len(session.told) for session in sessions] == [1, 1, 1]
    assert FAULTS.counts["metrics"] == 1
