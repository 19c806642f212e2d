"""Records in lines of JSON, read by Python."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import cast

import pyarrow

from amqpgate.pipeline.contract import required
from amqpgate.pipeline.folders import LINE, LOCAL
from amqpgate.records import TABLES, Sort, arrow_schema


def read_lines(path: str, sort: Sort) -> tuple[list[dict[str, object]], int]:
    """The records of a sort in lines of JSON, and how many lines are none of any sort."""
    schema = arrow_schema(TABLES[sort])
    found: list[dict[str, object]] = []
    wrong = 0
    with pyarrow.input_stream(path.removeprefix(LOCAL), compression="detect") as file:
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
