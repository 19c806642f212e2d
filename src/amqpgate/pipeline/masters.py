"""Where Spark would run, known without Spark."""

from __future__ import annotations

import os
from typing import Final

#: All cores of this machine, in one process.
EMBEDDED: Final = "local[*]"


def is_embedded(master: str | None) -> bool:
    """Whether `spark.start` would have Spark in this process."""
    named = chosen(master)
    return named is not None and named.startswith("local")


def is_connect(master: str | None) -> bool:
    """Whether it is a server of Spark Connect."""
    return master is not None and master.startswith("sc://")


def chosen(master: str | None) -> str | None:
    """The master that was asked for, or Spark in this process; None is spark-submit's own."""
    return master or (None if is_submitted() else EMBEDDED)


def is_submitted() -> bool:
    """Whether spark-submit started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
