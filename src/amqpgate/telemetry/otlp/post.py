"""One request of OTLP over HTTP, and who speaks."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from amqpgate.config import HttpUrl
from amqpgate.errors import ConfigError
from amqpgate.telemetry.http_request import NotTakenError, ask
from amqpgate.values import frozen

#: One for all, so that what a process says in either is known to be its.
_INSTANCE: Final = str(uuid.uuid4())


class CollectorSettings(Protocol):
    """How a collector is talked to."""

    @property
    def ca(self) -> Path | None:
        """Who may sign its certificate."""

    @property
    def timeout(self) -> float:
        """Seconds for an answer."""

    @property
    def service_name(self) -> str:
        """Of the gateway, there."""

    def headers(self) -> Mapping[str, str]:
        """For it. Raises ``ConfigError``."""


#: The most seconds that a collector can ask to be left alone.
MOST_ASKED: Final = 60.0

S = TypeVar("S", bound=CollectorSettings)


def resource_of(settings: CollectorSettings, version: str) -> dict[str, str | int]:
    """Who speaks: this process."""
    return {
        "service.name": settings.service_name,
        "service.version": version,
        "service.instance.id": _INSTANCE,
        "process.pid": os.getpid(),
    }


def rejected_lines(answer: bytes) -> int:
    """How many log records a collector says that it rejects, of those that it was sent."""
    try:
        lost: int = max(0, ExportLogsServiceResponse.FromString(answer).partial_success.rejected_log_records)
    except DecodeError:
        return 0
    return lost


def rejected_points(answer: bytes) -> int:
    """Likewise, of data points of metrics."""
    try:
        lost: int = max(
            0, ExportMetricsServiceResponse.FromString(answer).partial_success.rejected_data_points
        )
    except DecodeError:
        return 0
    return lost


@frozen
class Poster(Generic[S]):
    """Sends to one endpoint. Blocks: it is for threads."""

    url: HttpUrl
    settings: S

    def post(self, body: bytes) -> bytes:
        """Send it; what a collector that takes it answers. Raises `NotTakenError`."""
        settings = self.settings
        try:
            headers = {**settings.headers(), "content-type": "application/x-protobuf"}
        except ConfigError as error:
            raise NotTakenError(str(error)) from None
        path = urlsplit(str(self.url)).path or "/"
        answer = ask(self.url, "POST", path, body, headers, ca=settings.ca, timeout=float(settings.timeout))
        answer.check()
        return answer.body
