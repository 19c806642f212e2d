"""A local verb loads neither numpy nor pandas nor Spark; others may, later."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from amqpgate.pipeline.lean_arrow import load_arrow
load_arrow()
from amqpgate.pipeline import local, local_reading
from amqpgate.pipeline.jobs import anomalies, denials, topology, usage
import pyarrow
times = pyarrow.table({"a": pyarrow.array([0], pyarrow.timestamp("us", tz="UTC"))})
assert len(local.start().range(3).collect()) == 3 and len(times.to_pylist()) == 1
print(sorted({"numpy", "pandas", "pyspark", "matplotlib"} & sys.modules.keys()))
import numpy
print(numpy.array([1]).tolist())
"""


def test_nothing_is_loaded_that_an_answer_does_not_need() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[:2] == ["[]", "[1]"], done.stderr
