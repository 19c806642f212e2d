"""``amqpgate audit``: what the audit records tell. One module per verb."""

from __future__ import annotations

import click


@click.group(
    short_help="What the audit records tell: usage, denials and more.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong command line.",
)
def audit() -> None:
    """Jobs over the records that gateways wrote, on Spark. No gateway is needed.

    FOLDER is what `audit.folder` of a gateway names, or has files of JSON lines (*.json, *.jsonl). It may be
    anywhere that Spark reads. Spark is started in this process, or used where --master says.

    \b
    amqpgate audit usage /var/lib/amqpgate/audit --per day --format csv
    amqpgate audit denials s3a://bucket/audit --since 2026-11-01 --master spark://host:7077
    """
