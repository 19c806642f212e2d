"""Lines of JSON stay whole, whoever else writes there, and however slowly it is read."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from amqpgate.config import Audit
from amqpgate.telemetry.audit.lines import LineSink, lines_of
from amqpgate.telemetry.audit.log import open_log
from amqpgate.telemetry.audit.pieces import Piece, Pieces, Waiting

from .records import BOOT, NOW, ORIGIN, read_lines, until

WRITER = """
import sys
from tests.unit.telemetry.audit.test_lines import event_piece
from amqpgate.telemetry.audit.lines import LineSink
sink = LineSink()
for number in range(40):
    sink.write(event_piece(sys.argv[1], 10, int(sys.argv[2])))
"""


def event_piece(user: str, count: int, size: int) -> Piece:
    """Events that all say the same, in lines of a little over ``size`` bytes."""
    reason = user * size
    return Pieces("gw", BOOT).of_events(
        [Waiting(ORIGIN, "admin", NOW, {"reason": reason}, 1) for _ in range(count)]
    )


@pytest.mark.parametrize("size", [10, 3000, 20_000])
def test_lines_of_several_processes_do_not_mix(size: int) -> None:
    """They share a pipe, as workers do; its reader is slower than they are."""
    receive, send = os.pipe()
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, name, str(size)], stdout=send) for name in "abc"
    ]
    os.close(send)
    with open(receive, "rb", buffering=0) as pipe:
        text = b"".join(iter(lambda: pipe.read(1000), b""))
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    reasons = [json.loads(line)["reason"] for line in text.splitlines()]
    assert sorted(reasons) == sorted([name * size for name in "abc"] * 400)


def test_who_writes_there_without_a_lock_does_not_get_in_between() -> None:
    """A process may send its log to the same place."""
    receive, send = os.pipe()
    # One page: whoever writes more than there is room for waits in the middle, if it may be divided.
    fcntl.fcntl(send, fcntl.F_SETPIPE_SZ, 4096)
    ours = subprocess.Popen([sys.executable, "-c", WRITER, "a", "1000"], stdout=send)

    def write_beside() -> None:
        while ours.poll() is None:
            os.write(send, b"log\n")
        os.close(send)

    beside = threading.Thread(target=write_beside)
    beside.start()
    with open(receive, "rb") as pipe:
        lines = pipe.read().splitlines()
    beside.join()
    assert ours.returncode == 0
    records = [json.loads(line) for line in lines if line != b"log"]
    assert len(records) == 400
    # The two did write at the same time.
    first, last = lines.index(next(line for line in lines if line != b"log")), len(lines)
    assert 0 < first < last - len(records)


@pytest.mark.parametrize("blocking", [True, False])
def test_a_reader_that_is_slow_gets_all(blocking: bool) -> None:
    receive, send = os.pipe()
    fcntl.fcntl(send, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(send, blocking)
    piece = event_piece("x", 20, 30_000)
    sink = LineSink(send)
    found = bytearray()

    def read() -> None:
        while data := os.read(receive, 777):
            found.extend(data)

    reader = threading.Thread(target=read)
    reader.start()
    sink.write(piece)
    os.close(send)
    reader.join()
    os.close(receive)
    assert bytes(found) == b"".join(lines_of(piece))


def test_after_an_error_the_rest_is_written_and_no_more(tmp_path: Path) -> None:
    """The disk behind standard output is full for a while."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "out")], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["failed", "failed"]
    assert (tmp_path / "out").read_bytes() == b"".join(lines_of(event_piece("x", 20, 1500)))


FULL = """
import os, resource, sys
from tests.unit.telemetry.audit.test_lines import event_piece
from amqpgate.telemetry.audit.lines import LineSink
sink = LineSink(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT))
piece = event_piece("x", 20, 1500)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
for limit in (5000, 12345, hard):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        sink.write(piece)
    except OSError:
        print("failed")
"""


def test_a_reader_that_is_gone_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named pipes have readers again."""
    from amqpgate.telemetry.audit import writer
    from amqpgate.telemetry.audit.log import AuditLog

    monkeypatch.setattr(writer, "_RETRY", 0.01)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    receive = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    send = os.open(path, os.O_WRONLY)
    os.close(receive)
    log = AuditLog(LineSink(send), Pieces("gw", BOOT), max_queue=1 << 20)
    log.start()
    log.event(ORIGIN, "admin", NOW)
    until(lambda: log.counts().failed_writes > 0)
    receive = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    assert log.stop(60)
    os.close(send)
    with open(receive) as pipe:
        assert len(read_lines(pipe.read())["events"]) == 1


def test_to_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    log = open_log(Audit(format="json", gateway="gw"))
    log.start()
    log.event(None, "policies", NOW)
    assert log.stop()
    line = json.loads(capfd.readouterr().out)
    assert line.pop("record_id").startswith("gw-")
    assert line == {
        "record": "event",
        "schema_version": 1,
        "gateway": "gw",
        "routing_key_is_template": False,
        "passive": False,
        "foreign": False,
        "any_key": False,
        "policy_digest": "",
        "time": "2026-11-22T02:00:00.000000Z",
        "kind": "policies",
        "body_cut": False,
    }


def test_without_standard_output_it_does_not_start() -> None:
    receive, send = os.pipe()
    os.close(receive)
    os.close(send)
    with pytest.raises(OSError, match="Bad file descriptor"):
        LineSink(send).start()
