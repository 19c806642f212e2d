"""Which engine a job runs on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.frames import Engine
from amqpgate.pipeline.masters import is_submitted
from amqpgate.pipeline.places import local_files, local_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from amqpgate.pipeline.folders import RecordSource, Span

#: Files of at most so many bytes are looked at in this process: 70 million records in Parquet. Of 50 million
#: each verb takes a sixth to two fifths of the CPU that it takes on Spark (`python -m tests.bench.pipeline`).
MOST_LOCAL: Final = 2 << 30
#: With more, Spark's Java has the time to become fast: 10 million records take the same CPU either way.
_MOST_SHORT: Final = 256 << 20


def choose(
    folder: str | RecordSource,
    asked: Literal["auto", "local", "spark"],
    *,
    span: Callable[[], Span] | None = None,
    is_sparks: bool = False,
    is_any_size: bool = False,
) -> Engine:
    """The engine for that folder, or for the records of a span in it. ``is_sparks``: the job, or an option of
    it, is only Spark's. ``is_any_size``: the job takes less without Spark however much there is.

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
    return "local" if is_any_size or _size_of(folder, span) <= MOST_LOCAL else "spark"


def is_long(folder: str | RecordSource, span: Callable[[], Span] | None = None) -> bool:
    """Whether a job over that takes Spark half a minute; never of a folder that only others read."""
    return _size_of(folder, span) > _MOST_SHORT


def _size_of(folder: str | RecordSource, span: Callable[[], Span] | None) -> int:
    """Bytes of its files, or, where that may decide, of those that may have records of the span."""
    if isinstance(folder, str):
        size = sum(local_size(str(path)) for path in local_files(folder) or ())
    else:
        size = folder.size
    if size <= _MOST_SHORT or span is None:
        return size
    # It loads numpy, which takes a small job longer than its answer.
    from amqpgate.pipeline.folders import chosen_of
    from amqpgate.records import TABLES

    found = (chosen_of(folder, sort, span(), ()) for sort in TABLES)
    # Files of lines may have both sorts.
    paths = {path for parquet, lines in found for path in (*parquet, *lines)}
    return sum(map(local_size if isinstance(folder, str) else folder.size_of, paths))
