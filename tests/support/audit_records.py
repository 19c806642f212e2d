"""Audit records that never happened, as a gateway would write them: for tests, and for measuring.

A few services publish to the exchanges of their virtual host and consume from queues of their own. Who they
are depends on the seed alone, so that `usage` and `events` of one `Traffic` belong together.
"""

from __future__ import annotations

import base64
import itertools
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from amqpgate.pipeline.reading import schema
from amqpgate.records import TABLES, Event, EventKind, Record, Sort, Usage, arrow_schema

START = datetime(2026, 11, 2, tzinfo=UTC)
WINDOW = timedelta(seconds=10)
DIGEST = "sha256:300e741f1300aca3"


@attrs.frozen
class Service:
    """A client program: it publishes to `exchange`, and consumes what others publish there."""

    user: str
    vhost: str
    source: str
    exchange: str
    keys: tuple[str, ...]
    queue: str
    binding: str

    def origin(self, session: str) -> dict[str, object]:
        """The columns that say who it is."""
        return {
            "session": session,
            "user": self.user,
            "vhost": self.vhost,
            "source": self.source,
            "listener": "amqp",
            "client": json.dumps({"product": "pika", "version": "1.3.2"}),
            "policy_digest": DIGEST,
        }


@attrs.frozen(kw_only=True)
class Traffic:
    """What all records of one seed have in common. `keys`: distinct routing keys of each service."""

    seed: int = 0
    services: int = 12
    vhosts: Sequence[str] = ("/", "shop")
    gateways: int = 2
    sessions: int = 3
    keys: int = 20

    def cast(self) -> list[Service]:
        """The services."""
        chance = random.Random(self.seed)
        things, verbs = ("order", "invoice", "customer", "parcel"), ("created", "changed", "deleted")
        return [
            Service(
                user=f"service-{number}",
                vhost=self.vhosts[number % len(self.vhosts)],
                source=f"10.0.{number // 200}.{number % 200 + 1}",
                exchange=f"{(thing := things[number % len(things)])}s",
                keys=tuple(
                    f"{thing}.{chance.randrange(100_000)}.{chance.choice(verbs)}" for _ in range(self.keys)
                ),
                queue=f"service-{number}.{thing}s",
                binding=f"{thing}.*.{chance.choice(verbs)}",
            )
            for number in range(self.services)
        ]

    def flows(self) -> list[dict[str, object]]:
        """The columns of usage that repeat, for every session and set of arguments."""
        found: list[dict[str, object]] = []
        for number, service in enumerate(self.cast()):
            for session in range(self.sessions):
                gateway = f"gate-{(number + session) % self.gateways}"
                origin = {"gateway": gateway} | service.origin(f"{number:04x}{session:04x}")
                allow = {"verdict": "allow", "policy": f"{service.exchange}-team", "rule": "publish"}
                for key in service.keys:
                    where = {"exchange": service.exchange, "routing_key": key}
                    found.append(origin | where | allow | {"operation": "basic.publish"})
                    found.append(origin | where | {"operation": "basic.deliver", "queue": service.queue})
                found.append(origin | allow | {"operation": "basic.consume", "queue": service.queue})
                refused = {"exchange": "payments", "routing_key": "payment.sent", "verdict": "deny"}
                found.append(origin | refused | {"operation": "basic.publish", "policy": "payments"})
        return found

    @cached_property
    def _flow_table(self) -> pa.Table:
        defaults = {"schema_version": 1, "policy_digest": ""} | dict.fromkeys(
            ("routing_key_is_template", "passive", "foreign", "any_key"), False
        )
        names = [field.name for field in attrs.fields(Usage)]
        flows = self.flows()
        schema = arrow_schema(Usage)
        return pa.table(
            {
                name: pa.array(
                    [flow.get(name, defaults.get(name)) for flow in flows], schema.field(name).type
                )
                for name in names
                if name in _REPEATED
            }
        )

    def usage(
        self, count: int, *, first: int = 0, start: datetime = START, span: timedelta = timedelta(days=1)
    ) -> pa.Table:
        """So many records, evenly in the span; their ids count from `first`."""
        chance = np.random.default_rng([self.seed, first])
        table = self._flow_table
        # A few of the flows are most of the traffic.
        flows = table.take(pa.array((chance.random(count) ** 2 * len(table)).astype("int64")))
        window = int(WINDOW.total_seconds() * 1e6)
        began = np.linspace(0, span.total_seconds() * 1e6, count, endpoint=False).astype("int64")
        began = began // window * window + int(start.timestamp() * 1e6)
        calls = pc.equal(flows["operation"], "basic.consume").to_numpy()
        requests = np.where(calls, 1, chance.geometric(0.02, count))
        messages = np.where(calls, 0, requests)
        early, late = np.sort(chance.integers(0, window, (2, count)), axis=0)
        moment = pa.timestamp("us", tz="UTC")
        numbers = pc.utf8_lpad(pa.array(np.arange(first, first + count)).cast(pa.string()), 9, "0")
        columns = {name: flows[name] for name in flows.column_names} | {
            "record_id": pc.binary_join_element_wise(flows["gateway"], "5eed", numbers, "-"),
            "window_start": pa.array(began, moment),
            "window_end": pa.array(began + window, moment),
            "first": pa.array(began + early, moment),
            "last": pa.array(began + late, moment),
            "requests": pa.array(requests),
            "messages": pa.array(messages),
            "bytes": pa.array(messages * chance.integers(50, 5_000, count)),
            "largest_body": pa.array(np.where(calls, 0, 5_000)),
        }
        schema = arrow_schema(Usage)
        return pa.table({name: columns[name] for name in schema.names}, schema=schema)

    def events(self, days: int = 1, *, start: datetime = START, denials: int = 5) -> list[Event]:
        """Per service and day: a session that declares, binds, consumes, is refused a few times, and ends."""
        chance = random.Random(self.seed)
        found: list[Event] = []
        numbers = itertools.count()

        def add(kind: EventKind, time: datetime, **columns: object) -> None:
            found.append(event(f"gate-0-5eed-{next(numbers):09}", kind, time, **columns))

        for day, (number, service) in itertools.product(range(days), enumerate(self.cast())):
            began = start + timedelta(days=day, minutes=number)
            origin = service.origin(f"{day:04x}{number:04x}") | {"verdict": None}
            old = ({}, {"amqp_version": "0-8"}, {"detail": '{"frame_max":4096}'})[number % 3]
            add("session.open", began, **origin | old)
            for operation, columns in (
                ("exchange.declare", {"exchange": service.exchange}),
                ("queue.declare", {"queue": service.queue}),
                (
                    "queue.bind",
                    {"exchange": service.exchange, "queue": service.queue, "routing_key": service.binding},
                ),
                ("basic.consume", {"queue": service.queue}),
            ):
                began += timedelta(milliseconds=5)
                add("topology", began, **origin | {"operation": operation} | columns)
            refused = origin | {"operation": "basic.publish", "exchange": "payments", "verdict": "deny"}
            for _ in range(chance.randint(0, denials)):
                at = began + timedelta(seconds=chance.randrange(1, 3600))
                add("denied", at, **refused | {"policy": "payments", "rule": "nobody", "reply_code": 403})
            at = began + timedelta(minutes=1)
            add("shadow", at, **refused | {"policy": "stricter", "rule": "orders-only"})
            add("session.close", began + timedelta(hours=2), **origin | {"outcome": "closed"})
        return found


#: Columns of usage that a flow has once and for all.
_REPEATED = frozenset(field.name for field in attrs.fields(Record)) - {"record_id"}


def event(record_id: str, kind: EventKind, time: datetime, **columns: object) -> Event:
    """One event of `gate-0`."""
    return Event(**{"record_id": record_id, "gateway": "gate-0", "kind": kind, "time": time} | columns)  # type: ignore[arg-type]


def usage(record_id: str, window_start: datetime, messages: int = 1, **columns: object) -> Usage:
    """One usage record of `gate-0`: alice published messages of one octet to `x`, but for `columns`."""
    end = window_start + WINDOW
    given: dict[str, object] = {
        "record_id": record_id,
        "gateway": "gate-0",
        "session": "1",
        "user": "alice",
        "vhost": "/",
        "operation": "basic.publish",
        "exchange": "x",
        "verdict": "allow",
        "window_start": window_start,
        "window_end": end,
        "first": window_start,
        "last": end,
        "requests": messages,
        "messages": messages,
        "bytes": messages,
    }
    return Usage(**given | columns)  # type: ignore[arg-type]


def table_of(sort: Sort, records: Iterable[Record]) -> pa.Table:
    """The records as a gateway hands them to its writer."""
    return pa.Table.from_pylist([attrs.asdict(record) for record in records], arrow_schema(TABLES[sort]))


def frame_of(spark: SparkSession, sort: Sort, records: Iterable[Record]) -> DataFrame:
    """The records as a job reads them."""
    return spark.createDataFrame([attrs.astuple(record) for record in records], schema(sort))


def write(
    folder: Path, sort: Sort, table: pa.Table, *, per_file: int = 50_000, gateway: str = "gate-0-5eed"
) -> list[Path]:
    """The files of a table, in its order; each is of the day of its first record."""
    time = "time" if sort == "events" else "window_start"
    written: list[Path] = []
    for number, start in enumerate(range(0, len(table), per_file), 1):
        part = table.slice(start, per_file)
        day = part[time][0].as_py().date()
        path = folder / sort / f"date={day}" / f"{gateway}-{number:06}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, path, compression="zstd", write_page_checksum=True)
        written.append(path)
    return written


def lines(sort: Sort, records: Iterable[Record]) -> Iterator[str]:
    """The records as lines of JSON."""
    for record in records:
        columns = {name: _plain(value) for name, value in attrs.asdict(record).items()}
        yield json.dumps({"record": "event" if sort == "events" else "usage"} | columns)


def _plain(value: object) -> object:
    match value:
        case datetime():
            return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return value
