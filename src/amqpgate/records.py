"""The audit record: the contract between the gateway, which writes, and the pipeline, which reads.

Two sorts. An *event* is one thing that happened; a *usage* record sums what passed, or was refused, in one
window of one session with the same arguments. A record is one flat row, so that it is the same in Parquet and
as a line of JSON, and columns that repeat cost next to nothing. A class below is a table, an attribute is a
column: the Arrow schema, and with it the one of Spark, is made from the classes. A column that comes later
says ``later`` and stands at the end of each table; readers of older files get null.

Where the records of a gateway are::

    FOLDER/events/date=2026-11-22/GATEWAY-BOOT-000001.parquet
    FOLDER/usage/date=2026-11-22/GATEWAY-BOOT-000001.parquet

`date` is the UTC day of the first record of the file. A file is there as a whole, or not at all: while it is
written its name begins with ``_``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import attrs

from amqpgate.values import frozen

if TYPE_CHECKING:
    import pyarrow

#: Readers refuse records of a later version, and say so. A column may be added within a version, at the end
#: and nullable; anything else is a new one.
SCHEMA_VERSION: Final = 1

#: The key of a Parquet file's metadata that holds the version, in decimal.
VERSION_KEY: Final = b"amqpgate.schema_version"

Sort: TypeAlias = Literal["events", "usage"]

EventKind: TypeAlias = Literal[
    # The connection was opened, with its principal; and how it ended (`outcome`, `reason`).
    "session.open",
    "session.close",
    # A login, or its virtual host, was refused by the broker, or by the gateway for its token: `user` and
    # `vhost` are what the client claims (`detail`: upstream, times).
    "session.refused",
    # An operation was refused, whoever refused it; and one that policies in mode shadow would have
    # decided so.
    "denied",
    "shadow",
    # A compatibility policy changed a request (`detail`: policy, items, and what the broker gets).
    "adapted",
    # A limit delayed, refused or closed, or would have (`detail`: limit, happened, enforced).
    "throttled",
    # An exchange, a queue, a binding or a consumer came or went.
    "topology",
    # Other policies are in force, or were refused (`reason`).
    "policies",
    # Somebody used the admin interface to change something.
    "admin",
    # A message of which an audit policy wants the headers, or the body.
    "message",
]

#: Of a decision: what an operation met.
Decided: TypeAlias = Literal["allow", "deny"]

_Kind: TypeAlias = Literal["string", "int16", "int64", "bool", "time", "bytes"]


def _column(kind: _Kind, text: str, *, null: bool = False, later: bool = False) -> Mapping[str, object]:
    """``later``: it was appended after the first release of this version, and is null in older files."""
    return {"kind": kind, "doc": text, "null": null, "later": later}


def later_last(_: type, fields: list[attrs.Attribute[object]]) -> list[attrs.Attribute[object]]:
    """The columns of a table in their order: those that came later after all others, as they came."""
    return sorted(fields, key=lambda field: bool(field.metadata["later"]))


@frozen(kw_only=True, eq=False)
class Origin:
    """Whose a record is: one per session. `Record` says what the columns of the same names mean."""

    session: str
    user: str | None
    vhost: str | None
    source: str | None
    listener: str | None
    tls: str | None = None
    client: str | None = None
    upstream_user: str | None = None
    amqp_version: str | None = None
    token: str | None = None


@frozen(kw_only=True, field_transformer=later_last)
class Record:
    """What records of both sorts have."""

    record_id: str = attrs.field(
        metadata=_column("string", "unique among all records: gateway, start of the process, number")
    )
    schema_version: int = attrs.field(
        default=SCHEMA_VERSION, metadata=_column("int16", "version of these columns")
    )
    gateway: str = attrs.field(metadata=_column("string", "the gateway's name"))
    session: str | None = attrs.field(
        default=None, metadata=_column("string", "the client connection, as in logs", null=True)
    )
    user: str | None = attrs.field(
        default=None,
        metadata=_column(
            "string", "the client's own, whom policies judge; null where the gateway cannot tell", null=True
        ),
    )
    vhost: str | None = attrs.field(
        default=None, metadata=_column("string", "as the client named it; null where no session", null=True)
    )
    source: str | None = attrs.field(
        default=None, metadata=_column("string", "the client's IP address", null=True)
    )
    listener: str | None = attrs.field(
        default=None, metadata=_column("string", "where it connected", null=True)
    )
    tls: str | None = attrs.field(
        default=None,
        metadata=_column(
            "string", "its certificate, JSON: subject, common_name, names; null: none", null=True
        ),
    )
    client: str | None = attrs.field(
        default=None, metadata=_column("string", "its client properties that are text, JSON", null=True)
    )
    operation: str | None = attrs.field(
        default=None,
        metadata=_column(
            "string", "the method's name; of messages to clients basic.deliver, get-ok, return", null=True
        ),
    )
    exchange: str | None = attrs.field(
        default=None, metadata=_column("string", "source of a binding, target of a publish", null=True)
    )
    routing_key: str | None = attrs.field(
        default=None, metadata=_column("string", "exact, or see routing_key_is_template", null=True)
    )
    routing_key_is_template: bool = attrs.field(
        default=False,
        metadata=_column("bool", "a topic pattern that stands for many: too many were used one by one"),
    )
    queue: str | None = attrs.field(
        default=None,
        metadata=_column(
            "string", "as the client names it, or the broker, where that gave the name", null=True
        ),
    )
    destination: str | None = attrs.field(
        default=None, metadata=_column("string", "the exchange that an exchange binding feeds", null=True)
    )
    arguments: str | None = attrs.field(
        default=None, metadata=_column("string", "of the method, JSON, keys sorted; null: none", null=True)
    )
    passive: bool = attrs.field(
        default=False, metadata=_column("bool", "a declare that only asks whether the name exists")
    )
    foreign: bool = attrs.field(
        default=False,
        metadata=_column("bool", "the queue was named by the broker, and not for this connection"),
    )
    any_key: bool = attrs.field(
        default=False, metadata=_column("bool", "the routing key stands for every key that it catches")
    )
    verdict: Decided | None = attrs.field(
        default=None, metadata=_column("string", "allow or deny; null where nothing is decided", null=True)
    )
    policy: str | None = attrs.field(
        default=None, metadata=_column("string", "the policy that decided; null: none did", null=True)
    )
    rule: str | None = attrs.field(default=None, metadata=_column("string", "the rule", null=True))
    policy_digest: str = attrs.field(
        default="", metadata=_column("string", "of all policies in force; empty where there are none")
    )
    upstream_user: str | None = attrs.field(
        default=None,
        metadata=_column(
            "string",
            "the user that the broker knows the session by; null where the gateway cannot tell",
            null=True,
            later=True,
        ),
    )
    amqp_version: str | None = attrs.field(
        default=None,
        metadata=_column(
            "string",
            "the version of AMQP that the client speaks, as 0-9-1; null where no session",
            null=True,
            later=True,
        ),
    )
    more_keys: str | None = attrs.field(
        default=None,
        metadata=_column(
            "string",
            "routing keys in the headers CC and BCC of a message, JSON list; null at its end: and others",
            null=True,
            later=True,
        ),
    )
    token: str | None = attrs.field(
        default=None,
        metadata=_column(
            "string",
            "what the client's verified token says: JSON object of scopes, groups and claims; null: none",
            null=True,
            later=True,
        ),
    )


@frozen(kw_only=True, field_transformer=later_last)
class Event(Record):
    """One thing that happened."""

    time: datetime = attrs.field(metadata=_column("time", "when, UTC, to the microsecond"))
    kind: EventKind = attrs.field(metadata=_column("string", "what; see EventKind"))
    outcome: str | None = attrs.field(
        default=None, metadata=_column("string", "of session.close: as in amqpgate_connections", null=True)
    )
    reply_code: int | None = attrs.field(
        default=None, metadata=_column("int16", "AMQP's reply code that the client was told", null=True)
    )
    reason: str | None = attrs.field(default=None, metadata=_column("string", "in words", null=True))
    body_size: int | None = attrs.field(
        default=None, metadata=_column("int64", "bytes of the message's body", null=True)
    )
    properties: str | None = attrs.field(
        default=None, metadata=_column("string", "of the message, JSON, redacted", null=True)
    )
    headers: str | None = attrs.field(
        default=None, metadata=_column("string", "of the message, JSON, redacted", null=True)
    )
    body: bytes | None = attrs.field(
        default=None, metadata=_column("bytes", "redacted; at most what the rule allows", null=True)
    )
    body_cut: bool = attrs.field(default=False, metadata=_column("bool", "whether there was more"))
    audit_policy: str | None = attrs.field(
        default=None, metadata=_column("string", "the audit policy that wanted it", null=True)
    )
    audit_rule: str | None = attrs.field(default=None, metadata=_column("string", "its rule", null=True))
    detail: str | None = attrs.field(
        default=None, metadata=_column("string", "whatever else there is to say, JSON", null=True)
    )


@frozen(kw_only=True, field_transformer=later_last)
class Usage(Record):
    """What one session did with the same arguments in one window.

    ``messages`` of ``verdict`` allow have passed; those of deny were refused. Summed over the records of
    basic.publish, and of basic.deliver, basic.get-ok and basic.return, they are the messages that passed.
    """

    window_start: datetime = attrs.field(metadata=_column("time", "when the window began, UTC"))
    window_end: datetime = attrs.field(metadata=_column("time", "when it was read, UTC"))
    first: datetime = attrs.field(metadata=_column("time", "the first in the window, UTC"))
    last: datetime = attrs.field(metadata=_column("time", "the last in the window, UTC"))
    requests: int = attrs.field(metadata=_column("int64", "how often: of messages, their number"))
    messages: int = attrs.field(metadata=_column("int64", "messages; 0 of methods that carry none"))
    bytes: int = attrs.field(metadata=_column("int64", "bytes of their bodies"))
    largest_body: int | None = attrs.field(
        default=None,
        metadata=_column("int64", "bytes of the largest of them", null=True, later=True),
    )


TABLES: Final[Mapping[Sort, type[Record]]] = {"events": Event, "usage": Usage}


def arrow_schema(table: type[Record]) -> pyarrow.Schema:
    """The columns of a sort of record, in order, with the version in the metadata.

    Raises ``ImportError`` where pyarrow is not installed.
    """
    import pyarrow

    types = {
        "string": pyarrow.string(),
        "int16": pyarrow.int16(),
        "int64": pyarrow.int64(),
        "bool": pyarrow.bool_(),
        "time": pyarrow.timestamp("us", tz="UTC"),
        "bytes": pyarrow.binary(),
    }
    return pyarrow.schema(
        [
            pyarrow.field(
                field.name,
                types[field.metadata["kind"]],
                field.metadata["null"],
                {"doc": field.metadata["doc"]},
            )
            for field in attrs.fields(table)
        ],
        {VERSION_KEY: str(SCHEMA_VERSION).encode()},
    )
