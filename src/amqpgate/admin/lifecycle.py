"""``/lifecycle``: whether new connections are taken, and how far a drain is; drain, pause and resume by POST.

A process that takes the ports over says so when it asks for the drain: the answer comes when nothing is
listened on here any more, and the admin address is given up behind it. That process may be another version's,
whose files lie where this one's were: so nothing is imported for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import attrs

from amqpgate.admin.asking import signed
from amqpgate.admin.endpoint import Asked, EndpointAnswer, Endpoints, object_in
from amqpgate.admin.subject import AdminSubject, Refused
from amqpgate.gateway.server.standing import Standing, combine
from amqpgate.gateway.transport.binding import LINGER
from amqpgate.telemetry.answers import JSON, Answers, encoded

#: How long the workers of a process that is taken over may take to stop listening.
_HAND_OVER_PATIENCE = LINGER + 5.0


def lifecycle_endpoints(subject: AdminSubject) -> Endpoints:
    """What is asked of ``subject``."""
    has_successor = False

    async def standing(_: Asked) -> EndpointAnswer:
        return await _shown((await subject.call("lifecycle")).complete())

    async def pause(_: Asked) -> EndpointAnswer:
        return await _shown((await subject.order("pause", signed())).complete())

    async def resume(_: Asked) -> EndpointAnswer:
        return await _shown((await subject.order("resume", signed())).complete())

    async def drain(asked: Asked) -> EndpointAnswer:
        args = _drain_args(asked.body)
        if "successors" not in args:
            # Who does not answer has ended already, maybe.
            return await _shown(await subject.order("drain", signed(args)), 202)
        nonlocal has_successor
        if has_successor:
            raise Refused(409, "another process is taking the place of this one")
        has_successor = True
        answers = (await subject.order("drain", signed(args), patience=_HAND_OVER_PATIENCE)).complete()
        return attrs.evolve(await _shown(answers, 202), after=subject.hand_over)

    return {
        ("GET", "/lifecycle"): standing,
        ("POST", "/pause"): pause,
        ("POST", "/resume"): resume,
        ("POST", "/drain"): drain,
    }


async def _shown(answers: Answers, status: int = 200) -> EndpointAnswer:
    standings = [Standing(**cast("dict[str, JSON]", one)) for one in answers.values()]  # type: ignore[arg-type]
    return EndpointAnswer(status, await encoded(attrs.asdict(combine(standings))), "application/json")


def _drain_args(body: bytes) -> Mapping[str, JSON]:
    """What the body says: nothing, or a window in seconds, and how many processes take over."""
    said = object_in(body, "window", "successors")
    for name, least, most, kinds in (("window", 0, 86400, (int, float)), ("successors", 1, 256, (int,))):
        value = said.get(name, least)
        if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
            raise Refused(400, f"{name}: a number from {least} to {most}")
    return said
