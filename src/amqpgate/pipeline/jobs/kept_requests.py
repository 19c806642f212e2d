"""The requests that earlier runs of `recommend` have seen, in one file, so that only what is new is read.

Distinct requests with their sums are what all else is made of: those of two sets of files, put together, are
those of both. The file says which files of records are in it. It is replaced as a whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import NUMBERED, RecordSource, RecordTable, name_of
from amqpgate.pipeline.jobs.recommend import REQUEST
from amqpgate.pipeline.jobs.requests import SUMS

#: Of the file. Another one is not read.
_VERSION: Final = 1
_ABOUT: Final = b"amqpgate"
_FLAGS: Final = ("passive", "foreign", "any_key", "routing_key_is_template")
_TIME: Final = pa.timestamp("us", tz="UTC")
_COUNTS: Final = ("requests", "messages", "bytes")
SCHEMA: Final = pa.schema(
    [
        *((name, pa.bool_() if name in _FLAGS else pa.string()) for name in REQUEST),
        *((name, pa.int64() if name in _COUNTS else _TIME) for name in SUMS),
    ]
)


@attrs.frozen
class KeptRequests:
    """Requests, and the files that they are of. ``vhost``: only this one's were counted."""

    requests: pa.Table
    files: frozenset[str]
    vhost: str | None

    def write(self, path: Path) -> None:
        """Put it there, in the place of what was there."""
        about = {"version": _VERSION, "vhost": self.vhost, "files": sorted(self.files)}
        table = self.requests.replace_schema_metadata({_ABOUT: json.dumps(about).encode()})
        unfinished = path.with_name(f"_{path.name}.{os.getpid()}")
        try:
            pq.write_table(table, unfinished, compression="zstd", write_page_checksum=True)
            with unfinished.open("rb") as written:
                os.fsync(written.fileno())
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


def read_kept(path: Path, vhost: str | None) -> KeptRequests:
    """What is there; nothing, if there is no file. Raises ``PipelineError``."""
    if not path.exists():
        return KeptRequests(SCHEMA.empty_table(), frozenset(), vhost)
    try:
        table = pq.read_table(path, page_checksum_verification=True, partitioning=None)
        about = json.loads((table.schema.metadata or {}).get(_ABOUT, b"{}"))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise PipelineError(f"{path} is damaged, or no state of recommend: remove it") from error
    if about.get("version") != _VERSION or not table.schema.equals(SCHEMA):
        raise PipelineError(f"{path} is of another amqpgate, or no state of recommend: remove it")
    if about["vhost"] != vhost:
        one = "all virtual hosts" if about["vhost"] is None else f"virtual host '{about['vhost']}'"
        raise PipelineError(f"{path} is about {one}: give the same --vhost, or another --state")
    return KeptRequests(table.replace_schema_metadata(), frozenset(about["files"]), vhost)


def names_of_new(new: RecordTable, source: str | RecordSource) -> Collection[str]:
    """The files that were read. Raises ``PipelineError`` where some may change later."""
    is_table = not isinstance(source, str) and source.is_table
    if is_table or new.files > len(new.paths) or any(NUMBERED.match(path) for path in new.paths):
        raise PipelineError(
            "--state is for the folder that gateways write in Parquet: files of JSON lines grow, and those "
            "of tables are replaced"
        )
    return [name_of(path) for path in new.paths]
