"""Where metrics and log lines go by OTLP over HTTP (OpenTelemetry), beside Prometheus and standard error."""

from __future__ import annotations

import attrs

from amqpgate.config.tracing import HttpUrl, ToCollector
from amqpgate.values import frozen
from amqpgate.yamldoc import FilePath, Invalid, Seconds, between, doc, not_empty


@frozen(kw_only=True)
class Otlp(ToCollector):
    """Where metrics and log lines are sent. Nobody waits: what is not taken is dropped."""

    metrics: HttpUrl | None = attrs.field(
        default=None, metadata=doc("where metrics are taken, such as `http://127.0.0.1:4318/v1/metrics`")
    )
    logs: HttpUrl | None = attrs.field(
        default=None, metadata=doc("where log lines are taken, such as `http://127.0.0.1:4318/v1/logs`")
    )
    headers_file: FilePath | None = attrs.field(
        default=None,
        metadata=doc("file with HTTP headers for them, one `name: value` a line; logins belong there"),
    )
    ca: FilePath | None = attrs.field(
        default=None,
        metadata=doc(
            "authorities that may sign their certificates, PEM; with `https://`", default="the system's"
        ),
    )
    timeout: Seconds = attrs.field(
        default=Seconds(10), validator=between(0.1, 300), metadata=doc("time for an answer")
    )
    interval: Seconds = attrs.field(
        default=Seconds(30),
        validator=between(0.1, 3600),
        metadata=doc("time between two looks at the metrics"),
    )
    queue: int = attrs.field(
        default=2048,
        validator=between(1, 1_000_000),
        metadata=doc("log lines that wait to be sent, at most; some 1 KiB each"),
    )
    service_name: str = attrs.field(
        default="amqpgate", validator=not_empty(), metadata=doc("`service.name` of the gateway there")
    )

    def __attrs_post_init__(self) -> None:
        if self.metrics is None and self.logs is None:
            raise Invalid("name where metrics go, or logs")
        self.check(self.metrics, self.logs)
