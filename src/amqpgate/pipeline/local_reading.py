"""A folder of audit records as a frame of DuckDB: the files that `reading` chooses, by the same rules."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Container, Mapping
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final, cast

import pyarrow
import pyarrow.dataset

from amqpgate.pipeline.contract import Skipped, required
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.local import frame_of, register
from amqpgate.pipeline.objects import Objects
from amqpgate.pipeline.places import local_files
from amqpgate.pipeline.reading import (
    LINE,
    RecordTable,
    Span,
    chosen,
    look_into_all,
    refuse_later,
    skipped_of,
    within,
)
from amqpgate.records import TABLES, Sort, arrow_schema

if TYPE_CHECKING:
    from sqlframe.duckdb import DuckDBSession

_LOCAL: Final = "file://"


def read(
    session: DuckDBSession,
    folder: str | Objects,
    sort: Sort,
    span: Span | None = None,
    *,
    leave_out: Container[str] = frozenset(),
) -> RecordTable:
    """As `reading.read`, with frames of DuckDB."""
    span = span or Span()
    if isinstance(folder, Objects):
        found = folder.paths()
    elif (files := local_files(folder)) is not None:
        found = [f"{_LOCAL}{path}" for path in files]
    else:
        raise PipelineError(f"{folder} is not of this machine")
    parquet, lines = chosen(found, folder, sort, span, leave_out)
    if isinstance(folder, Objects):
        folder.copy([*parquet, *lines])
    seen = look_into_all(parquet, sort)
    skipped = [*skipped_of(seen)]
    versions = {path: look.versions for path, look in seen.items()}
    whole = [path for path in parquet if seen[path].why is None]
    rows: list[dict[str, object]] = []
    for path in lines:
        mine, wrong = _lines(path, sort)
        versions[path] = Counter(cast("int", row["schema_version"]) for row in mine)
        rows += mine
        if wrong:
            skipped.append(Skipped(path, f"{wrong} lines are no audit records"))
    refuse_later(versions)
    schema = arrow_schema(TABLES[sort])
    tables = []
    if whole:
        names = [path.removeprefix(_LOCAL) for path in whole]
        options = pyarrow.dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
        parquets = pyarrow.dataset.ParquetFileFormat(default_fragment_scan_options=options)
        tables.append(register(session, pyarrow.dataset.dataset(names, schema=schema, format=parquets)))
    if rows or not whole:
        tables.append(frame_of(session, pyarrow.Table.from_pylist(rows, schema)))
    frame = tables[0] if len(tables) == 1 else tables[0].unionByName(tables[1])
    return RecordTable(
        sort=sort,
        frame=within(frame, sort, span),
        files=len(whole) + len(lines),
        records=sum(versions[path].total() for path in (*whole, *lines)),
        skipped=tuple(
            Skipped(folder.name(one.path), one.why) if isinstance(folder, Objects) else one for one in skipped
        ),
        paths=tuple(whole),
    )


def _lines(path: str, sort: Sort) -> tuple[list[dict[str, object]], int]:
    """The records of a sort in lines of JSON, and how many lines are none of any sort."""
    schema = arrow_schema(TABLES[sort])
    found: list[dict[str, object]] = []
    wrong = 0
    with pyarrow.input_stream(path.removeprefix(_LOCAL), compression="detect") as file:
        for line in TextIOWrapper(file, "utf-8", "replace"):
            if not line.strip():
                continue
            try:
                said = json.loads(line)
                if said["record"] == LINE[sort]:
                    found.append(_record(said, schema, sort))
                elif said["record"] not in LINE.values():
                    wrong += 1
            except (ValueError, KeyError, TypeError):
                wrong += 1
    return found, wrong


def _record(said: Mapping[str, object], schema: pyarrow.Schema, sort: Sort) -> dict[str, object]:
    """Its columns. Raises ``ValueError`` or ``TypeError`` where one is not as it should be."""
    row = {field.name: _value(said.get(field.name), field.type) for field in schema}
    if any(row[name] is None for name in required(sort)):
        raise ValueError("no record")
    return row


def _value(value: object, kind: pyarrow.DataType) -> object:
    if value is None:
        return None
    if pyarrow.types.is_timestamp(kind):
        moment = datetime.fromisoformat(cast("str", value))
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if pyarrow.types.is_binary(kind):
        return base64.b64decode(cast("str", value), validate=True)
    plain = bool if pyarrow.types.is_boolean(kind) else int if pyarrow.types.is_integer(kind) else str
    if type(value) is not plain:
        raise TypeError(f"{value!r} is no {plain.__name__}")
    if plain is int and not -(1 << kind.bit_width - 1) <= cast("int", value) < 1 << kind.bit_width - 1:
        raise ValueError(f"{value} is too large")
    return value
