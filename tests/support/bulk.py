"""A receiver of documents as OpenSearch is one, by `_bulk`: it keeps them, and can misbehave.

What it checks and answers is OpenSearch's: lines that end, an action before each document, 409 for an id
that is there, the status of each.
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

#: What it does with a request: a status, a name, or the statuses of documents by their ids.
Manner = int | str | Callable[[str], int]


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
                item: dict[str, Any] = {"status": status}
                if status == 201:
                    self.documents[index, number] = known
                else:
                    item["error"] = {"type": "some_exception", "reason": "hunter2"}
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
