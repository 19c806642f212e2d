"""Brokers of AMQP 0-10, dialled for clients of other versions. The test is both."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio

from amqpgate.bridge.v0_10.broker import BrokerTranslator
from amqpgate.errors import ConfigError
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.gateway.upstream.cluster import EndpointHealth
from amqpgate.gateway.upstream.dialer import UpstreamUnavailableError, call
from amqpgate.protocol.header import HEADER_0_9_1, HEADER_0_10, name_of
from amqpgate.protocol.v0_10.connection import Tuning
from amqpgate.protocol.v0_10.events import ConnectionClosed, SessionBegun
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from tests.support.broker_0_10 import START, Broker010, start
from tests.support.clusters import cluster
from tests.support.inprocess import eventually
from tests.support.talk_0_10 import ALONE, control, frame
from tests.support.talker import CAPABILITIES, Talker
from tests.unit.gateway.conftest import Stage

MakeStage = Callable[..., Stage]

PLAIN = amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US")


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    """Its broker speaks 0-10, and is known to."""
    return make_stage(upstream="version: 0-10")


def come(stage: Stage) -> Talker:
    """A client that has said its protocol header, for which the broker is dialled."""
    stage.forget()
    client = stage.client()
    client.raw(HEADER_0_9_1)
    return client


def broker_of(stage: Stage, said: amqp10.ConnectionStart = START) -> Broker010:
    """The broker's end of the gateway's next connection, which has said start."""
    return Broker010(stage.broker()).greet(said)


def begun(stage: Stage) -> tuple[Talker, Broker010]:
    """A client that waits for tune, and its broker, which has not heard start-ok."""
    client, broker = come(stage), broker_of(stage)
    client.expect(amqp.ConnectionStart)
    client.say(PLAIN)
    return client, broker


def opened(stage: Stage, tuning: Tuning | None = None) -> tuple[Talker, Broker010]:
    """A client whose channel 1 is open, and its broker."""
    client, broker = begun(stage)
    broker.expect(amqp10.ConnectionStartOk)
    broker.say((tuning or Tuning(channel_max=100)).offer())
    tune = client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
    client.say(amqp.ConnectionOpen("/v"))
    broker.expect(amqp10.ConnectionTuneOk)
    assert broker.expect(amqp10.ConnectionOpen).virtual_host == b"/v"
    broker.say(amqp10.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)
    client.say(amqp.ChannelOpen(), 1)
    return client, broker


def told_320(client: Talker) -> str:
    """The text of connection.close 320, the end of a client that waits for start or tune."""
    client.expect(amqp.ConnectionStart)
    client.say(PLAIN)
    close = client.expect(amqp.ConnectionClose)
    assert close.reply_code == 320
    client.say(amqp.ConnectionCloseOk())
    client.expect_end()
    client.close()
    return close.reply_text


def endpoint_of(stage: Stage) -> EndpointHealth:
    (endpoint,) = stage.running.gateway.router.clusters["broker"].endpoints
    return endpoint


# -- the set-up ------------------------------------------------------------------------------------------


def test_a_session_from_login_to_close(stage: Stage) -> None:
    client, broker = come(stage), broker_of(stage)
    heard = client.expect(amqp.ConnectionStart)
    # What is offered is the broker's, less what nobody in between could read; AMQPLAIN is PLAIN.
    assert heard.mechanisms == b"PLAIN ANONYMOUS AMQPLAIN"
    assert heard.server_properties.to_python()["product"] == "qpid-cpp"
    client.say(PLAIN)
    start_ok = broker.expect(amqp10.ConnectionStartOk)
    assert (start_ok.mechanism, start_ok.response) == (b"PLAIN", b"\0guest\0guest")
    assert start_ok.client_properties.get(b"amqpgate") is not None
    broker.say(Tuning(channel_max=100, heartbeat=120).offer())
    assert client.expect(amqp.ConnectionTune) == amqp.ConnectionTune(100, 131072, 120)
    client.say(amqp.ConnectionTuneOk(50, 65531, 0))
    client.say(amqp.ConnectionOpen("/v", "", True))
    tune_ok = broker.expect(amqp10.ConnectionTuneOk)
    assert (tune_ok.channel_max, tune_ok.max_frame_size, tune_ok.heartbeat) == (50, 65535, 120)
    open_ = broker.expect(amqp10.ConnectionOpen)
    # In 0-9-1 the bit is reserved.
    assert (open_.virtual_host, open_.insist) == (b"/v", False)
    broker.say(amqp10.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)
    client.say(amqp.ChannelOpen(), 1)
    begun = broker.event(SessionBegun)
    broker.flush()
    client.expect(amqp.ChannelOpenOk, 1)
    (session,) = stage.running.gateway.sessions.values()
    assert [each.version for each in session.facts.interpreters] == ["AMQP 0-9-1", "AMQP 0-10"]
    assert begun.name.startswith(f"amqpgate.{session.id}.".encode())
    client.say(amqp.ConnectionClose(200, "bye"))
    broker.expect_close()
    client.expect(amqp.ConnectionCloseOk)
    client.expect_end()
    client.close()
    broker.talker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"closed": 1}


def test_no_two_connections_name_their_sessions_alike(stage: Stage) -> None:
    names = set()
    for _ in range(3):
        client, broker = opened(stage)
        names |= {broker.event(SessionBegun).name for _ in range(1)}
        broker.flush()
        client.expect(amqp.ChannelOpenOk, 1)
        client.say(amqp.ChannelOpen(), 2)
        names.add(broker.event(SessionBegun).name)
    assert len(names) == 6
    assert max(map(len, names)) < 128


async def test_no_two_connections_of_one_name_do(stage: Stage) -> None:
    """A mirror has one name for all that it ever has."""
    settings, names = stage.running.gateway.router.clusters["broker"].settings, set()
    for _ in range(2):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, broker_of, stage)
            line = await call(endpoint_of(stage), settings, TlsContexts(), frame_max=4096, name="m" * 300)
        assert line.hop.translated is not None
        translator = line.hop.translated.translator
        assert isinstance(translator, BrokerTranslator)
        names.add(translator._name)
        line.hop.close()
    assert len(names) == 2
    assert max(map(len, names)) < 128


def test_a_login_that_is_refused_is_the_clients_and_nothing_of_the_brokers(make_stage: MakeStage) -> None:
    """0-10 has no code of its own for it: 320 says that a broker shuts down, too."""
    stage = make_stage(upstream="version: 0-10, outliers: {failures: 1, maxEjected: 100}")
    client, broker = begun(stage)
    broker.expect(amqp10.ConnectionStartOk)
    broker.connection.close(320, "connection-forced: Authentication failed")
    broker.flush()
    close = client.expect(amqp.ConnectionClose)
    assert close.reply_code == 403
    assert close.reply_text.endswith("connection-forced: Authentication failed")
    client.say(amqp.ConnectionCloseOk())
    client.expect_end()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"refused": 1}
    assert endpoint_of(stage).ejected_until == 0


def test_challenges_pass(stage: Stage) -> None:
    client, broker = come(stage), broker_of(stage, start(b"CRAM-MD5"))
    client.expect(amqp.ConnectionStart)
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "CRAM-MD5", b"", "en_US"))
    # Without a response, not with an empty one: qpidd takes that for the answer.
    assert broker.expect(amqp10.ConnectionStartOk).response is None
    broker.say(amqp10.ConnectionSecure(b"<1@broker>"))
    assert client.expect(amqp.ConnectionSecure).challenge == b"<1@broker>"
    client.say(amqp.ConnectionSecureOk(b"guest 0123"))
    assert broker.expect(amqp10.ConnectionSecureOk).response == b"guest 0123"


@pytest.mark.parametrize("more", ["", "health: {interval: 1h}"])
def test_a_login_of_the_gateways_own(make_stage: MakeStage, more: str) -> None:
    stage = make_stage(upstream=f"version: 0-10, user: app, password: secret, {more}".rstrip(", "))
    if more:
        broker_of(stage).talker.expect_end()
    _, broker = begun(stage)
    assert broker.expect(amqp10.ConnectionStartOk).response == b"\0app\0secret"


def test_the_start_is_known_to_who_comes_next(stage: Stage) -> None:
    begun(stage)
    client = stage.client()
    client.raw(HEADER_0_9_1)
    # Nobody was dialled for it yet.
    client.expect(amqp.ConnectionStart)
    client.say(PLAIN)
    broker_of(stage).expect(amqp10.ConnectionStartOk)


def test_the_broker_closes(stage: Stage) -> None:
    client, broker = opened(stage)
    broker.event(SessionBegun)
    broker.flush()
    client.expect(amqp.ChannelOpenOk, 1)
    broker.connection.close(320, "shutting down")
    broker.flush()
    close = client.expect(amqp.ConnectionClose)
    assert (close.reply_code, close.reply_text) == (320, "CONNECTION_FORCED - shutting down")
    client.say(amqp.ConnectionCloseOk())
    client.expect_end()


def test_a_broker_that_is_gone_is_told_as_such(stage: Stage) -> None:
    client, broker = opened(stage)
    broker.talker.reset()
    assert client.expect(amqp.ConnectionClose).reply_code == 320


def test_a_broker_that_breaks_the_protocol_later_is_told_in_its_own(stage: Stage) -> None:
    client, broker = opened(stage)
    broker.event(SessionBegun)
    broker.flush()
    client.expect(amqp.ChannelOpenOk, 1)
    broker.talker.raw(frame(ALONE, 0, b"\1\2"))
    close = client.expect(amqp.ConnectionClose)
    client.say(amqp.ConnectionCloseOk())
    client.expect_end()
    assert (close.reply_code, "upstream broke the protocol" in close.reply_text) == (541, True)
    assert broker.event(ConnectionClosed).violation.code == 501
    broker.flush()
    broker.talker.expect_end()


# -- redirects -------------------------------------------------------------------------------------------

TWO = """
listeners: [{{name: main, bind: 127.0.0.1:0}}]
upstreams: [{{name: broker, version: 0-10, host: 127.0.0.1, port: {port}, redirects: {redirects}}}]
"""


@pytest.mark.parametrize(("redirects", "followed"), [("cluster", True), ("any", True), ("never", False)])
def test_a_redirect(make_stage: MakeStage, redirects: str, followed: bool) -> None:
    stage = make_stage(text=TWO.replace("{redirects}", redirects))
    client, broker = begun(stage)
    broker.expect(amqp10.ConnectionStartOk)
    broker.say(Tuning(channel_max=100).offer())
    client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(50, 65531, 0))
    client.say(amqp.ConnectionOpen("/"))
    broker.expect(amqp10.ConnectionTuneOk)
    broker.expect(amqp10.ConnectionOpen)
    broker.say(amqp10.ConnectionRedirect(f"amqp:tcp:127.0.0.1:{stage.door.port}".encode()))
    if followed:
        broker_of(stage).let_in()
        client.expect(amqp.ConnectionOpenOk)
        broker.talker.expect_end()
    else:
        close = client.expect(amqp.ConnectionClose)
        assert (close.reply_code, "redirects: never" in close.reply_text) == (320, True)


# -- discovery -------------------------------------------------------------------------------------------


def answer(broker: Talker, header: bytes) -> bytes:
    """A broker that does not speak the version that it is asked for: which one that was."""
    asked_for = broker.exactly(8)
    broker.raw(header)
    broker.close()
    return asked_for


@pytest.fixture
def auto(make_stage: MakeStage) -> Stage:
    """What its broker speaks is not known."""
    return make_stage()


def learn(stage: Stage) -> None:
    """One connection, with which the gateway learns that the broker speaks 0-10."""
    client = come(stage)
    assert answer(stage.broker(), HEADER_0_10) == HEADER_0_9_1
    broker_of(stage)
    client.expect(amqp.ConnectionStart)


def test_a_broker_is_spoken_to_as_it_answers(auto: Stage) -> None:
    learn(auto)
    assert endpoint_of(auto).version == "0-10"
    # The next one need not ask.
    _, broker = begun(auto)
    broker.expect(amqp10.ConnectionStartOk)


def test_what_was_learnt_is_forgotten_when_it_is_refused(auto: Stage) -> None:
    learn(auto)
    client = come(auto)
    assert answer(auto.broker(), HEADER_0_9_1) == HEADER_0_10
    auto.broker().greet()
    client.expect(amqp.ConnectionStart)
    come(auto)
    assert auto.broker().exactly(8) == HEADER_0_9_1


def test_what_was_learnt_is_forgotten_when_the_broker_is_another_one(auto: Stage) -> None:
    learn(auto)
    client = come(auto)
    broker_of(auto, start(version=b"2.0"))
    client.expect(amqp.ConnectionStart)
    come(auto)
    assert auto.broker().exactly(8) == HEADER_0_9_1


def test_what_was_learnt_is_forgotten_when_the_broker_fails(auto: Stage) -> None:
    learn(auto)
    client, broker = come(auto), auto.broker()
    assert broker.exactly(8) == HEADER_0_10
    broker.close()
    client.expect(amqp.ConnectionStart)
    come(auto)
    assert auto.broker().exactly(8) == HEADER_0_9_1


def test_a_broker_that_goes_in_circles(auto: Stage) -> None:
    """Each version is asked for once."""
    client = come(auto)
    headers = [HEADER_0_10, b"AMQP\1\1\x08\0", b"AMQP\1\1\0\x09", HEADER_0_10]
    assert [answer(auto.broker(), header) for header in headers] == [HEADER_0_9_1, *headers[:-1]]
    text = told_320(client)
    assert f"it answers the protocol header of AMQP 0-9 with {name_of(HEADER_0_10)}" in text


def test_a_version_that_is_set_is_the_only_one(stage: Stage) -> None:
    client = come(stage)
    assert answer(stage.broker(), HEADER_0_9_1) == HEADER_0_10
    assert f"it answers the protocol header of AMQP 0-10 with {name_of(HEADER_0_9_1)}" in told_320(client)


def test_another_version_that_is_set_is_not_left_for_it(make_stage: MakeStage) -> None:
    stage = make_stage(upstream="version: 0-9-1")
    client = come(stage)
    assert answer(stage.broker(), HEADER_0_10) == HEADER_0_9_1
    assert f"it answers the protocol header of AMQP 0-9-1 with {name_of(HEADER_0_10)}" in told_320(client)


def test_endpoints_of_one_cluster_speak_each_their_own(make_stage: MakeStage) -> None:
    text = (
        "listeners: [{{name: main, bind: 127.0.0.1:0}}]\n"
        "upstreams: [{{name: broker, endpoints: [{{address: '127.0.0.1:1'}}, "
        "{{address: '127.0.0.1:{port}'}}]}}]\n"
    )
    stage = make_stage(text=text)
    learn(stage)
    versions = [one.version for one in stage.running.gateway.router.clusters["broker"].endpoints]
    assert versions == [None, "0-10"]


def test_a_health_check_asks_and_what_it_hears_is_kept(make_stage: MakeStage) -> None:
    stage = make_stage(upstream="health: {interval: 1h}")
    assert answer(stage.broker(), HEADER_0_10) == HEADER_0_9_1
    broker_of(stage).talker.expect_end()
    eventually(lambda: endpoint_of(stage).version == "0-10")
    client = stage.client()
    client.raw(HEADER_0_9_1)
    assert client.expect(amqp.ConnectionStart).server_properties.to_python()["product"] == "qpid-cpp"


ROUTE = """
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: p}
spec: {routes: [{id: r, match: {vhosts: [/]}, upstream: {cluster: broker, version: 0-10}}]}
"""


def test_a_client_whose_broker_is_chosen_late(make_stage: MakeStage) -> None:
    stage = make_stage(policies=ROUTE)
    client = stage.client()
    client.raw(HEADER_0_9_1)
    # Asked what it offers, by the settings of the upstream.
    assert answer(stage.broker(), HEADER_0_10) == HEADER_0_9_1
    broker_of(stage).talker.expect_end()
    client.expect(amqp.ConnectionStart)
    tune = client.ask(PLAIN, amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
    client.say(amqp.ConnectionOpen("/"))
    broker_of(stage).let_in()
    client.expect(amqp.ConnectionOpenOk)


# -- connections that are shared -------------------------------------------------------------------------


def test_connections_are_not_shared_where_a_broker_turns_out_to_speak_it(make_stage: MakeStage) -> None:
    stage = make_stage(upstream="connections: pooled")
    client = stage.client()
    client.raw(HEADER_0_9_1)
    # Of a pool's it is asked what it offers, and then told a login.
    for _ in range(2):
        assert answer(stage.broker(), HEADER_0_10) == HEADER_0_9_1
        if _ == 0:
            client.expect(amqp.ConnectionStart)
            client.say(PLAIN)
    close = client.expect(amqp.ConnectionClose)
    assert close.reply_code == 320
    assert "it speaks AMQP 0-10, of which clients cannot share connections" in close.reply_text
    assert endpoint_of(stage).version is None


def test_a_health_check_tells_that_connections_are_not_shared(
    make_stage: MakeStage, caplog: pytest.LogCaptureFixture
) -> None:
    stage = make_stage(upstream="connections: pooled, health: {interval: 1h, failures: 1}")
    answer(stage.broker(), HEADER_0_10)
    eventually(lambda: not endpoint_of(stage).up)
    assert "counts as down" in caplog.text
    assert "needs 'connections: own'" in caplog.text


async def test_that_they_cannot_be_shared_is_asked_again() -> None:
    """What a broker was found to speak, by clients with their own connections, may be over."""
    pool = cluster("connections: pooled", endpoints="127.0.0.1:1")
    (endpoint,) = pool.endpoints
    endpoint.answered("0-10", amqp.ConnectionStart())
    with pytest.raises(UpstreamUnavailableError, match="cannot share connections"):
        await call(endpoint, pool.settings, TlsContexts(), frame_max=4096, name="n")
    assert endpoint.version is None


@pytest.mark.parametrize(
    ("upstream", "changed"),
    [
        ("version: 0-10, connections: pooled", None),
        ("version: 0-10", "connections: pooled"),
        ("connections: pooled", "version: 0-10"),
        ("version: 0-9-1", "version: 0-10, connections: pooled"),
    ],
)
def test_settings_that_would_share_them_are_refused(
    make_stage: MakeStage, upstream: str, changed: str | None
) -> None:
    policies = None
    if changed is not None:
        policies = ROUTE.replace("version: 0-10", changed).replace("match: {vhosts: [/]}, ", "")
    with pytest.raises(ConfigError, match=r"clients cannot share connections of AMQP 0-10"):
        make_stage(upstream=upstream, policies=policies)


def test_a_route_may_have_its_own_connections(make_stage: MakeStage) -> None:
    route = ROUTE.replace("version: 0-10", "version: 0-10, connections: own").replace(
        "match: {vhosts: [/]}, ", ""
    )
    stage = make_stage(upstream="connections: pooled", policies=route)
    client = come(stage)
    broker_of(stage)
    client.expect(amqp.ConnectionStart)


# -- brokers that do not keep to it ----------------------------------------------------------------------

HEADLESS = "it does not answer the protocol header of AMQP 0-10"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"", "closed"),
        (HEADER_0_10[:5], "closed"),
        (HEADER_0_10, "closed"),
        (HEADER_0_10 + control(START)[:-1], "closed"),
        (control(START), HEADLESS),
        (b"\0", HEADLESS),
        (HEADER_0_10 + HEADER_0_10, "closed"),
        (HEADER_0_10 * 9, "version or reserved flags are not 0"),
        (HEADER_0_10 + control(amqp10.ConnectionTune()), "unexpected connection.tune"),
        (HEADER_0_10 + control(amqp10.SessionAttach(b"n"), 1), "unexpected frame"),
        (HEADER_0_10 + b"\xff" * 4096, "FRAME_ERROR"),
        (HEADER_0_10 + frame(ALONE, 1, b"\1\1\0\0"), "unexpected frame"),
    ],
)
def test_what_it_says_in_the_place_of_a_start(stage: Stage, said: bytes, why: str) -> None:
    client, broker = come(stage), stage.broker()
    assert broker.exactly(8) == HEADER_0_10
    broker.raw(said)
    broker.sock.shutdown(1)
    text = told_320(client)
    assert f"upstream 127.0.0.1:{stage.door.port}: " in text
    assert why in text
    stage.running.wait_idle()


@pytest.mark.parametrize(
    "said", [b"", HEADER_0_10[:5], HEADER_0_10, HEADER_0_10 + control(START)[:-1]], ids=len
)
def test_who_says_nothing_more_is_not_waited_for(make_stage: MakeStage, said: bytes) -> None:
    stage = make_stage(upstream="version: 0-10, handshakeTimeout: 100ms")
    client, broker = come(stage), stage.broker()
    broker.raw(said)
    assert "said nothing within 0.1 s" in told_320(client)
    assert broker.exactly(8) == HEADER_0_10
    broker.expect_end()


def test_who_never_starts_and_never_stops_is_not_heard_for_ever(make_stage: MakeStage) -> None:
    """Segments that never end are bounded, and so is the time."""
    stage = make_stage(upstream="version: 0-10, handshakeTimeout: 5s")
    client, broker = come(stage), stage.broker()
    broker.raw(HEADER_0_10)
    piece = frame(0, 0, b"\1\1" + b"x" * 65_000)
    with pytest.raises(OSError):  # noqa: PT011 - a reset, or a broken pipe
        broker.raw(frame(0b1000, 0, b"\1\1") + piece * 1000)
    told_320(client)
