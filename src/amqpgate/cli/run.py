"""``amqpgate run``: serve until a signal."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from amqpgate.cli.child import in_child
from amqpgate.cli.claims import claimed
from amqpgate.cli.failures import WRONG, Failure, ensure_free, reported
from amqpgate.later import OF_FEW, OF_OPENSSL, later, loading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from amqpgate.cli.takeover import Takeover
    from amqpgate.config import LogFormat, LogLevel, Settings
    from amqpgate.gateway.server.gateway import Gateway
    from amqpgate.policy import PolicySet

#: What ``config.LogFormat`` and ``LogLevel`` allow, here so that ``--help`` is quick (a test compares).
FORMATS = ("console", "json")
LEVELS = ("debug", "info", "warning", "error")


@click.command(short_help="Serve until a signal.")
@click.option(
    "--config",
    "-c",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="YAML file of settings; goes with --log-format and --log-level only.",
)
@click.option("--listen", metavar="HOST:PORT", help="Where clients connect; port 0 takes a free one.")
@click.option(
    "--upstream",
    metavar="URL",
    envvar="AMQPGATE_UPSTREAM",
    show_envvar=True,
    help="The broker: amqp[s]://[user:password@]HOST[:PORT][/vhost]. Without a user in it, clients log in "
    "with their own. A password here is seen in the process list; in the environment variable it is not.",
)
@click.option(
    "--policies",
    metavar="DIR",
    help="Folder of policy documents.  [default: none, everything is allowed]",
)
@click.option(
    "--admin", metavar="HOST:PORT", help="Where /livez, /readyz and /metrics are served.  [default: off]"
)
@click.option(
    "--probes",
    metavar="HOST:PORT",
    help="Where /livez, /readyz, /startupz and /metrics are served without a token.  [default: off]",
)
@click.option(
    "--allow-anonymous",
    is_flag=True,
    help="Let clients from other machines use an upstream URL that has a user in it.",
)
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    help="For people, or one JSON object per line.  [default: console]",
)
@click.option("--log-level", type=click.Choice(LEVELS), help="Least important message.  [default: info]")
@click.option(
    "--take-over",
    is_flag=True,
    help="Take the place of the gateway that has these addresses: listen beside it, have it drain, and take "
    "its admin address. Where there is none, just start.",
)
def run(
    config: Path | None,
    listen: str | None,
    upstream: str | None,
    policies: str | None,
    admin: str | None,
    probes: str | None,
    allow_anonymous: bool,
    log_format: LogFormat | None,
    log_level: LogLevel | None,
    take_over: bool,
) -> None:
    """Serve: accept AMQP clients, apply policies, relay to the broker.

    Either --config FILE, or --listen and --upstream for one listener and one broker.

    SIGTERM or SIGINT (Ctrl-C) drains: no new connections, and sessions are closed with 320, in slices
    over limits.drainTimeout (25 s by default). A second signal ends at once.

    \b
    Exit codes:
      0  stopped by a signal, after a drain
      1  a port cannot be listened on, or a second signal cut the drain short
      2  wrong command line, settings or policies
    """
    later(*OF_OPENSSL, *OF_FEW)
    flags = {
        "--listen": listen,
        "--policies": policies,
        "--admin": admin,
        "--probes": probes,
        "--allow-anonymous": allow_anonymous or None,
    }
    with reported():
        if config is not None:
            # The environment may name an upstream for other uses; only one on the command line contradicts.
            source = click.get_current_context().get_parameter_source("upstream")
            if source is not None and source.name == "COMMANDLINE":
                flags["--upstream"] = upstream
            clash = [flag for flag, value in flags.items() if value is not None]
            if clash:
                raise click.UsageError(f"--config and {clash[0]} exclude each other: put it into the file")
            settings = _with_log(_load(config), log_format, log_level)
        else:
            if listen is None or upstream is None:
                raise click.UsageError(
                    "say --config FILE, or --listen HOST:PORT and --upstream URL; "
                    "`amqpgate demo` shows the gateway without either"
                )
            from amqpgate.config import from_flags

            settings = from_flags(
                listen,
                upstream,
                policies=policies,
                admin=admin,
                probes=probes,
                log_format=log_format,
                log_level=log_level,
                allow_anonymous=allow_anonymous,
            )
        _leave(_serve(settings, take_over))


def _leave(code: int) -> NoReturn:
    """End the process. A thread that is still at audit records, on a disk that hangs, say, may be anywhere in
    native code: that is not taken down under it.
    """
    if any(thread.name == "audit" for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _load(path: Path) -> Settings:
    from amqpgate.config import load

    if not path.exists():
        raise Failure(f"amqpgate: --config: no such file: {path}", WRONG)
    return load(path, os.environ)


def _with_log(settings: Settings, log_format: LogFormat | None, log_level: LogLevel | None) -> Settings:
    import attrs

    log = attrs.evolve(
        settings.log, format=log_format or settings.log.format, level=log_level or settings.log.level
    )
    return attrs.evolve(settings, log=log)


def _serve(settings: Settings, take_over: bool) -> int:
    from amqpgate import logs
    from amqpgate.telemetry.prometheus import import_prometheus

    # Before anybody else imports it.
    import_prometheus()

    from amqpgate.app.standard_error import standard_error
    from amqpgate.app.worker_rpc import VARIABLE

    shipping = contextlib.ExitStack()
    stream = shipping.enter_context(standard_error())
    logs.set_up(settings.log.format, settings.log.level, stream=stream)
    if settings.otlp is not None and settings.otlp.logs is not None:
        from amqpgate import __version__
        from amqpgate.telemetry.otlp.logs import LogShipper

        shipper = LogShipper.of(settings.otlp, settings.otlp.logs, __version__)
        logs.tee(shipper.take)
        shipping.callback(shipper.close, float(settings.limits.close_timeout))
    addresses = [("listener " + one.name, one.bind.host, one.bind.port) for one in settings.listeners]
    if settings.admin is not None:
        addresses.append(("admin", settings.admin.bind.host, settings.admin.bind.port))
        if settings.admin.probes is not None:
            addresses.append(("admin.probes", settings.admin.probes.host, settings.admin.probes.port))
    is_worker = VARIABLE in os.environ
    takeover: Takeover | None = None
    with shipping, contextlib.ExitStack() as claims:
        if not is_worker:
            claims.enter_context(claimed(port for _, _, port in addresses))
            if take_over:
                from amqpgate.cli.takeover import Takeover

                takeover = Takeover.find(settings)
            if takeover is None:
                ensure_free(addresses)
        return _run(settings, is_worker, None if takeover is None else takeover.take_over, claims.close)


def _run(
    settings: Settings,
    is_worker: bool,
    take_over: Callable[[], None] | None,
    on_listening: Callable[[], None],
) -> int:
    """``on_listening`` is called when clients can connect, and all addresses are this process's."""
    import logging

    from amqpgate.cli.show import lines_of

    log = logging.getLogger(__name__)

    def say(policies: Iterable[str], bound: Mapping[str, tuple[str, int]]) -> None:
        on_listening()
        for line in lines_of(settings, policies, bound=bound):
            log.info("%s", line)

    if settings.workers == 1 or is_worker:
        with contextlib.ExitStack() as start:
            start.enter_context(loading())
            from amqpgate.app import wiring

            def started(gateway: Gateway) -> None:
                start.close()
                if not is_worker:
                    say(_told(settings, gateway.policies), gateway.addresses)

            return wiring.run(settings, on_started=started, take_over=take_over)

    import trio

    from amqpgate.app.supervisor import Supervisor, own_command

    # What policies take stays with a process that ends.
    told = in_child(lambda: "\n".join(_told(settings, _policies(settings)))).split("\n")
    supervisor = Supervisor(settings, own_command(), lambda it: say(told, it.addresses), take_over)
    return trio.run(supervisor.run)


def _policies(settings: Settings) -> PolicySet:
    from amqpgate.app import wiring

    return wiring.load_policies(settings)


def _told(settings: Settings, policies: PolicySet) -> Iterable[str]:
    from amqpgate.cli.show import policy_lines

    return policy_lines(settings, policies, folder=settings.policies, is_serving=True)
