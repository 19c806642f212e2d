"""`amqpgate move` where all is TLS, brokers and admin interfaces, with two gateways; and what it refuses.

The command trusts the authorities of the machine, as `SSL_CERT_FILE` names them.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import attrs
import pika
import pika.exceptions
import pytest
import trustme

from tests.interop.moving import CONFIG, POLICIES, ManagedBroker, Stage
from tests.interop.rolling import QUEUE, at_work
from tests.interop.test_gateway_move_command import at_least, done, exact, refused
from tests.support.gateway import Gateway
from tests.support.ports import free_port
from tests.support.rabbitmq import RabbitMQ
from tests.support.rabbitmq_root import root_of_4

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@attrs.frozen
class Certificates:
    """Of one authority, for 127.0.0.1."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Certificates:
        authority = trustme.CA()
        leaf = authority.issue_cert("127.0.0.1")
        authority.cert_pem.write_to_path(folder / "ca.pem")
        leaf.cert_chain_pems[0].write_to_path(folder / "cert.pem")
        leaf.private_key_pem.write_to_path(folder / "key.pem")
        # The brokers of a root of their own have other users.
        folder.chmod(0o755)
        (folder / "key.pem").chmod(0o644)
        return cls(folder)

    def lines(self, options: str) -> list[str]:
        """Of rabbitmq.conf."""
        files = {"cacertfile": "ca.pem", "certfile": "cert.pem", "keyfile": "key.pem"}
        return [f"{options}.{name} = {self.folder / file}" for name, file in files.items()]


@attrs.frozen
class Secured:
    """A broker whose management interface has TLS alone, and its port for AMQP with TLS."""

    broker: ManagedBroker
    amqps: int

    @classmethod
    def make(cls, certificates: Certificates, root: Path | None = None) -> Secured:
        management, amqps = free_port(), free_port()
        lines = [
            f"listeners.ssl.1 = 127.0.0.1:{amqps}",
            *certificates.lines("ssl_options"),
            f"management.ssl.port = {management}",
            "management.ssl.ip = 127.0.0.1",
            *certificates.lines("management.ssl"),
        ]
        plugins = ["rabbitmq_management", "rabbitmq_shovel", "rabbitmq_federation"]
        node = RabbitMQ(root=root, plugins=plugins, config=lines)
        return cls(ManagedBroker(node, f"https://127.0.0.1:{management}"), amqps)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def ends(certificates: Certificates) -> Iterator[tuple[Secured, Secured]]:
    blue, green = Secured.make(certificates), Secured.make(certificates, root_of_4())
    try:
        blue.broker.node.start()
        green.broker.node.start()
        yield blue, green
    finally:
        blue.broker.node.destroy()
        green.broker.node.destroy()


@pytest.fixture
def gateways(
    ends: tuple[Secured, Secured], certificates: Certificates, tmp_path: Path
) -> Iterator[list[Gateway]]:
    """Two that read the same policies, as replicas do."""
    blue, green = (end.broker for end in ends)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "routes.yaml").write_text(POLICIES)
    for name in ("token", "password"):
        (tmp_path / name).write_text("open sesame\n" if name == "token" else "guest\n")
    blue.empty()
    green.empty()
    with blue.channel() as channel:
        channel.queue_declare(QUEUE, durable=True)
    config = CONFIG.format(
        blue=blue.node.address, green=green.node.address, folder=tmp_path, connections="own"
    )
    tls = f"tls: {{cert: {certificates.folder}/cert.pem, key: {certificates.folder}/key.pem}}"
    config = config.replace("tokenFile:", f"{tls}, tokenFile:")
    trust = ssl.create_default_context(cafile=certificates.folder / "ca.pem")
    made = [Gateway(config=config, tls=trust) for _ in range(2)]
    try:
        for one in made:
            one.start()
        yield made
    finally:
        for one in made:
            one.stop()


@pytest.fixture
def stage(
    ends: tuple[Secured, Secured],
    gateways: list[Gateway],
    certificates: Certificates,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Stage:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.folder / "ca.pem"))
    lines = ["routes: [prod]", 'vhosts: ["/"]', f"policies: {tmp_path}/policies"]
    for key, name, end in (("from", "blue", ends[0]), ("to", "green", ends[1])):
        lines.append(
            f"{key}: {{upstream: {name}, management: '{end.broker.management}',"
            f" amqp: 'amqps://127.0.0.1:{end.amqps}', user: guest, passwordFile: password}}"
        )
    admins = [f"{{admin: 'https://127.0.0.1:{one.admin_port}', tokenFile: token}}" for one in gateways]
    lines.append(f"gateways: [{', '.join(admins)}]")
    stage = Stage(ends[0].broker, ends[1].broker, gateways[0], tmp_path)
    stage.file.write_text("\n".join(lines) + "\n")
    return stage


def test_two_gateways_move_under_load_and_back(stage: Stage, gateways: list[Gateway]) -> None:
    """Publishers and consumers come by the one. Of the other the move has to wait for who is there."""
    first, second = gateways
    at = pika.ConnectionParameters("127.0.0.1", second.port, heartbeat=0)
    with at_work(first.port, publishers=4, consumers=3) as tally, pika.BlockingConnection(at) as other:
        other.channel().basic_publish("", QUEUE, b"other")
        at_least(tally, 50)
        assert "done: prod are on green" in done(stage, "run")
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker):
            other.process_data_events(time_limit=30)
        at_least(tally, 50)
        with pika.BlockingConnection(at) as again:
            assert again.channel().queue_declare(QUEUE, passive=True)
            assert stage.green.node.rows("list_connections", "user")
        assert "done: prod are on blue" in done(stage, "rollback")
        at_least(tally, 50)
    exact(tally)
    assert "other" in tally.arrived


def test_a_certificate_that_is_not_trusted_ends_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    code, said = stage.move("plan")
    assert code == 1
    assert "certificate" in said


def test_what_moves_messages_by_itself_is_in_the_way(stage: Stage) -> None:
    """And is not copied, where the move may begin nevertheless."""
    assert refused(stage) == {}
    node = stage.blue.node
    shovel = {"src-uri": "amqp://", "src-queue": QUEUE, "dest-uri": "amqp://", "dest-queue": "other"}
    node.ctl("set_parameter", "shovel", "mine", json.dumps(shovel))
    upstream = {"uri": "amqp://127.0.0.1:1", "expires": 3600000}
    node.ctl("set_parameter", "federation-upstream", "far", json.dumps(upstream))
    try:
        code, said = stage.move("plan")
        assert code == 1
        for name in ("shovel mine", "federation-upstream far"):
            assert f"{name}: it is not copied" in said
    finally:
        node.ctl("clear_parameter", "shovel", "mine")
        node.ctl("clear_parameter", "federation-upstream", "far")
    assert refused(stage) == {}
