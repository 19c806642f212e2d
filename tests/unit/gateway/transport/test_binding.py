"""Sockets that are bound, and do not listen."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from amqpgate.config import Address
from amqpgate.errors import ListenError
from amqpgate.gateway.transport.binding import bind_all


async def test_all_addresses_of_a_name_have_one_port_that_others_of_the_gateway_share() -> None:
    with ExitStack() as stack:
        sockets = [stack.enter_context(one) for one in await bind_all(Address("localhost", 0), "x")]
        port = sockets[0].getsockname()[1]
        assert {one.getsockname()[1] for one in sockets} == {port}
        with socket.socket() as client, pytest.raises(ConnectionRefusedError):
            client.connect(("127.0.0.1", port))
        for one in await bind_all(Address("localhost", port), "x"):
            stack.enter_context(one)


async def test_a_port_of_others_is_an_error_that_says_which() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = f"listener x: cannot listen on 127.0.0.1:{port}: Address already in use; stop what is there"
        with pytest.raises(ListenError, match=f"^{said}"):
            await bind_all(Address("127.0.0.1", port), "listener x")
