"""Usage records to the requests that were judged: each one once, with how often it came.

A day of a busy gateway has millions of records and a few thousand different requests, so that everything
which costs time per request comes after this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from amqpgate.pipeline.frames import F
from amqpgate.policy import OPERATIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What is summed up per request.
SUMS = ("requests", "messages", "bytes", "first", "last")


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
    return judged.groupBy(*by).agg(
        F.sum("requests").alias("requests"),
        F.sum("messages").alias("messages"),
        F.sum("bytes").alias("bytes"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
    )
