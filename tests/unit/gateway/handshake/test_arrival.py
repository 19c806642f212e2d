"""What a conversation makes of what has begun elsewhere."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.papers import Papers

MakeStage = Callable[..., Stage]


@pytest.fixture
def stage(make_stage: MakeStage, papers: Papers) -> Stage:
    return make_stage(
        listener=f"tls: {{{papers.make('gateway', 'localhost')}}}", limits="handshakeTimeout: 1s"
    )


def test_who_speaks_no_tls_is_told_nothing(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "amqpgate")
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER * 20)
    eventually(lambda: stage.running.outcomes() == {"handshake_failed": 1})
    assert "client: [SSL: " in caplog.text


def test_half_a_handshake_has_a_deadline(stage: Stage) -> None:
    client = stage.client()
    client.raw(b"\x16\x03\x01")
    eventually(lambda: stage.running.outcomes() == {"handshake_timeout": 1})


def test_why_a_client_has_left_is_told(make_stage: MakeStage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "amqpgate")
    stage = make_stage()
    client = stage.client()
    client.reset()
    eventually(lambda: stage.running.outcomes() == {"handshake_failed": 1})
    assert f"client: [Errno {errno.ECONNRESET}] {os.strerror(errno.ECONNRESET)}" in caplog.text
