"""One Spark session for all tests: a start takes seconds."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

# Before a local verb hides it from pyarrow in this process: Spark's tests need it.
import pandas  # noqa: F401
import pytest
from pyspark.sql import SparkSession

from amqpgate.pipeline import local
from amqpgate.pipeline.local_frames import SqlSession
from amqpgate.pipeline.spark import start
from tests.support.audit_plans import Plans


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Spark leaves files and sockets open when a query fails or is stopped."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))


@pytest.fixture(scope="package", autouse=True)
def _sweep() -> Iterator[None]:
    """What it left is not found in other tests."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """An embedded Spark with one thread. For a few rows, compiling each plan would be most of the work."""
    session = start(
        "local[1]",
        {
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        },
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def duck() -> Iterator[SqlSession]:
    """An embedded DuckDB."""
    session = local.start()
    yield session
    session.stop()


@pytest.fixture(scope="module", params=["local", "spark"])
def plans(request: pytest.FixtureRequest) -> Plans:
    """Each engine. Tests of plans alone are for both."""
    return Plans(request.param, request.getfixturevalue("duck" if request.param == "local" else "spark"))


#: What tells a verb which settings the session has that all tests share.
SETTINGS = ["--conf", "spark.sql.shuffle.partitions=1", "--conf", "spark.sql.adaptive.enabled=false"]


@pytest.fixture
def running(spark: SparkSession) -> Iterator[None]:
    """A verb of the command line finds Spark running."""
    home = os.environ["JAVA_HOME"]
    yield
    os.environ["JAVA_HOME"] = home
