"""Logins of the gateway's own: by the strongest mechanism that is on offer, and by none that is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
from scramp import ScramMechanism

from amqpgate.gateway.observers.mirror.dial import dial_mirror
from amqpgate.gateway.upstream.cluster import Cluster
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.talker import CAPABILITIES, Talker
from tests.unit.gateway.conftest import Stage

MakeStage = Callable[..., Stage]

SECRET = "correct horse"
LOGIN = f"user: app, password: {SECRET}"
SCRAMS = ["SCRAM-SHA-256", "SCRAM-SHA-512"]
#: How a session comes to its broker.
WAYS = {"own": LOGIN, "pooled": f"{LOGIN}, connections: pooled"}

#: The broker is chosen by the user whom the client names.
ROUTES = """
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: late}
spec:
  routes:
    - {id: mine, match: {user: guest}, upstream: {cluster: broker}}
"""


def offering(stage: Stage, mechanisms: str) -> Talker:
    """The broker, which has said its start."""
    broker = stage.broker()
    assert broker.exactly(8) == amqp.PROTOCOL_HEADER
    broker.say(amqp.ConnectionStart(0, 9, CAPABILITIES, mechanisms.encode(), b"en_US"))
    return broker


def begun(make_stage: MakeStage, way: str, mechanisms: str, more: str = "") -> tuple[Stage, Talker, Talker]:
    """A client that has said start-ok, and the broker that is to hear the gateway's."""
    stage = make_stage(upstream=WAYS.get(way, LOGIN) + more, policies=ROUTES if way == "deferred" else None)
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    broker = offering(stage, mechanisms)
    offered = client.expect(amqp.ConnectionStart).mechanisms.split()
    # The client's login goes nowhere: it may say it as every client can.
    assert b"PLAIN" in offered
    assert not any(name.startswith(b"SCRAM") for name in offered)
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US"))
    if way == "deferred":
        tune = client.expect(amqp.ConnectionTune)
        client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
        client.say(amqp.ConnectionOpen("/"))
    if way != "own":
        broker = offering(stage, mechanisms)
    return stage, client, broker


def prove(broker: Talker, mechanism: str, password: str = SECRET) -> None:
    """The broker's half."""
    theirs = ScramMechanism(mechanism)
    known = theirs.make_auth_info(password)
    server = theirs.make_server({"app": known}.__getitem__)
    said = broker.expect(amqp.ConnectionStartOk)
    assert said.mechanism == mechanism
    server.set_client_first(said.response.decode())
    broker.say(amqp.ConnectionSecure(server.get_server_first().encode()))
    final = broker.expect(amqp.ConnectionSecureOk).response
    assert SECRET.encode() not in final
    server.set_client_final(final.decode())
    broker.say(amqp.ConnectionSecure(server.get_server_final().encode()))
    assert broker.expect(amqp.ConnectionSecureOk).response == b""


def opened(client: Talker, broker: Talker, way: str) -> None:
    broker.say(amqp.ConnectionTune(2047, 131072, 0))
    if way != "deferred":
        tune = client.expect(amqp.ConnectionTune)
        client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
        client.say(amqp.ConnectionOpen("/"))
    broker.expect(amqp.ConnectionTuneOk)
    broker.expect(amqp.ConnectionOpen)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)


@pytest.mark.parametrize("mechanism", SCRAMS)
@pytest.mark.parametrize("way", [*WAYS, "deferred"])
def test_a_broker_that_offers_scram_only(make_stage: MakeStage, way: str, mechanism: str) -> None:
    _, client, broker = begun(make_stage, way, mechanism)
    prove(broker, mechanism)
    opened(client, broker, way)


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        ("PLAIN SCRAM-SHA-256 AMQPLAIN SCRAM-SHA-512", "SCRAM-SHA-512"),
        ("PLAIN AMQPLAIN SCRAM-SHA-256 EXTERNAL", "SCRAM-SHA-256"),
        ("AMQPLAIN PLAIN RABBIT-CR-DEMO", "PLAIN"),
        ("AMQPLAIN", "AMQPLAIN"),
    ],
)
@pytest.mark.parametrize("way", [*WAYS, "deferred"])
def test_the_strongest_is_chosen(make_stage: MakeStage, way: str, offered: str, chosen: str) -> None:
    _, _, broker = begun(make_stage, way, offered)
    assert broker.expect(amqp.ConnectionStartOk).mechanism == chosen


@pytest.mark.parametrize(
    ("offered", "more"),
    [
        ("RABBIT-CR-DEMO EXTERNAL", ""),
        ("PLAIN AMQPLAIN", ", mechanisms: [SCRAM-SHA-256, SCRAM-SHA-512]"),
        ("SCRAM-SHA-256", ", mechanisms: [PLAIN]"),
    ],
)
@pytest.mark.parametrize("way", [*WAYS, "deferred"])
def test_none_that_is_not_offered_is_used(make_stage: MakeStage, way: str, offered: str, more: str) -> None:
    stage, client, broker = begun(make_stage, way, offered, more)
    broker.expect_end()
    close = client.expect(amqp.ConnectionClose)
    assert close.reply_code == 320
    assert f"upstream 127.0.0.1:{stage.door.port}" in close.reply_text
    assert f"the broker offers {', '.join(offered.split())}, and the gateway may use" in close.reply_text


@pytest.mark.parametrize("way", [*WAYS, "deferred"])
def test_a_broker_that_does_not_know_the_password(make_stage: MakeStage, way: str) -> None:
    """It lets everybody in, and would hear what is published."""
    _, client, broker = begun(make_stage, way, "SCRAM-SHA-256")
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(2047, 131072, 0))
    broker.expect_end()
    close = client.expect(amqp.ConnectionClose)
    assert (close.reply_code, "did not show that it knows the password" in close.reply_text) == (320, True)


async def test_a_mirror_logs_in_so_too(make_stage: MakeStage) -> None:
    stage = make_stage(upstream=LOGIN)
    settings = stage.running.settings.upstreams[0]

    async with trio.open_nursery() as nursery:

        def play() -> None:
            with offering(stage, "SCRAM-SHA-512 PLAIN") as broker:
                prove(broker, "SCRAM-SHA-512")
                broker.say(amqp.ConnectionTune(2047, 131072, 0))
                broker.expect(amqp.ConnectionTuneOk)
                broker.expect(amqp.ConnectionOpen)
                broker.say(amqp.ConnectionOpenOk())

        nursery.start_soon(trio.to_thread.run_sync, play)
        contexts = stage.running.gateway.router.contexts
        dialled = await dial_mirror(Cluster(settings), settings, contexts, version="0", name="m")
        dialled.hop.close()
    assert dialled.user == "app"
