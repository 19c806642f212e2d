"""``amqpgate audit preflight``: who would fail on a newer RabbitMQ."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import click

from amqpgate.cli.audit_answers import check_answer, put_rows
from amqpgate.cli.audit_job import running
from amqpgate.cli.audit_options import chosen_options, job
from amqpgate.cli.audit_watch import local_frames, watch_options, watching
from amqpgate.cli.failures import Failure, reported
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    from amqpgate.pipeline.jobs.preflight import Seen
    from amqpgate.pipeline.watch.course import Watch
    from amqpgate.policy.tools.preflight import BrokerRequest, Target, Trouble

_COLUMNS: Final = (
    "outcome",
    "item",
    "vhost",
    "user",
    "request",
    "name",
    "times",
    "first",
    "last",
    "what",
    "mended_by",
)


@click.command(short_help="Who would fail on RabbitMQ 4, since when, and what mends it.")
@job
@click.option(
    "--target",
    type=click.Choice(["4.0", "4.1", "4.2", "4.3"]),
    default="4.3",
    show_default=True,
    help="The version of RabbitMQ that clients are to go to.",
)
@click.option(
    "--quorum",
    metavar="PATTERN",
    multiple=True,
    help="Queues that are to be quorum queues, such as 'orders.*'; several times for several.",
)
@watch_options
def preflight(target: Target, quorum: tuple[str, ...], follow: bool) -> None:
    """Show which requests of clients fail on RabbitMQ 4, or mean something else there.

    FOLDER has the records of gateways in front of the old broker. Where no gateway has run yet it may be a
    file that `rabbitmqctl export_definitions FILE` wrote; then nobody is named, and transient queues are not
    there, for RabbitMQ exports durable ones alone.

    With --follow each user and request that fails is told once, when it is first seen, as an alert, as with
    denials --follow.

    \b
    lost         the connection ends
    closed       the channel ends
    refused      definitions with it cannot be imported
    may-be-lost  the connection ends where the broker denies the feature
    may-differ   it means something else where the broker denies the feature, or in some cases
    differs      it means something else

    \b
    amqpgate audit preflight audit --target 4.3
    amqpgate audit preflight definitions.json --format json
    amqpgate audit preflight audit --quorum 'orders.*' --quorum invoices

    \b
    Exit codes:
      0  nothing fails
      1  something fails, or may
      2  wrong input
    """
    from amqpgate.policy.tools.preflight import FAILS

    def is_quorum(queue: str) -> bool:
        return any(fnmatchcase(queue, pattern) for pattern in quorum)

    if follow:
        watching(partial(_watch, target))
        return
    is_file = Path(chosen_options().folder).is_file()
    found = _of_definitions(target, is_quorum) if is_file else _of_records(target, is_quorum)
    if any(row[0] in FAILS for row in found):
        sys.exit(1)


def _watch(target: Target, _late: timedelta) -> Watch:
    from amqpgate.pipeline.watch.upgrade import Upgrade

    return Upgrade(target, local_frames)


def _of_definitions(target: Target, is_quorum: Callable[[str], bool]) -> list[tuple[object, ...]]:
    from amqpgate.policy.tools.definition_requests import requests_in
    from amqpgate.policy.tools.preflight import troubles

    options = chosen_options()
    check_answer(options)
    with reported():
        try:
            data = Path(options.folder).read_bytes()
        except OSError as error:
            raise Failure(f"amqpgate: {options.folder}: {error.strerror}") from None
        asked = (_marked(one, is_quorum) for one in requests_in(data, options.folder))
        wanted = (one for one in asked if options.vhost in (None, one.vhost))
        rows = sorted(_row(trouble) for request in wanted for trouble in troubles(request, target))
    put_rows(options, rows, _COLUMNS)
    return rows


def _of_records(target: Target, is_quorum: Callable[[str], bool]) -> list[tuple[object, ...]]:
    with running() as run:
        from amqpgate.pipeline.jobs.preflight import seen
        from amqpgate.policy.tools.preflight import troubles

        found = seen(run.read("usage").frame, run.read("events").frame, is_quorum)
        if found.left_out:
            echo(f"{found.left_out:,} rows with the fewest requests are left out", err=True)
        rows = [_row(trouble, one) for one in found.requests for trouble in troubles(one.request, target)]
        run.write_rows(rows, _COLUMNS)
        return rows


def _marked(request: BrokerRequest, is_quorum: Callable[[str], bool]) -> BrokerRequest:
    becomes = request.kind.startswith("queue.") and is_quorum(request.name)
    return attrs.evolve(request, becomes_quorum=becomes)


def _row(trouble: Trouble, seen: Seen | None = None) -> tuple[object, ...]:
    request = trouble.request
    when = (None, None, None) if seen is None else (seen.times, seen.first, seen.last)
    user = None if seen is None else seen.user
    return (
        trouble.outcome,
        trouble.item,
        request.vhost,
        user,
        request.kind,
        request.name,
        *when,
        trouble.says,
        trouble.mended_by,
    )
