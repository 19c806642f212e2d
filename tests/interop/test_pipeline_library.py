"""The library where it is at home: Spark Connect, a notebook, and a declarative pipeline."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import nbformat
import pyspark
import pytest
from nbclient import NotebookClient

from amqpgate.pipeline import java
from tests.support.audit_records import Traffic, table_of, write
from tests.support.ports import free_port
from tests.support.processes import Child

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.timeout(1_800),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

ROOT = Path(__file__).parents[2]
SPARK = Path(pyspark.__file__).parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("records")
    month = Traffic(services=3)
    write(made, "usage", month.usage(2_000, span=timedelta(days=3)), per_file=500)
    write(made, "events", table_of("events", month.events(3)))
    return made


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> dict[str, str]:
    home = java.make_home(java.find(), tmp_path_factory.mktemp("java"))
    return os.environ | {
        "SPARK_HOME": str(SPARK),
        "JAVA_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "AMQPGATE_AUDIT": str(folder),
        "AMQPGATE_POLICIES": str(ROOT / "policies"),
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Iterator[str]:
    """Spark Connect, with one thread."""
    port = free_port()
    where = tmp_path_factory.mktemp("connect")
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(where / "warehouse"),
        "spark.ui.enabled": "false",
    }
    command = [SPARK / "bin/spark-submit", "--master", "local[1]", "--class"]
    command += ["org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    child = Child([*command, "spark-internal"], log=where / "log", env=environment, cwd=where)
    try:
        child.wait_until(lambda: "Spark Connect server started" in child.output(), timeout=300, what="server")
        yield f"sc://127.0.0.1:{port}"
    finally:
        child.stop()


def audit(environment: dict[str, str], *words: object) -> str:
    command = [sys.executable, "-m", "amqpgate", "audit", *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert (done.returncode, done.stderr) in ((0, ""), (1, done.stderr)), done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "job",
    [
        ("usage", "--per", "day"),
        ("denials",),
        ("replay", "--policies", ROOT / "policies"),
        ("topology",),
        ("preflight",),
    ],
    ids=lambda job: str(job[0]),
)
def test_a_server_of_spark_connect_says_the_same(
    server: str, environment: dict[str, str], folder: Path, job: tuple[object, ...]
) -> None:
    verb, *words = job
    words += ["--format", "csv"]
    here = audit(environment, verb, folder, *words, "--engine", "local")
    assert audit(environment, verb, folder, *words, "--master", server) == here
    assert len(here.splitlines()) > 1 or verb == "preflight"


def test_the_notebook_runs(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AMQPGATE_AUDIT", "AMQPGATE_POLICIES", "PYSPARK_PYTHON"):
        monkeypatch.setenv(name, environment[name])
    notebook = nbformat.read(ROOT / "examples/audit.ipynb", as_version=4)
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=900, kernel_name="python3").execute()
    said = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ()))
    assert "service-0" in said
    assert "payments" in said
    assert "session.open" in said


def test_the_declarative_pipeline_runs(
    server: str, environment: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    project = tmp_path / "lakehouse"
    shutil.copytree(ROOT / "examples/lakehouse", project)
    spec = project / "spark-pipeline.yml"
    text = spec.read_text().replace("file:///srv/lakehouse/storage", f"file://{tmp_path}/storage")
    spec.write_text(text.replace("/var/lib/amqpgate/audit", str(folder)))
    command = [SPARK / "bin/spark-pipelines", "run", "--spec", spec, "--remote", server]
    done = subprocess.run(
        list(map(str, command)),
        env=environment,
        cwd=project,
        capture_output=True,
        text=True,
        timeout=1_500,
        check=False,
    )
    said = done.stdout + done.stderr
    assert "Run is COMPLETED" in said, said
    # Then Spark 4.3.0's command stumbles over what its own Python workers report.
    assert done.returncode == 0 or "__python_accumulator__" in said, said
    asking = (
        "from pyspark.sql import SparkSession\n"
        f"spark = SparkSession.builder.remote({server!r}).getOrCreate()\n"
        "print(spark.table('bronze_usage').count(), spark.table('silver_usage').count())\n"
        "print(spark.table('gold_usage_by_day').agg({'published': 'sum'}).first()[0])\n"
        "print(spark.table('gold_denials').count())\n"
    )
    asked = subprocess.run(
        [sys.executable, "-c", asking],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    )
    rows, published, denials = asked.stdout.splitlines()[-3:]
    assert rows == "2000 2000"
    bill = audit(environment, "usage", folder, "--per", "day", "--format", "csv")
    names, *lines = (line.split(",") for line in bill.splitlines())
    assert int(published) == sum(int(line[names.index("published")]) for line in lines)
    assert int(denials) == len(audit(environment, "denials", folder, "--format", "csv").splitlines()) - 1
