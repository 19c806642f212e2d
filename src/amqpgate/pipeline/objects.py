"""Records in an object store that speaks S3, as files of this machine.

The Spark that comes from PyPI reads no object store without jars from elsewhere; pyarrow does. So an embedded
Spark is handed copies, of the objects that are wanted only. One on a cluster reads ``s3a://`` by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import attrs
from pyarrow import fs

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import Span, chosen
from amqpgate.pipeline.places import SCHEME
from amqpgate.records import Sort

_AT_ONCE: Final = 8


@attrs.define
class Objects:
    """What is below ``s3://BUCKET/PREFIX?OPTIONS`` (those of pyarrow's ``S3FileSystem``), or a single object.

    Copies go below ``into``; ``tell`` hears how far that is. Who asks, and which store, is in the environment
    and the files of AWS's own tools. Methods raise ``PipelineError``.
    """

    address: str
    into: Path
    tell: Callable[[str], None]
    _store: fs.FileSystem | None = attrs.field(init=False, default=None)
    _size: dict[str, int] = attrs.field(init=False, factory=dict)

    def __str__(self) -> str:
        return self.address.partition("?")[0]

    def paths(self) -> list[str]:
        """Where the copies of all objects are or would be, as Spark names files. It asks the store once: what
        comes later is for the next time."""
        if self._store is None:
            self._look()
        return sorted(self._size)

    @property
    def folder(self) -> None:
        """None."""

    @property
    def is_table(self) -> bool:
        """No."""
        return False

    def chosen(self, sort: Sort, span: Span, leave_out: Container[str]) -> tuple[list[str], list[str]]:
        """Of `paths` those of Parquet, and those of JSON lines, that may have what is wanted."""
        return chosen(self.paths(), self, sort, span, leave_out)

    @property
    def size(self) -> int:
        """Of all objects, in bytes."""
        self.paths()
        return sum(self._size.values())

    def size_of(self, path: str) -> int:
        """Of one of them."""
        return self._size[path]

    def _look(self) -> None:
        start, _, options = self.address.removeprefix(SCHEME).partition("?")
        start = start.rstrip("/")
        bucket = start.partition("/")[0]
        if not {"@", ":"}.isdisjoint(bucket):
            raise PipelineError(
                f"{SCHEME}...: a key in an address would be shown to others; "
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
            )
        if {"", ".", ".."}.intersection(start.split("/")):
            raise PipelineError(f"{self} is not like {SCHEME}BUCKET/PREFIX")
        try:
            store, _ = fs.FileSystem.from_uri(f"{SCHEME}{bucket}?{options}")
            alone = store.get_file_info(start)
            below = fs.FileSelector(start, recursive=True)
            found = [alone] if alone.is_file else store.get_file_info(below)
        except FileNotFoundError:
            raise PipelineError(f"{self}: no such object or folder") from None
        except (OSError, ValueError) as error:
            raise PipelineError(f"{self}: {error}") from error
        self._size = {
            self._path(info.path): info.size
            for info in found
            if info.is_file and _is_seen(info.path.removeprefix(f"{start}/"))
        }
        self._store = store

    def copy(self, paths: Iterable[str]) -> None:
        """Have these of ``paths`` here."""
        missing = [path for path in paths if not self._file(path).exists()]
        total, done = sum(self._size[path] for path in missing), 0
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for number, size in enumerate(pool.map(self._copy, missing), 1):
                done += size
                self.tell(f"copying {number:,} of {len(missing):,} objects, {_mb(done)} of {_mb(total)} MB")

    def drop(self, paths: Iterable[str]) -> None:
        """Remove these copies."""
        for path in paths:
            self._file(path).unlink()

    def name(self, path: str) -> str:
        """Of a copy: what it is a copy of."""
        return f"{SCHEME}{self._key(path)}"

    def _copy(self, path: str) -> int:
        made = self._file(path)
        made.parent.mkdir(parents=True, exist_ok=True)
        try:
            fs.copy_files(self._key(path), str(made), source_filesystem=self._store, use_threads=False)
        except OSError as error:
            raise PipelineError(f"{self.name(path)}: {error}") from error
        return self._size[path]

    def _path(self, key: str) -> str:
        return f"file://{self.into}/{key}"

    def _key(self, path: str) -> str:
        return path.removeprefix(f"file://{self.into}/")

    def _file(self, path: str) -> Path:
        return self.into / self._key(path)


def _is_seen(name: str) -> bool:
    """Whether it is for readers, as in folders, and a file may be called so."""
    return all(part and part[0] not in "_." for part in name.split("/"))


def _mb(byte_count: int) -> str:
    return f"{byte_count / 1e6:,.1f}"
