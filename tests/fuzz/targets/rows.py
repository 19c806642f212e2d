"""Audit rows with hostile names: written as Parquet and as lines of JSON, and read again from both."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa

from amqpgate.records import Origin
from amqpgate.telemetry.audit.lines import lines_of
from amqpgate.telemetry.audit.parquet import batch_of
from amqpgate.telemetry.audit.pieces import Piece, Pieces, Waiting
from amqpgate.telemetry.audit.rows import AuditRow, Sums
from tests.fuzz.choices import Choices
from tests.fuzz.known import tolerates

MOST = 400
TOKENS = (
    b"\n",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98\x80",
    b"\xe2\x80\xae",
    b"\xe2\x80\xa8",
    b'"',
    b"\\",
    b"\0",
    b"=1+1",
)
NOW = 1795312800.0
NUMBERS = (0, 1, 255, 1 << 31, 1 << 40, (1 << 62) - 1)
#: Larger than what a client can send in a window, but not than what it can declare.
CLAIMS = ((1 << 63) - 1, 1 << 62)


def seeds() -> Iterator[bytes]:
    """Good and bad names."""
    yield bytes(40)
    yield b"\1\5names\5a\nb\xffc" * 9
    yield b"\0\4\xf0\x9f\x98\x80\3\xed\xa0\x80" * 9


def check(data: bytes) -> None:
    """What is written is what is read."""
    choices = Choices(data)

    def text() -> str:
        return choices.some(24).decode("utf-8", "surrogateescape")

    def number() -> int:
        claims = () if tolerates("declared-body") else CLAIMS
        return choices.pick((*NUMBERS, *claims))

    origin = Origin(
        session=text(), user=text(), vhost=text(), source=text(), listener=text(), tls=text(), client=text()
    )
    pieces = Pieces("gw", "0123456789ab")
    row = AuditRow(
        origin=origin,
        operation="queue.bind",
        exchange=text(),
        routing_key=text(),
        queue=text(),
        destination=text(),
        arguments=text(),
        verdict="deny",
        policy=text(),
        rule=text(),
    )
    sums = Sums()
    for _ in range(1 + choices.below(3)):
        sums.add(row, choices.byte(), choices.byte(), number() // 4, NOW, NOW + 1)
    sums.close(NOW, NOW + 10)
    for piece in pieces.of_usage(sums):
        written(piece)
    columns = {
        "operation": "basic.publish",
        "exchange": text(),
        "routing_key": text(),
        "body_size": number(),
        "properties": text(),
        "headers": text(),
        "body": choices.some(24),
        "reason": text(),
        "detail": text(),
    }
    waiting = [Waiting(origin if choices.flag() else None, "message", NOW + 0.5, columns, 1)]  # type: ignore[arg-type]
    written(pieces.of_events(waiting))


def written(piece: Piece) -> None:
    """Both writers, and both readers."""
    # As the writer's thread does it.
    piece.clean()
    batch = batch_of(piece)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    rows = pa.ipc.open_stream(sink.getvalue()).read_all().to_pylist()
    lines = list(lines_of(piece))
    assert len(lines) == len(rows) > 0
    for line, row in zip(lines, rows, strict=True):
        assert line.count(b"\n") == 1, line
        assert line.endswith(b"\n")
        told = json.loads(line)
        assert all(ord(letter) >= 32 for letter in line.decode("utf-8").rstrip("\n"))
        for name, value in row.items():
            if isinstance(value, str) and name in told:
                assert told[name] == value, (name, told[name], value)
