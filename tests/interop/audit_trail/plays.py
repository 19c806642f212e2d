"""What is played: suites of tests, or a few programs, each through a gateway with further settings."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TypeAlias

import pika

from tests.interop.acceptance import addresses
from tests.interop.audit_trail.programs import PROGRAMS
from tests.interop.upstream.suites import Play, Suite
from tests.support.gateway import Gateway
from tests.support.rabbitmq import RabbitMQ

#: How each test of a selection (none: of all) ended, and when it ran: one after the other.
Player: TypeAlias = Callable[[Collection[str]], Mapping[str, Play]]

#: Given lines of configuration, a gateway with these. When it has ended, so have its records.
Stage: TypeAlias = Callable[[str], AbstractContextManager[Player]]

_CONFIG = """
listeners: [{name: main, bind: "127.0.0.1:{port}"}]
upstreams: [{name: rabbitmq, url: "amqp://%s"}]
admin: {bind: "127.0.0.1:{admin_port}"}
limits: {drainTimeout: 2s}
%s
"""


def stage_of(suite: Suite, *, quick: bool) -> Stage:
    """A suite, each time on a RabbitMQ of its own."""

    @contextlib.contextmanager
    def stage(settings: str) -> Iterator[Player]:
        with addresses(settings=settings) as at:
            yield lambda only: suite.play(at.gateway, only=only, quick=quick)

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
