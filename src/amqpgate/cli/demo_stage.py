"""The demonstration's cast in one nursery: embedded broker, gateway, client, screen."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import attrs
import trio
from rich.console import Console

from amqpgate import logs
from amqpgate.app import wiring
from amqpgate.cli.demo_client import STEPS, ClosedError, DemoLogin, Sight, demonstrate
from amqpgate.cli.demo_screen import Facts, Screen
from amqpgate.cli.failures import Failure, cause_of
from amqpgate.config import Address, AmqpUrl, LogLevel, Settings, from_flags
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.yamldoc import Seconds

LOOPBACK = "127.0.0.1"
POLICIES = Path(__file__).with_name("policies")

#: The screen tells what happens; the log, only what goes wrong.
LOG_LEVEL: LogLevel = "warning"
#: How long sessions may go on after Ctrl-C, in seconds: a demonstration has nothing to lose.
DRAIN = Seconds(0.3)
#: Pause before the client connects again after its connection broke, in seconds.
AGAIN = 1.0
#: How long a real broker may take to accept a connection, in seconds.
DIAL = 5.0


@attrs.define(eq=False)
class DemoStage:
    """One demonstration. ``run`` returns when it is over; what fails is a ``Failure``."""

    #: A real broker; None for the embedded one.
    url: AmqpUrl | None
    listen: Address
    admin: Address
    #: How many attempts; None for no end.
    count: int | None
    #: Pause between attempts, in seconds.
    interval: float
    console: Console
    #: Called when the gateway listens.
    on_listening: Callable[[], None] = lambda: None
    _screen: Screen = attrs.field(init=False)
    _ever_opened: bool = attrs.field(default=False, init=False)

    async def run(self) -> None:
        """Until Ctrl-C, or until all attempts are made."""
        logs.set_up("console", LOG_LEVEL)
        async with trio.open_nursery() as nursery:
            if self.url is None:
                from amqpgate.broker import EmbeddedBroker

                broker = EmbeddedBroker()
                port: int = await nursery.start(broker.serve, LOOPBACK, 0)
                upstream = AmqpUrl("amqp", LOOPBACK, port)
            else:
                await _ensure_answers(self.url)
                # Clients log in as themselves, the demonstration client with what the URL says.
                upstream = attrs.evolve(self.url, user=None, password=None)
            settings = self._settings(upstream)
            self._screen = Screen(self.console, self._facts(upstream))
            with self._screen:
                # Again: on a terminal, the screen must know of what is written besides.
                logs.set_up("console", LOG_LEVEL)

                def started(gateway: Gateway) -> None:
                    self.on_listening()
                    nursery.start_soon(self._perform, gateway)

                await wiring.serve(settings, on_started=started)
            nursery.cancel_scope.cancel()
        self.console.print(f"demo over: {self._screen.summary}", highlight=False)

    def _settings(self, upstream: AmqpUrl) -> Settings:
        address = Address(upstream.host, upstream.port)
        vhost = "" if upstream.vhost is None else "/" + quote(upstream.vhost, safe="")
        settings = from_flags(
            str(self.listen),
            f"{upstream.scheme}://{address}{vhost}",
            policies=str(POLICIES),
            admin=str(self.admin),
            log_level=LOG_LEVEL,
        )
        return attrs.evolve(settings, limits=attrs.evolve(settings.limits, drain_timeout=DRAIN))

    def _login(self) -> DemoLogin:
        user, password, vhost = "guest", "guest", "/"
        if self.url is not None:
            user = self.url.user or user
            password = self.url.password.reveal() if self.url.password is not None else password
            vhost = self.url.vhost or vhost
        return DemoLogin(user, password, vhost)

    def _facts(self, upstream: AmqpUrl) -> Facts:
        if self.url is None:
            login = "guest:guest"
            behind = f"embedded, {upstream}: in memory, for demonstrations only"
        else:
            login, behind = f"{self.url.user or 'guest'}:PASSWORD", str(self.url)
        mine = f"amqp://{login}@{self.listen}"
        return [
            ("your client", mine),
            ("broker", behind),
            ("policy", f"{POLICIES / 'demo.yaml'}"),
            ("page", f"http://{self.admin}/"),
            ("try", f"curl -s http://{self.admin}/metrics | grep denials_total"),
            ("", f"amqp-get --url={mine} --queue=payroll"),
            ("stop", "Ctrl-C"),
        ]

    # -- the client --------------------------------------------------------------------------

    async def _perform(self, gateway: Gateway) -> None:
        """Try all steps; after a broken connection, go on where it broke. Then end the gateway."""
        steps = self._steps()
        name = secrets.token_hex(3)
        while True:
            try:
                await demonstrate(
                    self.listen.host,
                    self.listen.port,
                    self._login(),
                    steps,
                    name=name,
                    interval=self.interval,
                    tell=self._screen.tell,
                    opened=self._opened,
                )
                break
            except (ClosedError, OSError, trio.BrokenResourceError) as error:
                if not gateway.ready:
                    self._screen.tell(Sight("connection.close", answer=str(error)))
                    return
                if not self._ever_opened:
                    raise Failure(f"amqpgate: the demonstration client could not log in: {error}") from error
                self._screen.tell(Sight("connection.close", answer=f"{error}; connecting again"))
                await trio.sleep(AGAIN)
        gateway.drain()

    def _opened(self) -> None:
        self._ever_opened = True

    def _steps(self) -> Iterator[tuple[int, tuple[str, str] | str]]:
        return itertools.islice(enumerate(itertools.cycle(STEPS), 1), self.count)


async def _ensure_answers(url: AmqpUrl) -> None:
    """Raise a ``Failure`` when nothing listens where the broker should be."""
    why = f"no answer within {DIAL:g} s"
    with trio.move_on_after(DIAL):
        try:
            stream = await trio.open_tcp_stream(url.host, url.port)
        except OSError as error:
            why = cause_of(error)
        else:
            await stream.aclose()
            return
    raise Failure(f"amqpgate: --upstream: cannot connect to {url}: {why}; is the broker running there?")
