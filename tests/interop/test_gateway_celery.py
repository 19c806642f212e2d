"""Celery as it is in the field, two workers each: on RabbitMQ 4 directly, and through a gateway.

Its releases ask for transient queues, for remote control and for events, and for one limit of the channel;
5.6 delays tasks in quorum queues if told so. The node of version 4 denies what later versions deny. They are
on RabbitMQ 3 in `test_celery.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.steps import Setting
from tests.interop.test_celery import IN_THE_FIELD, Celery
from tests.interop.test_gateway_compatibility import gate
from tests.support.inprocess import InProcess
from tests.support.processes import ChildDied
from tests.support.rabbitmq import RabbitMQ

__all__ = ["gate"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.parametrize("celery", IN_THE_FIELD, ids=lambda celery: celery.name),
]

#: Queues of their own, as each run of the two leaves nothing behind.
VHOST = "celery"


def plays(port: int, broker: RabbitMQ, celery: Celery, folder: Path) -> None:
    broker.fresh_vhost(VHOST)
    celery.play(Setting("127.0.0.1", port, VHOST, True, broker), folder)


def test_on_four_directly(rabbitmq4: RabbitMQ, celery: Celery, tmp_path: Path) -> None:
    with pytest.raises((ChildDied, AssertionError), match="transient_nonexcl_queues"):
        plays(rabbitmq4.port, rabbitmq4, celery, tmp_path)


def test_on_four_through_the_gateway(
    rabbitmq4: RabbitMQ, gate: InProcess, celery: Celery, tmp_path: Path
) -> None:
    plays(gate.port(), rabbitmq4, celery, tmp_path)
