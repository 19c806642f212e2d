"""How much pools are used, for metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from amqpgate.gateway.pool.channel_numbers import NumberState
from amqpgate.telemetry.readings import PoolUse

if TYPE_CHECKING:
    from amqpgate.gateway.pool.pool import Pool

#: Labels of channels of shared connections.
_STATES: Final = {
    NumberState.OPENING: "opening",
    NumberState.OPENING_CONFIRMING: "opening",
    NumberState.SPARE: "spare",
    NumberState.SPARE_CONFIRMING: "spare",
    NumberState.TAKEN: "taken",
    NumberState.CLOSING: "closing",
}


def unsent(pools: Iterable[Pool]) -> int:
    """Bytes that wait for the brokers to read them."""
    return sum(one.link.endpoint.waiting for pool in pools for one in pool.connections.values())


def usage(pools: Iterable[Pool]) -> dict[str, PoolUse]:
    """By upstream: users and virtual hosts are the clients' to choose, and so would be too many labels."""
    by_upstream: dict[str, list[Pool]] = {}
    for pool in pools:
        by_upstream.setdefault(pool.identity.upstream, []).append(pool)
    return {upstream: _use(found) for upstream, found in by_upstream.items()}


def _use(pools: list[Pool]) -> PoolUse:
    links = dict.fromkeys(("open", "retiring", "closing", "blocked", "dialling"), 0)
    channels = dict.fromkeys(_STATES.values(), 0)
    for pool in pools:
        links["dialling"] += pool.plan.dialling
        for entry in pool.plan.links:
            is_blocked = entry.is_blocked and not entry.closing
            links["blocked" if is_blocked else entry.stage.value] += 1
            for state, label in _STATES.items():
                channels[label] += entry.numbers.count(state)
    return PoolUse(
        links=links,
        channels=channels,
        sessions=sum(len(pool.sessions) for pool in pools),
        waiting=sum(len(pool.waiting) for pool in pools),
    )
