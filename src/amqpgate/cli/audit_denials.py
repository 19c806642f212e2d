"""``amqpgate audit denials``: what is refused most."""

from __future__ import annotations

import click

from amqpgate.cli.audit_job import job, running


@click.command(short_help="What was refused most, by which rule, to whom, and whether it grows.")
@job
@click.option("--shadow", is_flag=True, help="What policies in mode shadow would have decided otherwise.")
@click.option(
    "--top", metavar="N", type=click.IntRange(1), default=50, show_default=True, help="So many at most."
)
def denials(shadow: bool, top: int) -> None:
    """Show what was refused most, by which policy and rule.

    Where neither policy nor rule is named, the broker refused it. A rule without a policy is the gateway's
    own: default (no rule allows it), defaultAccess (no access policy selects), transform. The trend has
    eight equal parts of the time from the first to the last of all.

    \b
    amqpgate audit denials audit --since 2026-11-15
    amqpgate audit denials audit --shadow --format json
    """
    with running() as run:
        from amqpgate.pipeline.jobs import denials

        frame = denials.denials(run.read("events").frame, "shadow" if shadow else "denied")
        run.write(frame.limit(top))
