"""Plays stories in processes that are forked from this one: each begins in the same state."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import attrs

from tests.simulation.play import Outcome, play
from tests.simulation.story import Story

#: Real seconds that one story may take, for each virtual hour and at least.
_SLOWEST = 900.0
_PR_SET_PDEATHSIG = 1


@attrs.define(eq=False)
class _Player:
    """A process that plays a story."""

    story: Story
    pid: int
    pipe: int
    until: float
    said: bytearray = attrs.field(factory=bytearray)


def play_all(stories: Iterable[Story], jobs: int, now: Callable[[], float]) -> Iterator[Outcome]:
    """What became of each, as they end. ``now`` is real time, in seconds."""
    waiting, players = iter(stories), dict[int, _Player]()
    epoll = select.epoll()
    more = True
    try:
        while more or players:
            while more and len(players) < jobs:
                story = next(waiting, None)
                if story is None:
                    more = False
                    break
                player = _start(story, now())
                players[player.pipe] = player
                epoll.register(player.pipe, select.EPOLLIN)
            for fd, _ in epoll.poll(1.0):
                player = players[fd]
                data = os.read(fd, 1 << 20)
                player.said += data
                if not data:
                    epoll.unregister(fd)
                    del players[fd]
                    yield _end(player)
            for player in list(players.values()):
                if now() > player.until:
                    os.kill(player.pid, signal.SIGKILL)
    finally:
        for player in players.values():
            os.kill(player.pid, signal.SIGKILL)
            os.close(player.pipe)
            os.waitpid(player.pid, 0)
        epoll.close()


def play_alone(story: Story, now: Callable[[], float]) -> Outcome:
    """One, in a process of its own."""
    return next(play_all([story], 1, now))


def _start(story: Story, now: float) -> _Player:
    ours, theirs = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        os.close(theirs)
        return _Player(story, pid, ours, now + _SLOWEST * max(1.0, story.seconds / 3600))
    try:
        # It does not outlive who would hear of it.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.close(ours)
        data = memoryview(play(story).to_json().encode())
        while data:
            data = data[os.write(theirs, data) :]
    except BaseException as error:
        with suppress(Exception):
            sys.stderr.write(f"{error!r}\n")
    finally:
        os._exit(0)


def _end(player: _Player) -> Outcome:
    os.close(player.pipe)
    _pid, _status, used = os.wait4(player.pid, 0)
    if player.said:
        outcome = Outcome.from_json(player.said.decode())
        return attrs.evolve(outcome, cpu=used.ru_utime + used.ru_stime)
    why = "the process that played it has ended without a word, or took too long"
    return Outcome(player.story, why, why, "", player.story.seconds, {}, {}, [])
