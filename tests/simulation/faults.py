"""What befalls a world: each kind of fault, and how it is mended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.story import FAULTS, Fault

if TYPE_CHECKING:
    from tests.simulation.world import World

#: Seconds that a gateway that was killed is gone.
_GONE = 3.0


def happen(world: World, fault: Fault) -> None:
    """It happens."""
    world.happened[fault.kind] += 1
    world.tell(f"*** {fault.kind} {fault.target} {fault.seconds:g} s")
    if FAULTS[fault.kind][1] != "client":
        world.in_trouble(fault.seconds)
    _HOW[fault.kind](world, fault)
    world.network.touch()


def heal(world: World) -> None:
    """Nothing befalls it any more."""
    for name in world.brokers:
        _answer(world, name)
    for broker in world.brokers.values():
        broker.slowness, broker.nacking = 0.005, 0.0
    if world.life is not None:
        world.life.gateway.resume()
    world.network.touch()


def _reset(world: World, fault: Fault) -> None:
    for connection in world.network.near(fault.target):
        connection.reset()


def _stall(world: World, fault: Fault) -> None:
    for connection in world.network.near(fault.target):
        connection.stall(fault.seconds)


def _lose(*, inward: bool, outward: bool) -> Callable[[World, Fault], None]:
    def lose(world: World, fault: Fault) -> None:
        for connection in world.network.near(fault.target):
            connection.lose(inward=inward, outward=outward)

    return lose


def _restart(world: World, fault: Fault) -> None:
    """It goes down, and comes up again."""
    world.network.servers[_address(fault.target)] = None
    world.brokers[fault.target].die()
    world.clock.after(fault.seconds, lambda: _answer(world, fault.target))


def _unreachable(world: World, fault: Fault) -> None:
    """Nobody hears of it, for so long; its connections are lost for good."""
    world.network.servers.pop(_address(fault.target), None)
    for connection in world.network.near(fault.target):
        connection.lose(inward=True, outward=True)
    world.clock.after(fault.seconds, lambda: _answer(world, fault.target))


def _answer(world: World, name: str) -> None:
    world.network.servers[_address(name)] = world.brokers[name].accept


def _address(name: str) -> tuple[str, int]:
    from tests.simulation.world import BROKERS

    return BROKERS[name]


def _slow(world: World, fault: Fault) -> None:
    broker = world.brokers[fault.target]
    broker.slowness = fault.seconds / 20

    def again() -> None:
        broker.slowness = 0.005

    world.clock.after(5 * fault.seconds, again)


def _nacks(world: World, fault: Fault) -> None:
    broker = world.brokers[fault.target]
    broker.nacking = 0.3

    def again() -> None:
        broker.nacking = 0.0

    world.clock.after(5 * fault.seconds, again)


def _kill(world: World, fault: Fault) -> None:
    world.kill_gateway()


def _drain(world: World, fault: Fault) -> None:
    if world.life is not None and world.life.is_serving:
        world.life.gateway.drain(fault.seconds)


def _pause(world: World, fault: Fault) -> None:
    life = world.life
    if life is not None and life.is_serving:
        life.gateway.pause()

        def again() -> None:
            life.gateway.resume()
            world.network.touch()

        world.clock.after(fault.seconds, again)


def _reload(world: World, fault: Fault) -> None:
    if world.life is not None and world.life.is_serving:
        world.life.gateway.use(world.policies)


def _certificates(world: World, fault: Fault) -> None:
    """The listener gets others: the key comes later than the certificate."""
    papers = world.papers
    if papers is not None:
        papers.begin_to_replace()
        world.clock.after(fault.seconds, papers.finish)


def _restart_redis(world: World, fault: Fault) -> None:
    redis = world.redis
    redis.leave(forgets=fault.target == "forgets")
    world.clock.after(fault.seconds, redis.come_back)


_HOW: dict[str, Callable[[World, Fault], None]] = {
    "reset": _reset,
    "stall": _stall,
    "half open in": _lose(inward=True, outward=False),
    "half open out": _lose(inward=False, outward=True),
    "black hole": _lose(inward=True, outward=True),
    "reset broker": _reset,
    "stall broker": _stall,
    "black hole broker": _lose(inward=True, outward=True),
    "restart broker": _restart,
    "unreachable broker": _unreachable,
    "slow broker": _slow,
    "nacking broker": _nacks,
    "kill gateway": _kill,
    "drain gateway": _drain,
    "pause": _pause,
    "reload": _reload,
    "certificates": _certificates,
    "restart redis": _restart_redis,
}
