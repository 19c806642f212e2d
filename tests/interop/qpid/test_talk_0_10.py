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


POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: mine}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: own, effect: allow, operations: [queue.declare, queue.delete], queue: {literal: mine}}
  - id: publish
    effect: allow
    operations: [basic.publish]
    exchange: {literal: ""}
    routingKey: {literal: mine}
"""


def spoken(port: int, rabbitmq: RabbitMQ, name: str) -> object:
    """What the client has seen in one conversation."""
    if not (CACHE / "python").exists():
        missing("qpid-python is not here (tools/test-tools.sh gets it, with Python 2.7 and pip)")
    (source,) = CACHE.glob("qpid-python-*/")
    rabbitmq.fresh_vhost("qpid-0-10")
    command = [(CACHE / "python").read_text().strip(), str(HERE / "talk_0_10.py"), str(source)]
    try:
        done = subprocess.run(
            [*command, str(port), "qpid-0-10", name],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    finally:
        rabbitmq.eval('rabbit_vhost:delete(<<"qpid-0-10">>, <<"guest">>).')


@pytest.mark.parametrize("name", SEEN)
def test_conversation(gateway: Gateway, rabbitmq: RabbitMQ, name: str) -> None:
    assert spoken(gateway.port, rabbitmq, name) == SEEN[name]


def test_a_policy_denies_what_it_denies_others(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    """The routing key stands in the header of a transfer; a query is a passive declare."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    gateway = Gateway(f"amqp://{rabbitmq.address}", policies=tmp_path)
    with gateway.serving():
        seen = spoken(gateway.port, rabbitmq, "denied")
    assert seen == {"0": 403, "1": 403, "2": 403, "3": 403, "mine": 1}
