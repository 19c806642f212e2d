"""``amqpgate policy``: what policies would do, without serving. One module per verb."""

from __future__ import annotations

import click

from amqpgate.cli.policy_check import check
from amqpgate.cli.policy_diff import diff
from amqpgate.cli.policy_explain import explain
from amqpgate.cli.policy_import import import_
from amqpgate.cli.policy_test import test


@click.group(
    short_help="Test, explain, check, compare and import policies.",
    epilog="Exit codes: 0 as it should be, 1 a test failed, a finding or a difference, 2 wrong input.",
)
def policy() -> None:
    """Look at policies without serving. Nothing is started or connected to.

    \b
    amqpgate policy test policies
    amqpgate policy explain --policies policies --as user=bob --op queue.delete --queue orders
    """


for _command in (test, explain, check, diff, import_):
    policy.add_command(_command)
