"""qpid-python's two APIs for AMQP 0-10, through the gateway to brokers that speak it, too: as they came."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.brokers import running
from tests.interop.qpid.test_talk_0_10 import PATIENCE, POLICY, SEEN
from tests.support import qpidd
from tests.support.embedded import embedded_broker
from tests.support.gateway import Gateway
from tests.support.missing import missing

HERE = Path(__file__).parent
CACHE = HERE.parents[2] / ".cache" / "qpid"

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: broker, host: {host}, port: {port}, version: 0-10}}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
{more}
"""


@pytest.fixture(scope="module", params=["embedded", pytest.param("qpidd", marks=pytest.mark.slow)])
def broker(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    """The address of a broker of 0-10."""
    if request.param == "embedded":
        with embedded_broker() as address:
            yield address
    else:
        with qpidd.running() as running_qpidd:
            yield running_qpidd.host, running_qpidd.port


@pytest.fixture(scope="module")
def near(broker: tuple[str, int]) -> Iterator[Gateway]:
    with running(CONFIG.format(host=broker[0], port=broker[1], more="")) as gateway:
        yield gateway


def spoken(port: int, name: str) -> object:
    """What the client has seen in one conversation."""
    if not (CACHE / "python").exists():
        missing("qpid-python is not here (tools/test-tools.sh gets it, with Python 2.7 and pip)")
    (source,) = CACHE.glob("qpid-python-*/")
    python = (CACHE / "python").read_text().strip()
    done = subprocess.run(
        [python, str(HERE / "talk_0_10.py"), str(source), str(port), "/", name],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", SEEN)
def test_conversation(near: Gateway, broker: tuple[str, int], name: str) -> None:
    directly = spoken(broker[1], name)
    assert spoken(near.port, name) == directly
    assert "Traceback" not in near.child.output()


def test_a_policy_denies_what_it_denies_others(broker: tuple[str, int], tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    config = CONFIG.format(host=broker[0], port=broker[1], more=f"policies: {tmp_path}")
    with running(config) as gateway:
        seen = spoken(gateway.port, "denied")
    assert seen == {"0": 403, "1": 403, "2": 403, "3": 403, "mine": 1}
