"""``amqpgate check``: everything that `run` would refuse, found without serving."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amqpgate.cli.failures import WRONG, Failure, reported

if TYPE_CHECKING:
    from amqpgate.config import Settings


@click.command(short_help="Validate settings and policies.")
@click.option(
    "--config", "-c", metavar="FILE", type=click.Path(path_type=Path), help="YAML file of settings to check."
)
@click.option(
    "--policies",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder of policies to check: alone, or in the place of the file's.",
)
def check(config: Path | None, policies: Path | None) -> None:
    """Validate settings, the files that they name, and policies. Nothing is started or connected to.

    Prints what the gateway would do. Errors are FILE:LINE:COLUMN: text.

    \b
    Exit codes:
      0  all is well
      2  something is wrong
    """
    if config is None and policies is None:
        raise click.UsageError("say --config FILE, --policies DIR, or both")
    from amqpgate.cli.show import lines_of, policies_line, policy_lines
    from amqpgate.gateway.server.policy_fit import check_policies, notes_on
    from amqpgate.policy import PolicySet, load_folder

    with reported():
        settings = checked_settings(config) if config is not None else None
        if policies is None and settings is not None:
            policies = settings.policies
        if policies is not None and not policies.is_dir():
            raise Failure(f"amqpgate: --policies: no such folder: {policies}", WRONG)
        found = load_folder(policies) if policies is not None else PolicySet.empty()
        if settings is not None:
            check_policies(settings, found, os.environ)
            told = policy_lines(settings, found, folder=policies, is_serving=False)
            lines = list(lines_of(settings, told))
            lines += [f"note: {note}" for note in notes_on(settings, found)]
        else:
            lines = [policies_line(found, policies)]
    for line in lines:
        click.echo(line)
    click.echo("ok")


def checked_settings(path: Path) -> Settings:
    """The settings, after a look into every file that they name."""
    from amqpgate.config import load
    from amqpgate.gateway.server.identities import check_identity
    from amqpgate.gateway.transport.tls import TlsContexts

    if not path.exists():
        raise Failure(f"amqpgate: --config: no such file: {path}", WRONG)
    settings = load(path, os.environ)
    check_identity(settings)
    contexts = TlsContexts()
    for listener in settings.listeners:
        if listener.tls is not None:
            contexts.for_listener(listener.tls)
    for upstream in settings.upstreams:
        upstream.login()
        if upstream.tls is not None:
            contexts.for_upstream(upstream.tls)
    if settings.admin is not None:
        settings.admin.token()
    return settings
