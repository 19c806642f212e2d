"""Audit records without a thread and without a file: what they say of messages, summed up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from amqpgate.telemetry.audit import log, writer
from amqpgate.telemetry.audit.pieces import Piece, Pieces
from tests.simulation.clock import Timer

#: Seconds that an event waits for others.
_GATHER = 0.5


class Sums:
    """A sink: messages and bytes by user, operation and verdict."""

    def __init__(self) -> None:
        self.messages: Counter[tuple[str, str, str]] = Counter()
        self.bytes: Counter[tuple[str, str, str]] = Counter()

    def start(self) -> None: ...
    def recover(self) -> None: ...
    def close(self) -> None: ...

    def settle(self) -> float | None:
        return None

    def write(self, piece: Piece) -> None:
        if piece.sort == "usage":
            columns: Any = piece.columns
            names = zip(columns["user"], columns["operation"], columns["verdict"], strict=True)
            for name, messages, size in zip(names, columns["messages"], columns["bytes"], strict=True):
                self.messages[name] += messages
                self.bytes[name] += size


class InlineWriter(writer.Writer):
    """The log's writer, which does on virtual time what its thread would do."""

    def __init__(self, sink: writer.Sink, pieces: Pieces, on_room: Callable[[], None]) -> None:
        super().__init__(sink, pieces, on_room)
        # It rests for nobody.
        self._stopping = True
        self._is_due = self._is_over = False

    @property
    def is_down(self) -> bool:
        return False

    def start(self) -> None:
        """There is no thread."""

    def stop(self, patience: float) -> bool:
        self._is_over = True
        self._write_all()
        return True

    def put(self, event: Any) -> None:
        super().put(event)
        self._soon()

    def put_messages(self, waiting: Any) -> None:
        super().put_messages(waiting)
        self._soon()

    def put_window(self, sums: Any) -> None:
        super().put_window(sums)
        self._soon()

    def _soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            Timer.clock.after(_GATHER, self._write_now)

    def _write_now(self) -> None:
        self._is_due = False
        if not self._is_over:
            self._write_all()


def enter() -> Sums:
    """From now on all logs are written there."""
    sums = Sums()
    log.LineSink = lambda: sums  # type: ignore[assignment, misc]
    log.Writer = InlineWriter  # type: ignore[misc]
    return sums
