"""What a file of records has to have: on both engines, and in both forms."""

from __future__ import annotations

import gc
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from amqpgate.pipeline import contract
from amqpgate.pipeline.compact import compact
from amqpgate.pipeline.contract import Look, is_whole, look_into, required, whole
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import look_into_all
from amqpgate.pipeline.local_frames import SqlSession
from amqpgate.pipeline.pages import damage
from amqpgate.pipeline.reading import Span, _look_elsewhere, read
from amqpgate.records import Sort
from amqpgate.telemetry.audit.parquet import _make_parquet, _parquet_of
from tests.support.audit_plans import Plans
from tests.support.audit_records import START, WINDOW, Traffic, event, lines, table_of, usage, write

DAY = timedelta(days=1)
TABLE = table_of("usage", [usage("other-1", START, 2), usage("other-2", START, 3)])
AT = TABLE.schema.names.index


def cast(name: str, kind: pa.DataType) -> pa.Table:
    return TABLE.set_column(AT(name), name, TABLE[name].cast(kind))


def nulled(name: str) -> pa.Table:
    values = pa.array([None, TABLE[name][1].as_py()], TABLE.schema.field(name).type)
    return TABLE.set_column(AT(name), pa.field(name, values.type), values)


#: What is no record, and why.
WRONG: dict[str, tuple[pa.Table, str]] = {
    "no id": (TABLE.drop_columns(["record_id"]), "lacks the columns record_id"),
    "few": (
        TABLE.select(["record_id", "window_start"]),
        "lacks the columns schema_version, gateway, session, user and 25 more",
    ),
    "no verdict": (TABLE.drop_columns(["verdict"]), "lacks the columns verdict"),
    "ids that are null": (nulled("record_id"), "has no record_id in 1 of 2 records"),
    "versions that are null": (nulled("schema_version"), "has no schema_version in 1 of 2 records"),
    "numbers as text": (cast("messages", pa.string()), "has string in the column messages, not int64"),
    "small numbers": (cast("messages", pa.int32()), "has int32 in the column messages, not int64"),
    "users as numbers": (
        TABLE.set_column(AT("user"), "user", pa.array([1, 2])),
        "has int64 in the column user, not string",
    ),
    "of others": (pa.table({"a": [1]}), "has no audit records"),
    "a column twice": (
        pa.table([*TABLE.columns, TABLE["user"]], [*TABLE.schema.names, "user"]),
        "has the column user twice",
    ),
    "a column twice but for its letters": (
        TABLE.append_column("USER", pa.array(["x", "y"])),
        "has the column user twice",
    ),
    "structures as text": (
        TABLE.set_column(AT("user"), "user", pa.array([{"a": 1}, {"a": 2}])),
        "has struct<a: int64> in the column user, not string",
    ),
    "times after all": (
        TABLE.set_column(AT("first"), "first", pa.array([1, 2**62], pa.timestamp("us", "UTC"))),
        "has a time before 1970 or after 9998 in the column first",
    ),
    "times before all": (
        TABLE.set_column(AT("first"), "first", pa.array([-1, 2], pa.timestamp("us", "UTC"))),
        "has a time before 1970 or after 9998 in the column first",
    ),
}
#: Of those, what only this process sees.
ODD = {case for case in WRONG if case.startswith(("a column twice", "times "))}
#: What is one.
RIGHT: dict[str, tuple[pa.Table, int]] = {
    "as written": (TABLE, 2),
    "none": (TABLE.slice(0, 0), 0),
    "an older one": (TABLE.drop_columns(["more_keys", "upstream_user"]), 2),
    "with a column of others": (TABLE.append_column("nested", pa.array([[{"user": None}], []])), 2),
    "in another order": (TABLE.select(TABLE.schema.names[::-1]), 2),
    "repeating texts": (cast("user", pa.dictionary(pa.int32(), pa.string())), 2),
    "large texts": (cast("user", pa.large_string()), 2),
}


def add(folder: Path, table: pa.Table) -> Path:
    """A file beside one that is in order."""
    write(folder, "usage", table_of("usage", [usage("whole", START)]))
    path = folder / "usage" / "date=2026-11-02" / "other.parquet"
    pq.write_table(table, path)
    return path


def ids(table: Any) -> list[str]:
    """Of what was read."""
    return sorted(row.record_id for row in table)


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_is_otherwise_is_named_and_left_out(plans: Plans, tmp_path: Path, case: str) -> None:
    table, why = WRONG[case]
    path = add(tmp_path, table)
    found = plans.read(tmp_path, "usage")
    assert [(skipped.path, skipped.why) for skipped in found.skipped] == [(f"file://{path}", why)]
    assert (found.files, found.records) == (1, 1)
    assert [row.record_id for row in plans.rows_of(plans.read(tmp_path, "usage"))] == ["whole"]


@pytest.mark.parametrize("case", RIGHT)
def test_a_file_may_be_older_or_have_more(plans: Plans, tmp_path: Path, case: str) -> None:
    table, records = RIGHT[case]
    add(tmp_path, table)
    found = plans.read(tmp_path, "usage")
    assert (found.skipped, found.files, found.records) == ((), 2, 1 + records)
    rows = plans.rows_of(plans.read(tmp_path, "usage"))
    assert {row.record_id: row.user for row in rows} == {"whole": "alice"} | {
        row["record_id"]: row["user"] for row in table.to_pylist()
    }


def test_a_file_without_ids_does_not_block_the_table(spark: SparkSession, tmp_path: Path) -> None:
    raw, table = tmp_path / "raw", tmp_path / "table"
    add(raw, TABLE.drop_columns(["record_id"]))
    for _ in range(2):
        (_, done) = compact(spark, str(raw), table)
        assert [skipped.why for skipped in done.skipped] == ["lacks the columns record_id"]
    assert [row.record_id for row in read(spark, str(table), "usage").frame.collect()] == ["whole"]


def test_files_that_only_spark_reads_need_the_same_values(spark: SparkSession, tmp_path: Path) -> None:
    """On a cluster's own store Spark is asked; here it is, of files of this machine."""
    for case, (table, _) in {**WRONG, **RIGHT}.items():
        pq.write_table(table, tmp_path / f"{case}.parquet")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1")
    paths = {path.stem: f"file://{path}" for path in tmp_path.glob("*.parquet")}
    looks = _look_elsewhere(spark, "usage", list(paths.values()))
    refused = {case for case, path in paths.items() if looks[path].why is not None}
    # A column that may be null is not missed there, times are not looked at, and columns of another type, or
    # that are there twice, end the job that reads them.
    passed = {"no verdict", "users as numbers", "small numbers", "structures as text", *ODD}
    assert refused == {*WRONG, "cut", "none"} - passed
    assert looks[paths["ids that are null"]].why == "has no record_id in 1 records"


@pytest.mark.parametrize("sort", ["usage", "events"])
def test_lines_need_the_same_values(plans: Plans, tmp_path: Path, sort: Sort) -> None:
    record = usage("1", START) if sort == "usage" else event("1", "admin", START)
    (line,) = lines(sort, [record])
    said = json.loads(line)
    wrong = [{**said, name: None} for name in required(sort)]
    wrong += [{key: value for key, value in said.items() if key != name} for name in required(sort)]
    texts = ["record_id", "user", "window_start" if sort == "usage" else "body"]
    wrong += [{**said, name: value} for name in texts for value in (5, 1.5, True, {"a": 1}, ["a"])]
    wrong += [{**said, "schema_version": value} for value in ("1", 1.0, True, 1 << 15)]
    wrong += [{**said, "passive": value} for value in ("true", 1)]
    least = {key: value for key, value in said.items() if value is not None}
    right = [said, least, {**said, "weather": {"user": 5, "a": [{"b": {"user": 1}}]}}]
    text = "\n".join(json.dumps(one) for one in (*right, *wrong))
    (tmp_path / "some.json").write_text(text)
    found = plans.read(tmp_path, sort)
    assert [skipped.why for skipped in found.skipped] == [
        f"{len(wrong)} lines are no audit records, the first is line 4"
    ]
    assert found.records == len(right)
    assert len(plans.rows_of(found)) == len(right)


def test_records_before_the_first_of_their_file_are_in_the_span(plans: Plans, tmp_path: Path) -> None:
    """The file is of the next day."""
    late = [usage("next", START + DAY), usage("before", START + DAY - WINDOW)]
    write(tmp_path, "usage", table_of("usage", late))
    write(tmp_path, "usage", table_of("usage", [usage("far", START + 9 * DAY)]))
    found = plans.read(tmp_path, "usage", Span(until=START + DAY - timedelta(seconds=1)))
    assert (found.files, found.records) == (1, 2)
    (row,) = plans.rows_of(found)
    assert row.record_id == "before"


def test_a_version_that_is_later_is_told_whatever_else_is_there(tmp_path: Path) -> None:
    version = pa.array([2, 2], pa.int16())
    later = TABLE.select(["record_id"]).append_column("schema_version", version)
    assert look_into(str(add(tmp_path, later)), "usage").versions == {2: 2}


def test_one_bit_that_is_wrong_ends_the_job_and_is_named(plans: Plans, tmp_path: Path) -> None:
    """As gateways write them, with checksums: most such bits would be other values else."""
    path = _parquet_of_gateway(tmp_path, Traffic().usage(2_000))
    content = path.read_bytes()
    for place in range(100, len(content) // 2, len(content) // 12):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(PipelineError, match=f"{path}"), plans.explained([f"file://{path}"]):
            plans.rows_of(plans.read(tmp_path, "usage"))


def test_folders_are_read_by_the_letters_of_their_names(duck: SqlSession, tmp_path: Path) -> None:
    """A pattern would find the files of its neighbours, too."""
    plans = Plans("local", duck)
    names = ["a?b", "acb", "[a-c]?b", "it's", "**", "back\\slash", '"quoted" ; --', "{a,b}"]
    for number, name in enumerate(names):
        write(tmp_path / name, "usage", table_of("usage", [usage(f"{number}", START)]))
    found = [[row.record_id for row in plans.rows_of(plans.read(tmp_path / name, "usage"))] for name in names]
    assert found == [[f"{number}"] for number in range(len(names))]
    write(tmp_path / "back\\slash?", "usage", table_of("usage", [usage("none", START)]))
    with pytest.raises(PipelineError, match="use --engine spark"):
        plans.read(tmp_path / "back\\slash?", "usage")


def test_files_that_lack_later_columns_are_read_beside_others(duck: SqlSession, tmp_path: Path) -> None:
    plans = Plans("local", duck)
    whole = table_of("usage", [usage("new", START, largest_body=7)])
    write(tmp_path, "usage", whole)
    write(tmp_path, "usage", whole.drop_columns(["largest_body", "token"]), gateway="old")
    rows = plans.rows_of(plans.read(tmp_path, "usage"))
    assert sorted((row.largest_body is None, row.token) for row in rows) == [(False, None), (True, None)]


def _parquet_of_gateway(folder: Path, table: pa.Table) -> Path:
    stream = folder / "usage" / "date=2026-11-02" / "_gate-0-000001.arrows"
    stream.parent.mkdir(parents=True)
    _make_parquet(table, stream)
    return _parquet_of(stream)


@pytest.mark.parametrize("write_statistics", [True, False])
def test_a_footer_that_is_silent_is_no_excuse(tmp_path: Path, write_statistics: bool) -> None:
    def look(table: pa.Table) -> Look:
        pq.write_table(table, tmp_path / "t.parquet", write_statistics=write_statistics)
        return look_into(str(tmp_path / "t.parquet"), "usage")

    assert look(nulled("record_id")).why == "has no record_id in 1 of 2 records"
    assert look(WRONG["times after all"][0]).why == WRONG["times after all"][1]
    assert look(TABLE).versions == {1: 2}


def test_nothing_stays_of_the_footer_of_a_file(tmp_path: Path) -> None:
    """Python looks for cycles the less often the more objects there are: many footers would stay."""

    def footers() -> int:
        return sum(isinstance(one, pq.FileMetaData) for one in gc.get_objects())

    path = _parquet_of_gateway(tmp_path, TABLE)
    gc.collect()
    before = footers()
    gc.disable()
    try:
        for _ in range(3):
            assert look_into(str(path), "usage").why is None
            assert damage(str(path)) is None
            assert len(whole(str(path), "usage")) == len(TABLE)
            assert is_whole(str(path))
        assert footers() == before
    finally:
        gc.enable()


def test_who_has_a_whole_file_in_memory_says_how_much_it_may_have(tmp_path: Path) -> None:
    """A few bytes of Parquet can be a billion of equal records."""
    pq.write_table(TABLE, tmp_path / "t.parquet")
    assert look_into(str(tmp_path / "t.parquet"), "usage", most=2).why is None
    found = look_into(str(tmp_path / "t.parquet"), "usage", most=1)
    assert found.why == "has 2 records, which no file of a gateway has"


def test_a_text_that_repeats_is_not_in_memory_as_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a text of 1 MiB a million times, which is 19 MiB of Parquet, it would be a terabyte."""
    monkeypatch.setattr(contract, "_MOST_BYTES", 4 << 20)
    why = "has more than 4 MiB of records, which no file of a gateway has"
    table, path = Traffic().usage(100), tmp_path / "t.parquet"

    def write_with(users: pa.Array, **options: bool) -> None:
        pq.write_table(table.set_column(AT("user"), "user", users), path, compression="zstd", **options)
        assert path.stat().st_size < 1 << 16

    write_with(pa.DictionaryArray.from_arrays(pa.array([0] * 100, pa.int32()), ["x" * (1 << 16)]))
    assert look_into(str(path), "usage").why is None
    assert whole(str(path), "usage") == whole(pa.py_buffer(path.read_bytes()), "usage") == why
    assert is_whole(str(path))
    # The same where each is a little different.
    write_with(pa.array([f"{number}{'x' * (1 << 16)}" for number in range(100)]), use_dictionary=False)
    assert whole(str(path), "usage") == why
    write_with(table["user"])
    assert isinstance(whole(str(path), "usage"), pa.Table)


def test_a_whole_file_is_what_was_written(tmp_path: Path) -> None:
    table = Traffic().usage(300)
    pq.write_table(table.drop_columns(["token"]), path := tmp_path / "t.parquet", row_group_size=100)
    found = whole(str(path), "usage")
    assert isinstance(found, pa.Table)
    assert found["token"].null_count == 300
    assert found.drop_columns(["token"]).equals(table.drop_columns(["token"]))


def test_a_file_that_is_replaced_since_it_was_listed_ends_the_job(tmp_path: Path) -> None:
    """As by `compact`: what has replaced it would be missing."""
    path = add(tmp_path, TABLE)
    path.unlink()
    with pytest.raises(PipelineError, match="is gone since its folder was listed: run it again"):
        look_into_all([f"file://{path}"], "usage")
