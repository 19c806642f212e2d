"""A real API server of Kubernetes with its etcd, on loopback, where both can be had.

They are looked for where controllers' own tests have them: in the folder that KUBEBUILDER_ASSETS names, and
in PATH. There are no controllers behind it, no scheduler and no nodes.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.ports import free_port

ADMIN, OPERATOR, TENANT = "admin-token", "operator-token", "tenant-token"


def binary(name: str) -> str | None:
    """Where it is, if it is."""
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    return shutil.which(name, path=folder) if folder else shutil.which(name)


def missing() -> str | None:
    """What cannot be had, in one line."""
    absent = [name for name in ("etcd", "kube-apiserver") if binary(name) is None]
    return f"no {' and no '.join(absent)}: name their folder in KUBEBUILDER_ASSETS" if absent else None


@attrs.define
class RealApiServer:
    """One that answers."""

    port: int
    ca: Path
    folder: Path

    @property
    def url(self) -> str:
        """Where."""
        return f"https://127.0.0.1:{self.port}"

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str = ADMIN,
        kind: str = "application/json",
        raw: bytes | None = None,
    ) -> tuple[int, Any]:
        """The answer's status, and what it says."""
        context = ssl.create_default_context(cafile=str(self.ca))
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=context)
        try:
            data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
            headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            text = answer.read()
            try:
                return answer.status, json.loads(text)
            except (ValueError, RecursionError):
                return answer.status, text.decode()
        finally:
            connection.close()


@contextmanager
def real_api_server(folder: Path) -> Iterator[RealApiServer]:
    """Runs until the end; what it stored is in ``folder``."""
    etcd, server = binary("etcd"), binary("kube-apiserver")
    assert etcd is not None
    assert server is not None
    ca = trustme.CA()
    leaf = ca.issue_cert("127.0.0.1", "localhost")
    leaf.private_key_pem.write_to_path(folder / "tls.key")
    leaf.cert_chain_pems[0].write_to_path(folder / "tls.crt")
    ca.cert_pem.write_to_path(folder / "ca.crt")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    (folder / "account.key").write_bytes(pem)
    (folder / "tokens.csv").write_text(
        f"{ADMIN},admin,1,system:masters\n"
        f"{OPERATOR},system:serviceaccount:mq:shop-amqpgate-operator,2\n{TENANT},tenant,3\n"
    )
    store, peers, port = free_port(), free_port(), free_port()
    commands = [
        [
            etcd,
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls=http://127.0.0.1:{store}",
            f"--advertise-client-urls=http://127.0.0.1:{store}",
            f"--listen-peer-urls=http://127.0.0.1:{peers}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peers}",
            f"--initial-cluster=default=http://127.0.0.1:{peers}",
        ],
        [
            server,
            f"--etcd-servers=http://127.0.0.1:{store}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={folder / 'tls.crt'}",
            f"--tls-private-key-file={folder / 'tls.key'}",
            f"--cert-dir={folder}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder / 'account.key'}",
            f"--service-account-signing-key-file={folder / 'account.key'}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",
            "--endpoint-reconciler-type=none",
        ],
    ]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            log = (folder / f"{Path(command[0]).name}.log").open("wb")
            with log:
                processes.append(subprocess.Popen(command, stdout=log, stderr=log))
        found = RealApiServer(port, folder / "ca.crt", folder)
        _until_ready(found, processes)
        yield found
    finally:
        # The server first: without its store it waits for minutes.
        for process in reversed(processes):
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _until_ready(server: RealApiServer, processes: list[subprocess.Popen[bytes]]) -> None:
    for _ in range(600):
        assert all(process.poll() is None for process in processes), "it ended: see its log"
        try:
            if server.ask("GET", "/readyz")[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.3)
    raise AssertionError("the API server does not get ready")
