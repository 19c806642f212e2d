"""A process that records: `forever`, saying how many are written, or on a disk that is `full` for a while."""

from __future__ import annotations

import itertools
import resource
import sys
from pathlib import Path

from amqpgate.telemetry.audit import writer
from amqpgate.telemetry.audit.log import AuditLog
from amqpgate.telemetry.audit.pieces import Pieces
from amqpgate.telemetry.audit.rows import AuditRow

from .records import NOW, ORIGIN, hidden, parquet_sink, until

BOOT = "0" * 12


def forever(folder: Path) -> None:
    log = AuditLog(parquet_sink(folder, boot=BOOT, records=100), Pieces("gw", BOOT), max_queue=1 << 20)
    log.start()
    for number in itertools.count():
        log.usage(AuditRow(origin=ORIGIN, operation="basic.publish"), 1, number, 0, NOW, NOW)
        log.close_window(NOW, NOW)
        until(lambda: log.counts().queued == (0, 0))
        print(number + 1, flush=True)


def full(folder: Path) -> None:
    writer._RETRY = 0.01  # type: ignore[misc]
    log = AuditLog(parquet_sink(folder, boot=BOOT), Pieces("gw", BOOT), max_queue=1 << 20)
    log.start()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, limit[1]))
    for number in range(2000):
        log.usage(AuditRow(origin=ORIGIN, operation="basic.publish"), 1, number, 0, NOW, NOW)
    log.close_window(NOW, NOW)
    until(lambda: log.counts().failed_writes >= 3)
    (stream,) = hidden(folder)
    print(stream.stat().st_size, flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    sys.exit(not log.stop(60))


if __name__ == "__main__":
    {"forever": forever, "full": full}[sys.argv[2]](Path(sys.argv[1]))
