"""``amqpgate audit denials``: what is refused most."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Literal

import click

from amqpgate.cli.audit_job import running
from amqpgate.cli.audit_options import job
from amqpgate.cli.audit_watch import watch_options, watching

if TYPE_CHECKING:
    from amqpgate.pipeline.watch.course import Watch


@click.command(short_help="What was refused most, by which rule, to whom, and whether it grows.")
@job
@click.option("--shadow", is_flag=True, help="What policies in mode shadow would have decided otherwise.")
@click.option(
    "--top", metavar="N", type=click.IntRange(1), default=50, show_default=True, help="So many at most."
)
@watch_options
def denials(shadow: bool, top: int, follow: bool) -> None:
    """Show what was refused most, by which policy and rule.

    Where neither policy nor rule is named, the broker refused it. A rule without a policy is the gateway's
    own: default (no rule allows it), defaultAccess (no access policy selects), transform. The trend has
    eight equal parts of the time from the first to the last of all.

    With --follow it tells alerts: for each minute, rule, user and target one, --late after the minute;
    records that come later make alerts of their own. Each is told at least once, with an id, to all that are
    named: --output FOLDER, --to TABLES (there exactly once), --webhook, --publish; else on standard output.

    \b
    amqpgate audit denials audit --since 2026-11-15
    amqpgate audit denials audit --shadow --format json
    amqpgate audit denials audit --follow --state /var/lib/alerts --webhook https://example.com/hook
    """
    kind: Literal["denied", "shadow"] = "shadow" if shadow else "denied"
    if follow:
        watching(partial(_watch, kind))
        return
    with running() as run:
        from amqpgate.pipeline.jobs import denials

        frame = denials.denials(run.read("events").frame, kind)
        run.write(frame.limit(top))


def _watch(kind: Literal["denied", "shadow"], late: timedelta) -> Watch:
    from amqpgate.pipeline.watch.denied import Denied

    return Denied(late, kind)
