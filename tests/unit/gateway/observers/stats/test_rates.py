"""Rates are what two looks at a session differ by, in the time between them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import attrs
import pytest
import trio

from amqpgate.gateway.observers.stats import rates
from amqpgate.gateway.observers.stats.rates import Rates
from amqpgate.gateway.session.session import Session


@attrs.define
class Lane:
    messages: int = 0
    body_bytes: int = 0


@attrs.define
class Relay:
    up: Lane = attrs.field(factory=Lane)
    down: Lane = attrs.field(factory=Lane)


@attrs.define
class Counted:
    """What of a session is looked at."""

    id: str
    relay: Relay = attrs.field(factory=Relay)


@attrs.define
class Play:
    clock: list[float]
    rates: Rates = attrs.field(factory=Rates)
    one: Counted = attrs.field(factory=lambda: Counted("one"))

    async def look(self, now: float, *sessions: Counted) -> None:
        self.clock[0] = now
        await self.rates.look(cast(list[Session], list(sessions or (self.one,))))

    @property
    def seen(self) -> list[float | None]:
        return [self.rates.rate("one", index) for index in range(4)]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    clock = [0.0]
    monkeypatch.setattr(rates, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    return Play(clock)


async def test_it_takes_two_looks(play: Play) -> None:
    assert play.seen == [None] * 4
    await play.look(100)
    assert play.seen == [None] * 4
    play.one.relay = Relay(Lane(10, 1000), Lane(1, 2))
    await play.look(102.5)
    assert play.seen == [4.0, 400.0, 0.4, 0.8]
    await play.look(105)
    assert play.seen == [0.0] * 4


async def test_looks_in_a_row_are_one(play: Play) -> None:
    """Two pages that ask at once do not make each other's rates."""
    await play.look(100)
    play.one.relay.up.messages = 5
    await play.look(100.9)
    assert play.seen == [None] * 4
    await play.look(101)
    assert play.seen[0] == 5.0


async def test_a_session_that_was_seen_once_has_none(play: Play) -> None:
    await play.look(100)
    await play.look(102, play.one, Counted("two"))
    assert (play.rates.rate("one", 0), play.rates.rate("two", 0)) == (0.0, None)
    await play.look(104, Counted("two"))
    assert (play.rates.rate("one", 0), play.rates.rate("two", 0)) == (None, 0.0)


async def test_when_nobody_asks_any_more_it_is_forgotten(play: Play) -> None:
    await play.look(100)
    await play.look(101)
    play.rates.forget(161)
    assert play.seen == [0.0] * 4
    play.rates.forget(161.1)
    assert play.seen == [None] * 4
    await play.look(170)
    assert play.seen == [None] * 4


async def test_a_look_that_is_given_up_leaves_what_was_seen(play: Play) -> None:
    """Who asked has hung up; the next one looks anew."""
    await play.look(100)
    await play.look(102)
    many = [Counted(str(number)) for number in range(1000)]
    with trio.CancelScope() as scope:
        scope.cancel()
        await play.look(104, *many)
    assert scope.cancelled_caught
    assert play.seen == [0.0] * 4
    play.one.relay.up.messages = 8
    await play.look(104)
    assert play.seen[0] == 4.0
