"""Records of a piece as events of OCSF."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import attrs

from amqpgate.ocsf import BODY, OcsfEvent, ocsf_of
from amqpgate.records import TABLES, Sort
from amqpgate.telemetry.audit.pieces import Piece

_TIMES: Final[dict[Sort, tuple[str, ...]]] = {
    sort: tuple(field.name for field in attrs.fields(table) if field.metadata["kind"] == "time")
    for sort, table in TABLES.items()
}


def without_bodies(piece: Piece) -> Piece:
    """The same without the bodies of messages, which no event has. What it shares is not changed."""
    columns = {name: column for name, column in piece.columns.items() if name != BODY}
    bodies = sum(len(body) for body in piece.columns.get(BODY, ()) if isinstance(body, bytes))
    return Piece(piece.sort, piece.length, columns, piece.begins, max(0, piece.byte_count - bodies))


def events_of(piece: Piece) -> Iterator[OcsfEvent]:
    """One for each record, in their order."""
    names = list(piece.columns)
    times = _TIMES[piece.sort]
    for values in zip(*piece.columns.values(), strict=True):
        row: dict[str, object] = dict(zip(names, values, strict=True))
        for name in times:
            seconds = row[name]
            assert isinstance(seconds, float)
            row[name] = datetime.fromtimestamp(seconds, UTC)
        yield ocsf_of(piece.sort, row)
