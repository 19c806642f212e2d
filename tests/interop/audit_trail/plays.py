"""What is played: suites of tests, or a few programs, each through a gateway with further settings."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, TypeAlias

import pika

from tests.interop.acceptance import addresses
from tests.interop.audit_trail.programs import PROGRAMS
from tests.interop.upstream.suites import ROOT, Play, Suite, play
from tests.support.gateway import Gateway
from tests.support.rabbitmq import RabbitMQ

#: How each test of a selection (none: of all) ended, and when it ran: one after the other.
Player: TypeAlias = Callable[[Collection[str]], Mapping[str, Play]]

#: Given lines of configuration, a gateway with these. When it has ended, so have its records.
Stage: TypeAlias = Callable[[str], AbstractContextManager[Player]]

#: Which one to the broker.
Way: TypeAlias = Literal["gateway", "direct"]

#: This project's suites whose clients are given the way to the broker.
CLIENTS = ("clients", "amqp_tools", "kombu", "celery")

_CONFIG = """
listeners: [{name: main, bind: "127.0.0.1:{port}"}]
upstreams: [{name: rabbitmq, url: "amqp://%s"}]
admin: {bind: "127.0.0.1:{admin_port}"}
limits: {drainTimeout: 2s}
%s
"""


def stage_of(suites: Sequence[Suite], *, quick: bool, way: Way = "gateway") -> Stage:
    """Libraries' suites, each time on a RabbitMQ of their own."""

    @contextlib.contextmanager
    def stage(settings: str) -> Iterator[Player]:
        with addresses(settings=settings) as both:
            at = both.gateway if way == "gateway" else both.direct
            yield in_turn(
                {
                    suite.package: lambda only, suite=suite: suite.play(at, only=only, quick=quick)
                    for suite in suites
                }
            )

    return stage


def stage_of_clients(way: Way = "gateway", suites: Sequence[str] = CLIENTS) -> Stage:
    """This project's suites of clients, on a RabbitMQ and a gateway that they start themselves."""

    @contextlib.contextmanager
    def stage(settings: str) -> Iterator[Player]:
        pytest = [sys.executable, "-m", "pytest", "-p", "tests.interop.upstream.outcomes", f"--route={way}"]
        environment = {"AMQPGATE_TEST_SETTINGS": settings}

        def play_clients(only: Collection[str]) -> dict[str, Play]:
            # Tests have the way in their names: they are called as through the gateway.
            wanted = [_on_the_way(way, test) for test in only] or [
                f"tests/interop/test_{suite}.py" for suite in suites
            ]
            plays = play(pytest, wanted, ROOT, environment, "clients")
            return {_on_the_way("gateway", test): one for test, one in plays.items()}

        yield in_turn({"clients": play_clients})

    return stage


def _on_the_way(way: Way, test: str) -> str:
    return re.sub(r"(?<=[\[-])(gateway|direct)(?=[\]-])", way, test)


def in_turn(players: Mapping[str, Player]) -> Player:
    """All of them, one after the other. Names of tests begin with whose they are."""

    def play_all(only: Collection[str]) -> dict[str, Play]:
        plays: dict[str, Play] = {}
        for name, player in players.items():
            mine = [test.removeprefix(f"{name} ") for test in only if test.startswith(f"{name} ")]
            if mine or not only:
                plays |= {f"{name} {test}": one for test, one in player(mine).items()}
        return plays

    return play_all


def stages_in_turn(stages: Sequence[Stage]) -> Stage:
    """All of them, each set up when the one before it has ended."""

    @contextlib.contextmanager
    def stage(settings: str) -> Iterator[Player]:
        def play_all(only: Collection[str]) -> dict[str, Play]:
            plays: dict[str, Play] = {}
            for stage in stages:
                with stage(settings) as player:
                    plays |= player(only)
            return plays

        yield play_all

    return stage


def stage_of_programs(rabbitmq: RabbitMQ) -> Stage:
    """The programs, each time on a fresh virtual host."""

    @contextlib.contextmanager
    def stage(settings: str) -> Iterator[Player]:
        rabbitmq.fresh_vhost("trail")
        gateway = Gateway(config=_CONFIG % (rabbitmq.address, settings))
        gateway.start()
        address = pika.URLParameters(gateway.url + "trail")
        try:
            yield lambda only: {name: _play(name, address) for name in PROGRAMS if not only or name in only}
        finally:
            assert gateway.stop().code == 0

    return stage


def _play(name: str, address: pika.URLParameters) -> Play:
    began, outcome = time.time(), "passed"
    connection = pika.BlockingConnection(address)
    try:
        PROGRAMS[name](connection)
    except (pika.exceptions.AMQPError, AssertionError):
        outcome = "failed"
    finally:
        with contextlib.suppress(pika.exceptions.AMQPError):
            connection.close()
    return Play(outcome, began, time.time())
