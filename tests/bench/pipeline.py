"""What the jobs of `amqpgate audit` cost: seconds per million usage records, and how that grows.

    python -m tests.bench.pipeline                              # 1, 10 and 50 million; 2 GB of disk
    python -m tests.bench.pipeline --millions 1 --jobs compact  # does it work?
    python -m tests.bench.pipeline --engines local,plain --jobs "usage per hour,denials"

The records are made first, one day per million, in files as a gateway rolls them, and kept for the next time.
Each job is run as a user runs it, and alone: with `--master local[2]`, with `--engine local`, and where a few
lines of SQL have the same answer, as those, by DuckDB alone (`plain`). The table has the seconds that it took
and those of CPU, Python's and Java's; the same per million; and the most memory that all processes had at
once. The start is in all of them: the last column has the seconds of CPU per million that were added since
the line above.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import attrs

from tests.support.audit_records import START, Traffic, table_of, write

MILLION = 1_000_000
MASTER = "local[2]"

#: The command line of each, after the folder.
JOBS = {
    "usage per hour": ("usage", "--per", "hour", "--format", "csv", "--output", "OUT/usage.csv"),
    "usage per day": ("usage", "--per", "day", "--format", "csv", "--output", "OUT/usage.csv"),
    "denials": ("denials", "--format", "csv", "--output", "OUT/denials.csv"),
    "replay": ("replay", "--policies", "policies", "--format", "csv", "--output", "OUT/replay.csv"),
    "recommend": ("recommend", "--output", "OUT/recommended.yaml"),
    "topology": ("topology", "--format", "csv", "--output", "OUT/topology.csv"),
    "anomalies": ("anomalies", "--last", "12", "--until", "UNTIL", "--output", "OUT/anomalies.txt"),
    "report": ("report", "--output", "OUT/report.html"),
    "compact": ("compact", "OUT/table-ENGINE"),
    "compact again": ("compact", "OUT/table-ENGINE"),
    "compact to delta": ("compact", "delta:OUT/delta"),
    "compact to iceberg": ("compact", "iceberg:OUT/iceberg"),
}
#: They need no engine.
LOCALS = ("compact to delta", "compact to iceberg")

_SUMS = """
    sum(messages) FILTER (operation = 'basic.publish' AND verdict IS DISTINCT FROM 'deny') AS p,
    sum(bytes) FILTER (operation = 'basic.publish' AND verdict IS DISTINCT FROM 'deny') AS pb,
    sum(messages) FILTER (operation <> 'basic.publish' AND verdict IS DISTINCT FROM 'deny') AS d,
    sum(bytes) FILTER (operation <> 'basic.publish' AND verdict IS DISTINCT FROM 'deny') AS db,
    sum(messages) FILTER (verdict = 'deny') AS r"""
_USAGE = """
    WITH minutes AS (SELECT date_trunc('minute', window_start) AS minute, "user", vhost, exchange, {sums}
      FROM 'FOLDER/usage/*/*.parquet'
      WHERE operation IN ('basic.publish', 'basic.deliver', 'basic.get-ok', 'basic.return') GROUP BY ALL)
    SELECT date_trunc('{per}', minute) AS start, "user", vhost, exchange, sum(p), sum(pb), sum(d), sum(db),
      sum(r), max((coalesce(p, 0) + coalesce(d, 0)) / 60), max((coalesce(pb, 0) + coalesce(db, 0)) / 60)
    FROM minutes GROUP BY ALL ORDER BY ALL"""
#: The same questions, as somebody asks them who knows the files.
PLAIN = {
    "usage per hour": _USAGE.format(sums=_SUMS, per="hour"),
    "usage per day": _USAGE.format(sums=_SUMS, per="day"),
    "denials": """
    WITH users AS (SELECT policy, rule, verdict, operation, vhost, exchange, queue, "user", count(*) AS n,
        min(time) AS a, max(time) AS b FROM 'FOLDER/events/*/*.parquet' WHERE kind = 'denied' GROUP BY ALL)
    SELECT policy, rule, verdict, operation, vhost, exchange, queue, sum(n), count(*),
      list("user" ORDER BY n DESC)[:5], min(a), max(b) FROM users GROUP BY ALL ORDER BY 8 DESC LIMIT 50""",
    "topology": """
    SELECT "user", vhost, operation, exchange, queue, CASE WHEN operation <> 'basic.publish' OR exchange = ''
        THEN regexp_replace(routing_key, '[0-9]+', '*', 'g') END AS key,
      sum(messages), sum(bytes), min(first), max(last)
    FROM 'FOLDER/usage/*/*.parquet' WHERE verdict IS DISTINCT FROM 'deny' AND operation IN
      ('basic.publish', 'basic.deliver', 'basic.get-ok', 'basic.consume', 'basic.get') GROUP BY ALL""",
}


@attrs.frozen
class Cost:
    """Of one run: seconds, seconds of CPU, bytes of memory at most."""

    seconds: float
    cpu: float
    memory: int


def make(folder: Path, millions: int) -> None:
    """So many million usage records and the events of as many days, unless they are there."""
    if (folder / "_complete").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    traffic = Traffic(services=200, keys=50)
    for day in range(millions):
        table = traffic.usage(MILLION, first=day * MILLION, start=START + timedelta(days=day))
        write(folder, "usage", table, gateway=f"gate-{day}-5eed")
    events = sorted(traffic.events(millions, denials=50), key=lambda event: event.time)
    write(folder, "events", table_of("events", events))
    (folder / "_complete").touch()


def run(command: list[str]) -> Cost:
    """Run it, looking at its processes ten times a second."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    cpu: dict[int, float] = {}
    memory = 0
    while process.poll() is None:
        now = _family(process.pid)
        cpu.update({pid: seconds for pid, (seconds, _) in now.items()})
        memory = max(memory, sum(data for _, data in now.values()))
        time.sleep(0.1)
    # Replay ends with 1 where an answer changes.
    if process.returncode not in ((0, 1) if "replay" in command else (0,)):
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
    return Cost(time.monotonic() - began, sum(cpu.values()), memory)


def _filled(word: str, words: dict[str, str]) -> str:
    for name, text in words.items():
        word = word.replace(name, text)
    return word


def _family(pid: int) -> dict[int, tuple[float, int]]:
    """CPU seconds and resident bytes of a process and all below it."""
    found: dict[int, tuple[float, int]] = {}
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        # Java starts its workers from any of its threads.
        lists = Path(f"/proc/{pid}/task").glob("*/children")
        children = [child for one in lists for child in one.read_text().split()]
    except OSError:  # it has just ended
        return found
    ticks = int(words[11]) + int(words[12])
    found[pid] = (ticks / os.sysconf("SC_CLK_TCK"), int(words[21]) * os.sysconf("SC_PAGE_SIZE"))
    for child in children:
        found |= _family(int(child))
    return found


def main() -> None:
    """Make, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--millions", default="1,10,50", help="how many records (default: %(default)s)")
    parser.add_argument("--jobs", default=",".join(JOBS), help="which (default: all)")
    parser.add_argument("--engines", default="spark,local,plain", help="which (default: all)")
    parser.add_argument("--records", type=Path, default=Path("build/bench/audit"), help="where they are kept")
    options = parser.parse_args()
    sizes = [int(word) for word in options.millions.split(",")]
    for millions in sizes:
        make(options.records / f"{millions}m", millions)
    engines = options.engines.split(",")
    print(
        "| job | engine | million records | s | CPU s | s per million | CPU s per million | MiB "
        "| CPU s per million more |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=options.records) as out:
        for job, engine in ((job, engine) for job in options.jobs.split(",") for engine in engines):
            last: tuple[int, float] | None = None
            for millions in sizes:
                (Path(out) / f"{millions}m").mkdir(exist_ok=True)
                command = command_of(job, engine, str(options.records / f"{millions}m"), f"{out}/{millions}m")
                if command is None:
                    break
                cost = run(command)
                more = f"{(cost.cpu - last[1]) / (millions - last[0]):.2f}" if last else ""
                print(
                    f"| {job} | {engine} | {millions} | {cost.seconds:.1f} | {cost.cpu:.1f} "
                    f"| {cost.seconds / millions:.2f} | {cost.cpu / millions:.2f} "
                    f"| {cost.memory >> 20} | {more} |",
                    flush=True,
                )
                last = millions, cost.cpu


def command_of(job: str, engine: str, folder: str, out: str) -> list[str] | None:
    """The command line of a job; None where the engine has no such job."""
    if engine == "plain":
        if job not in PLAIN:
            return None
        sql = f"COPY ({PLAIN[job].replace('FOLDER', folder)}) TO '{out}/plain.csv'"
        script = f"import duckdb; duckdb.sql(\"SET TimeZone = 'UTC'\"); duckdb.sql({sql!r})"
        return [sys.executable, "-c", script]
    if engine == "spark" and job in LOCALS:
        return None
    until = f"{START + timedelta(days=int(Path(folder).name.removesuffix('m'))):%Y-%m-%d}"
    verb, *args = [_filled(word, {"OUT": out, "UNTIL": until, "ENGINE": engine}) for word in JOBS[job]]
    how = ["--master", MASTER] if engine == "spark" else [] if job in LOCALS else ["--engine", "local"]
    return [sys.executable, "-m", "amqpgate", "audit", verb, folder, *args, *how]


if __name__ == "__main__":
    main()
