"""JSON Schemas of answers, for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from amqpgate.operator.sessions import COLUMNS
from amqpgate.telemetry.answers import JSON

Schema: TypeAlias = Mapping[str, JSON]

TEXT: Final[Schema] = {"type": "string"}
NUMBER: Final[Schema] = {"type": "number"}
COUNT: Final[Schema] = {"type": "integer"}
TRUTH: Final[Schema] = {"type": "boolean"}


def or_null(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


def of(**properties: JSON) -> Schema:
    """An object that has all of these, and may have more."""
    return {"type": "object", "required": list(properties), "properties": properties}


def listed(items: JSON) -> Schema:
    return {"type": "array", "items": items}


_COUNTS: Final = {
    "channels",
    "consumers",
    "published",
    "published_bytes",
    "delivered",
    "delivered_bytes",
    "refused",
}
_TRUTHS: Final = {"tls", "pooled"}


def _column(name: str) -> Schema:
    if name in _COUNTS:
        return COUNT
    if name in _TRUTHS:
        return TRUTH
    if name == "unacked":
        return or_null(COUNT)
    if name.endswith("_rate"):
        return or_null(NUMBER)
    return TEXT if name in ("id", "vhost", "version", "upstream_version", "flow") else or_null(TEXT)


#: One session in a list.
ROW: Final = of(worker=COUNT, **{name: _column(name) for name in COLUMNS})
#: What is told of one besides.
DETAIL: Final = of(
    source=or_null(TEXT),
    tls_name=or_null(TEXT),
    groups=listed(TEXT),
    token=or_null({"type": "object"}),
    client_properties={"type": "object"},
    channel_max=COUNT,
    frame_max={"type": "object"},
    heartbeat={"type": "object"},
    silent={"type": "object"},
    buffered={"type": "object"},
    policies=listed(TEXT),
    shadow_policies=listed(TEXT),
    limits=listed({"type": "object"}),
    link=or_null(COUNT),
    open_channels=listed(
        of(
            number=COUNT,
            upstream_number=or_null(COUNT),
            state=TEXT,
            published=COUNT,
            delivered=COUNT,
            unacked=or_null(COUNT),
            confirms=TRUTH,
            transaction=TRUTH,
            consumers=listed(of(tag=or_null(TEXT), queue=or_null(TEXT), no_ack=TRUTH)),
        )
    ),
    flows=of(publish=listed({"type": "object"}), deliver=listed({"type": "object"}), more=COUNT),
)
#: A refusal, or what a policy that is not enforced would have decided.
DECISION: Final = of(
    at=NUMBER,
    number=COUNT,
    worker=COUNT,
    kind=TEXT,
    session=TEXT,
    user=or_null(TEXT),
    vhost=TEXT,
    client=or_null(TEXT),
    operation=TEXT,
    exchange=or_null(TEXT),
    routing_key=or_null(TEXT),
    queue=or_null(TEXT),
    destination=or_null(TEXT),
    policy=or_null(TEXT),
    rule=TEXT,
    effect=TEXT,
    text=TEXT,
    # Who asked, as `/explain` takes it.
    **{"as": {"type": "object"}},
)
#: How often, and when last.
HITS: Final = of(hits=COUNT, messages=COUNT, last_hit=or_null(NUMBER))
#: The policies in force.
POLICIES: Final = of(
    digest=TEXT,
    status=TEXT,
    read_at=NUMBER,
    error=or_null(TEXT),
    since=NUMBER,
    policies=listed(
        of(
            kind=TEXT,
            name=TEXT,
            mode=TEXT,
            file=or_null(TEXT),
            line=or_null(COUNT),
            sessions=COUNT,
            rules=listed(
                of(
                    id=TEXT,
                    effect=TEXT,
                    operations=listed(TEXT),
                    line=or_null(COUNT),
                    hits=COUNT,
                    messages=COUNT,
                    last_hit=or_null(NUMBER),
                )
            ),
        )
    ),
    default=HITS,
    default_access={"enum": ["allow", "deny"]},
    unselected=of(sessions=COUNT, hits=COUNT, messages=COUNT, last_hit=or_null(NUMBER)),
    shadow=listed(
        of(policy=or_null(TEXT), rule=TEXT, effect=TEXT, hits=COUNT, messages=COUNT, last_hit=or_null(NUMBER))
    ),
)
#: A cluster.
UPSTREAM: Final = of(
    name=TEXT,
    order=TEXT,
    connections=TEXT,
    sessions=COUNT,
    retry_budget=NUMBER,
    checked=TRUTH,
    version=or_null(TEXT),
    endpoints=listed(
        of(
            worker=COUNT,
            address=TEXT,
            weight=COUNT,
            up=TRUTH,
            available=TRUTH,
            ejected_for=NUMBER,
            failures=COUNT,
            speaks=or_null(TEXT),
        )
    ),
)
#: What was found when the policies were read last.
POLICY_STATE: Final = of(
    status=TEXT,
    digest=TEXT,
    read_at=NUMBER,
    error=or_null(TEXT),
    file=or_null(TEXT),
    line=or_null(COUNT),
    column=or_null(COUNT),
)
