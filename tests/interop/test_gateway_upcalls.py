"""Real traffic of which every single frame leaves the data path and comes back: no byte may be lost."""

from __future__ import annotations

from collections.abc import Iterator

import pika
import pytest

from amqpgate.config import from_flags
from amqpgate.datapath.scanner import Flow
from amqpgate.datapath.tables import Show
from amqpgate.gateway.limits.token_buckets import SessionLimits
from amqpgate.gateway.session.session_policies import SessionPolicies
from amqpgate.telemetry.readings import DELIVERED, PUBLISHED
from tests.support.inprocess import InProcess
from tests.support.rabbitmq import RabbitMQ

pytestmark = pytest.mark.interop

SIZES = [0, 1, 100, 4096, 131_064, 131_065, 400_000]


@pytest.fixture(params=[Show.METHOD, Show.HEADER, Show.BODY], ids=lambda show: show.name.lower())
def shown(
    request: pytest.FixtureRequest, rabbitmq: RabbitMQ, monkeypatch: pytest.MonkeyPatch
) -> Iterator[InProcess]:
    """A gateway that shows every message of both directions to the control plane."""
    monkeypatch.setattr(SessionPolicies, "is_restricted", True)
    monkeypatch.setattr(SessionPolicies, "judges_deliveries", True)
    monkeypatch.setattr(SessionLimits, "flow", lambda *_: Flow(sample_every=1, show=request.param))
    monkeypatch.setattr(SessionLimits, "delivery_flow", lambda *_: Flow(sample_every=1, show=request.param))
    running = InProcess(from_flags("127.0.0.1:0", f"amqp://{rabbitmq.address}"))
    running.start()
    yield running
    running.stop()


@pytest.mark.parametrize("frame_max", [4096, 131072])
def test_every_frame_may_be_an_upcall(shown: InProcess, frame_max: int) -> None:
    parameters = pika.ConnectionParameters("127.0.0.1", shown.port("default"), frame_max=frame_max)
    bodies = [bytes([n]) * size for n, size in enumerate(SIZES * 3)]
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        queue = channel.queue_declare("", exclusive=True).method.queue
        for n, body in enumerate(bodies):
            channel.basic_publish("", queue, body, pika.BasicProperties(headers={"n": n}))
        got = []
        for method, properties, body in channel.consume(queue, inactivity_timeout=20):
            assert method is not None, f"only {len(got)} arrived"
            got.append((properties.headers["n"], body))
            channel.basic_ack(method.delivery_tag)
            if len(got) == len(bodies):
                break
        assert got == list(enumerate(bodies))
    totals = shown.ask(shown.gateway.totals)
    assert totals.traffic[PUBLISHED].messages == totals.traffic[DELIVERED].messages == len(bodies)
    assert sum(totals.upcalls.values()) > 2 * len(bodies)
