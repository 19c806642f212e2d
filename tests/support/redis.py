"""A Redis server of one's own, on a port of its own, which tests may stop, kill and start again."""

from __future__ import annotations

import secrets
import shutil
import socket
import ssl
import tempfile
from pathlib import Path

import attrs

from .missing import missing
from .ports import free_port
from .processes import Child


@attrs.define(eq=False)
class RedisServer:
    """Keeps nothing on disk; asks for `password`. With `tls` (certificate, key, authority) for TLS only."""

    port: int = attrs.field(factory=free_port)
    password: str = attrs.field(factory=lambda: secrets.token_hex(8))
    tls: tuple[Path, Path, Path] | None = None
    _folder: Path = attrs.field(factory=lambda: Path(tempfile.mkdtemp(prefix="amqpgate-redis-")))
    _child: Child | None = None

    @property
    def child(self) -> Child:
        assert self._child is not None, "not started"
        return self._child

    def start(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            missing("redis-server is not installed (Debian: apt-get install redis-server)")
        options = ["--port", self.port, "--bind", "127.0.0.1", "--save", "", "--dir", self._folder]
        options += ["--requirepass", self.password]
        if self.tls is not None:
            cert, key, ca = self.tls
            options = ["--port", 0, "--tls-port", *options[1:], "--tls-auth-clients", "no"]
            options += ["--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca]
        self._child = Child([program, *map(str, options)], log=self._folder / "redis.log")
        self._child.wait_until(self._answers, timeout=20, what="redis-server")

    def _answers(self) -> bool:
        try:
            return self.command("PING") == b"+PONG\r\n"
        except OSError:
            return False

    def command(self, *words: str) -> bytes:
        """The beginning of its answer to a command, in Redis' own protocol."""
        with self._connection() as sock:
            reader = sock.makefile("rb")
            for line in (("AUTH", self.password), words):
                encoded = "".join(f"${len(word)}\r\n{word}\r\n" for word in line)
                sock.sendall(f"*{len(line)}\r\n{encoded}".encode())
                answer = reader.readline()
            reader.close()
            return answer

    def _connection(self) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=5)
        if self.tls is None:
            return plain
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(plain)

    def kill(self) -> None:
        """SIGKILL: whoever is connected sees it go, and what it knew is lost."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def destroy(self) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
