"""What the verbs must answer, in DuckDB's SQL, written from the documents and apart from the jobs' code.

It asks the Arrow tables that were generated, `usage` and `events`, and reads none of the files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from amqpgate.records import Event, Usage, arrow_schema
from tests.support.audit_records import START, Traffic, event, table_of, usage

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
#: Policies that SQL can say, too.
POLICY = b"""
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: orders}
spec:
  subjects: [{user: service-0}]
  rules:
    - id: publish
      effect: allow
      operations: [basic.publish]
      exchange: orders
      routingKey: {topic: "order.#"}
    - id: never
      effect: allow
      operations: [queue.delete]
      queue: nobodys
"""


class Month:
    """Records of some weeks, with every oddity that has made a difference once."""

    def __init__(self, count: int, days: int, seed: int = 0) -> None:
        self.days = days
        self.end = START + days * DAY
        traffic = Traffic(seed=seed, services=6, sessions=2, keys=5, vhosts=("/", "shop", "a/b é", ""))
        self.usage = pa.concat_tables(
            [
                traffic.usage(count, span=days * DAY, start=START),
                table_of("usage", self._odd_usage()),
                self._planted(),
            ]
        )
        events = [*traffic.events(days, denials=8), *self._odd_events()]
        self.events = table_of("events", sorted(events, key=lambda one: one.time))

    def _odd_usage(self) -> list[Usage]:
        last = self.end - HOUR
        publish: dict[str, object] = {
            "user": "service-0",
            "exchange": "orders",
            "routing_key": "order.created",
        }
        got: dict[str, object] = {"operation": "basic.deliver", "verdict": None, "queue": "q"}
        return [
            usage("odd-01", START, 3, user=None),
            usage("odd-02", START + 2 * DAY, 5, user=None, vhost=None),
            usage("odd-03", last, 4, user='O\'Brien "x"\\', exchange="ex.\u202eé中", routing_key="a.1.b"),
            usage("odd-04", last, 4, user="=1+1", exchange="-x", routing_key=""),
            usage("odd-05", START + DAY - timedelta(seconds=10), 7, user="midnight"),
            usage("odd-06", START + DAY, 9, user="midnight"),
            # Windows of the hour that comes twice, and of the ends of local days and months.
            usage("odd-07", datetime(2026, 10, 25, 0, 30, tzinfo=UTC), 11, user="clock"),
            usage("odd-08", datetime(2026, 10, 25, 1, 30, tzinfo=UTC), 13, user="clock"),
            usage("odd-09", datetime(2026, 10, 24, 22, 0, tzinfo=UTC), 17, user="clock"),
            usage("odd-10", datetime(2026, 10, 31, 23, 59, 50, tzinfo=UTC), 19, user="clock"),
            usage("odd-11", datetime(2026, 10, 31, 22, 59, 50, tzinfo=UTC), 23, user="clock"),
            usage("odd-12", last, 0, requests=2, operation="basic.qos", arguments='{"global": true}'),
            usage("odd-13", last, 0, operation="queue.delete", queue="gone", arguments='{"if_empty": true}'),
            usage("odd-14", last, 2, user="gets", operation="basic.get-ok", verdict=None, queue="q"),
            usage("odd-15", last, 3, user="gets", operation="basic.return", verdict=None),
            usage("odd-16", last, 6, user="gets", **got, exchange="x", routing_key="order.4711.created"),
            usage("odd-17", last, 8, user="refused", verdict="deny", policy="p", rule="r"),
            usage("odd-18", last, 8, user="refused", verdict="deny", policy=None, rule=None),
            usage("odd-19", last, 1, **publish, bytes=10**15),
            usage("odd-20", last, 2, **publish | {"exchange": "payments"}),
            usage("odd-21", last, 3, **publish | {"routing_key": "invoice.created"}),
            usage("odd-22", last, 5, **publish | {"verdict": "deny", "policy": "p", "rule": "r"}),
            usage("odd-23", last, 1, user="big", largest_body=20 << 20),
            usage("odd-24", last, 4, user="in-shop", vhost="shop", exchange="", routing_key="queue-4711"),
        ]

    def _odd_events(self) -> list[Event]:
        at = self.end - HOUR
        denied: dict[str, object] = {"operation": "queue.declare", "vhost": "/", "verdict": "deny"}
        declared = '{"type": "classic", "durable": false, "exclusive": false, "auto_delete": false}'
        many = [
            event(f"odd-u{number}", "denied", at + timedelta(seconds=number), user=f"u{number % 9}", **denied)
            for number in range(40)
        ]
        return [
            *many,
            event("odd-e1", "denied", at, user=None, policy=None, rule=None, operation="basic.publish"),
            event("odd-e2", "denied", at, user=None, **denied),
            event("odd-e3", "shadow", at, user="a", policy="p", rule="r", operation="basic.publish"),
            event("odd-e4", "denied", self.end - HOUR / 9, user="é\x00", **denied | {"rule": ""}),
            event("odd-e5", "topology", at, user="a", vhost="/", operation="queue.declare", queue="transient",
                  detail=declared),
            event("odd-e6", "topology", at + HOUR / 2, user="a", vhost="/", operation="queue.delete",
                  queue="service-0.orders"),
        ]  # fmt: skip

    def _planted(self) -> pa.Table:
        """A principal with a steady rhythm that leaves it in one hour, and is silent in another."""
        chance = np.random.default_rng(5)
        rows = []
        for hour in range(24 * self.days):
            start = START + hour * HOUR
            level = 0 if start == self.end - 3 * HOUR else 20_000 if start == self.end - 2 * HOUR else 1_000
            if level:
                rows.append(
                    usage(f"plant-{hour:05}", start, int(chance.poisson(level)), user="steady", exchange="s")
                )
        return table_of("usage", rows)


class Oracle:
    """The answers to a month."""

    def __init__(self, month: Month) -> None:
        self._db = duckdb.connect()
        self._db.execute("SET TimeZone = 'UTC'")
        for name, table, kind in (("usage", month.usage, Usage), ("events", month.events, Event)):
            assert table.schema.equals(arrow_schema(kind), check_metadata=False)
            self._db.register(f"{name}_arrow", table)
            self._db.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_arrow")

    def ask(self, sql: str, **given: object) -> list[dict[str, Any]]:
        """The rows of a question."""
        found = self._db.execute(sql, given or None)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def usage(self, per: str, zone: str) -> list[dict[str, Any]]:
        """Messages and bytes; a record counts where its window began, peaks are of the busiest minute."""
        zone = zone if per in ("day", "month") else "UTC"
        return self.ask(
            f"""
            WITH minutes AS (
              SELECT date_trunc('minute', window_start) AS minute, "user", vhost, exchange,
                sum(messages) FILTER (operation = 'basic.publish' AND verdict IS DISTINCT FROM 'deny') AS p,
                sum(bytes) FILTER (operation = 'basic.publish' AND verdict IS DISTINCT FROM 'deny') AS pb,
                sum(messages) FILTER (operation <> 'basic.publish' AND verdict IS DISTINCT FROM 'deny') AS d,
                sum(bytes) FILTER (operation <> 'basic.publish' AND verdict IS DISTINCT FROM 'deny') AS db,
                sum(messages) FILTER (verdict = 'deny') AS r
              FROM usage
              WHERE operation IN ('basic.publish', 'basic.deliver', 'basic.get-ok', 'basic.return')
              GROUP BY ALL)
            SELECT timezone('{zone}', date_trunc('{per}', timezone('{zone}', minute))) AS start,
              "user", vhost, exchange,
              coalesce(sum(p), 0)::BIGINT AS published, coalesce(sum(pb), 0)::BIGINT AS published_bytes,
              coalesce(sum(d), 0)::BIGINT AS delivered, coalesce(sum(db), 0)::BIGINT AS delivered_bytes,
              coalesce(sum(r), 0)::BIGINT AS refused,
              max((coalesce(p, 0) + coalesce(d, 0)) / 60) AS peak_messages_per_second,
              max((coalesce(pb, 0) + coalesce(db, 0)) / 60) AS peak_bytes_per_second
            FROM minutes GROUP BY ALL"""
        )

    def costs(self, zone: str) -> list[dict[str, Any]]:
        """What is charged by month, before prices are applied; connections by whole seconds."""
        return self.ask(
            f"""
            WITH passed AS (
              SELECT date_trunc('month', timezone('{zone}', window_start)) AS month, "user", vhost,
                sum(messages) AS m, sum(bytes) AS b
              FROM usage
              WHERE operation IN ('basic.publish', 'basic.deliver', 'basic.get-ok', 'basic.return')
                AND verdict IS DISTINCT FROM 'deny'
              GROUP BY ALL),
            records AS (
              SELECT gateway, session, "user", vhost, first, last FROM usage
              UNION ALL SELECT gateway, session, "user", vhost, time, time FROM events),
            sessions AS (
              SELECT gateway, session, "user", vhost, date_trunc('second', min(first)) AS f,
                date_trunc('second', max(last)) AS l
              FROM records WHERE session IS NOT NULL GROUP BY ALL),
            months AS (
              SELECT m AS month, timezone('{zone}', m) AS b, timezone('{zone}', m + INTERVAL 1 MONTH) AS e
              FROM range(TIMESTAMP '2026-01-01', TIMESTAMP '2028-01-01', INTERVAL 1 MONTH) r(m)),
            connected AS (
              SELECT month, "user", vhost, sum(date_diff('second', greatest(f, b), least(l, e))) AS s
              FROM sessions JOIN months ON f < e AND l > b
              WHERE greatest(f, b) < least(l, e) GROUP BY ALL),
            charged AS (
              SELECT month, "user", vhost, m, b, 0 AS s FROM passed
              UNION ALL SELECT month, "user", vhost, 0, 0, s FROM connected)
            SELECT timezone('{zone}', month) AS start, "user",
              CASE WHEN "user" = 'service-0' THEN 'first' WHEN "user" LIKE 'service-%' THEN 'others' END
                AS "group",
              vhost, sum(m)::BIGINT AS messages, sum(b)::BIGINT AS bytes, sum(s)::BIGINT AS connection_seconds
            FROM charged GROUP BY ALL"""
        )

    def denials(self, kind: str) -> list[dict[str, Any]]:
        """How often, to whom, and eight equal parts of the time from the first to the last of all."""
        return self.ask(
            """
            WITH chosen AS (SELECT *, coalesce("user", chr(1)) AS known FROM events WHERE kind = $kind),
            bounds AS (SELECT epoch_us(min(time)) AS a, epoch_us(max(time)) - epoch_us(min(time)) + 1 AS n
                       FROM chosen),
            users AS (SELECT policy, rule, verdict, operation, vhost, exchange, queue, "user", count(*) AS n
                      FROM chosen GROUP BY ALL),
            named AS (SELECT policy, rule, verdict, operation, vhost, exchange, queue, count(*) AS principals,
                        list("user" ORDER BY n DESC, "user" NULLS FIRST)[:5] AS users
                      FROM users GROUP BY ALL),
            summed AS (SELECT policy, rule, verdict, operation, vhost, exchange, queue, count(*) AS times,
                         min(time) AS first, max(time) AS last,
                         list((epoch_us(time) - a) * 8 // n) AS parts
                       FROM chosen, bounds GROUP BY ALL)
            SELECT s.policy, s.rule, s.verdict, s.operation, s.vhost, s.exchange, s.queue, times, principals,
              users, first, last,
              list_transform(range(8), lambda x: len(list_filter(parts, lambda y: y = x))::BIGINT) AS trend
            FROM summed s JOIN named n ON
              (s.policy, s.rule, s.verdict, s.operation) IS NOT DISTINCT FROM
              (n.policy, n.rule, n.verdict, n.operation)
              AND (s.vhost, s.exchange, s.queue) IS NOT DISTINCT FROM (n.vhost, n.exchange, n.queue)""",
            kind=kind,
        )

    #: What policies have judged, and what `POLICY` answers: who is not selected is allowed, and who is not
    #: known may be anybody, and so is denied.
    _JUDGED = """
        WITH asked AS (
          SELECT *, CASE WHEN "user" IS NULL THEN 'deny'
              WHEN "user" <> 'service-0' THEN 'allow'
              WHEN operation = 'basic.publish' AND exchange = 'orders'
                AND regexp_full_match(routing_key, 'order(\\..*)?') THEN 'allow'
              ELSE 'deny' END AS after
          FROM usage
          WHERE (verdict = 'allow' OR rule IS NOT NULL) AND vhost IS NOT NULL
            AND operation IN ('basic.publish', 'basic.consume', 'queue.delete', 'queue.declare', 'basic.get'))
        """

    def changes(self) -> list[dict[str, Any]]:
        """Whose requests `POLICY` would answer otherwise."""
        return self.ask(
            self._JUDGED
            + """
            SELECT "user", vhost, operation, exchange, routing_key, queue, verdict AS before, after,
              sum(requests)::BIGINT AS requests, sum(messages)::BIGINT AS messages,
              min(first) AS first, max(last) AS last
            FROM asked WHERE verdict <> after GROUP BY ALL"""
        )

    def granted(self) -> list[dict[str, Any]]:
        """When the rules of `POLICY` last decided."""
        return self.ask(
            self._JUDGED
            + """
            SELECT 'orders' AS policy, 'publish' AS rule, 'basic.publish' AS operation,
              coalesce(sum(requests), 0)::BIGINT AS requests, max(last) AS last
            FROM asked WHERE verdict = 'allow' AND after = 'allow' AND "user" = 'service-0'
            UNION ALL SELECT 'orders', 'never', 'queue.delete', 0, NULL"""
        )

    #: Words of digits, and pieces of digits of names, are ids.
    _FOLDED = r"""
        array_to_string(list_transform(string_split({0}, '.'),
          lambda w: CASE WHEN regexp_full_match(w, '[0-9]+') THEN '*' ELSE w END), '.')"""

    def traffic(self) -> list[dict[str, Any]]:
        """Who sent and got how much; of a publish the key counts for the default exchange only."""
        return self.ask(
            f"""
            WITH keys AS (
              SELECT *, CASE WHEN operation <> 'basic.publish' OR exchange = '' THEN routing_key END AS k
              FROM usage
              WHERE verdict IS DISTINCT FROM 'deny' AND operation IN
                ('basic.publish', 'basic.deliver', 'basic.get-ok', 'basic.consume', 'basic.get'))
            SELECT "user", vhost, operation, exchange, queue,
              CASE WHEN operation = 'basic.publish' THEN regexp_replace(k, '-[0-9]+$', '-*')
                ELSE {self._FOLDED.format("k")} END AS key,
              sum(messages)::BIGINT AS messages, sum(bytes)::BIGINT AS bytes,
              min(first) AS first, max(last) AS last
            FROM keys GROUP BY ALL"""
        )

    def newcomers(self, begin: datetime, end: datetime) -> list[dict[str, Any]]:
        """Users of a virtual host without a record before, and the hour in which they began."""
        return self.ask(
            """
            SELECT "user", vhost, date_trunc('hour', min(window_start)) AS hour,
              sum(messages)::BIGINT AS value
            FROM usage u
            WHERE "user" IS NOT NULL AND verdict IS DISTINCT FROM 'deny'
              AND window_start >= $begin AND window_start < $end
              AND NOT EXISTS (FROM usage o WHERE o."user" = u."user"
                AND o.vhost IS NOT DISTINCT FROM u.vhost AND o.verdict IS DISTINCT FROM 'deny'
                AND o.window_start < $begin)
            GROUP BY ALL""",
            begin=begin,
            end=end,
        )

    def declared(self) -> list[dict[str, Any]]:
        """Queues and exchanges that are there at the end: the last that happened to them made them."""
        return self.ask(
            """
            WITH changes AS (
              SELECT *, CASE WHEN operation LIKE 'queue.%' THEN 'queue' ELSE 'exchange' END AS thing
              FROM events WHERE kind = 'topology' AND operation IN
                ('queue.declare', 'queue.delete', 'exchange.declare', 'exchange.delete'))
            SELECT vhost, thing, CASE thing WHEN 'queue' THEN queue ELSE exchange END AS name,
              max(time) AS last
            FROM changes GROUP BY ALL HAVING arg_max(operation, time) LIKE '%.declare'"""
        )

    def asked_of_brokers(self) -> list[dict[str, Any]]:
        """What clients declared, and what of the rest a newer broker may refuse."""
        return self.ask(
            """
            SELECT "user", vhost, operation AS kind, coalesce(queue, exchange) AS name, count(*) AS times,
              min(time) AS first, max(time) AS last
            FROM events WHERE kind = 'topology' AND operation IN ('queue.declare', 'exchange.declare')
            GROUP BY ALL
            UNION ALL
            SELECT "user", vhost, operation, queue, sum(requests)::BIGINT, min(first), max(last) FROM usage
            WHERE (operation = 'basic.qos' AND arguments LIKE '%"global": true%')
              OR (operation = 'queue.delete' AND arguments IS NOT NULL)
            GROUP BY ALL
            UNION ALL
            SELECT "user", vhost, operation, exchange, count(*), min(first), max(last) FROM usage
            WHERE operation = 'basic.publish' AND largest_body > 16 * 1024 * 1024
            GROUP BY ALL
            UNION ALL
            SELECT "user", vhost, 'connection.open', product, count(*), min(time), max(time) FROM (
              SELECT *, client->>'$.product' AS product, (detail->>'$.frame_max')::INT AS frame_max
              FROM events WHERE kind = 'session.open')
            WHERE amqp_version = '0-8' OR frame_max < 8192
            GROUP BY "user", vhost, product, amqp_version, frame_max"""
        )


def differences(
    expected: Iterable[Mapping[str, Any]],
    found: Iterable[Mapping[str, Any]],
    names: Sequence[str] | None = None,
) -> list[str]:
    """Rows that are in one and not in the other, in any order; by these columns, or all."""

    def key(row: Mapping[str, Any]) -> str:
        return repr([(name, _plain(row[name])) for name in names or sorted(row)])

    mine, theirs = Counter(map(key, expected)), Counter(map(key, found))
    return [f"missing: {one}" for one in (mine - theirs).elements()] + [
        f"invented: {one}" for one in (theirs - mine).elements()
    ]


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return round(value, 6) if isinstance(value, float) else value
