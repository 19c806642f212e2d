"""``/livez``, ``/readyz``, ``/startupz`` and ``/metrics``: what machines ask, and what they are told.

Who is not trusted is told yes or no, and no more.
"""

from __future__ import annotations

from typing import Final

from amqpgate.admin.endpoint import Asked, EndpointAnswer, Endpoints
from amqpgate.admin.negotiating import takes_open_metrics
from amqpgate.admin.policy_states import policy_state
from amqpgate.admin.subject import AdminSubject
from amqpgate.gateway.server.policy_state import PolicyState
from amqpgate.telemetry.exemplars import MEDIA

#: Those that need no token.
OPEN: Final = frozenset({"/livez", "/readyz", "/startupz"})


def probe_endpoints(subject: AdminSubject) -> Endpoints:
    """What is told of ``subject``."""

    async def livez(_: Asked) -> EndpointAnswer:
        return EndpointAnswer(200, b"ok\n")

    async def startupz(_: Asked) -> EndpointAnswer:
        return EndpointAnswer(200, b"started\n") if subject.started else EndpointAnswer(503, b"starting\n")

    async def readyz(asked: Asked) -> EndpointAnswer:
        ready = subject.ready
        impaired = subject.impairments.shown or "a worker takes no connections"
        why = impaired if subject.phase == "ready" else subject.phase
        text = "ready\n" if ready else f"not ready: {why}\n"
        if asked.is_trusted:
            text += _policies(await policy_state(subject))
        return EndpointAnswer(200 if ready else 503, text.encode())

    async def metrics(asked: Asked) -> EndpointAnswer:
        # What it has beside the other format, exemplars, there is of traces alone.
        if subject.settings.tracing is not None and takes_open_metrics(asked.accept):
            return EndpointAnswer(200, await subject.metrics_text(is_open=True), MEDIA)
        return EndpointAnswer(200, await subject.metrics_text(), "text/plain; version=0.0.4; charset=utf-8")

    return {
        ("GET", "/livez"): livez,
        ("GET", "/readyz"): readyz,
        ("GET", "/startupz"): startupz,
        ("GET", "/metrics"): metrics,
    }


def _policies(state: PolicyState) -> str:
    """The lines of ``/readyz`` that follow the first one."""
    text = f"policies: {state.shown}\n" if state.digest else ""
    if state.error is None or state.status == "nothing":
        return text
    where = "".join(f"{part}:" for part in (state.file, state.line, state.column) if part is not None)
    return f"{text}policies: {where}{' ' if where else ''}{state.error}\n"
