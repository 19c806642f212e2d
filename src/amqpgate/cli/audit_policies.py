"""``amqpgate audit replay``, ``recommend`` and ``granted``: policies, by what was done."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from amqpgate.cli.audit_answers import check_file, check_text
from amqpgate.cli.audit_job import Running, running
from amqpgate.cli.audit_options import chosen_options, job
from amqpgate.cli.audit_output import replaced
from amqpgate.cli.failures import FAILED, WRONG, Failure, reported
from amqpgate.cli.policy_files import default_access_option
from amqpgate.cli.telling import echo
from amqpgate.logs import on_one_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from amqpgate.pipeline.jobs.kept_requests import KeptRequests
    from amqpgate.pipeline.jobs.recommendation import Recommendation
    from amqpgate.policy import Source
    from amqpgate.policy.kinds.common import DefaultAccess
    from amqpgate.policy.tools.smaller import Needed

_FOLDER = click.Path(path_type=Path)


def sources_of(folder: Path) -> list[Source]:
    """The files of a folder of policies that is right."""
    from amqpgate.policy.loader import build, read_folder

    with reported():
        if not folder.is_dir():
            raise Failure(f"amqpgate: no such folder: {folder}", WRONG)
        sources = read_folder(folder)
        build(sources)
    return sources


@click.command(short_help="What other policies would have answered to all that was asked.")
@job
@click.option("--policies", required=True, metavar="DIR", type=_FOLDER, help="The policies to try.")
@click.option(
    "--against",
    metavar="DIR",
    type=_FOLDER,
    help="Compare with what these policies answer.  [default: with what the gateway did]",
)
@click.option("--undecided", is_flag=True, help="Show what the records do not tell enough of, instead.")
@default_access_option
def replay(policies: Path, against: Path | None, undecided: bool, default_access: DefaultAccess) -> None:
    """Show whose requests the policies in DIR answer otherwise, how often, and by which rule.

    They are judged by the code that enforces. What depends on a message's properties, headers or size, or on
    which of many routing keys were folded into one record, is undecided, and counted apart. Rate limits and
    transforms are not replayed.

    \b
    amqpgate audit replay audit --policies my-policies --since 2026-11-01
    amqpgate audit replay audit --policies new --against old --format csv -o changes.csv

    \b
    Exit codes:
      0  no answer changes
      1  one does
      2  the command line or the policies are wrong
    """
    candidate = sources_of(policies)
    before = None if against is None else sources_of(against)
    with running() as run:
        from amqpgate.pipeline.jobs import replay as job_

        replayed = job_.replay(run.read("usage").frame, candidate, before, default_access)
        counts = job_.summary(replayed).collect()
        run.write(job_.undecided(replayed) if undecided else job_.changes(replayed))
    changed = 0
    for row in counts:
        echo(f"{row.before} -> {row.after}: {row.requests:,} requests, {row.messages:,} messages", err=True)
        changed += row.requests if {row.before, row.after} == {"allow", "deny"} else 0
    if changed:
        raise SystemExit(FAILED)


@click.command(short_help="The least policies that allow what was done.")
@job
@click.option(
    "--out", metavar="DIR", type=_FOLDER, help="Write the policies into this folder, and show their rules."
)
@click.option(
    "--values",
    default=10,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="More names or keys than that which differ in one place become a pattern.",
)
@click.option(
    "--templates",
    default=50,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="So many patterns of keys per user and exchange; then wider ones.",
)
@click.option(
    "--state",
    metavar="FILE",
    type=_FOLDER,
    help="Keep what was seen in this file, and read only records that are not in it yet.",
)
def recommend(out: Path | None, values: int, templates: int, state: Path | None) -> None:
    """Make access policies of what was allowed and done: one per user, with the evidence beside each rule.

    Ids in routing keys and names are folded: order.4711.created and order.4712.created are order.*.created.
    What no policy can say is noted on standard error. A recommendation in DIR is not overwritten.

    With --state a run every day reads that day, and recommends what all days together need.

    \b
    amqpgate audit recommend audit --since 2026-10-01 --out least
    amqpgate audit recommend audit --state seen.parquet -o least.yaml
    amqpgate policy check least
    amqpgate audit replay audit --policies least
    """
    if out is not None:
        _ensure_new(out)
    options = chosen_options()
    if state is not None and (options.since is not None or options.until is not None):
        raise click.UsageError("--state remembers all that it has read: leave out --since and --until")
    if state is not None:
        check_file("--state", state)
    if out is None:
        check_text(options, "what is recommended")
    with running() as run:
        from amqpgate.pipeline.jobs.recommend import recommend_of, requests_of
        from amqpgate.pipeline.jobs.templates import TemplateBounds

        if state is None:
            kept, requests = None, requests_of(run.read("usage").frame)
        else:
            kept = _kept_with_new(run, state)
            requests = run.frame_of(kept.requests)
        found = recommend_of(requests, TemplateBounds(values, templates))
        if out is None:
            with replaced(run.options.output) as file:
                file.write("---\n".join(source.data.decode() for source in found.files))
        else:
            _write_files(found, out)
            _show_rules(run, found)
        if kept is not None and state is not None:
            kept.write(state)
    for note in found.notes:
        # Clients choose names, and a terminal obeys control characters.
        echo(f"note: {on_one_line(note)}", err=True)


def _kept_with_new(run: Running, state: Path) -> KeptRequests:
    """What was kept, with what has come since."""
    from amqpgate.pipeline.frames import arrow_of
    from amqpgate.pipeline.jobs.kept_requests import SCHEMA, KeptRequests, names_of_new, read_kept
    from amqpgate.pipeline.jobs.recommend import requests_of, together

    kept = read_kept(state, run.options.vhost)
    new = run.read("usage", kept.files)
    files = kept.files.union(names_of_new(new, run.folder))
    requests = arrow_of(together(run.frame_of(kept.requests), requests_of(new.frame)))
    return KeptRequests(requests.cast(SCHEMA), files, kept.vhost)


def _ensure_new(out: Path) -> None:
    """Before hours of work."""
    for path in sorted(out.glob("recommended-*.yaml")):
        raise Failure(f"amqpgate: {path} exists already; remove it, or choose another --out", WRONG)


def _write_files(found: Recommendation, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for source in found.files:
        path = out / source.name
        path.write_bytes(source.data)
        echo(f"wrote {path}", err=True)


def _show_rules(run: Running, found: Recommendation) -> None:
    rows = [
        (
            policy,
            grant.id,
            " ".join(grant.operations),
            grant.evidence.requests,
            grant.evidence.messages,
            grant.evidence.first,
            grant.evidence.last,
            grant.evidence.confidence(grant.why),
        )
        for policy, grant in found.rules
    ]
    names = ("policy", "rule", "operations", "requests", "messages", "first", "last", "confidence")
    run.write_rows(rows, names)


@click.command(short_help="What policies allow, and when it was last needed.")
@job
@click.option("--policies", required=True, metavar="DIR", type=_FOLDER, help="The policies in force.")
@click.option(
    "--diff", is_flag=True, help="Write a diff of DIR instead, without what was not needed, to review."
)
@click.option(
    "--idle",
    metavar="DAYS",
    type=click.IntRange(1),
    help="With --diff: also without what was not needed in so many days before the last record.",
)
def granted(policies: Path, diff: bool, idle: int | None) -> None:
    """Show each allow rule in DIR, operation by operation, with when it last decided: never used ones first.

    Where several rules allow a request, the first decides; policies that are not enforced are left out.

    --diff shows the files in DIR as they could be: rules that nobody needed are gone, and others name what
    was needed of them. What is done once a year is not in the records of a month, so review it. What cannot
    be taken out is named on standard error.

    \b
    amqpgate audit granted audit --policies my-policies --since 2026-08-01
    amqpgate audit granted audit --policies my-policies --diff --idle 90 -o smaller.diff
    """
    if idle is not None and not diff:
        raise click.UsageError("--idle needs --diff")
    if diff:
        check_text(chosen_options(), "a diff")
    sources = sources_of(policies)
    with running() as run:
        from amqpgate.pipeline.jobs.recommend import granted as granted_

        usage = run.read("usage").frame
        rows = granted_(usage, sources)
        if diff:
            _write_smaller(run, sources, _needed(usage, rows, idle))
        else:
            run.write(rows)


def _needed(usage: DataFrame, granted: DataFrame, idle: int | None) -> Needed:
    from amqpgate.pipeline.frames import F, rows_of

    (bounds,) = rows_of(usage.agg(F.max("last").alias("last")))
    last = cast("datetime | None", bounds["last"])
    since = None if idle is None or last is None else last - timedelta(days=idle)
    found: dict[tuple[str, str], dict[str, bool]] = {}
    for row in rows_of(granted):
        used = cast("datetime | None", row["last"])
        rule = found.setdefault((cast("str", row["policy"]), cast("str", row["rule"])), {})
        rule[cast("str", row["operation"])] = used is not None and (since is None or used >= since)
    return found


def _write_smaller(run: Running, sources: Sequence[Source], needed: Needed) -> None:
    from amqpgate.policy.loader import build
    from amqpgate.policy.tools.smaller import diff_of, smaller

    found = [smaller(source, needed) for source in sources]
    # What is proposed can be loaded.
    build([one.source for one in found])
    with replaced(run.options.output) as out:
        for source, one in zip(sources, found, strict=True):
            out.write(diff_of(source, one.source))
    for note in (note for one in found for note in one.notes):
        echo(f"note: {on_one_line(note)}", err=True)
