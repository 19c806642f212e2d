"""Stands in for the Docker daemon: whatever image is asked for, the container is a broker that runs already.

aio-pika's and aiormq's tests start their RabbitMQ by Docker's HTTP API. They need five calls of it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class DockerStandIn:
    """An HTTP server on loopback; tests find it by `DOCKER_HOST=<url>`."""

    def __init__(self, ports: Mapping[str, int]) -> None:
        """`ports`: what each of the container's ports is here, e.g. `{"5672/tcp": 23456}`."""
        bindings = {name: [{"HostIp": "127.0.0.1", "HostPort": str(port)}] for name, port in ports.items()}
        container = {"Id": "stand-in", "NetworkSettings": {"Ports": bindings}}

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = json.dumps(container).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"tcp://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
