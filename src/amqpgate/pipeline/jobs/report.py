"""The report: all that a person wants to see of a time, as tables and plots of bounded size.

Raw records are read once or a few times per section, and only what a job makes of them is kept, by Spark, for
the tables and plots. Tables have the most frequent rows and say how many more there are; plots tell the
largest series apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import attrs

from amqpgate.pipeline.contract import Skipped
from amqpgate.pipeline.frames import F, kept
from amqpgate.pipeline.jobs.anomalies import anomalies
from amqpgate.pipeline.jobs.denials import denials
from amqpgate.pipeline.jobs.graph import unused
from amqpgate.pipeline.jobs.replay import changes, replay, summary
from amqpgate.pipeline.jobs.report_costs import Charge, charged
from amqpgate.pipeline.jobs.report_parts import (
    MOST_SERIES,
    ByteCount,
    Cell,
    Picture,
    Report,
    ReportTable,
    Section,
    Word,
)
from amqpgate.pipeline.jobs.report_rows import Axis, plot, table, time_of
from amqpgate.pipeline.jobs.report_upgrade import upgrade
from amqpgate.pipeline.jobs.topology import refused, topology
from amqpgate.pipeline.jobs.usage import usage_by
from amqpgate.policy import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_HOUR: Final = timedelta(hours=1)

#: What stands for null, and for the exchange without a name.
_NO_USER: Final = Word("(unknown)")
_NO_VHOST: Final = Word("(none)")
_DEFAULT: Final = Word("(default)")
_BROKER: Final = Word("the broker")
#: Rules of verdicts that no policy gave.
_GATEWAY: Final = {
    "default": "the gateway: no rule allows it",
    "defaultAccess": "the gateway: no access policy selects",
    "transform": "the gateway: a transform policy",
    "maxMessageBytes": "the gateway: the largest message (limits.maxMessageBytes)",
}


@attrs.frozen(kw_only=True)
class Wanted:
    """What the report is to say."""

    #: Rows of a table.
    top: int = 20
    #: Hours that are judged for anomalies, by all that was before them.
    last: int = 24
    #: Where these hours end; None: with the last record.
    until: datetime | None = None
    #: Policies to try on what was done.
    candidate: Sequence[Source] | None = None
    #: What is charged.
    charge: Charge | None = None
    #: What could not be read.
    skipped: Sequence[Skipped] = ()


def report(usage: DataFrame, events: DataFrame, wanted: Wanted | None = None) -> Report:
    """The report on these records."""
    wanted = wanted or Wanted()
    seen = _seen(usage, events)
    unread = _unread(wanted)
    if seen.first is None or seen.last is None:
        return Report(first=None, last=None, facts=(), sections=unread)
    axis = Axis.of(seen.first, seen.last)
    with kept(usage_by(usage, axis.per)) as used:
        facts, traffic = _facts(used, seen), _traffic(used, axis, wanted)
    sections = [
        traffic,
        _denials(events, axis, wanted),
        _anomalies(usage, seen.last, wanted),
        _topology(usage, events, wanted),
        upgrade(usage, events, wanted.top),
    ]
    if wanted.charge is not None:
        sections.insert(1, charged(usage, wanted.charge, wanted.top))
    if wanted.candidate is not None:
        sections.append(_candidate(usage, wanted.candidate, wanted))
    return Report(first=seen.first, last=seen.last, facts=facts, sections=(*sections, *unread))


@attrs.frozen
class _ReportSeen:
    """What one look at all records tells."""

    first: datetime | None
    last: datetime | None
    gateways: int
    #: How many events of each kind.
    kinds: Mapping[str, int]


def _seen(usage: DataFrame, events: DataFrame) -> _ReportSeen:
    sums = (F.count("*").alias("count"), F.min("time").alias("first"), F.max("time").alias("last"))
    both = usage.select("gateway", F.lit("usage").alias("kind"), F.col("window_start").alias("time")).union(
        events.select("gateway", "kind", "time")
    )
    rows = (
        both.groupBy("gateway", "kind")
        .agg(*sums)
        .withColumns({name: F.unix_seconds(name) for name in ("first", "last")})
        .collect()
    )
    kinds: dict[str, int] = {}
    for row in rows:
        kinds[row.kind] = kinds.get(row.kind, 0) + row[2]
    return _ReportSeen(
        min((time_of(row.first) for row in rows), default=None),
        max((time_of(row.last) for row in rows), default=None),
        len({row.gateway for row in rows}),
        kinds,
    )


def _facts(used: DataFrame, seen: _ReportSeen) -> tuple[tuple[str, Cell], ...]:
    names = ("published", "published_bytes", "delivered", "delivered_bytes", "refused")
    sums = used.agg(*(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in names)).collect()[0]
    users = used.select("user").distinct().count()
    return (
        ("Messages published", sums.published),
        ("Bytes published", ByteCount(sums.published_bytes)),
        ("Messages delivered", sums.delivered),
        ("Bytes delivered", ByteCount(sums.delivered_bytes)),
        ("Messages refused", sums.refused),
        ("Operations denied", seen.kinds.get("denied", 0)),
        ("Shadow differences", seen.kinds.get("shadow", 0)),
        ("Times throttled", seen.kinds.get("throttled", 0)),
        ("Sessions opened", seen.kinds.get("session.open", 0)),
        ("Users with messages", users),
        ("Gateways", seen.gateways),
    )


# -- sections --------------------------------------------------------------------------------


def _traffic(used: DataFrame, axis: Axis, wanted: Wanted) -> Section:
    names = ("published", "published_bytes", "delivered", "delivered_bytes", "refused")
    sums = [
        *(F.sum(name).alias(name) for name in names),
        F.sum(F.col("published") + F.col("delivered") + F.col("refused")).alias("all"),
    ]
    busiest = F.desc("all")
    vhosts = used.groupBy("vhost").agg(*sums).orderBy(busiest, "vhost")
    users = (
        used.groupBy("user").agg(F.count_distinct("vhost").alias("vhosts"), *sums).orderBy(busiest, "user")
    )
    exchanges = (
        used.groupBy("vhost", "exchange")
        .agg(F.count_distinct("user").alias("users"), *sums)
        .orderBy(busiest, "vhost", "exchange")
    )
    plots = [
        plot(
            used,
            axis,
            title=f"Messages per second, by {what}",
            unit="messages/s",
            time="start",
            value=F.sum(F.col("published") + F.col("delivered")),
            by=(column,),
            series=[
                ((row[column],), missing if row[column] is None else row[column])
                for row in ranked.limit(MOST_SERIES).collect()
            ],
            scale=axis.step,
        )
        for what, column, ranked, missing in (
            ("virtual host", "vhost", vhosts, _NO_VHOST),
            ("user", "user", users, _NO_USER),
        )
    ]
    counted = ("published", "bytes", "delivered", "bytes", "refused")
    return Section(
        "Traffic",
        f"Messages published and delivered. A step of the plots is the mean of {axis.said}.",
        (
            *plots,
            table(
                users,
                wanted.top,
                title="Users with the most messages",
                heads=("user", "virtual hosts", *counted),
                row=lambda row: (_user(row), row.vhosts, *_sums(row)),
            ),
            table(
                exchanges,
                wanted.top,
                title="Exchanges with the most messages",
                heads=("virtual host", "exchange", "users", *counted),
                row=lambda row: (row.vhost, row.exchange or _DEFAULT, row.users, *_sums(row)),
            ),
        ),
    )


def _denials(events: DataFrame, axis: Axis, wanted: Wanted) -> Section:
    with kept(denials(events)) as found:
        rules = (
            found.groupBy("policy", "rule")
            .agg(F.sum("times").alias("times"))
            .orderBy(F.desc("times"), "policy", "rule")
            .limit(MOST_SERIES)
            .collect()
        )
        denied = _refusals(found, wanted, "Denied", "Nothing was denied.")
    over_time = plot(
        events.where(F.col("kind") == "denied"),
        axis,
        title="Operations denied, by rule",
        unit="denials",
        time="time",
        value=F.count("*"),
        by=("policy", "rule"),
        series=[((row.policy, row.rule), _refuser(row.policy, row.rule)) for row in rules],
    )
    with kept(denials(events, "shadow")) as found:
        shadow = _refusals(
            found, wanted, "Decided otherwise by policies in mode shadow", "There was no difference."
        )
    return Section("Denials", f"A step of the plot is {axis.said}.", (over_time, denied, shadow))


def _refusals(found: DataFrame, wanted: Wanted, title: str, nothing: str) -> ReportTable:
    return table(
        found,
        wanted.top,
        title=title,
        heads=("by", "operation", "virtual host", "on", "times", "users", "most of all", "last"),
        row=lambda row: (
            *(_refuser(row.policy, row.rule), row.operation, row.vhost, _touched(row)),
            *(row.times, row.principals),
            tuple(_NO_USER if user is None else user for user in row.users),
            time_of(row["last"]),
        ),
        nothing=nothing,
    )


def _anomalies(usage: DataFrame, last: datetime, wanted: Wanted) -> Section:
    end = time_of(-(-int((wanted.until or last + _HOUR).timestamp()) // 3600) * 3600)
    begin = end - wanted.last * _HOUR
    if usage.where(F.col("window_start") < F.lit(begin)).isEmpty():
        return Section(
            "Anomalies", f"There are no records before {begin:%Y-%m-%d %H:%M} to compare with.", ()
        )
    with kept(anomalies(usage, begin, end)) as found:
        kinds = {"rate": "rate", "reach": "reach", "principal": "new user", "route": "new route"}
        parts = (
            plot(
                found,
                Axis.of(begin, end - _HOUR, 3600),
                title="Anomalies, by kind",
                unit="anomalies",
                time="hour",
                value=F.count("*"),
                by=("kind",),
                series=[((kind,), Word(name)) for kind, name in kinds.items()],
            ),
            table(
                found.where(F.col("kind").isin("rate", "reach")),
                wanted.top,
                title="Hours that left the history of their user",
                heads=("user", "virtual host", "hour", "of", "value", "usual", "score", "weeks"),
                row=lambda row: (
                    *(_user(row), row.vhost, time_of(row.hour), Word(row.what)),
                    *(row.value, row.usual, row.score, row.weeks),
                ),
                nothing="There are none, by the same hour of three weeks or more.",
            ),
            table(
                found.where(F.col("kind") == "principal"),
                wanted.top,
                title="New users",
                heads=("user", "virtual host", "hour", "messages"),
                row=lambda row: (_user(row), row.vhost, time_of(row.hour), row.value),
                nothing="There are none.",
            ),
            table(
                found.where(F.col("kind") == "route"),
                wanted.top,
                title="New routes of users known before",
                heads=("user", "virtual host", "hour", "route", "messages"),
                row=lambda row: (_user(row), row.vhost, time_of(row.hour), row.what, row.value),
                nothing="There are none.",
            ),
        )
    about = f"From {begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M}, by what was before."
    return Section("Anomalies", about, parts)


def _topology(usage: DataFrame, events: DataFrame, wanted: Wanted) -> Section:
    found = topology(usage, events)
    denied, _ = refused(events)
    idle = unused(found)
    rows = tuple(
        (
            *(Word(one.kind), one.vhost, one.name or _DEFAULT),
            *(one.target, one.key, one.declared, Word(one.why)),
        )
        for one in idle[: wanted.top]
    )
    return Section(
        "Topology",
        "Who sends what to whom.",
        (
            Picture(found, denied),
            ReportTable(
                title="Declared, and not used",
                heads=("", "virtual host", "name", "leads to", "key", "declared", "why"),
                rows=rows,
                more=len(idle) - len(rows),
                nothing="Everything that was declared was used.",
            ),
        ),
    )


def _candidate(usage: DataFrame, candidate: Sequence[Source], wanted: Wanted) -> Section:
    with kept(replay(usage, candidate)) as replayed:
        parts = (
            table(
                summary(replayed),
                wanted.top,
                title="All answers",
                heads=("then", "now", "requests", "messages"),
                row=lambda row: (Word(row.before), Word(row.after), row.requests, row.messages),
            ),
            table(
                changes(replayed),
                wanted.top,
                title="Answers that change",
                heads=(
                    *("user", "virtual host", "operation", "on", "routing key"),
                    *("then", "now", "by", "requests", "messages"),
                ),
                row=lambda row: (
                    *(_user(row), row.vhost, row.operation, _touched(row), row.routing_key),
                    *(Word(row.before), Word(row.after)),
                    _rule(row.after_policy, row.after_rule, Word("no policy")),
                    *(row.requests, row.messages),
                ),
                nothing="None does.",
            ),
        )
    about = "All that was asked, judged again. What the records do not tell enough of is called depends."
    return Section("What other policies would change", about, parts)


def _unread(wanted: Wanted) -> tuple[Section, ...]:
    # What differs is how paths end.
    rows = tuple(("/".join(each.path.split("/")[-3:]), each.why) for each in wanted.skipped[: wanted.top])
    left_out = ReportTable(
        title="Left out", heads=("file", "why"), rows=rows, more=len(wanted.skipped) - len(rows)
    )
    about = "What these tell is missing above."
    return (Section("Records that could not be read", about, (left_out,)),) if rows else ()


# -- cells -----------------------------------------------------------------------------------


def _sums(row: Row) -> tuple[Cell, ...]:
    sent, got = ByteCount(row.published_bytes), ByteCount(row.delivered_bytes)
    return row.published, sent, row.delivered, got, row.refused


def _user(row: Row) -> str | Word:
    return _NO_USER if row.user is None else row.user


def _touched(row: Row) -> tuple[str, ...]:
    return tuple(f"{what} {name}" for what in ("exchange", "queue") if (name := row[what]))


def _rule(policy: str | None, rule: str | None, nobody: Word) -> str | Word:
    return nobody if policy is None else f"{policy}/{rule}"


def _refuser(policy: str | None, rule: str | None) -> str | Word:
    """Where no policy is named, but a rule, it was the gateway all the same (`amqpgate.policy.Verdict`)."""
    gateway = _BROKER if rule is None else Word(_GATEWAY.get(rule, f"the gateway, by {rule}"))
    return _rule(policy, rule, gateway)
