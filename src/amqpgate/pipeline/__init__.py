"""The annexe: jobs over audit records, on Spark or DuckDB (extra ``pipeline``); a library of the same.

In comes a folder of audit records (``records``); out go data frames. A job is a pure function from data
frames to data frames; what starts Spark, reads and writes is apart from it.

``java``        the Java that Spark runs on
``spark``       a session, embedded by default
``folders``     which files of a folder have what is wanted
``contract``    what a file of records has to have
``pages``       whether a Parquet file is as it was written
``frames``      plans that both engines run; ``local_*``: frames over DuckDB, with PySpark's names
``reading``     a folder of records as data frames, and what of it cannot be read
``objects``     records in an object store, as files of this machine
``following``   the same as they come, by batches
``compact``     job: raw records as a table of few files; ``lake`` has tables of open formats
``data_source`` ``spark.read.format("amqpgate")``; ``offsets``: which files a stream has read
``library``     the jobs as functions, which are this package's names
``watch``       what happens, told as alerts
``jobs``        the questions: plans over data frames, and what is made of their rows
``log4j2.properties``  what of Spark's log is shown

Neighbours: sees ``records`` and ``policy``. Of this program only ``cli`` calls it, when a verb of ``amqpgate
audit`` runs; ``__main__`` is the same front door for ``spark-submit``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from amqpgate.pipeline.library import (
        SCHEMAS,
        Records,
        anomalies,
        costs,
        declarations,
        denials,
        granted,
        preflight,
        read,
        recommend,
        register,
        replay,
        topology,
        traffic,
        usage,
    )

__all__ = [
    "SCHEMAS",
    "Records",
    "anomalies",
    "costs",
    "declarations",
    "denials",
    "granted",
    "preflight",
    "read",
    "recommend",
    "register",
    "replay",
    "topology",
    "traffic",
    "usage",
]
_NAMES: Final = frozenset(__all__)


def __getattr__(name: str) -> object:
    """The library is loaded when it is used: verbs of the command line load less."""
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("amqpgate.pipeline.library"), name)
