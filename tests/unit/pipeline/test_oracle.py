"""The verbs against SQL that was written apart from them: no row differs, on either engine, in any form."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal, localcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from amqpgate.pipeline import local_compact
from amqpgate.pipeline.compact import compact
from amqpgate.pipeline.folders import Span
from amqpgate.pipeline.frames import Engine, engine, rows_of
from amqpgate.pipeline.jobs.anomalies import anomalies
from amqpgate.pipeline.jobs.costs import costs
from amqpgate.pipeline.jobs.denials import denials
from amqpgate.pipeline.jobs.preflight import seen
from amqpgate.pipeline.jobs.prices import parse
from amqpgate.pipeline.jobs.recommend import granted
from amqpgate.pipeline.jobs.replay import changes, replay
from amqpgate.pipeline.jobs.topology import topology, traffic
from amqpgate.pipeline.jobs.usage import usage_by
from amqpgate.pipeline.lake.address import address_of
from amqpgate.pipeline.lake.compacting import compact_into
from amqpgate.pipeline.lake.opening import open_lake
from amqpgate.pipeline.lake.source import LakeSource
from amqpgate.policy import Source
from amqpgate.records import TABLES
from tests.support.audit_oracle import POLICY, Month, Oracle, differences
from tests.support.audit_plans import Plans
from tests.support.audit_records import lines, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Frames = tuple[DataFrame, DataFrame]

SOURCES = [Source("orders.yaml", POLICY)]
LAST = timedelta(hours=24)


PRICES = parse(
    "currency: EUR\nperMillionMessages: 3.3\nperGigabyte: 0.07\nperConnectionHour: 0.013\n"
    "groups: {first: [service-0], others: ['service-*']}"
)


def _amounts(row: dict[str, Any]) -> dict[str, Any]:
    """By the decimals of Python, with more digits than any of these has."""
    with localcontext() as context:
        context.prec = 60
        parts = [
            (price * row[name] / unit).quantize(Decimal("1e-9"))
            for name, price, unit in (
                ("messages", Decimal("3.3"), 10**6),
                ("bytes", Decimal("0.07"), 10**9),
                ("connection_seconds", Decimal("0.013"), 3600),
            )
        ]
    names = ("messages_cost", "bytes_cost", "connections_cost", "cost")
    return dict(zip(names, [*parts, sum(parts)], strict=True)) | {"currency": "EUR"}


def written(folder: Path, month: Month, per_file: int) -> None:
    """Files of two gateways, and lines of JSON."""
    half = len(month.usage) // 2
    write(folder, "usage", month.usage.slice(0, half), per_file=per_file)
    rest = month.usage.slice(half)
    write(folder, "usage", rest.slice(50), per_file=per_file, gateway="gate-1")
    write(folder, "events", month.events, per_file=per_file)
    odd = [TABLES["usage"](**row) for row in rest.slice(0, 50).to_pylist()]
    (folder / "pod.jsonl").write_text("\n".join(lines("usage", odd)))


def checks(month: Month, oracle: Oracle) -> dict[str, Callable[[DataFrame, DataFrame], list[str]]]:
    """By verb: what differs."""
    begin = month.end - LAST

    def rows(frame: DataFrame) -> list[dict[str, Any]]:
        return list(rows_of(frame))

    def usage(per: Any, zone: str = "UTC") -> Callable[[DataFrame, DataFrame], list[str]]:
        return lambda used, _: differences(oracle.usage(per, zone), rows(usage_by(used, per, zone)))

    def charged(zone: str) -> Callable[[DataFrame, DataFrame], list[str]]:
        def check(used: DataFrame, events: DataFrame) -> list[str]:
            expected = [row | _amounts(row) for row in oracle.costs(zone)]
            return differences(expected, rows(costs(used, events, PRICES, zone=zone)))

        return check

    def refused(kind: Any) -> Callable[[DataFrame, DataFrame], list[str]]:
        return lambda _, events: differences(oracle.denials(kind), rows(denials(events, kind)))

    def changed(used: DataFrame, _: DataFrame) -> list[str]:
        expected = oracle.changes()
        return differences(expected, rows(changes(replay(used, SOURCES))), list(expected[0]))

    def newcomers(used: DataFrame, _: DataFrame) -> list[str]:
        found = rows(anomalies(used, begin, month.end))
        new = [row for row in found if row["kind"] == "principal"]
        rates = {(row["user"], row["hour"]) for row in found if row["kind"] == "rate"}
        planted = {("steady", month.end - timedelta(hours=hours)) for hours in (2, 3)}
        missing = [f"not told: {one}" for one in planted - rates if month.days >= 28]
        names = ["user", "vhost", "hour", "value"]
        return differences(oracle.newcomers(begin, month.end), new, names) + missing

    def declared(used: DataFrame, events: DataFrame) -> list[str]:
        found = [
            {"vhost": one.node.vhost, "thing": one.node.kind, "name": one.node.name, "last": one.last}
            for one in topology(used, events).declared
        ]
        return differences(oracle.declared(), found)

    def asked(used: DataFrame, events: DataFrame) -> list[str]:
        found = [
            {
                "user": one.user,
                "vhost": one.request.vhost,
                "kind": one.request.kind,
                "name": one.request.name,
                "times": one.times,
                "first": one.first,
                "last": one.last,
            }
            for one in seen(used, events).requests
        ]
        expected = [row | {"name": row["name"] or ""} for row in oracle.asked_of_brokers()]
        return differences(expected, found)

    return {
        "usage by minute": usage("minute"),
        "usage by hour": usage("hour"),
        "usage by day": usage("day"),
        "usage by month": usage("month"),
        "usage by local day": usage("day", "Europe/Berlin"),
        "usage by local month": usage("month", "America/New_York"),
        "costs by month": charged("UTC"),
        "costs by local month": charged("America/New_York"),
        "denials": refused("denied"),
        "shadow": refused("shadow"),
        "replay": changed,
        "granted": lambda used, _: differences(oracle.granted(), rows(granted(used, SOURCES))),
        "traffic": lambda used, _: differences(oracle.traffic(), rows(traffic(used))),
        "anomalies": newcomers,
        "topology": declared,
        "preflight": asked,
    }


def read(plans: Plans, source: str | LakeSource) -> Frames:
    from amqpgate.pipeline import local_reading, reading

    reader = local_reading.read if plans.name == "local" else reading.read
    used, events = (reader(plans.session, source, sort, Span()) for sort in ("usage", "events"))  # type: ignore[arg-type]
    assert (used.skipped, events.skipped) == ((), ())
    return used.frame, events.frame


def differ(month: Month, oracle: Oracle, plans: Plans, source: str | LakeSource) -> dict[str, list[str]]:
    with engine(plans.name):
        frames = read(plans, source)
        found = {name: check(*frames) for name, check in checks(month, oracle).items()}
    return {name: some[:5] for name, some in found.items() if some}


def lake_of(folder: Path, form: str) -> LakeSource:
    address = address_of(f"{form}:{folder}")
    assert address is not None
    return LakeSource(open_lake(address))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Month, Oracle, Path]:
    month = Month(2_000, days=29)
    folder = tmp_path_factory.mktemp("oracle")
    written(folder / "raw", month, per_file=900)
    for form in ("delta", "iceberg"):
        compact_into(lake_of(folder / form, form).lake, str(folder / "raw"))
    return month, Oracle(month), folder


@pytest.mark.parametrize("form", ["raw", "delta", "iceberg"])
def test_a_small_month_locally(small: tuple[Month, Oracle, Path], duck: Any, form: str) -> None:
    month, oracle, folder = small
    source = str(folder / "raw") if form == "raw" else lake_of(folder / form, form)
    assert differ(month, oracle, Plans("local", duck), source) == {}


def test_a_small_month_on_spark(small: tuple[Month, Oracle, Path], spark: SparkSession) -> None:
    month, oracle, folder = small
    assert differ(month, oracle, Plans("spark", spark), lake_of(folder / "iceberg", "iceberg")) == {}


def test_the_oracle_sees_what_is_wrong(small: tuple[Month, Oracle, Path], duck: Any) -> None:
    """One record less, and each verb that has it differs."""
    month, oracle, _ = small
    plans = Plans("local", duck)
    wrong = pa.concat_tables([month.usage.slice(0, 100), month.usage.slice(101)])
    with engine("local"):
        frames = plans.frame("usage", wrong), plans.frame("events", month.events.slice(1))
        found = {name for name, check in checks(month, oracle).items() if check(*frames)}
    assert {"usage by minute", "usage by month", "traffic"} <= found


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", ["local", "spark"])
@pytest.mark.parametrize("form", ["raw", "parquet", "delta", "iceberg"])
def test_months(
    tmp_path: Path, request: pytest.FixtureRequest, spark: SparkSession, name: Engine, form: str
) -> None:
    """With records that were copied twice, where a table has them once."""
    month = Month(60_000, days=36, seed=7)
    oracle, raw = Oracle(month), tmp_path / "raw"
    written(raw, month, per_file=5_000)
    source: str | LakeSource = str(raw)
    if form != "raw":
        write(raw, "usage", month.usage.slice(1_000, 3_000), gateway="copied")
    if form == "parquet":
        if name == "spark":
            compact(spark, str(raw), tmp_path / "table")
        else:
            local_compact.compact(str(raw), tmp_path / "table")
        source = str(tmp_path / "table")
    elif form != "raw":
        source = lake_of(tmp_path / form, form)
        compact_into(source.lake, str(raw))
    plans = Plans(name, request.getfixturevalue("duck" if name == "local" else "spark"))
    assert differ(month, oracle, plans, source) == {}
