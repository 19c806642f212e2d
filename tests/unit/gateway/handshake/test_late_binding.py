"""The set-up in which the gateway speaks first, with the test as client and as every broker."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from amqpgate.config import parse
from amqpgate.errors import ConfigError
from amqpgate.gateway.upstream.cluster import Cluster
from amqpgate.gateway.upstream.router import check_routes
from amqpgate.policy import Source, build
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.support.talker import CAPABILITIES, Talker
from tests.support.versions import SPOKEN, ask_for, greet, log_in
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.pair import HEAD, START_OK, TUNE, Scene, make_pair, scene
from tests.unit.gateway.pool.pooled import asks_for_its_vhost, knocks, logged_in, opened

__all__ = ["make_pair", "scene"]


def test_what_the_client_said_is_said_again(scene: Scene) -> None:
    client = scene.asking()
    broker = scene.broker(0)
    broker.greet()
    said = broker.expect(amqp.ConnectionStartOk)
    assert (said.mechanism, said.response) == ("PLAIN", b"\0guest\0guest")
    assert said.client_properties.get("product") == "talker"
    assert "amqpgate" in said.client_properties
    # Each hop has the smaller of both frame-maxes; the heartbeat is the broker's own.
    tune_ok = broker.ask(TUNE, amqp.ConnectionTuneOk)
    assert (tune_ok.channel_max, tune_ok.frame_max, tune_ok.heartbeat) == (100, 8192, 7)
    assert broker.expect(amqp.ConnectionOpen).virtual_host == "/"
    client.hear_nothing(0.2)  # open-ok is the broker's to say
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)
    client.say(amqp.ChannelOpen(), 1)
    broker.expect(amqp.ChannelOpen, 1)


def finish(broker: Talker, client: Talker) -> None:
    """The rest of a set-up, after start-ok."""
    broker.ask(TUNE, amqp.ConnectionTuneOk)
    broker.expect(amqp.ConnectionOpen)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)


@pytest.mark.parametrize("failure", ["hangs up", "is silent", "hangs up later", "320", "541", "nonsense"])
def test_what_fails_is_tried_at_the_next_endpoint(scene: Scene, failure: str) -> None:
    client = scene.asking()
    first = scene.answering(0)
    if failure == "hangs up later":
        first.ask(TUNE, amqp.ConnectionTuneOk)
    if failure in ("320", "541"):
        first.say(amqp.ConnectionClose(int(failure), "not now"))
    elif failure == "nonsense":
        first.say(amqp.ConnectionOpenOk())
    elif failure != "is silent":
        first.close()
    finish(scene.answering(1), client)


@pytest.mark.parametrize("near", ["0-8", "0-9"])
def test_an_old_client(scene: Scene, near: str) -> None:
    words = SPOKEN[near].words
    client = scene.guests.enter_context(scene.running.dial())
    greet(client, SPOKEN[near])
    scene.broker(0).greet()
    heard = log_in(client, SPOKEN[near])
    assert (heard.version_major, heard.version_minor) == SPOKEN[near].start
    ask_for(client, SPOKEN[near])
    broker = scene.answering(0)
    broker.say(amqp.ConnectionClose(530, "NOT_ALLOWED - none", 10, 40))
    assert client.expect(words.ConnectionClose).reply_code == 530
    client.say(words.ConnectionCloseOk())
    client.expect_end()


def test_an_empty_response_is_asked_for(scene: Scene) -> None:
    client = scene.greeted()
    client.ask(attrs.evolve(START_OK, response=b""), amqp.ConnectionSecure)
    client.ask(amqp.ConnectionSecureOk(START_OK.response), amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(100, 8192, 0))
    client.say(amqp.ConnectionOpen("/"))
    broker = scene.broker(0)
    broker.greet()
    assert broker.expect(amqp.ConnectionStartOk).response == START_OK.response


def test_an_empty_response_is_asked_for_once(scene: Scene) -> None:
    client = scene.greeted()
    client.ask(attrs.evolve(START_OK, response=b""), amqp.ConnectionSecure)
    close = client.ask(amqp.ConnectionSecureOk(b""), amqp.ConnectionClose)
    assert (close.reply_code, "and there is none" in close.reply_text) == (403, True)


@pytest.mark.parametrize("capabilities", [CAPABILITIES, Table()], ids=["told of failures", "not told"])
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "EXTERNAL", "NONSENSE"])
def test_who_logs_in_by_what_is_not_offered_is_hung_up_on(
    scene: Scene, mechanism: str, capabilities: Table
) -> None:
    """As by RabbitMQ, whatever the client understands."""
    client = scene.greeted()
    client.say(attrs.evolve(START_OK, client_properties=capabilities, mechanism=mechanism))
    client.expect_end()


def test_who_may_share_connections_is_not_offered_challenges(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(upstream="connections: pooled")
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    with stage.door.accept() as asked:
        asked.greet(mechanisms=b"RABBIT-CR-DEMO PLAIN AMQPLAIN")
        asked.expect_end()
    assert client.expect(amqp.ConnectionStart).mechanisms == b"PLAIN AMQPLAIN"
    client.say(attrs.evolve(START_OK, mechanism="RABBIT-CR-DEMO"))
    client.expect_end()


@pytest.mark.parametrize(
    "said",
    [amqp.ConnectionOpen("/"), attrs.evolve(START_OK, response=b"no NULs")],
)
def test_who_breaks_the_protocol_is_hung_up_on(scene: Scene, said: Method) -> None:
    client = scene.greeted()
    client.say(said)
    client.expect_end()


# -- what is offered


def cluster(*, mechanisms: bytes | None = None, more: str = "", **capabilities: bool) -> Cluster:
    """A cluster whose broker has said start, unless `mechanisms` is None."""
    text = "listeners: [{name: m, bind: '127.0.0.1:0'}]\n"
    text += f"upstreams: [{{name: c, host: h{more}}}]\n"
    made = Cluster(parse(text, {}).upstreams[0])
    if mechanisms is not None:
        properties = Table.of({"product": "R", "cluster_name": "x", "capabilities": capabilities})
        made.start = amqp.ConnectionStart(0, 9, properties, mechanisms, b"en_US")
    return made


def listener(more: str = "") -> object:
    text = f"listeners: [{{name: m, bind: '127.0.0.1:0'{more}}}]\nupstreams: [{{name: c, host: h}}]\n"
    return parse(text, {}).listeners[0]


# -- routes and settings


def checked(route: str, *, bind: str = "0.0.0.0:0", more: str = "", mode: str = "enforce") -> None:
    text = (
        f"listeners: [{{name: main, bind: '{bind}', upstream: a{more}}}]\n"
        "upstreams: [{name: a, host: h}, {name: own, host: h, user: u, password: p}]\n"
    )
    document = HEAD.replace("  routes:", f"  mode: '{mode}'\n  routes:") + f"  - {{id: r, {route}}}\n"
    policies = build([Source("p.yaml", document.encode())])
    check_routes(parse(text, {}), policies, {"P": "secret", "EMPTY": ""})


LENT = "upstream: {cluster: a, user: u, passwordEnv: P}"


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("upstream: {cluster: b}", "no upstream is named 'b' in the settings; there are a, own"),
        ("upstream: {clusters: [{cluster: a}, {cluster: b}]}", "no upstream is named 'b'"),
        ("upstream: {cluster: a, user: u, passwordEnv: NONE}", "variable NONE is not set"),
        ("upstream: {cluster: a, user: u, passwordEnv: EMPTY}", "variable EMPTY is not set"),
        (LENT, "is not checked: match by tls"),
        ("match: {user: bob}, " + LENT, "is not checked: match by tls"),
        ("upstream: {cluster: own}", "is not checked: match by tls"),
    ],
)
def test_routes_that_the_settings_cannot_bear(written: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        checked(written)
    checked(written, mode="off")


def test_an_unknown_cluster_is_told_with_its_place() -> None:
    for written, column in (
        ("upstream: {cluster: onw}", 33),
        ("upstream: {clusters: [{cluster: a}, {cluster: onw}]}", 59),
    ):
        with pytest.raises(ConfigError, match=r"\(did you mean 'own'\?\)") as raised:
            checked(written)
        assert (raised.value.file, raised.value.column) == ("p.yaml", column)
        assert raised.value.line is not None


def test_a_lent_login_is_for_who_has_proven_who_he_is() -> None:
    checked(LENT, bind="127.0.0.1:0")
    checked(LENT, more=", allowAnonymous: true")
    checked("match: {tls: {commonName: x}}, " + LENT)
    checked("match: {listeners: [inner]}, " + LENT)
    with pytest.raises(ConfigError, match="listener 'main'"):
        checked(LENT, bind="127.0.0.1:0", more=", proxyProtocol: any")


def test_a_client_that_leaves_before_open_ok_takes_no_shared_connection_along(
    make_stage: Callable[..., Stage],
) -> None:
    """The connection by which its login was proven is the pool's once the broker has opened it."""
    stage = make_stage(upstream="connections: pooled, pool: {spareChannels: 0, maxLinks: 1}")
    client, broker = knocks(stage)
    asks_for_its_vhost(client, broker)
    client.reset()
    broker.say(amqp.ConnectionOpenOk())
    broker.hear_nothing(0.1)
    other = logged_in(stage)
    opened(other, broker, 1, 1)
