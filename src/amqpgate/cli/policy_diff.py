"""``amqpgate policy diff``: which requests two folders of policies answer differently."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from amqpgate.cli.failures import FAILED, reported
from amqpgate.cli.policy_files import default_access_option, read_policies
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    from amqpgate.policy import Principal
    from amqpgate.policy.kinds.common import DefaultAccess


@click.command(short_help="Show what two folders answer differently, by example.")
@click.argument("before", metavar="A", type=click.Path(path_type=Path))
@click.argument("after", metavar="B", type=click.Path(path_type=Path))
@click.option("--shadow", is_flag=True, help="As if policies in mode shadow were enforced.")
@default_access_option
@click.option(
    "--examples",
    default=3,
    show_default=True,
    type=click.IntRange(1, 100),
    metavar="N",
    help="Examples of each.",
)
def diff(before: Path, after: Path, shadow: bool, default_access: DefaultAccess, examples: int) -> None:
    """Show which requests the access policies in A and in B answer differently, by example.

    The requests are made of all names, patterns and subjects that both folders have, and of names near
    them. What is shown differs; what is not shown was not found to.

    \b
    git worktree add ../before main
    amqpgate policy diff ../before/policies policies

    \b
    Exit codes:
      0  no difference found
      1  at least one
      2  a folder is wrong
    """
    from amqpgate.policy.engine.requests import words_for
    from amqpgate.policy.tools.diff import compare

    with reported():
        (old, _), (new, _) = read_policies(before, default_access), read_policies(after, default_access)
        comparison = compare(old, new, shadow=shadow, examples=examples)
    for difference in comparison.differences:
        echo(f"{difference.operation}: {difference.before} -> {difference.after} ({difference.found} found)")
        for operation in difference.examples:
            echo(f"  {words_for(operation)} as {_words_for(operation.principal)}")
    cut = ", and more are left untried" if comparison.cut else ""
    echo(f"{len(comparison.differences)} differences; {comparison.tried} requests tried{cut}")
    if comparison.differences:
        raise SystemExit(FAILED)


def _words_for(who: Principal) -> str:
    """Who asks, without what the example does not depend on."""
    from amqpgate.policy.engine.witnesses import STRANGER
    from amqpgate.policy.tools.diff import ANYWHERE

    words = [
        "a user who is not known" if who.user is None else f"user '{who.user}'",
        f"in vhost '{who.vhost}'",
    ]
    if who.source != ANYWHERE:
        words.append(f"from {who.source}")
    if who.listener != STRANGER:
        words.append(f"by listener '{who.listener}'")
    if who.tls is not None:
        words.append(f"with certificate {', '.join([who.tls.subject, *who.tls.names])}")
    words += [f"in group '{group}'" for group in sorted(who.groups)]
    if who.token is not None:
        words += [f"with scope '{scope}'" for scope in sorted(who.token.scopes)]
        words += [f"with claim {claim} {value}" for claim, values in who.token.claims for value in values]
    words += [f"with {key} {value}" for key, value in who.client.items()]
    return " ".join(words)
