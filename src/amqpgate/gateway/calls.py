"""What may be asked of a gateway, or of each worker of one: a table, so that nobody else need know the calls.

A call's arguments and its answer are JSON. A call that is answered at once is answered before the next one
is looked at, so orders take effect in their order; what takes time answers with an awaitable, and others
pass it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from amqpgate.gateway.answers import JSON, Answers, Args
from amqpgate.gateway.news import Listener

if TYPE_CHECKING:
    from amqpgate.gateway.server import Gateway

log = logging.getLogger(__name__)

Call: TypeAlias = "Callable[[Gateway, Args], JSON | Awaitable[JSON]]"
#: Has the listener hear a stream for as long as the context is open.
Stream: TypeAlias = "Callable[[Gateway, Args, Listener], AbstractContextManager[None]]"


def _routes(gateway: Gateway, args: Args) -> JSON:
    """Pause or resume a route, if one is named; then, how they all stand. Null: there is none of that name."""
    try:
        return gateway.steer_routes(_text(args.get("name")), bool(args.get("paused")))
    except KeyError:
        return None


def _pools(gateway: Gateway, _args: Args) -> JSON:
    return gateway.pool_states()


def _policy_state(gateway: Gateway, _args: Args) -> JSON:
    return attrs.asdict(gateway.reloading.state)


async def _reload(gateway: Gateway, _args: Args) -> JSON:
    return attrs.asdict(await gateway.reload_policies())


def _text(value: JSON) -> str | None:
    return value if isinstance(value, str) else None


CALLS: Final[Mapping[str, Call]] = {
    "routes": _routes,
    "pools": _pools,
    "policy_state": _policy_state,
    "reload": _reload,
    "untap": lambda gateway, args: gateway.tapping.end(str(args.get("tap"))),
}

STREAMS: Final[Mapping[str, Stream]] = {
    "events": lambda gateway, _args, listener: gateway.news.heard_by(listener),
    "tap": lambda gateway, args, listener: gateway.tapping.heard_by(args, listener),
}


def begin(gateway: Gateway, name: str, args: Args) -> JSON | Awaitable[JSON]:
    """The answer to a call, or what gives it. Raises ``KeyError`` where there is no such call."""
    return CALLS[name](gateway, args)


async def answers(gateway: Gateway, name: str, args: Args) -> Answers:
    """The answer of one process. Raises ``KeyError`` where there is no such call."""
    answer = begin(gateway, name, args)
    return Answers({0: await answer if isinstance(answer, Awaitable) else answer})
