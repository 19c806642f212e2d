"""Listens as a broker, gives each connection its scenario, and collects what came of it."""

from __future__ import annotations

import itertools
import math
import os
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

import attrs
import trio

from amqpgate.conformance.client.scenario import Scenario
from amqpgate.conformance.client.scenarios import SCENARIOS
from amqpgate.conformance.client.served import ServedConnection
from amqpgate.conformance.client.store import BrokerStore
from amqpgate.conformance.client.verdicts import ClientVerdicts

#: Connections at once; more wait.
_MOST: Final = 100

#: Seconds for the connections of a program that has ended to end as well.
_GRACE: Final = 3.0


@attrs.define(eq=False)
class PlayedConnection:
    """A connection that is over."""

    served: ServedConnection
    seconds: float


@attrs.define(eq=False)
class ScriptedBroker:
    """All connections of a run."""

    verdicts: ClientVerdicts
    #: Told of each connection that is over: who, and what was played.
    told: Callable[[str], None]
    store: BrokerStore = attrs.field(factory=BrokerStore)
    #: Products of the clients, in the order of their coming.
    products: dict[str, None] = attrs.field(factory=dict)
    count: int = 0
    #: What every connection gets; None: the next of those that were chosen.
    current: type[Scenario] | None = None
    _next: Iterator[type[Scenario]] = attrs.field(init=False)
    _is_over: trio.Event = attrs.field(factory=trio.Event)
    _open: int = 0
    #: Connections of the program that runs.
    _of_program: list[PlayedConnection] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self._next = itertools.cycle(self.verdicts.played or [SCENARIOS["connection.ordinary"]])

    async def serve(self, stream: trio.abc.Stream) -> None:
        """One connection."""
        scenario = (self.current or next(self._next))()
        served = ServedConnection(stream, self.store, scenario, self._by_name)
        began = time.monotonic()
        self._open += 1
        try:
            await served.run()
        finally:
            self._open -= 1
            self.count += 1
            self._conclude(PlayedConnection(served, time.monotonic() - began))
            over, self._is_over = self._is_over, trio.Event()
            over.set()

    def _by_name(self, virtual_host: str) -> Scenario | None:
        scenario = SCENARIOS.get(virtual_host)
        return None if self.current is not None or scenario is None or scenario.is_early else scenario()

    def _conclude(self, played: PlayedConnection) -> None:
        line = played.served.line
        if line is None:
            self.verdicts.add("0-9-1", played.served.findings)
            return
        if line.product:
            self.products.setdefault(line.product)
        if played.served.scenario.may_fail:
            # Whoever is told of an error may leave as it likes.
            played.served.findings.outcomes.pop("connection.close.said", None)
        self.verdicts.add(line.version.name, played.served.findings)
        if self.current is not None:
            self._of_program.append(played)
            return
        self._played(played, 0)

    def _played(self, played: PlayedConnection, code: int) -> None:
        line = played.served.line
        assert line is not None
        said = played.served.outcome()
        scenario = type(played.served.scenario)
        self.verdicts.add_played(line.version.name, scenario, said, played.seconds, code)
        self.told(f"{line.product or 'a client'}: {scenario.rule.id}: {said or 'not tried'}")

    # -- how long --------------------------------------------------------------------------------------------

    async def connections(self, wanted: int) -> None:
        """Returns when so many are over."""
        while self.count < wanted:
            await self._is_over.wait()

    async def program(self, command: str, address: tuple[str, int], patience: float) -> None:
        """Runs a program once for each scenario; it finds where to connect in its environment."""
        host, port = address
        environment = {
            "AMQP_HOST": host,
            "AMQP_PORT": str(port),
            "AMQP_URL": f"amqp://guest:guest@{host}:{port}/%2F",
        }
        for scenario in self.verdicts.played:
            self.current = scenario
            code = await _run(command, os.environ | environment, patience)
            with trio.move_on_after(_GRACE):
                while self._open:
                    await self._is_over.wait()
            # What is said of several connections of a program is what one of them said of the rule.
            for played in self._of_program:
                self._played(played, code)
            self._of_program.clear()
        self.current = None


async def _run(command: str, environment: dict[str, str], patience: float) -> int:
    """The exit code; a program that is too slow is killed with all that it has started."""
    process = await trio.lowlevel.open_process(
        shlex.split(command), env=environment, start_new_session=True, stdout=2
    )
    try:
        with trio.move_on_after(patience):
            return await process.wait()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with trio.CancelScope(shield=True):
            await process.wait()
    return process.returncode or 1


async def serve(
    broker: ScriptedBroker,
    host: str,
    port: int,
    *,
    listening: Callable[[tuple[str, int]], None],
    connections: int = 0,
    seconds: float = 0,
    program: str = "",
    patience: float = 30.0,
) -> None:
    """Serve until the program has run, or so many connections or seconds are over; 0 and 0: for ever.

    ``listening`` is told where. Raises ``OSError``.
    """
    listeners = await trio.open_tcp_listeners(port, host=host)
    found = listeners[0].socket.getsockname()
    address = found[0], found[1]
    async with trio.open_nursery() as nursery:
        limiter = trio.CapacityLimiter(_MOST)

        async def one(stream: trio.abc.Stream) -> None:
            async with limiter:
                await broker.serve(stream)

        nursery.start_soon(partial(trio.serve_listeners, one, listeners))
        listening(address)
        with trio.move_on_after(seconds or math.inf):
            if program:
                await broker.program(program, address, patience)
            elif connections:
                await broker.connections(connections)
            else:
                await trio.sleep_forever()
        nursery.cancel_scope.cancel()
