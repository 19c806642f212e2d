"""Which files of a folder are there to be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from amqpgate.pipeline.places import local_files
from tests.support.audit_plans import Plans
from tests.support.audit_records import START, lines, usage


def names(root: Path) -> list[str]:
    return [str(path.relative_to(root)) for path in local_files(str(root)) or ()]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """With whatever is no file, and links in circles."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "linked.jsonl").write_text("")
    made = tmp_path / "root"
    for folder in ("a", "a/x.jsonl", "_unfinished", ".hidden"):
        (made / folder).mkdir(parents=True)
        (made / folder / "some.jsonl").write_text("")
    os.mkfifo(made / "fifo.jsonl")
    links = {
        "circle": ".", "a/circle": "..", "outside": "../elsewhere", "one.jsonl": "a/some.jsonl",
        "two.jsonl": "a/some.jsonl", "far.jsonl": "../elsewhere/linked.jsonl",
        "again.jsonl": "../elsewhere/linked.jsonl", "none.jsonl": "nowhere", "itself.jsonl": "itself.jsonl",
        "pipe.jsonl": "fifo.jsonl",
    }  # fmt: skip
    for name, target in links.items():
        (made / name).symlink_to(target)
    return made


def test_each_file_is_there_once(root: Path) -> None:
    """Links to files are followed, those to folders are not; what is no file is left alone."""
    assert names(root) == ["a/some.jsonl", "a/x.jsonl/some.jsonl", "again.jsonl"]


def test_without_links_it_is_all_files(tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "_a.json", ".a.json"):
        (tmp_path / name).write_text("")
    assert names(tmp_path) == ["a.json", "b.json"]
    assert local_files(str(tmp_path / "_a.json")) == [tmp_path / "_a.json"]
    assert local_files("s3a://bucket/folder") is None


def test_no_engine_goes_around_in_circles(plans: Plans, root: Path) -> None:
    (root / "a" / "some.jsonl").write_text("\n".join(lines("usage", [usage("1", START)])))
    found = plans.read(root, "usage")
    assert (found.files, [row.record_id for row in plans.rows_of(found)]) == (3, ["1"])
