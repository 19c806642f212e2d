"""Files: whole or not there, salvaged after a crash, waited for when the disk is full."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path
from stat import S_IMODE

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from amqpgate.telemetry.audit import writer
from amqpgate.telemetry.audit.log import AuditLog
from amqpgate.telemetry.audit.parquet import batch_of
from amqpgate.telemetry.audit.pieces import Pieces
from amqpgate.telemetry.audit.stream import Stream

from .records import BOOT, NOW, hidden, messages, parquet_sink, read, row, until, usage_pieces, visible

OTHER = "ba9876543210"


def test_nobody_sees_a_file_before_it_is_due(tmp_path: Path) -> None:
    sink = parquet_sink(tmp_path)
    for piece in usage_pieces(1, 2):
        sink.write(piece)
    due = sink.settle()
    assert due is not None
    assert 3500 < due <= 3600
    assert visible(tmp_path, "usage") == []
    assert [path.name for path in hidden(tmp_path)] == [f"_gw-{BOOT}-000001.arrows"]
    assert S_IMODE(hidden(tmp_path)[0].stat().st_mode) & 0o137 == 0
    sink.close()
    assert messages(tmp_path) == [1, 2]
    assert S_IMODE(visible(tmp_path, "usage")[0].stat().st_mode) & 0o137 == 0
    assert hidden(tmp_path) == []


def test_what_was_written_is_on_the_disk_when_it_is_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, sync = list[int](), os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (sync(fd), synced.append(os.fstat(fd).st_size)))
    sink = parquet_sink(tmp_path)
    sizes = []
    for piece in usage_pieces(1, 2):
        sink.write(piece)
        sink.settle()
        sizes.append(hidden(tmp_path)[0].stat().st_size)
    sink.settle()
    assert synced == sizes
    sink.close()


def test_a_file_is_closed_when_it_is_old_enough(tmp_path: Path) -> None:
    sink = parquet_sink(tmp_path, interval=0)
    sink.write(usage_pieces(1)[0])
    assert sink.settle() is None
    assert messages(tmp_path) == [1]


def test_a_file_is_closed_when_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = parquet_sink(tmp_path, records=2)
    pieces = usage_pieces(1, 2, 3, 4, 5)
    for piece in pieces[:3]:
        sink.write(piece)
    assert [path.name for path in visible(tmp_path, "usage")] == [f"gw-{BOOT}-000001.parquet"]
    assert messages(tmp_path) == [1, 2]
    sink.write(pieces[3])
    sink.settle()
    assert messages(tmp_path) == [1, 2, 3, 4]
    monkeypatch.setattr("amqpgate.telemetry.audit.parquet._ROLL_BYTES", 1)
    sink.write(pieces[4])
    sink.settle()
    assert len(visible(tmp_path, "usage")) == 3
    sink.close()


def test_a_day_is_that_of_the_first_record(tmp_path: Path) -> None:
    sink = parquet_sink(tmp_path)
    pieces = Pieces("gw", BOOT)
    for piece in usage_pieces(1, 2, pieces=pieces):
        piece.begins = NOW + 22 * 3600 - 0.001 if piece.columns["messages"][0] == 1 else NOW + 22 * 3600
        sink.write(piece)
    sink.close()
    assert [path.parent.name for path in visible(tmp_path, "usage")] == ["date=2026-11-22"]


def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, fsync = dict[int, int](), os.fsync

    def look(fd: int) -> None:
        fsync(fd)
        synced[os.fstat(fd).st_ino] = len(visible(tmp_path, "usage"))

    monkeypatch.setattr(os, "fsync", look)
    sink = parquet_sink(tmp_path)
    sink.write(usage_pieces(1)[0])
    sink.close()
    (made,) = visible(tmp_path, "usage")
    assert synced[made.stat().st_ino] == 0
    # And its name is, before what it was made from is gone.
    assert synced[made.parent.stat().st_ino] == 1


def test_a_reader_never_sees_part_of_a_file(tmp_path: Path) -> None:
    """It reads all the time while files are made; each that it sees is whole."""
    sink = parquet_sink(tmp_path, records=1)
    over, seen, wrong = threading.Event(), set[Path](), list[object]()

    def look() -> None:
        while not over.is_set():
            for path in set(visible(tmp_path, "usage")) - seen:
                try:
                    if parquet.ParquetFile(path).read().num_rows != 1:
                        wrong.append(path)
                except (OSError, pa.ArrowException) as error:
                    wrong.append(error)
                seen.add(path)

    reader = threading.Thread(target=look)
    reader.start()
    try:
        for piece in usage_pieces(*range(60)):
            sink.write(piece)
        sink.close()
        until(lambda: len(seen) == 60 or bool(wrong))
    finally:
        over.set()
        reader.join()
    assert wrong == []
    assert messages(tmp_path) == list(range(60))


@pytest.fixture(scope="module")
def stream_bytes(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[int]]:
    """A stream of five records, and where each of its messages ends."""
    path = tmp_path_factory.mktemp("stream") / "_a.arrows"
    batches = [batch_of(piece) for piece in usage_pieces(0, 1, 2, 3, 4)]
    stream = Stream.create(path, batches[0].schema)
    ends = [stream.byte_count]
    for batch in batches:
        stream.append(batch)
        ends.append(stream.byte_count)
    stream.close()
    return path.read_bytes(), ends


@given(data=st.data())
# A stream has some hundred places to be torn at.
@settings(max_examples=150)
def test_of_a_torn_stream_all_is_read_that_is_whole(
    data: st.DataObject, stream_bytes: tuple[bytes, list[int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    raw, ends = stream_bytes
    cut = data.draw(st.integers(0, len(raw)))
    tail = data.draw(st.one_of(st.binary(max_size=64), st.sampled_from([bytes(4096), b"\xff" * 4096])))
    path = tmp_path_factory.getbasetemp() / "_torn.arrows"
    path.write_bytes(raw[:cut] + tail)
    stream = Stream.of_the_dead(path)
    assert stream is not None
    table = stream.whole()
    found = [] if table is None else table.column("messages").to_pylist()
    # What was not whole may look whole with what stands there by chance; it never costs what was.
    whole = [number for number in range(5) if ends[number + 1] <= cut]
    assert found[: len(whole)] == whole
    if not tail:
        assert found == whole
    stream.close()


def leave(folder: Path, *counts: int, boot: str = OTHER) -> Path:
    """What a process leaves that dies after it has written records with so many messages."""
    sink = parquet_sink(folder, boot=boot)
    for piece in usage_pieces(*counts, pieces=Pieces("gw", boot)):
        sink.write(piece)
    (stream,) = sink._streams.values()
    stream.close()
    return stream.path


def test_what_a_dead_process_left_is_made_parquet(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    left = leave(tmp_path, 1, 2)
    parquet_sink(tmp_path).recover()
    assert messages(tmp_path) == [1, 2]
    assert [path.name for path in visible(tmp_path, "usage")] == [f"gw-{OTHER}-000001.parquet"]
    assert not left.exists()
    assert "2 records of a process that ended without it" in caplog.text


def test_what_it_made_parquet_itself_is_not_made_again(tmp_path: Path) -> None:
    left = leave(tmp_path, 1, 2)
    kept = left.read_bytes()
    parquet_sink(tmp_path).recover()
    (made,) = visible(tmp_path, "usage")
    # It died after the file had its name, and before the stream was gone.
    left.write_bytes(kept)
    before = made.stat()
    parquet_sink(tmp_path).recover()
    assert made.stat() == before
    assert hidden(tmp_path) == []


def test_parquet_that_was_not_finished_is_made_again(tmp_path: Path) -> None:
    left = leave(tmp_path, 1, 2)
    left.with_suffix(".parquet").write_bytes(b"PAR1 and no more")
    alone = left.with_name(f"_gw-{OTHER}-000009.parquet")
    alone.write_bytes(b"PAR1")
    parquet_sink(tmp_path).recover()
    assert messages(tmp_path) == [1, 2]
    assert hidden(tmp_path) == []


def test_what_cannot_be_made_parquet_stays_and_keeps_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    left = leave(tmp_path, 1)
    leave(tmp_path, 2, boot="ffffffffffff")
    # Parquet has no such type.
    null = pa.array([None], pa.null())
    column = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [null])
    with pa.OSFile(str(left), "wb") as file, pa.ipc.new_stream(file, pa.schema({"a": column.type})) as stream:
        stream.write_batch(pa.record_batch([column], ["a"]))
    log = AuditLog(parquet_sink(tmp_path), Pieces("gw", BOOT), max_queue=1 << 20)
    log.start()
    assert log.stop(60)
    assert messages(tmp_path) == [2]
    assert hidden(tmp_path) == [left]
    assert f"{left} is left as it is" in caplog.text


def test_nothing_left_is_nothing_made(tmp_path: Path) -> None:
    left = leave(tmp_path, 1)
    left.write_bytes(b"")
    parquet_sink(tmp_path).recover()
    assert (visible(tmp_path, "usage"), hidden(tmp_path)) == ([], [])


def test_what_lives_or_is_anothers_is_left_alone(tmp_path: Path) -> None:
    living = parquet_sink(tmp_path, boot=OTHER)
    first, second = usage_pieces(1, 2, pieces=Pieces("gw", OTHER))
    living.write(first)
    folder = hidden(tmp_path)[0].parent
    others = {folder / f"_gw2-{OTHER}-000001.arrows", folder / f"_gw-x-{OTHER}-000001.arrows", folder / "_x"}
    for path in others:
        path.write_bytes(b"")
    parquet_sink(tmp_path).recover()
    assert others < set(hidden(tmp_path))
    living.write(second)
    living.close()
    assert messages(tmp_path) == [1, 2]
    assert set(hidden(tmp_path)) == others


def test_a_file_without_a_record_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = parquet_sink(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Stream, "append", fail)
        with pytest.raises(OSError, match="full"):
            sink.write(usage_pieces(1)[0])
    sink.close()
    assert (visible(tmp_path, "usage"), hidden(tmp_path)) == ([], [])


@pytest.mark.parametrize("kept", [0, 1, 2, 2.5])
def test_a_file_that_somebody_cuts_is_not_taken_for_whole(tmp_path: Path, kept: float) -> None:
    """``kept``: so many of its three records."""
    sink = parquet_sink(tmp_path)
    sizes = [0]
    for piece in usage_pieces(1, 2, 3):
        sink.write(piece)
        sizes.append(hidden(tmp_path)[0].stat().st_size)
    (left,) = hidden(tmp_path)
    os.truncate(left, sizes[int(kept)] + (100 if kept % 1 else 0))
    with pytest.raises(OSError, match=r"-000001\.arrows: "):
        sink.close()
    assert visible(tmp_path, "usage") == []


def fail(stream: Stream, batch: object) -> None:
    raise OSError("full")


def test_files_that_vanish_from_under_the_writer_are_made_all_the_same(tmp_path: Path) -> None:
    sink = parquet_sink(tmp_path)
    first, second = usage_pieces(1, 2)
    sink.write(first)
    hidden(tmp_path)[0].unlink()
    (tmp_path / "usage" / "date=2026-11-22").rmdir()
    (tmp_path / "usage").rmdir()
    sink.write(second)
    sink.close()
    assert messages(tmp_path) == [1, 2]


def test_parquet_that_has_no_room_leaves_nothing_and_is_made_later(tmp_path: Path) -> None:
    sink = parquet_sink(tmp_path)
    for piece in usage_pieces(1, 2):
        sink.write(piece)
    before = hidden(tmp_path)
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, usual[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            sink.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert (visible(tmp_path, "usage"), hidden(tmp_path)) == ([], before)
    sink.close()
    assert messages(tmp_path) == [1, 2]


def test_a_folder_that_is_gone_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_RETRY", 0.01)
    folder, away = tmp_path / "audit", tmp_path / "away"
    folder.mkdir()
    log = AuditLog(parquet_sink(folder), Pieces("gw", BOOT), max_queue=1 << 20)
    log.start()
    folder.rename(away)
    log.event(None, "admin", NOW)
    log.usage(row(), 1, 7, 1, NOW, NOW)
    log.close_window(NOW, NOW)
    until(lambda: log.counts().failed_writes > 1)
    # It is not made where a volume may have been.
    assert not folder.exists()
    assert log.counts().written == (0, 0)
    away.rename(folder)
    assert log.stop(60)
    assert messages(folder) == [7]
    assert len(read(folder, "events")) == 1


def child(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.unit.telemetry.audit.recorder", str(folder), *words],
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("after", [1, 40, 400])
def test_a_killed_process_loses_nothing_that_it_had_written(tmp_path: Path, after: int) -> None:
    """It is killed while it writes; what it said was written is there, each record once."""
    process = child(tmp_path, "forever")
    assert process.stdout is not None
    try:
        for line in process.stdout:
            said = int(line)
            if said >= after:
                break
    finally:
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().splitlines(keepends=True)
        said = max([said, *(int(line) for line in rest if line.endswith("\n"))])
        process.wait()
        process.stdout.close()
    visible_before = messages(tmp_path)
    parquet_sink(tmp_path).recover()
    found = messages(tmp_path)
    assert len(visible_before) <= said <= len(found)
    assert found == list(range(len(found)))
    assert hidden(tmp_path) == []


def test_a_full_disk_is_waited_for(tmp_path: Path) -> None:
    """The process may write files of 64 KiB only, until it has found that out three times."""
    process = child(tmp_path, "full")
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    # What was written of a message in vain takes no room.
    assert int(said) < 64 << 10
    assert sorted(messages(tmp_path), key=str) == sorted(range(2000), key=str)
    assert hidden(tmp_path) == []
