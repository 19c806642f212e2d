"""The front door: the ``amqpgate`` command.

In come words on a command line; out go lines for people, and an exit code:

=====  ==============================================================================================
0      done; for ``run`` and ``demo``: stopped by a signal, after a drain; for ``health``: ready
1      failed at run time: a port is taken, nobody answers, a drain was cut short; ``health``: not ready
2      the command line, the settings or the policies are wrong; nothing was started
=====  ==============================================================================================

One module per verb; each parses, calls, prints. What they need from the rooms below is imported when
the verb runs, so that ``--help`` is quick.

``run``     serve              ``check``   look, but do not serve
``demo``    show it            ``health``  ask a running gateway
``policy``  test, explain, check, compare and import policies; its verbs are in ``policy_*``
``audit``   what audit records tell; its verbs are in ``audit_*``
``inject``  sidecars for pods, off line or as a webhook
``reload``  have a running gateway read its policies again
``top``, ``sessions``, ``decisions``, ``close``  look at a running gateway, and end a session
``route``   list, pause, resume
``drain``   part with the clients, and end; ``pause`` and ``resume`` new connections: in ``lifecycle``
``takeover``  take another gateway's place
``tap``     watch operations while they pass; ``pcap`` writes them for Wireshark
``asking``, ``watching``  a running gateway, by its admin interface
``claims``    one start at a time on each port
``failures``  what a user is told, and with which exit code
``show``      one place, policy or setting as one line

Neighbours: calls ``app``, ``webhook``, ``inject``, ``config``, ``policy``, ``pipeline``, ``logs``; ``demo``
uses ``broker`` and ``protocol`` besides. Nobody calls this room.
"""

from __future__ import annotations

import click

from amqpgate import __version__
from amqpgate.cli.audit import audit as audit_command
from amqpgate.cli.check import check as check_command
from amqpgate.cli.decisions import decisions as decisions_command
from amqpgate.cli.demo import demo as demo_command
from amqpgate.cli.health import health as health_command
from amqpgate.cli.inject import inject as inject_command
from amqpgate.cli.lifecycle import drain as drain_command
from amqpgate.cli.lifecycle import pause as pause_command
from amqpgate.cli.lifecycle import resume as resume_command
from amqpgate.cli.policy import policy as policy_command
from amqpgate.cli.reload import reload as reload_command
from amqpgate.cli.route import route as route_command
from amqpgate.cli.run import run as run_command
from amqpgate.cli.sessions import close as close_command
from amqpgate.cli.sessions import sessions as sessions_command
from amqpgate.cli.tap import tap as tap_command
from amqpgate.cli.top import top as top_command

__all__ = ["main"]


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 failed at run time, 2 wrong command line, settings or policies.",
)
@click.version_option(__version__, message="amqpgate %(version)s")
def main() -> None:
    """A transparent AMQP gateway: policy, audit and throttling between clients and brokers."""


for _command in (
    run_command,
    audit_command,
    check_command,
    close_command,
    decisions_command,
    demo_command,
    drain_command,
    health_command,
    pause_command,
    inject_command,
    policy_command,
    reload_command,
    resume_command,
    route_command,
    tap_command,
    sessions_command,
    top_command,
):
    main.add_command(_command)
