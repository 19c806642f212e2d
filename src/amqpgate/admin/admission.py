"""Admission webhooks: questions of an API server over HTTPS, each answered by a function.

==================  ===============================================================================
``POST /PATH``      an AdmissionReview: 200 with the answer, 400 for what is none; 408, 413, 415, 503
``GET /livez``      200
``GET /readyz``     200
==================  ===============================================================================

Neighbours: ``app`` and ``kubernetes`` say what to answer; connections are taken in by `door`, have a
certificate by `https`, and speak HTTP by `framework`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import attrs
import trio
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from amqpgate.admin.door import MOST_CONNECTIONS, Door
from amqpgate.admin.framework import Framework
from amqpgate.admin.https import Certificates
from amqpgate.config import Address, ListenerTls
from amqpgate.inject import BadReviewError
from amqpgate.logs import RECURRING

if TYPE_CHECKING:
    from typing import TypeAlias

    from amqpgate.yamldoc.schema import Json

    #: The review to send back for the body of a question, whose log line it writes. Raises `BadReviewError`.
    Answer: TypeAlias = Callable[[bytes], dict[str, Json]]

log = logging.getLogger(__name__)

#: Bytes of one question. The API server takes objects up to 3 MiB; a review of a new pod holds it once.
MAX_BODY: Final = 4 << 20
#: Bytes of questions that have arrived in part. Who would need more is told to come again.
MAX_HELD: Final = 64 << 20
#: Questions that are answered at once.
_THREADS: Final = 2
#: Seconds for a question to arrive. The API server waits 10 by default, and 30 at most.
BODY_TIMEOUT: Final = 10.0
#: Seconds for a TLS handshake, and for what is being answered when the webhook ends.
_HANDSHAKE: Final = 5.0
_LAST_WORDS: Final = 5.0
#: Seconds between requests. Longer than the API server keeps a connection (90 s): so it is never surprised.
_KEEP_ALIVE: Final = 120.0


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


def application(path: str, answer: Answer, *, body_timeout: float = BODY_TIMEOUT) -> Starlette:
    """The ASGI application, which answers at ``path``."""
    bodies = _Bodies(body_timeout)
    threads = trio.CapacityLimiter(_THREADS)

    async def review(request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            return _refusal(415, "an AdmissionReview is application/json")
        try:
            # A large one takes a while, and others wait for a lease, or for a probe.
            body = await bodies.read(request)
            return JSONResponse(await trio.to_thread.run_sync(answer, body, limiter=threads))
        except _RefusedError as error:
            return _refusal(error.status, str(error))
        except BadReviewError as error:
            return _refusal(400, str(error))

    async def healthy(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    return Starlette(
        routes=[
            Route(path, review, methods=["POST"]),
            Route("/livez", healthy),
            Route("/readyz", healthy),
        ]
    )


def _refusal(status: int, text: str) -> Response:
    log.warning("a request that is not answered: %d %s", status, text, extra=RECURRING)
    return PlainTextResponse(text + "\n", status_code=status)


async def serve(
    app: Starlette,
    bind: Address,
    tls: ListenerTls,
    *,
    shutdown: Callable[[], Awaitable[None]],
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until ``shutdown`` returns. The status is the address that was bound, as a URL.

    Raises ``ConfigError`` where the certificate is none, and ``OSError`` where the address is taken.
    """
    context = Certificates(tls).context()
    framework = Framework(app, _KEEP_ALIVE)

    async def talk(stream: trio.abc.Stream, on_moved: Callable[[], None]) -> None:
        assert isinstance(stream, trio.SSLStream)
        with contextlib.suppress(trio.BrokenResourceError, trio.TooSlowError):
            with trio.fail_after(_HANDSHAKE):
                await stream.do_handshake()
            await framework.serve(stream, b"", on_moved)

    async def end() -> None:
        await shutdown()
        await framework.end()

    door = Door("the webhook", talk, MOST_CONNECTIONS)
    await door.serve(bind, context, end, _LAST_WORDS, task_status)
