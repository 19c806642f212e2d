"""What is stepped through waits for its sockets, and hears of its end."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterator

import attrs
import pytest
import trio
import trio.testing

from amqpgate.gateway.transport.fiber import Interrupted
from amqpgate.gateway.transport.fibers import Fibers
from amqpgate.gateway.transport.stepper import Stepper
from tests.support.fibers import running_fibers


@attrs.define(eq=False)
class Steps(Stepper):
    """Counts them, and is over when it is told."""

    taken: int = attrs.field(default=0, init=False)
    is_last: bool = attrs.field(default=False, init=False)

    def proceed(self) -> bool:
        self.is_queued = False
        self.taken += 1
        return self.is_last or self.is_cancelled or self.is_interrupted


Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pairs() -> Iterator[tuple[Pair, Pair]]:
    with contextlib.ExitStack() as kept:
        made = [socket.socketpair() for _ in range(2)]
        for one, other in made:
            kept.enter_context(one)
            kept.enter_context(other)
        yield made[0], made[1]


@pytest.fixture
def fibers() -> Fibers:
    return Fibers()


def begun(fibers: Fibers) -> Steps:
    steps = Steps(fibers, 0.0)
    fibers.begin(steps)
    fibers.attend()
    assert steps.taken == 1
    return steps


def test_it_steps_on_when_its_socket_has_something(fibers: Fibers, pairs: tuple[Pair, Pair]) -> None:
    (near, far), _ = pairs
    steps = begun(fibers)
    steps.wait_for(near)
    fibers.attend()
    assert steps.taken == 1
    far.send(b"x")
    fibers.attend()
    assert steps.taken == 2
    # It is watched still, and not armed again.
    fibers.attend()
    assert steps.taken == 3
    near.recv(1)
    fibers.attend()
    assert steps.taken == 3


def test_who_speaks_out_of_turn_is_not_watched_until_it_is_waited_for(
    fibers: Fibers, pairs: tuple[Pair, Pair]
) -> None:
    (near, far), (other, its_peer) = pairs
    steps = begun(fibers)
    steps.wait_for(near)
    steps.wait_for(other)
    far.send(b"x")
    fibers.attend()
    assert steps.taken == 2
    steps.wait_alone_for(other)
    fibers.attend()
    assert steps.taken == 2
    its_peer.send(b"y")
    fibers.attend()
    assert steps.taken == 3
    other.recv(1)
    steps.wait_for(near)
    fibers.attend()
    assert steps.taken == 4


def test_it_waits_until_something_can_be_sent(fibers: Fibers, pairs: tuple[Pair, Pair]) -> None:
    (near, _), _ = pairs
    steps = begun(fibers)
    steps.wait_for(near, select.EPOLLOUT)
    fibers.attend()
    assert steps.taken == 2


def test_it_lets_go_of_its_sockets_when_it_is_over(fibers: Fibers, pairs: tuple[Pair, Pair]) -> None:
    (near, far), (other, _) = pairs
    steps = begun(fibers)
    steps.wait_for(near)
    steps.wait_for(other)
    steps.is_last = True
    far.send(b"x")
    fibers.attend()
    assert steps.is_over
    assert len(fibers) == 0
    assert not fibers.waiting
    fibers.attend()
    assert steps.taken == 2


def test_a_number_that_is_another_socket_by_now_is_left_alone(
    fibers: Fibers, pairs: tuple[Pair, Pair]
) -> None:
    (near, _), _ = pairs
    steps = begun(fibers)
    steps.wait_for(near)
    fd = near.fileno()
    near.close()
    steps.ignore(fd)
    assert not fibers.waiting


@pytest.mark.parametrize("how", ["cancel", "interrupt"])
def test_it_hears_of_its_end(fibers: Fibers, how: str) -> None:
    steps = begun(fibers)
    if how == "cancel":
        steps.cancel()
    else:
        steps.interrupt(Interrupted(None))
    assert (steps.is_cancelled, steps.is_interrupted) == (how == "cancel", how != "cancel")
    fibers.attend()
    assert steps.is_over


async def test_the_pump_watches_for_it(pairs: tuple[Pair, Pair]) -> None:
    (near, far), (other, its_peer) = pairs
    async with running_fibers() as fibers:
        steps = Steps(fibers, 0.0)
        fibers.begin(steps)
        await _until(steps, 1)
        steps.wait_for(near)
        steps.wait_for(other)
        assert not fibers.waiting
        its_peer.send(b"x")
        await _until(steps, 2)
        steps.wait_alone_for(near)
        told = steps.taken
        await trio.testing.wait_all_tasks_blocked()
        assert steps.taken == told
        # What it waits to send is the fibers' own to watch.
        steps.wait_alone_for(other, select.EPOLLOUT)
        assert list(fibers.waiting) == [other.fileno()]
        await _until(steps, told + 1)
        steps.wait_alone_for(near)
        steps.is_last = True
        far.send(b"x")
        await steps.over()
        assert len(fibers) == 0


def test_who_has_gone_on_since_the_pump_noticed_is_let_be(fibers: Fibers, pairs: tuple[Pair, Pair]) -> None:
    (near, _), (other, _) = pairs
    waits, ends = begun(fibers), begun(fibers)
    waits.wait_for(near, select.EPOLLOUT)
    ends.wait_for(other)
    ends.cancel()
    fibers.attend()
    taken = waits.taken, ends.taken
    fibers.come([waits, ends])
    assert (waits.taken, ends.taken) == taken
    assert ends.is_over


async def _until(steps: Steps, taken: int) -> None:
    with trio.fail_after(30):
        while steps.taken < taken:
            await trio.lowlevel.checkpoint()
