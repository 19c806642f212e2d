"""A receiver of documents as OpenSearch is one, by `_bulk`: it keeps them, and can misbehave.

What it checks and answers is what Elasticsearch 7.10 was seen to: lines that end, an action before each
document, 409 for an id that is there, the status of each; 400 for each of an index that is closed, as for a
document that does not fit the fields there are.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

#: What it does with a request: a status, a name, or the statuses of documents by their ids.
Manner = int | str | Callable[[str], int]

#: What an index says of a document that it does not take: a status and the type of an error.
Refusal = tuple[int, str]
CLOSED: Refusal = (400, "index_closed_exception")
UNFIT: Refusal = (400, "mapper_parsing_exception")
NO_FIELD: Refusal = (400, "illegal_argument_exception")


class Fields:
    """A mapping that grows with what comes, as without a template, and refuses what does not fit it. Texts of
    which the first looks like a date are dates."""

    def __init__(self, most: int = 1000) -> None:
        self.most = most
        self.kinds: dict[str, str] = {}

    def refuses(self, document: dict[str, Any]) -> Refusal | None:
        found: dict[str, str] = {}
        try:
            self._look("", document, found)
        except ValueError:
            return UNFIT
        if len(self.kinds | found) > self.most:
            return NO_FIELD
        self.kinds |= found
        return None

    def _look(self, path: str, value: object, found: dict[str, str]) -> None:
        known = self.kinds.get(path) or found.get(path)
        if isinstance(value, list):
            for one in value:
                self._look(path, one, found)
        elif isinstance(value, dict):
            if known not in (None, "object"):
                raise ValueError(path)
            found[path] = "object"
            for name, one in value.items():
                # Before a dot is the name of an object.
                first, dot, rest = name.partition(".")
                if not first.strip() or (dot and not rest):
                    raise ValueError(name)
                self._look(f"{path}.{first}", {rest: one} if dot else one, found)
        elif value is not None:
            is_date = isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value) is not None
            kind = known or ("date" if is_date else "text" if isinstance(value, str) else "number")
            fits = {"text": True, "date": is_date or not isinstance(value, str), "object": False}
            if not fits.get(kind, not isinstance(value, str)):
                raise ValueError(path)
            found[path] = kind


class BulkReceiver:
    """Use it as a context manager. ``manners`` are for the requests that come, one after the other; then it
    takes all. ``hangs``: no answer; ``drips``: a byte at a time; ``garbage``, ``infinite``: something else;
    ``closes``; and ``forgets`` to answer what it took."""

    def __init__(self, *manners: Manner, tls: ssl.SSLContext | None = None, pause: float = 0.0) -> None:
        self.manners = list(manners)
        #: What it does once these are used up.
        self.always: Manner = 200
        self.most = 1 << 30
        self.pause = pause
        #: What the index says of a document.
        self.refuses: Callable[[dict[str, Any]], Refusal | None] = lambda document: None
        #: By index and id; and how often each id came.
        self.documents: dict[tuple[str, str], dict[str, Any]] = {}
        self.times: dict[str, int] = {}
        self.requests: list[tuple[str, dict[str, str], int]] = []
        self._lock = threading.Lock()
        self._released = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver._post(self)

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        if tls is not None:
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.scheme = "http" if tls is None else "https"
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def of(self, index: str) -> list[dict[str, Any]]:
        return [document for (where, _), document in list(self.documents.items()) if where == index]

    def _post(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        with self._lock:
            headers = {name.lower(): value for name, value in request.headers.items()}
            self.requests.append((request.path, headers, len(body)))
            manner = self.manners.pop(0) if self.manners else self.always
        time.sleep(self.pause)
        if len(body) > self.most:
            manner = 413
        if manner == "hangs":
            self._released.wait()
        elif manner in ("closes", "forgets"):
            if manner == "forgets":
                self._take(request.path, body, lambda _: 201)
            request.connection.shutdown(socket.SHUT_RDWR)
        elif manner == "drips":
            for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 10_000:
                request.wfile.write(bytes([byte]))
                if self._released.wait(0.05):
                    break
        elif manner == "garbage":
            self._answer(request, 200, b'{"items": [{"create": {"status": "no"}}]}')
        elif manner == "infinite":
            self._answer(request, 200, b'{"items": [{"create": {"status": 1e999}}]}')
        elif manner == 200 or callable(manner):
            status = manner if callable(manner) else lambda _: 201
            self._answer(request, 200, json.dumps(self._take(request.path, body, status)).encode())
        else:
            assert isinstance(manner, int)
            self._answer(request, manner, b'{"error": "hunter2"}', {"Retry-After": "0"})

    def _take(self, path: str, body: bytes, status_of: Callable[[str], int]) -> dict[str, Any]:
        index, _, query = path.removeprefix("/").partition("/_bulk")
        assert query.startswith("?filter_path="), path
        assert body.endswith(b"\n"), "the bulk request must be terminated by a newline"
        lines = body.split(b"\n")[:-1]
        assert len(lines) % 2 == 0
        items: list[dict[str, Any]] = []
        with self._lock:
            for action, document in zip(lines[::2], lines[1::2], strict=True):
                (create,) = json.loads(action).values()
                known, number = json.loads(document), create["_id"]
                assert isinstance(known["@timestamp"], int)
                self.times[number] = self.times.get(number, 0) + 1
                status = status_of(number)
                if (index, number) in self.documents:
                    status = 409
                error = "some_exception"
                # Documents are parsed before ids are looked up.
                if (refusal := self.refuses(known)) is not None:
                    status, error = refusal
                item: dict[str, Any] = {"status": status}
                if status == 201:
                    self.documents[index, number] = known
                else:
                    item["error"] = {"type": error, "reason": "hunter2"}
                items.append({"create": item})
        return {"errors": any("error" in item["create"] for item in items), "items": items}

    @staticmethod
    def _answer(
        request: BaseHTTPRequestHandler, status: int, body: bytes, more: dict[str, str] | None = None
    ) -> None:
        request.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(more or {})}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)
