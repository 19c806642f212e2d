"""The front door: the ``amqpgate`` command.

In come words on a command line; out go lines for people, and an exit code:

=====  ==============================================================================================
0      done; for ``run`` and ``demo``: stopped by a signal, after a drain; for ``health``: ready
1      failed at run time: a port is taken, nobody answers, a drain was cut short; ``health``: not ready
2      the command line, the settings or the policies are wrong; nothing was started
3      for ``init`` and ``policy import``: written, but for permissions that policies cannot say
=====  ==============================================================================================

One module per verb, which `VERBS` names; each parses, calls, prints. A verb is imported when it is asked for,
and what it needs from the rooms below when it runs: so all is quick, and ``run`` holds no other verb.

``run``     serve              ``check``   look, but do not serve
``demo``    show it            ``health``  ask a running gateway
``broker``  the embedded broker alone, for tests
``policy``  test, explain, check, compare and import policies; its verbs are in ``policy_*``
``audit``   what audit records tell; its verbs are in ``audit_*``
``conformance``  which rules of AMQP a broker or a proxy obeys
``claims``  look after object stores that policies put bodies into: in ``claim_collect``
``inject``  sidecars for pods, off line or as a webhook
``operator``  policies that are custom resources, brought to gateways
``init``    settings and policies to begin with
``doctor``  what a gateway would meet on this machine, tried; its checks are in ``doctor_*``
``schema``  the JSON Schemas of settings and policies
``reload``  have a running gateway read its policies again
``top``, ``sessions``, ``decisions``, ``close``  look at a running gateway, and end a session
``route``   list, pause, resume
``drain``   part with the clients, and end; ``pause`` and ``resume`` new connections: in ``lifecycle``
``move``    clients from one broker to another; its parts are in ``move_*``
``takeover``  take another gateway's place
``tap``     watch operations while they pass; ``pcap`` writes them for Wireshark
``asking``, ``watching``  a running gateway, by its admin interface
``claims``    one start at a time on each port
``failures``  what a user is told, and with which exit code
``telling``   what verbs write for people: nothing in it drives a terminal
``show``      one place, policy or setting as one line

Neighbours: calls ``app``, ``inject``, ``kubernetes``, ``config``, ``policy``, ``pipeline``, ``logs``;
``demo`` uses ``broker`` and ``protocol`` besides, and ``broker`` uses ``broker``. Nobody calls this room.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

from amqpgate import __version__
from amqpgate.cli.telling import tame

__all__ = ["VERBS", "main"]

#: Each verb, and the module of this room that has a command of its name.
VERBS: Final[dict[str, str]] = {
    "audit": "audit",
    "broker": "broker",
    "check": "check",
    "claims": "claim_collect",
    "close": "sessions",
    "conformance": "conformance",
    "decisions": "decisions",
    "demo": "demo",
    "doctor": "doctor",
    "drain": "lifecycle",
    "health": "health",
    "init": "init",
    "inject": "inject",
    "move": "move",
    "operator": "operator",
    "pause": "lifecycle",
    "policy": "policy",
    "reload": "reload",
    "resume": "lifecycle",
    "route": "route",
    "run": "run",
    "schema": "schema",
    "sessions": "sessions",
    "tap": "tap",
    "top": "top",
}

#: How help groups the verbs; one that is in none is listed at the end.
GROUPS: Final = (
    ("Begin", ("demo", "init", "check", "doctor", "run", "broker", "schema")),
    ("Look at a running gateway", ("top", "sessions", "decisions", "tap", "health")),
    ("Steer a running gateway", ("close", "drain", "pause", "resume", "reload", "route", "move")),
    ("Policies and records", ("policy", "audit", "claims")),
    ("Beside it", ("inject", "operator", "conformance")),
)


class Verbs(click.Group):
    """The verbs, each imported when it is asked for."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        grouped = {verb for _, verbs in GROUPS for verb in verbs}
        others = tuple(verb for verb in self.list_commands(ctx) if verb not in grouped)
        for title, verbs in (*GROUPS, ("Others", others)):
            found = [(verb, self.get_command(ctx, verb)) for verb in verbs]
            rows = [(verb, command.get_short_help_str(80)) for verb, command in found if command is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        # Where there is none, click looks for one that is like it among all.
        for verb in (cmd_name,) if cmd_name in VERBS else VERBS:
            command = getattr(import_module(f"{__name__}.{VERBS[verb]}"), verb)
            assert isinstance(command, click.Command)
            self.add_command(command)
        return super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with tame():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        # The verbs' own words are read in there, too.
        with tame():
            return super().invoke(ctx)


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  amqpgate demo
  amqpgate run --listen 127.0.0.1:5673 --upstream amqp://127.0.0.1:5672 --policies policies
  amqpgate tap --match 'exchange=orders'
  amqpgate VERB --help

\b
AMQPGATE_ADMIN and AMQPGATE_TOKEN_FILE stand for --admin and --token-file of a running gateway.
Exit codes: 0 done, 1 failed at run time, 2 wrong command line, settings or policies.""",
)
@click.version_option(__version__, message="amqpgate %(version)s")
def main() -> None:
    """A transparent AMQP gateway: policy, audit and throttling between clients and brokers."""
