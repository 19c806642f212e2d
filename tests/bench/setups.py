"""The cases in which connections, or the process, are set up: storm and start."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator

import attrs

from .accounting import Reading, cpu_ns, pss
from .cases import Case, Scale
from .samples import Latency, MeasureError, Sample, Storm
from .targets import Target
from .tools import Sink, Tool, load, load_once

#: Those who stay while others come: connections, and confirmed messages a second on each.
STAYERS, STAYERS_RATE = 10, 50
#: What a client of 0-9-1 says first.
_HEADER = b"AMQP\x00\x00\x09\x01"
#: Seconds that a process may take to answer, and between two tries.
_PATIENCE, _PAUSE = 30.0, 0.002


@attrs.frozen
class _Scene:
    """Who takes part in a storm."""

    sink: Sink
    program: str
    scale: Scale
    target: Target
    address: str
    #: Where those go who stay: to another sink, so that they do not wait for the first one's logins.
    calm: str

    @property
    def many(self) -> int:
        return self.scale.idle[-1]

    @contextlib.contextmanager
    def stayers(self) -> Iterator[Tool]:
        """Connections that publish now and then, each message confirmed, until they are told to end."""
        options = ("--connections", str(STAYERS), "--rate", str(STAYERS_RATE), "--size", "16")
        until = ("--seconds", "120", "--warmup", str(self.scale.warmup), "--until-line")
        with load(self.program, "openloop", self.calm, *options, *until) as tool:
            assert tool.hear() == "ready"
            tool.say("go")
            yield tool

    def heard(self, stayers: Tool) -> Latency:
        """End them: what they waited for."""
        stayers.say("enough")
        found = Latency.of(stayers.hear_json())
        if found is None:
            raise MeasureError("who stayed has published nothing")
        stayers.finish()
        return found

    def quiet(self) -> tuple[Latency, float]:
        """Nobody comes: what those waited for who stayed, and what a message of theirs cost the proxy."""
        with self.stayers() as stayers:
            before = Reading.take(self.target.pid, self.sink.pid, None)
            time.sleep(self.scale.quiet)
            cost = Reading.take(self.target.pid, self.sink.pid, None).since(before)
            found = self.heard(stayers)
            return found, cost.proxy / found.count

    def come(self, clients: Tool, how: str) -> tuple[Reading, int, dict[str, object], Latency]:
        """All clients log in, as ``how`` says: what it cost the proxy, and in nanoseconds those who came and
        stayed, what the clients say of it, and what those waited for who stayed."""
        with self.stayers() as stayers:
            tools = cpu_ns(clients.pid) + cpu_ns(stayers.pid)
            before = Reading.take(self.target.pid, self.sink.pid, None)
            clients.say(f"{how} {self.many}")
            result = clients.hear_json()
            cost = Reading.take(self.target.pid, self.sink.pid, None).since(before)
            tools = cpu_ns(clients.pid) + cpu_ns(stayers.pid) - tools
            self.await_connections(lambda found: found >= self.many)
            return cost, tools, result, self.heard(stayers)

    def await_connections(self, enough: Callable[[int], bool]) -> None:
        """What is closed or opened is so on the broker's side, too."""
        deadline = time.monotonic() + 10
        while not enough(found := self.sink.counts().connections):
            if time.monotonic() > deadline:
                raise MeasureError(f"the sink has {found} connections")
            time.sleep(0.05)

    def pss(self) -> int:
        time.sleep(self.scale.settle)
        return pss(self.target.pid) if self.target.pid is not None else 0


def measure_storm(
    sink: Sink, program: os.PathLike[str], scale: Scale, case: Case, target: Target, number: int
) -> Sample | None:
    """``scale.idle`` clients log in one after the other, leave, and come back all at once."""
    address = target.address(case.way)
    if address is None:
        return None
    calm = target.address("calm") or address
    scene = _Scene(sink, os.fspath(program), scale, target, address, calm)
    # So that what is loaded or allocated once is not counted to the logins.
    load_once(scene.program, "churn", address, "--seconds", "0.3", "--warmup", "0")
    with load(scene.program, "idle", address, "--connections", str(scene.many)) as clients:
        assert clients.hear() == "ready"
        held = [scene.pss()]
        quiet, each = scene.quiet()
        one_by_one, _, _, beside_one = scene.come(clients, "open")
        held.append(scene.pss())
        clients.say("close")
        clients.hear_json()
        scene.await_connections(lambda found: found == 0)
        # What a proxy still does for those who left is not part of the storm.
        held.append(scene.pss())
        cost, tools, result, beside_all = scene.come(clients, "storm")
        held.append(scene.pss())
        clients.finish()
    # The longer it took, the more messages of those who stay are in it.
    one_by_one_ns = max(1, round(one_by_one.proxy - each * beside_one.count))
    storm_ns = max(1, round(cost.proxy - each * beside_all.count))
    whole = cost.seconds * (os.cpu_count() or 1)
    known = (cost.proxy + cost.sink + tools) / 1e9
    return Sample(
        case=case.name,
        target=target.name,
        round=number,
        messages=scene.many,
        seconds=float(str(result["seconds"])),
        cpu_ns=storm_ns if target.pid is not None else None,
        user_ns=cost.user if target.pid is not None else None,
        system_ns=cost.system if target.pid is not None else None,
        load_cpu_ns=tools,
        sink_cpu_ns=cost.sink,
        latency=Latency.of(result),
        storm=Storm(
            one_by_one_ns=one_by_one_ns,
            quiet=quiet,
            beside_one=beside_one,
            beside_all=beside_all,
            again=int(str(result["again"])),
            pss=(held[0], held[1], held[3]),
        ),
        foreign=max(0.0, cost.machine_busy - known) / whole,
        stolen=cost.machine_stolen / whole,
    )


def measure_start(case: Case, target: Target, number: int) -> Sample | None:
    """From the start of another process of it until a client hears connection.start; None: there is none."""
    other = target.fresh()
    if other is None:
        return None
    began = time.monotonic()
    try:
        other.launch()
        address, pid = other.address(case.way), other.pid
        assert address is not None
        assert pid is not None
        _await_answer(address, began + _PATIENCE)
        return Sample(
            case=case.name,
            target=target.name,
            round=number,
            messages=1,
            seconds=time.monotonic() - began,
            cpu_ns=cpu_ns(pid),
        )
    finally:
        other.stop()


def _await_answer(address: str, deadline: float) -> None:
    host, _, port = address.rpartition(":")
    while True:
        try:
            with socket.create_connection((host, int(port)), timeout=5) as client:
                client.sendall(_HEADER)
                if client.recv(1):
                    return
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise MeasureError(f"no answer at {address} within {_PATIENCE:g} s")
        time.sleep(_PAUSE)
