"""qpid-python's two APIs for AMQP 0-10, through the gateway to RabbitMQ, which speaks none of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.gateway import Gateway
from tests.support.missing import missing
from tests.support.rabbitmq import RabbitMQ

HERE = Path(__file__).parent
CACHE = HERE.parents[2] / ".cache" / "qpid"

#: Seconds. A client that hears nothing waits for ever.
PATIENCE = 60

SEEN = {
    "low_level": {
        "queue": ["q", 5, 0],
        "no queue": None,
        "exchanges": ["topic", "fanout", "direct"],
        "no exchange": True,
        "bound": [True, False],
        "bodies": ["m0", "m1", "m2"],
        "headers": [[["number", number], ["text", "ä"]] for number in range(3)],
        "key": "a.b",
        "beyond credit": None,
        "before commit": 2,
        "after commit": 3,
        "exception": [404, 8, 2],
        "left behind": None,
    },
    "messaging": {
        "bodies": [[f"m{number}", "s", number] for number in range(3)],
        "empty": True,
        "topic": "topic",
        "transaction": "committed",
    },
}


@pytest.mark.parametrize("name", SEEN)
def test_conversation(gateway: Gateway, rabbitmq: RabbitMQ, name: str) -> None:
    if not (CACHE / "python").exists():
        missing("qpid-python is not here (tools/test-tools.sh gets it, with Python 2.7 and pip)")
    (source,) = CACHE.glob("qpid-python-*/")
    rabbitmq.fresh_vhost("qpid-0-10")
    command = [(CACHE / "python").read_text().strip(), str(HERE / "talk_0_10.py"), str(source)]
    try:
        done = subprocess.run(
            [*command, str(gateway.port), "qpid-0-10", name],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == SEEN[name]
    finally:
        rabbitmq.eval('rabbit_vhost:delete(<<"qpid-0-10">>, <<"guest">>).')
