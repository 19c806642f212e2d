"""A collector that takes spans, metrics and log lines by OTLP over HTTP, on a port of loopback."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, Self

import attrs
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import ResourceMetrics
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from .inprocess import eventually

#: ``takes``: 200. ``refuses``: 400, which is final. ``hangs``: the request is read and not answered.
Manner = Literal["takes", "refuses", "hangs"]


@attrs.frozen
class Event:
    name: str
    attributes: dict[str, object]


@attrs.frozen
class Received:
    """A span as it was sent; ids in hexadecimal."""

    service: str
    name: str
    #: ``client``, ``producer``, ...
    kind: str
    trace: str
    id: str
    #: Empty: none.
    parent: str
    #: Trace and span of each link.
    links: list[tuple[str, str]]
    attributes: dict[str, object]
    events: list[Event]
    is_error: bool
    #: In nanoseconds since 1970.
    start: int
    end: int


class Collector:
    """Use it as a context manager."""

    def __init__(self, manner: Manner = "takes", port: int = 0) -> None:
        self.manner: Manner = manner
        #: Requests that have this are refused.
        self.poison: bytes | None = None
        #: Status, headers and body of the answers to the next requests.
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        #: Bytes of a request that it takes, at most.
        self.most = 1 << 30
        self.spans: list[Received] = []
        self.metrics: list[ResourceMetrics] = []
        self.logs: list[ResourceLogs] = []
        self.requests: list[dict[str, str]] = []
        #: Attributes of each resource, by ``service.instance.id``.
        self.resources: dict[str, dict[str, object]] = {}
        self._released = threading.Event()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                collector._post(self)

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1/traces"

    def of(self, signal: str) -> str:
        """The endpoint of `metrics` or `logs`."""
        return f"http://127.0.0.1:{self.port}/v1/{signal}"

    def lines(self) -> list[tuple[str, dict[str, object], LogRecord]]:
        """Each log line: its text, its attributes, and all of it."""
        return [
            (line.body.string_value, _plain(line.attributes), line)
            for of in list(self.logs)
            for scope in of.scope_logs
            for line in scope.log_records
        ]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def named(self, name: str) -> list[Received]:
        return [span for span in self.spans if span.name == name]

    def wait_for(self, *names: str) -> list[Received]:
        """Until there is a span of each of these names; the last of each."""
        eventually(lambda: all(self.named(name) for name in names))
        return [self.named(name)[-1] for name in names]

    def wait_until(self, done: Callable[[], bool]) -> None:
        eventually(done)

    def _post(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        if request.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.requests.append({name.lower(): value for name, value in request.headers.items()})
        if self.manner == "hangs":
            self._released.wait()
            return
        if self.answers or len(body) > self.most:
            status, headers, answer = self.answers.pop(0) if self.answers else (413, dict[str, str](), b"")
            request.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(answer))}.items():
                request.send_header(name, value)
            request.end_headers()
            request.wfile.write(answer)
            return
        if self.manner == "refuses" or (self.poison is not None and self.poison in body):
            request.send_response(400)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        if request.path == "/v1/metrics":
            self.metrics += ExportMetricsServiceRequest.FromString(body).resource_metrics
        elif request.path == "/v1/logs":
            self.logs += ExportLogsServiceRequest.FromString(body).resource_logs
        else:
            self._take_spans(ExportTraceServiceRequest.FromString(body))
        answer = ExportTraceServiceResponse().SerializeToString()
        request.send_response(200)
        request.send_header("Content-Type", "application/x-protobuf")
        request.send_header("Content-Length", str(len(answer)))
        request.end_headers()
        request.wfile.write(answer)

    def _take_spans(self, message: ExportTraceServiceRequest) -> None:
        for one in message.resource_spans:
            resource = _plain(one.resource.attributes)
            self.resources[str(resource["service.instance.id"])] = resource
            for scope in one.scope_spans:
                self.spans += [_span(str(resource["service.name"]), span) for span in scope.spans]


def _span(service: str, span: ProtoSpan) -> Received:
    return Received(
        service,
        span.name,
        ProtoSpan.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
        _plain(span.attributes),
        [Event(event.name, _plain(event.attributes)) for event in span.events],
        span.status.code == Status.STATUS_CODE_ERROR,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
    )


def _plain(attributes: list[KeyValue]) -> dict[str, object]:
    return {one.key: _value(one.value) for one in attributes}


def _value(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    return getattr(value, kind) if kind else None
