"""Clients and brokers of AMQP 0-8, 0-9 and 0-9-1: from the protocol header to open-ok, and every way out."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator

import attrs
import pytest

from amqpgate.protocol.frames import encode_frame
from amqpgate.protocol.header import HEADER_0_8_AMQPLIB, HEADER_1_0, name_of
from amqpgate.protocol.sasl import amqplain_response
from amqpgate.wire.generated import v0_8, v0_9
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.support.inprocess import Doorway, InProcess, eventually, serving
from tests.support.talker import CAPABILITIES, Talker
from tests.support.versions import GUEST, SPOKEN, Spoken, ask_for, asked, bye, greet, log_in, propose, start
from tests.unit.gateway.conftest import Stage

MakeStage = Callable[..., Stage]

#: A close-ok that is not understood is waited for in vain.
UNHURRIED = "closeTimeout: 1h"

NINE = list(itertools.product(SPOKEN, SPOKEN))


def come(stage: Stage, near: str = "0-9-1") -> Talker:
    """A client that has said its protocol header, for which the broker is dialled."""
    stage.forget()
    client = stage.client()
    greet(client, SPOKEN[near])
    return client


def begun(stage: Stage, near: str = "0-9-1", far: str = "0-9-1", **more: object) -> tuple[Talker, Talker]:
    """A client that waits for tune, and its broker, which has not heard start-ok."""
    client, broker = come(stage, near), stage.broker()
    start(broker, SPOKEN[far], **more)  # type: ignore[arg-type]
    log_in(client, SPOKEN[near])
    return client, broker


def waiting(stage: Stage, near: str, far: str, **asks: object) -> tuple[Talker, Talker, Method]:
    """A client that waits for open-ok, its broker, and the open that this one has heard."""
    client, broker = begun(stage, near, far)
    propose(broker, SPOKEN[far])
    ask_for(client, SPOKEN[near], **asks)  # type: ignore[arg-type]
    _, open_ = asked(broker, SPOKEN[far])
    return client, broker, open_


# -- nine cells ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("near", "far"), NINE)
def test_open_ok_in_every_cell(make_stage: MakeStage, near: str, far: str) -> None:
    client, broker, _ = waiting(make_stage(upstream=f"version: '{far}'"), near, far)
    # Other hosts of the broker's are not for the client.
    broker.say(SPOKEN[far].words.ConnectionOpenOk("10.9.8.7:5672"))
    assert client.frame().payload == SPOKEN[near].words.ConnectionOpenOk().encode(SPOKEN[near].dialect)


@pytest.mark.parametrize(("near", "far"), NINE)
def test_a_refusal_in_every_cell(make_stage: MakeStage, near: str, far: str) -> None:
    """Close and close-ok have other numbers in 0-8."""
    stage = make_stage(upstream=f"version: '{far}'", limits=UNHURRIED)
    client, broker, _ = waiting(stage, near, far)
    ours, theirs = SPOKEN[near].words, SPOKEN[far].words
    broker.say(theirs.ConnectionClose(530, "NOT_ALLOWED - vhost / not found", 10, 40))
    heard = client.expect(ours.ConnectionClose)
    assert heard == ours.ConnectionClose(530, "NOT_ALLOWED - vhost / not found", 10, 40)
    client.say(ours.ConnectionCloseOk())
    broker.expect(theirs.ConnectionCloseOk)
    client.expect_end()
    for talker in (client, broker):
        talker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"refused": 1}


@pytest.mark.parametrize("near", SPOKEN)
def test_a_client_that_closes_is_answered_in_its_version(stage: Stage, near: str) -> None:
    client, broker = begun(stage, near)
    words = SPOKEN[near].words
    propose(broker, SPOKEN["0-9-1"])
    client.expect(words.ConnectionTune)
    client.say(words.ConnectionTuneOk(2047, 131072, 0))
    bye(client, SPOKEN[near])


@pytest.mark.parametrize(("near", "code"), [("0-8", 505), ("0-9", 503), ("0-9-1", 505)])
def test_a_violation_is_told_in_the_clients_version(stage: Stage, near: str, code: int) -> None:
    """0-9 has no 505, and RabbitMQ did not add it there; 503 is the nearest."""
    client, broker = begun(stage, near)
    propose(broker, SPOKEN["0-9-1"])
    words = SPOKEN[near].words
    client.expect(words.ConnectionTune)
    client.say(words.ConnectionTuneOk(2047, 131072, 0))
    client.raw(encode_frame(amqp.FRAME_HEADER, 0, bytes(14)))
    close = client.expect(words.ConnectionClose)
    assert close.reply_code == code
    assert close.reply_text.startswith("UNEXPECTED_FRAME - ")


@pytest.mark.parametrize("near", SPOKEN)
def test_no_broker_there_is_told_in_the_clients_version(stage: Stage, near: str) -> None:
    stage.door.close()
    client = come(stage, near)
    heard = log_in(client, SPOKEN[near])
    assert (heard.version_major, heard.version_minor) == SPOKEN[near].start
    words = SPOKEN[near].words
    assert client.expect(words.ConnectionClose).reply_code == 320
    client.say(words.ConnectionCloseOk())
    client.expect_end()


def test_the_header_of_python_amqplib_is_0_8(stage: Stage) -> None:
    client = stage.client()
    greet(client, SPOKEN["0-8"], HEADER_0_8_AMQPLIB)
    start(stage.broker(), SPOKEN["0-9-1"], capabilities={"publisher_confirms": True})
    heard = client.expect(v0_8.ConnectionStart)
    assert (heard.version_major, heard.version_minor) == (8, 0)
    # As RabbitMQ: what extends 0-9-1 is not promised to 0-8.
    assert heard.server_properties.to_python() == {"product": "scripted"}


@pytest.mark.parametrize(("near", "far"), NINE)
def test_the_end_of_a_session_is_told_in_every_cell(make_stage: MakeStage, near: str, far: str) -> None:
    stage = make_stage(upstream=f"version: '{far}'", limits=UNHURRIED)
    client, broker, _ = waiting(stage, near, far)
    broker.say(SPOKEN[far].words.ConnectionOpenOk())
    client.expect(SPOKEN[near].words.ConnectionOpenOk)
    eventually(lambda: bool(stage.running.gateway.sessions))
    stage.running.call(stage.running.gateway.registry.finish)
    for talker, version in ((client, near), (broker, far)):
        words = SPOKEN[version].words
        assert talker.expect(words.ConnectionClose).reply_code == 320
        talker.say(words.ConnectionCloseOk())
        talker.expect_end()
        talker.close()
    stage.running.wait_idle()


# -- what the broker hears of the client ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("far", "understood"),
    [
        ("0-9-1", set(CAPABILITIES.to_python()["capabilities"])),  # type: ignore[arg-type]
        ("0-9", {"authentication_failure_close", "consumer_cancel_notify"}),
        ("0-8", {"authentication_failure_close", "consumer_cancel_notify"}),
    ],
)
def test_a_broker_hears_of_no_capability_that_its_version_has_no_words_for(
    make_stage: MakeStage, far: str, understood: set[str]
) -> None:
    _, broker = begun(make_stage(upstream=f"version: '{far}'"), "0-9-1", far)
    said = propose(broker, SPOKEN[far]).client_properties.to_python()
    assert set(said["capabilities"]) == understood
    assert said["product"] == "talker"


@pytest.mark.parametrize(
    ("near", "far", "heard"),
    [
        ("0-8", "0-9", ("dtx", True)),
        ("0-9", "0-8", ("dtx", True)),
        # Reserved in 0-9-1: they mean nothing there, and must be zero.
        ("0-8", "0-9-1", ("", False)),
        ("0-9-1", "0-8", ("", False)),
        # Nothing is changed between two of 0-9-1.
        ("0-9-1", "0-9-1", ("dtx", True)),
    ],
)
def test_opens_capabilities_and_insist(
    make_stage: MakeStage, near: str, far: str, heard: tuple[str, bool]
) -> None:
    stage = make_stage(upstream=f"version: '{far}'")
    _, _, open_ = waiting(stage, near, far, capabilities="dtx", insist=True)
    assert open_ == SPOKEN[far].words.ConnectionOpen("/", *heard)


# -- which version a broker speaks ---------------------------------------------------------------------------


def answer(broker: Talker, header: bytes) -> bytes:
    """A broker that does not speak the version that it is asked for: which one that was."""
    asked_for = broker.exactly(8)
    broker.raw(header)
    broker.close()
    return asked_for


def learn(stage: Stage, far: str, **more: object) -> None:
    """One connection, with which the gateway learns that the broker speaks that version."""
    client = come(stage)
    assert answer(stage.broker(), SPOKEN[far].header) == amqp.PROTOCOL_HEADER
    start(stage.broker(), SPOKEN[far], **more)  # type: ignore[arg-type]
    client.expect(amqp.ConnectionStart)


@pytest.mark.parametrize("far", ["0-8", "0-9"])
def test_a_broker_is_spoken_to_as_it_answers(stage: Stage, far: str) -> None:
    learn(stage, far, version="1.0")
    # The next one need not ask.
    _, broker = begun(stage, "0-9-1", far, version="1.0")
    broker.expect(SPOKEN[far].words.ConnectionStartOk)
    come(stage)
    assert stage.broker().exactly(8) == SPOKEN[far].header


def test_what_was_learnt_is_forgotten_when_it_is_refused(stage: Stage) -> None:
    learn(stage, "0-8")
    client = come(stage)
    assert answer(stage.broker(), amqp.PROTOCOL_HEADER) == SPOKEN["0-8"].header
    start(stage.broker(), SPOKEN["0-9-1"])
    client.expect(amqp.ConnectionStart)
    come(stage)
    assert stage.broker().exactly(8) == amqp.PROTOCOL_HEADER


def test_what_was_learnt_is_forgotten_when_the_broker_is_another_one(stage: Stage) -> None:
    learn(stage, "0-8", version="1.0")
    # It still speaks 0-8, and perhaps more by now.
    begun(stage, "0-9-1", "0-8", version="2.0")
    come(stage)
    assert stage.broker().exactly(8) == amqp.PROTOCOL_HEADER


def test_what_was_learnt_is_forgotten_when_the_broker_fails(stage: Stage) -> None:
    learn(stage, "0-8")
    client, broker = come(stage), stage.broker()
    assert broker.exactly(8) == SPOKEN["0-8"].header
    broker.close()
    client.expect(amqp.ConnectionStart)
    come(stage)
    assert stage.broker().exactly(8) == amqp.PROTOCOL_HEADER


def test_a_start_of_another_version_decides(stage: Stage) -> None:
    """A broker that does not refuse the header, and starts what it speaks."""
    client, broker = come(stage), stage.broker()
    broker.exactly(8)
    broker.dialect = SPOKEN["0-8"].dialect
    broker.say(v0_8.ConnectionStart(8, 0, Table.of({"product": "old"}), b"PLAIN", b"en_US"))
    heard = log_in(client, SPOKEN["0-9-1"])
    assert (heard.version_major, heard.version_minor) == (0, 9)
    broker.expect(v0_8.ConnectionStartOk)
    broker.say(v0_8.ConnectionClose(403, "ACCESS_REFUSED - no", 0, 0))
    assert client.expect(amqp.ConnectionClose).reply_code == 403


def told_320(client: Talker, near: str = "0-9-1") -> str:
    """The text of connection.close 320."""
    words = SPOKEN[near].words
    close = client.expect(words.ConnectionClose)
    assert close.reply_code == 320
    client.say(words.ConnectionCloseOk())
    client.expect_end()
    client.close()
    return close.reply_text


@pytest.mark.parametrize("header", [HEADER_1_0, b"AMQP\0\1\0\1", b"ANYTHING"])
def test_a_broker_of_no_version_that_is_spoken(stage: Stage, header: bytes) -> None:
    client = come(stage)
    answer(stage.broker(), header)
    log_in(client, SPOKEN["0-9-1"])
    assert f"it answers the protocol header of AMQP 0-9-1 with {name_of(header)}" in told_320(client)


def test_a_broker_that_goes_in_circles(stage: Stage) -> None:
    client = come(stage)
    for far in ("0-8", "0-9", "0-8"):
        answer(stage.broker(), SPOKEN[far].header)
    log_in(client, SPOKEN["0-9-1"])
    assert "it answers the protocol header of AMQP 0-9 with" in told_320(client)


def test_a_version_that_is_set_is_the_only_one(make_stage: MakeStage) -> None:
    stage = make_stage(upstream="version: 0-8")
    client = come(stage)
    assert answer(stage.broker(), amqp.PROTOCOL_HEADER) == SPOKEN["0-8"].header
    log_in(client, SPOKEN["0-9-1"])
    text = told_320(client)
    assert f"it answers the protocol header of AMQP 0-8 with {name_of(amqp.PROTOCOL_HEADER)}" in text
    client, broker = come(stage), stage.broker()
    broker.exactly(8)
    broker.say(amqp.ConnectionStart(0, 9, Table(), b"PLAIN", b"en_US"))
    log_in(client, SPOKEN["0-9-1"])
    assert "it starts AMQP 0-9-1, not 0-8" in told_320(client)


def test_a_header_that_is_echoed_is_no_answer(stage: Stage) -> None:
    client, broker = come(stage), stage.broker()
    broker.raw(broker.exactly(8))
    broker.say(amqp.ConnectionStart(0, 9, Table(), b"PLAIN", b"en_US"))
    log_in(client, SPOKEN["0-9-1"])
    broker.expect(amqp.ConnectionStartOk)


ROUTES = """
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: p}
spec: {routes: [{id: r, upstream: {cluster: broker, version: 0-8}}]}
"""


def test_a_route_may_name_the_version(make_stage: MakeStage) -> None:
    stage = make_stage(upstream="version: 0-9", policies=ROUTES)
    come(stage)
    assert stage.broker().exactly(8) == SPOKEN["0-8"].header


# -- redirects ----------------------------------------------------------------------------------------------

TWO = """
listeners: [{{name: main, bind: 127.0.0.1:0}}]
upstreams: [{{name: pair, version: {far}, endpoints: [{places}]{more}}}]
"""


@attrs.frozen
class Pair:
    """A gateway whose cluster has one of two doors, or both."""

    running: InProcess
    doors: tuple[Doorway, Doorway]
    far: Spoken
    guests: contextlib.ExitStack

    def at(self, index: int) -> str:
        """Where the door is."""
        return f"127.0.0.1:{self.doors[index].port}"

    def broker(self, index: int) -> Talker:
        return self.guests.enter_context(self.doors[index].accept())

    def redirected(self, to: str, known: str = "", *, insist: bool = False) -> Talker:
        """A client of 0-9 that waits for open-ok, whose broker has redirected."""
        client = self.guests.enter_context(self.running.dial())
        greet(client, SPOKEN["0-9"])
        broker = self.broker(0)
        start(broker, self.far)
        log_in(client, SPOKEN["0-9"])
        propose(broker, self.far, 100, 16384, 0)
        ask_for(client, SPOKEN["0-9"], vhost="/shop", insist=insist)
        asked(broker, self.far)
        broker.say(self.far.words.ConnectionRedirect(to, known))
        return client


@pytest.fixture
def make_pair() -> Iterator[Callable[..., Pair]]:
    with contextlib.ExitStack() as everything:

        def make(far: str = "0-8", more: str = "", known: int = 2) -> Pair:
            first, second = (everything.enter_context(contextlib.closing(Doorway())) for _ in range(2))
            places = ", ".join(f"{{address: '127.0.0.1:{door.port}'}}" for door in (first, second)[:known])
            text = TWO.format(far=far, places=places, more=f", {more}" if more else "")
            running = everything.enter_context(serving(text))
            guests = everything.enter_context(contextlib.ExitStack())
            return Pair(running, (first, second), SPOKEN[far], guests)

        yield make


MakePair = Callable[..., Pair]


@pytest.mark.parametrize("far", ["0-8", "0-9"])
def test_a_redirect_is_followed_within_the_cluster(make_pair: MakePair, far: str) -> None:
    pair = make_pair(far)
    client = pair.redirected(pair.at(1))
    other = pair.broker(1)
    start(other, pair.far)
    said = propose(other, pair.far, 50, 131072, 7)
    assert (said.mechanism, said.response) == ("PLAIN", GUEST)
    tune_ok, open_ = asked(other, pair.far)
    # Its limits are its own; what the client has agreed to holds on.
    assert (tune_ok.channel_max, tune_ok.frame_max, tune_ok.heartbeat) == (50, 16384, 7)
    assert open_.virtual_host == "/shop"
    other.say(pair.far.words.ConnectionOpenOk())
    client.expect(v0_9.ConnectionOpenOk)
    eventually(lambda: bool(pair.running.gateway.sessions))
    (session,) = pair.running.gateway.sessions.values()
    assert session.facts.channel_max == 50


@pytest.mark.parametrize(("setting", "known"), [("cluster", 1), ("never", 1), ("never", 2)])
def test_a_redirect_that_is_not_followed(make_pair: MakePair, setting: str, known: int) -> None:
    pair = make_pair(more=f"redirects: {setting}", known=known)
    text = told_320(pair.redirected(pair.at(1)), "0-9")
    assert f"redirects to '{pair.at(1)}': not followed, since the settings say 'redirects: {setting}'" in text


def test_a_redirect_to_anywhere_is_followed_where_the_settings_say_so(make_pair: MakePair) -> None:
    pair = make_pair(more="redirects: any", known=1)
    client = pair.redirected(pair.at(1))
    other = pair.broker(1)
    start(other, pair.far)
    propose(other, pair.far)
    asked(other, pair.far)
    other.say(v0_8.ConnectionOpenOk())
    client.expect(v0_9.ConnectionOpenOk)


@pytest.mark.parametrize("separator", [",", " "])
def test_a_redirect_to_who_is_not_there_goes_to_another_host_that_the_broker_knows(
    make_pair: MakePair, separator: str
) -> None:
    pair = make_pair()
    with contextlib.closing(Doorway()) as gone:
        nobody = f"127.0.0.1:{gone.port}"
    client = pair.redirected(nobody, separator.join((nobody, pair.at(1))))
    other = pair.broker(1)
    start(other, pair.far)
    propose(other, pair.far)
    asked(other, pair.far)
    other.say(v0_8.ConnectionOpenOk())
    client.expect(v0_9.ConnectionOpenOk)


def test_a_redirect_tries_so_many_hosts_and_no_more(make_pair: MakePair) -> None:
    pair = make_pair()
    client = pair.redirected("a:1", " ".join(["b:1", "c:1", "d:1", "e:1", "f:1", "g:1", "h:1", pair.at(1)]))
    assert "redirects to 'a:1'" in told_320(client, "0-9")


def test_who_insists_is_not_redirected(make_pair: MakePair) -> None:
    pair = make_pair()
    assert "and the client insists" in told_320(pair.redirected(pair.at(1), insist=True), "0-9")


@pytest.mark.parametrize("to", ["", "no host:5672", "127.0.0.1:port"])
def test_a_redirect_to_nowhere(make_pair: MakePair, to: str) -> None:
    pair = make_pair(more="redirects: any")
    assert f"redirects to '{to}': " in told_320(pair.redirected(to), "0-9")


def test_redirects_end(make_pair: MakePair) -> None:
    pair = make_pair()
    client = pair.redirected(pair.at(1))
    for here in (1, 0, 1):
        broker = pair.broker(here)
        start(broker, pair.far)
        propose(broker, pair.far)
        asked(broker, pair.far)
        broker.say(v0_8.ConnectionRedirect(pair.at(1 - here), ""))
        broker.expect_end()
    assert "redirects more than 3 times" in told_320(client, "0-9")


# -- patience -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("near", SPOKEN)
def test_an_empty_response_is_asked_for(stage: Stage, near: str) -> None:
    client, broker = come(stage, near), stage.broker()
    start(broker, SPOKEN["0-9-1"])
    log_in(client, SPOKEN[near], response=b"")
    words = SPOKEN[near].words
    assert client.expect(words.ConnectionSecure).challenge == b""
    client.say(words.ConnectionSecureOk(GUEST))
    assert broker.expect(amqp.ConnectionStartOk).response == GUEST


def test_it_is_asked_for_once_and_then_left_to_the_broker(stage: Stage) -> None:
    client, broker = come(stage), stage.broker()
    start(broker, SPOKEN["0-9-1"])
    log_in(client, SPOKEN["0-9-1"], response=b"")
    for response in (b"", GUEST):
        client.expect(amqp.ConnectionSecure)
        client.say(amqp.ConnectionSecureOk(response))
        if not response:
            assert broker.expect(amqp.ConnectionStartOk).response == b""
            broker.say(amqp.ConnectionSecure())
    assert broker.expect(amqp.ConnectionSecureOk).response == GUEST


OF_ALICE = {"PLAIN": b"\0alice\0s3cret", "AMQPLAIN": amqplain_response("alice", "s3cret")}


@pytest.mark.parametrize(
    ("offered", "shown", "said", "heard"),
    [
        (b"PLAIN", b"PLAIN AMQPLAIN", "AMQPLAIN", "PLAIN"),
        (b"X PLAIN", b"X PLAIN AMQPLAIN", "PLAIN", "PLAIN"),
        (b"AMQPLAIN", b"AMQPLAIN PLAIN", "PLAIN", "AMQPLAIN"),
        (b"AMQPLAIN PLAIN", b"AMQPLAIN PLAIN", "AMQPLAIN", "AMQPLAIN"),
        (b"X", b"X", "PLAIN", "PLAIN"),
    ],
)
def test_plain_and_amqplain_say_the_same(
    stage: Stage, offered: bytes, shown: bytes, said: str, heard: str
) -> None:
    client, broker = come(stage), stage.broker()
    start(broker, SPOKEN["0-9-1"], offered)
    assert log_in(client, SPOKEN["0-9-1"], mechanism=said, response=OF_ALICE[said]).mechanisms == shown
    start_ok = broker.expect(amqp.ConnectionStartOk)
    assert (start_ok.mechanism, start_ok.response) == (heard, OF_ALICE[heard])


def test_a_login_of_the_gateways_own_is_said_as_the_broker_can_hear_it(make_stage: MakeStage) -> None:
    _, broker = begun(make_stage(upstream="user: alice, password: s3cret"), mechanisms=b"AMQPLAIN")
    start_ok = broker.expect(amqp.ConnectionStartOk)
    assert (start_ok.mechanism, start_ok.response) == ("AMQPLAIN", OF_ALICE["AMQPLAIN"])


def test_a_nul_in_the_gateways_own_password_is_said_by_amqplain(make_stage: MakeStage) -> None:
    own = r'user: alice, password: "s\0cret"'
    _, broker = begun(make_stage(upstream=own), mechanisms=b"PLAIN AMQPLAIN")
    start_ok = broker.expect(amqp.ConnectionStartOk)
    assert (start_ok.mechanism, start_ok.response) == ("AMQPLAIN", amqplain_response("alice", "s\0cret"))


def test_a_small_frame_max_stays_on_the_clients_hop(stage: Stage) -> None:
    """Bodies are cut for the client; a broker that insists on 8192 bytes (RabbitMQ 4.1) gets more."""
    client, broker = stage.opened(tune_ok=amqp.ConnectionTuneOk(2047, 4096, 0))
    assert (client.frame_max, broker.frame_max) == (4096, 12272)
    body = bytes(range(256)) * 80
    broker.content(amqp.BasicDeliver("tag", 1, False, "", "q"), body)
    heard = client.expect_content(amqp.BasicDeliver)
    # Cut as the broker would have cut it, which has the whole frames' size.
    assert (heard.body, heard.largest, heard.frames) == (body, 4096, 6)
    client.publish(body, "q")
    assert broker.expect_content(amqp.BasicPublish).body == body


@pytest.mark.parametrize("near", SPOKEN)
def test_zero_is_no_limit_of_the_clients(stage: Stage, near: str) -> None:
    client, broker = begun(stage, near)
    propose(broker, SPOKEN["0-9-1"], 2047, 131072, 60)
    ask_for(client, SPOKEN[near], tune_ok=(0, 0, 0))
    tune_ok, _ = asked(broker, SPOKEN["0-9-1"])
    assert tune_ok == amqp.ConnectionTuneOk(2047, 131072, 60)


# -- a start of a version that there is not -----------------------------------------------------------------


@pytest.mark.parametrize("numbers", [(0, 1), (1, 0), (99, 99), (9, 1), (0, 8)], ids=str)
@pytest.mark.parametrize(
    "upstream",
    ["", "version: 0-9-1", "version: 0-8", "user: app, password: secret", "connections: pooled"],
    ids=lambda text: text or "auto",
)
def test_a_start_of_an_unknown_version_is_not_answered(
    make_stage: MakeStage, upstream: str, numbers: tuple[int, int]
) -> None:
    """ "It MUST close the socket connection without sending any further data" (connection.start)."""
    stage = make_stage(upstream=upstream)
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    # Of a pool's it is asked what it offers, and then told a login.
    for is_login in (False, True) if "pooled" in upstream else (True,):
        broker = stage.broker()
        broker.exactly(8)
        broker.say(amqp.ConnectionStart(*numbers, CAPABILITIES, b"PLAIN AMQPLAIN", b"en_US"))
        broker.expect_end()
        if "pooled" not in upstream or not is_login:
            log_in(client, SPOKEN["0-9-1"])
    close = client.expect(amqp.ConnectionClose)
    assert close.reply_code == 320
    name = "-".join(map(str, numbers))
    assert f"upstream 127.0.0.1:{stage.door.port}: it starts AMQP {name}" in close.reply_text


def test_a_health_check_does_not_take_an_unknown_version_for_well(make_stage: MakeStage) -> None:
    stage = make_stage(upstream="health: {check: amqp, interval: 1h, failures: 1}")
    broker = stage.broker()
    broker.exactly(8)
    broker.say(amqp.ConnectionStart(99, 99, CAPABILITIES, b"PLAIN AMQPLAIN", b"en_US"))
    broker.expect_end()
    (endpoint,) = stage.running.gateway.router.clusters["broker"].endpoints
    eventually(lambda: not endpoint.up)
