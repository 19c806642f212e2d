"""Which engine a job runs on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.frames import Engine
from amqpgate.pipeline.masters import is_submitted
from amqpgate.pipeline.places import local_files

if TYPE_CHECKING:
    from amqpgate.pipeline.folders import RecordSource

#: Files of at most so many bytes are looked at in this process: 70 million records in Parquet. Of 50 million
#: each verb takes a sixth to two fifths of the CPU that it takes on Spark (`python -m tests.bench.pipeline`).
MOST_LOCAL: Final = 2 << 30
#: With more, Spark's Java has the time to become fast: 10 million records take the same CPU either way.
_MOST_SHORT: Final = 256 << 20


def choose(
    folder: str | RecordSource,
    asked: Literal["auto", "local", "spark"],
    *,
    is_sparks: bool = False,
    is_any_size: bool = False,
) -> Engine:
    """The engine for that folder. ``is_sparks``: the job, or an option of it, is only Spark's.
    ``is_any_size``: the job takes less without Spark however much there is.

    Raises ``PipelineError`` where there is no such folder, or it is not for the engine that was asked for.
    """
    files = local_files(folder) if isinstance(folder, str) else None
    if asked == "local" and is_sparks:
        raise PipelineError("--engine local has no --master, --conf and, but for compact, --follow")
    if asked == "local" and files is None and isinstance(folder, str):
        raise PipelineError(f"{folder} is not of this machine: use --engine spark")
    if asked != "auto":
        return asked
    if is_sparks or is_submitted() or (files is None and isinstance(folder, str)):
        return "spark"
    return "local" if is_any_size or _size_of(folder) <= MOST_LOCAL else "spark"


def is_long(folder: str | RecordSource) -> bool:
    """Whether a job over that folder takes Spark half a minute; never of one that only others read."""
    return _size_of(folder) > _MOST_SHORT


def _size_of(folder: str | RecordSource) -> int:
    return sum(map(_size, local_files(folder) or ())) if isinstance(folder, str) else folder.size


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
