"""The gateway as its users start it: `python -m amqpgate run`, in a process of its own."""

from __future__ import annotations

import json
import shutil
import ssl
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs

from .ports import free_port
from .processes import Child

#: Seconds until it is ready. One takes 2 s of CPU, and its workers as much again, after it: 15 s where five
#: processes want each core, and tests are run beside more than that.
PATIENCE = 120.0


@attrs.frozen
class Ended:
    """How a gateway ended: its exit code (negative: the signal that killed it) and all that it logged."""

    code: int
    log: str

    def records(self) -> list[dict[str, object]]:
        """The log's JSON lines (`--log-format json`), other lines left out."""
        return [json.loads(line) for line in self.log.splitlines() if line.startswith("{")]


class Gateway:
    """One gateway on `host`:`port` with its admin window on `admin_port`.

    Either `upstream` (an AMQP URL) with optional `policies`, or `config`, the text of a configuration file in
    which `{port}` and `{admin_port}` are replaced.
    """

    host = "127.0.0.1"
    user = "guest"
    password = "guest"

    def __init__(
        self,
        upstream: str | None = None,
        *,
        policies: Path | None = None,
        config: str | None = None,
        args: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        under: tuple[str, ...] = (),
    ) -> None:
        """``tls``: its admin window speaks TLS, to whom trusts so. ``under``: a command that runs it."""
        self._tls = tls
        self.port, self.admin_port = free_port(), free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="amqpgate-gateway-"))
        self._env = dict(env) if env is not None else None
        self._command = [*under, sys.executable, "-m", "amqpgate", "run", "--log-format", "json", *args]
        if config is not None:
            file = self._folder / "amqpgate.yaml"
            file.write_text(
                config.replace("{port}", str(self.port)).replace("{admin_port}", str(self.admin_port))
            )
            self._command += ["--config", str(file)]
        else:
            assert upstream is not None, "either an upstream or a configuration"
            self._command += ["--listen", self.address, "--upstream", upstream]
            self._command += ["--admin", f"{self.host}:{self.admin_port}"]
            if policies is not None:
                self._command += ["--policies", str(policies)]
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        """Of its first process."""
        assert self._child is not None, "it has been started"
        return self._child.pid

    @property
    def address(self) -> str:
        """`host:port` of the AMQP listener."""
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """AMQP URL of the listener with RabbitMQ's default credentials."""
        return f"amqp://{self.user}:{self.password}@{self.address}/"

    @property
    def child(self) -> Child:
        """The running process: pid, signals, output so far."""
        assert self._child is not None, "not started"
        return self._child

    def start(self, timeout: float = PATIENCE) -> None:
        """Start and wait for /readyz. `ChildDied` with the log's end if that does not come."""
        self.start_child()
        self.child.wait_until(self.ready, timeout=timeout, what="amqpgate")

    def start_child(self) -> None:
        """Start, and do not wait."""
        self._child = Child(self._command, log=self._folder / "gateway.log", env=self._env, cwd=self._folder)

    def ready(self) -> bool:
        """Whether GET /readyz says 200."""
        try:
            return self.get("/readyz")[0] == 200
        except OSError:
            return False

    def get(self, path: str, timeout: float = 5) -> tuple[int, str]:
        """Status and body of a GET on the admin window."""
        scheme = "http" if self._tls is None else "https"
        url = f"{scheme}://{self.host}:{self.admin_port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=timeout, context=self._tls) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def stop(self, timeout: float = 30) -> Ended:
        """SIGTERM, then wait; SIGKILL after `timeout` seconds."""
        code = self.child.stop(timeout)
        return self._end(code)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """It runs, and then ends as it should."""
        self.start()
        yield
        ended = self.stop()
        assert ended.code == 0
        assert "Traceback" not in ended.log

    def kill(self) -> Ended:
        """SIGKILL."""
        return self._end(self.child.kill())

    def _end(self, code: int) -> Ended:
        ended = Ended(code, self.child.output())
        self._child = None
        shutil.rmtree(self._folder, ignore_errors=True)
        return ended


def watched(
    broker: str, policies: Path, *, workers: int = 1, upstream: str = "", admin: str = "", more: str = ""
) -> Gateway:
    """One before the broker at that address, with policies and the admin interface, that need not drain.

    ``upstream`` and ``admin`` are more settings of these, such as ``connections: pooled``; ``more`` is lines.
    """
    config = f"""
workers: {workers}
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbit, url: "amqp://{broker}", {upstream}}}]
admin: {{bind: "127.0.0.1:{{admin_port}}", {admin}}}
policies: {policies}
limits: {{drainTimeout: 1s}}
{more}"""
    return Gateway(config=config)
