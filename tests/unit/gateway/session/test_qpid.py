"""Clients of Qpid, which say so in start-ok: what they ask for beyond the standard."""

from __future__ import annotations

import attrs
import pytest

from amqpgate.wire import dialects
from amqpgate.wire.dialects import Dialect
from amqpgate.wire.generated import v0_8
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.talker import Talker
from tests.support.versions import SPOKEN, ask_for, asked, greet, log_in, propose, start
from tests.unit.gateway.conftest import Stage, open_channel

DIALECTS = {"0-8": dialects.QPID_0_8, "0-9-1": dialects.QPID_0_9_1}


def met(
    stage: Stage, version: str, product: str, broker_product: str, broker_dialect: Dialect
) -> tuple[Talker, Talker]:
    """A client of this version and product, and a broker of 0-9-1; channel 1 is open."""
    near = attrs.evolve(SPOKEN[version], properties=Table.of({"product": product}))
    far = SPOKEN["0-9-1"]
    client = stage.client()
    greet(client, near)
    broker = stage.broker()
    start(broker, far, product=broker_product)
    log_in(client, near)
    propose(broker, far)
    ask_for(client, near)
    asked(broker, far)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(near.words.ConnectionOpenOk)
    client.dialect = DIALECTS[version] if product == "qpid" else near.dialect
    broker.dialect = broker_dialect
    open_channel(client, broker, 1)
    return client, broker


def test_whether_a_binding_exists_is_asked_of_a_broker_that_knows(stage: Stage) -> None:
    client, broker = met(stage, "0-9-1", "qpid", "qpid", dialects.QPID_0_9_1)
    bound = amqp.ExchangeBound("e", "k", "q")
    client.say(bound, 1)
    assert broker.hear() == (1, bound)
    broker.say(amqp.ExchangeBoundOk(0, ""), 1)
    assert client.hear() == (1, amqp.ExchangeBoundOk(0, ""))


def test_recover_after_a_get_is_answered(stage: Stage) -> None:
    """Without a consumer, whose table would have told."""
    client, broker = met(stage, "0-8", "qpid", "RabbitMQ", dialects.RABBITMQ_0_9_1)
    client.say(v0_8.BasicRecoverAsync(requeue=True), 1)
    assert broker.hear() == (1, amqp.BasicRecover(requeue=True))
    broker.say(amqp.BasicRecoverOk(), 1)
    assert client.hear() == (1, v0_8.BasicRecoverSyncOk())


def test_another_client_of_0_8_does_not_wait_for_an_answer(stage: Stage) -> None:
    client, broker = met(stage, "0-8", "py-amqplib", "RabbitMQ", dialects.RABBITMQ_0_9_1)
    client.say(v0_8.BasicRecoverAsync(requeue=True), 1)
    assert broker.hear() == (1, amqp.BasicRecoverAsync(requeue=True))


@pytest.mark.parametrize("product", ["qpid", "other"])
def test_deliveries_are_stopped_for_qpids_client_of_0_9_1(stage: Stage, product: str) -> None:
    client, broker = met(stage, "0-9-1", product, "RabbitMQ", dialects.RABBITMQ_0_9_1)
    client.say(amqp.ChannelFlow(active=False), 1)
    if product == "qpid":
        assert client.hear() == (1, amqp.ChannelFlowOk(active=False))
    else:
        assert broker.hear() == (1, amqp.ChannelFlow(active=False))
