"""``amqpgate audit``: what the audit records tell. One module per verb."""

from __future__ import annotations

import click

from amqpgate.cli.audit_anomalies import anomalies
from amqpgate.cli.audit_compact import compact
from amqpgate.cli.audit_denials import denials
from amqpgate.cli.audit_export import export
from amqpgate.cli.audit_policies import granted, recommend, replay
from amqpgate.cli.audit_preflight import preflight
from amqpgate.cli.audit_report import report
from amqpgate.cli.audit_topology import blast_radius, drift, topology, unused
from amqpgate.cli.audit_usage import usage


@click.group(
    short_help="What the audit records tell: usage, denials and more.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong command line.",
)
def audit() -> None:
    """Jobs over the records that gateways wrote. No gateway is needed.

    FOLDER is where they wrote them, or has files of JSON lines (*.json, *.jsonl). It may be in an object
    store (s3://bucket/prefix), or anywhere that Spark reads. What is small is looked at by DuckDB in this
    process; what is large by Spark, in this process or where --master says.

    \b
    amqpgate audit usage /var/lib/amqpgate/audit --per day --format csv
    amqpgate audit report s3://bucket/audit --since 2026-11-01 -o report.html
    amqpgate audit denials s3a://bucket/audit --since 2026-11-01 --master spark://host:7077
    """


for _command in (compact, usage, denials):
    audit.add_command(_command)
for _command in (recommend, replay, granted, topology, unused, blast_radius, drift, anomalies, preflight):
    audit.add_command(_command)
audit.add_command(report)
audit.add_command(export)
