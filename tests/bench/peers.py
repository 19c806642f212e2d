"""Other proxies: those that are started here, and those that their user has started."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from tests.support.ports import free_port
from tests.support.processes import Child

from .targets import LOOPBACK, Surroundings, Target, TargetError, Way, wait_for_port

#: Commands of proxies that are known by name. In braces: `port`, where to listen on 127.0.0.1; `sink`, the
#: broker's address; and its parts, `sink_host` and `sink_port`. The folder where they run is empty.
KNOWN: Mapping[str, str] = {
    "amqproxy": "amqproxy --listen 127.0.0.1 --port {port} amqp://{sink}",
    "amqpprox": "amqpprox --listenPort {port} --destinationDNS {sink_host} --destinationPort {sink_port} "
    "--controlSocket control",
}


@attrs.define(eq=False)
class Peer:
    """Any other proxy, started by the user in front of the sink's port."""

    name: str
    at: str
    pid: int | None

    def address(self, way: Way) -> str | None:
        return self.at if way == "sink" else None

    def start(self) -> None:
        if self.pid is None or not Path(f"/proc/{self.pid}").exists():
            raise TargetError(f"{self.name}: no process {self.pid}")
        wait_for_port(self.at, lambda: True, self.name)

    def launch(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def fresh(self) -> Target | None:
        return None

    def describe(self) -> str:
        return f"at {self.at}, process {self.pid}"

    def published(self) -> int | None:
        return None


@attrs.define(eq=False)
class StartedPeer:
    """Another proxy, started here by its command, with places to fill in as in `KNOWN`."""

    around: Surroundings
    name: str
    command: str
    _port: int = attrs.field(default=0, init=False)
    _child: Child | None = attrs.field(default=None, init=False)

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def address(self, way: Way) -> str | None:
        return f"{LOOPBACK}:{self._port}" if way == "sink" else None

    def start(self) -> None:
        self.launch()
        address = f"{LOOPBACK}:{self._port}"
        wait_for_port(address, lambda: self._child is not None and self._child.running, self.name)

    def launch(self) -> None:
        self._port = free_port()
        host, _, port = self.around.sink.rpartition(":")
        values = {"port": str(self._port), "sink": self.around.sink, "sink_host": host, "sink_port": port}
        words = [_filled(word, values) for word in shlex.split(self.command)]
        program = shutil.which(words[0])
        if program is None:
            raise TargetError(f"{words[0]} is not installed")
        folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-", dir=self.around.folder))
        (folder / "work").mkdir()
        self._child = Child([program, *words[1:]], log=folder / "log", cwd=folder / "work")

    def stop(self) -> None:
        if self._child:
            self._child.stop(10)
            self._child = None

    def fresh(self) -> Target | None:
        return StartedPeer(self.around, self.name, self.command)

    def describe(self) -> str:
        return f"`{self.command}`"

    def published(self) -> int | None:
        return None


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace("{" + name + "}", value)
    return word


def peers(around: Surroundings, named: Sequence[str], pids: Sequence[int]) -> list[Target]:
    """What ``--peer`` names: a known proxy, ``name=host:port`` with one of ``pids`` each, or ``name=command``
    with ``{port}`` in it. Raises ``ValueError``, saying what is wrong."""
    left = list(pids)
    found: list[Target] = []
    for text in named:
        name, equals, what = text.partition("=")
        if not equals and name in KNOWN:
            found.append(StartedPeer(around, name, KNOWN[name]))
        elif not name or not what:
            raise ValueError(f"'{text}' is not name=host:port, name=command, or one of {', '.join(KNOWN)}")
        elif "{port}" in what:
            found.append(StartedPeer(around, name, what))
        elif not left:
            raise ValueError(f"'{text}': --peer-pid is needed, or a command with {{port}} in it")
        else:
            found.append(Peer(name, what, left.pop(0)))
    if left:
        raise ValueError("there are more of --peer-pid than of --peer with an address")
    return found
