"""Connections to addresses and to names, from fibers and tasks."""

from __future__ import annotations

import errno
import socket
from collections.abc import Coroutine

import pytest

from amqpgate.gateway.transport.connecting import connect
from tests.support.fibers import running_fibers
from tests.support.ports import free_port


async def _in_a_task(work: Coroutine[object, None, object]) -> None:
    await work


async def _in_a_fiber(work: Coroutine[object, None, object]) -> None:
    async with running_fibers() as fibers:
        await fibers.start_soon(work).over()


BOTH = pytest.mark.parametrize("run", [_in_a_task, _in_a_fiber])


@BOTH
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_it_connects(run: object, host: str) -> None:
    assert run in (_in_a_task, _in_a_fiber)
    found: list[tuple[object, bool]] = []

    async def works() -> None:
        with await connect(host, port) as sock:
            found.append((sock.getpeername()[1], sock.getblocking()))

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        await (_in_a_task if run is _in_a_task else _in_a_fiber)(works())
    assert found == [(port, False)]


@BOTH
async def test_nobody_is_there(run: object) -> None:
    port, failed = free_port(), []

    async def works() -> None:
        try:
            await connect("127.0.0.1", port)
        except OSError as error:
            failed.append(error.errno)

    await (_in_a_task if run is _in_a_task else _in_a_fiber)(works())
    assert failed == [errno.ECONNREFUSED]
