"""Policies about who the client is: its certificate, address, listener, and what it says of itself."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import pytest
import trustme
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509 import (
    CertificateBuilder,
    Name,
    NameAttribute,
    SubjectAlternativeName,
    UniformResourceIdentifier,
    load_pem_x509_certificate,
    random_serial_number,
)
from cryptography.x509.oid import NameOID

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.ports import free_port
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

SPIFFE = "spiffe://corp/orders"

POLICY = f"""
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {{name: orders}}
spec:
  subjects: [{{tls: {{spiffe: "{SPIFFE}"}}}}]
  rules:
  - {{id: own, effect: allow, operations: [queue.declare], queue: {{prefix: "{{user}}."}}}}
---
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {{name: old-clients}}
spec:
  subjects: [{{listeners: [plain], client: {{product: "old*"}}}}]
  rules:
  - {{id: gone, effect: deny, operations: [connection.open]}}
---
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {{name: no-transactions}}
spec:
  subjects: [{{listeners: [plain], sourceCIDR: [127.0.0.0/8], client: {{product: loopback}}}}]
  rules:
  - {{id: the-rest, effect: allow, operations: ["*"]}}
  - {{id: tx, effect: deny, operations: ["tx.*", basic.recover, connection.update-secret]}}
---
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {{name: someday}}
spec:
  mode: shadow
  subjects: [{{client: {{product: shadowed}}}}]
  rules:
  - {{id: declares, effect: allow, operations: [queue.declare], queue: {{prefix: ""}}}}
"""


@attrs.frozen
class Doors:
    gateway: Gateway
    tls_port: int
    ca: trustme.CA

    def with_certificate(self, folder: Path, uri: str) -> ssl.SSLContext:
        """A client's context, with a certificate whose alternative name is ``uri``."""
        issuer = load_pem_x509_certificate(self.ca.cert_pem.bytes())
        signer = load_pem_private_key(self.ca.private_key_pem.bytes(), None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        issued = (
            CertificateBuilder(issuer.subject, extensions=[])
            .subject_name(Name([NameAttribute(NameOID.COMMON_NAME, "orders")]))
            .public_key(key.public_key())
            .serial_number(random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(SubjectAlternativeName([UniformResourceIdentifier(uri)]), critical=False)
            .sign(signer, hashes.SHA256())
        )
        file = folder / "client.pem"
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        file.write_bytes(private + issued.public_bytes(Encoding.PEM))
        context = ssl.create_default_context()
        self.ca.configure_trust(context)
        context.load_cert_chain(file)
        return context


@pytest.fixture(scope="module")
def doors(rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    folder: Path = tmp_path_factory.mktemp("doors")
    ca = trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.pem")
    issued = ca.issue_cert("localhost")
    (folder / "gate.pem").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    (folder / "gate.key").write_bytes(issued.private_key_pem.bytes())
    (folder / "policies").mkdir()
    (folder / "policies" / "p.yaml").write_text(POLICY)
    tls_port = free_port()
    config = f"""
listeners:
  - name: plain
    bind: 127.0.0.1:{{port}}
  - name: tls
    bind: 127.0.0.1:{tls_port}
    tls: {{cert: {folder}/gate.pem, key: {folder}/gate.key, clientCa: {folder}/ca.pem}}
upstreams:
  - name: rabbitmq
    url: amqp://{rabbitmq.address}
policies: {folder}/policies
admin:
  bind: 127.0.0.1:{{admin_port}}
"""
    gateway = Gateway(config=config)
    gateway.start()
    yield Doors(gateway, tls_port, ca)
    ended = gateway.stop()
    assert ended.code == 0
    assert "Traceback" not in ended.log


def declared(talker: Talker, queue: str) -> bool:
    """Whether it may; the channel is there again afterwards."""
    talker.say(amqp.QueueDeclare(queue=queue, auto_delete=True), 1)
    channel, answer = talker.hear()
    assert channel == 1
    if isinstance(answer, amqp.ChannelClose):
        assert answer.reply_code == 403
        talker.say(amqp.ChannelCloseOk(), 1)
        talker.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
    return isinstance(answer, amqp.QueueDeclareOk)


def test_a_spiffe_id_selects_and_variables_stand_for_the_user(doors: Doors, tmp_path: Path) -> None:
    for uri, selected in ((SPIFFE, True), ("spiffe://corp/other", False), ("https://corp/orders", False)):
        context = doors.with_certificate(tmp_path, uri)
        with Talker.dial(doors.tls_port, tls=context) as talker:
            talker.open()
            assert declared(talker, "guest.q")
            assert declared(talker, "others.q") is not selected
            talker.bye()


def test_a_client_that_may_not_open_is_told_as_for_a_vhost(doors: Doors) -> None:
    with Talker.dial(doors.gateway.port) as talker, pytest.raises(Exception, match="530") as caught:
        talker.open(properties=Table.of({"product": "old client"}))
    assert "NOT_ALLOWED - access to vhost '/' refused for user 'guest'" in str(caught.value)
    with Talker.dial(doors.gateway.port) as talker:
        talker.open(properties=Table.of({"product": "new client"}))
        talker.bye()


@pytest.mark.parametrize("method", [amqp.TxSelect(), amqp.BasicRecover(), amqp.TxCommit()])
def test_methods_that_touch_nothing_can_be_denied(doors: Doors, method: Method) -> None:
    with Talker.dial(doors.gateway.port) as talker:
        talker.open(properties=Table.of({"product": "loopback"}))
        talker.ask(amqp.BasicQos(prefetch_count=1), amqp.BasicQosOk, 1)
        talker.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        talker.say(method, 1)
        close = talker.expect(amqp.ChannelClose, 1)
        assert (close.reply_code, close.class_id, close.method_id) == (403, method.CLASS_ID, method.METHOD_ID)
        talker.say(amqp.ChannelCloseOk(), 1)
        talker.bye()


def test_what_belongs_to_the_connection_is_refused_for_the_connection(doors: Doors) -> None:
    with Talker.dial(doors.gateway.port) as talker:
        talker.open(properties=Table.of({"product": "loopback"}))
        talker.say(amqp.ConnectionUpdateSecret(b"new", "because"))
        close = talker.expect(amqp.ConnectionClose)
        assert (close.reply_code, close.class_id, close.method_id) == (530, 10, 70)


def test_a_shadow_refuses_nothing_and_counts_what_it_would(doors: Doors) -> None:
    name = 'amqpgate_shadow_differences_total{effect="deny",policy="",rule="default"}'

    def counted() -> float:
        _, text = doors.gateway.get("/metrics")
        lines = [line for line in text.splitlines() if line.startswith(name)]
        return float(lines[0].split()[-1]) if lines else 0.0

    before = counted()
    with Talker.dial(doors.gateway.port) as talker:
        talker.open(properties=Table.of({"product": "shadowed"}))
        talker.ask(amqp.QueueDeclare(queue="shadow", auto_delete=True), amqp.QueueDeclareOk, 1)
        talker.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        for number in range(1, 6):
            talker.publish(b"x", "shadow")
            talker.expect(amqp.BasicAck, 1)
            eventually(lambda n=number: counted() == before + n)  # type: ignore[misc]
        talker.ask(amqp.QueueDelete(queue="shadow"), amqp.QueueDeleteOk, 1)
        assert counted() == before + 6
        talker.bye()
