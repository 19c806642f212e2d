"""``amqpgate policy check``: what is wrong in a folder of policies, and what is only odd."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amqpgate.cli.failures import FAILED, WRONG, Failure, reported, shown
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    from amqpgate.policy import PolicySet
    from amqpgate.policy.kinds.common import DefaultAccess


@click.command(short_help="Find errors, rules that never decide, open doors.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Notes count as problems, too.")
@click.option(
    "--default-access",
    type=click.Choice(("allow", "deny")),
    help="Also say what becomes of those whom no access policy selects, if the settings have this.",
)
@click.option(
    "--config",
    "-c",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also note what these settings do not have, or have so that a policy does not mean what it says.",
)
@click.option("--overlaps", is_flag=True, help="Note each deny that takes a part of what a rule allows.")
def check(
    folder: Path, strict: bool, default_access: DefaultAccess | None, config: Path | None, overlaps: bool
) -> None:
    """Look for what is wrong in the policies in DIR, or cannot be meant so.

    Prints FILE:LINE:COLUMN: what it is; what to do. Of documents that are not valid, their
    errors; of valid ones, rules that can never decide, rules that say the same, routes and audit rules
    that are never reached, subjects that nobody can be, the default exchange left open, policies that
    are off; with --config, audit policies without records, claims that no token has, shared limits that
    several workers exceed.

    \b
    amqpgate policy check policies
    amqpgate policy check policies --strict
    amqpgate policy check policies --config amqpgate.yaml

    \b
    Exit codes:
      0  no problem; with --strict, no note either
      1  there is one
      2  the documents are not valid
    """
    from amqpgate.policy.kinds.access import default_access_words
    from amqpgate.policy.loader import build, documents_of, errors_in, read_folder
    from amqpgate.policy.tools.checks import findings

    with reported():
        if not folder.is_dir():
            raise Failure(f"amqpgate: no such folder: {folder}", WRONG)
        sources = read_folder(folder)
        errors = errors_in(sources)
        if errors:
            raise Failure("\n".join(map(shown, errors)), WRONG)
        policies = build(sources)
        found = findings(documents_of(sources), overlaps=overlaps)
        notes = () if config is None else _notes(config, policies)
    for one in found:
        echo(str(one))
    for note in notes:
        echo(f"{config}: note: {note}")
    if default_access is not None:
        echo(default_access_words(default_access))
    problems = sum(one.level == "problem" for one in found)
    echo(f"{problems} problems, {len(found) + len(notes) - problems} notes")
    if problems or (strict and (found or notes)):
        raise SystemExit(FAILED)


def _notes(config: Path, policies: PolicySet) -> tuple[str, ...]:
    from amqpgate.cli.check import checked_settings
    from amqpgate.gateway.server.policy_fit import check_policies, notes_on

    settings = checked_settings(config)
    check_policies(settings, policies, os.environ)
    return notes_on(settings, policies)
