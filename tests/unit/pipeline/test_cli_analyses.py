"""``amqpgate audit``: policies by what was done, topology and anomalies."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from amqpgate.cli import main
from tests.support.audit_records import START, event, table_of, usage, write
from tests.support.audit_verbs import audit_locally
from tests.unit.pipeline.conftest import SETTINGS
from tests.unit.policy.build_set import document

WEEK = timedelta(weeks=1)

pytestmark = pytest.mark.usefixtures("running")


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Alice publishes to x for five weeks, and in the last one to y as well; bob gets it."""
    got = {"verdict": None, "user": "bob", "operation": "basic.deliver", "exchange": "x", "queue": "q"}
    records = [
        usage(f"u-{week}-{number}", START + week * WEEK, 10, routing_key=f"order.{number}.created")
        for week in range(5)
        for number in range(2)
    ]
    records += [
        usage(f"d-{week}", START + week * WEEK, 20, routing_key="order.1.created", **got) for week in range(5)
    ]
    records.append(usage("y", START + 4 * WEEK, 3, exchange="y", routing_key="k"))
    write(tmp_path / "raw", "usage", table_of("usage", records), per_file=5)
    made = {"vhost": "/", "user": "bob"}
    events = [
        event("e-1", "topology", START, operation="queue.declare", queue="unread", **made),
        event("e-2", "topology", START, operation="exchange.declare", exchange="x", **made),
    ]
    write(tmp_path / "raw", "events", table_of("events", events))
    return tmp_path / "raw"


def audit(verb: str, *args: str | Path) -> Result:
    return CliRunner().invoke(main, ["audit", verb, *map(str, args), *SETTINGS])


def rows(result: Result) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(result.stdout)))


def folder(path: Path, *documents: str) -> Path:
    path.mkdir()
    (path / "p.yaml").write_text("---\n".join(documents))
    return path


def test_recommend_then_check_then_replay(raw: Path, tmp_path: Path) -> None:
    made = audit("recommend", raw, "--out", tmp_path / "least", "--format", "csv")
    assert made.exit_code == 0
    assert [(row["rule"], row["messages"], row["first"]) for row in rows(made)] == [
        ("publish-x", "100", "2026-11-02T00:00:00Z"),
        ("publish-y", "3", "2026-11-30T00:00:00Z"),
    ]
    checked = CliRunner().invoke(main, ["policy", "check", str(tmp_path / "least")])
    assert (checked.exit_code, checked.output) == (0, "0 problems, 0 notes\n")
    replayed = audit("replay", raw, "--policies", tmp_path / "least", "--format", "csv")
    assert replayed.exit_code == 0
    assert replayed.stderr == "allow -> allow: 103 requests, 103 messages\n"
    assert rows(replayed) == []
    again = audit("recommend", raw, "--out", tmp_path / "least")
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    printed = audit("recommend", raw)
    assert printed.stdout == (tmp_path / "least" / "recommended-001.yaml").read_text()


def test_replay_names_what_changes(raw: Path, tmp_path: Path) -> None:
    only_x = document("effect: allow, operations: [basic.publish], exchange: x", subjects="{user: alice}")
    result = audit("replay", raw, "--policies", folder(tmp_path / "p", only_x), "--format", "json")
    assert result.exit_code == 1
    assert "allow -> deny: 3 requests, 3 messages\n" in result.stderr
    (row,) = map(json.loads, result.stdout.splitlines())
    assert (row["user"], row["exchange"], row["after"], row["after_rule"]) == (
        "alice",
        "y",
        "deny",
        "default",
    )
    same = audit("replay", raw, "--policies", tmp_path / "p", "--against", tmp_path / "p")
    assert same.exit_code == 0
    assert audit("replay", raw, "--policies", tmp_path / "none").exit_code == 2


def test_granted_names_what_was_not_needed(raw: Path, tmp_path: Path) -> None:
    wide = document("id: all, effect: allow, operations: ['basic.*'], exchange: x", subjects="{user: alice}")
    never = document("id: never, effect: allow, operations: [basic.get]", name="q", subjects="{user: alice}")
    result = audit("granted", raw, "--policies", folder(tmp_path / "p", wide, never), "--format", "csv")
    assert [tuple(row.values()) for row in rows(result)] == [
        ("q", "never", "basic.get", "0", ""),
        ("p", "all", "basic.publish", "100", "2026-11-30T00:00:10Z"),
    ]


def test_granted_writes_the_smaller_policy(raw: Path, tmp_path: Path) -> None:
    rules = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: p}
spec:
  subjects: [{user: alice}]
  rules:
  - {id: all, effect: allow, operations: [basic.publish, 'exchange.*'], exchange: x}
  - {id: late, effect: allow, operations: [basic.publish], exchange: y}
  - {id: old, effect: allow, operations: [basic.publish], exchange: z}
  - {id: never, effect: allow, operations: [basic.get]}
"""
    once = [usage("z", START, 1, exchange="z")]
    write(raw, "usage", table_of("usage", once), gateway="gate-9")
    policies = folder(tmp_path / "p", rules)

    def changed(*options: str) -> list[str]:
        told = audit_locally("granted", raw, "--policies", policies, "--diff", *options)
        lines = [line for line in told.splitlines() if line[0] in "+-" and line[1] == " "]
        return sorted(lines)

    narrowed = [
        "-  - {id: all, effect: allow, operations: [basic.publish, 'exchange.*'], exchange: x}",
        "+  - {id: all, effect: allow, operations: [basic.publish], exchange: x}",
    ]
    gone = "-  - {id: never, effect: allow, operations: [basic.get]}"
    old = "-  - {id: old, effect: allow, operations: [basic.publish], exchange: z}"
    late = "-  - {id: late, effect: allow, operations: [basic.publish], exchange: y}"
    assert changed() == sorted([*narrowed, gone])
    assert changed("--until", "2026-11-29") == sorted([*narrowed, late, gone])
    assert changed("--idle", "3") == sorted([*narrowed, old, gone])
    assert audit("granted", raw, "--policies", policies, "--idle", "3").exit_code == 2


def test_topology_in_all_its_forms(raw: Path, tmp_path: Path) -> None:
    table = rows(audit("topology", raw, "--format", "csv"))
    assert [(row["source"], row["kind"], row["target"], row["messages"]) for row in table] == [
        ("principal alice in /", "publishes", "exchange x in /", "100"),
        ("principal alice in /", "publishes", "exchange y in /", "3"),
        ("exchange x in /", "routes", "queue q in /", "100"),
        ("queue q in /", "delivers", "principal bob in /", "100"),
    ]
    assert audit("topology", raw, "--graph", "mermaid").stdout.startswith("flowchart LR\n")
    assert "<graphml" in audit("topology", raw, "--graph", "graphml").stdout
    assert audit("topology", raw, "--graph", "html", "-o", tmp_path / "t.html").output == ""
    assert "</th></tr></thead>\n<tbody><tr>" in (tmp_path / "t.html").read_text()


def test_a_queue_of_another_virtual_host_is_found(tmp_path: Path) -> None:
    got = {"operation": "basic.get-ok", "queue": "q", "exchange": None, "routing_key": None, "verdict": None}
    records = [usage(vhost, START, user="a", vhost=vhost, **got) for vhost in ("shop", "a\x1b")]
    write(tmp_path, "usage", table_of("usage", records))
    with pytest.raises(subprocess.CalledProcessError) as raised:
        audit_locally("blast-radius", tmp_path, "--queue", "q")
    assert raised.value.stderr == (
        "amqpgate: there is no queue q in / in these records; there is one in a\\x1b, shop: say --vhost\n"
    )


def test_unused_blast_radius_and_drift(raw: Path) -> None:
    (row,) = rows(audit("unused", raw, "--format", "csv"))
    assert (row["kind"], row["name"], row["declared"]) == ("queue", "unread", "2026-11-02T00:00:00Z")
    touched = rows(audit("blast-radius", raw, "--queue", "q", "--format", "csv"))
    assert [(row["hops"], row["touch"], row["name"]) for row in touched] == [
        ("0", "feeds", "alice"),
        ("0", "feels", "bob"),
        ("0", "through", "x"),
    ]
    unknown = audit("blast-radius", raw, "--queue", "qq")
    assert (unknown.exit_code, unknown.stderr) == (
        2,
        "amqpgate: there is no queue qq in / in these records (did you mean 'q'?)\n",
    )
    assert audit("blast-radius", raw).exit_code == 2
    changed = rows(audit("drift", raw, "--before", "2026-11-23", "--after", "2026-11-30", "--format", "csv"))
    assert [(row["change"], row["what"], row["target"]) for row in changed] == [
        ("new", "exchange", ""),
        ("new", "publishes", "exchange y in /"),
    ]


def test_anomalies(raw: Path) -> None:
    found = rows(audit("anomalies", raw, "--until", "2026-12-01", "--format", "csv"))
    assert [(row["kind"], row["user"], row["what"]) for row in found] == [
        ("route", "alice", "basic.publish exchange y")
    ]
    none = audit("anomalies", raw, "--until", "2026-11-02T05:00")
    assert none.exit_code == 2
    assert "there are no records before 2026-11-01T05:00Z to compare with" in none.stderr
