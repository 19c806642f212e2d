"""Faults by name: what each does, and where it may be played. Each lasts until it returns."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from tests.interop.test_gateway_drain import workers_of
from tests.support.rabbitmq import RabbitMQ

from .setups import World, restarted

#: Seconds that a process is stopped, or a network silent: within the heartbeat's patience, or beyond it.
_SHORT, _LONG = 3.0, 14.0

Act = Callable[[World, random.Random], str]


@attrs.frozen
class Fault:
    name: str
    #: What it needs: `gateway`, `all` (everything is on), or nothing.
    needs: str
    act: Act


FAULTS: dict[str, Fault] = {}


def _fault(name: str, needs: str = "") -> Callable[[Act], Act]:
    def register(act: Act) -> Act:
        FAULTS[name] = Fault(name, needs, act)
        return act

    return register


def faults_of(world: World) -> list[str]:
    """Names of all that may be played there."""
    has = {""}
    if world.place is not None:
        has.add("gateway")
    if world.setup.has_all:
        has.add("all")
    return [
        fault.name
        for fault in FAULTS.values()
        if fault.needs in has and (fault.name != "audit-full" or world.has_audit_disk)
    ]


@contextlib.contextmanager
def _stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _span(dice: random.Random) -> float:
    return dice.choice((_SHORT, _LONG))


# -- the gateway -----------------------------------------------------------------------------------


@_fault("worker-kill", "gateway")
def _worker_kill(world: World, dice: random.Random) -> str:
    os.kill(dice.choice(sorted(workers_of(world.gateway))), signal.SIGKILL)
    return "SIGKILL"


@_fault("worker-stop", "gateway")
def _worker_stop(world: World, dice: random.Random) -> str:
    span = _span(dice)
    with _stopped(dice.choice(sorted(workers_of(world.gateway)))):
        time.sleep(span)
    return f"SIGSTOP for {span:.0f} s"


@_fault("supervisor-kill", "gateway")
def _supervisor_kill(world: World, dice: random.Random) -> str:
    assert world.place is not None
    workers = workers_of(world.gateway)
    os.kill(world.gateway.pid, signal.SIGKILL)
    world.gateway.child.wait()
    # They drain for 8 s, on a machine that others use as well.
    deadline = time.monotonic() + 40
    while alive := {pid for pid in workers if Path(f"/proc/{pid}").exists()}:
        assert time.monotonic() < deadline, f"workers outlive their supervisor: {alive}"
        time.sleep(0.02)
    world.logs.append(world.gateway.kill().log)
    world.place.start_again()
    return "SIGKILL, and a new gateway"


@_fault("supervisor-stop", "gateway")
def _supervisor_stop(world: World, dice: random.Random) -> str:
    span = _span(dice)
    with _stopped(world.gateway.pid):
        time.sleep(span)
    return f"SIGSTOP for {span:.0f} s"


@_fault("take-over", "gateway")
def _take_over(world: World, dice: random.Random) -> str:
    assert world.place is not None
    old = world.place.take_over()
    old.child.wait(90)
    _ended(world, old.stop())
    return "run --take-over"


@_fault("drain", "gateway")
def _drain(world: World, dice: random.Random) -> str:
    assert world.place is not None
    _ended(world, world.gateway.stop(90))
    world.place.start_again()
    return "SIGTERM, then a new gateway"


def _ended(world: World, ended: object) -> None:
    code, log = ended.code, ended.log  # type: ignore[attr-defined]
    world.logs.append(log)
    assert code == 0, f"a gateway ended with {code}: {log[-500:]}"


# -- brokers ---------------------------------------------------------------------------------------


@_fault("broker-kill")
def _broker_kill(world: World, dice: random.Random) -> str:
    node = dice.choice(world.nodes)
    node.kill()
    restarted(node, world)
    return "SIGKILL, and started again"


@_fault("broker-stop")
def _broker_stop(world: World, dice: random.Random) -> str:
    span = _span(dice)
    node = dice.choice(world.nodes)
    node.pause()
    try:
        time.sleep(span)
    finally:
        node.resume()
    return f"SIGSTOP for {span:.0f} s"


@_fault("memory-alarm")
def _memory_alarm(world: World, dice: random.Random) -> str:
    with dice.choice(world.nodes).memory_alarm():
        time.sleep(8)
    return "for 8 s"


@_fault("disk-alarm")
def _disk_alarm(world: World, dice: random.Random) -> str:
    node = dice.choice(world.nodes)
    _disk_limit(node, 1 << 60)
    try:
        time.sleep(8)
    finally:
        _disk_limit(node, 1_000_000)
    return "for 8 s"


def _disk_limit(node: RabbitMQ, limit: int) -> None:
    node.eval(f"rabbit_disk_monitor:set_disk_free_limit({limit}).")


# -- the network -----------------------------------------------------------------------------------


def _network(side: str, needs: str) -> None:
    def wires(world: World) -> list[object]:
        return list(world.fronts if side == "client" else world.backs)

    @_fault(f"{side}-reset", needs)
    def _reset(world: World, dice: random.Random) -> str:
        share = dice.choice((0.5, 1.0))
        count = world.wires.reset(wires(world), share, dice)  # type: ignore[arg-type]
        return f"{count} connections"

    @_fault(f"{side}-half-open", needs)
    def _half_open(world: World, dice: random.Random) -> str:
        count = world.wires.halve(wires(world), 0.5, dice)  # type: ignore[arg-type]
        return f"{count} connections"

    @_fault(f"{side}-blackhole", needs)
    def _blackhole(world: World, dice: random.Random) -> str:
        span = _span(dice)
        world.wires.set(wires(world), black=True)  # type: ignore[arg-type]
        try:
            time.sleep(span)
        finally:
            world.wires.set(wires(world), black=False)  # type: ignore[arg-type]
        return f"for {span:.0f} s"

    @_fault(f"{side}-one-byte", needs)
    def _one_byte(world: World, dice: random.Random) -> str:
        world.wires.set(wires(world), slow=True)  # type: ignore[arg-type]
        try:
            time.sleep(6)
        finally:
            world.wires.set(wires(world), slow=False)  # type: ignore[arg-type]
        return "for 6 s"


_network("client", "")
_network("upstream", "gateway")


# -- what belongs to everything --------------------------------------------------------------------


@_fault("redis-kill", "all")
def _redis_kill(world: World, dice: random.Random) -> str:
    assert world.redis is not None
    world.redis.kill()
    time.sleep(5)
    world.redis.start()
    return "SIGKILL, and started again after 5 s"


@_fault("redis-stop", "all")
def _redis_stop(world: World, dice: random.Random) -> str:
    assert world.redis is not None
    with _stopped(world.redis.child.pid):
        time.sleep(8)
    return "SIGSTOP for 8 s"


@_fault("audit-full", "all")
def _audit_full(world: World, dice: random.Random) -> str:
    filler = world.folder / "audit/filler"
    try:
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 16))
        time.sleep(12)
    finally:
        # So that there is room for a while.
        filler.unlink()
        world.drop_records()
    return "for 12 s"


@_fault("policies", "all")
def _policies(world: World, dice: random.Random) -> str:
    for second in range(12):
        world.write_rates(40_000 + second)
        world.gateway.child.signal(signal.SIGHUP)
        time.sleep(1)
    return "other ones every second, for 12 s"


@_fault("certificates", "all")
def _certificates(world: World, dice: random.Random) -> str:
    for _ in range(8):
        world.write_papers()
        world.wires.reset(world.fronts, 0.3, dice)
        time.sleep(1)
    return "other ones every second, for 8 s, with resets"
