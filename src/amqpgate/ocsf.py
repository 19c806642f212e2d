"""Audit records as events of the Open Cybersecurity Schema Framework (OCSF), which SIEMs read.

Sessions are Authentication, messages are Datastore Activity, and all else is API Activity. What the schema
has no attribute for stands in ``unmapped``, under the names of our columns. Nothing is said that records do
not tell.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final, TypeAlias, cast

from amqpgate import __version__
from amqpgate.records import Sort

#: The version of the schema.
VERSION: Final = "1.6.0"

#: A row of a table of records, without the body of messages; and an event of OCSF.
RecordRow: TypeAlias = Mapping[str, object]
OcsfEvent: TypeAlias = "dict[str, object]"

_AUTHENTICATION: Final = (3, 3002)
_API: Final = (6, 6003)
_DATASTORE: Final = (6, 6005)
_NAMES: Final = {3002: "authentication", 6003: "api_activity", 6005: "datastore_activity"}
_LOGON, _LOGOFF = 1, 2
_READ, _WRITE = 1, 5
_OTHER: Final = 99
#: Of API Activity, by the second word of a method's name.
_CREATE, _LOOK, _UPDATE, _DELETE = 1, 2, 3, 4
_API_ACTIVITIES: Final[Mapping[str, int]] = {
    **dict.fromkeys(("declare", "bind", "consume"), _CREATE),
    **dict.fromkeys(("get", "get-empty"), _LOOK),
    **dict.fromkeys(("delete", "unbind", "cancel", "purge"), _DELETE),
}
_OF_SESSIONS: Final = ("session.open", "session.close", "session.refused")
_REFUSED: Final = ("denied", "session.refused")
_SUCCESS: Final = {"status_id": 1, "status": "Success"}
_FAILURE: Final = {"status_id": 2, "status": "Failure"}
_SENT: Final = ("basic.publish",)
_GOT: Final = ("basic.deliver", "basic.get-ok", "basic.return")
#: What has no attribute. Text of JSON is taken apart.
_UNMAPPED: Final = (
    *("gateway", "listener", "vhost", "exchange", "routing_key", "queue", "destination"),
    *("policy", "rule", "policy_digest", "upstream_user", "amqp_version", "outcome", "bytes", "body_size"),
)
_JSON: Final = ("tls", "client", "arguments", "more_keys", "token", "properties", "headers", "detail")
_ABOUT: Final = ("exchange", "routing_key", "queue", "destination", "vhost")
#: The column that is left out.
BODY: Final = "body"


def ocsf_of(sort: Sort, row: RecordRow) -> OcsfEvent:
    """The event of a record."""
    kind = cast("str", row["kind"]) if sort == "events" else "usage"
    operation = cast("str | None", row["operation"])
    common = _common(sort, row, kind)
    if kind in _OF_SESSIONS:
        activity = _LOGOFF if kind == "session.close" else _LOGON
        service = {"service": {"name": "AMQP"}, "user": _user(row)}
        return _typed(_AUTHENTICATION, activity) | common | service | _session(row)
    if kind in ("usage", "message") and operation in (*_SENT, *_GOT):
        is_sent = operation in _SENT
        name = row["exchange"] if is_sent else row["queue"]
        table = {"table": {"name": name}} if name else {}
        database = {"name": row["vhost"] or "Unknown", "type_id": _OTHER, "type": "AMQP virtual host"}
        return _typed(_DATASTORE, _WRITE if is_sent else _READ) | common | {"database": database, **table}
    did = operation or kind
    activity = _UPDATE if kind in ("policies", "admin") else _API_ACTIVITIES.get(did.split(".")[-1], _OTHER)
    named = {"activity_name": did} if activity == _OTHER else {}
    resources = [
        {"name": row[what], "type": what} for what in ("exchange", "queue", "destination") if row[what]
    ]
    return (
        _typed(_API, activity)
        | named
        | common
        | {"api": {"operation": did, "service": {"name": "AMQP"}}}
        | ({"resources": resources} if resources else {})
    )


def class_name(event: OcsfEvent) -> str:
    """The name of its class, as the schema has it: ``api_activity``."""
    return _NAMES[cast("int", event["class_uid"])]


def _typed(place: tuple[int, int], activity: int) -> OcsfEvent:
    category, number = place
    return {
        "category_uid": category,
        "class_uid": number,
        "activity_id": activity,
        "type_uid": number * 100 + activity,
    }


def _common(sort: Sort, row: RecordRow, kind: str) -> OcsfEvent:
    time = cast("datetime", row["time"] if sort == "events" else row["first"])
    user, source = _user(row), {"ip": row["source"]} if row["source"] else {"name": "Unknown"}
    detail = _parsed(cast("str", row["detail"])) if kind == "admin" and row["detail"] else None
    if isinstance(detail, dict):
        # No session's: it says itself who it was.
        user = {"name": str(detail["by"]), "type_id": 0} if "by" in detail else user
        source = {"ip": str(detail["address"])} if detail.get("address", "-") != "-" else source
    event: OcsfEvent = {
        "time": _millis(time),
        "metadata": {
            "version": VERSION,
            "product": {"name": "amqpgate", "vendor_name": "amqpgate", "version": __version__},
            "uid": row["record_id"],
            "event_code": kind,
            "log_name": sort,
            "log_provider": row["gateway"],
        },
        "severity_id": 2 if kind in _REFUSED else 1,
        "actor": {"user": user} | _session(row),
        "src_endpoint": source,
        "unmapped": _unmapped(row),
    }
    event |= _status(row, kind)
    if sort == "usage":
        # A record of what carries no message counts requests.
        count = max(cast("int", row["messages"]), cast("int", row["requests"]))
        end = _millis(cast("datetime", row["last"]))
        event |= {"count": count, "start_time": event["time"], "end_time": end}
    event["message"] = row.get("reason") or _in_words(row, kind)
    if row.get("reason"):
        event["status_detail"] = row["reason"]
    if row.get("reply_code") is not None:
        event["status_code"] = str(row["reply_code"])
    return event


def _in_words(row: RecordRow, kind: str) -> str:
    """What people read where lists of events have one column."""
    about = [f"{name.replace('_', ' ')} '{row[name]}'" for name in _ABOUT if row.get(name)]
    by = f"by '{row['user']}'" if row["user"] else ""
    return " ".join(filter(None, [f"{kind}:", cast("str | None", row["operation"]) or "", *about, by]))


def _status(row: RecordRow, kind: str) -> OcsfEvent:
    if kind == "throttled":
        return {"status_id": _OTHER, "status": "throttled"}
    is_refused = kind in _REFUSED or (kind == "usage" and row["verdict"] == "deny")
    return dict(_FAILURE if is_refused else _SUCCESS)


def _user(row: RecordRow) -> OcsfEvent:
    return {"name": row["user"], "type_id": 1} if row["user"] else {"name": "Unknown", "type_id": 0}


def _session(row: RecordRow) -> OcsfEvent:
    return {"session": {"uid": row["session"]}} if row["session"] else {}


def _unmapped(row: RecordRow) -> OcsfEvent:
    found = {name: row[name] for name in _UNMAPPED if row.get(name) not in (None, "")}
    return found | {name: _parsed(cast("str", row[name])) for name in _JSON if row.get(name)}


def _parsed(text: str) -> object:
    try:
        return cast("object", json.loads(text))
    except ValueError:
        return text


def _millis(time: datetime) -> int:
    return int(time.timestamp()) * 1000 + time.microsecond // 1000
