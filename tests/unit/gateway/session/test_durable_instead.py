"""What a client hears of a queue that it declares as transient, and that is there as durable."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from amqpgate.gateway.session import durable_instead
from amqpgate.gateway.session.durable_instead import DurableInstead
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.unit.gateway.conftest import Stage
from tests.unit.policy.kinds.test_compatibility import document

BEGIN = "PRECONDITION_FAILED - inequivalent arg "
DURABLE = BEGIN + "'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'"
NO_EXPIRY = (
    BEGIN + "'x-expires' for queue 'q' in vhost '/': "
    "received the value '86400000' of type 'signedint' but current is none"
)
QUORUM = BEGIN + "'x-queue-type' for queue 'q' in vhost '/': received 'classic' but current is 'quorum'"
OTHER_EXPIRY = NO_EXPIRY.replace("none", "the value '5' of type 'signedint'")

TRANSIENT = amqp.QueueDeclare(queue="q")
TOLD = attrs.evolve(
    TRANSIENT, durable=True, arguments=Table.of({"x-queue-type": "classic", "x-expires": 86_400_000})
)


def close(text: str, code: int = 406, method_id: int = 10) -> amqp.ChannelClose:
    return amqp.ChannelClose(code, text, 50, method_id)


@pytest.mark.parametrize("text", [NO_EXPIRY, QUORUM])
def test_it_is_in_the_words_of_three(text: str) -> None:
    declares = DurableInstead()
    declares.declared(1, TRANSIENT, TOLD)
    assert declares.heard(1, close(text)) == close(DURABLE)


@pytest.mark.parametrize(
    ("channel", "told"),
    [
        (2, close(NO_EXPIRY)),
        (1, close(NO_EXPIRY.replace("'q'", "'r'"))),
        (1, close(OTHER_EXPIRY)),
        (1, close(NO_EXPIRY.replace("x-expires", "x-max-length"))),
        (1, close(NO_EXPIRY, code=405)),
        (1, close(NO_EXPIRY, method_id=20)),
        (1, close(NO_EXPIRY[:-5])),
    ],
)
def test_all_else_is_in_the_brokers(channel: int, told: amqp.ChannelClose) -> None:
    declares = DurableInstead()
    declares.declared(1, TRANSIENT, TOLD)
    assert declares.heard(channel, told) is told


def test_an_argument_that_the_client_said_is_its_own() -> None:
    declares = DurableInstead()
    said = attrs.evolve(TRANSIENT, arguments=Table.of({"x-expires": 86_400_000}))
    declares.declared(1, said, TOLD)
    assert declares.heard(1, close(NO_EXPIRY)) == close(NO_EXPIRY)
    assert declares.heard(1, close(QUORUM)) == close(DURABLE)


def test_a_queue_that_is_declared_otherwise_meanwhile_is_not_meant() -> None:
    declares = DurableInstead()
    declares.declared(1, TRANSIENT, TOLD)
    declares.declared(1, TOLD, TOLD)
    assert declares.heard(1, close(NO_EXPIRY)) == close(NO_EXPIRY)


def test_the_latest_are_remembered() -> None:
    declares = DurableInstead()
    for number in range(durable_instead.MOST + 1):
        name = f"q{number}"
        declares.declared(1, attrs.evolve(TRANSIENT, queue=name), attrs.evolve(TOLD, queue=name))
    first, last = (close(NO_EXPIRY.replace("'q'", f"'q{number}'")) for number in (0, durable_instead.MOST))
    assert declares.heard(1, first) is first
    assert declares.heard(1, last) is not last


def test_a_client_hears_it(make_stage: Callable[..., Stage]) -> None:
    client, broker = make_stage(policies=document("three")).opened()
    client.say(TRANSIENT, 1)
    assert broker.expect(amqp.QueueDeclare, 1) == TOLD
    broker.say(close(NO_EXPIRY), 1)
    assert client.expect(amqp.ChannelClose, 1) == close(DURABLE)
