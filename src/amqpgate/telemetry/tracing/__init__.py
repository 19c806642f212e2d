"""Spans of what passes the gateway, and their way to a collector (OpenTelemetry, OTLP over HTTP).

In come operations and messages that a trace policy has chosen; out go spans. Whether one is chosen is decided
before anything in here is called.

- `semconv`: the names of spans and attributes, by OpenTelemetry's conventions for messaging and RabbitMQ.
- `context`: the trace context that a message carries (W3C Trace Context).
- `spans`: one span, from its start to its end.
- `export`: the queue, the thread that sends, and what is dropped; its counters are in `counters`.

Neighbours: ``gateway`` starts and ends spans; this room knows ``config`` and the OpenTelemetry SDK.
"""
