"""Log lines on their way to a collector.

::

    a line is written ── room in the queue ──▶ queue ── thread: OTLP over HTTP ──▶ collector
                           └─ none: dropped, counted        └─ not taken, twice, or rejected: dropped, counted

Who writes a line makes a record of it, and no more. What is sent is what a JSON line has: passwords in URLs
are blanked, the fields are attributes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Final

import attrs
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from amqpgate.config import HttpUrl, Otlp
from amqpgate.logs import RECURRING, fields_of
from amqpgate.telemetry.http_request import NotTakenError, TooLargeError
from amqpgate.telemetry.otlp.counts import COUNTS
from amqpgate.telemetry.otlp.metrics import attributes
from amqpgate.telemetry.otlp.post import MOST_ASKED, Poster, rejected_lines, resource_of
from amqpgate.values import define

log = logging.getLogger(__name__)

#: Lines in one request, at most.
_BATCH: Final = 512
#: Letters of a line, or a traceback, at most.
_MOST: Final = 8192
#: Seconds that lines wait for others, and that a batch waits for its second try.
_PAUSE: Final = 1.0
#: OTLP's numbers of levels.
_SEVERITIES: Final = {"debug": 5, "info": 9, "warning": 13, "error": 17, "critical": 21}


@define(eq=False)
class LogShipper:
    """Of one process. `take` is called wherever lines are written, the rest by its thread."""

    poster: Poster[Otlp]
    resource: Mapping[str, str | int]
    version: str
    _waiting: deque[LogRecord] = attrs.field(factory=deque, init=False)
    _woken: threading.Event = attrs.field(factory=threading.Event, init=False)
    _over: threading.Event = attrs.field(factory=threading.Event, init=False)
    #: Lines that the thread holds.
    _held: int = attrs.field(default=0, init=False)
    _thread: threading.Thread = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, name="otlp logs", daemon=True)
        self._thread.start()

    @classmethod
    def of(cls, settings: Otlp, url: HttpUrl, version: str) -> LogShipper:
        """Starts the thread that sends."""
        return cls(Poster(url, settings), resource_of(settings, version), version)

    def take(self, record: logging.LogRecord) -> None:
        """A line is written."""
        if self._over.is_set():
            COUNTS.add("logs", "stopped")
        elif len(self._waiting) + self._held >= self.poster.settings.queue:
            COUNTS.add("logs", "queue")
        else:
            self._waiting.append(_record(record))
            self._woken.set()

    def close(self, seconds: float) -> None:
        """Send what waits, for so long at most. Idempotent."""
        if self._over.is_set():
            return
        self._over.set()
        self._woken.set()
        self._thread.join(seconds)
        COUNTS.add("logs", "stopped", len(self._waiting) + self._held)

    def _run(self) -> None:
        while not self._over.is_set() or self._waiting:
            self._woken.wait()
            if not self._over.is_set():
                time.sleep(_PAUSE)
            self._woken.clear()
            while self._waiting:
                self._send()

    def _send(self) -> None:
        self._held = min(_BATCH, len(self._waiting))
        batch = [self._waiting.popleft() for _ in range(self._held)]
        try:
            self._deliver(batch)
        finally:
            self._held = 0

    def _deliver(self, batch: list[LogRecord]) -> None:
        lost, why = 0, "it says that it rejects them"
        try:
            lost = min(rejected_lines(self._posted(batch)), len(batch))
        except TooLargeError as error:
            if len(batch) > 1:
                middle = len(batch) // 2
                self._deliver(batch[:middle])
                self._deliver(batch[middle:])
                return
            lost, why = 1, str(error)
        except Exception as error:
            lost, why = len(batch), str(error)
        self._held -= len(batch)
        COUNTS.add("logs", "sent", len(batch) - lost)
        if lost:
            COUNTS.add("logs", "refused", lost)
            log.warning("log lines are not taken by %s: %s", self.poster.url, why, extra=RECURRING)

    def _posted(self, batch: list[LogRecord]) -> bytes:
        """What the collector answers, which is asked twice."""
        body = self._request(batch)
        try:
            return self.poster.post(body)
        except TooLargeError:
            raise
        except NotTakenError as error:
            if self._over.is_set():
                raise
            # Whoever waits for the end of this process does not wait for that.
            self._over.wait(max(_PAUSE, min(error.pause, MOST_ASKED)))
            return self.poster.post(body)

    def _request(self, batch: list[LogRecord]) -> bytes:
        scope = InstrumentationScope(name="amqpgate", version=self.version)
        of = ResourceLogs(
            resource=Resource(attributes=attributes(self.resource)),
            scope_logs=[ScopeLogs(scope=scope, log_records=batch)],
        )
        body: bytes = ExportLogsServiceRequest(resource_logs=[of]).SerializeToString()
        return body


def _record(record: logging.LogRecord) -> LogRecord:
    fields = dict(fields_of(record))
    exception = fields.pop("exception")
    said: dict[str, str | int] = {
        f"amqpgate.{name}": value if isinstance(value, int) else str(value)
        for name, value in fields.items()
        if name not in ("message", "level", "logger", "trace_id", "span_id")
    }
    said["logger.name"] = str(fields["logger"])
    if exception is not None:
        said["exception.stacktrace"] = str(exception)[-_MOST:]
    when = int(record.created * 1e9)
    trace, span = str(fields.get("trace_id", "")), str(fields.get("span_id", ""))
    return LogRecord(
        time_unix_nano=when,
        observed_time_unix_nano=when,
        severity_number=_SEVERITIES.get(str(fields["level"]), 9),  # type: ignore[arg-type]
        severity_text=str(fields["level"]).upper(),
        trace_id=bytes.fromhex(trace),
        span_id=bytes.fromhex(span),
        body=AnyValue(string_value=_text(fields["message"])),
        attributes=attributes(
            {name: _text(value) if isinstance(value, str) else value for name, value in said.items()}
        ),
    )


def _text(value: object) -> str:
    """What UTF-8 can say of it, and not too much."""
    return str(value)[:_MOST].encode(errors="backslashreplace").decode()
