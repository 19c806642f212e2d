"""What usage of one session is summed by: exact names, and beyond so many a template of the routing key.

::

    up to EXACT rows            order.4711.created     as it is
    then, of messages           order.*.created        words with digits, and long words
    after TEMPLATES of these    #

Further routing keys (CC, BCC) become templates together with the key; in the last step, it is only told that
there were some. A template is a topic pattern that the key matches, so nothing is summed where it does not
belong. What else there is beyond that has a row that is kept for its window only.
"""

from __future__ import annotations

import json
from typing import Final

import attrs

from amqpgate.datapath.scanner import Meter
from amqpgate.gateway.observers.audit.columns import OperationKind
from amqpgate.records import Origin
from amqpgate.telemetry.audit.rows import AuditRow

#: Rows of one session with their exact routing keys; some 500 bytes each, with their meters (tracemalloc).
EXACT: Final = 1024
#: Rows with templates beyond these; and as many again whose template is ``#``.
TEMPLATES: Final = 256
#: Characters of a word that may be a name; longer ones are taken for identifiers.
LONGEST_WORD: Final = 16

#: The template of what has none of its own any more.
ANY: Final = "#"
#: Further keys of which nothing is told.
OTHERS: Final = "[null]"


def template(key: str) -> str:
    """The topic pattern that stands for keys like this one; the key itself where nothing in it varies."""
    return ".".join("*" if _varies(word) else word for word in key.split("."))


def _varies(word: str) -> bool:
    return len(word) > LONGEST_WORD or any(letter.isdigit() for letter in word)


def _folded(more_keys: str | None, *, is_any: bool) -> str | None:
    if more_keys is None:
        return None
    if is_any:
        return OTHERS
    keys: list[str | None] = json.loads(more_keys)
    rest = [None] * (None in keys)
    folded = sorted({template(key) for key in keys if key is not None})
    return json.dumps([*folded, *rest], separators=(",", ":"))


@attrs.define(eq=False, weakref_slot=False)
class Rows:
    """Of one session, under one set of policies."""

    origin: Origin
    #: Of the policies in force.
    digest: str
    #: Where meters put themselves that have counted.
    book: list[Meter]
    _meters: dict[OperationKind, Meter] = attrs.field(factory=dict)
    _templates: int = 0

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._meters)

    def meter(self, kind: OperationKind) -> Meter:
        """Where it is counted."""
        found = self._meters.get(kind)
        if found is not None:
            return found
        if len(self._meters) - self._templates < EXACT:
            return self._keep(kind)
        if kind.routing_key is None or not kind.is_message:
            return self._made(kind)
        for pattern, most in ((template(kind.routing_key), TEMPLATES), (ANY, 2 * TEMPLATES)):
            more = _folded(kind.more_keys, is_any=pattern is ANY)
            folded = attrs.evolve(
                kind,
                routing_key=pattern,
                routing_key_is_template=pattern != kind.routing_key or more != kind.more_keys,
                more_keys=more,
            )
            found = self._meters.get(folded)
            if found is not None:
                return found
            if self._templates < most:
                self._templates += 1
                return self._keep(folded)
        return self._made(folded)

    def clear(self) -> None:
        """The session is over. What has been counted is in the book."""
        self._meters.clear()

    def _keep(self, kind: OperationKind) -> Meter:
        meter = self._meters[kind] = self._made(kind)
        return meter

    def _made(self, kind: OperationKind) -> Meter:
        row = AuditRow(origin=self.origin, policy_digest=self.digest, **attrs.asdict(kind))
        return Meter(row, self.book)
