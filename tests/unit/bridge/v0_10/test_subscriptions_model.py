"""Whatever a client and a broker do: nothing lost, nothing twice, order kept, credit never exceeded. A flush
is complete only when the queue had nothing more for its credit.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from attrs import define, frozen
from hypothesis import event, given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.v0_10.sequences import SequenceSet
from tests.unit.bridge.v0_10.scripted import Stage, Transfer, byte_credit, messages, mode, subscribe

INFINITE: Final = 0xFFFF_FFFF
NAMES: Final = (b"a", b"b")
SIZES: Final = (0, 1, 40, 200)


@frozen
class Queue:
    """``soft_limit`` is that of a lazy one, None: it is not lazy."""

    soft_limit: int | None = None
    has_single_active: bool = False


@define(eq=False)
class Granted:
    """What a client may still get, counted by itself: from its own words and what it gets."""

    is_window: bool = True
    granted: tuple[float, float] = (0, 0)
    outstanding: tuple[float, float] = (0, 0)

    def grant(self, unit: int, value: int) -> None:
        more = float("inf") if value == INFINITE else value
        at = list(self.granted)
        at[unit] += more
        self.granted = at[0], at[1]

    def stop(self) -> None:
        self.granted = 0, 0

    def left(self) -> tuple[float, float]:
        if not self.is_window:
            return self.granted
        return self.granted[0] - self.outstanding[0], self.granted[1] - self.outstanding[1]

    def get(self, size: int) -> tuple[float, float]:
        """What comes back with its completion."""
        count, room = self.left()
        assert count >= 1
        assert room >= size
        spent = tuple(
            0 if granted == float("inf") else cost
            for granted, cost in zip(self.granted, (1, size), strict=True)
        )
        if not self.is_window:
            self.granted = self.granted[0] - spent[0], self.granted[1] - spent[1]
            return 0, 0
        self.outstanding = self.outstanding[0] + spent[0], self.outstanding[1] + spent[1]
        return spent[0], spent[1]

    def complete(self, spent: tuple[float, float]) -> None:
        self.outstanding = self.outstanding[0] - spent[0], self.outstanding[1] - spent[1]


class Play:
    """A client with subscriptions on one queue; each message's body begins with its position."""

    def __init__(self, names: tuple[bytes, ...], queue: Queue, *, accept_mode: int = 0) -> None:
        self.stage = Stage(
            is_lazy=queue.soft_limit is not None,
            soft_limit=queue.soft_limit or 0,
            has_nacks=queue.has_single_active,
            has_single_active=queue.has_single_active,
        )
        self.accept_mode = accept_mode
        self.names = names
        self.granted = {name: Granted() for name in names}
        self.subscribed: set[bytes] = set()
        #: Positions by ids, of what the client has and has not settled.
        self.mine: dict[int, int] = {}
        #: What they cost, and whom: the subscription may be over, and its name another one's.
        self.spent: dict[int, tuple[Granted, tuple[float, float]]] = {}
        self.times_accepted: Counter[int] = Counter()
        self.got: dict[bytes, list[int]] = {name: [] for name in names}
        self.published = 0
        #: Ids of flushes that are not complete, with their names, and what had been published by then.
        self.flushes: dict[int, tuple[bytes, int]] = {}
        self.cancels: dict[int, bytes] = {}
        self.stage.client.on_transfer = self._got
        self.stage.client.on_finish = self._finished

    def publish(self, size: int) -> None:
        self.published += 1
        assert self.stage.queue.publish(b"%06d" % self.published + bytes(size)) == self.published

    def subscribe(self, name: bytes) -> None:
        self.granted[name] = Granted()
        self.stage.say(subscribe(name, accept_mode=self.accept_mode))
        self.subscribed.add(name)
        self.stage.hear()

    def flush(self, name: bytes) -> None:
        # Commands wait for each other, but what is published does not.
        number = len(self.stage.client.finished)
        self.flushes[number] = name, self.published
        assert self.stage.say(amqp10.MessageFlush(destination=name)) == number

    def settle(self, numbers: list[int], how: type[amqp10.MessageAccept]) -> None:
        for number in numbers:
            position = self.mine.pop(number, None)
            if position is not None and how is not amqp10.MessageRelease:
                self.times_accepted[position] += 1
        self.stage.say(how(transfers=SequenceSet(tuple((number, number) for number in sorted(numbers)))))

    def complete(self, numbers: list[int]) -> None:
        for number in numbers:
            spent = self.spent.pop(number, None)
            if spent is not None:
                granted, cost = spent
                granted.complete(cost)
        self.stage.complete(*numbers)

    def quiet(self) -> None:
        """All that was asked is answered."""
        self.stage.hear()
        assert self.stage.client.violation is None
        assert not self.flushes

    def _got(self, transfer: Transfer) -> None:
        position = int(transfer.body[:6])
        assert position not in self.mine.values()
        assert not self.times_accepted[position]
        cost = self.granted[transfer.name].get(transfer.size)
        self.spent[transfer.number] = self.granted[transfer.name], cost
        self.got[transfer.name].append(position)
        if self.accept_mode:
            self.times_accepted[position] += 1
        else:
            self.mine[transfer.number] = position

    def _finished(self, number: int) -> None:
        flush = self.flushes.pop(number, None)
        if flush is None:
            return
        name, published = flush
        count, room = self.granted[name].left()
        # Whatever it is: the smallest message is larger than its position.
        fits_all = count > 0 and room > 400
        event(f"flush with {'credit left' if fits_all else 'none left'}")
        if fits_all and len(self.subscribed) == 1:
            seen = {*self.mine.values(), *self.times_accepted.keys()}
            assert set(range(1, published + 1)) <= seen
        self.granted[name].stop()

    def check_end(self) -> None:
        """All messages are somewhere, once."""
        queue = self.stage.queue
        with_broker = [message.position for message in queue.ready]
        unacked = [message.position for message, _ in queue.unacked.values()]
        everything = sorted([*with_broker, *unacked, *queue.accepted, *queue.rejected])
        assert everything == list(range(1, self.published + 1))
        assert sorted(self.times_accepted.elements()) == sorted([*queue.accepted, *queue.rejected])
        assert set(self.mine.values()) <= set(unacked)

    def drain(self) -> None:
        """Everything is settled and asked for, until there is nothing left."""
        for name in self.names:
            if name in self.subscribed:
                self.stage.say(amqp10.MessageCancel(destination=name))
                self.quiet()
        self.settle(list(self.mine), amqp10.MessageAccept)
        self.stage.say(subscribe(b"last"))
        self.granted[b"last"] = Granted(is_window=False, granted=(float("inf"), float("inf")))
        self.got[b"last"] = []
        self.stage.say(mode(0, b"last"), byte_credit(name=b"last"), messages(INFINITE, b"last"))
        self.quiet()
        self.settle(list(self.mine), amqp10.MessageAccept)
        self.quiet()
        self.check_end()
        assert self.stage.queue.unacked == {}
        assert self.stage.queue.ready == []


def _do(play: Play, data: DataObject, actions: list[str]) -> None:
    action = data.draw(st.sampled_from(actions))
    name = data.draw(st.sampled_from(play.names))
    stage, granted = play.stage, play.granted[name]
    match action:
        case "publish":
            for size in data.draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=6)):
                play.publish(size)
        case "hear":
            stage.hear(data.draw(st.integers(1, 8)))
        case "quiet":
            play.quiet()
        case "complete" if play.spent:
            play.complete(data.draw(st.lists(st.sampled_from(sorted(play.spent)), max_size=4, unique=True)))
        case "accept" | "release" | "reject" if play.mine:
            numbers = data.draw(
                st.lists(st.sampled_from(sorted(play.mine)), min_size=1, max_size=4, unique=True)
            )
            how = {
                "accept": amqp10.MessageAccept,
                "release": amqp10.MessageRelease,
                "reject": amqp10.MessageReject,
            }[action]
            play.quiet()
            play.settle(numbers, how)
        case _ if action not in ("flow", "stop", "flush", "mode", "cancel"):
            return
        case _ if name not in play.subscribed:
            play.quiet()
            play.subscribe(name)
        case "flow":
            unit = data.draw(st.integers(0, 1))
            value = data.draw(st.sampled_from((1, 2, 5, INFINITE) if unit == 0 else (50, 700, INFINITE)))
            play.quiet()
            granted.grant(unit, value)
            stage.say(amqp10.MessageFlow(destination=name, unit=unit, value=value))
        case "stop":
            play.quiet()
            granted.stop()
            stage.say(amqp10.MessageStop(destination=name))
        case "flush":
            play.quiet()
            play.flush(name)
        case "mode":
            play.quiet()
            granted.is_window = data.draw(st.booleans())
            stage.say(mode(int(granted.is_window), name))
        case "cancel":
            play.quiet()
            play.subscribed.discard(name)
            stage.say(amqp10.MessageCancel(destination=name))


EVERYTHING: Final = [
    *["publish", "hear", "flow", "flow", "flow", "complete", "accept", "release", "reject", "flush"],
    *["stop", "mode", "cancel", "quiet"],
]
LAZY: Final = (Queue(0), Queue(1), Queue(2), Queue(1, has_single_active=True))
QUEUES: Final = st.sampled_from((Queue(), *LAZY))
IN_ORDER: Final = [action for action in EVERYTHING if action not in ("release", "cancel")]


@given(st.data(), QUEUES)
def test_nothing_is_lost_or_comes_twice_and_credit_holds(data: DataObject, queue: Queue) -> None:
    play = Play(NAMES, queue)
    for _ in range(data.draw(st.integers(1, 40))):
        _do(play, data, EVERYTHING)
    play.quiet()
    play.check_end()
    play.drain()


@given(st.data(), QUEUES)
def test_order_is_kept(data: DataObject, queue: Queue) -> None:
    play = Play((b"a",), queue)
    for _ in range(data.draw(st.integers(1, 40))):
        _do(play, data, IN_ORDER)
    play.quiet()
    assert play.got[b"a"] == list(range(1, len(play.got[b"a"]) + 1))


@given(st.data())
def test_flush_is_complete_when_there_was_nothing_more(data: DataObject) -> None:
    play = Play((b"a",), data.draw(st.sampled_from(LAZY)))
    play.subscribe(b"a")
    for _ in range(data.draw(st.integers(1, 6))):
        for _ in range(data.draw(st.integers(0, 5))):
            _do(play, data, ["publish", "flow", "hear", "complete", "accept", "quiet"])
        play.quiet()
        play.granted[b"a"].grant(1, INFINITE)
        play.granted[b"a"].grant(0, 50)
        play.stage.say(byte_credit(name=b"a"), messages(50, b"a"))
        if data.draw(st.booleans()):
            play.stage.hear(4)
        play.publish(1)
        if data.draw(st.booleans()):
            play.quiet()
            play.publish(1)
        play.flush(b"a")
        for _ in range(data.draw(st.integers(0, 3))):
            play.publish(1)
            play.stage.hear(1)
        play.quiet()


@given(st.data())
def test_who_accepts_nothing_gets_everything_once(data: DataObject) -> None:
    play = Play(NAMES, data.draw(QUEUES), accept_mode=1)
    actions = [action for action in EVERYTHING if action not in ("accept", "release", "reject")]
    for _ in range(data.draw(st.integers(1, 40))):
        _do(play, data, actions)
    play.quiet()
    play.check_end()
