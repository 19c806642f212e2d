"""Limits of messages and bytes, each with what passes under it now."""

from __future__ import annotations

from typing import Final, cast

from amqpgate.datapath.tables import Side
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.policy import SharedLimit
from amqpgate.policy.kinds.rate import DELIVERED, PUBLISHED
from amqpgate.telemetry.answers import JSON, Args
from amqpgate.telemetry.time_slices import TimeSlices

#: Whose sender waits for a quantity; in the order of `Rates.rate`.
_SIDES: Final = {
    **dict.fromkeys(PUBLISHED, Side.CLIENT),
    **dict.fromkeys(DELIVERED, Side.UPSTREAM),
}
_INDEX: Final = {quantity: index for index, quantity in enumerate(_SIDES)}


async def limits(gateway: Gateway, args: Args) -> JSON:
    """Those that open sessions are under: the ``most`` that are used up furthest, and how many more."""
    live = list(gateway.sessions.values())
    rates = gateway.observers.rates
    await rates.look(live)
    found: dict[tuple[SharedLimit, str], dict[str, JSON]] = {}
    turns = TimeSlices()
    for session in live:
        for limit in session.limits.all:
            for quantity, most in limit.rates:
                if quantity not in _INDEX:
                    continue
                row = found.get((limit, quantity))
                if row is None:
                    row = found[limit, quantity] = _row(limit, quantity, most)
                waits = session.relay.endpoints[_SIDES[quantity]].throttled
                row["rate"] = cast("float", row["rate"]) + (rates.rate(session.id, _INDEX[quantity]) or 0.0)
                row["sessions"] = cast("int", row["sessions"]) + 1
                row["waiting"] = cast("int", row["waiting"]) + waits
        await turns.next()
    return cast("JSON", fullest(list(found.values()), cast("int", args["most"])))


def _row(limit: SharedLimit, quantity: str, most: float) -> dict[str, JSON]:
    return {
        "policy": limit.policy,
        "limit": limit.limit,
        "key": list(limit.key),
        "quantity": quantity,
        "action": limit.action,
        "enforced": limit.enforced,
        "most": most,
        "rate": 0.0,
        "sessions": 0,
        "waiting": 0,
    }


def fullest(rows: list[dict[str, JSON]], most: int) -> dict[str, JSON]:
    """The first of them, and how many are left out."""
    rows.sort(key=_use, reverse=True)
    return {"limits": rows[:most], "left_out": len(rows[most:])}


def _use(row: dict[str, JSON]) -> tuple[int, float]:
    return cast("int", row["waiting"]), cast("float", row["rate"]) / cast("float", row["most"])
