"""What may be asked of a gateway, or of each worker of one: a table, so that nobody else need know the calls.

A call's arguments and its answer are JSON. A call that is answered at once is answered before the next one
is looked at, so orders take effect in their order; what takes time answers with an awaitable, and others
pass it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Final, TypeAlias, cast

import attrs

from amqpgate.gateway.server.gateway import Gateway
from amqpgate.logs import level_now, set_level, shown
from amqpgate.operator.explain import explain
from amqpgate.operator.graph import graph
from amqpgate.operator.limits import limits
from amqpgate.operator.overview import overview
from amqpgate.operator.policies import policies
from amqpgate.operator.pools import states
from amqpgate.operator.session_detail import session
from amqpgate.operator.sessions import sessions
from amqpgate.operator.upstreams import upstreams
from amqpgate.telemetry.answers import JSON, Args, asker_of
from amqpgate.telemetry.events import EventSubscriber

log = logging.getLogger(__name__)

Call: TypeAlias = "Callable[[Gateway, Args], JSON | Awaitable[JSON]]"
#: Has the subscriber hear a stream for as long as the context is open.
Stream: TypeAlias = "Callable[[Gateway, Args, EventSubscriber], AbstractContextManager[None]]"


def _routes(gateway: Gateway, args: Args) -> JSON:
    """Pause or resume a route, if one is named; then, how they stand. Null: there is none of that name."""
    router = gateway.router
    name, paused = _text(args.get("name")), bool(args.get("paused"))
    if name is not None:
        try:
            router.pauses.order(name, paused)
        except KeyError:
            return None
        who = asker_of(args)
        gateway.observers.note("pause" if paused else "resume", route=name, **who)
        log.warning("route %r is %s by an operator%s", name, "paused" if paused else "resumed", shown(who))
        gateway.observers.events.tell("route", route=name, paused=paused)
    return cast("JSON", router.states())


def _pools(gateway: Gateway, _args: Args) -> JSON:
    return cast("JSON", states(gateway.pools.pools.values()))


def _policy_state(gateway: Gateway, _args: Args) -> JSON:
    return attrs.asdict(gateway.reloading.state)


async def _reload(gateway: Gateway, args: Args) -> JSON:
    return attrs.asdict(await gateway.reload_policies(**asker_of(args)))


def _lifecycle(gateway: Gateway, _args: Args) -> JSON:
    return attrs.asdict(gateway.standing())


def _pause(gateway: Gateway, args: Args) -> JSON:
    _note(gateway, "pause", args)
    gateway.pause()
    return _lifecycle(gateway, args)


def _resume(gateway: Gateway, args: Args) -> JSON:
    _note(gateway, "resume", args)
    gateway.resume()
    return _lifecycle(gateway, args)


def _note(gateway: Gateway, action: str, args: Args) -> None:
    who = asker_of(args)
    log.warning("%s: by an operator%s", action, shown(who))
    window = {} if args.get("window") is None else {"window": str(args["window"])}
    gateway.observers.note(action, **window, **who)


async def _drain(gateway: Gateway, args: Args) -> JSON:
    """``window``: seconds. ``successors``: processes that listen on the same ports; then it is answered when
    nothing is listened on here any more."""
    _note(gateway, "drain", args)
    gateway.drain(_number(args.get("window")), successors=int(_number(args.get("successors")) or 0))
    if args.get("successors"):
        await gateway.lifecycle.closed.wait()
    return _lifecycle(gateway, args)


def _number(value: JSON) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _close_session(gateway: Gateway, args: Args) -> JSON:
    """Whether there is a session of that id. ``now``: whatever it is owed."""
    return gateway.close_session(
        str(args["id"]), str(args["reason"]), now=bool(args.get("now")), **asker_of(args)
    )


def _decisions(gateway: Gateway, args: Args) -> JSON:
    """The last ``most`` of a ``kind``, or of all, the newest first."""
    return gateway.observers.decisions.last(cast("int", args["most"]), _text(args.get("kind")))


def _log_level(gateway: Gateway, args: Args) -> JSON:
    """The log level of this process, which is set if one is given."""
    level = _text(args.get("level"))
    if level is not None:
        set_level(level)
        who = asker_of(args)
        log.warning("the log level is %s from now on, by an operator%s", level, shown(who))
        gateway.observers.note("log-level", level=level, **who)
    return level_now()


def _text(value: JSON) -> str | None:
    return value if isinstance(value, str) else None


CALLS: Final[Mapping[str, Call]] = {
    "routes": _routes,
    "pools": _pools,
    "policy_state": _policy_state,
    "reload": _reload,
    "lifecycle": _lifecycle,
    "pause": _pause,
    "resume": _resume,
    "drain": _drain,
    "sessions": sessions,
    "session": session,
    "close_session": _close_session,
    "policies": policies,
    "upstreams": upstreams,
    "decisions": _decisions,
    "log_level": _log_level,
    "untap": lambda gateway, args: gateway.observers.taps.end(str(args.get("tap"))),
    "overview": overview,
    "graph": graph,
    "limits": limits,
    "explain": explain,
}

STREAMS: Final[Mapping[str, Stream]] = {
    "events": lambda gateway, _args, subscriber: gateway.observers.events.heard_by(subscriber),
    "tap": lambda gateway, args, subscriber: gateway.observers.taps.heard_by(args, subscriber),
}


def begin(gateway: Gateway, name: str, args: Args) -> JSON | Awaitable[JSON]:
    """The answer to a call, or what gives it. Raises ``KeyError`` where there is no such call."""
    return CALLS[name](gateway, args)
