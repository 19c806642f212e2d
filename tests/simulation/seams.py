"""Where the simulation takes hold of the gateway: time, sockets, chance, threads.

``install`` comes before anything of amqpgate is imported; ``enter`` makes a world the present one.
"""

from __future__ import annotations

import errno
import os
import random
import secrets
import ssl
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import trio

from tests.simulation import clock as virtual

#: What has with it all that a story needs later: by version, of shared connections, of the audit trail.
_LATE = (
    "tests.simulation.world",
    "amqpgate.bridge.v0_8",
    "amqpgate.bridge.v0_9",
    "amqpgate.bridge.v0_10.build",
    "amqpgate.bridge.v0_10.client",
    "amqpgate.gateway.pool.pooled_upstream",
    "amqpgate.gateway.observers.audit.audit",
    "amqpgate.gateway.observers.audit.writer",
)

#: Of the looks at sessions and pools, between two at the local buckets of shared limits.
_BUCKETS = 0.05


def install(engine: str = "compiled") -> str:
    """Once in a process, before amqpgate: what runs is ``compiled``, where it was built, or all is ``plain``.

    The engine that is there.
    """
    assert not any(name.startswith("amqpgate") for name in sys.modules), "time would be taken from elsewhere"
    virtual.install(virtual.Clock())
    from tests.support.compiled import MODULES

    if engine == "plain":
        for name in ("amqpgate.datapath._pump", "amqpgate.datapath._scan", *MODULES):
            sys.modules[name] = None  # type: ignore[assignment]  # importing it raises ImportError
    from amqpgate.datapath import timer

    timer.Timer = virtual.Timer  # type: ignore[misc, assignment]
    from amqpgate.datapath import accepting, build

    # The listening sockets are objects of the network's.
    build.accept = accepting.accept
    if build.COMPILED:
        # Its deadlines are asked for: a timer of the kernel's would go off by the kernel's time.
        build.Pump = partial(_pump, build.Pump)  # type: ignore[misc, assignment]
    trio.to_thread.run_sync = _run_sync  # type: ignore[assignment]
    trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[attr-defined]
    return "compiled" if build.COMPILED else "plain"


def warm() -> None:
    """Import what the gateway imports once it needs it: those that are forked have it then."""
    for name in _LATE:
        import_module(name)


def _pump(make: Callable[..., Any], **what: object) -> Any:
    return make(clock=virtual.Timer.clock.monotonic, **what)


async def _run_sync(function: Callable[..., Any], *args: Any, **_: object) -> Any:
    """There are no threads: what one would do is done at once, after others have had their turn."""
    await trio.lowlevel.checkpoint()
    return function(*args)


def enter(clock: virtual.Clock, seed: str, network: Any, looks: float, lag_looks: float) -> None:
    """From now on all that the gateway asks of its surroundings is this world's.

    It looks at its sessions and pools every ``looks`` seconds, at its lag every ``lag_looks`` of these. At
    its local buckets it looks as much more rarely: in an idle hour that would be most of its work.
    """
    from amqpgate.gateway.handshake import listeners
    from amqpgate.gateway.limits import distributed
    from amqpgate.gateway.pool import registry
    from amqpgate.gateway.server import housekeeping, memory_keeping
    from amqpgate.gateway.transport import connecting
    from amqpgate.telemetry import lag
    from tests.simulation.sockets import SecuredSocket

    virtual.Timer.clock = clock
    chance = random.Random(f"{seed}/gateway")
    random.seed(f"{seed}/random")
    trio._core._run._r.seed(f"{seed}/trio")  # type: ignore[attr-defined]
    os.urandom = chance.randbytes  # type: ignore[assignment]
    secrets.token_bytes = lambda size=32: chance.randbytes(size)  # type: ignore[assignment, misc]
    secrets.token_hex = lambda size=32: chance.randbytes(size).hex()  # type: ignore[assignment, misc]

    async def bind_all(bind: Any, what: str) -> list[Any]:
        return [network.listening((bind.host, bind.port))]

    def begin(family: object, address: str, port: int) -> connecting.Attempt:
        return connecting.Attempt(network.dial((address, port)), errno.EALREADY)

    ssl.SSLContext.sslsocket_class = SecuredSocket
    listeners.bind_all = bind_all  # type: ignore[assignment]
    connecting._begin = begin
    housekeeping.INTERVAL = registry.INTERVAL = looks  # type: ignore[misc, attr-defined]
    lag.INTERVAL = lag_looks * looks  # type: ignore[misc]
    distributed.INTERVAL = _BUCKETS * looks  # type: ignore[misc]
    memory_keeping.give_back = lambda *_: None  # type: ignore[assignment]
    # How much memory the interpreter has is no part of a story.
    memory_keeping.sys = SimpleNamespace(getallocatedblocks=lambda: 0)  # type: ignore[attr-defined, assignment]
