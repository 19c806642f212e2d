"""A folder of audit records as a frame of DuckDB: the files that `reading` chooses, by the same rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from typing import TYPE_CHECKING, cast

import pyarrow

from amqpgate.pipeline.contract import Skipped
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import (
    LOCAL,
    RecordSource,
    RecordTable,
    Span,
    chosen,
    look_into_all,
    refuse_damaged,
    refuse_later,
    skipped_of,
    within,
)
from amqpgate.pipeline.json_lines import read_lines
from amqpgate.pipeline.local import files_of, frame_of
from amqpgate.pipeline.places import local_files
from amqpgate.records import TABLES, Sort, arrow_schema

if TYPE_CHECKING:
    from amqpgate.pipeline.local_frames import SqlSession


def read(
    session: SqlSession,
    folder: str | RecordSource,
    sort: Sort,
    span: Span | None = None,
    *,
    leave_out: Container[str] = frozenset(),
) -> RecordTable:
    """As `reading.read`, with frames of DuckDB."""
    span = span or Span()
    source = None if isinstance(folder, str) else folder
    if isinstance(folder, str):
        if (files := local_files(folder)) is None:
            raise PipelineError(f"{folder} is not of this machine")
        parquet, lines = chosen((f"{LOCAL}{path}" for path in files), folder, sort, span, leave_out)
    else:
        parquet, lines = folder.chosen(sort, span, leave_out)
        folder.copy([*parquet, *lines])
    seen = look_into_all(parquet, sort, widened=source is not None and source.is_table)
    skipped = [*skipped_of(seen)]
    versions = {path: look.versions for path, look in seen.items()}
    whole = [path for path in parquet if seen[path].why is None]
    rows: list[dict[str, object]] = []
    for path in lines:
        mine, wrong = read_lines(path, sort)
        versions[path] = Counter(cast("int", row["schema_version"]) for row in mine)
        rows += mine
        if wrong:
            skipped.append(Skipped(path, f"{wrong} lines are no audit records"))
    refuse_later(versions)
    schema = arrow_schema(TABLES[sort])
    tables = []
    if whole:
        refuse_damaged(whole)
        tables.append(
            files_of(session, [(path.removeprefix(LOCAL), seen[path].columns) for path in whole], schema)
        )
    if rows or not whole:
        tables.append(frame_of(session, pyarrow.Table.from_pylist(rows, schema)))
    frame = tables[0] if len(tables) == 1 else tables[0].unionByName(tables[1])
    return RecordTable(
        sort=sort,
        frame=within(frame, sort, span),
        files=len(whole) + len(lines),
        records=sum(versions[path].total() for path in (*whole, *lines)),
        skipped=tuple(Skipped(source.name(one.path), one.why) if source else one for one in skipped),
        paths=tuple(whole),
    )
