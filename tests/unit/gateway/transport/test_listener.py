"""Accepting connections: what one of them does wrong, and when the socket ends."""

from __future__ import annotations

import errno
import socket

import pytest
import trio

from amqpgate.datapath import build, reserve
from amqpgate.gateway.transport import listener as listener_module
from amqpgate.gateway.transport.listener import accept


class Refusing:
    """A listening socket whose accept fails so often before it succeeds."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.near, self.far = socket.socketpair()

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        if self.codes:
            code = self.codes.pop(0)
            raise OSError(code, errno.errorcode[code])
        near = self.near
        # setsockopt(TCP_NODELAY) needs TCP.
        server = socket.create_server(("127.0.0.1", 0))
        with server, socket.create_connection(server.getsockname()):
            near.close()
            return server.accept()[0], ("127.0.0.1", 5)


@pytest.fixture(autouse=True)
def as_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "accept", Refusing.accept)


@pytest.mark.parametrize(
    "code",
    [
        errno.ECONNABORTED,
        errno.EPROTO,
        errno.EPERM,
        errno.ENETDOWN,
        errno.EHOSTUNREACH,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOBUFS,
        errno.ENOMEM,
    ],
)
async def test_accept_outlives_what_happens_to_one_connection(
    code: int, autojump_clock: trio.testing.MockClock
) -> None:
    listening = Refusing(code, code)
    connection, address = await accept(listening)  # type: ignore[arg-type]
    assert address == "127.0.0.1:5"
    connection.close()
    listening.far.close()
    # Where there was no room, it has waited for some.
    expected = 2 * listener_module.BREATH if code in listener_module._NO_ROOM else 0
    assert autojump_clock.current_time() == pytest.approx(expected, abs=1e-6)


async def test_accept_does_not_outlive_its_socket() -> None:
    listening = Refusing(errno.EBADF)
    with pytest.raises(OSError, match="EBADF"):
        await accept(listening)  # type: ignore[arg-type]
    listening.near.close()
    listening.far.close()


async def test_nobody_is_accepted_while_memory_is_short(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [False, True, True]
    monkeypatch.setattr(reserve, "is_short", lambda: answers.pop())
    listening = Refusing()
    connection, _ = await accept(listening)  # type: ignore[arg-type]
    connection.close()
    listening.far.close()
    assert autojump_clock.current_time() == pytest.approx(2 * listener_module.BREATH, abs=1e-6)
