"""Recommend: what was done, folded on the cluster, to the policies that allow just this.

Counted are operations that were allowed. Keys and names are folded where the records are, so that what comes
to this process is bounded: ids that differ count once (`templates.shape_of`, `names.shape_of`); of routing
keys that one user publishes to one exchange, if more than `MAX_SHAPES` are left, only the first word counts,
or only how many words there are; and more than `MAX_USES` altogether are an error that says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

import attrs

from amqpgate.errors import ConfigError
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.frames import F, rows_of, with_columns
from amqpgate.pipeline.jobs import names, templates
from amqpgate.pipeline.jobs.bound_with import arguments_of
from amqpgate.pipeline.jobs.judge import ASKED, columns_asked
from amqpgate.pipeline.jobs.recommendation import Recommendation, recommend_for
from amqpgate.pipeline.jobs.replay import judged
from amqpgate.pipeline.jobs.requests import (
    FURTHER,
    KNOWN,
    SUMS,
    UNKNOWN,
    distinct_requests,
    keys_apart,
    summed,
)
from amqpgate.pipeline.jobs.templates import DEFAULT, MARK, TemplateBounds
from amqpgate.pipeline.jobs.uses import Evidence, Use
from amqpgate.pipeline.kinds import Kind
from amqpgate.policy import OPERATIONS, Source, build
from amqpgate.policy.engine.operations import SERVER_NAMED
from amqpgate.policy.tools.writing import flow

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column, DataFrame

#: Shapes of the routing keys that one user publishes to one exchange.
MAX_SHAPES: Final = 2_000

#: Uses that one process takes.
MAX_USES: Final = 200_000

#: Pieces of a key or name whose values are told apart; those that come later count as different.
_PIECES: Final = 4

#: Arguments of declares that lead to publishes (`amqpgate.policy.engine.verdicts.further`).
_LEADS = {
    "dead_letters_to": "x-dead-letter-exchange",
    "dead_letter_key": "x-dead-letter-routing-key",
    "alternate": "alternate-exchange",
}


#: Who did what to what, apart from the names that are folded.
_ASKED: Final = (
    *("user", "vhost", "operation", "exchange", "destination", "passive", "foreign", "any_key"),
    *("routing_key_is_template", "bound_with", *_LEADS),
)
#: What makes requests different here.
REQUEST: Final = (*_ASKED, "routing_key", "more_keys", "queue")
#: And whether the key was in CC or BCC.
_BY: Final = (*_ASKED, FURTHER)

#: The columns of `granted`.
GRANTED_SCHEMA: Final = "policy string, rule string, operation string, requests bigint, last timestamp"

_ADDED: Final[Mapping[str, Kind]] = {
    FURTHER: "string",
    "key_shape": "string",
    "key_pieces": "strings",
    "queue_shape": "string",
    "queue_pieces": "strings",
}


def recommend(usage: DataFrame, bounds: TemplateBounds = DEFAULT) -> Recommendation:
    """The policies. Raises ``PipelineError`` for more than `MAX_USES`, or than a folder may have."""
    return recommend_of(requests_of(usage), bounds)


def recommend_of(requests: DataFrame, bounds: TemplateBounds = DEFAULT) -> Recommendation:
    """The same, by what `requests_of` records gives."""
    # Spark would hand times out in the time zone of this process.
    times = {name: F.unix_seconds(name) for name in ("first", "last")}
    rows = [
        SimpleNamespace(**row) for row in rows_of(folded_requests(requests).withColumns(times), MAX_USES + 1)
    ]
    if len(rows) > MAX_USES:
        raise PipelineError(
            f"more than {MAX_USES:,} different uses are left when ids are folded: look at one vhost, or at "
            "fewer days (--vhost, --since)"
        )
    untold = [row for row in rows if row.user is not None and row.further == UNKNOWN]
    known = [row for row in rows if row.user is not None and row.further != UNKNOWN]
    uses = [use for row in known for use in uses_of(row)]
    unknown = sum(row.requests for row in rows if row.user is None and row.further is None)
    notes = []
    found = recommend_for(uses, bounds)
    try:
        build(found.files)
    except ConfigError as error:
        raise PipelineError(
            f"what is recommended cannot be loaded: {error}; smaller --values and --templates fold more"
        ) from error
    if unknown:
        notes.append(
            f"{unknown:,} requests are left out: the gateway did not know their user, and a policy that "
            "allows them would be one for everybody"
        )
    if untold:
        users = sorted({row.user for row in untold})
        notes.append(
            f"{sum(row.messages for row in untold):,} messages had more routing keys in CC and BCC than the "
            f"records tell, of users {names_of(users)}: what is recommended may deny them"
        )
    return attrs.evolve(found, notes=(*found.notes, *notes))


def names_of(names: Sequence[str], most: int = 10) -> str:
    """The first of them, and how many others there are."""
    rest = len(names) - most
    return ", ".join(f"'{name}'" for name in names[:most]) + (f" and {rest:,} others" if rest > 0 else "")


def requests_of(usage: DataFrame) -> DataFrame:
    """The distinct requests that were allowed and touch a resource: the columns `REQUEST`, and sums."""
    named = [name for name, kind in OPERATIONS.items() if not kind.free]
    leads = {
        name: F.when(~F.col("passive"), F.get_json_object("arguments", f"$['{argument}']"))
        for name, argument in _LEADS.items()
    }
    binds = [name for name in named if OPERATIONS[name].binds]
    arguments = {"bound_with": F.when(F.col("operation").isin(*binds), F.col("arguments"))}
    allowed = usage.where((F.col("verdict") == "allow") & F.col("operation").isin(*named))
    return distinct_requests(allowed.withColumns(leads | arguments), REQUEST)


def together(some: DataFrame, others: DataFrame) -> DataFrame:
    """The requests of both."""
    columns = [*REQUEST, *SUMS]
    return summed(some.select(*columns).unionByName(others.select(*columns)), REQUEST)


def folded(usage: DataFrame) -> DataFrame:
    """What `folded_requests` makes of records."""
    return folded_requests(requests_of(usage))


def folded_requests(distinct: DataFrame) -> DataFrame:
    """Requests, alike keys and names in one row.

    ``key_same`` and ``queue_same`` are the pieces of the shapes: null where they differ. ``key_count`` and
    ``queue_count`` say how many there are; ``kinds`` how many different requests are in the row.
    """
    shaped = with_columns(distinct, _shapes, _ADDED)
    pieces = {
        f"{what}_{end}_{place}": function(F.get(f"{what}_pieces", F.lit(place)))
        for what in ("key", "queue")
        for end, function in (("low", F.min), ("high", F.max))
        for place in range(_PIECES)
    }
    alike = (
        shaped.withColumns({f"{what}_count": F.size(f"{what}_pieces") for what in ("key", "queue")})
        .groupBy(*_BY, "key_shape", "key_count", "queue_shape", "queue_count")
        .agg(*_sums(F.count("*")), *(column.alias(name) for name, column in pieces.items()))
        .withColumns(
            {
                f"{what}_same": F.array(*map(_same, [what] * _PIECES, range(_PIECES)))
                for what in ("key", "queue")
            }
        )
        .drop(*pieces)
    )
    return _coarsened(alike)


def _sums(kinds: Column) -> list[Column]:
    return [
        F.sum("requests").alias("requests"),
        F.sum("messages").alias("messages"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        kinds.alias("kinds"),
    ]


def _same(what: str, place: int) -> Column:
    low, high = F.col(f"{what}_low_{place}"), F.col(f"{what}_high_{place}")
    return F.when(low == high, low)


def _coarsened(alike: DataFrame) -> DataFrame:
    """Of exchanges with too many shapes, the first words of keys, or only how many words they have."""
    keyed = (
        (F.col("operation") == "basic.publish")
        & (F.col("exchange") != "")
        & ~F.col("routing_key_is_template")
    )
    words = F.split("key_shape", r"\.")
    rest = F.array_repeat(F.lit(MARK), F.size(words) - 1)
    start = F.array_join(F.concat(F.array(words[0]), rest), ".")
    crowded = (
        alike.where(keyed)
        .groupBy("user", "vhost", "exchange")
        .agg(F.count_distinct("key_shape").alias("shapes"), F.count_distinct(start).alias("starts"))
        .where(F.col("shapes") > MAX_SHAPES)
        .withColumnsRenamed({name: f"_{name}" for name in ("user", "vhost", "exchange")})
    )
    together = [F.col(name).eqNullSafe(F.col(f"_{name}")) for name in ("user", "vhost", "exchange")]
    is_coarse = keyed & F.col("shapes").isNotNull() & (F.col("key_shape") != "")
    length = F.array_join(F.concat(F.array(F.lit(MARK)), rest), ".")
    nothing = F.array(*[F.lit(None).cast("string")] * _PIECES)
    return (
        alike.join(F.broadcast(crowded), together, "left")
        .withColumns(
            {
                "key_shape": F.when(
                    is_coarse, F.when(F.col("starts") <= MAX_SHAPES, start).otherwise(length)
                ).otherwise(F.col("key_shape")),
                "key_same": F.when(is_coarse, nothing).otherwise(F.col("key_same")),
                "key_count": F.when(is_coarse, F.lit(-1)).otherwise(F.col("key_count")),
            }
        )
        .groupBy(*_BY, "key_shape", "key_count", "key_same", "queue_shape", "queue_count", "queue_same")
        .agg(*_sums(F.sum("kinds")))
    )


def _shapes(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Adds the shapes of routing keys and queues; each further key has a row of its own."""
    import pyarrow

    asked = ["operation", "exchange", "routing_key", "routing_key_is_template", "queue"]
    for batch in keys_apart(batches):
        keys: list[tuple[str | None, list[str]]] = []
        queues: list[tuple[str | None, list[str]]] = []
        for row in batch.select(asked).to_pylist():
            key, queue = row["routing_key"], row["queue"]
            if key is None or row["routing_key_is_template"]:
                keys.append((key, []))
            elif _names_queues(row["operation"], row["exchange"]):
                keys.append(names.shape_of(key))
            else:
                keys.append(templates.shape_of(key))
            if queue == "" and row["operation"] == "queue.declare":
                queue = SERVER_NAMED
            queues.append(names.shape_of(queue) if queue is not None else (None, []))
        columns = [
            pyarrow.array(
                [one[part] for one in found], pyarrow.list_(pyarrow.string()) if part else pyarrow.string()
            )
            for found in (keys, queues)
            for part in (0, 1)
        ]
        yield pyarrow.RecordBatch.from_arrays(
            [*batch.columns, *columns], names=[*batch.schema.names, *list(_ADDED)[1:]]
        )


def _names_queues(operation: str, exchange: str | None) -> bool:
    """Whether the routing key is a queue's name."""
    return operation == "basic.publish" and exchange == ""


def uses_of(row: SimpleNamespace) -> Iterator[Use]:
    """What a row of `folded` says, its times in seconds, and the publishes that it leads to."""
    first, last = (datetime.fromtimestamp(seconds, UTC) for seconds in (row.first, row.last))
    evidence = Evidence(row.requests, row.messages, first, last, row.kinds)
    # What an operation does not have no gateway writes, and no rule may name.
    has = OPERATIONS[row.operation].attributes
    key_name = routing_key = None
    key_why: templates.Why = "seen"
    is_pattern = row.routing_key_is_template or row.any_key or OPERATIONS[row.operation].binds
    key_shape = row.key_shape if "routing_key" in has else None
    if key_shape is not None and _names_queues(row.operation, row.exchange) and not is_pattern:
        key_name = _name(key_shape, row.key_count, row.key_same)
    elif key_shape is not None and row.key_count:
        routing_key = templates.words_from_shape(key_shape, row.key_same, wild=is_pattern)
        if row.key_count < 0:
            key_why = "keys"
        elif row.key_count > _PIECES or None in row.key_same[: row.key_count]:
            key_why = "ids"
    elif key_shape is not None:
        routing_key = templates.words_of(key_shape, wild=is_pattern)
    use = Use(
        user=row.user,
        vhost=row.vhost,
        operation=row.operation,
        evidence=evidence,
        exchange=row.exchange if "exchange" in has else None,
        destination=row.destination if "destination" in has else None,
        queue=_name(row.queue_shape, row.queue_count, row.queue_same)
        if row.queue_shape is not None and "queue" in has
        else None,
        routing_key=routing_key,
        key_name=key_name,
        key_why=key_why,
        bound_with=None if row.bound_with is None else arguments_of(row.bound_with),
        passive=row.passive,
        foreign=row.foreign,
        any_key=row.any_key or row.routing_key_is_template,
        because="routing keys in CC and BCC" if row.further else None,
    )
    yield use
    if row.dead_letters_to is not None and row.operation == "queue.declare":
        yield _lead(
            use, row.dead_letters_to, row.dead_letter_key, f"dead letters of queue {_shown(use.queue)}"
        )
    if row.alternate is not None and row.operation == "exchange.declare":
        yield _lead(use, row.alternate, None, f"what exchange {flow(row.exchange or '')} cannot route")


def _lead(use: Use, exchange: str, key: str | None, because: str) -> Use:
    """The publish that an argument of a declare needs: messages keep their keys, unless it names one."""
    is_name = key is not None and exchange == ""
    return Use(
        user=use.user,
        vhost=use.vhost,
        operation="basic.publish",
        evidence=use.evidence,
        exchange=exchange,
        routing_key=None if is_name else templates.words_of("#" if key is None else key, wild=key is None),
        key_name=(key,) if key is not None and is_name else None,
        any_key=key is None,
        because=because,
    )


def _name(shape: str, count: int, same: Sequence[str | None]) -> names.Name:
    return names.name_from_shape(shape, same[:count]) if count else (shape,)


def _shown(name: names.Name | None) -> str:
    return flow("".join(part if isinstance(part, str) else "..." for part in name or ()))


def granted(usage: DataFrame, today: Sequence[Source]) -> DataFrame:
    """What is allowed today, and when it was last needed: policy, rule, operation, requests, last.

    A row per allow rule of a policy that is enforced and per operation that it is about; ``requests`` is 0
    and ``last`` null where it decided nothing. Of several rules that allow a request the first decides.
    """
    policies = build(today)
    allowed = usage.where(F.col("verdict") == "allow")
    requests = distinct_requests(
        allowed, list(dict.fromkeys((*columns_asked(policies), *ASKED, "verdict", "policy_digest")))
    )
    # A message needs a rule for each of its keys.
    each = with_columns(requests, keys_apart, {FURTHER: "string"})
    each = each.where(F.col(FURTHER).isNull() | (F.col(FURTHER) == KNOWN)).drop(FURTHER)
    decided = (
        judged(each, today, "today")
        .groupBy(F.col("today_policy").alias("policy"), F.col("today_rule").alias("rule"), "operation")
        .agg(F.sum("requests").alias("requests"), F.max("last").alias("last"))
    )
    rules = [
        (policy.metadata.name, rule.id, name)
        for policy in policies.access
        if policy.spec.mode == "enforce"
        for rule in policy.spec.rules
        if rule.effect == "allow"
        for name in dict.fromkeys(name for pattern in rule.operations for name in pattern.names)
        if rule.applies_to(name) and not OPERATIONS[name].free
    ]
    schema = "policy string, rule string, operation string"
    return (
        usage.sparkSession.createDataFrame(rules, schema)
        .join(decided, ["policy", "rule", "operation"], "left")
        .fillna(0, ["requests"])
        .orderBy(F.asc_nulls_first("last"), "policy", "rule", "operation")
    )
