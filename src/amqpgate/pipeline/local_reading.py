"""A folder of audit records as a frame of DuckDB: the files that `reading` chooses, by the same rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from typing import TYPE_CHECKING

from amqpgate.pipeline.contract import Skipped
from amqpgate.pipeline.folders import (
    RecordSource,
    RecordTable,
    Span,
    chosen_of,
    look_into_all,
    refuse_damaged,
    refuse_later,
    skipped_of,
    within,
)
from amqpgate.pipeline.json_lines import LinesSeen, read_lines, readable
from amqpgate.pipeline.local import files_of, frame_of_batches
from amqpgate.pipeline.places import LOCAL
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
    parquet, lines = chosen_of(folder, sort, span, leave_out)
    if source is not None:
        source.copy([*parquet, *lines])
    seen = look_into_all(parquet, sort, widened=source is not None and source.is_table)
    versions = {path: look.versions for path, look in seen.items()}
    refuse_later(versions)
    whole = [path for path in parquet if seen[path].why is None]
    in_order, broken = readable(lines)
    found = {path: LinesSeen() for path in in_order}
    frames = []
    if whole:
        refuse_damaged(whole)
        names = [(path.removeprefix(LOCAL), seen[path].columns) for path in whole]
        frames.append(files_of(session, names, arrow_schema(TABLES[sort])))
    if in_order or not whole:
        batches = (batch for path in in_order for batch in read_lines(path, sort, found[path]))
        frames.append(frame_of_batches(session, arrow_schema(TABLES[sort]), batches))
    of_lines = {path: one.versions for path, one in found.items()}
    refuse_later(of_lines)
    wrong = [each for path, one in found.items() for each in one.skipped(path)]
    frame = frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])
    return RecordTable(
        sort=sort,
        frame=within(frame, sort, span),
        files=len(whole) + len(in_order),
        records=sum(versions[path].total() for path in whole) + sum(map(Counter.total, of_lines.values())),
        skipped=tuple(
            Skipped(source.name(one.path), one.why) if source else one
            for one in (*skipped_of(seen), *broken, *wrong)
        ),
        paths=tuple(whole),
    )
