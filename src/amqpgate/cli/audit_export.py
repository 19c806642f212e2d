"""``amqpgate audit export``: records in a form that other programs read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import click

from amqpgate.cli.audit_job import Running, running
from amqpgate.cli.audit_options import records_options
from amqpgate.cli.audit_output import replaced
from amqpgate.cli.audit_topology import topology_of
from amqpgate.cli.failures import WRONG, Failure

if TYPE_CHECKING:
    from amqpgate.records import Sort


@click.command(short_help="Records for other programs: events of OCSF, a document of AsyncAPI.")
@records_options
@click.option(
    "--as",
    "form",
    type=click.Choice(["ocsf", "asyncapi"]),
    default="ocsf",
    show_default=True,
    help="OCSF 1.6.0, one JSON object per line; AsyncAPI 3.0.0, a document of JSON.",
)
@click.option(
    "--only",
    type=click.Choice(["events", "usage"]),
    help="Of OCSF: one of the two tables.  [default: both]",
)
@click.option("--user", metavar="NAME", help="Of AsyncAPI: the document of one user.  [default: of all]")
def export(form: Literal["ocsf", "asyncapi"], only: Sort | None, user: str | None) -> None:
    """Write audit records as others read them.

    --as ocsf has events of the Open Cybersecurity Schema Framework: sessions are Authentication (3002),
    messages are Datastore Activity (6005) with their count, and all else is API Activity (6003); what was
    denied has the status Failure. Bodies of messages are left out.

    --as asyncapi has a document of who sends to which exchange and reads which queue, with how many messages
    of what size.

    \b
    amqpgate audit export /var/lib/amqpgate/audit --since 2026-11-28 --output events.jsonl
    amqpgate audit export s3://bucket/audit --only events | vector
    amqpgate audit export audit --as asyncapi --vhost shop --user billing -o billing.json
    """
    if form == "asyncapi" and only is not None:
        raise click.UsageError("--only is for --as ocsf")
    if form == "ocsf" and user is not None:
        raise click.UsageError("--user is for --as asyncapi")
    with running() as run:
        if form == "asyncapi":
            _write_asyncapi(run, user)
            return
        from amqpgate.ocsf import BODY, ocsf_of
        from amqpgate.pipeline.frames import rows_of

        with replaced(run.options.output) as out:
            sorts: tuple[Sort, ...] = ("events", "usage") if only is None else (only,)
            for sort in sorts:
                for row in rows_of(run.read(sort).frame.drop(BODY)):
                    out.write(json.dumps(ocsf_of(sort, row), ensure_ascii=False) + "\n")


def _write_asyncapi(run: Running, user: str | None) -> None:
    from amqpgate.pipeline.jobs.asyncapi import asyncapi_of

    found = asyncapi_of(topology_of(run), user)
    if user is not None and not found["operations"]:
        raise Failure(f"amqpgate: user {user} sent and read nothing in these records", WRONG)
    with replaced(run.options.output) as out:
        out.write(json.dumps(found, ensure_ascii=False, indent=2) + "\n")
