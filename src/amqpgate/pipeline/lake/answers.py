"""The answer of a verb as a table: each run replaces the rows of the one before in one commit, and history
has both. Alerts are added, each once, by their ids."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from typing import Final

import pyarrow as pa

from amqpgate.pipeline.answers import TOGETHER
from amqpgate.pipeline.batches import together
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.lake.table import Conflict, Lake, LakeTable
from amqpgate.pipeline.lake.writing import add_once, join_small, write

_TRIES: Final = 20


def replace(lake: Lake, name: str, rows: pa.RecordBatchReader) -> None:
    """Have these rows and no others. Raises ``PipelineError`` where columns have other types."""
    schema = pa.schema([pa.field(field.name, _kind(field.type)) for field in rows.schema])
    table = _table(lake, name, schema)
    parts = (part.cast(schema) for part in together(rows, TOGETHER) if len(part))
    first = next(parts, None)
    added = [] if first is None else [write(table, chain([first], parts), None)]
    for _ in range(_TRIES):
        before = table.files()
        if not added and not before:
            return
        try:
            table.commit(added, before)
        except Conflict:
            table = _table(lake, name, schema)
            continue
        return
    for new in added:
        table.remove(new.path)
    raise PipelineError(f"{lake.address}: others changed the table {name} {_TRIES} times: run it again")


def add_alerts(lake: Lake, name: str, alerts: pa.Table) -> None:
    """Have these alerts, which are sorted by id, each once. Raises ``PipelineError``."""

    def load() -> LakeTable:
        return lake.load(name) or lake.create(name, alerts.schema, "time", {})

    _, days = add_once(load, alerts, "id", "time")
    with suppress(Conflict):
        join_small(load(), days)


def _table(lake: Lake, name: str, schema: pa.Schema) -> LakeTable:
    table = lake.load(name)
    if table is None:
        return lake.create(name, schema, None, {})
    table.evolve(schema)
    for field in table.schema:
        if field.name in schema.names and (wanted := schema.field(field.name).type) != _kind(field.type):
            raise PipelineError(
                f"{lake.address}: the table {name} has {_kind(field.type)} in {field.name}, and not {wanted}"
            )
    return table


def _kind(kind: pa.DataType) -> pa.DataType:
    """One that both formats have."""
    if pa.types.is_large_string(kind) or pa.types.is_dictionary(kind) or pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_kind(kind.value_type))
    if pa.types.is_int16(kind):
        return pa.int32()
    return pa.timestamp("us", tz="UTC") if pa.types.is_timestamp(kind) else kind
