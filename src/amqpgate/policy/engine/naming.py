"""Names as the client knows them and names as the broker knows them, there and back.

::

    client            broker
    orders    ──up──▶ a.orders      a prefix, or a name of its own in the map
    orders   ◀──down─ a.orders
    b.orders ◀──down─ b.orders      not one of the session's: shown as it is

What is never renamed: the default exchange (and the empty queue name), and what starts with ``amq.``, unless
the map names it: predeclared exchanges, server-named queues, direct reply-to.

Each name of the client's is one name of the broker's and no other: what would come back as something else is
denied, and so is what RabbitMQ would change (it strips CR and LF from names in some methods).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

from amqpgate.errors import AmqpgateError
from amqpgate.policy.engine.matching import MAX_BYTES
from amqpgate.values import frozen

Kind: TypeAlias = Literal["exchange", "queue"]

#: Names that are the broker's to give.
RESERVED = "amq."

#: Arguments whose value is an exchange's name, and the argument with the routing key that goes with it.
LEADS_TO: Mapping[str, str | None] = {
    "x-dead-letter-exchange": "x-dead-letter-routing-key",
    "alternate-exchange": None,
}

#: Before the values of an argument that is not as it was.
_VALUE = "(?:received|current is)(?: the value)? '"

#: ACCESS_REFUSED and PRECONDITION_FAILED: both close the channel (AMQP 0-9-1, section 1.2).
_REFUSED, _FAILED = 403, 406


class NotTransformedError(AmqpgateError):
    """A method or message that a transform policy lets nobody send: the reply code and the explanation."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def precondition_failed(text: str) -> NotTransformedError:
    """406, as RabbitMQ rejects messages and arguments."""
    return NotTransformedError(_FAILED, text)


@frozen
class Renaming:
    """How names of one kind are changed for one session."""

    kind: Kind
    prefix: str = ""
    map: Mapping[str, str] = attrs.field(factory=dict, hash=False)
    _back: Mapping[str, str] = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_back", {theirs: ours for ours, theirs in self.map.items()})

    def up(self, name: str) -> str:
        """The broker's name. `NotTransformedError` for a name that nothing may have."""
        if not name:
            return name
        mapped = self.map.get(name)
        if mapped is None:
            mapped = name if name.startswith(RESERVED) else self.prefix + name
        if len(mapped.encode("utf-8", "surrogateescape")) > MAX_BYTES:
            most = MAX_BYTES - len(self.prefix.encode())
            raise precondition_failed(f"{self.kind} name is longer than {most} bytes")
        if "\r" in name or "\n" in name or self.down(mapped) != name:
            raise NotTransformedError(_REFUSED, f"{self.kind} name '{name}' is not available")
        return mapped

    def down(self, name: str) -> str:
        """The client's name; those that are not the session's are shown as they are."""
        ours = self._back.get(name)
        if ours is not None:
            return ours
        if name.startswith(RESERVED) or not self.prefix or name == self.prefix:
            return name
        return name.removeprefix(self.prefix)


@frozen
class Naming:
    """How one session's names are changed. None: names of that kind stay."""

    exchanges: Renaming | None = None
    queues: Renaming | None = None

    def exchange_up(self, name: str) -> str:
        """An exchange's name for the broker."""
        return name if self.exchanges is None else self.exchanges.up(name)

    def exchange_down(self, name: str) -> str:
        """An exchange's name for the client."""
        return name if self.exchanges is None else self.exchanges.down(name)

    def queue_up(self, name: str) -> str:
        """A queue's name for the broker."""
        return name if self.queues is None else self.queues.up(name)

    def queue_down(self, name: str) -> str:
        """A queue's name for the client."""
        return name if self.queues is None else self.queues.down(name)

    def key_up(self, exchange: str, key: str) -> str:
        """A routing key for the broker: that of the default exchange is a queue's name."""
        return key if exchange else self.queue_up(key)

    def key_down(self, exchange: str, key: str) -> str:
        """A routing key for the client; ``exchange`` as either side calls it."""
        return key if exchange else self.queue_down(key)

    def text_down(self, text: str) -> str:
        """A reply text of RabbitMQ's with the client's names in it."""
        for renaming in (self.exchanges, self.queues):
            if renaming is not None:
                text = _quoted(f"{renaming.kind}(?: name)? '", renaming).sub(_Shown(renaming), text)
        inequivalent = re.search(r"inequivalent arg '([a-z-]+)'", text)
        if inequivalent is not None and self.exchanges is not None and inequivalent[1] in LEADS_TO:
            text = _quoted(_VALUE, self.exchanges).sub(_Shown(self.exchanges), text)
        elif inequivalent is not None and self.queues is not None and inequivalent[1] in LEADS_TO.values():
            # Perhaps a queue's name, perhaps a key that only looks like one: rather too short than too much.
            text = _quoted(_VALUE, self.queues).sub(_Shown(self.queues), text)
        return text


def _quoted(before: str, renaming: Renaming) -> re.Pattern[str]:
    """Where one of the broker's names begins, and as much of it as changes."""
    names = "|".join(re.escape(theirs) for theirs in renaming.map.values())
    ways = [f"(?P<name>{names})(?=')"] if names else []
    if renaming.prefix:
        ways.append(f"(?P<prefix>{re.escape(renaming.prefix)})(?!')")
    return re.compile(f"(?P<before>\\b{before})(?:{'|'.join(ways)})")


@frozen
class _Shown:
    """What stands in the place of a match of `_quoted`."""

    renaming: Renaming

    def __call__(self, match: re.Match[str]) -> str:
        name = match.groupdict().get("name")
        return match["before"] + ("" if name is None else self.renaming.down(name))
