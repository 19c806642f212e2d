"""A private qpidd, Apache Qpid's C++ broker, which speaks AMQP 0-10.

There is no package of it. It is the program that `AMQPGATE_QPIDD` names, or `qpidd` on the PATH; built of
the repository apache/qpid-cpp, for example.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .missing import missing
from .ports import free_port
from .processes import Child

_HEADER_0_10 = b"AMQP\x01\x01\x00\x0a"

#: What Cyrus SASL is told where there are logins.
_SASL = """pwcheck_method: auxprop
auxprop_plugin: sasldb
sasldb_path: {path}
mech_list: PLAIN ANONYMOUS EXTERNAL CRAM-MD5
"""


def program() -> Path | None:
    """The program, or None where there is none."""
    found = os.environ.get("AMQPGATE_QPIDD") or shutil.which("qpidd")
    return Path(found) if found and os.access(found, os.X_OK) else None


class Qpidd:
    """One broker, without a store: what it has is gone with it."""

    host = "127.0.0.1"

    def __init__(self, *options: str, users: dict[str, str] | None = None) -> None:
        """`options` are the program's. Without `users` (and their passwords) it takes any login."""
        found = program()
        if found is None:
            missing("qpidd is not here (AMQPGATE_QPIDD names the program; apache/qpid-cpp has its source)")
        self._folder = Path(tempfile.mkdtemp(prefix="amqpgate-qpidd-"))
        # An empty one it cannot read.
        (self._folder / "broker.conf").write_text("no-data-dir=yes\n")
        self.port = free_port()
        self._command = [
            str(found),
            *("--port", str(self.port), "--interface", self.host),
            *("--no-module-dir", "--config", str(self._folder / "broker.conf")),
            *self._logins(users or {}),
            *options,
        ]
        self._child: Child | None = None

    def _logins(self, users: dict[str, str]) -> list[str]:
        if not users:
            return ["--auth", "no"]
        if shutil.which("saslpasswd2") is None:
            missing("saslpasswd2 is not here (Debian: apt-get install sasl2-bin)")
        path = self._folder / "sasldb2"
        for user, password in users.items():
            subprocess.run(
                ["saslpasswd2", "-c", "-p", "-f", str(path), "-u", "QPID", user],
                input=password.encode(),
                check=True,
                capture_output=True,
            )
        (self._folder / "qpidd.conf").write_text(_SASL.format(path=path))
        return ["--auth", "yes", "--sasl-config", str(self._folder)]

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{self.host}:{self.port}"

    @property
    def child(self) -> Child:
        """The running process."""
        assert self._child is not None, "not started"
        return self._child

    def start(self) -> None:
        """Start, and wait until it answers."""
        self._child = Child(self._command, log=self._folder / "qpidd.log", cwd=self._folder)
        self._child.wait_until(self._answers, timeout=60, what="qpidd")

    def restart(self) -> None:
        """Kill it, and start one on the same port that knows of nothing."""
        self.child.kill()
        self.start()

    def destroy(self) -> None:
        """SIGKILL; nothing is left of it."""
        if self._child is not None:
            self._child.kill()
            self._child = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), timeout=5) as peer:
                peer.sendall(_HEADER_0_10)
                return peer.recv(8) == _HEADER_0_10
        except OSError:
            return False


@contextlib.contextmanager
def running(*options: str, users: dict[str, str] | None = None) -> Iterator[Qpidd]:
    """One that runs until the end of the block."""
    broker = Qpidd(*options, users=users)
    try:
        broker.start()
        yield broker
    finally:
        broker.destroy()
