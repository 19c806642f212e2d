"""Starts on one port take turns: who waits for whom, and who is not waited for."""

from __future__ import annotations

import logging
import os
import socket
import threading

import pytest

from amqpgate.cli import claims
from amqpgate.cli.failures import Failure
from tests.support.ports import free_port

#: A user who this process is not.
OTHER = 4242


def hold(port: int, user: int) -> socket.socket:
    """A socket of this process that has the claim of a user; it does not listen."""
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(f"\0amqpgate/start/{user}/{port}")
    return sock


@pytest.fixture(autouse=True)
def warnings(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "amqpgate.cli.claims")


def test_the_second_is_told_and_waits_for_the_first(caplog: pytest.LogCaptureFixture) -> None:
    port, order = free_port(), []

    def second() -> None:
        with claims.claimed([port]):
            order.append("second")

    with claims.claimed([port]):
        thread = threading.Thread(target=second)
        thread.start()
        while not caplog.messages:
            thread.join(0.01)
        order.append("first")
    thread.join(20)
    assert order == ["first", "second"]
    pid = os.getpid()
    assert caplog.messages == [f"port {port}: another amqpgate (process {pid}) is starting: waiting"]


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_PATIENCE", 0.1)
    port = free_port()
    with (
        claims.claimed([port]),
        pytest.raises(Failure, match=f"another amqpgate has been starting on port {port} for 0.1 s"),
    ):
        claims.claimed([port])
    claims.claimed([port]).close()


def test_another_user_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Any local user may take the name."""
    port = free_port()
    with hold(port, OTHER) as foreign:
        foreign.listen()
        monkeypatch.setattr(os, "geteuid", lambda: OTHER)
        claims.claimed([port]).close()
    told = f"port {port}: user {os.getuid()} (process {os.getpid()}) has the turn to start: not waited for"
    assert caplog.messages == [told]


def test_who_does_not_show_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(claims, "_UNSEEN", 0.1)
    port = free_port()
    with hold(port, os.geteuid()):
        claims.claimed([port]).close()
    assert caplog.messages == [
        f"port {port}: somebody who does not show has the turn to start: not waited for"
    ]


def test_what_is_not_taken_is_nobodys() -> None:
    port, other = free_port(), free_port()
    with claims.claimed([other, 0, port, port]), claims.claimed([free_port()]):
        pass
    claims.claimed([other, 0, port]).close()
