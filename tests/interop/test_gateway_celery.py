"""Celery as it is in the field, two workers each: on RabbitMQ 3, on 4 directly, and on 4 through a gateway.

Its releases ask for transient queues, for remote control and for events, and for one limit of the channel;
5.6 delays tasks in quorum queues if told so. The node of version 4 denies what later versions deny.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.steps import Setting
from tests.interop.test_celery import play
from tests.interop.test_gateway_compatibility import gate
from tests.support.environments import NotHere, environment
from tests.support.inprocess import InProcess
from tests.support.missing import missing
from tests.support.processes import ChildDied
from tests.support.rabbitmq import RabbitMQ

__all__ = ["gate"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

RELEASES = {
    "5.4": "celery==5.4.0\nkombu==5.4.2\n",
    "5.6": "celery==5.6.3\nkombu==5.6.2\n",
}
#: A release, and whether its queues are quorum queues.
CELERIES = [("5.4", False), ("5.6", False), ("5.6", True)]

#: Queues of their own, as each run of the two leaves nothing behind.
VHOST = "celery"


def name_of(one: tuple[str, bool]) -> str:
    release, is_quorum = one
    return f"{release}-quorum" if is_quorum else release


@pytest.fixture(params=CELERIES, ids=name_of)
def celery(request: pytest.FixtureRequest) -> tuple[Path, dict[str, str]]:
    """Its interpreter, and what its application is told."""
    release, is_quorum = request.param
    folder = Path(__file__).parents[2] / ".cache" / f"celery-{release}"
    try:
        python = environment(folder, RELEASES[release])
    except NotHere as error:
        missing(str(error))
    return python, {"INTEROP_QUORUM": "1"} if is_quorum else {}


def plays(port: int, broker: RabbitMQ, celery: tuple[Path, dict[str, str]], folder: Path) -> None:
    broker.fresh_vhost(VHOST)
    python, settings = celery
    at = Setting("127.0.0.1", port, VHOST, True, broker)
    play(at, folder, python, workers=2, settings=settings)


def test_on_three(rabbitmq: RabbitMQ, celery: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    plays(rabbitmq.port, rabbitmq, celery, tmp_path)


def test_on_four_directly(rabbitmq4: RabbitMQ, celery: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    with pytest.raises((ChildDied, AssertionError), match="transient_nonexcl_queues"):
        plays(rabbitmq4.port, rabbitmq4, celery, tmp_path)


def test_on_four_through_the_gateway(
    rabbitmq4: RabbitMQ, gate: InProcess, celery: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    plays(gate.port(), rabbitmq4, celery, tmp_path)
