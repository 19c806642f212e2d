"""A pool against a model of its brokers and clients: whatever happens in whatever order.

The model knows what the broker knows of each link: which channels it has open, and what it has been told and
has not answered. So it sees a number that is used twice, or again before its close-ok.
"""

from __future__ import annotations

import math

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from amqpgate.config import Pooling
from amqpgate.gateway.pool.channel_numbers import NumberState
from amqpgate.gateway.pool.connection_state import PATIENCE, CloseChannel, OpenChannel, PooledConnection
from amqpgate.gateway.pool.plan import CloseLink, DialLink, PoolPlan
from amqpgate.yamldoc import Seconds

IDLE, AGE = 5.0, 8.0

#: For what leaves little to look at.
RARELY = st.integers(0, 4).map(lambda number: number == 4)


@attrs.define(eq=False)
class Session:
    """A client that is logged in."""

    link: Wire | None = None
    waits: bool = False
    #: Its channels; whether nothing but open was said on each.
    channels: dict[int, bool] = attrs.field(factory=dict)


@attrs.define(eq=False)
class Wire:
    """One link as broker and clients see it."""

    link: PooledConnection
    most: int
    #: Channels that are open, and whether in confirm mode.
    open: dict[int, bool] = attrs.field(factory=dict)
    #: Opens without an answer, and whether confirm.select is behind them.
    opening: dict[int, bool] = attrs.field(factory=dict)
    #: Closes without an answer.
    closing: set[int] = attrs.field(factory=set)
    #: Whose each is.
    owners: dict[int, Session] = attrs.field(factory=dict)
    #: Somebody asked to close it.
    ending: bool = False

    @property
    def used(self) -> set[int]:
        """Numbers that may not be opened."""
        return {*self.open, *self.opening, *self.closing}

    @property
    def free(self) -> list[int]:
        return [number for number in range(1, self.most + 1) if number not in self.used]

    def spare(self, *, confirming: bool) -> list[int]:
        """Open, and nobody's."""
        there = (number for number, mode in self.open.items() if mode is confirming)
        return sorted(number for number in there if number not in self.owners and number not in self.closing)

    @property
    def under_way(self) -> list[int]:
        """Plain opens that are nobody's yet."""
        return sorted(
            number
            for number, confirming in self.opening.items()
            if not confirming and number not in self.owners and number not in self.closing
        )

    @property
    def has_room(self) -> bool:
        return bool(self.free or self.spare(confirming=False) or self.under_way)

    @property
    def taken(self) -> int:
        """Somebody's, or until just now."""
        return len(self.closing | set(self.owners))

    @property
    def is_nearly_full(self) -> bool:
        return self.taken >= self.most - self.most // 8


class PoolMachine(RuleBasedStateMachine):
    """No number twice, none before its close-ok, the lowest first, and nobody waits for nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.wires: list[Wire] = []
        self.sessions: list[Session] = []
        self.dials = 0
        self.failed_at = -math.inf

    @initialize(
        links=st.integers(1, 3),
        channels=st.sampled_from([1, 2, 3, 5, 9, 17]),
        spare=st.integers(0, 4),
        sessions=st.integers(0, 4),
    )
    def begin(self, links: int, channels: int, spare: int, sessions: int) -> None:
        self.settings = Pooling(
            max_links=links,
            channels_per_link=channels,
            spare_channels=spare,
            idle_timeout=Seconds(IDLE),
            max_age=Seconds(AGE),
        )
        self.pool = PoolPlan(self.settings)
        if sessions:
            self.enter(sessions)
            self.answer_all()

    # -- clients -----------------------------------------------------------------------------

    @property
    def waiting(self) -> list[Session]:
        return [session for session in self.sessions if session.waits]

    @property
    def assigned(self) -> list[Session]:
        return [session for session in self.sessions if session.link is not None]

    @rule(count=st.integers(1, 6))
    def enter(self, count: int) -> None:
        for _ in range(count):
            self.pool.entered()
            self.sessions.append(Session())
            self.assign(self.sessions[-1])

    def assign(self, session: Session) -> None:
        there = [wire for wire in self.wires if wire.has_room and not wire.ending]
        link = self.pool.assign()
        session.waits = link is None
        if link is None:
            # Nobody waits while there is room.
            assert not there
            return
        session.link = next(wire for wire in self.wires if wire.link is link)
        assert session.link in there
        young = [wire for wire in there if not wire.link.retiring]
        best = [wire for wire in young if not wire.is_nearly_full]
        if best:
            assert session.link.taken == max(wire.taken for wire in best)
        if session.link in best or not young:
            return
        assert not best
        assert session.link in young

    @rule(data=st.data())
    def come_again(self, data: st.DataObject) -> None:
        unassigned = [session for session in self.sessions if session.link is None]
        if unassigned:
            self.assign(data.draw(st.sampled_from(unassigned)))

    @rule(data=st.data(), count=st.integers(1, 9))
    def take(self, data: st.DataObject, count: int) -> None:
        if not self.assigned:
            return
        session = data.draw(st.sampled_from(self.assigned))
        for _ in range(count):
            self.take_one(session)

    def take_one(self, session: Session) -> None:
        wire = session.link
        assert wire is not None
        spare, free, under_way = wire.spare(confirming=False), wire.free, wire.under_way
        taken = self.pool.acquire(wire.link, self.now)
        if taken is None:
            assert not wire.has_room
            return
        if spare:
            assert (taken.number, taken.is_open, taken.must_open) == (spare[0], True, False)
        elif free:
            assert (taken.number, taken.is_open, taken.must_open) == (free[0], False, True)
            wire.opening[taken.number] = False
        else:
            assert (taken.number, taken.is_open, taken.must_open) == (under_way[0], False, False)
        assert taken.number not in wire.owners
        wire.owners[taken.number] = session
        session.channels[taken.number] = True

    @rule(data=st.data())
    def confirm(self, data: st.DataObject) -> None:
        """On a channel that has heard its open-ok and nothing else."""
        if self.assigned and data.draw(st.booleans()):
            self.take_one(data.draw(st.sampled_from(self.assigned)))
            self.answer_all()
        fresh = [
            (session, number)
            for session in self.assigned
            for number, is_fresh in session.channels.items()
            if is_fresh and session.link is not None and number in session.link.open
        ]
        if not fresh:
            return
        session, number = data.draw(st.sampled_from(fresh))
        wire = session.link
        assert wire is not None
        spare = wire.spare(confirming=True)
        found = self.pool.acquire_confirming(wire.link, number, self.now)
        if not spare:
            assert found is None
            session.channels[number] = False
            wire.open[number] = True
            return
        assert found == spare[0]
        del session.channels[number], wire.owners[number]
        session.channels[found], wire.owners[found] = False, session

    @rule(data=st.data())
    def close_one(self, data: st.DataObject) -> None:
        there = [session for session in self.assigned if session.channels]
        if there:
            session = data.draw(st.sampled_from(there))
            self.give_back(session, data.draw(st.sampled_from(sorted(session.channels))))

    def give_back(self, session: Session, number: int) -> None:
        wire = session.link
        assert wire is not None
        self.pool.release(wire.link, number)
        del session.channels[number], wire.owners[number]
        wire.closing.add(number)

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        if len(self.sessions) > 1:
            self.end(data.draw(st.sampled_from(self.sessions)))

    def end(self, session: Session) -> None:
        for number in list(session.channels):
            self.give_back(session, number)
        if session.link is not None:
            self.pool.left(session.link.link, self.now)
        self.pool.gone()
        self.sessions.remove(session)

    # -- the broker --------------------------------------------------------------------------

    @rule(data=st.data(), well=st.booleans())
    def answer_a_channel(self, data: st.DataObject, well: bool) -> None:
        pending = [(wire, number) for wire in self.wires for number in {*wire.opening, *wire.closing}]
        if pending:
            pending.sort(key=lambda one: (one[0].link.id, one[1]))
            self.answer(*data.draw(st.sampled_from(pending)), well)

    def answer(self, wire: Wire, number: int, well: bool) -> None:
        if number in wire.opening:
            confirming = wire.opening.pop(number)
            if well or number in wire.closing:
                if number not in wire.owners:
                    self.pool.opened(wire.link, number, confirming=False)
                if confirming:
                    self.pool.opened(wire.link, number, confirming=True)
                wire.open[number] = confirming
                return
            self.forget(wire, number)
            return
        wire.open.pop(number)
        wire.closing.remove(number)
        assert self.pool.closed(wire.link, number, self.now)

    def forget(self, wire: Wire, number: int) -> None:
        """Broker and gateway have closed a channel, which the broker began."""
        assert self.pool.closed(wire.link, number, self.now)
        if number in wire.owners:
            del wire.owners.pop(number).channels[number]

    @rule(data=st.data())
    def close_a_channel(self, data: st.DataObject) -> None:
        """The broker does; it may be nobody's."""
        there = [(wire, number) for wire in self.wires for number in wire.open if number not in wire.closing]
        if there:
            wire, number = data.draw(st.sampled_from(sorted(there, key=lambda one: (one[0].link.id, one[1]))))
            del wire.open[number]
            self.forget(wire, number)

    @precondition(lambda self: self.dials)
    @rule(allowed=st.sampled_from([0, 2, 9, 2047]))
    def answer_a_dial(self, allowed: int) -> None:
        self.dials -= 1
        self.add(self.pool.added(allowed, self.now), allowed)

    @precondition(lambda self: self.pool.may_grow)
    @rule(allowed=st.sampled_from([0, 2, 2047]), rarely=RARELY)
    def prove(self, allowed: int, rarely: bool) -> None:
        if rarely:
            self.add(self.pool.added(allowed, self.now, asked=False), allowed)

    def add(self, link: PooledConnection, allowed: int) -> None:
        most = min(allowed or 65535, self.settings.channels_per_link)
        assert all(wire.link.id != link.id for wire in self.wires)
        self.wires.append(Wire(link, most))

    @precondition(lambda self: self.dials)
    @rule()
    def fail_a_dial(self) -> None:
        self.dials -= 1
        self.failed_at = self.now
        self.pool.dial_failed(self.now)

    @rule(data=st.data(), rarely=RARELY)
    def lose(self, data: st.DataObject, rarely: bool) -> None:
        if self.wires and rarely:
            self.end_of(data.draw(st.sampled_from(self.wires)))

    def end_of(self, wire: Wire) -> None:
        self.pool.lost(wire.link, self.now)
        self.wires.remove(wire)
        for session in self.assigned:
            if session.link is wire:
                session.link = None
                session.channels.clear()

    @rule(data=st.data())
    def end_well(self, data: st.DataObject) -> None:
        ending = [wire for wire in self.wires if wire.ending]
        if ending:
            self.end_of(data.draw(st.sampled_from(ending)))

    # -- time, and what is to be done ----------------------------------------------------------

    @rule(seconds=st.sampled_from([0.01, 0.3, 1.0, 3.0, 9.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.look()

    @rule()
    def look(self) -> None:
        for action in self.pool.wants(self.now, len(self.waiting)):
            if isinstance(action, DialLink):
                self.dials += 1
                assert self.sessions
                assert self.now - self.failed_at >= PATIENCE
                assert self.dials <= max(1, math.ceil(len(self.waiting) / self.settings.channels_per_link))
                continue
            wire = next(wire for wire in self.wires if wire.link is action.link)
            assert not wire.ending
            self.do(wire, action)
        # It counts as under way.
        assert self.pool.wants(self.now, len(self.waiting)) == []

    def do(self, wire: Wire, action: OpenChannel | CloseChannel | CloseLink) -> None:
        if isinstance(action, OpenChannel):
            assert action.number == wire.free[0]
            wire.opening[action.number] = action.confirming
        elif isinstance(action, CloseChannel):
            assert action.number in wire.spare(confirming=wire.open[action.number])
            wire.closing.add(action.number)
        else:
            assert all(session.link is not wire for session in self.sessions)
            wire.ending = True

    @rule()
    def answer_all(self) -> None:
        """All goes well."""
        self.look()
        while self.dials:
            self.answer_a_dial(2047)
        for wire in [*self.wires]:
            while wire.opening or wire.closing:
                for number in sorted({*wire.opening, *wire.closing}):
                    self.answer(wire, number, well=True)
            if wire.ending:
                self.end_of(wire)
        for session in self.waiting:
            self.assign(session)

    @rule(rarely=RARELY)
    def settle(self, rarely: bool) -> None:
        if rarely:
            self.come_to_rest()

    def come_to_rest(self) -> None:
        """When all is answered, everybody has a link, or all channels there may be are taken."""
        for _ in range(12):
            self.now += PATIENCE
            self.answer_all()
        if self.waiting:
            assert len(self.wires) == self.settings.max_links
            assert all(len(wire.owners) == wire.most for wire in self.wires)

    @rule(rarely=RARELY)
    def all_leave(self, rarely: bool) -> None:
        """Nothing is left in the end."""
        if not rarely:
            return
        for session in [*self.sessions]:
            self.end(session)
        self.now += IDLE
        self.come_to_rest()
        assert self.pool.is_empty
        assert not self.wires

    # -- always ------------------------------------------------------------------------------

    @invariant()
    def both_know_the_same(self) -> None:
        pool = self.pool
        assert pool.links == [wire.link for wire in self.wires]
        assert pool.dialling == self.dials
        assert len(pool.links) + pool.dialling <= self.settings.max_links
        assert pool.sessions == len(self.sessions)
        for wire in self.wires:
            self.agree(wire)

    def agree(self, wire: Wire) -> None:
        assert wire.link.sessions == sum(session.link is wire for session in self.sessions)
        for number in range(1, wire.most + 1):
            at = wire.link.numbers.at(number)
            assert (at is NumberState.TAKEN) == (number in wire.owners)
            assert (at is NumberState.CLOSING) == (number in wire.closing)
            assert (at is NumberState.FREE) == (number not in wire.used)
        assert set(wire.used) <= set(range(1, wire.most + 1))
        for session in self.sessions:
            if session.link is wire:
                assert all(wire.owners[number] is session for number in session.channels)


TestPool = PoolMachine.TestCase
# Long lives, and many: what goes wrong in a pool takes several clients and a failure between.
TestPool.settings = settings(max_examples=400, stateful_step_count=80)
