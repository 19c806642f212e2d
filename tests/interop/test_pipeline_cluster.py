"""The same job embedded, and on a standalone Spark of the pip distribution: by URL, and by spark-submit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from amqpgate.pipeline import __main__ as script
from amqpgate.pipeline import java
from tests.support.audit_records import Traffic, write
from tests.support.ports import free_port
from tests.support.processes import Child

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

SPARK = Path(pyspark.__file__).parent
#: The driver, too, must be found on loopback.
CONF = ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What a person exports to use the pip distribution's scripts."""
    home = java.make_home(java.find(), tmp_path / "java")
    return os.environ | {
        "SPARK_HOME": str(SPARK),
        "JAVA_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
    }


@pytest.fixture
def master(tmp_path: Path, environment: dict[str, str]) -> Iterator[str]:
    """A master with one worker."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    start = [SPARK / "bin" / "spark-class"]
    deploy = "org.apache.spark.deploy"
    here = ["--host", "127.0.0.1", "--webui-port", "0"]
    children = [
        Child(
            [*start, f"{deploy}.master.Master", *here, "--port", str(port)],
            log=tmp_path / "master.log",
            env=environment,
        ),
        Child(
            [*start, f"{deploy}.worker.Worker", *here, "--cores", "1", "--memory", "1g", url],
            log=tmp_path / "worker.log",
            env=environment,
        ),
    ]
    try:
        children[1].wait_until(
            lambda: "registered with master" in children[1].output().lower(), timeout=120, what="worker"
        )
        yield url
    finally:
        for child in children:
            child.stop()


def test_the_same_job_runs_anywhere(tmp_path: Path, environment: dict[str, str], master: str) -> None:
    folder = tmp_path / "raw"
    write(folder, "usage", Traffic().usage(5_000), per_file=1_000)
    submit = [SPARK / "bin" / "spark-submit", "--master", master, *CONF, str(script.__file__)]
    commands = {
        "embedded": [sys.executable, "-m", "amqpgate", "audit"],
        "master": [sys.executable, "-m", "amqpgate.pipeline"],
        "submit": submit,
    }
    answers = {}
    for name, command in commands.items():
        more = ["--master", master, *CONF] if name == "master" else []
        job = ["usage", folder, "--per", "day", "--format", "csv", "-o", tmp_path / name, *more]
        subprocess.run([*map(str, command), *map(str, job)], env=environment, check=True, timeout=250)
        answers[name] = (tmp_path / name).read_text()
    assert len(answers["embedded"].splitlines()) > 12
    assert answers["embedded"] == answers["master"] == answers["submit"]
    # Both of them ran there, and nothing fell back to this machine's threads.
    log = (tmp_path / "master.log").read_text()
    assert log.count("Registered app amqpgate audit") == 2
