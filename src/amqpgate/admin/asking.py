"""Who asks for a change, as the log and the audit records have it.

The one bearer token has no name, so whoever bears it is ``token``; where none is asked for, it is ``anyone``
who reaches the address. Who is behind a proxy is the proxy's to know: the address is the connection's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from amqpgate.logs import RECURRING, on_one_line
from amqpgate.telemetry.answers import JSON, NOTHING, Args
from amqpgate.values import frozen

log = logging.getLogger(__name__)

#: The longest path that is repeated in the log.
_LONGEST: Final = 200


@frozen
class Asker:
    """Who asks."""

    by: str
    address: str


_ASKS: ContextVar[Asker | None] = ContextVar("asker", default=None)


@contextmanager
def asked_by(*, bears_token: bool, address: str) -> Iterator[None]:
    """What is asked of the gateway within is asked by them."""
    reset = _ASKS.set(Asker("token" if bears_token else "anyone", address))
    try:
        yield
    finally:
        _ASKS.reset(reset)


def signed(args: Args = NOTHING) -> Args:
    """An order's arguments, with who gives it."""
    asker = _ASKS.get()
    if asker is None:
        return args
    said: Mapping[str, JSON] = {"by": asker.by, "address": asker.address}
    return {**args, "asker": said}


def tell_refusal(method: str, path: str, status: int, address: str) -> None:
    """A change that was asked for is not made. Whoever reaches the address can cause such lines."""
    log.warning(
        "%s %s from %s is refused: %d",
        method,
        on_one_line(path[:_LONGEST]),
        address,
        status,
        extra=RECURRING,
    )
