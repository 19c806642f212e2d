"""Who rides on which link: in the admin interface, both ways, and in the broker's list of connections."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.brokers import running
from tests.interop.pooling.ways import CONFIG, pooled_by
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import CAPABILITIES, Talker

VHOST = "visible"


@pytest.fixture(params=[1, 2], ids=["one process", "two workers"])
def it(request: pytest.FixtureRequest, rabbitmq: RabbitMQ) -> Iterator[Gateway]:
    rabbitmq.fresh_vhost(VHOST)
    config = CONFIG.format(address=rabbitmq.address, pooled=pooled_by({"channelsPerLink": 64}))
    with running(f"{config}workers: {request.param}\n") as it:
        yield it
    rabbitmq.eval(f'rabbit_vhost:delete(<<"{VHOST}">>, <<"guest">>).')


def pools(it: Gateway) -> list[dict[str, Any]]:
    status, text = it.get("/pools")
    assert status == 200
    found: list[dict[str, Any]] = json.loads(text)["pools"]
    return found


def test_both_ways_and_in_the_brokers_list(it: Gateway, rabbitmq: RabbitMQ) -> None:
    clients = []
    for channels in (1, 2, 3):
        client = Talker.dial(it.port)
        client.open(vhost=VHOST, channels=channels, properties=CAPABILITIES)
        clients.append(client)
    found = pools(it)
    assert {pool["vhost"] for pool in found} == {VHOST}
    assert {pool["user"] for pool in found} == {"guest"}
    assert sorted(len(each["channels"]) for pool in found for each in pool["sessions"]) == [1, 2, 3]
    for pool in found:
        there = {
            (link["link"], int(number)): (seat["session"], seat["channel"])
            for link in pool["links"]
            for number, seat in link["channels"].items()
        }
        back = {
            (each["link"], number): (each["session"], int(channel))
            for each in pool["sessions"]
            for channel, number in each["channels"].items()
        }
        assert there == back
        assert all(link["address"] == rabbitmq.address for link in pool["links"])
    shown = [row for row in rabbitmq.connections() if row["vhost"] == VHOST]
    told = [row["client_properties"]["amqpgate"] for row in shown]  # type: ignore[index]
    assert {entry["pool"] for entry in told} <= {pool["pool"] for pool in found}
    assert all(entry["clients"] >= 1 for entry in told)
    for client in clients:
        client.ask(amqp.ConnectionClose(200, "bye"), amqp.ConnectionCloseOk)
        client.close()
    eventually(lambda: not any(pool["sessions"] for pool in pools(it)))
