"""Sessions end with their tokens."""

from __future__ import annotations

import time
from pathlib import Path

from amqpgate.gateway.session.token_sessions import TokenSessions
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import InProcess
from tests.unit.gateway.handshake.token_gate import gate, now_token, opened, principals


def sessions_of(running: InProcess) -> TokenSessions:
    found = running.gateway.acceptor.context.identities
    assert found is not None
    assert isinstance(found.bearers, TokenSessions)
    return found.bearers


def look(running: InProcess, after: float) -> None:
    """As if so many seconds had passed."""
    now = time.time() + after
    running.call(lambda: sessions_of(running).look(now))


def test_the_end_of_a_token_ends_its_session(tmp_path: Path) -> None:
    """With 320, and what it is owed is told first."""
    with gate(tmp_path) as running, opened(running, now_token()) as client:
        client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        client.publish(b"x", "k", exchange="amq.topic")
        look(running, 50)
        assert len(principals(running)) == 1
        look(running, 61)
        assert client.expect(amqp.BasicAck, 1).delivery_tag == 1
        close = client.expect(amqp.ConnectionClose)
        assert (close.reply_code, close.reply_text) == (320, "CONNECTION_FORCED - credential expired")


def test_who_has_renewed_it_goes_on(tmp_path: Path) -> None:
    with gate(tmp_path) as running, opened(running, now_token()) as client:
        client.ask(
            amqp.ConnectionUpdateSecret(now_token(exp=int(time.time()) + 1000), ""),
            amqp.ConnectionUpdateSecretOk,
        )
        look(running, 100)
        client.ask(amqp.QueueDeclare(queue="q", durable=True), amqp.QueueDeclareOk, 1)
        look(running, 1001)
        assert client.expect(amqp.ConnectionClose).reply_code == 320


def test_there_may_be_grace(tmp_path: Path) -> None:
    with gate(tmp_path, oauth=", expiryGrace: 10m") as running, opened(running, now_token()) as client:
        look(running, 600)
        client.ask(amqp.QueueDeclare(queue="q", durable=True), amqp.QueueDeclareOk, 1)
        look(running, 661)
        assert client.expect(amqp.ConnectionClose).reply_code == 320


def test_housekeeping_looks(tmp_path: Path) -> None:
    with (
        gate(tmp_path) as running,
        opened(running, now_token(exp=int(time.time()) + 2)) as client,
    ):
        assert client.expect(amqp.ConnectionClose).reply_text == "CONNECTION_FORCED - credential expired"


def test_sessions_that_are_gone_cost_nothing(tmp_path: Path) -> None:
    with gate(tmp_path) as running, opened(running, now_token()) as client:
        tokens = sessions_of(running)

        def watch() -> None:
            for number in range(1000):
                tokens.watch(f"gone-{number}", 1e12)

        running.call(watch)
        look(running, 0)
        assert running.call(lambda: len(tokens._ends)) == 1
        look(running, 61)
        assert client.expect(amqp.ConnectionClose).reply_code == 320
