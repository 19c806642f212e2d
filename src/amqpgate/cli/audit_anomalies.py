"""``amqpgate audit anomalies``: who left their own history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from amqpgate.cli.audit_job import running
from amqpgate.cli.audit_options import job, last_option
from amqpgate.cli.audit_watch import local_usage, watch_options, watching
from amqpgate.cli.failures import WRONG, Failure

if TYPE_CHECKING:
    from amqpgate.pipeline.watch.course import Watch


@click.command(short_help="Who left their own history, and who or what is new.")
@job
@last_option(help="Judge so many hours before --until, by all that was before them.")
@watch_options
def anomalies(last: int, follow: bool) -> None:
    """Show principals whose rate or reach left their own history, and new principals and routes.

    Each hour is compared with the same hour of the weeks before, three at least. Scores beyond 4 are far out;
    a negative one says that there was less than usual. What is new has no score, and the hour it began.

    With --follow each hour is judged once, --late after it, and what is unusual is told as an alert, as with
    denials --follow.

    \b
    amqpgate audit anomalies audit --until 2026-11-22
    amqpgate audit anomalies audit --since 2026-09-01 --last 168 --format json
    """
    if follow:
        watching(_watch)
        return
    with running() as run:
        from amqpgate.pipeline.frames import F
        from amqpgate.pipeline.jobs.anomalies import anomalies as found

        end = (run.options.until or datetime.now(UTC)).astimezone(UTC)
        end = end.replace(minute=0, second=0, microsecond=0)
        begin = end - timedelta(hours=last)
        usage = run.read("usage").frame
        if usage.where(F.col("window_start") < F.lit(begin)).isEmpty():
            raise Failure(
                f"amqpgate: there are no records before {begin:%Y-%m-%dT%H:%MZ} to compare with: "
                "choose an earlier --since, or a smaller --last",
                WRONG,
            )
        run.write(found(usage, begin, end))


def _watch(late: timedelta) -> Watch:
    from amqpgate.pipeline.watch.unusual import Unusual

    return Unusual(late, local_usage)
