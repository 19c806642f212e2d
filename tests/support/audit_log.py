"""An audit log whose records stay in memory."""

from __future__ import annotations

import attrs

from amqpgate.records import Sort
from amqpgate.telemetry.audit.log import AuditLog
from amqpgate.telemetry.audit.pieces import Piece, Pieces


@attrs.define(eq=False)
class Kept:
    """A sink that keeps what it is given."""

    pieces: list[Piece] = attrs.field(factory=list)
    log: AuditLog = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.log = AuditLog(self, Pieces("gw", "0" * 12), max_queue=1 << 20)

    def start(self) -> None: ...

    def recover(self) -> None: ...

    def write(self, piece: Piece) -> None:
        self.pieces.append(piece)

    def settle(self) -> float | None:
        return None

    def close(self) -> None: ...

    def told(self, sort: Sort) -> list[dict[str, object]]:
        """All records of a sort, column by column. The log is over then."""
        self.log.start()
        assert self.log.stop()
        pieces = [piece for piece in self.pieces if piece.sort == sort]
        return [
            dict(zip(piece.columns, values, strict=True))
            for piece in pieces
            for values in zip(*piece.columns.values(), strict=True)
        ]
