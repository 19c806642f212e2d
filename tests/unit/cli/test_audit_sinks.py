"""Where alerts go, and what clients may have put into them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import attrs
import pytest

from amqpgate.broker.amqp.events import MethodReceived
from amqpgate.cli import move_amqp
from amqpgate.cli.audit_sinks import PrintSink, exchange, routing_key_of, web_hook
from amqpgate.cli.failures import Failure
from amqpgate.pipeline.watch.alert import Alert
from amqpgate.pipeline.watch.course import Undelivered
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.embedded import embedded_broker

ALERT = Alert(
    id="1",
    kind="denied",
    time=datetime(2026, 11, 28, tzinfo=UTC),
    user="eve\u202e\x9b2J",
    vhost="/",
    what="",
    value=1,
    detail={},
)


def test_a_virtual_host_of_any_length_stops_no_alert(monkeypatch: pytest.MonkeyPatch) -> None:
    long = attrs.evolve(ALERT, vhost="\xe9" * 300)
    assert routing_key_of(long) == "denied." + "\xe9" * 124
    with embedded_broker() as (host, port):
        exchange(f"amqp://guest@{host}:{port}/%2f", "amq.topic").deliver([ALERT, long], 1)


@attrs.define(eq=False)
class Link:
    """A connection to a broker that confirms so."""

    acks: list[amqp.BasicAck]

    def next(self) -> MethodReceived:
        if not self.acks:
            raise Failure("amqpgate: nothing comes")
        return MethodReceived(1, self.acks.pop(0))

    def __getattr__(self, _: str) -> object:
        return lambda *_: None


@pytest.mark.parametrize(
    ("acks", "is_told"),
    [
        ([(5, False), (3, True), (4, False)], True),
        ([(2, True), (2, False), (5, False), (4, False)], False),
        ([(1, False), (1, False), (2, False), (3, False), (4, False)], False),
        ([(5, True)], True),
    ],
)
def test_confirms_come_in_any_order(
    monkeypatch: pytest.MonkeyPatch, acks: list[tuple[int, bool]], is_told: bool
) -> None:
    link = Link([amqp.BasicAck(tag, multiple) for tag, multiple in acks])
    monkeypatch.setattr(move_amqp, "MoveLink", lambda *_, **__: link)
    sink = exchange("amqp://guest@localhost/%2f", "amq.topic")
    if is_told:
        sink.deliver([ALERT] * 5, 1)
    else:
        with pytest.raises(Undelivered):
            sink.deliver([ALERT] * 5, 1)


def test_names_drive_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    PrintSink().deliver([ALERT], 1)
    line = capsys.readouterr().out
    assert line.isascii()
    assert json.loads(line)["data"]["user"] == ALERT.user


def test_a_token_does_not_cross_the_network_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    web_hook("http://hook.example.org/")
    monkeypatch.setenv("AMQPGATE_WEBHOOK_TOKEN", "t0ken")
    for url in ("https://hook.example.org/", "http://127.0.0.1:8080/", "http://localhost/", "http://[::1]/"):
        web_hook(url)
    for url in ("http://hook.example.org/", "http://127.0.0.1.example.org/", "http://[::2]/"):
        with pytest.raises(Failure, match="in the clear"):
            web_hook(url)
