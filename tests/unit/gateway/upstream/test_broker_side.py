"""The broker's half of a set-up: whose refusal is whose, redirects, and what holds on each hop."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

import attrs
import pytest

from amqpgate.bridge import NATIVE, interpreter_for
from amqpgate.bridge.v0_10 import VERSION
from amqpgate.gateway.transport.method_stream import MethodStream
from amqpgate.gateway.upstream.broker_side import MOST_HOSTS, MOST_REDIRECTS, insists, open_for, tune_for
from amqpgate.protocol.handshake import Tune
from amqpgate.protocol.methods import Role
from amqpgate.wire.generated import v0_8
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.clusters import cluster
from tests.support.inprocess import Doorway
from tests.support.talker import Talker
from tests.support.versions import SPOKEN, asked, propose, start
from tests.unit.gateway.pair import START_OK, TUNE, Scene, make_pair, scene

__all__ = ["make_pair", "scene"]

# -- refusals


@pytest.mark.parametrize(
    "refusal",
    [
        amqp.ConnectionClose(403, "ACCESS_REFUSED - no", 0, 0),
        amqp.ConnectionClose(530, "NOT_ALLOWED - none", 10, 40),
    ],
)
def test_a_refusal_is_the_clients_and_is_not_tried_elsewhere(
    scene: Scene, refusal: amqp.ConnectionClose
) -> None:
    client = scene.asking()
    broker = scene.answering(0)
    broker.say(refusal)
    assert client.expect(amqp.ConnectionClose) == refusal
    broker.expect(amqp.ConnectionCloseOk)
    client.say(amqp.ConnectionCloseOk())
    client.expect_end()
    client.close()
    scene.running.wait_idle()
    assert scene.running.outcomes() == {"refused": 1}


def test_who_is_not_told_why_is_told_here(scene: Scene) -> None:
    """The broker hangs up on a login of a client that did not ask for a reason."""
    client = scene.asking(attrs.evolve(START_OK, client_properties=Table()))
    scene.answering(0).close()
    close = client.expect(amqp.ConnectionClose)
    assert (close.reply_code, "Login was refused" in close.reply_text) == (403, True)


@pytest.mark.parametrize("to", [0, 1])
def test_a_redirect_is_followed(scene: Scene, to: int) -> None:
    """A broker of 0-8 sends the gateway to the other one, or to itself; the client does not notice."""
    old = SPOKEN["0-8"]
    client = scene.asking()
    first = scene.broker(0)
    first.exactly(8)
    first.raw(old.header)
    for here, where in ((0, f"127.0.0.1:{scene.doors[to].port}"), (to, None)):
        broker = scene.broker(here)
        if where is None and to == 1:
            # Nothing is known of it yet.
            broker.exactly(8)
            broker.raw(old.header)
            broker = scene.broker(here)
        start(broker, old)
        assert propose(broker, old).response == START_OK.response
        asked(broker, old)
        broker.say(v0_8.ConnectionOpenOk() if where is None else v0_8.ConnectionRedirect(where, ""))
    client.expect(amqp.ConnectionOpenOk)


def test_a_challenge_comes_too_late(scene: Scene) -> None:
    client = scene.asking()
    scene.answering(0).say(amqp.ConnectionSecure(b"?"))
    close = client.expect(amqp.ConnectionClose)
    assert (close.reply_code, "comes too late" in close.reply_text) == (403, True)


# -- redirects

OLD = SPOKEN["0-8"]


def redirect(broker: Talker, host: str, known_hosts: str = "") -> None:
    """A broker of 0-8 hears all of the client's half, and sends it elsewhere."""
    start(broker, OLD)
    propose(broker, OLD)
    asked(broker, OLD)
    broker.say(v0_8.ConnectionRedirect(host, known_hosts))


def found_old(scene: Scene) -> Talker:
    """The first broker's end of the connection on which it is known to speak 0-8."""
    first = scene.broker(0)
    first.exactly(8)
    first.raw(OLD.header)
    return scene.broker(0)


def native(scene: Scene, broker: Talker, client: Talker) -> None:
    """A broker of 0-9-1 takes the client."""
    broker.greet()
    broker.expect(amqp.ConnectionStartOk)
    broker.ask(TUNE, amqp.ConnectionTuneOk)
    broker.expect(amqp.ConnectionOpen)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)


def test_brokers_that_redirect_in_circles_are_left_for_the_next_endpoint(scene: Scene) -> None:
    client = scene.asking()
    broker = found_old(scene)
    for number in range(MOST_REDIRECTS + 1):
        if number:
            broker = scene.broker(0)
        redirect(broker, f"127.0.0.1:{scene.doors[0].port}")
    native(scene, scene.broker(1), client)
    scene.doors[0].sock.settimeout(0)
    with pytest.raises(BlockingIOError):
        scene.doors[0].accept()


def test_a_broker_does_not_choose_whom_the_gateway_connects_to(scene: Scene) -> None:
    client = scene.asking()
    with contextlib.closing(Doorway()) as stranger:
        redirect(found_old(scene), f"127.0.0.1:{stranger.port}", f"127.0.0.1:{stranger.port}")
        native(scene, scene.broker(1), client)
        stranger.sock.settimeout(0)
        with pytest.raises(BlockingIOError):
            stranger.accept()


@pytest.mark.parametrize("nowhere", ["a..b", "a" * 64, "x:y", "[::1", "a b", "::", ""])
def test_a_host_that_there_cannot_be_is_passed_over(make_pair: Callable[[str], Scene], nowhere: str) -> None:
    scene = make_pair("redirects: any")
    client = scene.asking()
    with contextlib.closing(Doorway()) as stranger:
        redirect(found_old(scene), nowhere, f"{nowhere}, 127.0.0.1:{stranger.port}")
        native(scene, scene.guests.enter_context(stranger.accept()), client)


def test_so_many_hosts_of_a_redirect_are_tried(make_pair: Callable[[str], Scene]) -> None:
    scene = make_pair("redirects: any")
    client = scene.asking()
    with contextlib.closing(Doorway()) as stranger:
        others = [f"a..{number}" for number in range(MOST_HOSTS - 1)]
        redirect(found_old(scene), "a..b", ",".join([*others, f"127.0.0.1:{stranger.port}"]))
        native(scene, scene.broker(1), client)
        stranger.sock.settimeout(0)
        with pytest.raises(BlockingIOError):
            stranger.accept()


# -- what holds on the broker's hop


@pytest.mark.parametrize(
    ("asked", "settings", "client", "holds"),
    [
        # What the broker proposes, where nobody wants less.
        ((2047, 131072, 60), "", (131072, 2047, 0), (131072, 2047, 60)),
        # Channels are the client's, too: it opens none that the broker would not.
        ((2047, 131072, 60), "channelMax: 100", (131072, 50, 0), (131072, 50, 60)),
        ((0, 0, 0), "channelMax: 100", (131072, 0, 0), (131072, 100, 0)),
        ((2047, 131072, 60), "heartbeat: 5", (131072, 2047, 600), (131072, 2047, 5)),
        # No smaller than RabbitMQ takes, in whole bodies of the client's.
        ((2047, 131072, 60), "", (4096, 2047, 0), (3 * 4088 + 8, 2047, 60)),
        ((2047, 131072, 60), "frameMax: 16384", (4096, 2047, 0), (16384, 2047, 60)),
        ((2047, 5000, 60), "", (4096, 2047, 0), (5000, 2047, 60)),
    ],
)
def test_what_holds_on_its_hop(
    asked: tuple[int, int, int], settings: str, client: tuple[int, int, int], holds: tuple[int, int, int]
) -> None:
    frame_max, channel_max, heartbeat = client
    tune = tune_for(
        amqp.ConnectionTune(*asked),
        cluster(settings).settings,
        Tune(frame_max=frame_max, channel_max=channel_max, heartbeat=heartbeat),
        NATIVE,
    )
    assert (tune.frame_max, tune.channel_max, tune.heartbeat) == holds


@pytest.mark.parametrize(("wanted", "agreed"), [(60, 60), (600, 120), (0, 0)])
def test_a_broker_of_0_10_is_agreed_to_no_heartbeat_above_its_own(wanted: int, agreed: int) -> None:
    asked = amqp.ConnectionTune(2047, 65531, 120)
    tune = tune_for(asked, cluster(f"heartbeat: {wanted}").settings, Tune(), VERSION.interpreter)
    assert tune.heartbeat == agreed


@pytest.mark.parametrize("near", ["0-8", "0-9-1", "0-10"])
@pytest.mark.parametrize("far", ["0-8", "0-9-1", "0-10"])
def test_what_only_old_versions_have_is_for_those_who_both_have_it(near: str, far: str) -> None:
    with contextlib.ExitStack() as ends:

        def hop(name: str) -> MethodStream:
            sock, other = socket.socketpair()
            ends.enter_context(other)
            ends.enter_context(sock)
            interpreter = VERSION.interpreter if name == "0-10" else interpreter_for(SPOKEN[name].dialect)
            return MethodStream(sock, frame_max=4096, peer=Role.SERVER, interpreter=interpreter)

        client, broker = hop(near), hop(far)
        said = amqp.ConnectionOpen("/v", "capabilities", True)
        # A client of 0-10 is one of 0-9-1, whose translator has none of it to say.
        passes = (far != "0-9-1") == (near == "0-8")
        assert open_for(broker, client, said) == (said if passes else amqp.ConnectionOpen("/v"))
        # The bit is reserved in 0-9-1, and says nothing.
        assert insists(client, said) is (near == "0-8")
        assert not insists(client, amqp.ConnectionOpen("/v"))
