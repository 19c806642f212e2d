"""From a broker of AMQP 0-10 to RabbitMQ with the clients as they are, as ``docs/amqp-0-10.md`` has it."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from amqpgate.cli import main
from amqpgate.wire.generated import v0_9_1
from amqpgate.wire.generated import v0_10 as amqp
from tests.interop.brokers import running
from tests.interop.clients_0_10 import queue
from tests.interop.pair import HEAD
from tests.support.client_0_10 import Client010
from tests.support.embedded import embedded_broker
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

__all__ = ["queue"]

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}", upstream: qpid}}]
upstreams:
- {{name: qpid, url: "amqp://127.0.0.1:{old}", version: 0-10}}
- {{name: rabbit, url: "amqp://{new}", version: 0-9-1}}
policies: {folder}/policies
admin: {{bind: "127.0.0.1:{{admin_port}}", tokenFile: {folder}/token}}
limits: {{closeTimeout: 1s}}
"""
ROUTE = "  - {{id: all, match: {{user: guest}}, upstream: {{cluster: {}}}}}\n"


def test_clients_stay_as_they_are(rabbitmq: RabbitMQ, tmp_path: Path, queue: str) -> None:
    policies, token = tmp_path / "policies", tmp_path / "token"
    policies.mkdir()
    token.write_text("open sesame\n")

    def lead_to(cluster: str) -> None:
        (policies / "route.yaml").write_text(HEAD + ROUTE.format(cluster))

    lead_to("qpid")
    with (
        embedded_broker(versions=("0-10",)) as (_, old),
        running(CONFIG.format(old=old, new=rabbitmq.address, folder=tmp_path)) as gateway,
    ):

        def amqpgate(*words: str) -> Result:
            admin = f"{gateway.host}:{gateway.admin_port}"
            return CliRunner().invoke(main, [*words, "--admin", admin, "--token-file", str(token)])

        def sessions(upstream: str) -> list[dict[str, Any]]:
            told = amqpgate("sessions", "--upstream", upstream, "--version", "0-10", "--json").stdout
            found: list[dict[str, Any]] = json.loads(told)["sessions"]
            return found

        with Client010.opened(gateway.port) as publisher, Client010.opened(gateway.port) as consumer:
            ours, theirs = publisher.session(), consumer.session()
            ours.declare(queue)
            theirs.subscribe(queue)
            for number in range(20):
                ours.publish(b"%d" % number, queue)
            assert amqpgate("route", "pause", "all").exit_code == 0
            messages = [theirs.get() for _ in range(20)]
            assert [message.body for message in messages] == [b"%d" % number for number in range(20)]
            theirs.accept(*messages)
            theirs.ask(amqp.ExecutionSync())
            assert len(sessions("qpid")) == 2
            ids = [one["id"] for one in sessions("qpid")]
            assert amqpgate("close", *ids, "--reason", "moving").exit_code == 0
            for client in (publisher, consumer):
                assert client.expect_close().code == 320
                client.expect_end()
        lead_to("rabbit")
        gateway.child.signal(signal.SIGHUP)
        eventually(lambda: "rabbit" in amqpgate("route", "list").stdout)
        assert amqpgate("route", "resume", "all").exit_code == 0
        with Client010.opened(gateway.port) as client, Talker.dial(rabbitmq.port) as witness:
            session = client.session()
            session.declare(queue)
            session.publish(b"here", queue)
            assert len(sessions("rabbit")) == 1
            witness.open()
            passive = v0_9_1.QueueDeclare(queue=queue, passive=True)
            assert witness.ask(passive, v0_9_1.QueueDeclareOk, 1).message_count == 1
            session.subscribe(queue)
            message = session.get()
            assert message.body == b"here"
            session.accept(message)
            witness.ask(v0_9_1.QueueDelete(queue=queue), v0_9_1.QueueDeleteOk, 1)
            witness.bye()
            client.end()
