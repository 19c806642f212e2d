"""The log's sink where somebody gets records beside the files or lines, or in their place."""

from __future__ import annotations

from collections.abc import Sequence

from amqpgate.telemetry.audit.outlets.counts import OutletCounts
from amqpgate.telemetry.audit.outlets.outlet import Outlet
from amqpgate.telemetry.audit.pieces import Piece
from amqpgate.telemetry.audit.writer import Sink


class FanOut:
    """Puts each piece into the queue of each outlet, and then writes it: whoever is slow delays no other."""

    def __init__(self, sink: Sink | None, outlets: Sequence[Outlet]) -> None:
        self._sink, self._outlets = sink, outlets
        #: The number of the newest record that the outlets have. What is written again is not newer.
        self._newest = 0

    def start(self) -> None:
        """``OSError`` where nothing can be written."""
        if self._sink is not None:
            self._sink.start()
        for outlet in self._outlets:
            outlet.start()

    def recover(self) -> None:
        """Finish what earlier processes have left."""
        if self._sink is not None:
            self._sink.recover()

    def write(self, piece: Piece) -> None:
        """As the sink does."""
        newest = int(str(piece.columns["record_id"][-1]).rpartition("-")[2])
        if newest > self._newest:
            self._newest = newest
            for outlet in self._outlets:
                outlet.put(piece)
        if self._sink is not None:
            self._sink.write(piece)

    def settle(self) -> float | None:
        """As the sink does."""
        return None if self._sink is None else self._sink.settle()

    def close(self) -> None:
        """Finish the files. Outlets end by their own `stop`."""
        if self._sink is not None:
            self._sink.close()


class Outlets:
    """All outlets of a log."""

    def __init__(self, outlets: Sequence[Outlet] = ()) -> None:
        self._outlets = outlets

    @property
    def held(self) -> int:
        """Bytes that wait for the slowest of those that are waited for."""
        return max((outlet.held for outlet in self._outlets if outlet.waits), default=0)

    @property
    def is_down(self) -> bool:
        """Whether records for one of those can neither be sent nor wait."""
        return any(outlet.is_down for outlet in self._outlets)

    def counts(self) -> dict[str, OutletCounts]:
        """By the outlet's name."""
        return {outlet.name: outlet.reading() for outlet in self._outlets}

    def stop(self, until: float) -> bool:
        """Send all there is, until that time of the monotonic clock at most; whether that was done."""
        for outlet in self._outlets:
            outlet.hurry()
        done = [outlet.stop(until) for outlet in self._outlets]
        return all(done)
