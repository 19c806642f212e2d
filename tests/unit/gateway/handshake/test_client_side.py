"""What is said to a client, and what it may say, until its virtual host is open."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.protocol.sasl import plain_response
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.talker import CAPABILITIES, Talker
from tests.unit.gateway.conftest import Stage

MakeStage = Callable[..., Stage]

TUNE = amqp.ConnectionTune(2047, 131072, 0)
LOGIN = plain_response("guest", "secret")
NOT_OTHERS = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: p}
spec:
  subjects: [{user: guest, vhosts: [b]}]
  rules: [{id: no, effect: deny, operations: [connection.open]}]
"""


def start_ok(response: bytes = LOGIN) -> amqp.ConnectionStartOk:
    return amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", response, "en_US")


def tuned(stage: Stage) -> tuple[Talker, Talker]:
    """A client that has heard tune, and its broker."""
    client, broker = stage.greeted()
    client.say(start_ok())
    broker.expect(amqp.ConnectionStartOk)
    broker.say(TUNE)
    client.expect(amqp.ConnectionTune)
    return client, broker


def test_an_empty_response_asks_for_a_challenge(stage: Stage) -> None:
    """RabbitMQ has none: its answer is what the broker hears with start-ok."""
    client, broker = stage.greeted()
    client.say(start_ok(b""))
    assert client.expect(amqp.ConnectionSecure).challenge == b""
    client.say(amqp.ConnectionSecureOk(LOGIN))
    assert broker.expect(amqp.ConnectionStartOk).response == LOGIN


def test_a_client_that_closes_is_answered(stage: Stage) -> None:
    client, broker = tuned(stage)
    client.say(amqp.ConnectionClose(200, "no more"))
    client.expect(amqp.ConnectionCloseOk)
    client.close()
    broker.expect_end()


@pytest.mark.parametrize("answer", [(2047, 1 << 20), (2047, 17), (1 << 15, 131072)])
def test_who_wants_more_than_it_was_offered_is_left_without_a_word(
    stage: Stage, answer: tuple[int, int]
) -> None:
    """As RabbitMQ does."""
    client, _ = tuned(stage)
    client.say(amqp.ConnectionTuneOk(*answer, 0))
    client.expect_end()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"refused": 1}


@pytest.mark.parametrize(
    ("code", "heard"),
    [(403, "ACCESS_REFUSED - because"), (502, "SYNTAX_ERROR - the broker's text is withheld")],
)
def test_a_refusal_is_in_the_brokers_words_but_for_logins(stage: Stage, code: int, heard: str) -> None:
    client, broker = stage.greeted()
    client.say(start_ok())
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionClose(code, "ACCESS_REFUSED - because"))
    refusal = client.expect(amqp.ConnectionClose)
    assert refusal.reply_code == code
    assert refusal.reply_text.startswith(heard)
    # Each hop has its own end.
    broker.expect(amqp.ConnectionCloseOk)
    client.say(amqp.ConnectionCloseOk())
    client.expect_end()


def test_a_virtual_host_that_is_denied_is_530_and_names_open(make_stage: MakeStage) -> None:
    stage = make_stage(policies=NOT_OTHERS)
    client, broker = tuned(stage)
    client.say(amqp.ConnectionTuneOk(2047, 131072, 0))
    client.say(amqp.ConnectionOpen("b"))
    refusal = client.expect(amqp.ConnectionClose)
    assert (refusal.reply_code, refusal.class_id, refusal.method_id) == (530, 10, 40)
    assert refusal.reply_text == "NOT_ALLOWED - access to vhost 'b' refused for user 'guest'"
    client.say(amqp.ConnectionCloseOk())
    client.expect_end()
    # The broker has not been asked.
    broker.expect(amqp.ConnectionTuneOk)
    broker.expect(amqp.ConnectionClose)
