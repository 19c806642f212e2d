"""Qpid's tests of brokers of AMQP 0-10 and of its messaging API, through the gateway on qpidd: all pass."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest

from tests.interop.brokers import running
from tests.interop.qpid import test_broker_0_10
from tests.interop.qpid.expected_0_10 import OUTCOMES
from tests.support import qpidd
from tests.support.gateway import Gateway

pytestmark = pytest.mark.slow

#: Seconds. A client that hears nothing waits for ever.
PATIENCE = 60

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: qpidd, host: 127.0.0.1, port: {port}, version: 0-10}}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 1s}}
"""

command = test_broker_0_10.command


@pytest.fixture(scope="module")
def anyones() -> Iterator[qpidd.Qpidd]:
    """One that takes any login."""
    with qpidd.running() as broker:
        yield broker


@pytest.fixture(scope="module")
def native(anyones: qpidd.Qpidd) -> Iterator[Gateway]:
    """It relays what both sides speak."""
    with running(CONFIG.format(port=anyones.port)) as gateway:
        yield gateway
        log = gateway.child.output()
        assert "Traceback" not in log, log[-4000:]


@pytest.mark.parametrize("name", OUTCOMES)
def test_it_passes(command: list[str], anyones: qpidd.Qpidd, native: Gateway, name: str) -> None:
    if ".dtx." in name:
        # Tests that run alone choose the same ids of transactions, and leave some behind.
        anyones.restart()
    done = subprocess.run(
        [*command, str(native.port), "/", name], capture_output=True, text=True, timeout=PATIENCE
    )
    outcome, _, trace = json.loads(done.stdout.splitlines()[-1])
    assert outcome == "passed", trace
