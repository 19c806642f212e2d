"""The injector as a mutating admission webhook, over HTTPS, at ``/inject``.

Neighbours: ``inject`` says what to answer, ``admin.admission`` serves it; ``cli`` calls this.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import trio

from amqpgate.admin import admission
from amqpgate.admin.signals import run_until_signalled
from amqpgate.errors import ConfigError
from amqpgate.inject import Injector, ReviewAnswer, answer
from amqpgate.yamldoc.schema import Json

log = logging.getLogger(__name__)


def answering(settings: Injector) -> Callable[[bytes], dict[str, Json]]:
    """What answers a question, and writes a line of it."""

    def answered(body: bytes) -> dict[str, Json]:
        given = answer(body, settings)
        _tell(given)
        return given.review

    return answered


def _tell(given: ReviewAnswer) -> None:
    if given.why_not is not None:
        log.warning("%s: no sidecar: %s", given.pod, given.why_not)
    elif given.is_changed:
        log.info("%s: sidecar for %s", given.pod, ", ".join(given.variables) or "no variable")
    else:
        log.debug("%s: nothing to do", given.pod)


async def serve(
    settings: Injector,
    *,
    shutdown: Callable[[], Awaitable[None]],
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until ``shutdown`` returns. The status is the address that was bound, as a URL.

    Raises ``ConfigError`` where there is no certificate, and ``OSError`` where the address is taken.
    """
    if settings.tls is None:
        raise ConfigError("the API server calls webhooks by HTTPS only: say tls with cert and key")
    app = admission.application("/inject", answering(settings))
    await admission.serve(app, settings.bind, settings.tls, shutdown=shutdown, task_status=task_status)


def run(settings: Injector) -> None:
    """Serve until SIGTERM or SIGINT; what is being answered then is answered. Raises as ``serve``."""

    async def until(shutdown: Callable[[], Awaitable[None]], task_status: trio.TaskStatus[str]) -> None:
        await serve(settings, shutdown=shutdown, task_status=task_status)

    run_until_signalled(
        until, lambda bound: log.info("webhook: %s/inject, sidecars of %s", bound, settings.image)
    )
