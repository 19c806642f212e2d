"""Pages of Parquet files, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amqpgate.pipeline import pages
from amqpgate.pipeline.local_frames import SqlSession
from amqpgate.pipeline.pages import damage
from tests.support.audit_records import Traffic

USAGE = Traffic().usage(2_000)


def made(folder: Path, table: pa.Table = USAGE, **options: object) -> Path:
    path = folder / "t.parquet"
    pq.write_table(table, path, write_page_checksum=True, **options)
    return path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "none"},
        {"compression": "zstd", "use_dictionary": False},
        {"data_page_version": "2.0", "compression": "gzip"},
        {"data_page_size": 100, "row_group_size": 300, "write_batch_size": 10},
        {"write_statistics": False},
    ],
)
def test_a_file_is_whole_however_it_is_written(tmp_path: Path, options: dict[str, object]) -> None:
    nested = pa.array([[1, None], [], None] * 666 + [[], []], pa.list_(pa.int8()))
    assert damage(str(made(tmp_path, USAGE.append_column("nested", nested), **options))) is None


def test_a_file_without_rows_or_checksums_is_whole(tmp_path: Path) -> None:
    assert damage(str(made(tmp_path, USAGE.slice(0, 0)))) is None
    pq.write_table(USAGE, tmp_path / "plain.parquet")
    assert damage(str(tmp_path / "plain.parquet")) is None


def test_what_others_write_is_whole(tmp_path: Path, duck: SqlSession) -> None:
    duck.connection.register("usage_of_others", USAGE)
    path = tmp_path / "duck.parquet"
    duck.connection.execute(f"COPY usage_of_others TO '{path}' (COMPRESSION zstd)")
    assert damage(str(path)) is None


def test_each_bit_of_a_page_is_looked_at(tmp_path: Path) -> None:
    path = made(tmp_path, USAGE.select(["user"]), compression="none")
    content = path.read_bytes()
    column = pq.read_metadata(path).row_group(0).column(0)
    begin = column.dictionary_page_offset
    silent = []
    for place in range(begin, begin + column.total_compressed_size):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        if damage(str(path)) is None:
            silent.append(place - begin)
    # What headers say of encodings, and of least and greatest values, has no checksum.
    assert len(silent) < 60
    assert column.total_compressed_size > 1_000


@pytest.mark.parametrize("length", [0, 3, 100, -1])
def test_a_file_that_is_cut_off_is_no_file(tmp_path: Path, length: int) -> None:
    path = made(tmp_path)
    path.write_bytes(path.read_bytes()[:length])
    assert damage(str(path)) is not None


@pytest.mark.parametrize("byte", [0x00, 0x15, 0x1C, 0x19, 0xFF])
def test_pages_of_one_byte_over_and_over_end(tmp_path: Path, byte: int) -> None:
    """Structures without end, numbers without end, kinds that nobody knows."""
    path = made(tmp_path)
    content = path.read_bytes()
    column = pq.read_metadata(path).row_group(0).column(0)
    begin, size = column.dictionary_page_offset, column.total_compressed_size
    path.write_bytes(content[:begin] + bytes([byte]) * size + content[begin + size :])
    assert damage(str(path)) == f"a page has no header in the column {column.path_in_schema}"


def test_a_column_is_no_longer_than_its_file(tmp_path: Path) -> None:
    """Nothing is set aside for what a footer claims."""
    path = made(tmp_path, USAGE.select(["user"]).slice(0, 400), compression="none")
    content = path.read_bytes()
    number = 2 * pq.read_metadata(path).row_group(0).column(0).total_compressed_size
    size = bytes([number & 127 | 128, number >> 7])
    path.write_bytes(content.replace(size, bytes([0xFE, 0x7F])))
    assert damage(str(path)) == "more bytes than the file has in the column user"


def test_a_page_is_no_larger_than_fits_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path, USAGE.select(["user"]), use_dictionary=False)
    assert damage(str(path)) is None
    monkeypatch.setattr(pages, "_LARGEST", 20_000)
    assert damage(str(path)) == "a page of 0 MiB, more than 0, in the column user"


@pytest.mark.parametrize("long", [0, 3_000])
def test_pages_are_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: int) -> None:
    """Also their headers, which have the least and the greatest value."""
    monkeypatch.setattr(pages, "_PART", 100)
    monkeypatch.setattr(pages, "_HEADERS", (1 << 3, 1 << 6, 1 << 14))
    users = pa.array([f"{number}{'x' * long}" for number in range(50)])
    path = made(tmp_path, pa.table({"user": users}), use_dictionary=False, compression="none")
    assert damage(str(path)) is None
    assert damage(pa.py_buffer(path.read_bytes())) is None
    content = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(0).column(0)
    content[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    path.write_bytes(content)
    assert damage(str(path)) == "a page has another checksum in the column user"
