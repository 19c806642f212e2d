"""Records as log records of OTLP. The body is the event of OCSF, as a map."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, cast

import attrs
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from amqpgate import __version__
from amqpgate.config.audit_sinks import AuditOtlp
from amqpgate.ocsf import OcsfEvent
from amqpgate.telemetry.audit.outlets.receiver import Ready, Sent
from amqpgate.telemetry.otlp.metrics import attributes
from amqpgate.telemetry.otlp.post import Poster, rejected_lines, resource_of
from amqpgate.values import define

#: OTLP's numbers: what failed is a warning.
_INFO: Final = (9, "INFO")
_WARN: Final = (13, "WARN")
_SCOPE: Final = "amqpgate.audit"
#: Maps and lists within each other in a body; what is deeper is text of JSON. Decoders of protobuf refuse
#: what is deeper than 100 messages. A map is three of them (AnyValue, KeyValueList, KeyValue), the body the
#: fifth.
_DEPTH: Final = 16


@define(eq=False)
class OtlpReceiver:
    """A collector."""

    poster: Poster[AuditOtlp]
    resource: Resource = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.resource = Resource(attributes=attributes(resource_of(self.poster.settings, __version__)))

    def ready(self, event: OcsfEvent) -> Ready:
        """A log record, encoded as one of a scope's."""
        metadata = cast("dict[str, str]", event["metadata"])
        when = cast("int", event["time"]) * 1_000_000
        number, text = _WARN if event["status_id"] == 2 else _INFO
        record = LogRecord(
            time_unix_nano=when,
            observed_time_unix_nano=when,
            severity_number=number,  # type: ignore[arg-type]
            severity_text=text,
            event_name=f"{_SCOPE}.{metadata['event_code']}",
            body=_any(event),
            attributes=attributes(
                {"log.record.uid": metadata["uid"], "ocsf.class_uid": cast("int", event["class_uid"])}
            ),
        )
        return Ready(metadata["uid"], "", ScopeLogs(log_records=[record]).SerializeToString())

    def send(self, records: Sequence[Ready]) -> Sent:
        # Messages of protobuf that stand behind each other are one, with the lists of both.
        scope = ScopeLogs.FromString(b"".join(record.data for record in records))
        scope.scope.CopyFrom(InstrumentationScope(name=_SCOPE, version=__version__))
        of = ResourceLogs(resource=self.resource, scope_logs=[scope])
        answer = self.poster.post(ExportLogsServiceRequest(resource_logs=[of]).SerializeToString())
        rejected = min(rejected_lines(answer), len(records))
        return Sent(len(records) - rejected, rejected, "it says that it rejects them")

    def ask(self) -> str:
        self.poster.post(b"")
        return "takes log records"

    def close(self) -> None:
        """Nothing is open."""


def _any(value: object, depth: int = _DEPTH) -> AnyValue:
    """A value, with so many maps and lists within each other at most."""
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, str):
        return AnyValue(string_value=value)
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return AnyValue(int_value=value)
    if isinstance(value, int | float):
        return AnyValue(double_value=value)
    if isinstance(value, dict | list) and not depth:
        return AnyValue(string_value=json.dumps(value, separators=(",", ":"), ensure_ascii=False))
    if isinstance(value, dict):
        pairs = [KeyValue(key=key, value=_any(one, depth - 1)) for key, one in value.items()]
        return AnyValue(kvlist_value=KeyValueList(values=pairs))
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[_any(one, depth - 1) for one in value]))
    return AnyValue()
