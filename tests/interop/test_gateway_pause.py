"""Routes that are paused: new connections wait, so many and so long; those that are open stay."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pika
import pika.exceptions
import pytest
from click.testing import CliRunner, Result

from amqpgate.cli import main
from tests.interop.pair import GREEN, Pair, colour, make_pair, parameters, routed, where, write
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ

BLUE = "upstream: {cluster: blue}"
#: Chosen by what the client says, and by what is known before: each has a way of its own.
MATCHES = ["match: {vhosts: [/]}", "match: {listeners: [main]}"]


@pytest.fixture(scope="module")
def pair(rabbitmq: RabbitMQ) -> Iterator[Pair]:
    yield from make_pair(rabbitmq)


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("open sesame\n")
    return file


def route(gateway: Gateway, token: Path, *words: str) -> Result:
    """`amqpgate route ...`"""
    admin = f"{gateway.host}:{gateway.admin_port}"
    return CliRunner().invoke(main, ["route", *words, "--admin", admin, "--token-file", str(token)])


def listed(gateway: Gateway, token: Path) -> str:
    return " ".join(route(gateway, token, "list").stdout.split())


@pytest.mark.parametrize("match", MATCHES)
def test_a_move_from_blue_to_green(pair: Pair, tmp_path: Path, token: Path, match: str) -> None:
    """Paused, the route changed, and resumed: nobody sees an error, and who came meanwhile is on green."""
    with (
        routed(pair, tmp_path, f"{match}, {BLUE}", admin=f", tokenFile: {token}") as gateway,
        ThreadPoolExecutor(3) as clients,
    ):
        staying = pika.BlockingConnection(parameters(gateway.port))
        assert listed(gateway, token) == "r0 open 0 waiting blue"
        assert route(gateway, token, "pause", "r0").stdout == "paused\n"
        coming = [clients.submit(where, gateway) for _ in range(3)]
        try:
            eventually(lambda: listed(gateway, token) == "r0 paused 3 waiting blue")
            assert colour(staying) == "blue"

            write(tmp_path / "policies", f"{match}, {GREEN}")
            gateway.child.signal(signal.SIGHUP)
            eventually(lambda: listed(gateway, token) == "r0 paused 3 waiting green")
            assert not any(one.done() for one in coming), "a reload does not resume what an operator paused"
        finally:
            resumed = route(gateway, token, "resume", "r0")
        assert resumed.stdout == "resumed\n"
        assert [one.result() for one in coming] == ["green"] * 3
        assert colour(staying) == "blue"
        staying.close()
        assert listed(gateway, token) == "r0 open 0 waiting green"


@pytest.mark.parametrize("match", MATCHES)
def test_too_long_and_too_many(pair: Pair, tmp_path: Path, token: Path, match: str) -> None:
    paused = f"{match}, {BLUE}, paused: true"
    with (
        routed(
            pair, tmp_path, f"{paused}, pause: {{timeout: 300ms}}", admin=f", tokenFile: {token}"
        ) as gateway,
        ThreadPoolExecutor(1) as clients,
    ):
        with pytest.raises(pika.exceptions.AMQPConnectionError) as late:
            where(gateway)
        assert "is paused, and was not resumed in time" in words(late.value)

        write(tmp_path / "policies", f"{paused}, pause: {{most: 1}}")
        gateway.child.signal(signal.SIGHUP)
        eventually(lambda: "reloaded" in gateway.child.output())
        waiting = clients.submit(where, gateway)
        try:
            eventually(lambda: "1 waiting" in listed(gateway, token))
            with pytest.raises(pika.exceptions.AMQPConnectionError) as many:
                where(gateway)
        finally:
            # The document is changed: that resumes it, too.
            write(tmp_path / "policies", f"{match}, {BLUE}")
            gateway.child.signal(signal.SIGHUP)
        assert "too many wait for it already" in words(many.value)
        assert waiting.result() == "blue"


def words(error: BaseException | None) -> str:
    """Of an error of pika's, which may have been caused by another."""
    return f"{error!r} {words(error.__cause__ or error.__context__)}" if error is not None else ""


@pytest.mark.parametrize("match", MATCHES)
def test_waiting_is_not_the_clients_time(pair: Pair, tmp_path: Path, token: Path, match: str) -> None:
    with (
        routed(
            pair,
            tmp_path,
            f"{match}, {BLUE}, paused: true",
            admin=f", tokenFile: {token}",
            limits=", handshakeTimeout: 2s",
        ) as gateway,
        ThreadPoolExecutor(1) as clients,
    ):
        waiting = clients.submit(where, gateway)
        eventually(lambda: "1 waiting" in listed(gateway, token))
        time.sleep(2.5)
        assert route(gateway, token, "resume", "r0").exit_code == 0
        assert waiting.result() == "blue"


def test_who_may_not_and_what_is_not_there(pair: Pair, tmp_path: Path, token: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("close sesame")
    with routed(pair, tmp_path, f"match: {{}}, {BLUE}", admin=f", tokenFile: {token}") as gateway:
        for action in (["list"], ["pause", "r0"], ["resume", "r0"]):
            result = route(gateway, wrong, *action)
            assert (result.exit_code, "a bearer token is needed" in result.stderr) == (1, True)
        result = route(gateway, token, "pause", "r1")
        assert (result.exit_code, "there is no route of that name" in result.stderr) == (1, True)
        assert listed(gateway, token) == "r0 open 0 waiting blue"
    with routed(pair, tmp_path, f"match: {{}}, {BLUE}") as gateway:
        result = route(gateway, token, "pause", "r0")
        assert (result.exit_code, "set admin.tokenFile" in result.stderr) == (1, True)
        with contextlib.closing(pika.BlockingConnection(parameters(gateway.port))) as connection:
            assert colour(connection) == "blue"


def test_several_workers_are_one(pair: Pair, tmp_path: Path, token: Path) -> None:
    """All pause, and so does one that is born later."""
    with (
        routed(
            pair,
            tmp_path,
            f"match: {{vhosts: [/]}}, {BLUE}",
            admin=f", tokenFile: {token}",
            top="workers: 2",
        ) as gateway,
        ThreadPoolExecutor(8) as clients,
    ):
        eventually(lambda: listed(gateway, token) == "r0 open 0 waiting blue")
        assert route(gateway, token, "pause", "none").exit_code == 1
        assert route(gateway, token, "pause", "r0").stdout == "paused\n"
        before = workers(gateway)
        os.kill(min(before), signal.SIGKILL)
        eventually(lambda: len(workers(gateway) - before) == 1)
        # It answers once it serves.
        eventually(lambda: listed(gateway, token) == "r0 paused 0 waiting blue")
        coming = [clients.submit(where, gateway) for _ in range(8)]
        try:
            eventually(lambda: listed(gateway, token) == "r0 paused 8 waiting blue")
        finally:
            assert route(gateway, token, "resume", "r0").exit_code == 0
        assert [one.result() for one in coming] == ["blue"] * 8


def workers(gateway: Gateway) -> set[int]:
    lists = Path(f"/proc/{gateway.child.pid}/task").glob("*/children")
    return {int(pid) for one in lists for pid in one.read_text().split()}
