"""Qpid's tests of brokers of AMQP 0-10, and of its messaging API.

Through the gateway to RabbitMQ, which speaks none of it, each ends as the table says.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.interop.qpid.expected_0_10 import OUTCOMES, QUICK, WHY, reasons
from tests.support.gateway import Gateway
from tests.support.missing import missing
from tests.support.rabbitmq import RabbitMQ

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CACHE = ROOT / ".cache" / "qpid"

#: Seconds. The longest test takes 15; a client that hears nothing waits for ever.
PATIENCE = 60


@pytest.fixture(scope="session")
def command() -> list[str]:
    """Python 2.7, the program, and what it needs."""
    tools = list(CACHE.glob("qpid-tools-*/"))
    if not (CACHE / "python").exists() or not tools:
        missing("Qpid's tests are not here (tools/test-tools.sh gets them, with Python 2.7 and pip)")
    (source,) = CACHE.glob("qpid-python-*/")
    python = (CACHE / "python").read_text().strip()
    return [python, str(HERE / "run_0_10.py"), str(source), str(tools[0])]


def test_the_table_has_them_all(command: list[str]) -> None:
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert sorted(listed.stdout.split()) == sorted(OUTCOMES)
    assert OUTCOMES.keys() >= QUICK


def test_a_hundred_tests_of_brokers_pass_and_the_documents_say_how_many() -> None:
    brokers = [why for name, why in OUTCOMES.items() if name.startswith("broker_0_10.")]
    others = [why for name, why in OUTCOMES.items() if not name.startswith("broker_0_10.")]
    assert len(brokers) == 233
    assert brokers.count(None) >= 100
    page = " ".join((ROOT / "docs" / "amqp-0-10.md").read_text().split())
    assert f"Of the {len(brokers)} tests of brokers" in page
    assert f"{brokers.count(None)} pass through the gateway" in page
    assert f"of the {len(others)} of its messaging API that talk to a broker {others.count(None)}." in page
    # `python -m tests.interop.qpid.expected_0_10` prints them.
    assert " ".join(reasons().split()) in page
    assert WHY.keys() == set(OUTCOMES.values()) - {None}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in OUTCOMES]
)
def test_it_ends_as_expected(command: list[str], gateway: Gateway, rabbitmq: RabbitMQ, name: str) -> None:
    """None hangs."""
    vhost = "qpid-broker-0-10"
    rabbitmq.fresh_vhost(vhost)
    try:
        done = subprocess.run(
            [*command, str(gateway.port), vhost, name], capture_output=True, text=True, timeout=PATIENCE
        )
    finally:
        rabbitmq.eval(f'rabbit_vhost:delete(<<"{vhost}">>, <<"guest">>).')
    outcome, why, trace = json.loads(done.stdout.splitlines()[-1])
    expected = OUTCOMES[name]
    if expected is None:
        assert outcome == "passed", trace
    else:
        assert outcome != "passed", f"it passes; the table says: {WHY[expected].reason}"
        assert WHY[expected].words in why, trace
