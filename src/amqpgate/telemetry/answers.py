"""What operators are told, as JSON: types, its text, and the answers of several processes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Self, TypeAlias

from amqpgate.errors import AmqpgateError
from amqpgate.telemetry.time_slices import TimeSlices

JSON: TypeAlias = "str | int | float | bool | Sequence[JSON] | Mapping[str, JSON] | None"
#: What a call is given.
Args: TypeAlias = Mapping[str, JSON]
#: Numbers that are encoded at once, and short texts.
_SMALL: Final = 32
NOTHING: Final[Args] = MappingProxyType({})


class IncompleteError(AmqpgateError):
    """Not every worker has answered. Those that have do as they were told."""


class Answers(dict[int, JSON]):
    """The answers to one call, by the worker's number; 0 is the one process where there are no workers."""

    def __init__(self, answers: Mapping[int, JSON], silent: tuple[int, ...] = ()) -> None:
        """``silent`` are those that did not answer in time, or failed."""
        super().__init__(answers)
        self.silent = silent

    def complete(self) -> Self:
        """Itself, where all have answered. Raises ``IncompleteError``."""
        if self.silent or not self:
            raise IncompleteError("not every worker has answered in time; ask again")
        return self


async def encoded(value: JSON) -> bytes:
    """Its text. Lists directly under an object are encoded item by item, with turns for others."""
    if not isinstance(value, Mapping):
        return json.dumps(value).encode()
    turns = TimeSlices()
    parts = []
    for key, item in value.items():
        if isinstance(item, list):
            items = []
            # Many at once where each is a number.
            step = 1 if item and isinstance(item[0], Mapping | list) else _SMALL
            for first in range(0, len(item), step):
                items.append(json.dumps(item[first : first + step])[1:-1])
                await turns.next()
            text = f"[{', '.join(items)}]"
        else:
            text = json.dumps(item)
        parts.append(f"{json.dumps(key)}: {text}")
    return f"{{{', '.join(parts)}}}".encode()


def asker_of(args: Args) -> dict[str, str]:
    """Who gives an order, as `admin.asking` signs it: ``by`` and ``address``; nothing where nobody has."""
    asker = args.get("asker")
    return {name: str(asker[name]) for name in ("by", "address")} if isinstance(asker, Mapping) else {}
