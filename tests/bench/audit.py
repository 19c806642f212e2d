"""What the audit log costs: ``python -m tests.bench.audit [--rows 200000] [--sessions 5000]``.

In microseconds of CPU: a record for who makes it, and for the thread that writes. In milliseconds: how late
a trio task wakes up that sleeps 1 ms at a time, while a window of so many rows is written, and without.
What its thread waited for a core is left out, so that other work on the machine counts less.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import trio

from amqpgate.config import Audit
from amqpgate.records import Origin
from amqpgate.telemetry.audit.log import AuditLog, open_log
from amqpgate.telemetry.audit.rows import AuditRow
from amqpgate.yamldoc import FolderPath, Seconds, Size


def rows_of(count: int, sessions: int) -> list[AuditRow]:
    """So many rows, of publishes with a routing key each, spread over sessions."""
    origins = [
        Origin(
            session=f"10.0.{number // 250}.{number % 250}:{number}",
            user=f"user{number % 50}",
            vhost="/",
            source=f"10.0.{number // 250}.{number % 250}",
            listener="main",
            client='{"product": "pika", "version": "1.3.2", "platform": "Python 3.11"}',
        )
        for number in range(sessions)
    ]
    return [
        AuditRow(
            origin=origins[number % sessions],
            operation="basic.publish",
            exchange="orders",
            routing_key=f"order.{number}.created",
            verdict="allow",
            policy="orders",
            rule=f"rule{number % 5}",
            policy_digest="0123456789abcdef" * 4,
        )
        for number in range(count)
    ]


def count(log: AuditLog, rows: list[AuditRow]) -> float:
    """Microseconds of CPU for each row of a window."""
    now, began = time.time(), time.thread_time()
    for row in rows:
        log.usage(row, 10, 10, 1000, now, now)
    spent = time.thread_time() - began
    log.close_window(now - 10, now)
    return spent / len(rows) * 1e6


def tell(log: AuditLog, rows: list[AuditRow]) -> float:
    """Microseconds of CPU for each denial."""
    began = time.thread_time()
    for row in rows:
        log.event(
            row.origin,
            "denied",
            operation=row.operation,
            exchange=row.exchange,
            routing_key=row.routing_key,
            verdict="deny",
            policy=row.policy,
            rule=row.rule,
            policy_digest=row.policy_digest,
            reply_code=403,
            reason="access to topic refused",
        )
    return (time.thread_time() - began) / len(rows) * 1e6


async def lateness(is_over: Callable[[], bool]) -> list[float]:
    """How late each sleep ended, in milliseconds, until it is over and a thousand have been."""
    found: list[float] = []
    while not is_over() or len(found) < 1000:
        began, waited = time.perf_counter(), waited_for_a_core()
        await trio.sleep(0.001)
        found.append((time.perf_counter() - began - 0.001 - (waited_for_a_core() - waited)) * 1e3)
    return found


def waited_for_a_core() -> float:
    """Seconds that this thread could have run in and did not (Linux, sched-stats)."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9


def at(values: list[float], percent: int) -> float:
    """A percentile."""
    return statistics.quantiles(values, n=100)[percent - 1]


def said(name: str, late: list[float], seconds: float) -> None:
    print(
        f"  {name:<30} {seconds:6.2f} s; late p50 {at(late, 50):.2f}, p99 {at(late, 99):.2f}, "
        f"most {max(late):.2f} ms of {len(late)}"
    )


async def measure(settings: Audit, rows: list[AuditRow]) -> None:
    print(settings.format)
    log = open_log(settings)
    log.start()
    tell(log, rows[:1])  # what is imported and allocated once

    def is_written() -> bool:
        return log.counts().queued == (0, 0)

    await lateness(is_written)
    said("nothing to write", await lateness(lambda: True), 0)
    for name, act in (("usage", count), ("events", tell)):
        here, elsewhere, began = time.thread_time(), time.process_time(), time.perf_counter()
        cost = act(log, rows)
        late = await lateness(is_written)
        seconds = time.perf_counter() - began
        writing = time.process_time() - elsewhere - (time.thread_time() - here)
        print(f"  {name}: {cost:.2f} us each; the writer {writing / len(rows) * 1e6:.2f} us each")
        said(f"{len(rows)} of {name}", late, seconds)
    began, elsewhere = time.perf_counter(), time.process_time()
    await trio.to_thread.run_sync(log.stop, 600.0)
    print(f"  the rest: {time.perf_counter() - began:.2f} s, {time.process_time() - elsewhere:.2f} s of CPU")
    assert log.counts().dropped == (0, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--sessions", type=int, default=5_000)
    chosen = parser.parse_args()
    rows = rows_of(chosen.rows, chosen.sessions)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        room = Size(1 << 40)
        parquet = Audit(
            format="parquet", folder=FolderPath(folder), roll_interval=Seconds(3600), max_queue=room
        )
        trio.run(measure, parquet, rows)
        for sort in ("usage", "events"):
            data = sum(path.stat().st_size for path in folder.glob(f"{sort}/date=*/*.parquet"))
            print(f"  {sort}: {data / len(rows):.1f} bytes each")


if __name__ == "__main__":
    main()
