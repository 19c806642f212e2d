"""Which objects of a store are older than messages may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from amqpgate.gateway.objects.store import ObjectStore, Stored, Unfinished

#: Seconds that the clocks of the store and of this machine may differ. Nothing goes earlier than that.
MARGIN: Final = 3600.0


@attrs.frozen
class Collector:
    """Removes what is older than ``keep_for`` seconds, by the store's clock, and `MARGIN` more."""

    store: ObjectStore
    keep_for: float

    def old(self, now: float) -> Iterator[Stored | Unfinished]:
        """What may go; ``now`` is in seconds since 1970. Raises ``StoreError``."""
        edge = now - self.keep_for - MARGIN
        yield from [one for one in self.store.stored() if one.since < edge]
        yield from [one for one in self.store.unfinished() if one.since < edge]

    def remove(self, one: Stored | Unfinished) -> None:
        """It goes. Raises ``StoreError``."""
        if isinstance(one, Unfinished):
            self.store.abort(one.key, one.upload)
        else:
            self.store.delete(one.key)
