"""The webhook, asked as an API server asks it: over HTTPS, in a process of its own."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import attrs
import jsonpatch
import kubernetes_validate
import pytest
import trio
import trustme
from starlette.types import Message

from amqpgate.admin import admission
from amqpgate.admin.admission import MAX_BODY, MAX_HELD, application
from amqpgate.app import webhook as webhook_server
from amqpgate.config import Address, ListenerTls
from amqpgate.inject import Injector
from tests.support.ports import free_port
from tests.unit.inject.pods import URL, container, env, pod
from tests.unit.inject.test_review import UID, review

NAME = "amqpgate-injector.amqpgate.svc"


@attrs.define
class Webhook:
    """A running `amqpgate inject serve`."""

    folder: Path
    ca: trustme.CA
    port: int
    process: subprocess.Popen[str] | None

    def connect(self, ca: trustme.CA | None = None) -> http.client.HTTPSConnection:
        """A connection that trusts one authority, and asks for the service's name."""
        context = ssl.create_default_context()
        (ca or self.ca).configure_trust(context)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=20, context=context)
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        connection.sock = context.wrap_socket(raw, server_hostname=NAME)
        return connection

    def ask(
        self,
        body: bytes | str,
        *,
        path: str = "/inject",
        method: str = "POST",
        kind: str = "application/json",
    ) -> tuple[int, str]:
        connection = self.connect()
        try:
            connection.request(method, path, body, {"content-type": kind})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


def write_papers(folder: Path, ca: trustme.CA) -> None:
    """As a mounted Secret of type kubernetes.io/tls has them."""
    leaf = ca.issue_cert(NAME)
    leaf.private_key_pem.write_to_path(folder / "tls.key")
    leaf.cert_chain_pems[0].write_to_path(folder / "tls.crt")


@pytest.fixture(scope="module")
def webhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    folder = tmp_path_factory.mktemp("webhook")
    ca = trustme.CA()
    write_papers(folder, ca)
    port = free_port()
    (folder / "injector.yaml").write_text(
        f"image: amqpgate:test\nbind: 127.0.0.1:{port}\ntls: {{cert: tls.crt, key: tls.key}}\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "amqpgate", "inject", "serve", "-c", str(folder / "injector.yaml")],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        first = process.stderr.readline()
        assert f"https://127.0.0.1:{port}/inject" in first
        yield Webhook(folder, ca, port, process)
    finally:
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=20)[1]
    assert process.returncode == 0
    assert "SIGTERM: ending" in rest
    assert "Traceback" not in rest
    assert "s3cret" not in rest


def test_a_pod_gets_its_sidecar(webhook: Webhook) -> None:
    before = pod(container(env("AMQP_URL", URL), ports=[]), annotations={"policies": "shop"})
    status, text = webhook.ask(json.dumps(review(before)))
    assert status == 200
    given = json.loads(text)
    assert (given["kind"], given["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
    assert (given["response"]["uid"], given["response"]["allowed"]) == (UID, True)
    after = jsonpatch.apply_patch(before, json.loads(base64.b64decode(given["response"]["patch"])))
    kubernetes_validate.validate(after, "1.31", strict=True)
    assert after["spec"]["initContainers"][0]["image"] == "amqpgate:test"
    # Asked again about what came of it (reinvocationPolicy: IfNeeded), it has nothing to add.
    _, text = webhook.ask(json.dumps(review(after)))
    assert json.loads(text)["response"] == {"uid": UID, "allowed": True}


def test_a_pod_that_cannot_have_one_is_refused(webhook: Webhook) -> None:
    status, text = webhook.ask(json.dumps(review(pod(container(env("AMQP_URL", URL)), hostNetwork=True))))
    assert status == 200
    assert json.loads(text)["response"]["allowed"] is False


def test_many_questions_over_one_connection(webhook: Webhook) -> None:
    connection = webhook.connect()
    for number in range(3):
        content = json.dumps(review(pod(container()), uid=f"question-{number}"))
        connection.request("POST", "/inject", content, {"content-type": "application/json; charset=utf-8"})
        assert json.loads(connection.getresponse().read())["response"]["uid"] == f"question-{number}"
    connection.close()


def test_probes(webhook: Webhook) -> None:
    for path in ("/livez", "/readyz"):
        assert webhook.ask("", path=path, method="GET") == (200, "ok\n")


def test_bad_input(webhook: Webhook) -> None:
    assert webhook.ask("{")[0] == 400
    status, text = webhook.ask(json.dumps(review({}, kind={"kind": "Deployment"})))
    assert (status, text) == (400, 'request.kind is "Deployment": this webhook is for pods (version v1)\n')
    assert webhook.ask("{}", kind="text/plain")[0] == 415
    assert webhook.ask("{}", path="/")[0] == 404
    assert webhook.ask("", method="GET")[0] == 405
    assert webhook.ask(b" " * (MAX_BODY + 1)) == (413, f"the body is larger than {MAX_BODY} bytes\n")


def test_plain_http_is_not_spoken(webhook: Webhook) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", webhook.port, timeout=20)
    connection.request("GET", "/livez")
    with pytest.raises((http.client.HTTPException, OSError)):
        connection.getresponse()
    connection.close()


def test_the_certificate_is_read_again(webhook: Webhook) -> None:
    other = trustme.CA()
    write_papers(webhook.folder, other)
    connection = webhook.connect(other)
    connection.request("GET", "/livez")
    assert connection.getresponse().read() == b"ok\n"
    connection.close()
    with pytest.raises(ssl.SSLCertVerificationError):
        webhook.connect()
    # What cannot be used leaves the last one in use.
    (webhook.folder / "tls.crt").write_text("broken")
    webhook.connect(other).close()
    write_papers(webhook.folder, webhook.ca)
    webhook.connect().close()


def test_without_a_certificate_it_does_not_serve(tmp_path: Path) -> None:
    (tmp_path / "injector.yaml").write_text(f"bind: 127.0.0.1:{free_port()}\n")
    done = subprocess.run(
        [sys.executable, "-m", "amqpgate", "inject", "serve", "-c", str(tmp_path / "injector.yaml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "HTTPS only" in done.stderr


@attrs.define
class Sender:
    """One caller of the application, without a network: sends what it is told to, and then nothing."""

    chunks: list[bytes]
    sent: trio.Event = attrs.field(factory=trio.Event)
    status: int | None = None

    async def receive(self) -> Message:
        if self.chunks:
            return {"type": "http.request", "body": self.chunks.pop(), "more_body": True}
        self.sent.set()
        await trio.sleep_forever()
        raise AssertionError

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]


async def test_what_half_sent_questions_take_is_bounded(autojump_clock: trio.abc.Clock) -> None:
    app = application("/inject", webhook_server.answering(Injector()), body_timeout=10)
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/inject",
        "headers": [(b"content-type", b"application/json")],
        "query_string": b"",
    }
    slow = [Sender([bytes(MAX_BODY)]) for _ in range(MAX_HELD // MAX_BODY)]
    one_more, later = Sender([b"{"]), Sender([b"{"])
    async with trio.open_nursery() as nursery:
        for sender in slow:
            nursery.start_soon(app, scope, sender.receive, sender.send)
            await sender.sent.wait()
        await app(scope, one_more.receive, one_more.send)
        assert one_more.status == 503
    assert {sender.status for sender in slow} == {408}
    # Their room is free again.
    await app(scope, later.receive, later.send)
    assert later.status == 408


@pytest.mark.parametrize("offered", [["h2"], ["h2", "http/1.1"]])
def test_http_2_is_not_spoken(webhook: Webhook, offered: list[str]) -> None:
    """Nor said to be; and who speaks it unasked is told so."""
    context = ssl.create_default_context()
    webhook.ca.configure_trust(context)
    context.set_alpn_protocols(offered)
    with context.wrap_socket(
        socket.create_connection(("127.0.0.1", webhook.port), timeout=20), server_hostname=NAME
    ) as sock:
        assert sock.selected_alpn_protocol() == ("http/1.1" if "http/1.1" in offered else None)
        # The preface and empty SETTINGS (RFC 9113, section 3.4).
        sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
        assert sock.recv(13) == b"HTTP/1.1 505 "


async def test_the_idlest_gives_way_where_there_are_many(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before TLS, too, and where a question is said in part."""
    monkeypatch.setattr(admission, "MOST_CONNECTIONS", 4)
    monkeypatch.setattr(admission, "_HANDSHAKE", 1000.0)
    ca = trustme.CA()
    write_papers(tmp_path, ca)
    tls = ListenerTls(cert=tmp_path / "tls.crt", key=tmp_path / "tls.key")
    settings = Injector(bind=Address("127.0.0.1", 0), tls=tls)
    over = trio.Event()
    address: str = await nursery.start(partial(webhook_server.serve, settings, shutdown=over.wait))
    hook = Webhook(tmp_path, ca, int(address.rpartition(":")[2]), None)

    def ask() -> None:
        with contextlib.ExitStack() as opened:
            silent = opened.enter_context(socket.create_connection(("127.0.0.1", hook.port), timeout=20))
            slow = [opened.enter_context(contextlib.closing(hook.connect())) for _ in range(3)]
            headers = b"Host: h\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
            for connection in slow:
                connection.sock.sendall(b"POST /inject HTTP/1.1\r\n" + headers)
            assert hook.ask("", path="/livez", method="GET") == (200, "ok\n")
            assert silent.recv(1) == b""
            # The others stay.
            for connection in slow:
                assert isinstance(connection.sock, ssl.SSLSocket)
                connection.sock.settimeout(0.1)
                with pytest.raises(TimeoutError):
                    connection.sock.recv(1)

    await trio.to_thread.run_sync(ask)
    over.set()
