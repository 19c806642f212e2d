"""Lines of JSON that somebody wrote to do harm, or by mistake."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from amqpgate.pipeline import json_lines
from amqpgate.pipeline.contract import Skipped
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.json_lines import LinesSeen, damage, read_lines, readable
from amqpgate.pipeline.reading import _json
from tests.support.audit_plans import Plans
from tests.support.audit_records import START, lines, usage

LINE, OTHER = lines("usage", [usage("1", START), usage("2", START)])


def said(**columns: object) -> str:
    return json.dumps(json.loads(LINE) | columns)


def beside(text: str) -> str:
    """A record with a column of others."""
    return f'{LINE[:-1]}, "z": {text}}}'


#: What is no record.
WRONG: dict[str, str | bytes] = {
    "deep": beside("[" * 10_000 + "]" * 10_000),
    "deeper": "[" * 100_000,
    "a name twice": f'{LINE[:-1]}, "messages": 5}}',
    "a name within twice": beside('{"a": 1, "a": 2}'),
    "not a number": beside("NaN"),
    "infinite": beside("-Infinity"),
    "10,000 digits": LINE.replace('"messages": 1', f'"messages": {"9" * 10_000}'),
    "10,000 digits beside": beside("9" * 10_000),
    "no UTF-8": LINE.encode().replace(b"alice", b"al\xffce"),
    "a byte of zero": LINE.encode().replace(b"alice", b"al\0ce"),
    "half a character": said(user="a\ud800b"),
    "the year 1": said(window_start="0001-01-01T00:00:00+10:00"),
    "the year 1969": said(window_start="1969-12-31T23:59:59Z"),
    "the year 9999": said(window_start="9999-12-31T23:59:59Z"),
    "of no sort": said(record={"a": 1}),
    "a list": "[1, 2]",
    "null": "null",
    "too long": beside(f'"{"a" * json_lines.LONGEST}"'),
}
RIGHT: dict[str, str | bytes] = {
    "escaped zero": said(user="a\0b"),
    "lines of Unicode": said(user="a\u2028b\u0085c"),
    "a large number beside": beside("1e999"),
    "a whole character in halves": said(user="\U0001f600"),
    "a long one": beside(f'"{"a" * (3 << 20)}"'),
    "1970": said(window_start="1970-01-01T00:00:00Z"),
}


def bytes_of(line: str | bytes) -> bytes:
    return line if isinstance(line, bytes) else line.encode()


def read(path: Path) -> tuple[list[dict[str, Any]], LinesSeen]:
    seen = LinesSeen()
    return [row for batch in read_lines(str(path), "usage", seen) for row in batch.to_pylist()], seen


@pytest.mark.parametrize("case", [*WRONG, *RIGHT])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_line_is_a_record_or_none_and_hurts_no_other(tmp_path: Path, case: str, end: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(end.join([LINE.encode(), b"", bytes_of((WRONG | RIGHT)[case]), OTHER.encode()]))
    rows, seen = read(path)
    assert [rows[0]["record_id"], rows[-1]["record_id"]] == ["1", "2"]
    assert (seen.wrong, seen.first) == ((1, 3) if case in WRONG else (0, None))
    assert seen.versions == {1: len(rows)} == {1: 2 if case in WRONG else 3}


def test_engines_take_the_same_lines(plans: Plans, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    cases = [LINE, *WRONG.values(), *RIGHT.values()]
    path.write_bytes(b"\xef\xbb\xbf" + b"\n".join(map(bytes_of, cases)))
    found = plans.read(tmp_path, "usage")
    wrong = f"{len(WRONG)} lines are no audit records, the first is line 2"
    assert found.skipped == (Skipped(f"file://{path}", wrong),)
    assert found.records == len(plans.rows_of(found)) == 1 + len(RIGHT)


def test_files_that_only_spark_reads_have_the_same_lines(spark: SparkSession, tmp_path: Path) -> None:
    """On a cluster's own store Spark hands over the lines; here it does, of a file of this machine."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\n".join(map(bytes_of, [LINE, "", *WRONG.values(), OTHER])))
    found = _json(spark, "usage", [str(path)])
    assert found.skipped == (Skipped(f"file://{path}", f"{len(WRONG)} lines are no audit records"),)
    assert sorted(row.record_id for row in found.frame.collect()) == ["1", "2"]
    assert found.records == 2


@pytest.mark.parametrize("kind", ["gz", "bz2", "zst"])
def test_of_a_packed_file_that_is_damaged_nothing_is_taken(tmp_path: Path, kind: str) -> None:
    whole = "\n".join([LINE] * 3_000).encode()
    packed = {
        "gz": gzip.compress(whole),
        "bz2": bz2.compress(whole),
        "zst": bytes(pa.compress(whole, "zstd")),
    }
    path = tmp_path / f"x.jsonl.{kind}"
    path.write_bytes(packed[kind])
    assert readable([str(path)]) == ([str(path)], ())
    assert len(read(path)[0]) == 3_000
    for broken in (packed[kind][:-20], packed[kind][:-1], b"hello" * 100):
        path.write_bytes(broken)
        assert damage(str(path)) == "is cut off or damaged"


def test_the_reason_reaches_whoever_asked(plans: Plans, tmp_path: Path) -> None:
    (tmp_path / "whole.jsonl").write_text(LINE)
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join([OTHER] * 3_000).encode())[:-20])
    found = plans.read(tmp_path, "usage")
    assert found.skipped == (Skipped(f"file://{path}", "is cut off or damaged"),)
    assert (found.files, [row.record_id for row in plans.rows_of(found)]) == (1, ["1"])


def test_what_unpacks_to_too_much_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "ALWAYS_UNPACKED", 1 << 20)
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n" * (8 << 20)))
    assert damage(str(path)) == "unpacks to more than 500 times its size"
    many = "\n".join(lines("usage", [usage(f"{number}", START) for number in range(5_000)]))
    path.write_bytes(gzip.compress(many.encode()))
    assert damage(str(path)) is None


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="gone since its folder was listed: run it again"):
        readable([f"file://{tmp_path}/x.jsonl"])
    with pytest.raises(PipelineError, match=r"x\.jsonl is cut off"):
        read(tmp_path / "x.jsonl")


def test_however_long_a_file_is_a_batch_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join([LINE] * 25))
    monkeypatch.setattr(json_lines, "_ROWS", 10)
    assert [len(batch) for batch in read_lines(str(path), "usage", LinesSeen())] == [10, 10, 5]
    monkeypatch.setattr(json_lines, "_BYTES", 3 * len(LINE))
    assert {len(batch) for batch in read_lines(str(path), "usage", LinesSeen())} == {4, 1}


def test_a_line_that_is_too_long_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Block by block, and the next one is read."""
    monkeypatch.setattr(json_lines, "_BLOCK", 100)
    monkeypatch.setattr(json_lines, "LONGEST", len(LINE))
    path = tmp_path / "x.jsonl"
    for tail in ("\n", ""):
        path.write_text(f"{LINE}\n{'a' * 100_000}\n{OTHER}\n{'b' * 5_000}{tail}")
        rows, seen = read(path)
        assert [row["record_id"] for row in rows] == ["1", "2"]
        assert (seen.wrong, seen.first) == (2, 2)
