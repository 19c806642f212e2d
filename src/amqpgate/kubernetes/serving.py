"""The operator as a process: its part in the lease, and what kubelets and Prometheus ask.

============  ==================================================================================
``/livez``    200
``/readyz``   200: it waits for the lease, or has listed and written all; 503: not yet, or no more
``/metrics``  for Prometheus
============  ==================================================================================
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import trio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from amqpgate.admin import admission
from amqpgate.admin.door import MOST_CONNECTIONS, Door
from amqpgate.admin.framework import Framework
from amqpgate.admin.signals import run_until_signalled
from amqpgate.errors import ConfigError
from amqpgate.kubernetes.api import Api
from amqpgate.kubernetes.lease import Leadership
from amqpgate.kubernetes.metrics import OperatorMetrics
from amqpgate.kubernetes.reconciling import Reconciling
from amqpgate.logs import RECURRING
from amqpgate.resources.documents import Json
from amqpgate.resources.in_force import ResourceJudge
from amqpgate.resources.review import answer
from amqpgate.resources.settings import NamespaceName, Operator, ServerUrl

log = logging.getLogger(__name__)

#: What Kubernetes puts into each pod that has a service account.
ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_IDLE: Final = 30.0
_LAST_WORDS: Final = 2.0


@attrs.define(eq=False)
class OperatorProcess:
    """One operator, leading or not."""

    settings: Operator
    namespace: str
    api: Api
    metrics: OperatorMetrics
    identity: str = attrs.field(factory=lambda: f"{socket.gethostname()}_{os.getpid()}")
    _working: Reconciling | None = attrs.field(default=None, init=False)

    @classmethod
    def of(cls, settings: Operator, environ: Mapping[str, str], account: Path = ACCOUNT) -> OperatorProcess:
        """By its settings and what the pod has. Raises `ConfigError`."""
        server = settings.server
        host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
        url = server.url
        if url is None:
            if not host or not port:
                raise ConfigError("this is no pod: say server.url, server.tokenFile and server.ca")
            url = ServerUrl.parse(f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}")
        token = server.token_file or _file(account / "token")
        if settings.namespace is not None:
            namespace = str(settings.namespace)
        elif (file := account / "namespace").is_file():
            namespace = str(NamespaceName.parse(file.read_text().strip()))
        else:
            raise ConfigError("this is no pod: say namespace")
        return cls(
            settings, namespace, Api(url, token, server.ca or _file(account / "ca.crt")), OperatorMetrics()
        )

    @property
    def is_ready(self) -> bool:
        """Whether it waits, or has done its work."""
        return self._working is None or self._working.is_ready

    async def run(self) -> None:
        """For ever."""
        lease = Leadership(self.api, self.namespace, str(self.settings.lease), self.identity)
        try:
            await lease.lead(self._work)
        finally:
            with trio.CancelScope(shield=True):
                await self.api.close()

    async def _work(self) -> None:
        self._working = Reconciling(self.settings, self.namespace, self.api, self.identity, self.metrics)
        try:
            await self._working.run()
        finally:
            self._working = None

    def application(self) -> Starlette:
        """What is asked of it."""

        async def live(_request: Request) -> Response:
            return PlainTextResponse("ok\n")

        async def ready(_request: Request) -> Response:
            return PlainTextResponse("ok\n") if self.is_ready else PlainTextResponse("not yet\n", 503)

        async def metrics(_request: Request) -> Response:
            return Response(self.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

        return Starlette(routes=[Route("/livez", live), Route("/readyz", ready), Route("/metrics", metrics)])


def _file(path: Path) -> Path | None:
    return path if path.is_file() else None


async def serve(
    process: OperatorProcess,
    *,
    shutdown: Callable[[], Awaitable[None]],
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Work, and answer, until ``shutdown`` returns. The status is the address that was bound, as a URL."""
    framework = Framework(process.application(), _IDLE)

    async def talk(stream: trio.abc.Stream, on_moved: Callable[[], None]) -> None:
        await framework.serve(stream, b"", on_moved)

    over = trio.Event()
    async with trio.open_nursery() as outer:
        if (webhook := process.settings.webhook) is not None:
            judge = ResourceJudge.of(process.settings, process.namespace)
            app = admission.application("/validate", answering(judge))
            serving = partial(admission.serve, app, webhook.bind, webhook.tls, shutdown=over.wait)
            log.info("webhook: %s/validate", await outer.start(serving))
        async with trio.open_nursery() as nursery:

            async def end() -> None:
                await shutdown()
                nursery.cancel_scope.cancel()

            door = Door("the operator", talk, MOST_CONNECTIONS)
            bound = await nursery.start(door.serve, process.settings.bind, None, end, _LAST_WORDS)
            task_status.started(bound)
            await process.run()
        # What is being answered is answered.
        over.set()


def answering(judge: ResourceJudge) -> Callable[[bytes], dict[str, Json]]:
    """What answers whether a policy may be stored, and writes a line of what may not."""

    def answered(body: bytes) -> dict[str, Json]:
        given = answer(body, judge)
        if given.reason is not None:
            log.warning("%s: not stored: %s", given.name, given.reason, extra=RECURRING)
        return given.review

    return answered


def run(process: OperatorProcess) -> None:
    """Until SIGTERM or SIGINT. Raises ``OSError`` where an address is taken."""

    async def until(shutdown: Callable[[], Awaitable[None]], task_status: trio.TaskStatus[str]) -> None:
        await serve(process, shutdown=shutdown, task_status=task_status)

    def tell(bound: str) -> None:
        names = ", ".join((process.namespace, *(str(one.namespace) for one in process.settings.tenants)))
        log.info("operator: %s/metrics, API server %s, namespaces %s", bound, process.api.url, names)

    run_until_signalled(until, tell)
