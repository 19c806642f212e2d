"""The annexe: jobs over audit records, on Spark (extra ``pipeline``).

In comes a folder of audit records (``records``); out go data frames. A job is a pure function from data
frames to data frames; what starts Spark, reads and writes is apart from it.

``java``        the Java that Spark runs on
``spark``       a session, embedded by default
``folders``     which files of a folder have what is wanted
``contract``    what a file of records has to have
``reading``     a folder of records as data frames, and what of it cannot be read
``objects``     records in an object store, as files of this machine
``following``   the same as they come, by batches
``compact``     job: raw records as a table of few files; ``lake`` has tables of open formats
``usage``       job: messages and bytes per principal and time
``denials``     job: what is refused most
``replay``      job: what other policies would have answered; ``judge``, ``requests``: one record, many
``recommend``   job: the policies that allow what was done; ``templates``, ``names``: keys and names folded;
                ``uses``, ``grants``, ``recommendation``: what was done to rules to documents
``topology``    job: who sends what to whom; ``graph``, ``picture``: what is read off it, how it is drawn
``anomalies``   job: who left their own history
``report``      job: all of that for a person; ``report_rows``, ``report_parts``: frames to tables and plots;
                ``report_page``, ``report_plots``: those as a page
``log4j2.properties``  what of Spark's log is shown

Neighbours: sees ``records`` and ``policy``. Only ``cli`` calls it, when a verb of ``amqpgate audit`` runs;
``__main__`` is the same front door for ``spark-submit``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from amqpgate.pipeline.library import (
        SCHEMAS,
        Records,
        anomalies,
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
