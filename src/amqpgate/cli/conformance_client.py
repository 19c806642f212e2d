"""``amqpgate conformance --serve``: which rules of AMQP the clients that connect obey."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import attrs
import click

from amqpgate.cli.failures import Failure
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    from amqpgate.conformance.client.verdicts import ClientVerdicts
    from amqpgate.conformance.report.summary import ConformanceRun


@attrs.frozen
class ClientTest:
    """A run of the scripted broker, as the command line asks for it."""

    address: str
    sections: tuple[str, ...]
    program: str
    connections: int
    seconds: float
    patience: float

    def run(self) -> ConformanceRun:
        """Serve until it is over, or Ctrl-C is pressed."""
        import trio

        from amqpgate.conformance.client.serve import ScriptedBroker, serve
        from amqpgate.conformance.report.summary import ConformanceRun

        host, port = bound(self.address, "--serve")
        broker = ScriptedBroker(self._verdicts(), partial(echo, err=True))
        where = []

        def listening(address: tuple[str, int]) -> None:
            where.append(f"{address[0]}:{address[1]}")
            echo(f"listening at {where[0]}", err=True)

        serving = partial(
            serve,
            broker,
            host,
            port,
            listening=listening,
            connections=self.connections,
            seconds=self.seconds,
            program=self.program,
            patience=self.patience,
        )
        began = time.monotonic()
        try:
            trio.run(serving)
        except KeyboardInterrupt:
            pass
        except BaseExceptionGroup as group:
            # Ctrl-C in the middle of a task.
            if group.split(KeyboardInterrupt)[1] is not None:
                raise
        except OSError as error:
            raise Failure(f"amqpgate: {self.address}: {error.strerror or error}") from None
        names = ", ".join(broker.products) or "nobody"
        return ConformanceRun(where[0], names, broker.verdicts.results(), time.monotonic() - began)

    def _verdicts(self) -> ClientVerdicts:
        from amqpgate.conformance.client.rules import PASSIVE
        from amqpgate.conformance.client.scenarios import CLIENT_SECTIONS, SCENARIOS
        from amqpgate.conformance.client.verdicts import ClientVerdicts
        from amqpgate.conformance.run import is_wanted

        wanted = {
            rule.id
            for section in CLIENT_SECTIONS
            for rule in section.cases
            if is_wanted(section, rule, self.sections)
        }
        if not wanted:
            raise click.BadParameter("no such rule; --list shows all", param_hint="--section")
        played = [scenario for path, scenario in SCENARIOS.items() if path in wanted]
        judged = {rule.id for section in PASSIVE for rule in section.cases} & wanted
        return ClientVerdicts(played, judged)


def bound(said: str, option: str) -> tuple[str, int]:
    """Host and port to listen at."""
    host, _, port = said.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{said}: want HOST:PORT", param_hint=option)
    return host.strip("[]") or "127.0.0.1", int(port)
