"""Accepting connections: what one of them does wrong, and when the socket ends."""

from __future__ import annotations

import errno
import math
import select
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar, TypeVarTuple

import attrs
import pytest
import trio

from amqpgate.datapath import build, reserve
from amqpgate.gateway.transport import listener as listener_module
from amqpgate.gateway.transport.fiber import Fiber, Scheduled
from amqpgate.gateway.transport.listener import BREATH, MOST_ACCEPTED, Accepting, ListeningSocket

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

pytestmark = pytest.mark.usefixtures("as_it_refuses")


class Refusing(socket.socket):
    """A listening socket whose accept fails so often, then gives so many connections, and then none."""

    errors: list[Exception]
    left: int
    clients: list[socket.socket]

    def next(self) -> tuple[socket.socket, tuple[str, int]] | None:
        if self.errors:
            raise self.errors.pop(0)
        if not self.left:
            return None
        self.left -= 1
        # setsockopt(TCP_NODELAY) needs TCP.
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.clients.append(socket.create_connection(server.getsockname()))
            return server.accept()[0], ("127.0.0.1", 5)


@pytest.fixture
def as_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "accept", Refusing.next)


@attrs.define(eq=False)
class Schedule:
    """Notes what is asked of it."""

    epoll: select.epoll = attrs.field(factory=select.epoll)
    waiting: dict[int, Scheduled] = attrs.field(factory=dict)
    soon: list[Scheduled] = attrs.field(factory=list)
    #: When the first one looks at its deadlines.
    at: float = math.inf

    def watch(self, fd: int, one: Scheduled, events: int) -> None:
        self.waiting[fd] = one

    def unwatch(self, fd: int) -> None:
        self.waiting.pop(fd, None)

    def resume_soon(self, one: Scheduled) -> None:
        if one.queue():
            self.soon.append(one)

    def look_at(self, one: Scheduled, deadline: float) -> None:
        self.at = deadline

    def do(self, fiber: Fiber, async_fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> Awaitable[T]:
        raise NotImplementedError


@attrs.define(eq=False)
class Stage:
    sock: Refusing
    schedule: Schedule
    is_paced: bool = False
    accepting: Accepting = attrs.field(init=False)
    taken: list[str] = attrs.field(factory=list)
    broken: list[Exception] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.accepting = Accepting(
            self.schedule, math.inf, ListeningSocket(self.sock, self.is_paced), self.enter, self.broken.append
        )

    def enter(self, connection: socket.socket, address: str) -> None:
        connection.close()
        self.taken.append(address)

    @property
    def is_watched(self) -> bool:
        return self.sock.fileno() in self.schedule.waiting


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Refusing() as sock:
        sock.errors, sock.left, sock.clients = [], 0, []
        yield Stage(sock, Schedule())
        for client in sock.clients:
            client.close()


def failed(code: int) -> OSError:
    return OSError(code, errno.errorcode[code])


@pytest.mark.parametrize(
    "code",
    [errno.ECONNABORTED, errno.EPROTO, errno.EPERM, errno.ENETDOWN, errno.EHOSTUNREACH],
)
def test_what_happens_to_one_connection_is_its_own(stage: Stage, code: int) -> None:
    stage.sock.errors, stage.sock.left = [failed(code), failed(code)], 1
    assert not stage.accepting.proceed()
    assert stage.taken == ["127.0.0.1:5"]
    assert (stage.is_watched, stage.schedule.soon, stage.broken) == (True, [], [])


@pytest.mark.parametrize(
    "error",
    [
        *map(failed, [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM]),
        MemoryError(),
        SystemError("no exception set"),
    ],
    ids=repr,
)
async def test_where_there_is_no_room_it_waits_for_some(
    stage: Stage, error: Exception, autojump_clock: trio.testing.MockClock
) -> None:
    assert not stage.accepting.proceed()
    stage.sock.errors, stage.sock.left = [error], 1
    assert not stage.accepting.proceed()
    # Nobody would look at what epoll says all the time.
    assert (stage.taken, stage.is_watched) == ([], False)
    assert stage.schedule.at == pytest.approx(trio.current_time() + BREATH)
    stage.accepting.look(stage.schedule.at)
    assert stage.schedule.soon == [stage.accepting]
    assert not stage.accepting.proceed()
    assert (stage.taken, stage.is_watched) == (["127.0.0.1:5"], True)


async def test_nobody_is_accepted_while_memory_is_short(
    stage: Stage, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [False, False, True]
    monkeypatch.setattr(reserve, "is_short", lambda: answers.pop())
    stage.sock.left = 1
    assert not stage.accepting.proceed()
    assert (stage.taken, stage.is_watched) == ([], False)
    assert stage.schedule.at < math.inf
    assert not stage.accepting.proceed()
    assert stage.taken == ["127.0.0.1:5"]


def test_where_there_is_no_memory_to_wait_it_goes_on(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def wants(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(trio, "current_time", wants)
    stage.sock.errors = [MemoryError()]
    assert not stage.accepting.proceed()
    assert stage.schedule.soon == [stage.accepting]


def test_others_have_their_turn(stage: Stage) -> None:
    stage.sock.left = MOST_ACCEPTED + 1
    assert not stage.accepting.proceed()
    assert len(stage.taken) == MOST_ACCEPTED
    assert stage.schedule.soon == [stage.accepting]
    assert not stage.accepting.proceed()
    assert len(stage.taken) == MOST_ACCEPTED + 1


def test_it_ends_with_its_socket(stage: Stage) -> None:
    stage.sock.errors = [failed(errno.EBADF)]
    assert stage.accepting.proceed()
    assert [str(error) for error in stage.broken] == ["[Errno 9] EBADF"]
    assert stage.sock.fileno() < 0


def test_a_connection_that_is_not_taken_in_is_closed_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> None:
        raise ZeroDivisionError

    stage.accepting.enter, stage.sock.left = breaks, 1
    assert not stage.accepting.proceed()
    assert stage.sock.clients[0].recv(1) == b""
    assert (stage.is_watched, stage.broken) == (True, [])


def test_who_was_let_in_by_the_kernel_is_taken_before_the_end(stage: Stage) -> None:
    assert not stage.accepting.proceed()
    stage.sock.left = 2
    stage.accepting.cancel()
    assert stage.schedule.soon == [stage.accepting]
    assert stage.accepting.proceed()
    assert len(stage.taken) == 2
    assert (stage.schedule.waiting, stage.sock.fileno()) == ({}, -1)


@pytest.mark.parametrize("error", [MemoryError(), failed(errno.EMFILE)], ids=repr)
def test_its_socket_closes_though_others_cannot_be_taken(stage: Stage, error: Exception) -> None:
    stage.sock.errors = [error]
    stage.accepting.cancel()
    assert stage.accepting.proceed()
    assert stage.sock.fileno() < 0


@pytest.mark.parametrize("is_paced", [False, True])
def test_a_connection_is_paced_where_its_listening_socket_is(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, is_paced: bool
) -> None:
    unpaced: list[str] = []
    monkeypatch.setattr(listener_module, "unpace", lambda _, peer: unpaced.append(peer))
    stage.sock.left = 2
    Stage(stage.sock, Schedule(), is_paced).accepting.proceed()
    assert unpaced == ["127.0.0.1"] * 2 * is_paced
