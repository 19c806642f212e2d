"""A pool's plan, and a broker that answers when it is told to."""

from __future__ import annotations

import attrs

from amqpgate.config import Pooling
from amqpgate.gateway.pool.connection_state import CloseChannel, OpenChannel, PooledConnection
from amqpgate.gateway.pool.plan import Action, CloseLink, DialLink, PoolPlan


@attrs.define
class Play:
    """A pool, and a broker that answers when it is told to."""

    pool: PoolPlan
    now: float = 1000.0

    def wants(self, waiting: int = 0) -> list[Action]:
        return self.pool.wants(self.now, waiting)

    def kinds(self, waiting: int = 0) -> list[type]:
        """What is wanted, each kind once."""
        return list(dict.fromkeys(type(action) for action in self.wants(waiting)))

    def link(self, channels: int = 2047, *, sessions: int = 0, taken: int = 0) -> PooledConnection:
        """One more link; with sessions that have so many channels together."""
        self.pool.dialling += 1
        link = self.pool.added(channels, self.now)
        link.sessions = sessions
        for _ in range(sessions):
            self.pool.entered()
        for _ in range(taken):
            assert self.pool.acquire(link, self.now - 3600) is not None
        return link

    def settle(self) -> list[Action]:
        """Answer all but dials until nothing is wanted; what was."""
        found: list[Action] = []
        while actions := self.wants():
            found += actions
            for action in actions:
                self.answer(action)
            if all(isinstance(action, DialLink) for action in actions):
                break
        return found

    def answer(self, action: Action) -> None:
        if isinstance(action, OpenChannel):
            self.pool.opened(action.link, action.number, confirming=False)
            if action.confirming:
                self.pool.opened(action.link, action.number, confirming=True)
        elif isinstance(action, CloseChannel):
            assert self.pool.closed(action.link, action.number, self.now)
        elif isinstance(action, CloseLink):
            self.pool.lost(action.link, self.now)


def play(**keys: int | float) -> Play:
    """Settings by name; none are spare unless it is said."""
    return Play(PoolPlan(Pooling(**({"spare_channels": 0} | keys))))  # type: ignore[arg-type]


def opens(actions: list[Action], *, confirming: bool = False) -> list[int]:
    return [
        action.number
        for action in actions
        if isinstance(action, OpenChannel) and action.confirming is confirming
    ]


def shuts(actions: list[Action]) -> list[int]:
    return [action.number for action in actions if isinstance(action, CloseChannel)]
