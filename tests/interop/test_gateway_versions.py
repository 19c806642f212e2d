"""Clients and upstreams of AMQP 0-8, 0-9 and 0-9-1 on a RabbitMQ that speaks all three."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from amqpgate.protocol.header import HEADER_0_8_AMQPLIB, HEADER_0_9
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import InProcess, serving
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import CAPABILITIES, Talker
from tests.support.versions import SPOKEN, ask_for, bye, greet, log_in, open_up

SETTINGS = """
listeners: [{{name: main, bind: 127.0.0.1:0}}]
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}, version: {far}}}]
"""


@pytest.fixture(scope="module", params=[*SPOKEN, "auto"])
def running(request: pytest.FixtureRequest, rabbitmq: RabbitMQ) -> Iterator[InProcess]:
    """A gateway that speaks this version with the broker."""
    with serving(SETTINGS.format(port=rabbitmq.port, far=request.param)) as running:
        yield running


@pytest.mark.parametrize("near", SPOKEN)
def test_a_connection_opens_and_closes(running: InProcess, near: str) -> None:
    words = SPOKEN[near].words
    before = running.outcomes().get("closed", 0)
    with running.dial() as client:
        open_up(client, SPOKEN[near])
        client.ask(words.ChannelOpen(), words.ChannelOpenOk, 1)
        bye(client, SPOKEN[near])
    running.wait_idle()
    assert running.outcomes() == {"closed": before + 1} | {
        name: count for name, count in running.outcomes().items() if name != "closed"
    }


@pytest.mark.parametrize("near", SPOKEN)
def test_an_unknown_vhost_is_refused(running: InProcess, near: str) -> None:
    words = SPOKEN[near].words
    with running.dial() as client:
        greet(client, SPOKEN[near])
        log_in(client, SPOKEN[near])
        ask_for(client, SPOKEN[near], vhost="nowhere")
        close = client.expect(words.ConnectionClose)
        assert (close.reply_code, close.class_id, close.method_id) == (530, 10, 40)
        assert "vhost nowhere not found" in close.reply_text
        client.say(words.ConnectionCloseOk())
        client.expect_end()


@pytest.mark.parametrize("near", SPOKEN)
def test_a_wrong_password_is_refused(running: InProcess, near: str) -> None:
    """As RabbitMQ does it: in words to those who ask for them, to others by hanging up."""
    words = SPOKEN[near].words
    with running.dial() as client:
        greet(client, SPOKEN[near])
        log_in(client, SPOKEN[near], response=b"\0guest\0wrong")
        if "capabilities" in SPOKEN[near].properties:
            assert client.expect(words.ConnectionClose).reply_code == 403
            client.say(words.ConnectionCloseOk())
        client.expect_end()


def test_the_start_is_rabbitmqs_own(running: InProcess, rabbitmq: RabbitMQ) -> None:
    """Whatever version the gateway speaks with the broker, but for capabilities of the broker's version."""
    for spoken in SPOKEN.values():
        heard = []
        for client in (Talker.dial(rabbitmq.port), running.dial()):
            with client:
                greet(client, spoken)
                start = client.expect(spoken.words.ConnectionStart)
                properties = start.server_properties.to_python()
                properties.pop("capabilities", None)
                heard.append((start.version_major, start.version_minor, properties, start.mechanisms))
        assert heard[0] == heard[1]


def test_python_amqplibs_header_is_0_8(running: InProcess) -> None:
    with running.dial() as client:
        greet(client, SPOKEN["0-8"], HEADER_0_8_AMQPLIB)
        log_in(client, SPOKEN["0-8"])
        ask_for(client, SPOKEN["0-8"])
        client.expect(SPOKEN["0-8"].words.ConnectionOpenOk)
        bye(client, SPOKEN["0-8"])


def test_the_ambiguous_header_from_a_client_of_0_9_1(running: InProcess) -> None:
    """Its capabilities decide, so it is told in the words of 0-9-1: 0-9 has no 505."""
    with running.dial() as client:
        client.raw(HEADER_0_9)
        client.expect(amqp.ConnectionStart)
        tune = client.ask(
            amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US"), amqp.ConnectionTune
        )
        client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
        client.raw(b"\2\0\0\0\0\0\x0e" + bytes(14) + b"\xce")
        assert client.expect(amqp.ConnectionClose).reply_code == 505
