"""Runs of `amqpgate audit` are told: events of OpenLineage to a receiver, metrics to Prometheus."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

from amqpgate.cli.audit_lineage import named
from amqpgate.cli.audit_metrics import MetricsFile
from amqpgate.cli.audit_told import RunFacts
from tests.support.audit_records import START, table_of, usage, write
from tests.support.audit_verbs import audit_locally
from tests.support.ports import free_port
from tests.support.prometheus import program

SPEC = Path(__file__).parents[3] / "spec" / "openlineage"
#: The facets that are sent, by the schema of each.
FACETS = {
    "schema": "SchemaDatasetFacet",
    "inputStatistics": "InputStatisticsInputDatasetFacet",
    "processing_engine": "ProcessingEngineRunFacet",
    "errorMessage": "ErrorMessageRunFacet",
    "jobType": "JobTypeJobFacet",
}


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    records = [usage(f"u-{number}", START, 10, routing_key="k") for number in range(7)]
    write(tmp_path / "raw", "usage", table_of("usage", records))
    (tmp_path / "raw" / "usage" / "date=2026-11-02" / "cut.parquet").write_bytes(b"PAR1")
    return tmp_path / "raw"


@contextmanager
def receiver() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that takes events, and what it got."""
    got: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/api/v1/lineage"
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", got
        finally:
            server.shutdown()
            thread.join()


def check(event: dict[str, Any]) -> None:
    """Whether it and its facets are valid by the schemas that were published."""
    schemas = {path.stem: json.loads(path.read_text()) for path in SPEC.glob("*.json")}
    for path in SPEC.glob("*.json"):
        assert hashlib.sha256(path.read_bytes()).hexdigest() in (SPEC / "README.md").read_text()
    registry: Registry[Any] = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema)) for schema in schemas.values()
    )
    validate = jsonschema.Draft202012Validator(
        schemas["OpenLineage"], registry=registry, format_checker=jsonschema.FormatChecker()
    ).validate
    validate(event)
    things = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
    facets = [
        (name, facet)
        for thing in things
        for key in ("facets", "inputFacets", "outputFacets")
        for name, facet in thing.get(key, {}).items()
        if name in FACETS
    ]
    assert facets
    for name, facet in facets:
        schema = schemas[FACETS[name]]
        jsonschema.Draft202012Validator(schema, registry=registry).validate({name: facet})
        assert facet["_producer"].startswith("https://github.com/amqpgate/")


def test_a_receiver_hears_of_start_and_end(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiver() as (url, got):
        monkeypatch.setenv("OPENLINEAGE_URL", url)
        audit_locally("usage", raw, "--format", "csv", "-o", tmp_path / "usage.csv", "--lineage")
        with pytest.raises(subprocess.CalledProcessError):
            audit_locally("usage", tmp_path / "none", "--lineage")
    for event in got:
        check(event)
    assert [event["eventType"] for event in got] == ["START", "COMPLETE", "START", "FAIL"]
    assert [event["job"]["name"] for event in got] == ["audit.usage"] * 4
    assert got[0]["run"]["runId"] == got[1]["run"]["runId"] != got[2]["run"]["runId"]
    complete, failed = got[1], got[3]
    (read,) = complete["inputs"]
    assert (read["namespace"], read["name"]) == ("file", f"{raw}/usage")
    assert read["inputFacets"]["inputStatistics"]["rowCount"] == 7
    assert {"name": "record_id", "type": "string"} in [
        {key: field[key] for key in ("name", "type")} for field in read["facets"]["schema"]["fields"]
    ]
    assert [(one["namespace"], one["name"]) for one in complete["outputs"]] == [
        ("file", str(tmp_path / "usage.csv"))
    ]
    assert complete["run"]["facets"]["processing_engine"]["name"] == "duckdb"
    assert "no such file or folder" in failed["run"]["facets"]["errorMessage"]["message"]


def test_into_a_file_and_where_nobody_hears_it(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "openlineage.yml"
    log = tmp_path / "events"
    settings.write_text(f"transport: {{type: file, log_file_path: {log}, append: true}}\n")
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(settings))
    audit_locally("compact", raw, f"delta:{tmp_path / 'lake'}", "--lineage")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    for event in events:
        check(event)
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"]
    assert [one["name"] for one in events[1]["outputs"]] == [
        f"{tmp_path / 'lake'}/{sort}" for sort in ("events", "usage")
    ]
    log.unlink()
    audit_locally("usage", raw, "--per", "month", "--to", f"delta:{tmp_path / 'answers'}", "--lineage")
    table = tmp_path / "answers" / "usage_by_month"
    assert table.is_dir()
    for line in log.read_text().splitlines():
        assert [one["name"] for one in json.loads(line)["outputs"]] == [str(table)]
    settings.write_text(
        f"transport: {{type: http, url: 'http://127.0.0.1:{free_port()}', retry: {{total: 0}}}}\n"
    )
    # The answer is worth more.
    assert "alice" in audit_locally("usage", raw, "--lineage")


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("/srv/audit", ("file", "/srv/audit")),
        ("file:///srv/audit", ("file", "/srv/audit")),
        ("delta:/srv/lake", ("file", "/srv/lake")),
        ("s3a://bucket/a/b/", ("s3://bucket", "a/b")),
        ("delta:s3://bucket/a", ("s3://bucket", "a")),
        ("iceberg://prod/audit", ("iceberg://prod", "audit")),
        ("hdfs://somebody:secret@host:8020/a", ("hdfs://host:8020", "a")),
    ],
)
def test_how_places_are_named(place: str, expected: tuple[str, str]) -> None:
    assert named(place) == expected


def sample(path: Path, name: str) -> dict[str, float]:
    """The values of a metric, by what is within its braces."""
    lines = [
        line for line in path.read_text().splitlines() if line.startswith(f"amqpgate_audit_job_{name}{{")
    ]
    return {line.partition("{")[2].partition("}")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_metrics_of_runs(raw: Path, tmp_path: Path) -> None:
    path = tmp_path / "usage.prom"
    audit_locally("usage", raw, "--metrics", path)
    verb = 'verb="usage"'
    assert sample(path, "success") == {verb: 1}
    assert sample(path, "read_records") == {f'table="usage",{verb}': 7}
    assert sample(path, "skipped_files") == {f'table="usage",{verb}': 1}
    assert 0 < sample(path, "duration_seconds")[verb] < 600
    before = sample(path, "last_success_timestamp_seconds")
    with pytest.raises(subprocess.CalledProcessError):
        audit_locally("usage", tmp_path / "none", "--metrics", path)
    assert sample(path, "success") == {verb: 0}
    assert sample(path, "last_success_timestamp_seconds") == before
    assert sample(path, "last_run_timestamp_seconds")[verb] > before[verb]
    checked = subprocess.run(
        [program("promtool"), "check", "metrics"],
        input=path.read_bytes(),
        capture_output=True,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, b"")


def test_a_first_run_that_fails_has_no_last_success(tmp_path: Path) -> None:
    path = tmp_path / "a.prom"
    facts = RunFacts("report", "audit")
    facts.has_ended("no")
    MetricsFile(path).ends(facts)
    assert sample(path, "last_success_timestamp_seconds") == {}
    assert sample(path, "success") == {'verb="report"': 0}


def test_the_alerts_of_the_documents(tmp_path: Path) -> None:
    text = (SPEC.parents[1] / "docs" / "audit.md").read_text()
    (rules,) = [part for part in text.split("```yaml\n") if part.startswith("# audit-alerts.yaml")]
    path = tmp_path / "rules.yaml"
    path.write_text(rules.partition("```")[0])
    test = {
        "rule_files": [str(path)],
        "tests": [
            {
                "interval": "1h",
                "input_series": [
                    {"series": f'amqpgate_audit_job_{name}{{verb="usage"}}', "values": values}
                    for name, values in (
                        ("last_success_timestamp_seconds", "0x60"),
                        ("skipped_files", "0x30 1x30"),
                    )
                ],
                "alert_rule_test": [
                    {"eval_time": when, "alertname": name, "exp_alerts": [{}] if fires else []}
                    for name, when, fires in (
                        ("AmqpgateAuditJobStale", "48h", False),
                        ("AmqpgateAuditRecordsLeftOut", "20h", False),
                    )
                ],
                "promql_expr_test": [
                    {
                        "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})',
                        "eval_time": "50h",
                        "exp_samples": [{"labels": "{}", "value": 1}],
                    }
                    for name in ("AmqpgateAuditJobStale", "AmqpgateAuditRecordsLeftOut")
                ],
            }
        ],
    }
    (tmp_path / "test.yaml").write_text(json.dumps(test))
    told = subprocess.run(
        [program("promtool"), "test", "rules", tmp_path / "test.yaml"], capture_output=True, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr
