"""Replay: what a candidate folder of policies would have answered to all that was asked.

Distinct requests come first, then one decision each (`judge`), by the same code that enforces. The policies
travel to the executors as text and are loaded once per process; `amqpgate` must be installed there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from amqpgate.pipeline.frames import F, with_columns
from amqpgate.pipeline.jobs.judge import ASKED, columns_asked, judge_of
from amqpgate.pipeline.jobs.requests import distinct_requests
from amqpgate.policy import Source, build
from amqpgate.policy.kinds.common import DefaultAccess

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column, DataFrame

    _Batches: TypeAlias = Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]

#: The columns of `changes` and `undecided`.
SCHEMA: Final = (
    "user string, vhost string, operation string, exchange string, routing_key string, more_keys string, "
    "queue string, destination string, passive boolean, before string, before_policy string, "
    "before_rule string, after string, after_policy string, after_rule string, requests bigint, "
    "messages bigint, first timestamp, last timestamp"
)

#: What the record says was decided, and under which policies.
_RECORDED = ("verdict", "policy", "rule", "policy_digest")


def replay(
    usage: DataFrame,
    candidate: Sequence[Source],
    against: Sequence[Source] | None = None,
    default_access: DefaultAccess = "allow",
) -> DataFrame:
    """The distinct requests with two answers each.

    ``before`` is what was recorded, or what the policies ``against`` answer; ``after`` is what the candidate
    does, by ``default_access`` where no access policy selects; with ``_policy`` and ``_rule`` for who
    decides. ``depends``: the record does not tell enough. Columns: who asked, as far as the policies care;
    what for; the sums of `distinct_requests`.
    """
    needed = dict.fromkeys(columns_asked(build(candidate)))
    if against is not None:
        needed |= dict.fromkeys(columns_asked(build(against)))
    requests = distinct_requests(usage, [*needed, *ASKED, *_RECORDED])
    after = judged(requests, candidate, "after", default_access)
    if against is None:
        columns = {"verdict": "before", "policy": "before_policy", "rule": "before_rule"}
        before = after.withColumnsRenamed(columns).drop("policy_digest")
        return before.withColumn("before", F.coalesce("before", F.lit("depends")))
    return judged(after, against, "before", default_access).drop(*_RECORDED)


def judged(
    requests: DataFrame, sources: Sequence[Source], name: str, default_access: DefaultAccess = "allow"
) -> DataFrame:
    """The requests with three more columns: the answer (``name``), ``name``_policy and ``name``_rule."""
    added = [name, f"{name}_policy", f"{name}_rule"]
    judging = _judging(tuple(sources), default_access, tuple(added))
    return with_columns(requests, judging, dict.fromkeys(added, "string"))


def _judging(sources: tuple[Source, ...], default_access: DefaultAccess, added: tuple[str, ...]) -> _Batches:
    def judge(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        judge = judge_of(sources, default_access)
        for batch in batches:
            asked = [
                one
                for one in batch.schema.names
                if one not in ("requests", "messages", "bytes", "first", "last")
            ]
            answers = [judge.answer(row) for row in batch.select(asked).to_pylist()]
            columns: list[list[str | None]] = [
                [answer.outcome for answer in answers],
                [answer.policy for answer in answers],
                [answer.rule for answer in answers],
            ]
            arrays = [pyarrow.array(column, pyarrow.string()) for column in columns]
            yield pyarrow.RecordBatch.from_arrays(
                [*batch.columns, *arrays], names=[*batch.schema.names, *added]
            )

    return judge


def summary(replayed: DataFrame) -> DataFrame:
    """How many requests and messages have which answers: before, after, requests, messages."""
    return (
        replayed.groupBy("before", "after")
        .agg(F.sum("requests").alias("requests"), F.sum("messages").alias("messages"))
        .orderBy("before", "after")
    )


def changes(replayed: DataFrame) -> DataFrame:
    """The requests whose answer changes, those with the most messages first.

    Those of which the record does not tell enough are not among them: `undecided`.
    """
    return _shown(replayed.where((F.col("before") != F.col("after")) & _is_certain()))


def undecided(replayed: DataFrame) -> DataFrame:
    """The requests of which the record does not tell enough."""
    return _shown(replayed.where(~_is_certain()))


def _is_certain() -> Column:
    return (F.col("before") != "depends") & (F.col("after") != "depends")


def _shown(replayed: DataFrame) -> DataFrame:
    """Without what tells requests apart only for the judge."""
    by = [
        *("user", "vhost", "operation", "exchange", "routing_key", "more_keys", "queue", "destination"),
        "passive",
        *("before", "before_policy", "before_rule", "after", "after_policy", "after_rule"),
    ]
    return (
        replayed.groupBy(*by)
        .agg(
            F.sum("requests").alias("requests"),
            F.sum("messages").alias("messages"),
            F.min("first").alias("first"),
            F.max("last").alias("last"),
        )
        .orderBy(F.desc("messages"), F.desc("requests"), *by)
    )
