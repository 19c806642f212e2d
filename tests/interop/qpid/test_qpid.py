"""Every test of Qpid's suite, on both ways: it ends as the table says."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.interop.qpid.expected import EITHER, OUTCOMES, WAYS, WHY, names
from tests.support.missing import missing
from tests.support.rabbitmq import RabbitMQ
from tests.support.routes import Route

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CACHE = ROOT / ".cache" / "qpid"
SPECIFICATIONS = {"0-8": "amqp-0-8-qpid-stripped.xml", "0-9": "amqp-0-9-qpid-stripped.xml"}

#: Seconds. Its longest test takes 12; a client that hears nothing waits for ever.
PATIENCE = 40

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def command() -> list[str]:
    """Python 2.7, the program, and the tests."""
    if not (CACHE / "python").exists():
        missing("Qpid's tests are not here (tools/test-tools.sh gets them, with Python 2.7 and pip)")
    (source,) = CACHE.glob("qpid-python-*/")
    return [(CACHE / "python").read_text().strip(), str(HERE / "run_one.py"), str(source)]


def test_the_table_has_them_all(command: list[str]) -> None:
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert sorted(listed.stdout.split()) == sorted(names())


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (version, name)
        for version in SPECIFICATIONS
        for name in names()
        if version == "0-9" or name.startswith("broker_0_8.")
    ],
)
def test_it_ends_as_expected(
    command: list[str], route: Route, rabbitmq: RabbitMQ, version: str, name: str
) -> None:
    """None hangs through the gateway."""
    vhost = "qpid"
    rabbitmq.fresh_vhost(vhost)
    arguments = [SPECIFICATIONS[version], str(route.port), vhost, name]
    try:
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=PATIENCE)
        outcome, why = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        outcome, why = "hangs", "hangs"
    else:
        # While it waits in vain RabbitMQ may send a heartbeat, of which this client has never heard.
        why = why.replace("KeyError: 'frame_heartbeat'", "hangs")
    finally:
        rabbitmq.eval(f'rabbit_vhost:delete(<<"{vhost}">>, <<"guest">>).')
    expected = OUTCOMES[name][WAYS.index((version, route.name))]
    if expected in EITHER and outcome == "passed":
        return
    if expected is None:
        assert (outcome, why) == ("passed", "")
    else:
        assert outcome != "passed", f"it passes; the table says: {WHY[expected].reason}"
        assert WHY[expected].words in why, why
