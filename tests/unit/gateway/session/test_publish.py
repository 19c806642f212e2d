"""Publishes that are upcalls: which are decided, and what they cost."""

from __future__ import annotations

from amqpgate.datapath.tables import FLOW_KEY_BYTES
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.gateway.conftest import Stage


def test_the_same_arguments_are_judged_once(guarded: Stage) -> None:
    client, broker = guarded.opened()
    for number in range(5):
        client.publish(b"%d" % number, "k", exchange="ok")
        assert broker.expect_content(amqp.BasicPublish).body == b"%d" % number
    upcalls = guarded.running.call(lambda: guarded.running.gateway.pump.counters.upcalls)
    client.publish(b"again", "k", exchange="ok")
    broker.expect_content(amqp.BasicPublish)
    assert guarded.running.call(lambda: guarded.running.gateway.pump.counters.upcalls) == upcalls
    # mandatory is another set of arguments, which may pass just as well.
    client.publish(b"again", "k", exchange="ok", mandatory=True)
    assert broker.expect_content(amqp.BasicPublish).method == amqp.BasicPublish(0, "ok", "k", True)


def test_a_client_with_ever_new_keys_costs_bounded_memory(guarded: Stage) -> None:
    client, broker = guarded.opened()
    for number in range(2200):
        client.publish(b"", f"{number:0250d}", exchange="ok")
        broker.expect_content(amqp.BasicPublish)
    session = next(iter(guarded.running.gateway.sessions.values()))
    assert session.relay.up.flows is not None
    assert 0 < len(session.relay.up.flows) * 250 < FLOW_KEY_BYTES
