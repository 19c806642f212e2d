"""Drains: which sessions go on, which are closed, and when."""

from __future__ import annotations

import functools
import os

import pytest
import trio

from amqpgate.app.wiring import build
from amqpgate.config import parse
from amqpgate.datapath import build as engines
from amqpgate.datapath import pump as plain_pump
from amqpgate.datapath.driver import run_hosted
from amqpgate.gateway.server import assembly
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.support.ports import refuses
from tests.support.talker import Gone, Talker
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.server.test_gateway import MakeStage


def draining(make_stage: MakeStage, limits: str) -> tuple[Stage, Talker, Talker]:
    """A gateway with one session that has been told to stop."""
    stage = make_stage(limits=limits)
    client, broker = stage.opened()
    stage.running.call(stage.running.gateway.drain)
    eventually(lambda: refuses(stage.running.port()))
    return stage, client, broker


def test_while_draining_sessions_go_on(make_stage: MakeStage) -> None:
    stage, client, broker = draining(make_stage, "drainTimeout: 60s")
    assert not stage.running.gateway.ready
    for number in range(3):
        client.publish(b"%d" % number, "k")
        assert broker.expect_content(amqp.BasicPublish).body == b"%d" % number
    client.say(amqp.ConnectionClose(200, "bye"))
    broker.expect(amqp.ConnectionClose)
    broker.say(amqp.ConnectionCloseOk())
    client.expect(amqp.ConnectionCloseOk)
    client.close()
    broker.close()
    stage.running.join()
    assert stage.running.outcomes()["closed"] == 1


def test_after_the_deadline_sessions_are_closed(make_stage: MakeStage) -> None:
    stage, client, broker = draining(make_stage, "drainTimeout: 100ms")
    for talker in (client, broker):
        close = talker.expect(amqp.ConnectionClose)
        assert close == amqp.ConnectionClose(320, "CONNECTION_FORCED - amqpgate is shutting down")
        talker.say(amqp.ConnectionCloseOk())
        talker.expect_end()
        talker.close()
    stage.running.join()
    assert stage.running.outcomes()["drained"] == 1


def test_after_the_deadline_nobody_logs_in(make_stage: MakeStage) -> None:
    stage = make_stage(limits="drainTimeout: 100ms")
    client, broker = stage.greeted()
    stage.running.call(stage.running.gateway.drain)
    for talker in (client, broker):
        with pytest.raises(Gone):
            talker.frame()
    stage.running.join()
    assert stage.running.outcomes()["drained"] == 1


def test_a_drain_without_sessions_is_over_at_once(stage: Stage) -> None:
    stage.running.call(stage.running.gateway.drain)
    stage.running.join()


def test_a_second_signal_ends_at_once(make_stage: MakeStage) -> None:
    stage, client, broker = draining(make_stage, "drainTimeout: 60s")
    stage.running.stop()
    for talker in (client, broker):
        with pytest.raises(Gone):
            talker.frame()
    assert stage.running.gateway.sessions == {}


@pytest.mark.parametrize(
    "pump", list(dict.fromkeys((engines.Pump, plain_pump.PlainPump))), ids=lambda pump: pump.__module__
)
def test_a_pump_with_a_host_is_there_as_long_as_its_host(
    monkeypatch: pytest.MonkeyPatch, pump: type[engines.Pump]
) -> None:
    """What ends after the gateway, such as the admin interface, still needs the host's loop."""
    monkeypatch.setattr(assembly, "Pump", pump)
    text = "listeners: [{name: main, bind: '127.0.0.1:0'}]\nupstreams: [{name: broker, host: 127.0.0.1}]\n"
    gateway = build(parse(text, {}))

    async def main() -> str:
        async with trio.open_nursery() as nursery:
            await nursery.start(functools.partial(gateway.run, hosted=True))
            gateway.drain()
        await trio.sleep(0.05)
        os.fstat(gateway.pump.fileno())
        return "over"

    try:
        assert run_hosted(gateway.pump, main) == "over"
    finally:
        gateway.pump.close()
