"""The sizing page: from results of runs to its tables."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

from .samples import Latency, Memory, Sample, Storm
from .sizing import BEGIN, END, Results, main, tables, updated

FACTS = {
    "date": "a day",
    "machine": "a machine",
    "commit": "c0ffee",
    "command": "`python -m tests.bench.run`",
}


def _waited(p99: float) -> Latency:
    return Latency(count=100, p50=1, p90=1, p99=p99, p999=p99, max=p99)


SAMPLES = [
    Sample(
        "idle", "amqpgate", 0, memory=Memory({0: 80 << 20, 5000: (80 << 20) + 5000 * 2048}, 90 << 20, 0.004)
    ),
    Sample("churn", "amqpgate", 0, messages=100, cpu_ns=60_000_000, latency=_waited(5)),
    Sample("publish-4k", "amqpgate", 0, messages=1000, cpu_ns=2_000_000),
    Sample("storm", "haproxy", 0, messages=5000, cpu_ns=500_000_000),
    Sample(
        "storm",
        "amqpgate",
        0,
        messages=5000,
        cpu_ns=1_500_000_000,
        storm=Storm(1, _waited(400), _waited(1), _waited(600), again=50, pss=(1, 2, 100 << 20)),
    ),
    Sample("start", "amqpgate", 0, messages=1, seconds=0.4, cpu_ns=380_000_000),
]


def _written(folder: Path, name: str, samples: list[Sample]) -> Path:
    file = folder / name
    file.write_text(json.dumps({"facts": FACTS, "samples": [attrs.asdict(one) for one in samples]}))
    return file


def test_tables_from_several_runs(tmp_path: Path) -> None:
    text = tables(
        Results.read([_written(tmp_path, "one", SAMPLES[:3]), _written(tmp_path, "two", SAMPLES[3:])])
    )
    for row in (
        "| memory of the process | 80 MiB |",
        "| its start: until it answers | 0.40 s |",
        "| a login | 600 us |",
        "| 10,000 messages of 4 KiB a second, in batches | 2.0% of a core |",
        "| memory, all idle | 100 MiB |",
        "| CPU while nobody says anything | 0.8% of a core |",
        "| logins a second of a core | 3,333 |",
        "| CPU time until 10,000 are back | 3.0 s |",
        "| the same, as a multiple of haproxy's | 3.0 |",
        "| memory after it | 100 MiB |",
        "| 99th percentile of who stay: before | 400 us |",
        "| the same, in the storm | 600 us |",
        "| clients that had to try again, of 100 | 1.0 |",
    ):
        assert row in text
    # What was not measured is not there.
    assert "over TLS" not in text
    assert text.count("c0ffee") == 2


def test_seconds_are_left_out_where_others_kept_the_machine_busy(tmp_path: Path) -> None:
    busy = [attrs.evolve(one, foreign=0.4) for one in SAMPLES]
    text = tables(Results.read([_written(tmp_path, "busy", busy)]))
    assert "Others kept the machine busy" in text
    assert "until it answers" not in text
    assert "99th" not in text
    assert "| logins a second of a core | 3,333 |" in text


def test_a_page_is_written_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    command = [str(_written(tmp_path, "one", SAMPLES)), "--update", str(page)]
    assert CliRunner().invoke(main, command).exit_code == 0
    once = page.read_text()
    assert once.startswith(f"before\n{BEGIN}\n\n### A sidecar\n")
    assert once.endswith(f"\n\n{END}\nafter\n")
    assert "old" not in once
    CliRunner().invoke(main, command)
    assert page.read_text() == once
    with pytest.raises(ValueError, match="there is no"):
        updated("nothing", "text")
