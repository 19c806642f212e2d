"""Old clients: directly on RabbitMQ, on a listener that takes 0-9-1 alone, and through the gateway."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence

import attrs
import pytest

from tests.interop.old_clients.clients import CLIENTS, At, Client, Failed, Outcome, Saw, verdicts
from tests.interop.old_clients.places import UPSTREAMS, play, ports
from tests.support.gateway import Gateway
from tests.support.missing import missing
from tests.support.rabbitmq import RabbitMQ, script_folder

DRAINING = """
listeners: [{name: main, bind: "127.0.0.1:{port}"}]
upstreams: [{name: rabbit, url: "amqp://{address}"}]
admin: {bind: "127.0.0.1:{admin_port}"}
limits: {drainTimeout: 2s, closeTimeout: 1s}
"""

pytestmark = pytest.mark.usefixtures("litter")


@pytest.fixture(scope="module")
def at(rabbitmq: RabbitMQ) -> Iterator[Mapping[str, int]]:
    with ports(rabbitmq) as at:
        yield at


def played(
    name: str, place: str, at: Mapping[str, int], rabbitmq: RabbitMQ
) -> tuple[Client, dict[str, Outcome]]:
    client = CLIENTS[name]
    lack = client.lacks()
    if lack is not None:
        missing(lack)
    return client, play(client, place, at[place], rabbitmq)


@pytest.mark.parametrize("name", CLIENTS)
def test_directly(name: str, at: Mapping[str, int], rabbitmq: RabbitMQ) -> None:
    """What RabbitMQ refuses fails in the client's own words; all else sees what it must."""
    client, seen = played(name, "direct", at, rabbitmq)
    refused = client.refused if "*" not in client.refused else dict.fromkeys(seen, client.refused["*"])
    wrong = dict(verdicts(client, seen))
    assert wrong.keys() == refused.keys(), wrong
    for step, part in refused.items():
        assert part in wrong[step]


def test_without_a_limit_to_channels() -> None:
    """What is refused as a whole is refused for its channel-max of 0: a broker that has no limit takes it."""
    client = CLIENTS["node_amqp_0_8"]
    lack = client.lacks()
    if lack is not None or script_folder() is None:
        missing(lack or "RabbitMQ is not installed (Debian: apt-get install rabbitmq-server)")
    rabbitmq = RabbitMQ(config=["channel_max = 0"])
    try:
        rabbitmq.start()
        seen = play(client, "direct", rabbitmq.port, rabbitmq)
    finally:
        rabbitmq.destroy()
    assert not list(verdicts(client, seen))


@pytest.mark.parametrize("name", CLIENTS)
def test_on_a_strict_listener(name: str, at: Mapping[str, int], rabbitmq: RabbitMQ) -> None:
    """Whoever does not say 0-9-1 by name does not get in."""
    client, seen = played(name, "strict", at, rabbitmq)
    if client.header == "0 0 9 1":
        assert not list(verdicts(client, seen))
    else:
        assert all(isinstance(outcome, Failed) for outcome in seen.values()), seen


@pytest.mark.parametrize(
    "place",
    [pytest.param(place, marks=() if place == "to strict" else pytest.mark.slow) for place in UPSTREAMS],
)
@pytest.mark.parametrize("name", CLIENTS)
def test_through_the_gateway(name: str, place: str, at: Mapping[str, int], rabbitmq: RabbitMQ) -> None:
    """All goes well, what RabbitMQ alone refuses too, whatever version the gateway speaks with the broker."""
    client, seen = played(name, place, at, rabbitmq)
    assert not dict(verdicts(client, seen, place=place, mapped=True))


@attrs.frozen(kw_only=True)
class Drained(At):
    """Where the operator, asked to close the connection, has the gateway drain."""

    gateway: Gateway

    def ask(self, what: str) -> Sequence[object]:
        assert what == "close"
        self.gateway.child.signal(signal.SIGTERM)
        return []


@pytest.mark.parametrize("name", CLIENTS)
def test_a_drain_is_told(name: str, rabbitmq: RabbitMQ) -> None:
    """In the words of its library, the client sees 320 and why."""
    client = CLIENTS[name]
    lack = client.lacks()
    if lack is not None:
        missing(lack)
    rabbitmq.fresh_vhost(name)
    gateway = Gateway(config=DRAINING.replace("{address}", rabbitmq.address))
    gateway.start()
    try:
        at = Drained("127.0.0.1", gateway.port, name, True, rabbitmq, gateway=gateway)
        seen = client.play(at, ["operator_close"])["operator_close"]
        # Of pika's exception the ids are not shown.
        ids = [] if client.name == "pika_0_9_1" else [[0, 0]]
        assert seen == Saw([320, "CONNECTION_FORCED - amqpgate is shutting down", *ids])
        assert gateway.child.wait(30) == 0
    finally:
        gateway.kill()
