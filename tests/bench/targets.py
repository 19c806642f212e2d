"""What is measured: a way from the load tool to the sink or to RabbitMQ, through a proxy or without one."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

import attrs

from tests.support.ports import free_port
from tests.support.processes import Child

from .tools import ToolError, load_once

#: Where a case's messages go: to the sink, to it with TLS up to the proxy, to it from a client of an older
#: version, to it by a connection that clients share, to it by a gateway that writes audit records, to it by
#: one that has a compatibility policy, to another sink that nobody storms, or to RabbitMQ.
Way: TypeAlias = Literal["sink", "tls", "bridge", "own", "pooled", "audited", "profile", "calm", "rabbitmq"]

#: What is added to the configuration of that gateway. Windows are a tenth of the usual ones, so that some end
#: while it is measured.
AUDIT = 'audit: {format: parquet, folder: "{folder}", window: 1s}\n'

#: A policy that gives clients all but an object store; what is measured it does not change.
PROFILE = """
apiVersion: amqpgate.io/v1alpha1
kind: CompatibilityPolicy
metadata: {name: profile}
spec:
  subjects: [{user: guest}]
  as: rabbitmq-3.13
  deliveryLimits: [{limit: -1}]
  quorumQueues: [{queue: {prefix: orders}}]
  delayedExchanges: [{exchange: {prefix: later}}]
"""

#: What another process of the gateway is for.
BESIDE: Final[tuple[Way, ...]] = ("audited", "profile")

_LISTENERS = ("sink", "tls", "pooled", "calm", "rabbitmq", "admin")

HERE = Path(__file__).resolve().parent
LOOPBACK = "127.0.0.1"


class TargetError(Exception):
    """A target cannot be measured; the text says why."""


@attrs.frozen
class Surroundings:
    """What every target is given."""

    folder: Path
    sink: str
    calm: str
    rabbitmq: str
    certificates: Certificates
    policies: Path
    load: Path
    #: As many connections as fit, given the limit of open files.
    max_connections: int


@attrs.frozen
class Certificates:
    """Files in PEM form, for the name `localhost`."""

    ca: Path
    cert: Path
    key: Path
    both: Path

    @classmethod
    def make(cls, folder: Path) -> Certificates:
        """A new authority and a certificate of it."""
        import trustme

        authority = trustme.CA()
        leaf = authority.issue_cert("localhost")
        made = cls(folder / "ca.pem", folder / "cert.pem", folder / "key.pem", folder / "both.pem")
        authority.cert_pem.write_to_path(made.ca)
        leaf.cert_chain_pems[0].write_to_path(made.cert)
        leaf.private_key_pem.write_to_path(made.key)
        leaf.private_key_and_cert_chain_pem.write_to_path(made.both)
        return made


class Target(Protocol):
    """One column of the table."""

    name: str

    @property
    def pid(self) -> int | None:
        """The process that is accounted; None where there is none."""

    def address(self, way: Way) -> str | None:
        """Where the load tool connects; None if this target does not lead there."""

    def start(self) -> None: ...

    def launch(self) -> None:
        """Start its process, and do not wait until it is ready; only for one that is fresh."""

    def stop(self) -> None: ...

    def fresh(self) -> Target | None:
        """Another one, not started yet, for what needs a new process; None if there cannot be one."""

    def describe(self) -> str:
        """Version and configuration, in a line."""

    def published(self) -> int | None:
        """Messages from clients as its own metrics have it; None if it has none."""


@attrs.define(eq=False)
class Direct:
    """No proxy: what the tools, and the machine, can do at best."""

    around: Surroundings
    name: str = "direct"
    pid: int | None = None

    def address(self, way: Way) -> str | None:
        ends = {"sink": self.around.sink, "calm": self.around.calm, "rabbitmq": self.around.rabbitmq}
        return ends.get(way)

    def start(self) -> None:
        pass

    def launch(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def fresh(self) -> Target | None:
        return None

    def describe(self) -> str:
        return "no proxy between"

    def published(self) -> int | None:
        return None


@attrs.define(eq=False)
class HAProxy:
    """HAProxy in TCP mode, one thread, ends TLS on its `tls` port."""

    around: Surroundings
    name: str = "haproxy"
    #: Bytes per buffer; None for the default (16 KiB).
    buffer: int | None = None
    _ports: dict[Way, int] = attrs.field(factory=dict, init=False)
    _child: Child | None = attrs.field(default=None, init=False)

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def address(self, way: Way) -> str | None:
        return f"{LOOPBACK}:{self._ports[way]}" if way in self._ports else None

    def start(self) -> None:
        self.launch()
        wait_for_port(f"{LOOPBACK}:{self._ports['sink']}", lambda: _alive(self._child), self.name)

    def launch(self) -> None:
        program = _haproxy()
        self._ports = {way: free_port() for way in self._ends()}
        folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-", dir=self.around.folder))
        file = folder / "haproxy.cfg"
        file.write_text(self._config())
        self._child = Child([program, "-db", "-q", "-f", file], log=folder / "log", cwd=folder)

    def _ends(self) -> dict[Way, str]:
        around = self.around
        return {"sink": around.sink, "tls": around.sink, "calm": around.calm, "rabbitmq": around.rabbitmq}

    def _config(self) -> str:
        lines = ["global", "  nbthread 1", f"  maxconn {self.around.max_connections}"]
        if self.buffer is not None:
            lines.append(f"  tune.bufsize {self.buffer}")
        lines += ["defaults", "  mode tcp", "  timeout connect 5s"]
        lines += [f"  timeout {side} 1h" for side in ("client", "server")]
        ends = self._ends()
        for way, port in self._ports.items():
            tls = f" ssl crt {self.around.certificates.both}" if way == "tls" else ""
            lines += [f"listen {way}", f"  bind {LOOPBACK}:{port}{tls}", f"  server one {ends[way]}"]
        return "\n".join([*lines, ""])

    def stop(self) -> None:
        if self._child:
            self._child.kill()
            self._child = None

    def fresh(self) -> Target | None:
        return HAProxy(self.around, self.name, self.buffer)

    def describe(self) -> str:
        version = subprocess.run([_haproxy(), "-v"], capture_output=True, text=True).stdout
        buffers = "default buffers" if self.buffer is None else f"tune.bufsize {self.buffer}"
        return f"{' '.join(version.split()[:3])}, TCP mode, one thread, {buffers}"

    def published(self) -> int | None:
        return None


def _haproxy() -> str:
    """Its program. Raises `TargetError`."""
    program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        raise TargetError("HAProxy is not installed (Debian: apt-get install haproxy)")
    return program


@attrs.define(eq=False)
class Amqpgate:
    """amqpgate as its users start it: `COMMAND run --config FILE`."""

    around: Surroundings
    name: str
    command: Sequence[str]
    #: A configuration with braces, as in amqpgate.yaml here.
    config: Path
    environment: Mapping[str, str] | None = None
    #: Added to the configuration.
    more: str = ""
    _ports: dict[str, int] = attrs.field(factory=dict, init=False)
    _child: Child | None = attrs.field(default=None, init=False)
    #: Of its other processes, by what they are for.
    _others: dict[Way, Amqpgate] = attrs.field(factory=dict, init=False)

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def address(self, way: Way) -> str | None:
        return f"{LOOPBACK}:{self._ports['sink' if way in ('bridge', 'own', *BESIDE) else way]}"

    def beside(self, way: Way) -> Amqpgate:
        """Another process of it, for one of `BESIDE`; started the first time."""
        if way not in self._others:
            around, more = self.around, AUDIT
            if way == "profile":
                policies = Path(tempfile.mkdtemp(prefix="profile-", dir=around.folder))
                for file in around.policies.glob("*.y*ml"):
                    (policies / file.name).write_text(file.read_text())
                (policies / "compatibility-profile.yaml").write_text(PROFILE)
                around, more = attrs.evolve(around, policies=policies), ""
            other = Amqpgate(around, self.name, self.command, self.config, self.environment, more)
            other.start()
            self._others[way] = other
        return self._others[way]

    def start(self) -> None:
        self.launch()
        assert self._child is not None
        self._child.wait_until(self.is_ready, timeout=30, what=shlex.join(self.command))
        self._check_policy()

    def launch(self) -> None:
        self._ports = {name: free_port() for name in _LISTENERS}
        folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-", dir=self.around.folder))
        values = {name: str(port) for name, port in self._ports.items()} | {
            "sink_address": self.around.sink,
            "calm_address": self.around.calm,
            "rabbitmq_address": self.around.rabbitmq,
            "cert": str(self.around.certificates.cert),
            "key": str(self.around.certificates.key),
            "policies": str(self.around.policies.resolve()),
            "folder": str(folder),
        }
        text = self.config.read_text() + self.more
        for name, value in values.items():
            text = text.replace("{" + name + "}", value)
        file = folder / "amqpgate.yaml"
        file.write_text(text)
        # Not in `folder`: a relative PYTHONPATH must mean what it meant for the caller.
        command = [*self.command, "run", "--config", str(file)]
        # As it is installed, with its bytecode beside it.
        given = os.environ if self.environment is None else self.environment
        environment = {name: value for name, value in given.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._child = Child(command, log=folder / "log", env=environment)

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{self._ports['admin']}{path}", timeout=5) as answer:
            text: str = answer.read().decode()
        return text

    def is_ready(self) -> bool:
        """Whether it says so."""
        try:
            self._get("/readyz")
        except OSError:
            return False
        return True

    def _check_policy(self) -> None:
        """A gateway that denies nothing is not the one that is to be measured."""
        address = self.address("sink")
        assert address is not None
        try:
            answer = load_once(self.around.load, "denied", address, "--queue", "bench.forbidden")
        except ToolError as error:
            raise TargetError(f"{self.name}: {error}\n{self._log()}") from error
        if answer["code"] != 403:
            raise TargetError(f"{self.name}: no access policy is active, bench.forbidden was declared")

    def _log(self) -> str:
        return "\n".join(self._child.output().splitlines()[-20:]) if self._child else ""

    def stop(self) -> None:
        while self._others:
            self._others.popitem()[1].stop()
        if self._child:
            self._child.stop(10)
            self._child = None

    def fresh(self) -> Target | None:
        return Amqpgate(self.around, self.name, self.command, self.config, self.environment)

    def describe(self) -> str:
        done = subprocess.run(
            [*self.command, "--version"], capture_output=True, text=True, env=self.environment
        )
        policies = ", ".join(sorted(path.name for path in self.around.policies.glob("*.y*ml")))
        return f"{done.stdout.strip()}, policies active: {policies}, metrics on"

    def published(self) -> int | None:
        pattern = r'^amqpgate_messages_total\{[^}]*direction="publish"[^}]*verdict="allow"[^}]*\} (\S+)$'
        return int(sum(float(value) for value in re.findall(pattern, self._get("/metrics"), re.MULTILINE)))


def _alive(child: Child | None) -> bool:
    return child is not None and child.running


def wait_for_port(address: str, alive: Callable[[], bool], name: str) -> None:
    """Until somebody listens there; `TargetError` after ten seconds, or once ``alive`` says no."""
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + 10
    while True:
        try:
            with socket.create_connection((host, int(port)), timeout=5):
                return
        except OSError as error:
            if time.monotonic() > deadline or not alive():
                raise TargetError(f"{name}: does not listen on {address}: {error}") from error
            time.sleep(0.05)
