"""The injector as a mutating admission webhook, over HTTPS.

==================  ===============================================================================
``POST /inject``    an AdmissionReview: 200 with the answer, 400 for what is none; 408, 413, 415, 503
``GET /livez``      200
``GET /readyz``     200
==================  ===============================================================================

Neighbours: ``inject`` says what to answer, ``admin.https`` has the certificate; ``cli`` calls this.
"""

from __future__ import annotations

import logging
import signal
import ssl
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Final

import attrs
import hypercorn.config
import hypercorn.trio
import trio
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from amqpgate.admin.https import Certificates
from amqpgate.config import ListenerTls
from amqpgate.errors import ConfigError
from amqpgate.inject import BadReviewError, Injector, ReviewAnswer, answer
from amqpgate.logs import RECURRING

log = logging.getLogger(__name__)

#: Bytes of one question. The API server takes objects up to 3 MiB; a review of a new pod holds it once.
MAX_BODY: Final = 4 << 20
#: Bytes of questions that have arrived in part. Who would need more is told to come again.
MAX_HELD: Final = 64 << 20
#: Seconds for a question to arrive. The API server waits 10 by default, and 30 at most.
BODY_TIMEOUT: Final = 10.0


class _RefusedError(Exception):
    """A request that is not read to its end."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@attrs.define
class _Bodies:
    """What callers are sending."""

    timeout: float
    held: int = 0

    async def read(self, request: Request) -> bytes:
        """The body of a request. Raises ``_RefusedError``."""
        body = bytearray()
        try:
            with trio.fail_after(self.timeout):
                async with aclosing(request.stream()) as chunks:
                    async for chunk in chunks:
                        body += chunk
                        self.held += len(chunk)
                        if len(body) > MAX_BODY:
                            raise _RefusedError(413, f"the body is larger than {MAX_BODY} bytes")
                        if self.held > MAX_HELD:
                            raise _RefusedError(503, "too many requests at once")
        except trio.TooSlowError:
            raise _RefusedError(408, f"no whole request in {self.timeout:g} s") from None
        except ClientDisconnect:
            raise _RefusedError(400, "the request broke off") from None
        finally:
            self.held -= len(body)
        return bytes(body)


def application(settings: Injector, *, body_timeout: float = BODY_TIMEOUT) -> Starlette:
    """The ASGI application."""
    bodies = _Bodies(body_timeout)

    async def inject(request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            return _refusal(415, "an AdmissionReview is application/json")
        try:
            given = answer(await bodies.read(request), settings)
        except _RefusedError as error:
            return _refusal(error.status, str(error))
        except BadReviewError as error:
            return _refusal(400, str(error))
        _tell(given)
        return JSONResponse(given.review)

    async def healthy(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    return Starlette(
        routes=[
            Route("/inject", inject, methods=["POST"]),
            Route("/livez", healthy),
            Route("/readyz", healthy),
        ]
    )


def _refusal(status: int, text: str) -> Response:
    log.warning("a request that is not answered: %d %s", status, text, extra=RECURRING)
    return PlainTextResponse(text + "\n", status_code=status)


def _tell(given: ReviewAnswer) -> None:
    if given.why_not is not None:
        log.warning("%s: no sidecar: %s", given.pod, given.why_not)
    elif given.is_changed:
        log.info("%s: sidecar for %s", given.pod, ", ".join(given.variables) or "no variable")
    else:
        log.debug("%s: nothing to do", given.pod)


class _ServerConfig(hypercorn.config.Config):
    """How hypercorn serves HTTPS at one address. Raises ``ConfigError`` where its files cannot be used."""

    def __init__(self, address: str, tls: ListenerTls) -> None:
        self.bind = [address]
        self.accesslog = None
        self.errorlog = logging.getLogger("hypercorn.error")
        # That there is TLS; `create_ssl_context` makes it.
        self.certfile, self.keyfile = str(tls.cert), str(tls.key)
        # With HTTP/2 one connection could ask many questions at once.
        self.alpn_protocols = ["http/1.1"]
        self.graceful_timeout = 5.0
        self.ssl_handshake_timeout = 5.0
        # Longer than the API server keeps one (90 s): so it is never the one that is surprised.
        self.keep_alive_timeout = 120.0
        self._certificates = Certificates(tls, self.alpn_protocols)

    def create_ssl_context(self) -> ssl.SSLContext:
        return self._certificates.context()


async def serve(
    settings: Injector,
    *,
    shutdown: Callable[[], Awaitable[None]],
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until ``shutdown`` returns. The status is the list of addresses that were bound.

    Raises ``ConfigError`` where there is no certificate, and ``OSError`` where the address is taken.
    """
    if settings.tls is None:
        raise ConfigError("the API server calls webhooks by HTTPS only: say tls with cert and key")
    await hypercorn.trio.serve(
        application(settings),  # type: ignore[arg-type]
        _ServerConfig(str(settings.bind), settings.tls),
        shutdown_trigger=shutdown,
        task_status=task_status,
        mode="asgi",
    )


def run(settings: Injector) -> None:
    """Serve until SIGTERM or SIGINT; what is being answered then is answered. Raises as ``serve``."""
    trio.run(_run, settings)


async def _run(settings: Injector) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:

        async def signalled() -> None:
            async for number in signals:
                log.info("%s: ending", signal.Signals(number).name)
                return

        async with trio.open_nursery() as root:
            bound: list[str] = await root.start(_serve_until, settings, signalled)
            log.info("webhook: %s/inject, sidecars of %s", bound[0], settings.image)


async def _serve_until(
    settings: Injector,
    shutdown: Callable[[], Awaitable[None]],
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> None:
    await serve(settings, shutdown=shutdown, task_status=task_status)
