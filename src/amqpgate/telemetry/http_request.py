"""One request of HTTP, sent by a thread: no redirects, no proxies, so that headers with logins go nowhere
else, and an end to it, however slowly the other side talks, and however much."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from threading import Event, Timer
from typing import Final
from urllib.parse import urlsplit

from amqpgate.config import HttpUrl
from amqpgate.logs import on_one_line
from amqpgate.values import frozen

#: Bytes of an answer that are read, at most: OpenSearch says some 150 of each document.
_MOST: Final = 4 << 20
#: Bytes that are read at once.
_CHUNK: Final = 1 << 20
#: Letters of what a peer said that are shown.
_SHOWN: Final = 200
#: Answers that may be of what is in a request. Others of 4xx are of addresses and logins, or ask to wait.
_OF_CONTENT: Final = frozenset({400, 422})


class NotTakenError(Exception):
    """What was sent was not taken; the text says why, and shows no header and nothing of an answer's body."""

    def __init__(self, why: str, pause: float = 0.0) -> None:
        super().__init__(why)
        #: Seconds in which nobody is to try again, as the other side asks.
        self.pause = pause


class NoHttpError(NotTakenError):
    """What answers there speaks no HTTP."""


class TooLargeError(NotTakenError):
    """It is too large for the other side."""


class NotUnderstoodError(NotTakenError):
    """The other side will never take the request: for what is in it, or since it is not who was meant."""


@frozen
class HttpAnswer:
    """What came back; nothing is known of the body."""

    status: int
    body: bytes
    #: Seconds that the other side asks to wait, or 0.
    pause: float

    def check(self) -> None:
        """Raises `NotTakenError` for all but 2xx."""
        if self.status == 413:
            raise TooLargeError("it answers 413: too large")
        if self.status in _OF_CONTENT:
            raise NotUnderstoodError(f"it answers {self.status}")
        if self.status // 100 != 2:
            raise NotTakenError(f"it answers {self.status}", self.pause)


class EndlessError(http.client.HTTPException):
    """The answer has more bytes, or takes longer, than anybody waits for; the text says which."""


def exchange(
    connection: http.client.HTTPConnection,
    verb: str,
    path: str,
    body: bytes | str | None,
    headers: Mapping[str, str],
    *,
    within: float,
    most: int,
) -> tuple[http.client.HTTPResponse, bytes]:
    """Send a request, and read all of its answer: ``most`` bytes, and ``within`` seconds of being connected.

    The caller closes the connection. Raises ``OSError`` and ``HTTPException`` where there is no such answer.
    """
    connection.connect()
    # The connection's own limit is for each read, and a byte may come in each.
    is_over = Event()
    end = Timer(within, _hang_up, (connection.sock, is_over))
    end.daemon = True
    end.start()
    try:
        connection.request(verb, path, body, dict(headers))
        answer = connection.getresponse()
        data = _read(answer, most)
    except (OSError, http.client.HTTPException):
        if not is_over.is_set():
            raise
    finally:
        end.cancel()
    if is_over.is_set():
        # Where the length is not said, the end of a connection looks like the end of an answer.
        raise EndlessError(f"its answer takes longer than {within:g} s")
    return answer, data


def _read(answer: http.client.HTTPResponse, most: int) -> bytes:
    data = bytearray()
    while part := answer.read(min(_CHUNK, most + 1 - len(data))):
        data += part
        if len(data) > most:
            raise EndlessError(f"its answer has more than {most} bytes")
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)
    return bytes(data)


def ask(
    url: HttpUrl,
    verb: str,
    path: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    ca: Path | None,
    timeout: float,
) -> HttpAnswer:
    """Send a request to a path there, and read the answer, within ``timeout`` seconds of being connected.

    Raises `NotTakenError` where there is none.
    """
    parts = urlsplit(str(url))
    host = parts.hostname or ""
    connection: http.client.HTTPConnection | None = None
    try:
        if url.is_tls:
            context = ssl.create_default_context(cafile=None if ca is None else str(ca))
            connection = http.client.HTTPSConnection(host, parts.port, timeout=timeout, context=context)
        else:
            connection = http.client.HTTPConnection(host, parts.port, timeout=timeout)
        answer, data = exchange(connection, verb, path, body, headers, within=timeout, most=_MOST)
        return HttpAnswer(answer.status, data, _pause(answer.getheader("retry-after")))
    except (OSError, ValueError) as error:
        raise NotTakenError(f"{type(error).__name__}: {error}") from None
    except http.client.HTTPException as error:
        kind = NotTakenError if isinstance(error, EndlessError | http.client.IncompleteRead) else NoHttpError
        raise kind(why_of(error)) from None
    finally:
        if connection is not None:
            connection.close()


def why_of(error: OSError | http.client.HTTPException) -> str:
    """Why there is no answer, on one line. Of what is no HTTP it shows how it begins."""
    if isinstance(error, http.client.BadStatusLine) and not isinstance(error, OSError):
        return f"no HTTP is spoken there: it says '{on_one_line(str(error).strip())[:_SHOWN]}'"
    return on_one_line(getattr(error, "strerror", None) or str(error) or type(error).__name__)[:_SHOWN]


def _hang_up(sock: socket.socket, is_over: Event) -> None:
    """Whoever reads or writes there stops. Below TLS, which another thread may be in."""
    is_over.set()
    try:
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        # It is over already.
        return


def _pause(text: str | None) -> float:
    """Of a header Retry-After: seconds; dates are not read."""
    return float(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 6 else 0.0
