"""Records as documents of OpenSearch or Elasticsearch, many in one request (the `_bulk` interface).

Each is *created* under its record's id: what was there already is answered with 409, so it is there once,
however often it is sent.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Final, cast
from urllib.parse import urlsplit

from amqpgate.config.audit_sinks import AuditOpenSearch
from amqpgate.errors import ConfigError
from amqpgate.logs import on_one_line
from amqpgate.ocsf import OcsfEvent
from amqpgate.telemetry.audit.outlets.receiver import Ready, Sent
from amqpgate.telemetry.http_request import HttpAnswer, NotTakenError, ask
from amqpgate.values import frozen

#: Of an answer, what is read.
_FILTER: Final = "filter_path=errors,items.*.status,items.*.error.type"
#: It is there: now, or already. It never will be: the document does not fit the index.
_THERE: Final = frozenset({200, 201, 409})
_NEVER: Final = 400


@frozen
class BulkReceiver:
    """One index."""

    settings: AuditOpenSearch

    def ready(self, event: OcsfEvent) -> Ready:
        """Two lines. Data streams need `@timestamp`."""
        uid = cast("dict[str, str]", event["metadata"])["uid"]
        action = json.dumps({"create": {"_id": uid}}, separators=(",", ":"))
        said = json.dumps(
            {"@timestamp": event["time"], **event}, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return Ready(uid, "", f"{action}\n{said}\n".encode())

    def send(self, records: Sequence[Ready]) -> Sent:
        answer = self._asked("POST", f"{self.settings.index}/_bulk?{_FILTER}", [one.data for one in records])
        answer.check()
        return _sent(records, _items(answer.body, len(records)))

    def ask(self) -> str:
        """What it says of itself. Whether the login may create documents is known when it does."""
        answer = self._asked("GET", "", ())
        answer.check()
        try:
            version = json.loads(answer.body)["version"]
            product, number = version.get("distribution", "elasticsearch"), version["number"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise NotTakenError("what answers is neither OpenSearch nor Elasticsearch") from None
        return on_one_line(f"{product} {number}"[:100])

    def _asked(self, verb: str, path: str, body: Sequence[bytes]) -> HttpAnswer:
        settings = self.settings
        try:
            login = settings.authorization()
        except ConfigError as error:
            raise NotTakenError(str(error)) from None
        headers = {"content-type": "application/x-ndjson", "accept": "application/json"}
        if login is not None:
            headers["authorization"] = login
        return ask(
            settings.url,
            verb,
            f"{urlsplit(str(settings.url)).path.rstrip('/')}/{path}",
            b"".join(body),
            headers,
            ca=settings.ca,
            timeout=float(settings.timeout),
        )

    def close(self) -> None:
        """Nothing is open."""


def _items(body: bytes, count: int) -> list[tuple[int, str]]:
    """Status and type of error of each document, in their order."""
    try:
        items = json.loads(body)["items"]
        found = [next(iter(item.values())) for item in items]
        said = [(int(one["status"]), str((one.get("error") or {}).get("type", ""))) for one in found]
    except (
        ArithmeticError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        StopIteration,
        RecursionError,
    ):
        # A status of 1e999 is infinite.
        raise NotTakenError("it answers with something else than _bulk does") from None
    if len(said) != count:
        raise NotTakenError(f"it answers for {len(said)} documents of {count}")
    return said


def _sent(records: Sequence[Ready], items: Sequence[tuple[int, str]]) -> Sent:
    written = 0
    again: list[Ready] = []
    never: Counter[str] = Counter()
    later: Counter[str] = Counter()
    for record, (status, error) in zip(records, items, strict=True):
        # What is in a document may be in the reason, so the type alone is told.
        why = f"{status} {on_one_line(error[:100])}".rstrip()
        if status in _THERE:
            written += 1
        elif status == _NEVER:
            never[f"{why} (the first is {record.id})" if not never else why] += 1
        else:
            later[why] += 1
            again.append(record)
    return Sent(
        written,
        rejected=never.total(),
        why_rejected=next(iter(never), ""),
        again=again,
        why=f"it answers {later.most_common(1)[0][0]} for {len(again)} of {len(records)}" if later else "",
    )
