"""One request of OTLP over HTTP: no redirects, no proxies, so that headers with logins go nowhere else."""

from __future__ import annotations

import http.client
import os
import ssl
import uuid
from typing import Final
from urllib.parse import urlsplit

from amqpgate.config import HttpUrl, Otlp
from amqpgate.errors import ConfigError
from amqpgate.values import frozen


class NotTakenError(Exception):
    """The collector has not taken it; the text says why, and shows no header."""


#: One for both, so that what a process says in either is known to be its.
_INSTANCE: Final = str(uuid.uuid4())


def resource_of(settings: Otlp, version: str) -> dict[str, str | int]:
    """Who speaks: this process."""
    return {
        "service.name": settings.service_name,
        "service.version": version,
        "service.instance.id": _INSTANCE,
        "process.pid": os.getpid(),
    }


@frozen
class Poster:
    """Sends to one endpoint. Blocks: it is for threads."""

    url: HttpUrl
    settings: Otlp

    def post(self, body: bytes) -> None:
        """Send it. Raises `NotTakenError`."""
        parts = urlsplit(str(self.url))
        timeout = float(self.settings.timeout)
        connection: http.client.HTTPConnection
        try:
            if self.url.is_tls:
                ca = None if self.settings.ca is None else str(self.settings.ca)
                context = ssl.create_default_context(cafile=ca)
                connection = http.client.HTTPSConnection(
                    parts.hostname or "", parts.port, timeout=timeout, context=context
                )
            else:
                connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)
            try:
                headers = {**self.settings.headers(), "content-type": "application/x-protobuf"}
                connection.request("POST", parts.path or "/", body, headers)
                status = connection.getresponse().status
            finally:
                connection.close()
        except (OSError, http.client.HTTPException, ConfigError) as error:
            raise NotTakenError(f"{type(error).__name__}: {error}") from None
        if status // 100 != 2:
            raise NotTakenError(f"it answers {status}")
