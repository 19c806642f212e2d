"""``amqpgate audit export``: records in a form that other programs read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import click

from amqpgate.cli.audit_job import records_options, running

if TYPE_CHECKING:
    from amqpgate.records import Sort


@click.command(short_help="Records as events of OCSF, for a SIEM.")
@records_options
@click.option(
    "--as",
    "form",
    type=click.Choice(["ocsf"]),
    default="ocsf",
    show_default=True,
    help="OCSF 1.6.0, one JSON object per line.",
)
@click.option(
    "--only", type=click.Choice(["events", "usage"]), help="One of the two tables.  [default: both]"
)
def export(form: Literal["ocsf"], only: Sort | None) -> None:
    """Write audit records as events of the Open Cybersecurity Schema Framework.

    Sessions are Authentication (3002), messages are Datastore Activity (6005) with their count, and all else
    is API Activity (6003); what was denied has the status Failure. Bodies of messages are left out.

    \b
    amqpgate audit export /var/lib/amqpgate/audit --since 2026-11-28 --output events.jsonl
    amqpgate audit export s3://bucket/audit --only events | vector
    """
    with running() as run:
        from amqpgate.cli.audit_output import replaced
        from amqpgate.pipeline.frames import rows_of
        from amqpgate.pipeline.jobs.ocsf import BODY, ocsf_of

        with replaced(run.options.output) as out:
            sorts: tuple[Sort, ...] = ("events", "usage") if only is None else (only,)
            for sort in sorts:
                for row in rows_of(run.read(sort).frame.drop(BODY)):
                    out.write(json.dumps(ocsf_of(sort, row), ensure_ascii=False) + "\n")
