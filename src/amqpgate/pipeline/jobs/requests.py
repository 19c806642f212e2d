"""Usage records to the requests that were judged: each one once, with how often it came.

A day of a busy gateway has millions of records and a few thousand different requests, so that everything
which costs time per request comes after this.

A publish with the headers CC and BCC asks for several routing keys; a rule may speak of each of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from amqpgate.pipeline.frames import F
from amqpgate.policy import OPERATIONS

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

#: What is summed up per request.
SUMS = ("requests", "messages", "bytes", "first", "last")

#: What the parser says of texts that are none, and of a thousand brackets.
_NO_JSON: Final = (ValueError, RecursionError)

#: The column that `keys_apart` adds: null for what was asked, else one of these.
FURTHER: Final = "further"
KNOWN: Final = "known"
UNKNOWN: Final = "unknown"


def told_in(text: str) -> dict[str, object] | None:
    """The table that a column has as JSON; None where it has another thing, which no gateway writes."""
    try:
        table = json.loads(text)
    except _NO_JSON:
        return None
    return table if isinstance(table, dict) else None


def more_keys_of(text: object) -> list[str | None]:
    """The further routing keys of a record; None for those that it does not tell."""
    if not isinstance(text, str):
        return []
    try:
        keys = json.loads(text)
    except _NO_JSON:
        return [None]
    is_known = isinstance(keys, list) and all(key is None or isinstance(key, str) for key in keys)
    return keys if is_known else [None]


def keys_apart(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Batches of requests with a row for each further key as well, and with a column `FURTHER`."""
    import pyarrow

    for batch in batches:
        keys = batch.column("routing_key").to_pylist()
        found = [
            (place, key, further)
            for place, text in enumerate(batch.column("more_keys").to_pylist())
            for key, further in [
                (keys[place], None),
                *((key, UNKNOWN if key is None else KNOWN) for key in more_keys_of(text)),
            ]
        ]
        columns = {
            name: column.take(pyarrow.array([place for place, _, _ in found], pyarrow.int64()))
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        }
        columns["routing_key"] = pyarrow.array([key for _, key, _ in found], pyarrow.string())
        columns["more_keys"] = pyarrow.nulls(len(found), pyarrow.string())
        columns[FURTHER] = pyarrow.array([further for _, _, further in found], pyarrow.string())
        yield pyarrow.RecordBatch.from_pydict(columns)


def distinct_requests(usage: DataFrame, by: Sequence[str]) -> DataFrame:
    """The requests that policies have judged, by these columns of usage records, with their `SUMS`.

    Those that were refused by no rule are not among them: a transform could not be made.

    ``requests``, ``messages`` and ``bytes`` are sums, ``first`` and ``last`` the first and the last time.
    """
    judged = usage.where(
        ((F.col("verdict") == "allow") | F.col("rule").isNotNull())
        & F.col("vhost").isNotNull()
        & F.col("operation").isin(*OPERATIONS)
    )
    return summed(judged, by)


def summed(rows: DataFrame, by: Sequence[str]) -> DataFrame:
    """One row for all that are alike, with the `SUMS` of theirs."""
    return rows.groupBy(*by).agg(
        F.sum("requests").alias("requests"),
        F.sum("messages").alias("messages"),
        F.sum("bytes").alias("bytes"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
    )
