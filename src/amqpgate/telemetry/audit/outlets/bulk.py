"""Records as documents of OpenSearch or Elasticsearch, many in one request (the `_bulk` interface).

Each is *created* under its record's id: what was there already is answered with 409, so it is there once,
however often it is sent.

What clients choose is in documents: names, arguments, headers. An index makes fields of that, and refuses
what does not fit those that it has: text where a number was first, more names of headers than it has fields
for, a name with a NUL. Such a document is created as text, so that nobody keeps what they do out of the
audit. An index that is closed, and an alias that leads nowhere, answer 400 to each document, too: where none
is taken, none is known to be at fault, and `Sending` finds out.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast
from urllib.parse import urlsplit

from amqpgate.config.audit_sinks import AuditOpenSearch
from amqpgate.errors import ConfigError
from amqpgate.logs import RECURRING, on_one_line
from amqpgate.ocsf import OcsfEvent
from amqpgate.telemetry.audit.outlets.receiver import Ready, Sent
from amqpgate.telemetry.http_request import (
    HttpAnswer,
    NotTakenError,
    NotUnderstoodError,
    TooLargeError,
    ask,
)
from amqpgate.values import frozen

log = logging.getLogger(__name__)

#: Of an answer, what is read.
_FILTER: Final = "filter_path=errors,items.*.status,items.*.error.type"
#: It is there: now, or already. It is not, and will not be as it is: so say indices that a document does not
#: fit, and those that take none.
_THERE: Final = frozenset({200, 201, 409})
_UNFIT: Final = 400
_TOO_LARGE: Final = 413
_NEVER: Final = frozenset({_UNFIT, _TOO_LARGE})
#: Of an event, what no client chooses: it fits wherever another event does.
_PLAIN: Final = (
    *("@timestamp", "time", "start_time", "end_time", "count", "metadata"),
    *("category_uid", "class_uid", "activity_id", "type_uid", "severity_id", "status_id", "status"),
)


@frozen
class Fate:
    """What became of one document."""

    #: 0 where nothing is known.
    status: int
    #: The type of the error: its reason may have what is in the document.
    why: str


@frozen
class BulkReceiver:
    """One index."""

    settings: AuditOpenSearch

    def ready(self, event: OcsfEvent) -> Ready:
        """Two lines. Data streams need `@timestamp`."""
        uid = cast("dict[str, str]", event["metadata"])["uid"]
        action = json.dumps({"create": {"_id": uid}}, separators=(",", ":")).encode()
        return Ready(uid, "", _lines(action, {"@timestamp": event["time"], **event}))

    def send(self, records: Sequence[Ready]) -> Sent:
        fates: Sequence[Fate] = self._created([one.data for one in records])
        for form in (_in_raw_data, _in_message):
            fates = self._once_more(form, records, fates)
        return _sent(records, fates)

    def _created(self, documents: Sequence[bytes]) -> list[Fate]:
        answer = self._asked("POST", f"{self.settings.index}/_bulk?{_FILTER}", documents)
        answer.check()
        return _fates(answer.body, len(documents))

    def _once_more(
        self, form: Callable[[bytes], bytes], records: Sequence[Ready], fates: Sequence[Fate]
    ) -> Sequence[Fate]:
        """What became of them, once those that do not fit were sent in that form."""
        places = [place for place, fate in enumerate(fates) if fate.status == _UNFIT]
        if not places:
            return fates
        try:
            made = self._in_parts([form(records[place].data) for place in places])
        except NotUnderstoodError:
            return fates
        except NotTakenError as error:
            # Of the others it is known, so this is told of these only.
            made = [Fate(0, str(error))] * len(places)
        # Why it does not fit as it is says more than why it does not as text.
        found = {place: one for place, one in zip(places, made, strict=True) if one.status != _UNFIT}
        there = [place for place, one in found.items() if one.status in _THERE]
        if there:
            log.warning(
                "audit: %d records do not fit the index of %s, and are there as text: %s (the first is %s)",
                *(len(there), self.settings.NAME, fates[there[0]].why, records[there[0]].id),
                extra=RECURRING,
            )
        return [found.get(place, fate) for place, fate in enumerate(fates)]

    def _in_parts(self, documents: Sequence[bytes]) -> list[Fate]:
        """As text they are longer."""
        try:
            return self._created(documents)
        except TooLargeError as error:
            if len(documents) == 1:
                return [Fate(_TOO_LARGE, str(error))]
        middle = len(documents) // 2
        return self._in_parts(documents[:middle]) + self._in_parts(documents[middle:])

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


def _fates(body: bytes, count: int) -> list[Fate]:
    """In the order of the documents."""
    try:
        items = json.loads(body)["items"]
        said = [_fate(next(iter(item.values()))) for item in items]
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


def _fate(item: Mapping[str, Mapping[str, str]]) -> Fate:
    # Statuses are numbers; nothing is known of what it says.
    status, error = int(cast("int", item["status"])), str((item.get("error") or {}).get("type", ""))
    return Fate(status, f"it answers {status} {on_one_line(error[:100])}".rstrip())


def _in_raw_data(data: bytes) -> bytes:
    """The attribute that OCSF has for an event as text."""
    action, document, text = _apart(data)
    kind = cast("dict[str, str]", document["metadata"])["event_code"]
    return _lines(action, {**document, "message": f"{kind}: see raw_data", "raw_data": text})


def _in_message(data: bytes) -> bytes:
    """For an index that takes no further field: each event has this one."""
    action, document, text = _apart(data)
    return _lines(action, {**document, "message": text})


def _apart(data: bytes) -> tuple[bytes, dict[str, object], str]:
    """The action; what no client chooses; and the whole document, as text."""
    action, text = data.splitlines()
    document = cast("dict[str, object]", json.loads(text))
    return action, {name: document[name] for name in _PLAIN if name in document}, text.decode()


def _lines(action: bytes, document: Mapping[str, object]) -> bytes:
    said = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return b"%b\n%b\n" % (action, said.encode())


def _sent(records: Sequence[Ready], fates: Sequence[Fate]) -> Sent:
    """Raises `NotUnderstoodError` where it takes none, and would not later."""
    written = sum(fate.status in _THERE for fate in fates)
    never: list[tuple[Ready, str]] = []
    again: list[Ready] = []
    later: Counter[str] = Counter()
    for record, fate in zip(records, fates, strict=True):
        if fate.status in _NEVER and written:
            never.append((record, fate.why))
        elif fate.status not in _THERE:
            again.append(record)
            later[fate.why] += 1
    why = later.most_common(1)[0][0] if later else ""
    if all(fate.status in _NEVER for fate in fates):
        raise NotUnderstoodError(why)
    said = [f"{reason} (the first is {record.id})" for record, reason in never[:1]]
    told = f"{why} for {len(again)} of {len(records)}" if again else ""
    return Sent(written, rejected=len(never), why_rejected="".join(said), again=again, why=told)
