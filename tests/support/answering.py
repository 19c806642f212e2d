"""An HTTP server of a test's own, for clients of the admin interface."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class QuietHandler(http.server.BaseHTTPRequestHandler):
    """A handler that logs nothing."""

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def answering(handler: type[QuietHandler]) -> Iterator[str]:
    """The address of a server whose requests this handler answers."""
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
